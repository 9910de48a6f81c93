//! What units restart and reload on: whether it was changed since a unit last began to run with it. Pure.

use std::collections::{BTreeMap, HashMap};

use tenure_protocol::declaration::Declaration;
use tenure_protocol::id::{Digest, Millis};
use tenure_protocol::outcome::Origin;
use tenure_protocol::resource::{ResourceKey, UnitSpec};
use tenure_protocol::wire::codec::encode;

use crate::resource::unit::Fired;
use crate::store::{Record, State};

/// Everything that some unit follows, as it stands by record.
#[derive(Debug, Default)]
pub(super) struct Triggers {
    marks: HashMap<String, Mark>,
}

#[derive(Debug)]
struct Mark {
    /// Of what was read back after our last change.
    digest: Digest,
    /// When we changed it, if we ever did.
    made_at: Option<Millis>,
    /// It was changed in this very pass.
    now: bool,
}

impl Mark {
    fn of(record: Option<&Record>) -> Self {
        let digest = Digest::of(&record.map(|record| encode(&record.applied)).unwrap_or_default());
        let made = record.filter(|one| one.origin != Origin::AlreadyThere || one.applied != one.earlier);
        Self { digest, made_at: made.map(|record| record.recorded_at), now: false }
    }
}

impl Triggers {
    /// As it stands when a pass begins.
    pub(super) fn new(declaration: &Declaration, records: &HashMap<String, Record>) -> Self {
        let followed = declaration.resources().flat_map(|resource| resource.spec.follows());
        let mark = |key: &ResourceKey| (key.text(), Mark::of(records.get(&key.text())));
        Self { marks: followed.map(mark).collect() }
    }

    /// This was recorded.
    pub(super) fn recorded(&mut self, record: &Record) {
        if let Some(mark) = self.marks.get_mut(&record.key) {
            *mark = Mark { now: mark.now, ..Mark::of(Some(record)) };
        }
    }

    /// This was changed just now.
    pub(super) fn changed(&mut self, key: &str) {
        if let Some(mark) = self.marks.get_mut(key) {
            mark.now = true;
        }
    }

    /// What a unit follows, as it stands now: what its record keeps when it has (re)started with it.
    pub(super) fn on(&self, spec: &UnitSpec) -> BTreeMap<String, Digest> {
        let keys = spec.restart_on.iter().chain(&spec.reload_on).map(ToString::to_string);
        keys.filter_map(|key| Some((key.clone(), self.marks.get(&key)?.digest))).collect()
    }

    /// Whether a unit that began to run at `began` (none: nobody knows) must begin anew, and for which change.
    pub(super) fn fired<'s>(
        &self,
        spec: &'s UnitSpec,
        record: Option<&Record>,
        began: Option<Millis>,
    ) -> (Fired, Option<&'s ResourceKey>) {
        let fires = |key: &&ResourceKey| self.fires(&key.to_string(), record, began);
        match (spec.restart_on.iter().find(fires), spec.reload_on.iter().find(fires)) {
            (Some(key), _) => (Fired::Restart, Some(key)),
            (None, Some(key)) => (Fired::Reload, Some(key)),
            (None, None) => (Fired::Nothing, None),
        }
    }

    fn fires(&self, key: &str, record: Option<&Record>, began: Option<Millis>) -> bool {
        let Some(mark) = self.marks.get(key) else { return false };
        let after = |moment: Option<Millis>| mark.made_at.is_some_and(|made| moment.is_none_or(|m| made > m));
        let known = record.and_then(|record| match &record.applied {
            State::Unit { on, .. } => on.get(key),
            State::Absent
            | State::File { .. }
            | State::Unread { .. }
            | State::Directory { .. }
            | State::Package { .. } => None,
        });
        // The last two are for a pass that was cut short between the change and the restart.
        mark.now
            || match (known, record) {
                (Some(known), Some(record)) => {
                    *known != mark.digest || after(Some(record.recorded_at)) && after(began)
                }
                (None, _) | (_, None) => after(began),
            }
    }
}

#[cfg(test)]
mod tests;
