//! One pass, on a worker thread: recover what was begun, look at everything, decide, note what is about to be done, do
//! it, let go of what left, and keep what became of it all. It never fails as a whole: what cannot be read or written
//! is said of each resource it concerns. Called by the reconcile actor and by `tenure-host apply`.

use std::collections::{HashMap, HashSet, VecDeque};
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
use tenure_protocol::report::{Counts, Digesting, Summary, Trigger};

use super::agenda::{self, Turn};
use super::apply::Engine;
use super::book::{Book, Closed, Verdict};
use super::memory::{Found, Looked};
use super::places::Places;
use super::plan::{Sight, arrange};
use super::{leave, recover, release, survey};
use crate::ground::Ground;
use crate::ground::own::Own;
use crate::program::Programs;
use crate::resource::package::STILL_RUNNING;
use crate::resource::{Accounts, Recall, Seen, Site, Tools, Trouble};
use crate::store::{Record, Remembered, Store, StoreTrouble};
use crate::walk::{WalkError, Walker};

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
    /// Set: the pass ends after the group it works on, and the one that is in place by then; what is left is outstanding.
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
    /// What happened; already in the spool, if it was kept.
    pub events: Vec<NodeEvent>,
    /// Whether the store has all of this.
    pub kept: bool,
    /// Why the store could not be read or written, if it could not: then nothing more was changed (O-05).
    pub store_trouble: Option<StoreTrouble>,
}

/// What the store knew when the pass began.
struct Known {
    records: HashMap<String, Record>,
    previous: HashMap<String, Remembered>,
    pass: u64,
    outside: Outside,
}

/// What became of everything that the pass does not look at.
#[derive(Debug, Clone, Copy, Default)]
struct Outside {
    counts: Counts,
    digesting: Digesting,
}

/// What the store has of all that is ours, and of the last pass.
pub(super) struct Rows {
    records: HashMap<String, Record>,
    previous: HashMap<String, Remembered>,
}

impl Rows {
    pub(super) fn read(store: &Store) -> Result<Self, DatabaseError> {
        Ok(Self { records: store.records()?, previous: store.last_outcomes()? })
    }
}

impl Known {
    fn of(store: &Store, rows: Result<Rows, DatabaseError>) -> Result<Self, DatabaseError> {
        let kept = store.last_pass()?.map_or(0, |summary| summary.pass);
        let Rows { records, previous } = rows?;
        // What is open can be read still, but nothing of what is done could be found again.
        store.in_place()?;
        Ok(Self { records, previous, pass: store.next_pass(kept), outside: Outside::default() })
    }

    /// What concerns these resources; `before`: the summary of the last pass, over all there are. None where the store
    /// says of one of them nothing that was summed up in it.
    fn of_part(
        store: &Store,
        declaration: &Declaration,
        before: &Summary,
    ) -> Result<Option<Self>, DatabaseError> {
        let keys: Vec<String> = declaration.entries.iter().map(Entry::key).collect();
        let Some(kept) = store.last_pass()?.filter(|kept| kept.digest == before.digest) else {
            return Ok(None);
        };
        let (records, previous) = (store.records_of(&keys)?, store.last_outcomes_of(&keys)?);
        if previous.len() != keys.len() {
            return Ok(None);
        }
        let mut outside = Outside { counts: before.counts, digesting: Digesting::from(before.digest) };
        for Remembered { line, .. } in previous.values() {
            outside.counts.take(line.outcome);
            outside.digesting.outcome(line);
        }
        Ok(Some(Self { records, previous, pass: store.next_pass(kept.pass), outside }))
    }
}

/// Runs one pass: looks at everything, changes what differs, reads it back, records it, and keeps outcomes and events.
pub fn run(input: &PassInput<'_>) -> PassDone {
    run_with(input, &Recall::default(), Rows::read(input.store)).0
}

/// The same; what was read before and is untouched since is not read again. `rows`: what is read while nothing else
/// changes it, since passes do not overlap. Also returns what was looked at, if everything was, and what else was found
/// where that can stand.
pub(super) fn run_with(
    input: &PassInput<'_>,
    recall: &Recall,
    rows: Result<Rows, DatabaseError>,
) -> (PassDone, Option<(Looked, Option<Found>)>) {
    let now = Millis(input.clock.now().millis());
    let known = match Known::of(input.store, rows) {
        Ok(known) => known,
        Err(error) => {
            let trouble = StoreTrouble::of(&error);
            let why = trouble.refusal.happened.clone();
            return (blind(input, now, "store_unreadable", &why, Some(trouble)), None);
        }
    };
    let look = |survey: &Surveyed<'_>| {
        let Surveyed { site, declaration, records, sights } = survey;
        Looked::of(site, now, declaration, records, sights)
    };
    match go(input, (now, known), (recall, Scope::Whole), look) {
        Ok(Ran { done, looked, found }) => (done, looked.map(|looked| (looked, found))),
        Err(error) => (blind(input, now, "could_not_look", &chain(&error), None), None),
    }
}

/// What a pass over a part of what is declared came to.
pub(super) struct RanPart {
    pub(super) done: PassDone,
    /// What was there before anything was changed, by position, none where nobody could look; and the keys of which a
    /// record was written. None where that cannot stand until the next pass.
    pub(super) stands: Option<(Vec<Option<Seen>>, HashSet<String>)>,
}

/// A pass over a part of what is declared, all of whose rest is as in `before`, the summary of the last pass. None where
/// nobody could look, or not all that was done could be kept: an ordinary pass is to follow.
pub(super) fn run_part(input: &PassInput<'_>, before: &Summary) -> Option<RanPart> {
    let now = Millis(input.clock.now().millis());
    let known = Known::of_part(input.store, input.declaration.as_deref()?, before).ok()??;
    let look = |survey: &Surveyed<'_>| -> Vec<Option<Seen>> {
        let seen = |sight: &Option<Result<Sight, Trouble>>| Some(sight.as_ref()?.as_ref().ok()?.seen.clone());
        survey.sights.iter().map(seen).collect()
    };
    let Ran { done, looked, found } =
        go(input, (now, known), (&Recall::default(), Scope::Part), look).ok()?;
    let is_kept = done.kept && done.store_trouble.is_none();
    is_kept.then(|| RanPart { done, stands: looked.zip(found.map(|found| found.recorded)) })
}

/// How much of what is ours a declaration speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// All of it: what it does not name has left.
    Whole,
    /// Some of it: it says nothing of the rest.
    Part,
}

/// What was seen of everything, before anything is changed.
struct Surveyed<'s> {
    site: &'s Site<'s>,
    declaration: &'s Declaration,
    records: &'s HashMap<String, Record>,
    sights: &'s [Option<Result<Sight, Trouble>>],
}

/// What a pass came to; `found`: where what was looked at can stand until the next.
struct Ran<T> {
    done: PassDone,
    looked: Option<T>,
    found: Option<Found>,
}

fn go<T>(
    input: &PassInput<'_>,
    (now, known): (Millis, Known),
    (recall, scope): (&Recall, Scope),
    look: impl FnOnce(&Surveyed<'_>) -> T,
) -> Result<Ran<T>, WalkError> {
    let begun = Instant::now();
    let tools = Tools::new(input.ground, input.programs, Some(input.store), input.cancelled)
        .remembering(input.store.units());
    if input.programs.is_some() {
        // Packages bring accounts and files: before anybody looks.
        tools.finish_packages();
    }
    let own = Own::look(input.ground);
    let walker = Walker::new(input.ground, &own)?.only_looking();
    let accounts = Arc::new(Accounts::read(&walker));
    let site = Site {
        walker,
        accounts: Arc::clone(&accounts),
        contents: input.store,
        sets_owner: !input.ground.is_sandbox(),
        tools: &tools,
        recall: Some(recall),
        together: None,
    };
    let Known { mut records, previous, pass, outside } = known;
    let book = Book::new(pass, now, previous, input.progress);
    let mut engine = Engine::new(site, input.store, book, input.clock, input.cancelled);
    match recover::recover(&mut engine, &mut records) {
        Ok(unsettled) => {
            engine.unsettled = unsettled.keys().cloned().collect();
            engine.unseen = unsettled.into_iter().filter_map(|(key, why)| Some((key, why?))).collect();
        }
        Err(error) => {
            engine.stop(&error);
            // What was begun before is not known to be ours yet.
            engine.unrecorded = true;
        }
    }
    let (mut looked, mut respelt) = (None, false);
    if let Some(declaration) = &input.declaration {
        let places = Places::of(&engine.site, declaration);
        if scope == Scope::Whole {
            let (ours, no_longer) = places.respell(&engine.site, declaration, &mut records);
            respelt = !ours.is_empty();
            if let Err(error) = input.store.record(ours, no_longer, Vec::new()) {
                engine.stop(&error);
            }
        }
        looked = reconcile(&mut engine, (declaration, scope), &records, &places, (input.looked, look));
    }
    engine.end_rereading();
    let is_settled = engine.unsettled.is_empty() && !engine.unrecorded && !engine.noted_unread && !respelt;
    let recorded = std::mem::take(&mut engine.recorded);
    let done = conclude(input, engine, begun, outside);
    let stands = is_settled && done.kept && done.store_trouble.is_none();
    Ok(Ran { done, looked, found: stands.then_some(Found { own, accounts, recorded }) })
}

fn reconcile<'a, T>(
    engine: &mut Engine<'a>,
    (declaration, scope): (&'a Declaration, Scope),
    records: &'a HashMap<String, Record>,
    places: &Places<'_>,
    (looked, look): (&(dyn Fn(usize) + Sync), impl FnOnce(&Surveyed<'_>) -> T),
) -> Option<T> {
    let (before, after) = match scope {
        Scope::Whole => leave::leaving(records, declaration),
        Scope::Part => (Vec::new(), Vec::new()),
    };
    engine.know(declaration, records);
    engine.book.total = declaration.entries.len() + before.len() + after.len();
    release::let_go(engine, &before, records, places, true);
    let order = arrange(declaration);
    let mut sights = survey::survey(&engine.site, declaration, records, places, looked);
    let lost = survey::without_lost_masks(declaration, records, &sights);
    if !lost.is_empty() {
        engine.keep(lost, Vec::new());
    }
    let looked = look(&Surveyed { site: &engine.site, declaration, records, sights: &sights });
    let mut turns = VecDeque::with_capacity(order.len());
    let unseen = std::mem::take(&mut engine.unseen);
    for at in order {
        match declaration.entries.get(at) {
            Some(Entry::Unsupported(unsupported)) => refuse(engine, unsupported),
            Some(Entry::Known(resource)) => match unseen.get(&resource.key.text()) {
                Some(unseen) if unseen.holds_back(&resource.spec) => {
                    engine.settle(resource, unseen.trouble.clone().into());
                }
                Some(_) | None => {
                    let sight = sights.get_mut(at).and_then(Option::take);
                    turns.push_back(Turn::new(resource, sight, declaration, records, engine.book.now));
                }
            },
            None => {}
        }
    }
    let mut intents = agenda::intents(&mut turns);
    intents.extend(after.iter().map(|record| release::intent(record)));
    if unseen.values().any(|unseen| unseen.trouble.code == STILL_RUNNING) || agenda::is_at_work(&turns) {
        engine.unrecorded = true;
        engine.intend_also(intents);
    } else {
        engine.intend(intents);
    }
    agenda::work(engine, turns, records);
    release::let_go(engine, &after, records, places, false);
    Some(looked)
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
fn conclude(input: &PassInput<'_>, engine: Engine<'_>, begun: Instant, outside: Outside) -> PassDone {
    let Engine { book, stopped, unrecorded, unsettled, .. } = engine;
    let (pass, started) = (book.pass, book.now);
    let Closed { lines, changed, remember, forgotten, events, unspooled } = book.close();
    let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let mut summary = summary(input, (pass, started), outside, &lines);
    summary.took_ms = took_ms;
    say_in(&mut summary, stopped.as_ref());
    let kept = input.store.put_pass(
        &summary,
        remember,
        forgotten.clone(),
        unspooled,
        (!unrecorded).then_some(unsettled),
    );
    let is_kept = kept.is_ok();
    let store_trouble = stopped.or_else(|| kept.err().map(|error| StoreTrouble::of(&error)));
    say_in(&mut summary, store_trouble.as_ref());
    PassDone { summary, outcomes: lines, changed, forgotten, events, kept: is_kept, store_trouble }
}

fn summary(
    input: &PassInput<'_>,
    (pass, started): (u64, Millis),
    outside: Outside,
    lines: &[ResourceOutcome],
) -> Summary {
    let declaration = input.declaration.as_ref();
    let Outside { mut counts, mut digesting } = outside;
    for line in lines {
        counts.add(line.outcome);
        digesting.outcome(line);
    }
    Summary {
        pass,
        trigger: input.trigger,
        revision: declaration.map(|declaration| declaration.header.revision()),
        started,
        took_ms: 0,
        counts,
        owned: input.store.owned_count().unwrap_or_default(),
        digest: digesting.end(),
        refused: input.refused.as_ref().map(|rejected| rejected.why.clone()),
        refused_revision: input.refused.as_ref().and_then(|rejected| rejected.revision),
    }
}

/// A pass that the store stopped says so upward too, where nothing else is to be said of a declaration.
fn say_in(summary: &mut Summary, trouble: Option<&StoreTrouble>) {
    if summary.refused.is_none() {
        summary.refused = trouble.map(|trouble| trouble.refusal.clone());
    }
}

/// A pass that does not know what is ours, or cannot look: it changes nothing and says of each resource that nobody
/// could look.
fn blind(
    input: &PassInput<'_>,
    now: Millis,
    code: &'static str,
    why: &str,
    store_trouble: Option<StoreTrouble>,
) -> PassDone {
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
    let kept = input.store.last_pass().ok().flatten().map_or(0, |summary| summary.pass);
    let mut summary = summary(input, (input.store.next_pass(kept), now), Outside::default(), &lines);
    say_in(&mut summary, store_trouble.as_ref());
    let (forgotten, events) = (Vec::new(), Vec::new());
    PassDone { summary, outcomes: lines, changed, forgotten, events, kept: false, store_trouble }
}

#[cfg(test)]
mod tests;
