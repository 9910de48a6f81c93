//! Functions that match, as the ways that lead through them: the arms of one, and inside these the arms of what is
//! matched or called there.

use std::collections::BTreeSet;

use proc_macro2::TokenTree;
use quote::ToTokens as _;
use syn::{Expr, Stmt};

use super::patterns::Pattern;
use super::sources;
use super::texts::{END, Reading, bindings};

/// One way through a function that matches.
#[derive(Clone)]
pub struct Arm {
    pub pattern: Pattern,
    says: Says,
    guarded: bool,
}

/// Where it leads.
#[derive(Clone)]
enum Says {
    /// To something said.
    This(Box<Expr>),
    /// To a match inside, whose patterns are those of the whole way.
    Inside(Vec<Arm>),
}

impl Arm {
    fn any(says: Expr) -> Vec<Self> {
        vec![Self { pattern: Pattern::Any(None), says: Says::This(Box::new(says)), guarded: false }]
    }

    /// The same where it is reached through `pattern`, by what `subject` is there.
    fn reached_through(&self, pattern: &Pattern, subject: &Expr) -> Self {
        let says = match &self.says {
            Says::This(says) => Says::This(says.clone()),
            Says::Inside(arms) => {
                Says::Inside(arms.iter().map(|arm| arm.reached_through(pattern, subject)).collect())
            }
        };
        Self { pattern: narrowed(pattern, subject, &self.pattern), says, guarded: self.guarded }
    }
}

/// `pattern` where `subject` fits `inner`: a name it binds, else something reckoned from one, as `self.cause()`.
fn narrowed(pattern: &Pattern, subject: &Expr, inner: &Pattern) -> Pattern {
    let (subject, mut names) = (bare(subject), BTreeSet::new());
    sources::tokens(subject.to_token_stream(), &mut |token| {
        if let TokenTree::Ident(name) = token {
            names.insert(name.to_string());
        }
    });
    match &subject {
        Expr::Path(path) if path.path.get_ident().is_some() => {
            pattern.with(&path.path.require_ident().unwrap().to_string(), inner)
        }
        _ => pattern.reckoned(&subject.to_token_stream().to_string(), &names, inner),
    }
}

/// Without what only borrows or looks through a reference.
fn bare(expr: &Expr) -> Expr {
    match expr {
        Expr::Unary(inner) if matches!(inner.op, syn::UnOp::Deref(_)) => bare(&inner.expr),
        Expr::Reference(inner) => bare(&inner.expr),
        other => other.clone(),
    }
}

/// The arms that what fits `pattern` goes through, and what of it goes there.
pub fn laid_beside(pattern: &Pattern, arms: &[Arm]) -> Vec<(Pattern, Expr)> {
    let (mut beside, mut halves) = (Vec::new(), 0);
    for (at, arm) in arms.iter().enumerate() {
        // What is and what is not leave nothing over.
        if halves == 2 {
            break;
        }
        let Some(both) = pattern.both(&arm.pattern) else { continue };
        halves += usize::from(arm.pattern.is_half() && !arm.guarded);
        let taken = |what: &Pattern| arms[..at].iter().any(|arm| !arm.guarded && arm.pattern.covers(what));
        let through = match &arm.says {
            Says::This(says) => vec![(both, (**says).clone())],
            Says::Inside(inner) => laid_beside(&both, inner),
        };
        beside.extend(through.into_iter().filter(|(what, _)| !taken(what)));
        if arm.pattern.covers(pattern) && !arm.guarded {
            break;
        }
    }
    beside
}

/// The value of a block: its last expression, or what was bound to it.
pub fn tail(block: &syn::Block) -> Expr {
    let Some(Stmt::Expr(last, None)) = block.stmts.last() else { panic!("a block without a value") };
    let bound = bindings(block, END);
    match stripped(last) {
        Expr::Path(path) => {
            let name = path.path.segments.last().unwrap().ident.to_string();
            bound.get(&name).cloned().unwrap_or(Expr::Path(path))
        }
        other => other,
    }
}

/// Without what only turns borrowed text into owned text.
fn stripped(expr: &Expr) -> Expr {
    match expr {
        Expr::MethodCall(call) if call.method == "to_owned" => stripped(&call.receiver),
        Expr::Paren(inner) => stripped(&inner.expr),
        Expr::Block(block) if block.block.stmts.len() == 1 || ends_in_a_match(&block.block) => {
            tail(&block.block)
        }
        other => other.clone(),
    }
}

fn ends_in_a_match(block: &syn::Block) -> bool {
    matches!(block.stmts.last(), Some(Stmt::Expr(Expr::Match(_), None)))
}

/// The arms of a value that is a match on `subject`, with those of the functions it calls on a part of it.
pub fn arms(reading: &Reading<'_>, value: &Expr, subject: &str) -> Vec<Arm> {
    match stripped(value) {
        Expr::Match(of) => arms_of(reading, &of),
        Expr::Call(call) => match called(reading, &call) {
            Some((inner, parameter)) if argument(&call).as_deref() == Some(subject) => {
                arms(reading, &inner, &parameter)
            }
            _ => Arm::any(Expr::Call(call)),
        },
        says => Arm::any(says),
    }
}

fn arms_of(reading: &Reading<'_>, of: &syn::ExprMatch) -> Vec<Arm> {
    of.arms
        .iter()
        .flat_map(|arm| {
            let guarded = arm.guard.is_some();
            Pattern::all(&arm.pat)
                .into_iter()
                .map(move |pattern| inlined(reading, pattern, &arm.body, guarded))
        })
        .collect()
}

/// An arm; where it matches once more, or calls a function on what its pattern binds, those arms inside the pattern.
fn inlined(reading: &Reading<'_>, pattern: Pattern, body: &Expr, guarded: bool) -> Arm {
    let inside = match stripped(body) {
        Expr::Match(of) => Some(((*of.expr).clone(), arms_of(reading, &of))),
        Expr::Call(call) => called(reading, &call).and_then(|(inner, parameter)| {
            let given = call.args.first()?.clone();
            let matches = matches!(stripped(&inner), Expr::Match(_)) || argument(&call).is_some();
            matches.then(|| (given, arms(reading, &inner, &parameter)))
        }),
        _ => None,
    };
    let says = match inside {
        Some((subject, arms)) => {
            Says::Inside(arms.iter().map(|arm| arm.reached_through(&pattern, &subject)).collect())
        }
        None => Says::This(Box::new(stripped(body))),
    };
    Arm { pattern, says, guarded }
}

/// The value of the function of this file that is called, and its parameter.
fn called(reading: &Reading<'_>, call: &syn::ExprCall) -> Option<(Expr, String)> {
    let Expr::Path(path) = &*call.func else { return None };
    let name = path.path.get_ident()?;
    let function = reading.source.functions.iter().find(|f| f.of.is_none() && name == f.name.as_str())?;
    Some((tail(&function.body), function.parameters.first()?.clone()))
}

fn argument(call: &syn::ExprCall) -> Option<String> {
    match call.args.first()? {
        Expr::Path(path) => Some(path.path.get_ident()?.to_string()),
        _ => None,
    }
}
