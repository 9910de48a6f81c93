//! After a pass that was cut short: what it had begun is looked at. Where its wanted state is there, it is recorded as
//! ours with the origin that was noted; what it wrote beside is removed; the rest is planned again (H-09). Where nobody can
//! look, the intent stays.

use std::collections::{HashMap, HashSet};

use tenure_actors::database::DatabaseError;
use tenure_protocol::id::Millis;
use tenure_protocol::resource::{ResourceKey, Spec};

use crate::resource::{Site, Trouble};
use crate::store::{Intent, Record, State, Store, Wanted};

/// Brings `records` up to what really is ours, and the store with them. Returns the keys of which that is not known.
pub(super) fn recover(
    site: &Site<'_>,
    store: &Store,
    records: &mut HashMap<String, Record>,
    now: Millis,
) -> Result<HashSet<String>, DatabaseError> {
    let intents = store.intents()?;
    if intents.is_empty() {
        return Ok(HashSet::new());
    }
    let mut ours = Vec::new();
    let mut unsettled = HashSet::new();
    for intent in &intents {
        let worked = intent.key.parse::<ResourceKey>().ok().map(|key| {
            clear(site, &key, &intent.temporary);
            worked(site, intent, records.contains_key(&intent.key), now)
        });
        match worked {
            Some(Ok(record)) => ours.extend(record),
            // Nobody could look, or a newer host noted it.
            Some(Err(_)) | None => drop(unsettled.insert(intent.key.clone())),
        }
    }
    records.extend(ours.iter().map(|record| (record.key.clone(), record.clone())));
    store.record(ours, Vec::new(), Vec::new())?;
    Ok(unsettled)
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

fn worked(site: &Site<'_>, intent: &Intent, is_ours: bool, now: Millis) -> Result<Option<Record>, Trouble> {
    let spec = match &intent.wanted {
        Wanted::Package(spec) => Spec::Package(spec.clone()),
        // What it restarts on is in its record already.
        Wanted::Unit(_) if is_ours => return Ok(None),
        Wanted::Unit(spec) => Spec::Unit(spec.clone()),
        Wanted::File(spec) => Spec::File(spec.clone()),
        Wanted::Directory(spec) => Spec::Directory(spec.clone()),
        // Its record is still there, and it leaves again.
        Wanted::Gone => return Ok(None),
    };
    let seen = site.observe(&spec, true)?;
    let is_there = site.differences(&spec, &seen).is_ok_and(|differs| differs.is_empty());
    let Some(state) = seen.state().filter(|_| is_there) else { return Ok(None) };
    let applied = declared_only(state, &spec);
    Ok(Some(Record {
        key: intent.key.clone(),
        module: intent.module.clone(),
        origin: intent.origin,
        earlier: intent.earlier.clone(),
        applied,
        recorded_at: now,
    }))
}

/// Of a unit only what is declared is kept, and what it restarts on is not known to have been there when it began.
fn declared_only(state: State, spec: &Spec) -> State {
    match (state, spec) {
        (State::Unit { enabled, running, on }, Spec::Unit(spec)) => State::Unit {
            enabled: enabled.filter(|_| spec.enabled.is_some()),
            running: running.filter(|_| spec.running.is_some()),
            on,
        },
        (state, _) => state,
    }
}
