//! Looking at everything that is declared, before anything is changed. Nothing depends on the order, so it is done on
//! a few threads where there is much of it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use tenure_protocol::declaration::{Declaration, Entry, Header};
use tenure_protocol::resource::{Resource, ResourceKind};

use super::hold;
use super::places::Places;
use super::plan::{Sight, needs_reading};
use crate::resource::unit::Load;
use crate::resource::{Seen, Site, Trouble};
use crate::store::{Record, State};

/// Below this many, starting a thread costs more than it saves.
const WORTH_A_THREAD: usize = 512;
const MOST_THREADS: usize = 4;

/// One sight an entry, in the declaration's order; none for an entry that is not understood.
pub(super) fn survey(
    site: &Site<'_>,
    declaration: &Declaration,
    records: &HashMap<String, Record>,
    places: &Places<'_>,
    looked: &(dyn Fn(usize) + Sync),
) -> Vec<Option<Result<Sight, Trouble>>> {
    let resources: Vec<Option<&Resource>> = declaration
        .entries
        .iter()
        .map(|entry| match entry {
            Entry::Known(resource) => Some(resource),
            Entry::Unsupported(_) => None,
        })
        .collect();
    let mut sights = look(site, Some(&declaration.header), &resources, records, looked);
    places.refuse_second(&mut sights);
    sights
}

/// One sight a resource, in their order. Without `header` nothing of it is held.
pub(super) fn look(
    site: &Site<'_>,
    header: Option<&Header>,
    resources: &[Option<&Resource>],
    records: &HashMap<String, Record>,
    looked: &(dyn Fn(usize) + Sync),
) -> Vec<Option<Result<Sight, Trouble>>> {
    let is_unit = |resource: &Resource| resource.key.kind() == ResourceKind::Unit;
    let named = resources.iter().flatten().copied().filter(|resource| is_unit(resource));
    let units: Vec<&str> = named.map(|resource| resource.key.name()).collect();
    let count = AtomicUsize::new(0);
    let look = |resource: &Option<&Resource>| {
        looked(count.fetch_add(1, Ordering::Relaxed));
        if site.tools.is_cancelled() {
            return resource.map(|_| Err(Trouble::cancelled()));
        }
        resource.map(|resource| one(site, header, resource, records))
    };
    if units.is_empty() {
        return on_threads(resources, look);
    }
    // The service manager answers while the rest is looked at.
    let mut sights = std::thread::scope(|scope| {
        let glance = || site.tools.glance_at_units(&units);
        let glanced = std::thread::Builder::new().spawn_scoped(scope, glance).ok();
        let rest = |resource: &Option<&Resource>| {
            if resource.is_some_and(is_unit) { None } else { look(resource) }
        };
        let sights = on_threads(resources, rest);
        match glanced.map(std::thread::ScopedJoinHandle::join) {
            Some(Ok(())) => {}
            Some(Err(panicked)) => std::panic::resume_unwind(panicked),
            None => glance(),
        }
        sights
    });
    for (sight, resource) in sights.iter_mut().zip(resources) {
        if resource.is_some_and(is_unit) {
            *sight = look(resource);
        }
    }
    sights
}

/// One answer a resource, in their order, by a few threads where there are many.
fn on_threads<'r, T: Send>(
    resources: &[Option<&'r Resource>],
    look: impl Fn(&Option<&'r Resource>) -> Option<T> + Sync,
) -> Vec<Option<T>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    if threads == 1 || resources.len() < WORTH_A_THREAD {
        return resources.iter().map(look).collect();
    }
    let share = resources.len().div_ceil(threads);
    let look = &look;
    std::thread::scope(|scope| {
        let parts: Vec<_> = resources
            .chunks(share)
            .map(|part| (part.len(), scope.spawn(move || part.iter().map(look).collect::<Vec<_>>())))
            .collect();
        // A thread that panicked leaves its part unseen: those resources fail by name, nobody else's do.
        let sights = parts.into_iter().flat_map(|(len, part)| seen(len, part.join()));
        sights.collect()
    })
}

fn one(
    site: &Site<'_>,
    header: Option<&Header>,
    resource: &Resource,
    records: &HashMap<String, Record>,
) -> Result<Sight, Trouble> {
    let record = records.get(&resource.key.text());
    let is_ours = record.is_some();
    // What will be kept as found, whatever it is, is not read.
    let held = !is_ours && header.is_some_and(|header| hold::keeps_found(header, &resource.module));
    let deep = !held && needs_reading(&resource.spec, is_ours);
    let seen = observe(site, resource, record, deep)?;
    let differs = site.differences(&resource.spec, &seen);
    Ok(Sight { seen, differs })
}

/// What a thread saw of a part of `len`: as many, also where it panicked, so that nobody's sight becomes another's.
fn seen<T, E>(len: usize, part: Result<Vec<Option<T>>, E>) -> Vec<Option<T>> {
    part.unwrap_or_else(|_| std::iter::repeat_with(|| None).take(len).collect())
}

/// What is there, with what our record knows of it and nobody else does.
pub(super) fn observe(
    site: &Site<'_>,
    resource: &Resource,
    record: Option<&Record>,
    deep: bool,
) -> Result<Seen, Trouble> {
    let mut seen = site.observe(&resource.spec, deep)?;
    remember(&mut seen, record.map(|record| &record.applied));
    Ok(seen)
}

/// Adds to what is seen of a unit what only our record knows: that it has run, and whose mask it is.
pub(super) fn remember(seen: &mut Seen, applied: Option<&State>) {
    if let (Seen::Unit(shown), Some(State::Unit { running, masked, mask, .. })) = (seen, applied) {
        if *running == Some(true) {
            shown.has_run();
        }
        shown.masked_by_us = shown.wears(*masked, *mask);
    }
}

/// The record without a mask of ours that is there no longer, whoever took it back and whatever is there instead; none
/// where the record says that
/// already. Otherwise the next mask, which is somebody else's, would pass for ours.
pub(super) fn without_lost_mask(record: &Record, seen: &Seen) -> Option<Record> {
    let (Seen::Unit(shown), State::Unit { masked: true, mask, enabled, running, on }) =
        (seen, &record.applied)
    else {
        return None;
    };
    if shown.wears(true, *mask) || matches!(shown.load, Load::Bad(_)) {
        return None;
    }
    let (enabled, running, on) = (*enabled, *running, on.clone());
    let applied = State::Unit { enabled, running, masked: false, mask: None, on };
    Some(Record { applied, ..record.clone() })
}

/// The same of everything that was looked at.
pub(super) fn without_lost_masks(
    declaration: &Declaration,
    records: &HashMap<String, Record>,
    sights: &[Option<Result<Sight, Trouble>>],
) -> Vec<Record> {
    let lost = |(entry, sight): (&Entry, &Option<Result<Sight, Trouble>>)| match (entry, sight) {
        (Entry::Known(resource), Some(Ok(sight))) => {
            without_lost_mask(records.get(&resource.key.text())?, &sight.seen)
        }
        (Entry::Known(_) | Entry::Unsupported(_), _) => None,
    };
    declaration.entries.iter().zip(sights).filter_map(lost).collect()
}

#[cfg(test)]
mod tests {
    use super::seen;

    #[test]
    fn a_thread_that_panicked_leaves_its_part_unseen_and_every_other_sight_in_its_place() {
        let broke: Result<Vec<Option<u8>>, ()> = Err(());
        let parts = [(2, Ok(vec![Some(1), None])), (3, broke), (1, Ok(vec![Some(6)]))];
        let sights: Vec<_> = parts.into_iter().flat_map(|(len, part)| seen(len, part)).collect();
        assert_eq!(sights, [Some(1), None, None, None, None, Some(6)]);
    }
}
