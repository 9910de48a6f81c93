//! The pass over a machine on which nothing moved. After a pass that found everything as declared and wrote no record,
//! the loop keeps what lay at each path and what was asked of packages and units. If all of it is the same at the next
//! pass, what became of each resource is the same too: nothing is parsed, nothing decided, and one summary is kept.
//! Whatever differs, in whatever way, makes it an ordinary pass, which then reads only what may have changed.
//!
//! It is kept in memory alone: what a start finds is read whole. It never says of anything that it is as declared which
//! an ordinary pass of the same declaration would not say.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tenure_actors::timer::jittered;
use tenure_protocol::declaration::{Declaration, Entry, Header};
use tenure_protocol::id::{Digest, Millis};
use tenure_protocol::outcome::{Outcome, ResourceOutcome};
use tenure_protocol::report::Summary;
use tenure_protocol::resource::Spec;

use super::pass::PassInput;
use super::plan::Sight;
use super::survey::remember;
use crate::ground::own::Own;
use crate::identity::StoredIdentity;
use crate::resource::remark::CONFIGURATION_KEPT;
use crate::resource::{Accounts, Reading, Recall, Seen, Site, Tools, Trouble};
use crate::store::{Record, State};
use crate::walk::Walker;

/// What passes leave to the next one. Clones of the handle share it.
pub type SharedMemory = Arc<Mutex<Memory>>;

/// What was seen, and when everything was read.
#[derive(Debug, Default)]
pub struct Memory {
    recall: Recall,
    still: Option<Still>,
    /// When everything was last read.
    read_whole: Option<Millis>,
    /// When it is to be read again.
    due: Option<Instant>,
    /// When the last look began.
    looked: Millis,
}

/// What else an ordinary pass decides by, and what it came to.
#[derive(Debug)]
struct Still {
    declaration: Digest,
    header: Header,
    own: Own,
    accounts: Arc<Accounts>,
    asked: Vec<Asked>,
    summary: Summary,
}

/// A package or unit, and what was said of it.
#[derive(Debug)]
struct Asked {
    spec: Spec,
    /// What our record says that we made of it.
    applied: Option<State>,
    seen: Seen,
}

/// What an ordinary pass looked at.
#[derive(Debug, Default)]
pub(super) struct Looked {
    recall: Recall,
    asked: Vec<Asked>,
    /// Something could not be looked at.
    partly: bool,
    /// The service manager has not read anew what was changed of a unit: that is tried again until it has.
    unread: bool,
}

/// What else it found, where it came to nothing new.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) own: Own,
    pub(super) accounts: Arc<Accounts>,
}

impl Memory {
    /// When everything was last read; none: not since the start.
    pub const fn read_whole(&self) -> Option<Millis> {
        self.read_whole
    }

    /// What is read in a pass that begins at `now`. `whole`: everything is to be.
    pub(super) fn begin(&mut self, now: Millis, whole: bool) -> Reading {
        if now < self.looked {
            // The clock went back: change times of before and after cannot be compared.
            *self = Self::default();
        }
        self.looked = now;
        let due = self.due.is_none_or(|due| Instant::now() >= due);
        if whole || due { Reading::Whole } else { Reading::WhatMayHaveChanged }
    }

    /// A pass looked in this way; the next is due after `every`. `partly`: at not all there is.
    fn has_looked(&mut self, reading: Reading, every: Duration, partly: bool) {
        if reading == Reading::Whole {
            let due = Instant::now().checked_add(jittered(every, JITTER));
            self.due = Some(due.unwrap_or_else(Instant::now));
            self.read_whole = if partly { self.read_whole } else { Some(self.looked) };
        }
    }

    /// What an ordinary pass may go by; until it has ended there is nothing to remember.
    pub(super) fn take(&mut self, reading: Reading) -> Recall {
        self.still = None;
        let recall = std::mem::take(&mut self.recall);
        if reading == Reading::Whole { Recall::default() } else { recall }
    }

    /// Moves what is kept to where memory was free when the pass was over: what the pass needed lies below it, and could
    /// not be given back.
    pub(super) fn move_down(&mut self) {
        self.recall = self.recall.clone();
    }

    /// Keeps what an ordinary pass saw. `found`: it came to nothing new.
    pub(super) fn keep(
        &mut self,
        (reading, every): (Reading, Duration),
        looked: Looked,
        found: Option<Found>,
        (declaration, header): (Digest, &Header),
        summary: &Summary,
    ) {
        let Looked { recall, asked, partly, unread } = looked;
        self.recall = recall;
        self.has_looked(reading, every, partly);
        self.still = found.filter(|_| !partly && !unread).map(|Found { own, accounts }| Still {
            declaration,
            header: header.clone(),
            own,
            accounts,
            asked,
            summary: summary.clone(),
        });
    }
}

/// So that a fleet that started together does not read together.
const JITTER: f64 = 0.2;

impl Looked {
    /// What a survey saw of each entry of the declaration, by position.
    pub(super) fn of(
        site: &Site<'_>,
        now: Millis,
        declaration: &Declaration,
        records: &HashMap<String, Record>,
        sights: &[Option<Result<Sight, Trouble>>],
    ) -> Self {
        let seen = || {
            declaration.entries.iter().zip(sights).filter_map(|(entry, sight)| match (entry, sight) {
                (Entry::Known(resource), Some(Ok(sight))) => Some((resource, &sight.seen)),
                _ => None,
            })
        };
        let recall = Recall::of(
            &site.walker,
            now,
            seen().filter_map(|(resource, seen)| Some((resource.key.path()?, seen))),
        );
        let asked =
            seen().filter(|(resource, _)| resource.key.path().is_none()).map(|(resource, seen)| Asked {
                spec: resource.spec.clone(),
                applied: records.get(&resource.key.to_string()).map(|record| record.applied.clone()),
                seen: seen.clone(),
            });
        let asked: Vec<Asked> = asked.collect();
        let partly = recall.len() + asked.len() < declaration.entries.len();
        let unread = asked.iter().any(|asked| matches!(&asked.seen, Seen::Unit(shown) if shown.needs_reload));
        Self { recall, asked, partly, unread }
    }
}

/// Whether a pass with these outcomes says nothing that the next could say in another way.
pub(super) fn is_still(lines: &[ResourceOutcome]) -> bool {
    lines.iter().all(|line| {
        // What lies beside a configuration is looked for by an ordinary pass alone, and is told until it is gone.
        let told = line.code.as_deref() == Some(CONFIGURATION_KEPT);
        matches!(line.outcome, Outcome::Unchanged | Outcome::Held) && !told
    })
}

/// The pass of a machine on which nothing moved since the one before; none where that cannot be said: nothing was done
/// then, and an ordinary pass follows. `declaration`: what the store holds.
pub(super) fn pass(
    input: &PassInput<'_>,
    memory: &mut Memory,
    (reading, every): (Reading, Duration),
    declaration: Digest,
    identity: Option<&StoredIdentity>,
) -> Option<Summary> {
    let began = Instant::now();
    let still = memory.still.as_ref().filter(|still| still.declaration == declaration)?;
    if identity.is_some_and(|identity| !identity.is_meant_by(&still.header)) {
        return None;
    }
    let is_ready = input.store.in_place().is_ok() && input.store.is_untidy().is_ok_and(|untidy| !untidy);
    if !is_ready || !stands(input, still, &memory.recall, reading) {
        return None;
    }
    let kept = input.store.last_pass().ok()?.map_or(0, |summary| summary.pass);
    let summary = Summary {
        pass: input.store.next_pass(kept),
        trigger: input.trigger,
        started: memory.looked,
        took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        refused: input.refused.as_ref().map(|rejected| rejected.why.clone()),
        refused_revision: input.refused.as_ref().and_then(|rejected| rejected.revision),
        ..still.summary.clone()
    };
    // A store that does not take it has more to tell than this.
    input.store.put_pass(&summary, Vec::new(), Vec::new(), Vec::new(), None).ok()?;
    memory.has_looked(reading, every, false);
    memory.recall.settle(memory.looked);
    Some(summary)
}

/// Whether everything is as it was.
fn stands(input: &PassInput<'_>, still: &Still, recall: &Recall, reading: Reading) -> bool {
    let tools = Tools::new(input.ground, input.programs, Some(input.store), input.cancelled)
        .remembering(input.store.units());
    if input.programs.is_some() {
        tools.finish_packages();
    }
    let own = Own::look(input.ground);
    let Ok(walker) = Walker::new(input.ground, &own) else { return false };
    if own != still.own || Accounts::read(&walker) != *still.accounts {
        return false;
    }
    recall.holds(&walker, reading, input.cancelled, input.looked) && still.asked_again(input, walker, &tools)
}

impl Still {
    fn asked_again(&self, input: &PassInput<'_>, walker: Walker<'_>, tools: &Tools<'_>) -> bool {
        let units = |asked: &Asked| match &asked.spec {
            Spec::Unit(unit) => Some(unit.name.as_str().to_owned()),
            Spec::Package(_) | Spec::Directory(_) | Spec::File(_) => None,
        };
        let units: Vec<String> = self.asked.iter().filter_map(units).collect();
        if !units.is_empty() {
            // As those were looked at with which it is compared: cheap, and anew in full where everything is read.
            tools.glance_at_units(&units.iter().map(String::as_str).collect::<Vec<_>>());
        }
        let sets_owner = !input.ground.is_sandbox();
        let accounts = Arc::clone(&self.accounts);
        let site = Site { walker, accounts, contents: input.store, sets_owner, tools, recall: None };
        self.asked.iter().all(|asked| {
            site.observe(&asked.spec, false).is_ok_and(|mut seen| {
                remember(&mut seen, asked.applied.as_ref());
                seen == asked.seen
            })
        })
    }
}

#[cfg(test)]
mod tests;
