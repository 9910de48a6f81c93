//! One pass, on a worker thread: recover what was begun, look at everything, decide, note what is about to be done, do
//! it, let go of what left, and keep what became of it all. It never fails as a whole: what cannot be read or written
//! is said of each resource it concerns. Called by the reconcile actor and by `tenure-host apply`.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use tenure_actors::clock::Clock;
use tenure_actors::database::DatabaseError;
use tenure_protocol::declaration::{Declaration, Entry, Unsupported};
use tenure_protocol::event::NodeEvent;
use tenure_protocol::id::{Millis, Revision};
use tenure_protocol::outcome::{Outcome, ResourceOutcome};
use tenure_protocol::refusal::{Refusal, chain};
use tenure_protocol::report::{Counts, Summary, Trigger, digest};

use super::agenda::{self, Turn};
use super::apply::Engine;
use super::book::{Book, Closed, Verdict};
use super::places::Places;
use super::plan::arrange;
use super::{leave, recover, release, survey};
use crate::ground::Ground;
use crate::ground::own::Own;
use crate::program::Programs;
use crate::resource::{Accounts, Site, Tools};
use crate::store::{Record, Remembered, Store};
use crate::walk::Walker;

/// What one pass needs. It blocks for as long as it takes: run it on a worker thread.
#[expect(missing_debug_implementations, reason = "it holds a closure")]
pub struct PassInput<'a> {
    /// Where.
    pub ground: &'a Ground,
    /// The store. The pass keeps its outcomes and events there itself.
    pub store: &'a Store,
    /// What may run programs, for packages and units; none: they are refused.
    pub programs: Option<&'a dyn Programs>,
    /// The time of day.
    pub clock: &'a dyn Clock,
    /// What is declared; none: nothing yet, an empty pass.
    pub declaration: Option<Arc<Declaration>>,
    /// Why it runs.
    pub trigger: Trigger,
    /// Why a newer declaration was not admitted, to stand in the summary.
    pub refused: Option<Rejected>,
    /// Told how many resources were looked at, before anything is changed.
    pub looked: &'a (dyn Fn(usize) + Sync),
    /// Told after each resource that is done.
    pub progress: &'a (dyn Fn(Progress<'_>) + Sync),
    /// Set: the pass ends after the group it works on, and what is left is outstanding.
    pub cancelled: &'a AtomicBool,
}

/// A declaration that was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// Which it was; none where the stored one is not this machine's.
    pub revision: Option<Revision>,
    /// Why.
    pub why: Refusal,
}

/// How far a pass is.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// Resources with an outcome.
    pub done: usize,
    /// Resources in all.
    pub total: usize,
    /// The outcome that was just reached.
    pub outcome: &'a ResourceOutcome,
}

/// What a pass did.
#[derive(Debug, Clone, PartialEq)]
pub struct PassDone {
    /// As it is reported.
    pub summary: Summary,
    /// Every outcome, by key.
    pub outcomes: Vec<ResourceOutcome>,
    /// Those that differ from the pass before, and every failure.
    pub changed: Vec<ResourceOutcome>,
    /// Keys of the pass before that this one has nothing to say about.
    pub forgotten: Vec<String>,
    /// What happened; already in the spool, unless `store_trouble` says otherwise.
    pub events: Vec<NodeEvent>,
    /// Why the store could not be read or written, if it could not: then nothing more was changed (O-05).
    pub store_trouble: Option<Refusal>,
}

/// What the store knew when the pass began.
struct Known {
    records: HashMap<String, Record>,
    previous: HashMap<String, Remembered>,
    pass: u64,
}

impl Known {
    fn read(store: &Store) -> Result<Self, DatabaseError> {
        let pass = store.last_pass()?.map_or(0, |summary| summary.pass).saturating_add(1);
        Ok(Self { records: store.records()?, previous: store.last_outcomes()?, pass })
    }
}

/// Runs one pass: looks at everything, changes what differs, reads it back, records it, and keeps outcomes and events.
pub fn run(input: &PassInput<'_>) -> PassDone {
    let begun = Instant::now();
    let now = Millis(input.clock.now().millis());
    let known = match Known::read(input.store) {
        Ok(known) => known,
        Err(error) => return blind(input, now, &chain(&error), "store_unreadable"),
    };
    let own = Own::look(input.ground);
    let walker = match Walker::new(input.ground, &own) {
        Ok(walker) => walker,
        Err(error) => return blind(input, now, &chain(&error), "could_not_look"),
    };
    let accounts = Arc::new(Accounts::read(&walker));
    let tools = Tools::new(input.ground, input.programs, input.cancelled);
    let sets_owner = !input.ground.is_sandbox();
    let site = Site { walker, accounts, contents: input.store, sets_owner, tools: &tools };
    let Known { mut records, previous, pass } = known;
    let book = Book::new(pass, now, previous, input.progress);
    let mut engine = Engine::new(site, input.store, book, input.clock, input.cancelled);
    match recover::recover(&engine.site, input.store, &mut records, now) {
        Ok(unsettled) => engine.unsettled = unsettled,
        Err(error) => {
            engine.stop(&error);
            // What was begun before is not known to be ours yet.
            engine.unrecorded = true;
        }
    }
    if let Some(declaration) = &input.declaration {
        let places = Places::of(&engine.site, declaration);
        let (ours, no_longer) = places.respell(&engine.site, declaration, &mut records);
        if let Err(error) = input.store.record(ours, no_longer, Vec::new()) {
            engine.stop(&error);
        }
        reconcile(&mut engine, declaration, &records, &places, input.looked);
    }
    conclude(input, engine, begun)
}

fn reconcile<'a>(
    engine: &mut Engine<'a>,
    declaration: &'a Declaration,
    records: &'a HashMap<String, Record>,
    places: &Places<'_>,
    looked: &(dyn Fn(usize) + Sync),
) {
    let (before, after) = leave::leaving(records, declaration);
    engine.know(declaration, records);
    engine.book.total = declaration.entries.len() + before.len() + after.len();
    release::let_go(engine, &before, records, places, true);
    let Ok(order) = arrange(declaration) else {
        // Parsing has refused circles and missing needs already.
        return;
    };
    let mut sights = survey::survey(&engine.site, declaration, records, places, looked);
    let mut turns = VecDeque::with_capacity(order.len());
    for at in order {
        match declaration.entries.get(at) {
            Some(Entry::Unsupported(unsupported)) => refuse(engine, unsupported),
            Some(Entry::Known(resource)) => {
                let sight = sights.get_mut(at).and_then(Option::take);
                turns.push_back(Turn::new(resource, sight, declaration, records, engine.book.now));
            }
            None => {}
        }
    }
    let mut intents = agenda::intents(&mut turns);
    intents.extend(after.iter().map(|record| release::intent(record)));
    if agenda::is_at_work(&turns) {
        engine.unrecorded = true;
        engine.intend_also(intents);
    } else {
        engine.intend(intents);
    }
    agenda::work(engine, turns, records);
    release::let_go(engine, &after, records, places, false);
    engine.reload_units();
}

fn refuse(engine: &mut Engine<'_>, unsupported: &Unsupported) {
    let Unsupported { module, code, reason, .. } = unsupported;
    engine.book.write(
        &unsupported.shown_key(),
        module,
        Verdict::because(Outcome::Refused, code, reason.clone()),
    );
}

/// Keeps what became of everything, and sums it up.
fn conclude(input: &PassInput<'_>, engine: Engine<'_>, begun: Instant) -> PassDone {
    let Engine { book, stopped, unrecorded, unsettled, .. } = engine;
    let (pass, started) = (book.pass, book.now);
    let Closed { lines, changed, remember, forgotten, events, unspooled } = book.close();
    let owned = input.store.owned_count().unwrap_or_default();
    let summary = Summary {
        pass,
        trigger: input.trigger,
        revision: input.declaration.as_ref().map(|declaration| declaration.header.revision()),
        started,
        took_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        counts: Counts::of(lines.iter().map(|line| line.outcome)),
        owned,
        digest: digest(&lines),
        refused: input.refused.as_ref().map(|rejected| rejected.why.clone()),
        refused_revision: input.refused.as_ref().and_then(|rejected| rejected.revision),
    };
    let kept = input.store.put_pass(
        &summary,
        remember,
        forgotten.clone(),
        unspooled,
        (!unrecorded).then_some(unsettled),
    );
    let trouble = stopped.or_else(|| kept.err().map(|error| chain(&error)));
    PassDone {
        summary,
        outcomes: lines,
        changed,
        forgotten,
        events,
        store_trouble: trouble.map(|why| store_trouble("store_unwritable", &why)),
    }
}

/// A pass that does not know what is ours, or cannot look: it changes nothing and says of each resource that nobody
/// could look.
fn blind(input: &PassInput<'_>, now: Millis, why: &str, code: &'static str) -> PassDone {
    let mut book = Book::new(0, now, HashMap::new(), input.progress);
    let entries = input.declaration.as_ref().map_or(&[][..], |declaration| &declaration.entries);
    book.total = entries.len();
    for entry in entries {
        let (key, module) = match entry {
            Entry::Known(resource) => (resource.key.to_string(), resource.module.as_str()),
            Entry::Unsupported(unsupported) => (unsupported.shown_key(), unsupported.module.as_str()),
        };
        book.write(&key, module, Verdict::because(Outcome::Unknown, code, why));
    }
    let Closed { lines, changed, .. } = book.close();
    let summary = Summary {
        pass: input.store.last_pass().ok().flatten().map_or(0, |summary| summary.pass),
        trigger: input.trigger,
        revision: input.declaration.as_ref().map(|declaration| declaration.header.revision()),
        started: now,
        took_ms: 0,
        counts: Counts::of(lines.iter().map(|line| line.outcome)),
        owned: input.store.owned_count().unwrap_or_default(),
        digest: digest(&lines),
        refused: input.refused.as_ref().map(|rejected| rejected.why.clone()),
        refused_revision: input.refused.as_ref().and_then(|rejected| rejected.revision),
    };
    let store_trouble = Some(store_trouble(code, why));
    PassDone { summary, outcomes: lines, changed, forgotten: Vec::new(), events: Vec::new(), store_trouble }
}

fn store_trouble(code: &str, why: &str) -> Refusal {
    Refusal::new(
        code,
        why,
        "a change that is not recorded would later be taken for somebody else's, so none is made; the host goes on looking",
        "make room for the host's store and let it be written; the next pass goes on by itself",
    )
}

#[cfg(test)]
mod tests;
