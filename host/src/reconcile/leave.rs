//! What leaves the declaration (H-24): only what we created is removed, by record, and only while it is what we wrote;
//! everything else is released and left as it is. Pure.

use std::collections::{HashMap, HashSet};

use tenure_protocol::declaration::{Declaration, Entry};
use tenure_protocol::outcome::Origin;
use tenure_protocol::path::DeclaredPath;
use tenure_protocol::resource::{
    DirectorySpec, FileSpec, PackageName, PackageSpec, PackageWanted, ResourceKey, ResourceKind, Spec,
    UnitName, UnitSpec,
};

use super::plan::drift;
use crate::ground::own::OWN_PACKAGE;
use crate::resource::unit::{Load, Until};
use crate::resource::{Seen, Stands, Trouble};
use crate::store::{Record, State};

/// What is to be done with something that left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leave {
    /// It is gone already.
    Gone,
    /// It is to be removed: this, declared absent.
    Remove(Spec),
    /// It is to be as it was before us: this, of a unit.
    Return(UnitSpec),
    /// It is left as it is, for this reason.
    Release(String),
    /// Nobody could look; its record stays.
    Stop(Trouble),
}

/// Decides about one record whose key is no longer declared. `holder`: what is declared to be at that very place, under
/// another path.
pub fn decide(
    key: &ResourceKey,
    record: &Record,
    seen: &Result<Seen, Trouble>,
    holder: Option<&ResourceKey>,
) -> Leave {
    if let Some(holder) = holder {
        return Leave::Release(format!("left: it is declared as {holder}"));
    }
    let seen = match seen {
        Ok(seen) => seen,
        // By rule we do not go there any more.
        Err(trouble) if trouble.stands == Stands::Refused && is_for_good(key, trouble) => {
            return Leave::Release(format!("left: {}", trouble.reason));
        }
        Err(trouble) => return Leave::Stop(trouble.clone()),
    };
    match key {
        ResourceKey::Unit(name) => unit(name, record, seen),
        ResourceKey::Package(name) => package(name, record, seen),
        ResourceKey::Directory(path) | ResourceKey::File(path) => at_path(path, record, seen),
    }
}

/// A machine that has no package or service manager just now is no rule.
fn is_for_good(key: &ResourceKey, trouble: &Trouble) -> bool {
    match key {
        ResourceKey::Directory(_) | ResourceKey::File(_) => true,
        ResourceKey::Package(_) | ResourceKey::Unit(_) => matches!(trouble.code, "own_package" | "own_unit"),
    }
}

fn at_path(path: &DeclaredPath, record: &Record, seen: &Seen) -> Leave {
    if record.applied == State::Absent {
        return Leave::Release(NOTHING_PUT_BACK.to_owned());
    }
    match record.origin {
        Origin::Changed | Origin::AlreadyThere => Leave::Release(BEFORE_US.to_owned()),
        Origin::Created => created(path, record, seen),
    }
}

const NOTHING_PUT_BACK: &str = "left: it was declared absent, and nothing is put back";
const BEFORE_US: &str = "left: existed before us";

fn created(path: &DeclaredPath, record: &Record, seen: &Seen) -> Leave {
    let path = path.clone();
    match (seen, &record.applied) {
        (Seen::Nothing, _) => Leave::Gone,
        (Seen::File { sha256: Some(found), .. }, State::File { sha256, .. }) if found == sha256 => {
            Leave::Remove(Spec::File(FileSpec { path, present: None }))
        }
        (Seen::Directory(_), State::Directory { .. }) => {
            Leave::Remove(Spec::Directory(DirectorySpec { path, present: None }))
        }
        (seen, applied) => {
            let what = drift(applied, seen).unwrap_or_else(|| "it is not what we made".to_owned());
            Leave::Release(format!("left: {what} since"))
        }
    }
}

/// A package is removed, never purged, and the host's own never (H-02); one that was upgraded since is still ours.
fn package(name: &PackageName, record: &Record, seen: &Seen) -> Leave {
    let Seen::Package { version, unfinished, hold, .. } = seen else { return Leave::Gone };
    if name.as_str() == OWN_PACKAGE {
        return Leave::Release("left: the host never removes itself".to_owned());
    }
    match (record.origin, &record.applied, version) {
        (_, State::Package { version: None } | State::Absent, _) => {
            Leave::Release(NOTHING_PUT_BACK.to_owned())
        }
        (Origin::Changed | Origin::AlreadyThere, _, _) => Leave::Release(BEFORE_US.to_owned()),
        (Origin::Created, _, _) if *hold => Leave::Release("left: somebody put it on hold since".to_owned()),
        (Origin::Created, _, None) if unfinished.is_none() => Leave::Gone,
        (Origin::Created, _, _) => {
            Leave::Remove(Spec::Package(PackageSpec { name: name.clone(), wanted: PackageWanted::Absent }))
        }
    }
}

/// A unit returns to how it was before us, in what we changed and nobody has changed since (H-24).
fn unit(name: &UnitName, record: &Record, seen: &Seen) -> Leave {
    let (
        Seen::Unit(shown),
        State::Unit { enabled, running, masked, mask, .. },
        State::Unit { enabled: started, running: ran, .. },
    ) = (seen, &record.applied, &record.earlier)
    else {
        return Leave::Release(BEFORE_US.to_owned());
    };
    match shown.load {
        Load::Loaded => {}
        Load::NotFound => return Leave::Release("left: there is no such unit any more".to_owned()),
        Load::Masked(Until::Undone) if shown.wears(*masked, *mask) => {}
        Load::Masked(_) | Load::Bad(_) => {
            return Leave::Release("left: it cannot be started or stopped now".to_owned());
        }
    }
    let back = |ours: Option<bool>, earlier: Option<bool>, is: bool| {
        earlier.filter(|e| ours == Some(is) && *e != is)
    };
    // Behind a mask of ours nobody sees whether it starts with the machine: as we left it.
    let is_enabled = enabled.filter(|_| shown.masked().is_some()).unwrap_or(shown.is_enabled());
    let spec = UnitSpec {
        name: name.clone(),
        enabled: back(*enabled, *started, is_enabled),
        // What the host's own unit requires goes on (H-02).
        running: back(*running, *ran, shown.is_up()).filter(|runs| *runs || !shown.host.with_it),
        masked: (*masked && shown.masked().is_some()).then_some(false),
        restart_on: Vec::new(),
        reload_on: Vec::new(),
    };
    if spec.enabled.is_none() && spec.running.is_none() && spec.masked.is_none() {
        return Leave::Release("left: as it was before us".to_owned());
    }
    Leave::Return(spec)
}

/// The records that leave, in the order in which they are worked on: units, while what they are of is there; files; packages;
/// then directories, the deepest first. Those in whose place something else is declared come in a list of their own, to be done before it.
pub fn leaving<'a>(
    records: &'a HashMap<String, Record>,
    declaration: &Declaration,
) -> (Vec<&'a Record>, Vec<&'a Record>) {
    if nothing_leaves(records, declaration) {
        return (Vec::new(), Vec::new());
    }
    let declared: HashSet<String> = declaration.entries.iter().map(|entry| entry.key()).collect();
    let mut leaving: Vec<(&Record, Option<ResourceKey>)> = records
        .values()
        .filter(|record| !declared.contains(&record.key))
        .map(|record| (record, record.key.parse().ok()))
        .collect();
    leaving.sort_by_cached_key(|(record, key)| {
        let path = key.as_ref().map(|key| key.path().cloned());
        (key.as_ref().map(turn), std::cmp::Reverse(path), record.key.clone())
    });
    let (at, above) = declared_paths(declaration);
    let in_the_way = |key: &ResourceKey| {
        let path = key.path().map(DeclaredPath::as_str);
        path.is_some_and(|path| at.contains(path) || key.kind() == ResourceKind::File && above.contains(path))
    };
    let (before, after): (Vec<_>, Vec<_>) =
        leaving.into_iter().partition(|(_, key)| key.as_ref().is_some_and(in_the_way));
    let records = |list: Vec<(&'a Record, _)>| list.into_iter().map(|(record, _)| record).collect();
    (records(before), records(after))
}

/// Whether everything that is recorded is declared: a declaration names no key twice.
pub(super) fn nothing_leaves(records: &HashMap<String, Record>, declaration: &Declaration) -> bool {
    let is_recorded = |entry: &&Entry| records.contains_key(&entry.key());
    declaration.entries.iter().filter(is_recorded).count() == records.len()
}

const fn turn(key: &ResourceKey) -> u8 {
    match key {
        ResourceKey::Unit(_) => 0,
        ResourceKey::File(_) => 1,
        ResourceKey::Package(_) => 2,
        ResourceKey::Directory(_) => 3,
    }
}

/// Every path at which something is to be, and every one above such a path.
fn declared_paths(declaration: &Declaration) -> (HashSet<&str>, HashSet<&str>) {
    let (mut paths, mut above) = (HashSet::new(), HashSet::new());
    for resource in declaration.resources().filter(|resource| !resource.spec.is_absent()) {
        let Some(path) = resource.key.path() else { continue };
        paths.insert(path.as_str());
        let mut at = path.parent().unwrap_or_default();
        while !at.is_empty() && above.insert(at) {
            at = at.rsplit_once('/').map_or("", |(parent, _)| parent);
        }
    }
    (paths, above)
}

#[cfg(test)]
mod tests;
