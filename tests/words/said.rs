//! Everything that is refused, fails or waits, as the sources say it: code, what happened, what it means, what to do.
//! It is read out of the sources whole; a way to say something that is not understood here stops the tests, so that
//! nothing is said that the list does not have.

mod arms;
mod explains;
mod patterns;
pub mod sources;
mod texts;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use proc_macro2::{LineColumn, TokenTree};
use quote::ToTokens as _;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Expr, Member, Pat, Stmt};

use sources::{Function, Source};
use texts::{Reading, Scope, bindings, is_hole};

/// One thing that can be said.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Said {
    pub code: String,
    pub happened: String,
    /// Empty for what is said of one resource: its reason is one sentence.
    pub means: String,
    pub remedy: String,
    pub place: String,
}

impl Said {
    /// Whether it is a refusal, with all three sentences.
    pub fn is_whole(&self) -> bool {
        !self.means.is_empty() || !self.remedy.is_empty()
    }
}

/// Which function says a code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sayer {
    pub place: String,
    pub name: String,
    /// It gives what is said, whatever it is given: it has no way to say nothing.
    pub always: bool,
}

/// Which codes each function says.
pub type Sayers = BTreeMap<Sayer, BTreeSet<String>>;

/// All of them.
pub fn all() -> &'static BTreeSet<Said> {
    &read().0
}

/// Who says them, of what is said on the spot.
pub fn sayers() -> &'static Sayers {
    &read().1
}

fn read() -> &'static (BTreeSet<Said>, Sayers) {
    static READ: OnceLock<(BTreeSet<Said>, Sayers)> = OnceLock::new();
    READ.get_or_init(|| {
        let sources = sources::all();
        let (mut said, mut sayers) = (BTreeSet::new(), Sayers::new());
        for source in &sources {
            let reading = Reading { source, all: &sources };
            for explain in &source.explains {
                said.extend(explains::rows(&reading, explain));
            }
            for function in &source.functions {
                for site in sites(function) {
                    let rows = Site { reading: Reading { source, all: &sources }, function, site }.rows(0);
                    for (row, sayer) in rows {
                        sayers.entry(sayer).or_default().insert(row.code.clone());
                        said.insert(row);
                    }
                }
            }
        }
        (said, sayers)
    })
}

fn sayer(source: &Source, function: &Function) -> Sayer {
    const SAID_BY: [&str; 6] = ["Refusal", "Trouble", "Verdict", "Ended", "BriefingLine", "Self"];
    let gives = function.returns.trim_start_matches("->").trim();
    let always = SAID_BY.contains(&gives) || gives.starts_with("(&");
    Sayer { place: source.place.clone(), name: function.name.clone(), always }
}

/// The types that are errors.
pub fn errors() -> BTreeSet<String> {
    let name = |item: &syn::Item| match item {
        syn::Item::Enum(item) => item.ident.to_string(),
        syn::Item::Struct(item) => item.ident.to_string(),
        other => panic!("no error: {}", other.to_token_stream()),
    };
    let all = sources::all();
    let explained = all.iter().flat_map(|source| &source.explains).map(|of| sources::name_of(&of.self_ty));
    all.iter().flat_map(|source| &source.errors).map(name).chain(explained).collect()
}

/// The codes there are.
pub fn codes() -> BTreeSet<String> {
    all().iter().map(|said| said.code.clone()).collect()
}

/// One for each way to say the four.
fn each_of(
    codes: &[String],
    happened: &[String],
    means: &[String],
    remedies: &[String],
    source: &Source,
) -> Vec<Said> {
    let mut rows = Vec::new();
    for code in codes {
        for happened in happened {
            for means in means {
                for remedy in remedies {
                    rows.push(Said {
                        code: code.clone(),
                        happened: happened.clone(),
                        means: means.clone(),
                        remedy: remedy.clone(),
                        place: source.place.clone(),
                    });
                }
            }
        }
    }
    rows
}

/// What a place in a function says: code, what happened, and where it is a refusal the other two.
#[derive(Clone)]
struct Spoken {
    place: LineColumn,
    code: Expr,
    happened: Expr,
    others: Option<(Expr, Expr)>,
}

struct Site<'a> {
    reading: Reading<'a>,
    function: &'a Function,
    site: Spoken,
}

impl Site<'_> {
    /// What it says, and which function. Where the code is given by whoever calls the function, what each caller makes it
    /// say.
    fn rows(&self, depth: usize) -> Vec<(Said, Sayer)> {
        let mut rows = Vec::new();
        for bound in forks(&self.function.body, self.site.place) {
            rows.extend(self.rows_with(&Scope { given: Default::default(), bound }));
        }
        let given = |said: &Said| is_hole(&said.code);
        let (open, told): (Vec<Said>, Vec<Said>) = rows.into_iter().partition(given);
        let own = sayer(self.reading.source, self.function);
        let mut told: Vec<(Said, Sayer)> = told.into_iter().map(|said| (said, own.clone())).collect();
        if open.is_empty() {
            return told;
        }
        let code = open[0].code.trim_matches(['{', '}']).to_owned();
        let place = format!("{}: {}", self.reading.source.place, self.function.name);
        if !self.function.parameters.contains(&code) {
            let handed_on =
                is_handed_on(&code) || self.function.name == "from" || taken_apart(self.function, &code);
            assert!(handed_on, "{place}: what is the code of {open:?}?");
            return told;
        }
        assert!(depth < 4, "{place} calls itself");
        let callers = self.callers();
        assert!(!callers.is_empty(), "{place}: nobody says what `{code}` is");
        for (source, caller, call) in callers {
            let reading = Reading { source, all: self.reading.all };
            let bound = bindings(&caller.body, call.place);
            let scope = Scope { given: Default::default(), bound };
            let texts: Vec<Vec<String>> =
                call.arguments.iter().map(|argument| reading.texts(argument, &scope)).collect();
            let given = self.function.parameters.iter().cloned().zip(texts).collect();
            let said =
                self.rows_with(&Scope { given, bound: bindings(&self.function.body, self.site.place) });
            for mut row in said {
                row.place = source.place.clone();
                if is_hole(&row.code) {
                    told.extend(self.passed_through(source, caller, &call, depth));
                } else {
                    told.push((row, sayer(source, caller)));
                }
            }
        }
        told.sort();
        told.dedup();
        told
    }

    /// A caller that hands on a code of its own callers.
    fn passed_through(
        &self,
        source: &Source,
        caller: &Function,
        call: &Call,
        depth: usize,
    ) -> Vec<(Said, Sayer)> {
        let by_name = |expr: &Expr| {
            let name = expr.to_token_stream().to_string();
            self.function
                .parameters
                .iter()
                .position(|p| *p == name)
                .and_then(|at| call.arguments.get(at))
                .cloned()
        };
        let swap = |expr: &Expr| by_name(expr).unwrap_or_else(|| expr.clone());
        let Spoken { code, happened, others, .. } = &self.site;
        let site = Spoken {
            place: call.place,
            code: swap(code),
            happened: swap(happened),
            others: others.as_ref().map(|(means, remedy)| (swap(means), swap(remedy))),
        };
        Site { reading: Reading { source, all: self.reading.all }, function: caller, site }.rows(depth + 1)
    }

    fn rows_with(&self, scope: &Scope) -> Vec<Said> {
        let Spoken { code, happened, others, .. } = &self.site;
        let text = |expr: &Expr| self.reading.texts(expr, scope);
        let (means, remedies) = match others {
            Some((means, remedy)) => (text(means), text(remedy)),
            None => (vec![String::new()], vec![String::new()]),
        };
        each_of(&text(code), &text(happened), &means, &remedies, self.reading.source)
    }

    /// Every call of the function, with its arguments.
    fn callers(&self) -> Vec<(&Source, &Function, Call)> {
        let own = self.reading.source;
        let mut callers = Vec::new();
        for source in self.reading.all.iter().filter(|source| source.folder == own.folder) {
            let here = source.place == own.place;
            let shadowed =
                !here && source.functions.iter().any(|f| f.of.is_none() && f.name == self.function.name);
            for caller in &source.functions {
                for call in calls(caller, &self.function.name) {
                    let same = match (&self.function.of, call.of.as_deref()) {
                        (Some(own), Some("Self")) => caller.of.as_ref() == Some(own),
                        (Some(own), Some(of)) => own == of,
                        (None, Some("Self")) => false,
                        (None, of) => here || of.is_some() || !shadowed,
                        (Some(_), None) => false,
                    };
                    if same && call.arguments.len() == self.function.parameters.len() {
                        callers.push((source, caller, call));
                    }
                }
            }
        }
        callers
    }
}

/// Whether what is said here only hands on what another said: a refusal that came in, an outcome that is stored.
fn is_handed_on(code: &str) -> bool {
    const HANDED_ON: [&str; 4] = ["refusal", "kept", "trouble", "verdict"];
    code.contains('.') || code.contains('(') || HANDED_ON.contains(&code)
}

/// Whether a name is a field of what the function was given whole, as in `let Trouble { code, .. } = trouble`.
fn taken_apart(function: &Function, name: &str) -> bool {
    struct Apart<'a>(&'a str, bool);
    impl<'ast> Visit<'ast> for Apart<'_> {
        fn visit_local(&mut self, local: &'ast syn::Local) {
            if let Pat::Struct(of) = &local.pat {
                self.1 |= of
                    .fields
                    .iter()
                    .any(|field| matches!(&field.member, Member::Named(own) if own == self.0));
            }
        }
    }
    let mut apart = Apart(name, false);
    apart.visit_block(&function.body);
    apart.1
}

/// The names of a body, once for each arm of a match that binds several at once.
fn forks(body: &syn::Block, place: LineColumn) -> Vec<std::collections::BTreeMap<String, Expr>> {
    let plain = bindings(body, place);
    for statement in &body.stmts {
        let Stmt::Local(local) = statement else { continue };
        let (Pat::Tuple(names), Some(init)) = (&local.pat, &local.init) else { continue };
        let Expr::Match(of) = &*init.expr else { continue };
        let fork = |arm: &syn::Arm| {
            let mut bound = plain.clone();
            let value = match &*arm.body {
                Expr::Block(block) => match block.block.stmts.last() {
                    Some(Stmt::Expr(last, None)) => last.clone(),
                    _ => (*arm.body).clone(),
                },
                other => other.clone(),
            };
            if let Expr::Tuple(values) = value {
                for (name, value) in names.elems.iter().zip(values.elems) {
                    bound.insert(name.to_token_stream().to_string(), value);
                }
            }
            bound
        };
        return of.arms.iter().map(fork).collect();
    }
    vec![plain]
}

/// Every place in a function that says something.
fn sites(function: &Function) -> Vec<Spoken> {
    struct Sites<'a>(Vec<Spoken>, &'a Function);
    impl<'ast> Visit<'ast> for Sites<'_> {
        fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
            if path_of(call) == (Some("Refusal".to_owned()), "new".to_owned()) {
                let [code, happened, means, remedy] = call.args.iter().collect::<Vec<_>>()[..] else {
                    panic!("a refusal of {} parts", call.args.len())
                };
                let others = Some((means.clone(), remedy.clone()));
                self.0.push(Spoken {
                    place: call.span().start(),
                    code: code.clone(),
                    happened: happened.clone(),
                    others,
                });
            }
            visit::visit_expr_call(self, call);
        }

        fn visit_expr_tuple(&mut self, tuple: &'ast syn::ExprTuple) {
            if let [code, happened] = tuple.elems.iter().collect::<Vec<_>>()[..]
                && self.1.returns.contains("& 'static str , String")
                && matches!(code, Expr::Lit(_))
            {
                let (code, happened) = (code.clone(), happened.clone());
                self.0.push(Spoken { place: tuple.span().start(), code, happened, others: None });
            }
            visit::visit_expr_tuple(self, tuple);
        }

        fn visit_expr_struct(&mut self, made: &'ast syn::ExprStruct) {
            let name = made.path.segments.last().unwrap().ident.to_string();
            let name = if name == "Self" { self.1.of.clone().unwrap_or_default() } else { name };
            let field = |wanted: &str| {
                made.fields.iter().find_map(|field| match &field.member {
                    Member::Named(name) if name == wanted => Some(field.expr.clone()),
                    _ => None,
                })
            };
            let (one, two) = match name.as_str() {
                "Trouble" | "Verdict" => ("code", "reason"),
                "BriefingLine" => ("subject", "text"),
                _ => ("", ""),
            };
            if let (Some(code), Some(happened)) = (field(one), field(two)) {
                self.0.push(Spoken {
                    place: made.span().start(),
                    code: inside(code),
                    happened: inside(happened),
                    others: None,
                });
            }
            visit::visit_expr_struct(self, made);
        }
    }
    let mut sites = Sites(Vec::new(), function);
    sites.visit_block(&function.body);
    sites.0.retain(|site| site.code.to_token_stream().to_string() != "None");
    sites.0
}

/// What stands in `Some(…)`.
fn inside(expr: Expr) -> Expr {
    match &expr {
        Expr::Call(call) if path_of(call).1 == "Some" && call.args.len() == 1 => call.args[0].clone(),
        _ => expr,
    }
}

/// A call of a function.
struct Call {
    /// The type or module before its name.
    of: Option<String>,
    arguments: Vec<Expr>,
    place: LineColumn,
}

fn calls(function: &Function, name: &str) -> Vec<Call> {
    struct Calls<'a>(Vec<Call>, &'a str);
    impl<'ast> Visit<'ast> for Calls<'_> {
        fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
            let (of, called) = path_of(call);
            if called == self.1 {
                let arguments = call.args.iter().cloned().collect();
                self.0.push(Call { of, arguments, place: call.span().start() });
            }
            visit::visit_expr_call(self, call);
        }
    }
    let mut calls = Calls(Vec::new(), name);
    calls.visit_block(&function.body);
    calls.0
}

fn path_of(call: &syn::ExprCall) -> (Option<String>, String) {
    let Expr::Path(path) = &*call.func else { return (None, String::new()) };
    let mut names: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    let last = names.pop().unwrap_or_default();
    (names.pop(), last)
}

/// The texts in quotes of a function, and the names it uses.
pub fn words_of(tokens: proc_macro2::TokenStream) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut quoted, mut names) = (BTreeSet::new(), BTreeSet::new());
    sources::tokens(tokens, &mut |token| match token {
        TokenTree::Literal(literal) => {
            if let Ok(text) = syn::parse2::<syn::LitStr>(literal.to_token_stream()) {
                quoted.insert(text.value());
            }
        }
        TokenTree::Ident(name) => {
            names.insert(name.to_string());
        }
        TokenTree::Group(_) | TokenTree::Punct(_) => {}
    });
    (quoted, names)
}
