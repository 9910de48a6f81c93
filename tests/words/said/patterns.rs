//! Patterns of a match, as far as it takes to lay the arms of one beside those of another.

use std::collections::{BTreeMap, BTreeSet};

use quote::ToTokens as _;
use syn::{Member, Pat};

/// A pattern.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pattern {
    /// Anything; by its name where it has one.
    Any(Option<String>),
    /// A variant, and what is asked of its fields.
    Variant(String, BTreeMap<String, Pattern>),
    /// One value.
    Value(String),
}

impl Pattern {
    /// Every alternative of a pattern of the source.
    pub fn all(pat: &Pat) -> Vec<Self> {
        match pat {
            Pat::Or(or) => or.cases.iter().flat_map(Self::all).collect(),
            Pat::Paren(inner) => Self::all(&inner.pat),
            Pat::Reference(inner) => Self::all(&inner.pat),
            Pat::Ident(ident) => vec![Self::Any(Some(ident.ident.to_string()))],
            Pat::Path(path) => vec![Self::Variant(last(&path.path), BTreeMap::new())],
            Pat::TupleStruct(of) => {
                let fields = of.elems.iter().enumerate().map(|(at, pat)| (at.to_string(), pat));
                product(&last(&of.path), fields.filter(|(_, pat)| !matches!(pat, Pat::Rest(_))))
            }
            Pat::Struct(of) => {
                let fields = of.fields.iter().map(|field| match &field.member {
                    Member::Named(name) => (name.to_string(), &*field.pat),
                    Member::Unnamed(at) => (at.index.to_string(), &*field.pat),
                });
                product(&last(&of.path), fields)
            }
            Pat::Lit(lit) => vec![Self::Value(lit.to_token_stream().to_string())],
            _ => vec![Self::Any(None)],
        }
    }

    /// What fits both; none: nothing does.
    pub fn both(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Any(None), more) | (more, Self::Any(_)) => Some(more.clone()),
            (Self::Any(Some(_)), more) => Some(more.clone()),
            (Self::Value(one), Self::Value(two)) => (one == two).then(|| self.clone()),
            (Self::Variant(one, fields), Self::Variant(two, others)) if one == two => {
                let mut both = fields.clone();
                for (name, pattern) in others {
                    let narrowed = match both.get(name) {
                        Some(own) => own.both(pattern)?,
                        None => pattern.clone(),
                    };
                    both.insert(name.clone(), narrowed);
                }
                Some(Self::Variant(one.clone(), both))
            }
            (Self::Variant(..) | Self::Value(_), Self::Variant(..) | Self::Value(_)) => None,
        }
    }

    /// Whether everything that fits `other` fits this.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any(_), _) => true,
            (Self::Value(one), Self::Value(two)) => one == two,
            (Self::Variant(one, fields), Self::Variant(two, others)) => {
                one == two
                    && fields.iter().all(|(name, pattern)| {
                        matches!(pattern, Self::Any(_))
                            || others.get(name).is_some_and(|other| pattern.covers(other))
                    })
            }
            (Self::Variant(..) | Self::Value(_), _) => false,
        }
    }

    /// The same with `inner` where something is called `name`.
    pub fn with(&self, name: &str, inner: &Self) -> Self {
        match self {
            Self::Any(Some(own)) if own == name => inner.clone(),
            Self::Variant(variant, fields) => {
                let fields = fields.iter().map(|(field, pattern)| (field.clone(), pattern.with(name, inner)));
                Self::Variant(variant.clone(), fields.collect())
            }
            Self::Any(_) | Self::Value(_) => self.clone(),
        }
    }
}

impl Pattern {
    /// The same where what is reckoned as `subject` fits `inner`. It is asked of the variant that binds one of `names`;
    /// of the whole where none does.
    pub fn reckoned(&self, subject: &str, names: &BTreeSet<String>, inner: &Self) -> Self {
        self.reckoned_inside(subject, names, inner).unwrap_or_else(|| self.asked(subject, inner))
    }

    fn reckoned_inside(&self, subject: &str, names: &BTreeSet<String>, inner: &Self) -> Option<Self> {
        let Self::Variant(variant, fields) = self else { return None };
        let binds = |field: &Self| matches!(field, Self::Any(Some(name)) if names.contains(name));
        if fields.values().any(binds) {
            return Some(self.asked(subject, inner));
        }
        fields.iter().find_map(|(name, field)| {
            let field = field.reckoned_inside(subject, names, inner)?;
            let mut fields = fields.clone();
            fields.insert(name.clone(), field);
            Some(Self::Variant(variant.clone(), fields))
        })
    }

    fn asked(&self, subject: &str, inner: &Self) -> Self {
        let mut asked = self.clone();
        if let Self::Variant(_, fields) = &mut asked {
            fields.insert(subject.to_owned(), inner.clone());
        }
        asked
    }

    /// Whether it asks for one half of what is or is not.
    pub fn is_half(&self) -> bool {
        match self {
            Self::Any(_) => false,
            Self::Value(value) => value == "true" || value == "false",
            Self::Variant(name, fields) => {
                name == "Some" || name == "None" || fields.values().any(Self::is_half)
            }
        }
    }
}

fn last(path: &syn::Path) -> String {
    path.segments.last().unwrap().ident.to_string()
}

fn product<'a>(name: &str, fields: impl Iterator<Item = (String, &'a Pat)>) -> Vec<Pattern> {
    let mut all = vec![BTreeMap::new()];
    for (field, pat) in fields {
        let alternatives = Pattern::all(pat);
        let beside = |known: &BTreeMap<String, Pattern>, pattern: &Pattern| {
            let mut known = known.clone();
            known.insert(field.clone(), pattern.clone());
            known
        };
        all = all
            .iter()
            .flat_map(|known| alternatives.iter().map(|pattern| beside(known, pattern)).collect::<Vec<_>>())
            .collect();
    }
    all.into_iter().map(|fields| Pattern::Variant(name.to_owned(), fields)).collect()
}
