//! What an expression of the source says, as text with the names of what it fills in: `there is no node {node}`.
//! Where it can say several things, all of them.

use std::collections::BTreeMap;

use proc_macro2::LineColumn;
use quote::ToTokens as _;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::{Expr, Lit, Pat, Stmt, Token};

use super::sources::Source;

/// More ways than these to say one thing are not told apart.
const MOST: usize = 6;

/// What the names in an expression stand for.
#[derive(Clone, Default)]
pub struct Scope {
    /// Texts of parameters.
    pub given: BTreeMap<String, Vec<String>>,
    /// What `let` binds.
    pub bound: BTreeMap<String, Expr>,
}

/// Reads expressions of one file.
pub struct Reading<'a> {
    pub source: &'a Source,
    pub all: &'a [Source],
}

impl Reading<'_> {
    /// Everything that `expr` can say.
    pub fn texts(&self, expr: &Expr, scope: &Scope) -> Vec<String> {
        let mut texts = self.said(expr, scope, 0);
        texts.dedup();
        if texts.len() > MOST { vec![hole(expr)] } else { texts }
    }

    fn said(&self, expr: &Expr, scope: &Scope, depth: usize) -> Vec<String> {
        if depth > 12 {
            return vec![hole(expr)];
        }
        let deeper = |expr: &Expr| self.said(expr, scope, depth + 1);
        match expr {
            Expr::Lit(lit) => vec![match &lit.lit {
                Lit::Str(text) => text.value(),
                other => other.to_token_stream().to_string(),
            }],
            Expr::Reference(inner) => deeper(&inner.expr),
            Expr::Paren(inner) => deeper(&inner.expr),
            Expr::Group(inner) => deeper(&inner.expr),
            Expr::Block(block) => self.block(&block.block, scope, depth),
            Expr::If(branches) => {
                let mut texts = self.block(&branches.then_branch, scope, depth);
                texts.extend(branches.else_branch.iter().flat_map(|(_, other)| deeper(other)));
                texts
            }
            Expr::Match(arms) => arms.arms.iter().flat_map(|arm| deeper(&arm.body)).collect(),
            Expr::Macro(call) if call.mac.path.is_ident("format") => self.format(&call.mac, scope, depth),
            Expr::MethodCall(call) => self.method(call, scope, depth),
            Expr::Call(call) => self.call(call, scope, depth),
            Expr::Path(path) => self.name(path, scope, depth),
            other => vec![hole(other)],
        }
    }

    fn block(&self, block: &syn::Block, scope: &Scope, depth: usize) -> Vec<String> {
        let mut scope = scope.clone();
        scope.bound.extend(bindings(block, END));
        match block.stmts.last() {
            Some(Stmt::Expr(last, None)) => self.said(last, &scope, depth + 1),
            _ => Vec::new(),
        }
    }

    fn name(&self, path: &syn::ExprPath, scope: &Scope, depth: usize) -> Vec<String> {
        let Some(name) = path.path.segments.last().map(|last| last.ident.to_string()) else {
            return Vec::new();
        };
        if name == "None" {
            return Vec::new();
        }
        if let Some(texts) = scope.given.get(&name) {
            return texts.clone();
        }
        let bound = scope.bound.get(&name).filter(|bound| !names(bound, &name));
        let constant = || self.source.constants.get(&name).or_else(|| self.constant(&name));
        match bound.or_else(constant) {
            Some(expr) if !matches!(expr, Expr::Closure(_)) => {
                let texts = self.said(expr, scope, depth + 1);
                // A hole is better named by what it is called here.
                if texts.iter().any(|text| is_hole(text)) { vec![format!("{{{name}}}")] } else { texts }
            }
            _ => vec![format!("{{{name}}}")],
        }
    }

    /// A constant of this name elsewhere in the same crate.
    fn constant(&self, name: &str) -> Option<&Expr> {
        let same = |source: &&Source| source.folder == self.source.folder;
        self.all.iter().filter(same).find_map(|source| source.constants.get(name))
    }

    fn method(&self, call: &syn::ExprMethodCall, scope: &Scope, depth: usize) -> Vec<String> {
        let deeper = |expr: &Expr| self.said(expr, scope, depth + 1);
        let closures = || call.args.iter().flat_map(|argument| self.branch(argument, scope, depth));
        match call.method.to_string().as_str() {
            "to_owned" | "into" | "as_str" | "clone" | "trim" => deeper(&call.receiver),
            "to_string" => match deeper(&call.receiver) {
                texts if texts.iter().any(|text| is_hole(text)) => vec![hole(&call.receiver)],
                texts => texts,
            },
            "map_or" | "map_or_else" | "then" | "then_some" => closures().collect(),
            "unwrap_or_default" => {
                let mut texts = match &*call.receiver {
                    Expr::MethodCall(inner) if inner.method == "map" => {
                        inner.args.iter().flat_map(|argument| self.branch(argument, scope, depth)).collect()
                    }
                    other => deeper(other),
                };
                texts.push(String::new());
                texts
            }
            _ => vec![hole(&Expr::MethodCall(call.clone()))],
        }
    }

    /// What a closure says, or an expression in its place.
    fn branch(&self, argument: &Expr, scope: &Scope, depth: usize) -> Vec<String> {
        match argument {
            Expr::Closure(closure) => self.said(&closure.body, scope, depth + 1),
            other => self.said(other, scope, depth + 1),
        }
    }

    fn call(&self, call: &syn::ExprCall, scope: &Scope, depth: usize) -> Vec<String> {
        let name = match &*call.func {
            Expr::Path(path) => path.path.segments.last().unwrap().ident.to_string(),
            _ => String::new(),
        };
        match (name.as_str(), call.args.first()) {
            // What is shown is the first argument: bounded and escaped, or with its causes.
            ("shown" | "chain" | "from" | "Some", Some(first)) => self.said(first, scope, depth + 1),
            _ => vec![hole(&Expr::Call(call.clone()))],
        }
    }

    /// `format!`, with every argument in its place.
    fn format(&self, of: &syn::Macro, scope: &Scope, depth: usize) -> Vec<String> {
        let Ok(arguments) = of.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated) else {
            return vec![of.tokens.to_string()];
        };
        let mut arguments = arguments.into_iter();
        let Some(Expr::Lit(syn::ExprLit { lit: Lit::Str(text), .. })) = arguments.next() else {
            return vec![of.tokens.to_string()];
        };
        let arguments: Vec<Expr> = arguments.collect();
        self.filled(&text.value(), &arguments, &mut |expr| self.said(expr, scope, depth + 1))
    }

    /// `text` with what stands in its braces; `say` says what an argument is.
    pub fn filled(
        &self,
        text: &str,
        arguments: &[Expr],
        say: &mut dyn FnMut(&Expr) -> Vec<String>,
    ) -> Vec<String> {
        let mut texts = vec![String::new()];
        let mut next = 0;
        for piece in pieces(text) {
            let said = match piece {
                Piece::Text(text) => vec![text],
                Piece::Hole { name, form } => {
                    let expr = argument(&name, arguments, &mut next);
                    let mut said = say(&expr);
                    if said.is_empty() || said.len() > 3 || form.contains('?') {
                        said = vec![format!("{{{}{form}}}", plain(&expr))];
                    }
                    said
                }
            };
            texts =
                texts.iter().flat_map(|start| said.iter().map(move |end| format!("{start}{end}"))).collect();
            if texts.len() > MOST * 2 {
                texts.truncate(MOST * 2);
            }
        }
        texts
    }
}

/// The argument a hole names: by its name, by its number, or the next one.
fn argument(name: &str, arguments: &[Expr], next: &mut usize) -> Expr {
    let positional = |at: usize| arguments.iter().filter(|a| !matches!(a, Expr::Assign(_))).nth(at).cloned();
    let found = if name.is_empty() {
        *next += 1;
        positional(*next - 1)
    } else if let Ok(at) = name.parse::<usize>() {
        positional(at)
    } else {
        arguments.iter().find_map(|argument| match argument {
            Expr::Assign(assign) if assign.left.to_token_stream().to_string() == name => {
                Some((*assign.right).clone())
            }
            _ => None,
        })
    };
    found.unwrap_or_else(|| match syn::parse_str(name) {
        Ok(expr) => expr,
        Err(_) => syn::parse_str("_unnamed").unwrap(),
    })
}

enum Piece {
    Text(String),
    Hole { name: String, form: String },
}

fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '{' if chars.peek() == Some(&'{') => plain.extend(chars.next()),
            '}' if chars.peek() == Some(&'}') => plain.extend(chars.next()),
            '{' => {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
                let inside: String = chars.by_ref().take_while(|char| *char != '}').collect();
                let (name, form) = match inside.split_once(':') {
                    Some((name, form)) => (name.to_owned(), format!(":{form}")),
                    None => (inside, String::new()),
                };
                pieces.push(Piece::Hole { name, form });
            }
            other => plain.push(other),
        }
    }
    pieces.push(Piece::Text(plain));
    pieces
}

/// What `let` binds to a name in a block before `place`, at any depth; of several the last.
pub fn bindings(block: &syn::Block, place: LineColumn) -> BTreeMap<String, Expr> {
    struct Lets(BTreeMap<String, Expr>, LineColumn);
    impl<'ast> syn::visit::Visit<'ast> for Lets {
        fn visit_local(&mut self, local: &'ast syn::Local) {
            if let (Pat::Ident(name), Some(init)) = (&local.pat, &local.init)
                && local.span().start() < self.1
            {
                self.0.insert(name.ident.to_string(), (*init.expr).clone());
            }
            syn::visit::visit_local(self, local);
        }
    }
    let mut lets = Lets(BTreeMap::new(), place);
    syn::visit::Visit::visit_block(&mut lets, block);
    lets.0
}

/// Behind everything.
pub const END: LineColumn = LineColumn { line: usize::MAX, column: 0 };

/// Whether an expression names `name` itself: a binding that shadows one of the same name.
fn names(expr: &Expr, name: &str) -> bool {
    let mut found = false;
    super::sources::tokens(expr.to_token_stream(), &mut |token| {
        found |= matches!(token, proc_macro2::TokenTree::Ident(ident) if ident == name);
    });
    found
}

fn hole(expr: &Expr) -> String {
    format!("{{{}}}", plain(expr))
}

/// An expression as it may stand in braces.
fn plain(expr: &Expr) -> String {
    let mut text = expr.to_token_stream().to_string();
    for (from, to) in [
        (" . ", "."),
        (" :: ", "::"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        ("& ", ""),
        (" ,", ","),
        ("* ", ""),
    ] {
        text = text.replace(from, to);
    }
    text.trim_end_matches(".display()").replace("self.", "")
}

/// Whether a text is nothing but one thing that is filled in.
pub fn is_hole(text: &str) -> bool {
    text.starts_with('{') && text.find('}') == Some(text.len() - 1)
}
