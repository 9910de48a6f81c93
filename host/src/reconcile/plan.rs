//! What is to be done with each resource: records × declaration × what was seen. Pure.

use std::collections::{HashMap, HashSet};

use tenure_protocol::declaration::{Declaration, Entry};
use tenure_protocol::id::Millis;
use tenure_protocol::outcome::Origin;
use tenure_protocol::path::DeclaredPath;
use tenure_protocol::resource::{Resource, ResourceKey, ResourceKind, Spec};

use super::hold;
use crate::resource::{Seen, Trouble};
use crate::store::{Record, State};

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It is as declared. If it is not recorded as it is now, this is the record.
    Keep(Option<Record>),
    /// It is to be changed.
    Change(Change),
    /// It is kept as found.
    Hold(String),
    /// It cannot or must not be done.
    Stop(Trouble),
}

/// A change to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The origin its record will have: the first one stays.
    pub origin: Origin,
    /// What was there before our first change.
    pub earlier: State,
    /// In what it differs from what is declared.
    pub differs: Vec<String>,
    /// What somebody else changed since we recorded it, if anybody did.
    pub drift: Option<String>,
}

/// What was seen, and in what that differs from what is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// What is there.
    pub seen: Seen,
    /// The differences; the error says why it can never be as declared as it stands.
    pub differs: Result<Vec<String>, Trouble>,
}

/// Decides about one resource. `keeps_found`: see [`hold::keeps_found`].
pub fn decide(
    resource: &Resource,
    record: Option<&Record>,
    sight: &Result<Sight, Trouble>,
    keeps_found: bool,
    now: Millis,
) -> Decision {
    let Sight { seen, differs } = match sight {
        Ok(sight) => sight,
        Err(trouble) => return Decision::Stop(trouble.clone()),
    };
    if hold::is_held(keeps_found, record.is_some(), seen) {
        return Decision::Hold(hold::reason(seen));
    }
    match differs {
        Err(trouble) => Decision::Stop(trouble.clone()),
        Ok(differs) if differs.is_empty() => Decision::Keep(keep(resource, record, seen, now)),
        Ok(differs) => change(record, seen, differs),
    }
}

/// The record of what is as declared, where there is none or it says something else.
fn keep(resource: &Resource, record: Option<&Record>, seen: &Seen, now: Millis) -> Option<Record> {
    if let Seen::Unit(_) = seen {
        // What its record says is known when its turn has come.
        return None;
    }
    let module = resource.module.as_str();
    match (record, seen.state()) {
        (None, None | Some(State::Absent | State::Package { version: None })) => None,
        (None, Some(state)) => Some(Record {
            key: resource.key.text(),
            module: module.to_owned(),
            origin: Origin::AlreadyThere,
            earlier: state.clone(),
            applied: state,
            recorded_at: now,
        }),
        (Some(record), state) => {
            // What was not read says nothing against what was recorded of it.
            let read = state.filter(|state| !matches!(state, State::Unread { .. }));
            let applied = read.unwrap_or_else(|| record.applied.clone());
            let same = record.applied == applied;
            let recorded_at = if same { record.recorded_at } else { now };
            (!same || record.module != module).then(|| Record {
                module: module.to_owned(),
                applied,
                recorded_at,
                ..record.clone()
            })
        }
    }
}

fn change(record: Option<&Record>, seen: &Seen, differs: &[String]) -> Decision {
    let differs = differs.to_vec();
    Decision::Change(match record {
        Some(record) => Change {
            origin: record.origin,
            earlier: record.earlier.clone(),
            differs,
            drift: drift(&record.applied, seen),
        },
        None => Change {
            // A unit is never ours to make: its file is.
            origin: match seen {
                Seen::Nothing | Seen::Package { version: None, .. } => Origin::Created,
                _ => Origin::Changed,
            },
            earlier: seen.state().unwrap_or(State::Absent),
            differs,
            drift: None,
        },
    })
}

/// What is not as we left it, in words; none when it is.
pub fn drift(applied: &State, seen: &Seen) -> Option<String> {
    let mut words = Vec::new();
    let mut standing = |mode: u32, uid: u32, gid: u32, stat: &crate::walk::read::Stat| {
        if mode != stat.mode {
            words.push(format!("its mode was changed from {mode:04o} to {:04o}", stat.mode));
        }
        if uid != stat.uid {
            words.push(format!("its owner was changed from {uid} to {}", stat.uid));
        }
        if gid != stat.gid {
            words.push(format!("its group was changed from {gid} to {}", stat.gid));
        }
    };
    match (applied, seen) {
        (State::Absent, Seen::Nothing) => {}
        (State::Absent, _) => words.push("it came back".to_owned()),
        (State::File { .. } | State::Unread { .. } | State::Directory { .. }, Seen::Nothing) => {
            words.push("it was removed".to_owned())
        }
        (State::Unread { mode, uid, gid, size }, Seen::File { stat, .. }) => {
            standing(*mode, *uid, *gid, stat);
            if *size != stat.size {
                words.insert(0, "its content was changed".to_owned());
            }
        }
        (State::File { mode, uid, gid, size, sha256: ours }, Seen::File { stat, sha256 }) => {
            standing(*mode, *uid, *gid, stat);
            if *size != stat.size || sha256.is_some_and(|found| found != *ours) {
                words.insert(0, "its content was changed".to_owned());
            }
        }
        (State::Directory { mode, uid, gid }, Seen::Directory(stat)) => standing(*mode, *uid, *gid, stat),
        (State::Package { version: ours }, Seen::Package { version, .. }) => {
            words.extend(version_drift(ours.as_deref(), version.as_deref()));
        }
        (State::Unit { enabled, running, masked, .. }, Seen::Unit(shown)) => {
            let now = |ours: Option<bool>, is: bool, yes: &str, no: &str| {
                ours.filter(|ours| *ours != is).map(|_| format!("it was {}", if is { yes } else { no }))
            };
            words.extend(now(*enabled, shown.is_enabled(), "enabled", "disabled"));
            words.extend(now(*running, shown.is_up(), "started", "stopped"));
            words.extend((*masked && shown.masked().is_none()).then(|| "it was unmasked".to_owned()));
        }
        (
            State::File { .. }
            | State::Unread { .. }
            | State::Directory { .. }
            | State::Package { .. }
            | State::Unit { .. },
            _,
        ) => words.push("it was replaced by something else".to_owned()),
    }
    (!words.is_empty()).then(|| words.join(", "))
}

fn version_drift(ours: Option<&str>, now: Option<&str>) -> Option<String> {
    match (ours, now) {
        (Some(ours), Some(now)) if ours != now => {
            Some(format!("its version was changed from {ours} to {now}"))
        }
        (Some(_), None) => Some("it was removed".to_owned()),
        (None, Some(now)) => Some(format!("it was installed, at {now}")),
        (Some(_), Some(_)) | (None, None) => None,
    }
}

/// Whether what is there must be read to decide. What is written once is the machine's, unless it is not yet ours.
pub fn needs_reading(spec: &Spec, is_ours: bool) -> bool {
    match spec {
        Spec::File(file) => !is_ours || !file.present.as_ref().is_some_and(|present| present.create_once),
        Spec::Package(_) | Spec::Directory(_) | Spec::Unit(_) => false,
    }
}

/// The order in which entries are worked on: the declaration's own, save that among directories that nothing orders a
/// parent comes before what lies in it, that a directory that is to be gone comes last, after what lay in it, and that
/// packages come as early as their needs let them, together: one transaction costs as much as twenty.
pub fn arrange(declaration: &Declaration) -> Vec<usize> {
    let entries = &declaration.entries;
    let mut needed = HashSet::new();
    for resource in declaration.resources() {
        needed.extend(resource.needs.iter());
    }
    let free = |at: &usize| entries.get(*at).and_then(|entry| directory(entry, &needed));
    let (mut gone, mut order): (Vec<usize>, Vec<usize>) =
        declaration.order().iter().copied().partition(|at| free(at).is_some_and(|(_, absent)| absent));
    let path = |at: &usize| free(at).and_then(|(key, _)| key.path().cloned());
    for run in order.chunk_by_mut(|a, b| free(a).is_some() && free(b).is_some()) {
        if run.len() > 1 {
            run.sort_by_cached_key(path);
        }
    }
    gone.sort_by_cached_key(|at| std::cmp::Reverse(path(at)));
    order.append(&mut gone);
    packages_first(entries, &mut order);
    order
}

/// Moves packages and what they need to the front, in as few runs of packages as edges permit.
fn packages_first(entries: &[Entry], order: &mut [usize]) {
    let resource = |at: usize| match entries.get(at) {
        Some(Entry::Known(resource)) => Some(resource),
        Some(Entry::Unsupported(_)) | None => None,
    };
    let is_package = |resource: &Resource| matches!(resource.spec, Spec::Package(_));
    let keys = order.iter().filter_map(|at| resource(*at)).map(|resource| &resource.key);
    let directories: HashMap<&str, &ResourceKey> =
        keys.filter(|key| key.kind() == ResourceKind::Directory).map(|key| (key.name(), key)).collect();
    let mut early: HashSet<&ResourceKey> = HashSet::new();
    for resource in order.iter().rev().filter_map(|at| resource(*at)) {
        if is_package(resource) || early.contains(&resource.key) {
            early.insert(&resource.key);
            early.extend(resource.needs.iter().chain(resource.spec.follows()));
            let path = resource.key.path().map(DeclaredPath::as_str).unwrap_or_default();
            let above = path.match_indices('/').filter_map(|(end, _)| directories.get(path.get(..end)?));
            early.extend(above);
        }
    }
    if early.is_empty() {
        return;
    }
    // How many runs of packages come before each; what is no package comes before the packages of its run.
    let mut runs: HashMap<&ResourceKey, (usize, bool)> = HashMap::new();
    for resource in order.iter().filter_map(|at| resource(*at)).filter(|r| early.contains(&r.key)) {
        let before = resource.needs.iter().chain(resource.spec.follows()).filter_map(|need| runs.get(need));
        let run = before.map(|(run, package)| run + usize::from(*package)).max().unwrap_or(0);
        runs.insert(&resource.key, (run, is_package(resource)));
    }
    order.sort_by_key(|at| {
        resource(*at).and_then(|r| runs.get(&r.key)).copied().unwrap_or((usize::MAX, true))
    });
}

/// The key of a directory that no edge orders, and whether it is to be gone.
fn directory<'a>(entry: &'a Entry, needed: &HashSet<&ResourceKey>) -> Option<(&'a ResourceKey, bool)> {
    match entry {
        Entry::Known(resource) if resource.needs.is_empty() && !needed.contains(&resource.key) => {
            match &resource.spec {
                Spec::Directory(spec) => Some((&resource.key, spec.present.is_none())),
                Spec::Package(_) | Spec::File(_) | Spec::Unit(_) => None,
            }
        }
        Entry::Known(_) | Entry::Unsupported(_) => None,
    }
}

#[cfg(test)]
mod tests;
