//! One resource whose turn has come: what is to be done with it, what its record will say, and what is told of it. It
//! changes nothing itself.

use tenure_protocol::id::Millis;
use tenure_protocol::outcome::Outcome;
use tenure_protocol::resource::{Resource, Spec};

use super::book::Verdict;
use super::plan::Change;
use crate::resource::remark::{CONFIGURATION_KEPT, SCRIPT_FAILED};
use crate::resource::{Kind, Prepared, Remark, Seen, Site, Trouble};
use crate::store::{Record, State};

/// It was put in place, and when it was looked at again it was something else.
pub(super) const NOT_AS_WRITTEN: &str = "not_as_written";

/// One resource whose turn has come.
pub(super) struct Item<'a> {
    pub(super) resource: &'a Resource,
    pub(super) act: Act<'a>,
}

/// What is to be done with it.
pub(super) enum Act<'a> {
    /// It is as declared, and only the record is missing.
    Record(Record),
    /// It is to be changed.
    Change { seen: Seen, change: Change, temporary: String },
    /// It is a unit, and what is to be done is decided now. `due`: something was to be done when the pass began.
    Unit { record: Option<&'a Record>, due: bool },
}

impl Item<'_> {
    pub(super) const fn changes(&self) -> bool {
        matches!(self.act, Act::Change { .. } | Act::Unit { due: true, .. })
    }

    pub(super) fn drift(&self) -> Option<&str> {
        match &self.act {
            Act::Change { change, .. } => change.drift.as_deref(),
            Act::Record(_) | Act::Unit { .. } => None,
        }
    }

    pub(super) fn prepare(&self, site: &Site<'_>) -> Result<Option<Prepared>, Trouble> {
        match &self.act {
            Act::Record(_) | Act::Unit { .. } => Ok(None),
            Act::Change { seen, temporary, .. } => {
                site.prepare(&self.resource.spec, seen, temporary).map(Some)
            }
        }
    }

    /// Observes it again; only what matches earns a record.
    pub(super) fn verify(&self, site: &Site<'_>, now: Millis) -> Result<Record, Trouble> {
        let (seen_before, change) = match &self.act {
            Act::Record(record) => return Ok(record.clone()),
            Act::Unit { .. } => {
                return Err(Trouble::failed("could_not_look", "a unit is looked at otherwise"));
            }
            Act::Change { seen, change, .. } => (seen, change),
        };
        let spec = &self.resource.spec;
        let seen = site.observe(spec, true)?;
        let differs = site.differences(spec, &seen)?;
        let applied = match (seen.state(), differs.is_empty()) {
            (Some(state), true) => applied(spec, state, seen_before),
            (_, false) | (None, _) => {
                let reason = format!("it was changed, and looked at again {}", differs.join(", "));
                return Err(Trouble::failed(NOT_AS_WRITTEN, reason));
            }
        };
        Ok(self.record(change, applied, now))
    }

    /// The record of what was put in place and is not as it was written any more: it says what was written, so that the
    /// next pass knows the thing for ours and the rest for drift.
    pub(super) fn altered(&self, site: &Site<'_>, now: Millis) -> Option<Record> {
        let Act::Change { change, .. } = &self.act else { return None };
        Some(self.record(change, site.written(&self.resource.spec)?, now))
    }

    pub(super) fn record(&self, change: &Change, applied: State, now: Millis) -> Record {
        Record {
            key: self.resource.key.text(),
            module: self.resource.module.as_str().to_owned(),
            origin: change.origin,
            earlier: change.earlier.clone(),
            applied,
            recorded_at: now,
        }
    }

    pub(super) fn verdict(&self, note: Option<Remark>, sets_owner: bool) -> Verdict {
        let Act::Change { change, .. } = &self.act else { return Verdict::plain(Outcome::Unchanged) };
        let gone = self.resource.spec.is_absent();
        let outcome = if gone { Outcome::Removed } else { Outcome::Applied };
        let unowned = (!sets_owner && !gone && self.resource.key.path().is_some())
            .then(|| "owner and group are not set in a sandbox".to_owned());
        let drift = change.drift.as_ref().map(|drift| format!("repaired: {drift}"));
        let code = match (&drift, note.as_ref().map(|note| note.kind)) {
            (_, Some(Kind::ScriptFailed)) => Some(SCRIPT_FAILED),
            (Some(_), _) => Some("drift"),
            (None, Some(Kind::ConfigurationKept)) => Some(CONFIGURATION_KEPT),
            (None, Some(Kind::CarriedOver)) => Some("carried_over"),
            (None, Some(Kind::OtherNames)) => Some("other_names"),
            (None, None) => unowned.is_some().then_some("sandbox"),
        };
        let note = note.map(|note| note.reason);
        let reason: Vec<String> = [drift, note, unowned].into_iter().flatten().collect();
        Verdict { outcome, code, reason: (!reason.is_empty()).then(|| reason.join("; ")) }
    }
}

/// What is written once keeps in its record what *we* wrote, not what the machine made of it since: only the former may
/// ever be removed.
fn applied(spec: &Spec, state: State, before: &Seen) -> State {
    let create_once = match spec {
        Spec::File(file) => file.present.as_ref().filter(|present| present.create_once),
        Spec::Package(_) | Spec::Directory(_) | Spec::Unit(_) => None,
    };
    match (create_once, state, before) {
        (
            Some(present),
            State::File { mode, uid, gid, .. } | State::Unread { mode, uid, gid, .. },
            Seen::File { .. },
        ) => {
            let (size, sha256) = (present.content.size, present.content.sha256);
            State::File { mode, uid, gid, size, sha256 }
        }
        (_, state, _) => state,
    }
}
