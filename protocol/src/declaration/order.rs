//! In which order resources are applied: what is needed first. Only edges order; kind order breaks ties.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::{DeclarationError, Entry, Unsupported};
use crate::resource::{ResourceKey, ResourceKind};
use crate::text::shown;

/// The positions of `entries` so that every need comes before what needs it. Refuses a key that stands twice, a need that
/// is not declared, and a circle.
pub(super) fn order(entries: &[Entry]) -> Result<Vec<usize>, DeclarationError> {
    let places = places(entries)?;
    let mut waiting = vec![0_usize; entries.len()];
    let mut needed_by: Vec<Vec<usize>> = vec![Vec::new(); entries.len()];
    for (at, entry) in entries.iter().enumerate() {
        for need in needs(entry) {
            let missing = || DeclarationError::NeedMissing { key: entry.key(), needs: need.to_string() };
            let place = *places.get(&named(need)).ok_or_else(missing)?;
            needed_by[place].push(at);
            waiting[at] += 1;
        }
    }
    let mut ready: BinaryHeap<Reverse<(Option<ResourceKind>, usize)>> = (0..entries.len())
        .filter(|at| waiting[*at] == 0)
        .map(|at| Reverse((kind(&entries[at]), at)))
        .collect();
    let mut order = Vec::with_capacity(entries.len());
    while let Some(Reverse((_, at))) = ready.pop() {
        order.push(at);
        for &next in &needed_by[at] {
            waiting[next] -= 1;
            if waiting[next] == 0 {
                ready.push(Reverse((kind(&entries[next]), next)));
            }
        }
    }
    if order.len() == entries.len() { Ok(order) } else { Err(circle(entries, &waiting)) }
}

/// A key in its two parts, which is to compare it without making its text.
type Named<'e> = (&'e str, Option<&'e str>);

fn named(key: &ResourceKey) -> Named<'_> {
    (key.kind().as_str(), Some(key.name()))
}

fn name_of(entry: &Entry) -> Named<'_> {
    match entry {
        Entry::Known(resource) => named(&resource.key),
        Entry::Unsupported(Unsupported { key, .. }) => match key.split_once(':') {
            Some((kind, name)) => (kind, Some(name)),
            None => (key, None),
        },
    }
}

fn places(entries: &[Entry]) -> Result<HashMap<Named<'_>, usize>, DeclarationError> {
    let mut places = HashMap::with_capacity(entries.len());
    let mut paths = HashMap::with_capacity(entries.len());
    for (at, entry) in entries.iter().enumerate() {
        // One path is one thing: a file and a directory of the same path cannot both be.
        if let Entry::Known(resource) = entry
            && let Some(path) = resource.key.path()
            && let Some(other) = paths.insert(path, at)
            && name_of(&entries[other]) != name_of(entry)
        {
            return Err(DeclarationError::Twice(format!(
                "{path} (as {} and as {})",
                entries[other].key(),
                entry.key()
            )));
        }
        if places.insert(name_of(entry), at).is_some() {
            return Err(DeclarationError::Twice(shown(&entry.key(), 300)));
        }
    }
    Ok(places)
}

/// What comes before it: what it needs, and what it restarts or reloads on.
fn needs(entry: &Entry) -> Vec<&ResourceKey> {
    match entry {
        Entry::Known(resource) => resource.needs.iter().chain(resource.spec.follows()).collect(),
        Entry::Unsupported(_) => Vec::new(),
    }
}

fn kind(entry: &Entry) -> Option<ResourceKind> {
    match entry {
        Entry::Known(resource) => Some(resource.key.kind()),
        Entry::Unsupported(_) => None,
    }
}

/// Follows needs from any resource that never became ready until one repeats; that is a circle.
fn circle(entries: &[Entry], waiting: &[usize]) -> DeclarationError {
    let places: HashMap<Named<'_>, usize> =
        entries.iter().enumerate().map(|(at, entry)| (name_of(entry), at)).collect();
    let mut at = waiting.iter().position(|left| *left > 0).unwrap_or_default();
    let mut walked: Vec<usize> = Vec::new();
    while !walked.contains(&at) {
        walked.push(at);
        let next =
            needs(&entries[at]).iter().find_map(|need| places.get(&named(need)).filter(|p| waiting[**p] > 0));
        match next {
            Some(next) => at = *next,
            None => break,
        }
    }
    let start = walked.iter().position(|place| *place == at).unwrap_or_default();
    let names: Vec<String> = walked[start..].iter().chain([&at]).map(|place| entries[*place].key()).collect();
    DeclarationError::Circle(names.join(" → "))
}
