//! The pass over a machine on which nothing moved since the pass before. If all that was seen and asked then is the same
//! now, what became of each resource is the same too: nothing is parsed, nothing decided, and one summary is kept. Where
//! a few files moved, a pass over that part of the declaration follows (`part`); whatever else differs, in whatever way,
//! makes it an ordinary pass.
//!
//! It never says of anything that it is as declared which an ordinary pass of the same declaration would not say, but of
//! units: what neither the disk nor how they stand tells of them is found when they are looked at in full.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_protocol::id::Digest;
use tenure_protocol::report::Summary;
use tenure_protocol::resource::Spec;

use super::memory::{Asked, Memory, Still};
use super::part;
use super::pass::{PassDone, PassInput};
use super::survey::remember;
use crate::ground::own::Own;
use crate::identity::StoredIdentity;
use crate::resource::unit::Shown;
use crate::resource::{Accounts, Reading, Recall, Seen, Site, Tools};
use crate::walk::Walker;

/// What the pass came to.
#[derive(Debug)]
pub(super) enum Stood {
    /// Nothing moved.
    All(Box<Summary>),
    /// A part of it did, and was decided anew.
    Part(Box<PassDone>),
}

/// The pass of a machine on which nothing, or little, moved since the one before; none where that cannot be said: then an
/// ordinary pass is to follow. `declaration`: what the store holds.
pub(super) fn pass(
    input: &mut PassInput<'_>,
    memory: &mut Memory,
    (reading, every): (Reading, Duration),
    declaration: Digest,
    identity: Option<&StoredIdentity>,
) -> Option<Stood> {
    let began = Instant::now();
    let still = memory.still.as_ref().filter(|still| still.declaration == declaration)?;
    if identity.is_some_and(|identity| !identity.is_meant_by(&still.header)) {
        return None;
    }
    let is_ready = input.store.in_place().is_ok() && input.store.is_untidy().is_ok_and(|untidy| !untidy);
    let moved = is_ready.then(|| moved(input, still, &memory.recall, reading)).flatten()?;
    if !moved.is_empty() {
        return part::pass(input, memory, &moved).map(|done| Stood::Part(Box::new(done)));
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
    input.store.put_quiet_pass(&summary).ok()?;
    // It stands as of this pass, where it is left to another process.
    if let Some(still) = memory.still.as_mut() {
        still.summary.pass = summary.pass;
    }
    memory.has_looked(reading, every, false);
    memory.recall.settle(memory.looked);
    Some(Stood::All(Box::new(summary)))
}

/// The entries that are to be decided anew; none: all of them.
fn moved(input: &PassInput<'_>, still: &Still, recall: &Recall, reading: Reading) -> Option<Vec<u32>> {
    let tools = Tools::new(input.ground, input.programs, Some(input.store), input.cancelled)
        .remembering(input.store.units());
    if input.programs.is_some() {
        tools.finish_packages();
    }
    let (own, units) = (Own::look(input.ground), still.units());
    let walker = Walker::new(input.ground, &own).ok()?;
    let accounts = Accounts::read(&walker);
    if own != still.own || accounts != *still.accounts {
        return None;
    }
    // As those were looked at with which it is compared: cheap, and in full where nothing is remembered.
    let glance = || tools.glance_at_units(&units);
    // The service manager answers while the rest is looked at.
    let (moved, site) = std::thread::scope(|scope| {
        let begin = || std::thread::Builder::new().spawn_scoped(scope, glance).ok();
        let glanced = if units.is_empty() { None } else { begin() };
        let rest = rest(input, still, (walker, accounts, &tools), (recall, reading));
        match glanced.map(std::thread::ScopedJoinHandle::join) {
            Some(Ok(())) => {}
            Some(Err(panicked)) => std::panic::resume_unwind(panicked),
            None if units.is_empty() => {}
            None => glance(),
        }
        rest
    })?;
    still
        .asked
        .iter()
        .filter(|asked| asked.unit().is_some())
        .all(|asked| asked.is_same(&site))
        .then_some(moved)
}

/// All but the units: which entries are to be decided anew, and what else was looked at.
fn rest<'s>(
    input: &'s PassInput<'_>,
    still: &Still,
    (walker, accounts, tools): (Walker<'s>, Accounts, &'s Tools<'s>),
    (recall, reading): (&Recall, Reading),
) -> Option<(Vec<u32>, Site<'s>)> {
    // Whoever asks for everything to be read wants everything decided anew where anything moved.
    let most = if reading == Reading::Whole { 0 } else { part::most(&still.entries) };
    let moved = recall.moved((&walker, reading), most, input.cancelled, input.looked)?;
    let sets_owner = !input.ground.is_sandbox();
    let site = Site {
        walker,
        accounts: Arc::new(accounts),
        contents: input.store,
        sets_owner,
        tools,
        recall: None,
        together: None,
    };
    let mut others = still.asked.iter().filter(|asked| asked.unit().is_none());
    others.all(|asked| asked.is_same(&site)).then_some((moved, site))
}

impl Still {
    fn units(&self) -> Vec<&str> {
        self.asked.iter().filter_map(Asked::unit).collect()
    }

    /// What was seen of each unit.
    pub(super) fn units_seen(&self) -> impl Iterator<Item = (&str, &Shown)> {
        self.asked.iter().filter_map(|asked| {
            let Seen::Unit(shown) = &asked.seen else { return None };
            Some((asked.unit()?, &**shown))
        })
    }
}

impl Asked {
    /// The name of the unit that it is.
    fn unit(&self) -> Option<&str> {
        match &self.spec {
            Spec::Unit(unit) => Some(unit.name.as_str()),
            Spec::Package(_) | Spec::Directory(_) | Spec::File(_) => None,
        }
    }

    /// Whether the same is said of it now.
    fn is_same(&self, site: &Site<'_>) -> bool {
        site.observe(&self.spec, false).is_ok_and(|mut seen| {
            remember(&mut seen, self.applied.as_ref());
            seen == self.seen
        })
    }
}

#[cfg(test)]
mod tests;
