//! What a pass would do, changing nothing: one line a resource, with a diff where the content is text that may be shown.
//! It decides with the very functions the pass decides with. Called by `tenure-host plan`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tenure_actors::clock::Moment;
use tenure_actors::database::DatabaseError;
use tenure_protocol::declaration::{Declaration, Entry};
use tenure_protocol::id::Millis;
use tenure_protocol::refusal::chain;
use tenure_protocol::resource::{PackageWanted, Resource, ResourceKey, Spec};

use super::leave::{self, Leave};
use super::places::Places;
use super::plan::{self, Change, Decision, arrange};
use super::{hold, survey};
use crate::ground::Ground;
use crate::ground::own::Own;
use crate::program::Programs;
use crate::resource::{Accounts, Contents, Seen, Site, Stands, Tools, Trouble};
use crate::store::{Record, Store};
use crate::walk::Walker;

mod diff;

/// What a preview needs.
#[expect(missing_debug_implementations, reason = "it holds a trait object")]
pub struct PreviewInput<'a> {
    /// Where.
    pub ground: &'a Ground,
    /// The store; none where no host has run yet: nothing is ours.
    pub store: Option<&'a Store>,
    /// What would be applied.
    pub declaration: &'a Declaration,
    /// What may be asked of packages and units; none: they would be refused.
    pub programs: Option<&'a dyn Programs>,
    /// Where its content is: the store, or a bundle.
    pub contents: &'a dyn Contents,
}

/// What would be done with a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// It would be changed or made.
    Change,
    /// It is as declared.
    Keep,
    /// It depends on what cannot be known before it is tried.
    CannotKnow,
    /// It is kept as found.
    Hold,
    /// It is not done, by rule.
    Refuse,
    /// It would be removed.
    Remove,
    /// It leaves the declaration and stays as it is.
    Release,
}

impl What {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Keep => "keep",
            Self::CannotKnow => "cannot know",
            Self::Hold => "hold",
            Self::Refuse => "refuse",
            Self::Remove => "remove",
            Self::Release => "release",
        }
    }
}

/// One line of a preview.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct PreviewLine {
    /// Which resource.
    pub key: String,
    /// Of which module.
    pub module: String,
    /// What would be done.
    pub what: What,
    /// How: sentences, and for text a unified diff, line by line. Bounded and escaped.
    pub detail: Vec<String>,
}

/// What a pass would do now, in the order it would be done. It changes nothing. The error is the store's: what is ours
/// cannot be read.
pub fn preview(input: &PreviewInput<'_>) -> Result<Vec<PreviewLine>, DatabaseError> {
    let mut records = input.store.map(Store::records).transpose()?.unwrap_or_default();
    let own = Own::look(input.ground);
    let walker = match Walker::new(input.ground, &own) {
        Ok(walker) => walker,
        Err(error) => return Ok(blind(input.declaration, &chain(&error))),
    };
    let accounts = Arc::new(Accounts::read(&walker));
    let never = AtomicBool::new(false);
    let tools = Tools::new(input.ground, input.programs, None, &never);
    let sets_owner = !input.ground.is_sandbox();
    let site = Site { walker, accounts, contents: input.contents, sets_owner, tools: &tools };
    let places = Places::of(&site, input.declaration);
    places.respell(&site, input.declaration, &mut records);
    let (before, after) = leave::leaving(&records, input.declaration);
    let leaves = |record: &&Record| leaves(&site, &places, record);
    let mut lines: Vec<PreviewLine> = before.iter().map(leaves).collect();
    lines.extend(declared(&site, input.declaration, &records, &places));
    lines.extend(after.iter().map(leaves));
    Ok(lines)
}

/// The root itself cannot be looked at.
fn blind(declaration: &Declaration, why: &str) -> Vec<PreviewLine> {
    let line = |resource: &Resource| PreviewLine {
        key: resource.key.to_string(),
        module: resource.module.to_string(),
        what: What::CannotKnow,
        detail: vec![why.to_owned()],
    };
    declaration.resources().map(line).collect()
}

fn declared(
    site: &Site<'_>,
    declaration: &Declaration,
    records: &HashMap<String, Record>,
    places: &Places<'_>,
) -> Vec<PreviewLine> {
    let mut sights = survey::survey(site, declaration, records, places, &|_| {});
    let mut lines = Vec::with_capacity(declaration.entries.len());
    let (mut not_done, mut changed_keys) = (HashSet::new(), HashSet::new());
    let now = Millis(Moment::default().millis());
    for at in arrange(declaration).unwrap_or_default() {
        let Some(entry) = declaration.entries.get(at) else { continue };
        let resource = match entry {
            Entry::Known(resource) => resource,
            Entry::Unsupported(unsupported) => {
                lines.push(PreviewLine {
                    key: unsupported.shown_key(),
                    module: unsupported.module.clone(),
                    what: What::Refuse,
                    detail: vec![unsupported.reason.clone()],
                });
                continue;
            }
        };
        let Some(sight) = sights.get_mut(at).and_then(Option::take) else { continue };
        let record = records.get(&resource.key.to_string());
        let keeps_found = hold::keeps_found(&declaration.header, &resource.module);
        let decision = plan::decide(resource, record, &sight, keeps_found, now);
        let need = resource.needs.iter().find(|need| not_done.contains(need));
        let seen = sight.as_ref().map_or(&Seen::Nothing, |sight| &sight.seen);
        let (what, detail) = words(site, resource, &decision, seen, need);
        let (what, detail) = follows(resource, what, detail, &changed_keys);
        if matches!(what, What::Change | What::Remove) {
            changed_keys.insert(&resource.key);
        }
        if matches!(what, What::Hold | What::Refuse | What::CannotKnow) {
            not_done.insert(&resource.key);
        }
        let (key, module) = (resource.key.to_string(), resource.module.to_string());
        lines.push(PreviewLine { key, module, what, detail });
    }
    lines
}

fn words(
    site: &Site<'_>,
    resource: &Resource,
    decision: &Decision,
    seen: &Seen,
    need: Option<&ResourceKey>,
) -> (What, Vec<String>) {
    match decision {
        Decision::Keep(None) => (What::Keep, Vec::new()),
        Decision::Keep(Some(_)) => {
            (What::Keep, vec!["it is as declared, and is recorded as ours".to_owned()])
        }
        Decision::Hold(reason) => (What::Hold, vec![reason.clone()]),
        Decision::Stop(trouble) => stopped(trouble),
        Decision::Change(_) if need.is_some() => {
            let need = need.map(ToString::to_string).unwrap_or_default();
            (What::CannotKnow, vec![format!("it needs {need}, which would not be as declared")])
        }
        Decision::Change(change) => changed(site, resource, change, seen),
    }
}

/// A unit that is as declared is begun anew where what it follows would be changed.
fn follows(
    resource: &Resource,
    what: What,
    mut detail: Vec<String>,
    changed: &HashSet<&ResourceKey>,
) -> (What, Vec<String>) {
    let Spec::Unit(spec) = &resource.spec else { return (what, detail) };
    let first = |keys: &[ResourceKey]| keys.iter().find(|key| changed.contains(key)).map(ToString::to_string);
    let word = match (first(&spec.restart_on), first(&spec.reload_on)) {
        (Some(key), _) => format!("would be restarted if it runs, since {key} would be changed"),
        (None, Some(key)) => format!("would be reloaded if it runs, since {key} would be changed"),
        (None, None) => return (what, detail),
    };
    match what {
        What::Keep | What::Change if spec.running != Some(false) => {
            detail.push(word);
            (What::Change, detail)
        }
        what => (what, detail),
    }
}

fn stopped(trouble: &Trouble) -> (What, Vec<String>) {
    let what = match trouble.stands {
        Stands::Refused => What::Refuse,
        Stands::Failed | Stands::Outstanding | Stands::Unknown => What::CannotKnow,
    };
    (what, vec![trouble.reason.clone()])
}

fn changed(site: &Site<'_>, resource: &Resource, change: &Change, seen: &Seen) -> (What, Vec<String>) {
    let mut detail = change.differs.clone();
    detail.extend(change.drift.as_ref().map(|drift| format!("since we left it, {drift}")));
    match &resource.spec {
        spec if spec.is_absent() => return (What::Remove, detail),
        Spec::File(file) => detail.extend(diff::lines(site, file, seen)),
        Spec::Package(package) => detail.push(match &package.wanted {
            PackageWanted::Exact(version) => format!("would be brought to {version}"),
            PackageWanted::Present | PackageWanted::Prefix(_) | PackageWanted::Absent => {
                "which version it gets is known when its turn comes".to_owned()
            }
        }),
        Spec::Directory(_) | Spec::Unit(_) => {}
    }
    (What::Change, detail)
}

fn leaves(site: &Site<'_>, places: &Places<'_>, record: &Record) -> PreviewLine {
    let line = |what, text: &str| PreviewLine {
        key: record.key.clone(),
        module: record.module.clone(),
        what,
        detail: vec![text.to_owned()],
    };
    let Ok(key) = record.key.parse::<ResourceKey>() else {
        return line(What::CannotKnow, "this version of the host does not know this kind");
    };
    let seen = site.look_at(&key, record.applied.size_read());
    match leave::decide(&key, record, &seen, places.holder(site, &key)) {
        Leave::Gone => line(What::Remove, "it left the declaration, and is gone already"),
        Leave::Remove(Spec::Directory(_)) => {
            line(What::Remove, "it left the declaration, and is removed if it is empty by then")
        }
        Leave::Remove(Spec::Package(_)) => line(
            What::Remove,
            "it left the declaration, and we brought it; removed if nothing else goes with it",
        ),
        Leave::Return(_) => line(What::Release, "it left the declaration, and is as it was before us again"),
        Leave::Remove(Spec::File(_) | Spec::Unit(_)) => {
            line(What::Remove, "it left the declaration, and we created it")
        }
        Leave::Release(reason) => line(What::Release, &reason),
        Leave::Stop(trouble) => line(What::CannotKnow, &trouble.reason),
    }
}

#[cfg(test)]
mod tests;
