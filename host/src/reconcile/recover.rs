//! After a pass that was cut short: what it had begun is looked at. Where its wanted state is there, it is recorded as
//! ours with the origin that was noted; what a tool was at is ours with what it got done; what was written beside is
//! removed; the rest is planned again (H-09). Where nobody can look, the intent stays, and its turn is the next pass's:
//! a later look of this one would take what we brought for what was found.

use std::collections::{BTreeMap, HashMap};

use tenure_actors::database::DatabaseError;
use tenure_protocol::event::DRIFT_REPAIRED;
use tenure_protocol::id::{Digest, Millis};
use tenure_protocol::outcome::Origin;
use tenure_protocol::resource::{ResourceKey, Spec, UnitSpec};

use super::apply::Engine;
use crate::resource::unit::{Mask, Until};
use crate::resource::{Seen, Site, Stands, Trouble};
use crate::store::{Intent, Record, State, Store, Wanted};

/// What of an intent was found to be so.
struct Worked {
    record: Record,
    /// It is again as it was recorded before: somebody else had changed it.
    repaired: bool,
}

/// What was begun and nobody could look at.
pub(super) struct Unseen {
    pub(super) trouble: Trouble,
    /// What was wanted of it then.
    wanted: Option<Spec>,
}

impl Unseen {
    /// Whether a look at what is wanted now is to wait for the next pass: what stands in the way will pass, or it is the
    /// same look. Another one may be possible where this one never will be.
    pub(super) fn holds_back(&self, wanted: &Spec) -> bool {
        self.trouble.stands == Stands::Outstanding || self.wanted.as_ref() == Some(wanted)
    }
}

/// A repair is told, though what was wrong is not noted any more.
const REPAIRED: &str = "it was not as it was left, and was put right just before the host was started anew";

/// Brings `records` up to what really is ours, and the store with them. Returns the keys of which that is not known, and
/// why, where nobody could look.
pub(super) fn recover(
    engine: &mut Engine<'_>,
    records: &mut HashMap<String, Record>,
) -> Result<HashMap<String, Option<Unseen>>, DatabaseError> {
    engine.reread_what_was_left(engine.store.has_unread_units()?);
    let intents = engine.store.intents()?;
    if intents.is_empty() {
        return Ok(HashMap::new());
    }
    let (mut ours, mut events, mut unsettled) = (Vec::new(), Vec::new(), HashMap::new());
    let is_package = |intent: &Intent| matches!(intent.wanted, Wanted::Package(_));
    // What still runs may bring what is not there yet, also where nobody declares it any more.
    let goes_on = intents.iter().any(is_package) && engine.site.tools.packages_in_doubt();
    for intent in &intents {
        let known = records.get(&intent.key);
        let worked = intent.key.parse::<ResourceKey>().ok().map(|key| {
            clear(&engine.site, &key, &intent.temporary);
            worked(&engine.site, intent, known, engine.book.now)
        });
        match worked {
            Some(Ok(Some(Worked { record, repaired }))) => {
                let drift = intent.drift.as_deref().or(repaired.then_some(REPAIRED));
                events.extend(drift.map(|drift| engine.book.event(DRIFT_REPAIRED, &record.key, drift)));
                ours.push(record);
            }
            Some(Ok(None)) if goes_on && is_package(intent) => {
                drop(unsettled.insert(intent.key.clone(), None))
            }
            Some(Ok(None)) => {}
            Some(Err(trouble)) => {
                let unseen = Unseen { trouble, wanted: spec(&intent.wanted) };
                drop(unsettled.insert(intent.key.clone(), Some(unseen)));
            }
            // A newer host noted it.
            None => drop(unsettled.insert(intent.key.clone(), None)),
        }
    }
    records.extend(ours.iter().map(|record| (record.key.clone(), record.clone())));
    engine.store.record(ours, Vec::new(), events.clone())?;
    engine.book.events.extend(events);
    Ok(unsettled)
}

/// The same for a preview, which changes nothing: brings `records` up to what [`recover`] would find to be ours. Answers
/// whether anything was begun and not ended.
pub(super) fn foresee(
    site: &Site<'_>,
    store: &Store,
    records: &mut HashMap<String, Record>,
    now: Millis,
) -> Result<bool, DatabaseError> {
    let intents = store.intents()?;
    for intent in &intents {
        let known = records.get(&intent.key);
        if intent.key.parse::<ResourceKey>().is_ok()
            && let Ok(Some(Worked { record, .. })) = worked(site, intent, known, now)
        {
            records.insert(record.key.clone(), record);
        }
    }
    Ok(!intents.is_empty())
}

fn clear(site: &Site<'_>, key: &ResourceKey, temporary: &str) {
    let Some(path) = key.path().filter(|_| !temporary.is_empty()) else { return };
    let Ok((dir, _)) = site.walker.parent(path) else { return };
    match dir.clear_temporary(temporary) {
        Ok(true) => tracing::info!(%key, temporary, "removed what an interrupted pass left"),
        Ok(false) => {}
        Err(errno) => tracing::warn!(%key, temporary, %errno, "an interrupted pass left something behind"),
    }
}

fn worked(
    site: &Site<'_>,
    intent: &Intent,
    known: Option<&Record>,
    now: Millis,
) -> Result<Option<Worked>, Trouble> {
    // Its record is still there, and it leaves again.
    let Some(spec) = spec(&intent.wanted) else { return Ok(None) };
    let seen = site.observe(&spec, true)?;
    let is_there = site.differences(&spec, &seen).is_ok_and(|differs| differs.is_empty());
    let applied = match (&intent.wanted, known) {
        (Wanted::Restarted { spec, began, on }, Some(_)) => restarted(spec, *began, on, &seen),
        (Wanted::Restarted { spec, began, on }, None) => {
            restarted(spec, *began, on, &seen).or_else(|| unit(spec, intent, None, &seen, is_there))
        }
        (Wanted::Unit(spec), _) => unit(spec, intent, known, &seen, is_there),
        (_, _) if is_there => seen.state(),
        (_, Some(_)) => None,
        (_, None) => begun(intent, &seen),
    };
    Ok(applied.map(|applied| Worked {
        repaired: known.is_some_and(|known| known.applied == applied),
        record: record(intent, known, applied, now),
    }))
}

/// None: it was to go.
fn spec(wanted: &Wanted) -> Option<Spec> {
    Some(match wanted {
        Wanted::Package(spec) => Spec::Package(spec.clone()),
        Wanted::Unit(spec) | Wanted::Restarted { spec, .. } => Spec::Unit(spec.clone()),
        Wanted::File(spec) => Spec::File(spec.clone()),
        Wanted::Directory(spec) => Spec::Directory(spec.clone()),
        Wanted::Gone => return None,
    })
}

/// How a unit began, and what it was before us, its first record knows; an intent of a later change does not.
fn record(intent: &Intent, known: Option<&Record>, applied: State, now: Millis) -> Record {
    match known {
        Some(known) if intent.key.starts_with("unit:") => {
            let recorded_at = if known.applied == applied { known.recorded_at } else { now };
            Record { applied, recorded_at, ..known.clone() }
        }
        Some(_) | None => Record {
            key: intent.key.clone(),
            module: intent.module.clone(),
            origin: intent.origin,
            earlier: intent.earlier.clone(),
            applied,
            recorded_at: now,
        },
    }
}

/// A unit that is ours is repaired, or its turn comes again. Of one that is not yet ours, what was brought about of it
/// is, though it be half of what was wanted: else it would be taken for how the unit was before us.
fn unit(
    spec: &UnitSpec,
    intent: &Intent,
    known: Option<&Record>,
    seen: &Seen,
    is_there: bool,
) -> Option<State> {
    let state = declared_only(seen.state()?, spec);
    let masked_now = masked_since(spec, intent, seen);
    match known {
        Some(known) if masked_now => Some(known.applied.clone().masked_by_us(mask(seen))),
        // What it restarts on, and whether its mask is ours, is in its record already.
        Some(known) => {
            let state = state.following_as(&known.applied);
            (is_there && state == known.applied).then_some(state)
        }
        None if masked_now => Some(state.masked_by_us(mask(seen))),
        None => (is_there || state != declared_only(intent.earlier.clone(), spec)).then_some(state),
    }
}

/// Whether it was masked since its intent was noted, which was to be: by us.
fn masked_since(spec: &UnitSpec, intent: &Intent, seen: &Seen) -> bool {
    let before = matches!(intent.earlier, State::Unit { masked: true, .. });
    let masked = matches!(seen, Seen::Unit(shown) if shown.masked() == Some(Until::Undone));
    spec.masked == Some(true) && masked && !before
}

fn mask(seen: &Seen) -> Option<Mask> {
    match seen {
        Seen::Unit(shown) => shown.mask,
        Seen::Nothing
        | Seen::File { .. }
        | Seen::Directory(_)
        | Seen::Link { .. }
        | Seen::Other { .. }
        | Seen::Package { .. } => None,
    }
}

/// A unit that was about to be restarted and runs anew since, with what lay there when it was noted.
fn restarted(spec: &UnitSpec, began: u64, on: &BTreeMap<String, Digest>, seen: &Seen) -> Option<State> {
    let Seen::Unit(shown) = seen else { return None };
    let runs_anew = shown.is_up() && shown.began != began && spec.running != Some(false);
    Some(declared_only(seen.state()?, spec).following(on.clone())).filter(|_| runs_anew)
}

/// A package that was brought and is not whole is ours all the same: it goes when it leaves the declaration.
fn begun(intent: &Intent, seen: &Seen) -> Option<State> {
    match seen {
        Seen::Package { version, unfinished: Some(_), .. } if intent.origin == Origin::Created => {
            Some(State::Package { version: version.clone() })
        }
        _ => None,
    }
}

/// Of a unit only what is declared is kept, and what it restarts on is not known to have been there when it began.
fn declared_only(state: State, spec: &UnitSpec) -> State {
    match state {
        State::Unit { enabled, running, masked: _, mask: _, on } => State::Unit {
            enabled: enabled.filter(|_| spec.enabled.is_some()),
            running: running.filter(|_| spec.running.is_some()),
            masked: false,
            mask: None,
            on,
        },
        state => state,
    }
}
