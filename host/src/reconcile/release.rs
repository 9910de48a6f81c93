//! Letting go of what left the declaration: removing what we created, releasing the rest, and saying which.

use std::collections::HashMap;

use tenure_protocol::event::{RELEASED, REMOVED};
use tenure_protocol::outcome::Outcome;
use tenure_protocol::resource::{ResourceKey, ResourceKind, Spec, UnitSpec};

use super::apply::{Engine, GROUP};
use super::attempt::sync;
use super::book::Verdict;
use super::lane::AT_ONCE;
use super::leave::{self, Leave};
use super::perform::{Task, changes_files};
use super::places::Places;
use super::reread::Unread;
use super::survey;
use crate::ground::own::is_unit_file;
use crate::resource::package::Request;
use crate::resource::remark::{CONFIGURATION_KEPT, SCRIPT_FAILED};
use crate::resource::unit::{Act, Fired, acts};
use crate::resource::{Kind, MOST_COUNTED, Placed, Remark, Seen, Site, Trouble, counted};
use crate::store::{Intent, Record, Wanted};

/// What became of one that left, before it was recorded.
enum Left {
    Removed(Option<Placed>),
    Released(String),
    /// A unit that is to be as it was before us: this, by these acts under this name.
    Due(UnitSpec, Vec<Act>, String),
    /// A unit that was told to be as it was before us.
    Returned(Spec, Result<(), Trouble>),
    Stays(Trouble),
}

/// The intent to let go of this.
pub(super) fn intent(record: &Record) -> Intent {
    Intent {
        key: record.key.clone(),
        module: record.module.clone(),
        origin: record.origin,
        earlier: record.earlier.clone(),
        wanted: Wanted::Gone,
        temporary: String::new(),
        drift: None,
    }
}

/// Lets go of these, in this order. `intend`: nobody has noted yet that it is about to be done.
pub(super) fn let_go(
    engine: &mut Engine<'_>,
    leaving: &[&Record],
    records: &HashMap<String, Record>,
    places: &Places<'_>,
    intend: bool,
) {
    if intend {
        engine.intend_also(leaving.iter().map(|record| intent(record)).collect());
    }
    for group in groups(leaving) {
        if group.iter().any(|record| record.key.parse().is_ok_and(|key| is_unit_file(&key))) {
            engine.note_unread();
        }
        if let Some(verdict) = engine.halted() {
            for record in group {
                engine.book.write(&record.key, &record.module, verdict.clone());
            }
            continue;
        }
        if group.first().is_some_and(|record| is_package(record)) {
            let left = packages(engine, group);
            settle(engine, left);
            continue;
        }
        look_at_units(engine, group);
        let mut left: Vec<(&Record, Left)> = {
            let site = engine.site.fresh();
            group.iter().map(|record| (*record, one(&site, record, records, places))).collect()
        };
        give_back(engine, &mut left);
        while !left.is_empty() {
            let rest = left.split_off(left.len().min(GROUP));
            settle(engine, std::mem::replace(&mut left, rest));
        }
    }
}

fn is_package(record: &Record) -> bool {
    record.key.starts_with("package:")
}

fn is_unit(record: &Record) -> bool {
    record.key.starts_with("unit:")
}

/// Packages all together, since they are one transaction; units apart from what they are of, and as many as are acted on
/// together; everything else in groups.
fn groups<'g, 'r>(leaving: &'g [&'r Record]) -> impl Iterator<Item = &'g [&'r Record]> {
    let runs = leaving.chunk_by(|a, b| is_package(a) == is_package(b) && is_unit(a) == is_unit(b));
    runs.flat_map(|run| {
        let most = match run.first() {
            Some(record) if is_package(record) => run.len(),
            Some(record) if is_unit(record) => AT_ONCE,
            Some(_) | None => GROUP,
        };
        run.chunks(most)
    })
}

fn one(site: &Site<'_>, record: &Record, records: &HashMap<String, Record>, places: &Places<'_>) -> Left {
    let Ok(key) = record.key.parse::<ResourceKey>() else {
        let reason = "this version of the host does not know this kind; its record stays";
        return Left::Stays(Trouble::failed("unsupported_kind", reason));
    };
    let mut seen = site.look_at(&key, record.applied.size_read());
    if let Ok(seen) = &mut seen {
        survey::remember(seen, Some(&record.applied));
    }
    let spec = match leave::decide(&key, record, &seen, places.holder(site, &key)) {
        Leave::Gone => return Left::Removed(None),
        Leave::Release(reason) => return Left::Released(reason),
        Leave::Stop(trouble) => return Left::Stays(trouble),
        Leave::Return(spec) => return due(spec, seen.as_ref().ok()),
        Leave::Remove(spec) => spec,
    };
    let seen = match seen {
        Ok(seen) => seen,
        Err(trouble) => return Left::Stays(trouble),
    };
    match site.prepare(&spec, &seen, "").and_then(crate::resource::Prepared::place) {
        Ok(placed) => Left::Removed(Some(placed)),
        Err(trouble) if trouble.code == "not_empty" => Left::Released(not_empty(site, &key, records)),
        Err(trouble) => Left::Stays(trouble),
    }
}

/// Looks at those of a group that are units, in one call.
fn look_at_units(engine: &mut Engine<'_>, group: &[&Record]) {
    let units: Vec<&str> = group.iter().filter_map(|record| record.key.strip_prefix("unit:")).collect();
    if !units.is_empty() {
        drop(engine.reread_units());
        engine.site.tools.look_at_units(&units);
    }
}

fn due(spec: UnitSpec, seen: Option<&Seen>) -> Left {
    let Some(Seen::Unit(shown)) = seen else {
        return Left::Released("left: it was not looked at".to_owned());
    };
    let (acts, name) = (acts(&spec, shown, Fired::Nothing), shown.real_name(&spec.name).to_owned());
    Left::Due(spec, acts, name)
}

/// Does what is due with units, all together, and looks at them again.
fn give_back(engine: &mut Engine<'_>, left: &mut [(&Record, Left)]) {
    let task = |(_, left): &'_ (&Record, Left)| match left {
        Left::Due(_, acts, name) => Some((name.clone(), acts.clone())),
        Left::Removed(_) | Left::Released(_) | Left::Returned(..) | Left::Stays(_) => None,
    };
    let due: Vec<(String, Vec<Act>)> = left.iter().filter_map(task).collect();
    if due.is_empty() {
        return;
    }
    if due.iter().any(|(_, acts)| changes_files(acts)) {
        engine.note_unread();
    }
    let halted = engine.unwritable();
    let tasks: Vec<Task<'_>> = due.iter().map(|(name, acts)| Task { name, acts }).collect();
    let mut said = if halted.is_some() { Vec::new() } else { engine.perform(&tasks) }.into_iter();
    let mut names = Vec::new();
    for (_, left) in left.iter_mut() {
        if let Left::Due(spec, ..) = left {
            names.push(spec.name.clone());
            let not_done = || Err(halted.clone().unwrap_or_else(Trouble::cancelled));
            *left = Left::Returned(Spec::Unit(spec.clone()), said.next().unwrap_or_else(not_done));
        }
    }
    let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
    engine.site.tools.look_at_units(&names);
}

/// Packages that we brought, all in one transaction that removes nothing else; else they stay, no longer ours.
fn packages<'r>(engine: &mut Engine<'_>, group: &[&'r Record]) -> Vec<(&'r Record, Left)> {
    let decide = |record: &Record| match record.key.parse::<ResourceKey>() {
        Ok(key) => leave::decide(&key, record, &engine.site.look_at(&key, None), None),
        Err(_) => {
            Leave::Stop(Trouble::failed("unsupported_kind", "its key cannot be read; its record stays"))
        }
    };
    let decided: Vec<Leave> = group.iter().map(|record| decide(record)).collect();
    let requests: Vec<Request<'_>> = decided.iter().filter_map(request).collect();
    let mut said = engine.transact(&requests).into_iter();
    let left = |(record, leave): (&&'r Record, &Leave)| {
        let left = match leave {
            Leave::Gone => Left::Removed(None),
            Leave::Release(reason) => Left::Released(reason.clone()),
            Leave::Stop(trouble) => Left::Stays(trouble.clone()),
            Leave::Return(_) | Leave::Remove(_) => {
                let seen = record.key.parse::<ResourceKey>().map(|key| engine.site.look_at(&key, None));
                let is_gone = matches!(seen, Ok(Ok(Seen::Package { version: None, .. })));
                match said.next().unwrap_or(Ok(())) {
                    Err(said) if !is_gone && said.code == "transaction_refused" => {
                        Left::Released(format!("left: {}", said.reason))
                    }
                    Err(said) if !is_gone => Left::Stays(said),
                    Ok(()) | Err(_) => Left::Removed(None),
                }
            }
        };
        (*record, left)
    };
    group.iter().zip(&decided).map(left).collect()
}

fn request(leave: &Leave) -> Option<Request<'_>> {
    match leave {
        Leave::Remove(Spec::Package(spec)) => {
            Some(Request { name: spec.name.as_str(), wanted: &spec.wanted })
        }
        Leave::Remove(_) | Leave::Gone | Leave::Return(_) | Leave::Release(_) | Leave::Stop(_) => None,
    }
}

/// What is in a directory that was to be removed, by whose it is.
fn not_empty(site: &Site<'_>, key: &ResourceKey, records: &HashMap<String, Record>) -> String {
    let Some(path) = key.path() else { return "left: it holds something".to_owned() };
    let names = site.walker.parent(path).ok().and_then(|(dir, name)| dir.names(name, MOST_COUNTED + 1).ok());
    let names = names.unwrap_or_default();
    let is_ours = |name: &&String| {
        ResourceKind::ALL.iter().any(|kind| records.contains_key(&format!("{kind}:{}/{name}", path)))
    };
    match names.iter().filter(|name| !is_ours(name)).count() {
        0 => format!("left: holds {} entries that are still declared", counted(names.len())),
        others => format!("left: holds {} entries not ours", counted(others)),
    }
}

/// Syncs, looks again, records, and says it.
fn settle(engine: &mut Engine<'_>, left: Vec<(&Record, Left)>) {
    let placed = left.iter().filter_map(|(_, left)| match left {
        Left::Removed(placed) => placed.as_ref(),
        Left::Released(_) | Left::Due(..) | Left::Returned(..) | Left::Stays(_) => None,
    });
    let unsynced = sync(placed);
    let again = engine.site.fresh();
    let verdicts: Vec<(&Record, Verdict)> = left
        .into_iter()
        .map(|(record, left)| {
            let verdict = match left {
                Left::Released(reason) => {
                    Verdict { outcome: Outcome::Released, code: Some("left"), reason: Some(reason) }
                }
                Left::Due(spec, ..) => back(&again, &Spec::Unit(spec), Ok(())),
                Left::Returned(spec, said) => back(&again, &spec, said),
                Left::Stays(trouble) => trouble.into(),
                Left::Removed(placed) => {
                    let unsynced = placed.as_ref().and_then(|placed| unsynced.get(&placed.dir.inode()));
                    let other_names = placed.as_ref().and_then(|placed| placed.note.clone());
                    let package = record.key.strip_prefix("package:");
                    let note = other_names.or_else(|| again.tools.remark_of(package?));
                    removed(&again, record, unsynced, note)
                }
            };
            (record, verdict)
        })
        .collect();
    let stays = verdicts.iter().filter(|(_, verdict)| !verdict.outcome.is_as_declared());
    let lost_masks = stays.filter_map(|(record, _)| lost_mask(&again, record)).collect();
    drop(again);
    for (record, _) in verdicts.iter().filter(|(_, verdict)| verdict.outcome == Outcome::Removed) {
        let key = record.key.parse::<ResourceKey>().ok();
        if key.as_ref().is_some_and(is_unit_file) {
            engine.unread = Unread::Something;
        }
    }
    let gone: Vec<&(&Record, Verdict)> =
        verdicts.iter().filter(|(_, v)| v.outcome.is_as_declared()).collect();
    let events: Vec<_> = gone
        .iter()
        .map(|(record, verdict)| {
            let kind = if verdict.outcome == Outcome::Removed { REMOVED } else { RELEASED };
            engine.book.event(
                kind,
                &record.key,
                verdict.reason.as_deref().unwrap_or("it left the declaration"),
            )
        })
        .collect();
    let keys = gone.iter().map(|(record, _)| record.key.clone()).collect();
    let recorded = engine.store.record(lost_masks, keys, events.clone());
    match recorded {
        Ok(()) => engine.book.events.extend(events),
        Err(error) => {
            engine.unrecorded = true;
            engine.stop(&error);
        }
    }
    let halted = engine.stopped.as_ref().and_then(|_| engine.halted());
    for (record, verdict) in verdicts {
        let verdict = match &halted {
            Some(halted) if verdict.outcome.is_as_declared() => halted.clone(),
            Some(_) | None => verdict,
        };
        engine.book.write(&record.key, &record.module, verdict);
    }
}

/// A unit that is as it was before us is no longer ours.
fn back(site: &Site<'_>, spec: &Spec, said: Result<(), Trouble>) -> Verdict {
    let differs = site.observe(spec, false).and_then(|seen| site.differences(spec, &seen));
    match (differs, said) {
        (Ok(differs), _) if differs.is_empty() => {
            Verdict::because(Outcome::Released, "left", "left: it is again as it was before us")
        }
        (_, Err(said)) | (Err(said), Ok(())) => said.into(),
        (Ok(differs), Ok(())) => {
            let reason =
                format!("it was to be as it was before us, and looked at again {}", differs.join(", "));
            Trouble::failed("not_as_written", reason).into()
        }
    }
}

/// What stays on record of a unit whose mask was taken back, where not all that had to follow worked.
fn lost_mask(site: &Site<'_>, record: &Record) -> Option<Record> {
    let key = record.key.parse::<ResourceKey>().ok().filter(|key| key.kind() == ResourceKind::Unit)?;
    survey::without_lost_mask(record, &site.look_at(&key, None).ok()?)
}

/// Removed is only said of what is no longer there.
fn removed(site: &Site<'_>, record: &Record, unsynced: Option<&String>, note: Option<Remark>) -> Verdict {
    if let Some(why) = unsynced {
        return Trouble::failed("io_error", why.clone()).into();
    }
    let seen = record.key.parse::<ResourceKey>().map(|key| site.look_at(&key, None));
    match seen {
        Ok(Ok(Seen::Nothing | Seen::Package { version: None, unfinished: None, .. })) => {
            let code = match note.as_ref().map(|note| note.kind) {
                Some(Kind::ScriptFailed) => Some(SCRIPT_FAILED),
                Some(Kind::ConfigurationKept) => Some(CONFIGURATION_KEPT),
                Some(Kind::OtherNames) => Some("other_names"),
                Some(Kind::CarriedOver) | None => None,
            };
            let reason = note.map(|note| note.reason);
            Verdict { outcome: Outcome::Removed, code, reason }
        }
        Ok(Err(trouble)) => trouble.into(),
        Ok(Ok(_)) | Err(_) => Trouble::failed("not_as_written", "it was removed, and is there again").into(),
    }
}
