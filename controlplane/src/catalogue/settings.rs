//! Settings: a module's defaults, what groups and nodes give it, and which value counts.

use std::collections::BTreeMap;

use tenure_protocol::id::NodeId;
use tenure_protocol::refusal::Refusal;
use tenure_protocol::text::shown;
use toml::de::DeValue;
use toml::{Spanned, Value};

use super::fleet::{Assignment, Fleet};
use super::mistake::{Mistake, did_you_mean};
use super::module::Module;
use super::place::Source;
use super::reader::{Field, Fields, wrong};

/// The values given to one module, each with where it stands.
pub(super) type Given = BTreeMap<String, Spanned<Value>>;

/// The name by which templates know the node; no setting may have it.
pub(super) const NODE: &str = "node";

/// Reads the fields of a table of settings.
pub(super) fn read(fields: &Fields<'_, '_>) -> Result<Given, Refusal> {
    let mut given = Given::new();
    for Field { name, at, value } in fields.all() {
        if name == NODE {
            return Err(Mistake::ReservedSetting.at(fields.source, at));
        }
        let plain = plain(fields.source, name, value)?;
        given.insert(name.to_owned(), Spanned::new(at..value.span().end, plain));
    }
    Ok(given)
}

/// Refuses a value for a setting that the module does not have. `source` is where the values stand.
pub(super) fn check(source: Source<'_>, module: &Module<'_>, given: &Given) -> Result<(), Refusal> {
    for (name, value) in given {
        if !module.settings.contains_key(name) {
            let hint = did_you_mean(name, module.settings.keys().map(String::as_str));
            let mistake =
                Mistake::UnknownSetting { module: module.name.clone(), given: shown(name, 80), hint };
            return Err(mistake.at(source, value.span().start));
        }
    }
    Ok(())
}

/// The values that count for `module` on `node`: its own, else its groups', else the default. Two groups that
/// give different values are refused unless the node gives its own.
pub(super) fn effective(
    fleet: &Fleet<'_>,
    node: &NodeId,
    assignment: &Assignment,
    module: &Module<'_>,
) -> Result<BTreeMap<String, Value>, Refusal> {
    let own = assignment.settings.get(&module.name);
    let mut values = BTreeMap::new();
    for (name, default) in &module.settings {
        let value = match own.and_then(|own| own.get(name)) {
            Some(own) => own.get_ref(),
            None => from_groups(fleet, node, assignment, module, name)?.unwrap_or(default.get_ref()),
        };
        values.insert(name.clone(), value.clone());
    }
    Ok(values)
}

fn from_groups<'a>(
    fleet: &'a Fleet<'_>,
    node: &NodeId,
    assignment: &'a Assignment,
    module: &Module<'_>,
    name: &str,
) -> Result<Option<&'a Value>, Refusal> {
    let mut first: Option<(&str, &Value)> = None;
    for (group, given) in fleet.groups_of(assignment) {
        let Some(value) = given.settings.get(&module.name).and_then(|given| given.get(name)) else {
            continue;
        };
        match first {
            Some((one, earlier)) if earlier != value.get_ref() => {
                let mistake = Mistake::GroupsDisagree {
                    node: node.clone(),
                    module: module.name.clone(),
                    setting: shown(name, 80),
                    one: shown(one, 80),
                    other: shown(group, 80),
                };
                return Err(mistake.at(fleet.source, value.span().start));
            }
            Some(_) => {}
            None => first = Some((group, value.get_ref())),
        }
    }
    Ok(first.map(|(_, value)| value))
}

/// The value without places. Numbers that do not fit 64 bits, and dates, are refused: a template could not tell
/// them from what was written.
fn plain(source: Source<'_>, name: &str, value: &Spanned<DeValue<'_>>) -> Result<Value, Refusal> {
    let refused = |wanted| wrong(source, name, wanted, value.span(), value.get_ref());
    Ok(match value.get_ref() {
        DeValue::String(text) => Value::String(text.as_ref().to_owned()),
        DeValue::Boolean(flag) => Value::Boolean(*flag),
        DeValue::Integer(number) => Value::Integer(
            i64::from_str_radix(number.as_str(), number.radix())
                .map_err(|_| refused("a number of at most 64 bits"))?,
        ),
        DeValue::Float(number) => {
            let number: f64 = number.as_str().parse().map_err(|_| refused("a number"))?;
            Value::Float(Some(number).filter(|n| n.is_finite()).ok_or_else(|| refused("a finite number"))?)
        }
        DeValue::Datetime(_) => return Err(refused("a string, number, list or table")),
        DeValue::Array(items) => {
            Value::Array(items.iter().map(|item| plain(source, name, item)).collect::<Result<_, _>>()?)
        }
        DeValue::Table(fields) => {
            let mut table = toml::Table::new();
            for (key, value) in fields {
                table.insert(key.get_ref().as_ref().to_owned(), plain(source, key.get_ref(), value)?);
            }
            Value::Table(table)
        }
    })
}
