//! Reads one TOML table strictly: each field by name and type, and nothing that is not known.
//!
//! It keeps where everything stands, so that what is found wrong later still names its line.

use std::ops::Range;

use tenure_protocol::refusal::Refusal;
use tenure_protocol::text::shown;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::mistake::{Mistake, did_you_mean};
use super::place::Source;

/// One table of a file, with the name it has in messages.
#[derive(Clone, Copy)]
pub(super) struct Fields<'t, 'f> {
    pub(super) source: Source<'f>,
    pub(super) at: usize,
    table: &'t DeTable<'f>,
    inside: &'static str,
}

/// A field: its name and where that stands, and its value.
pub(super) struct Field<'t, 'f> {
    pub(super) name: &'t str,
    pub(super) at: usize,
    pub(super) value: &'t Spanned<DeValue<'f>>,
}

/// The words for what a value should be; they stand in messages.
const TEXT: &str = "a string";
const TRUTH: &str = "true or false, or a string that becomes one of them";
const LIST: &str = "a list of strings";
const TABLE: &str = "a table";

/// Parses a whole file.
pub(super) fn parse(source: Source<'_>) -> Result<Spanned<DeTable<'_>>, Refusal> {
    DeTable::parse(source.text).map_err(|error| {
        let at = error.span().map_or(source.text.len(), |span| span.start);
        Mistake::MalformedToml(shown(error.message(), 300)).at(source, at)
    })
}

impl<'t, 'f> Fields<'t, 'f> {
    /// The top level of a file.
    pub(super) fn top(source: Source<'f>, table: &'t Spanned<DeTable<'f>>, inside: &'static str) -> Self {
        Self { source, at: 0, table: table.get_ref(), inside }
    }

    /// `value` as a table that is called `inside`.
    pub(super) fn of(
        source: Source<'f>,
        name: &str,
        value: &'t Spanned<DeValue<'f>>,
        inside: &'static str,
    ) -> Result<Self, Refusal> {
        match value.get_ref() {
            DeValue::Table(table) => Ok(Self { source, at: value.span().start, table, inside }),
            other => Err(wrong(source, name, TABLE, value.span(), other)),
        }
    }

    /// Every field, in the order of the file.
    pub(super) fn all(&self) -> Vec<Field<'t, 'f>> {
        let mut all: Vec<_> = self
            .table
            .iter()
            .map(|(name, value)| Field { name: name.get_ref(), at: name.span().start, value })
            .collect();
        all.sort_by_key(|field| field.at);
        all
    }

    /// Refuses the first field that is not among `known`.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), Refusal> {
        match self.all().into_iter().find(|field| !known.contains(&field.name)) {
            None => Ok(()),
            Some(field) => {
                let hint = did_you_mean(field.name, known.iter().copied());
                let given = shown(field.name, 80);
                Err(Mistake::UnknownField { given, inside: self.inside, hint }.at(self.source, field.at))
            }
        }
    }

    /// A string.
    pub(super) fn text(&self, name: &'static str) -> Result<Option<Spanned<String>>, Refusal> {
        self.table.get(name).map(|value| text(self.source, name, value)).transpose()
    }

    /// A string that must be there.
    pub(super) fn required(&self, name: &'static str) -> Result<Spanned<String>, Refusal> {
        let missing = || Mistake::MissingField { name, inside: self.inside }.at(self.source, self.at);
        self.text(name)?.ok_or_else(missing)
    }

    /// True or false; false where it is left out.
    pub(super) fn flag(&self, name: &'static str) -> Result<bool, Refusal> {
        match self.table.get(name).map(|value| (value.get_ref(), value.span())) {
            None => Ok(false),
            Some((DeValue::Boolean(flag), _)) => Ok(*flag),
            Some((other, span)) => Err(wrong(self.source, name, "true or false", span, other)),
        }
    }

    /// True or false, or a string that becomes one of them; as a string in either case.
    pub(super) fn truth(&self, name: &'static str) -> Result<Option<Spanned<String>>, Refusal> {
        let Some(value) = self.table.get(name) else { return Ok(None) };
        let text = match value.get_ref() {
            DeValue::Boolean(flag) => flag.to_string(),
            DeValue::String(string) => string.as_ref().to_owned(),
            other => return Err(wrong(self.source, name, TRUTH, value.span(), other)),
        };
        Ok(Some(Spanned::new(value.span(), text)))
    }

    /// A list of strings, none twice; empty where it is left out.
    pub(super) fn list(&self, name: &'static str) -> Result<Vec<Spanned<String>>, Refusal> {
        let Some(value) = self.table.get(name) else { return Ok(Vec::new()) };
        let DeValue::Array(array) = value.get_ref() else {
            return Err(wrong(self.source, name, LIST, value.span(), value.get_ref()));
        };
        let mut list: Vec<Spanned<String>> = Vec::with_capacity(array.len());
        let mut seen = std::collections::HashSet::with_capacity(array.len());
        for item in array {
            let DeValue::String(string) = item.get_ref() else {
                return Err(wrong(self.source, name, LIST, item.span(), item.get_ref()));
            };
            if !seen.insert(string.as_ref()) {
                return Err(Mistake::ListedTwice(shown(string, 80)).at(self.source, item.span().start));
            }
            list.push(Spanned::new(item.span(), string.as_ref().to_owned()));
        }
        Ok(list)
    }

    /// A table; none where it is left out.
    pub(super) fn table(&self, name: &'static str, inside: &'static str) -> Result<Option<Self>, Refusal> {
        self.table.get(name).map(|value| Self::of(self.source, name, value, inside)).transpose()
    }

    /// A list of tables, written `[[name]]`; empty where it is left out.
    pub(super) fn tables(&self, name: &'static str, inside: &'static str) -> Result<Vec<Self>, Refusal> {
        let Some(value) = self.table.get(name) else { return Ok(Vec::new()) };
        match value.get_ref() {
            DeValue::Array(array) => {
                array.iter().map(|item| Self::of(self.source, name, item, inside)).collect()
            }
            other => Err(wrong(self.source, name, "a list of tables, as in [[file]]", value.span(), other)),
        }
    }

    /// Whether the field is there, and where.
    pub(super) fn place_of(&self, name: &str) -> Option<usize> {
        self.all().into_iter().find(|field| field.name == name).map(|field| field.at)
    }
}

fn text(source: Source<'_>, name: &str, value: &Spanned<DeValue<'_>>) -> Result<Spanned<String>, Refusal> {
    match value.get_ref() {
        DeValue::String(string) => Ok(Spanned::new(value.span(), string.as_ref().to_owned())),
        other => Err(wrong(source, name, TEXT, value.span(), other)),
    }
}

/// The refusal of a value that is of another type than its field.
pub(super) fn wrong(
    source: Source<'_>,
    name: &str,
    wanted: &'static str,
    span: Range<usize>,
    given: &DeValue<'_>,
) -> Refusal {
    let given = match given {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    Mistake::WrongType { name: shown(name, 80), wanted, given }.at(source, span.start)
}
