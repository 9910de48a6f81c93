//! The functions and tables of tests: what each expects, and what it makes by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proc_macro2::TokenStream;
use quote::ToTokens as _;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Expr, Member, Token};
use tenure_tests::tree;

use crate::said::{self, sources};

/// What a test that looks at refusals names.
const LOOKS: [&str; 16] = [
    "code",
    "codes",
    "is",
    "refusal",
    "refused",
    "reason",
    "golden",
    "verdict",
    "trouble",
    "briefing",
    "ended",
    "outcome",
    "is_down_with",
    "assert_refused",
    "wait_for_reason",
    "wait_for_code",
];

/// Methods that compare what they are given.
const COMPARES: [&str; 6] = ["contains", "starts_with", "ends_with", "eq", "position", "split_once"];

/// Types a refusal or failure is said by, with the field that holds its code.
const SAID_BY: [(&str, &str); 5] = [
    ("Refusal", "code"),
    ("Trouble", "code"),
    ("Verdict", "code"),
    ("Outcome", "code"),
    ("BriefingLine", "subject"),
];

/// A function or table of a file with tests.
#[derive(Default)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) test: bool,
    pub(super) names: BTreeSet<String>,
    /// Texts that stand where something is compared with them.
    pub(super) expected: BTreeSet<String>,
    /// Texts that stand where a refusal is made of them.
    pub(super) made: BTreeSet<String>,
    /// The functions and methods it calls.
    pub(super) called: BTreeSet<String>,
    /// The types of which it makes variants, other than to compare with them.
    pub(super) types: BTreeSet<String>,
}

impl Part {
    pub(super) fn looks(&self) -> bool {
        LOOKS.iter().any(|word| self.names.contains(*word))
    }

    fn compares(&self) -> bool {
        self.looks() || COMPARES.iter().any(|word| self.names.contains(*word))
    }
}

/// A function as it was found, before it is known which functions take a code.
struct Found {
    part: Part,
    parameters: Vec<String>,
    body: Option<syn::Block>,
    value: Option<Expr>,
}

/// Which parameter of a function is the code of what it makes, by its name.
type Takes = BTreeMap<String, usize>;

/// A source with tests: where it lies, what it says, and whether all of it is tests.
pub(super) struct Text {
    pub(super) place: String,
    pub(super) text: String,
    pub(super) all_tests: bool,
}

impl Text {
    pub(super) fn read(file: &Path) -> Self {
        let place = file.strip_prefix(tree::root()).unwrap().display().to_string();
        Self { place, text: std::fs::read_to_string(file).unwrap(), all_tests: sources::is_test(file) }
    }
}

/// The parts of the sources of one crate, by place.
pub(super) fn parts(files: Vec<Text>) -> Vec<(String, Vec<Part>)> {
    let found: Vec<(String, Vec<Found>)> = files
        .into_iter()
        .map(|Text { place, text, all_tests }| {
            let mut finding = Finding { found: Vec::new(), in_tests: all_tests };
            finding.visit_file(&syn::parse_file(&text).unwrap());
            (place, finding.found)
        })
        .collect();
    let everywhere = takes(&found);
    let asserting = found.iter().flat_map(|(_, found)| found).map(|found| found.part.name.clone());
    let asserting: BTreeSet<String> = asserting.filter(|name| name.starts_with("assert")).collect();
    found.into_iter().map(|(place, found)| (place, read(found, &everywhere, &asserting))).collect()
}

fn read(found: Vec<Found>, everywhere: &Takes, asserting: &BTreeSet<String>) -> Vec<Part> {
    let takes = seen_from(&found, everywhere);
    let comparing = found.iter().filter(|found| found.part.compares()).map(|found| found.part.name.clone());
    let looking: BTreeSet<String> = comparing.chain(asserting.iter().cloned()).collect();
    let one = |Found { part, body, value, .. }: Found| {
        let mut walk = Walk { part, takes: &takes, looking: &looking, stands: Stands::Free };
        match (body, value) {
            (Some(body), _) => walk.visit_block(&body),
            (None, Some(value)) => walk.visit_expr(&value),
            (None, None) => {}
        }
        walk.part
    };
    found.into_iter().map(one).collect()
}

/// Functions whose parameter becomes the code of a refusal, also through one another.
fn takes(files: &[(String, Vec<Found>)]) -> Takes {
    let mut takes = Takes::new();
    for _ in 0..3 {
        for (_, file) in files {
            takes.extend(own(file, &seen_from(file, &takes)));
        }
    }
    takes
}

/// What a file sees: of two functions of one name, its own.
fn seen_from(file: &[Found], everywhere: &Takes) -> Takes {
    let here = |name: &String| file.iter().any(|found| found.part.name == *name);
    let mut seen: Takes =
        everywhere.iter().filter(|(name, _)| !here(name)).map(|(name, at)| (name.clone(), *at)).collect();
    for _ in 0..3 {
        let own = own(file, &seen);
        seen.extend(own);
    }
    seen
}

/// Those of this file.
fn own(file: &[Found], seen: &Takes) -> Takes {
    let mut own = Takes::new();
    for found in file {
        let Some(body) = &found.body else { continue };
        let mut codes = Codes { takes: seen, named: BTreeSet::new() };
        codes.visit_block(body);
        if let Some(at) = found.parameters.iter().position(|name| codes.named.contains(name)) {
            own.insert(found.part.name.clone(), at);
        }
    }
    own
}

struct Codes<'a> {
    takes: &'a Takes,
    named: BTreeSet<String>,
}

impl Codes<'_> {
    fn name(&mut self, expr: &Expr) {
        self.named.extend(said::words_of(expr.to_token_stream()).1);
    }
}

impl<'ast> Visit<'ast> for Codes<'_> {
    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let Some(code) = code_of_call(call, self.takes) {
            self.name(code);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_struct(&mut self, made: &'ast syn::ExprStruct) {
        if let Some(code) = code_of_struct(made) {
            self.name(code);
        }
        visit::visit_expr_struct(self, made);
    }
}

fn code_of_call<'a>(call: &'a syn::ExprCall, takes: &Takes) -> Option<&'a Expr> {
    let Expr::Path(path) = &*call.func else { return None };
    let mut names = path.path.segments.iter().rev().map(|segment| segment.ident.to_string());
    let (name, of) = (names.next()?, names.next());
    if name == "new" && of.as_deref() == Some("Refusal") {
        return call.args.first();
    }
    takes.get(&name).and_then(|at| call.args.iter().nth(*at))
}

fn code_of_struct(made: &syn::ExprStruct) -> Option<&Expr> {
    let name = made.path.segments.last()?.ident.to_string();
    let (_, code) = SAID_BY.iter().find(|(of, _)| *of == name)?;
    made.fields.iter().find_map(|field| match &field.member {
        Member::Named(own) if own == code => Some(&field.expr),
        Member::Named(_) | Member::Unnamed(_) => None,
    })
}

struct Finding {
    found: Vec<Found>,
    in_tests: bool,
}

impl Finding {
    fn add(&mut self, name: &syn::Ident, test: bool, tokens: TokenStream) -> Option<&mut Found> {
        if !test && !self.in_tests {
            return None;
        }
        let names = said::words_of(tokens).1;
        let part = Part { name: name.to_string(), test, names, ..Part::default() };
        self.found.push(Found { part, parameters: Vec::new(), body: None, value: None });
        self.found.last_mut()
    }

    fn function(&mut self, sig: &syn::Signature, attributes: &[syn::Attribute], body: &syn::Block) {
        let test =
            attributes.iter().any(|of| of.path().segments.last().is_some_and(|last| last.ident == "test"));
        if let Some(found) = self.add(&sig.ident, test, body.to_token_stream()) {
            found.parameters = sources::parameters(sig);
            found.body = Some(body.clone());
        }
    }
}

impl<'ast> Visit<'ast> for Finding {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let before = self.in_tests;
        self.in_tests |= item.ident == "tests";
        visit::visit_item_mod(self, item);
        self.in_tests = before;
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.attrs, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, &item.attrs, &item.block);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        if let Some(found) = self.add(&item.ident, false, item.expr.to_token_stream()) {
            found.value = Some((*item.expr).clone());
        }
    }
}

/// Where an expression stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stands {
    /// In no call's arguments.
    Free,
    /// In what is compared, or wrapped for it.
    Compared,
    /// In the arguments of something that says nothing of refusals.
    Aside,
    /// Where the code of a refusal is made.
    Code,
}

struct Walk<'a> {
    part: Part,
    takes: &'a Takes,
    looking: &'a BTreeSet<String>,
    stands: Stands,
}

impl Walk<'_> {
    fn at(&mut self, stands: Stands, walk: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.stands, stands);
        walk(self);
        self.stands = before;
    }

    fn argument(&mut self, of: &str, argument: &Expr) {
        const WRAPS: [&str; 6] = ["Some", "Ok", "Err", "Box", "to_owned", "from"];
        let stands = if WRAPS.contains(&of) {
            self.stands
        } else if COMPARES.contains(&of) || LOOKS.contains(&of) || self.looking.contains(of) {
            Stands::Compared
        } else {
            Stands::Aside
        };
        self.at(stands, |walk| walk.visit_expr(argument));
    }

    fn variant(&mut self, path: &syn::Path, is_struct: bool) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let (of, variant) = match &names[..] {
            [.., of, variant] => (of.as_str(), variant),
            // A struct is its own only variant.
            [variant] if is_struct => (variant.as_str(), variant),
            _ => return,
        };
        let upper = |name: &str| name.starts_with(|first: char| first.is_ascii_uppercase());
        if upper(of) && upper(variant) && self.stands != Stands::Compared {
            self.part.types.insert(of.to_owned());
        }
    }

    fn exprs(&mut self, exprs: Vec<Expr>, stands: Stands) {
        for expr in &exprs {
            self.at(stands, |walk| walk.visit_expr(expr));
        }
    }
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_lit_str(&mut self, text: &'ast syn::LitStr) {
        match self.stands {
            Stands::Free | Stands::Compared => drop(self.part.expected.insert(text.value())),
            Stands::Code => drop(self.part.made.insert(text.value())),
            Stands::Aside => {}
        }
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        let Expr::Path(path) = &*call.func else { return visit::visit_expr_call(self, call) };
        let name = path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
        self.variant(&path.path, false);
        self.part.called.insert(name.clone());
        let code = code_of_call(call, self.takes);
        // As in `golden::check`.
        let looks = path.path.segments.iter().find(|of| LOOKS.contains(&of.ident.to_string().as_str()));
        let name = looks.map_or(name, |of| of.ident.to_string());
        for argument in &call.args {
            if code.is_some_and(|code| std::ptr::eq(code, argument)) {
                self.at(Stands::Code, |walk| walk.visit_expr(argument));
            } else {
                self.argument(&name, argument);
            }
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let name = call.method.to_string();
        // What a method is called on is something of its own, whatever is compared in the end.
        let receiver = if self.stands == Stands::Code { Stands::Code } else { Stands::Free };
        self.at(receiver, |walk| walk.visit_expr(&call.receiver));
        self.part.called.insert(name.clone());
        let at = self.takes.get(&name);
        for (number, argument) in call.args.iter().enumerate() {
            match at {
                Some(at) if *at == number => self.at(Stands::Code, |walk| walk.visit_expr(argument)),
                _ if matches!(argument, Expr::Closure(_)) => {
                    self.at(Stands::Free, |walk| walk.visit_expr(argument));
                }
                _ => self.argument(&name, argument),
            }
        }
    }

    fn visit_expr_struct(&mut self, made: &'ast syn::ExprStruct) {
        self.variant(&made.path, true);
        let code = code_of_struct(made);
        for field in &made.fields {
            let is_code =
                code.is_some_and(|code| std::ptr::eq(code, &field.expr)) && self.stands != Stands::Compared;
            let stands = if is_code { Stands::Code } else { self.stands };
            self.at(stands, |walk| walk.visit_expr(&field.expr));
        }
        if let Some(rest) = &made.rest {
            self.visit_expr(rest);
        }
    }

    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        self.variant(&path.path, false);
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        let compares = matches!(binary.op, syn::BinOp::Eq(_) | syn::BinOp::Ne(_));
        let stands = if compares { Stands::Compared } else { self.stands };
        for side in [&binary.left, &binary.right] {
            self.at(stands, |walk| walk.visit_expr(side));
        }
    }

    fn visit_expr_index(&mut self, index: &'ast syn::ExprIndex) {
        self.visit_expr(&index.expr);
        self.at(Stands::Aside, |walk| walk.visit_expr(&index.index));
    }

    fn visit_macro(&mut self, of: &'ast syn::Macro) {
        let name = of.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
        let exprs = of.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated);
        match exprs {
            Ok(exprs) => {
                let exprs: Vec<Expr> = exprs.into_iter().collect();
                match name.as_str() {
                    "assert_eq" | "assert_ne" => self.exprs(exprs, Stands::Compared),
                    "format" | "println" | "panic" => self.exprs(exprs, Stands::Aside),
                    "assert" => self.exprs(exprs.into_iter().take(1).collect(), Stands::Free),
                    _ => self.exprs(exprs, self.stands),
                }
            }
            // A pattern, or a form of its own: what it has in quotes is compared.
            Err(_) => {
                let (quoted, names) = said::words_of(of.tokens.clone());
                self.part.called.extend(names);
                if self.stands != Stands::Aside {
                    self.part.expected.extend(quoted);
                }
            }
        }
    }
}
