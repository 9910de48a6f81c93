//! The declared resources of a pass in their order, each with what was decided about it. Where packages were installed
//! on the way, what comes after them is looked at and decided again: they bring users, files and units.

use std::collections::{HashMap, VecDeque};

use tenure_protocol::declaration::Declaration;
use tenure_protocol::id::Millis;
use tenure_protocol::outcome::Outcome;
use tenure_protocol::resource::{Resource, Spec};

use super::apply::Engine;
use super::book::Verdict;
use super::item::{Act, Item};
use super::plan::{self, Decision, Sight};
use super::{hold, survey};
use crate::resource::package::STILL_RUNNING;
use crate::resource::unit::Until;
use crate::resource::{Seen, Trouble};
use crate::store::{Intent, Record, State};
use crate::walk::change::temporary;

/// One resource, with what was decided.
pub(super) struct Turn<'a> {
    resource: &'a Resource,
    record: Option<&'a Record>,
    /// Whether what is there and is not ours is still kept: only the first look tells what was found.
    keeps_found: bool,
    decision: Decision,
    seen: Option<Seen>,
    /// The name of the new thing, before it is in its place.
    temporary: String,
}

impl<'a> Turn<'a> {
    pub(super) fn new(
        resource: &'a Resource,
        sight: Option<Result<Sight, Trouble>>,
        declaration: &Declaration,
        records: &'a HashMap<String, Record>,
        now: Millis,
    ) -> Self {
        let never = || Err(Trouble::failed("could_not_look", "its turn to be looked at never came"));
        let sight = sight.unwrap_or_else(never);
        let keeps_found = hold::keeps(&declaration.header, resource, &sight, records);
        let record = records.get(&resource.key.text());
        let decision = Decision::Keep(None);
        let mut turn = Self { resource, record, keeps_found, decision, seen: None, temporary: String::new() };
        turn.decide(Some(sight), now);
        turn
    }

    fn decide(&mut self, sight: Option<Result<Sight, Trouble>>, now: Millis) {
        let never = || Err(Trouble::failed("could_not_look", "its turn to be looked at never came"));
        let sight = sight.unwrap_or_else(never);
        self.decision = plan::decide(self.resource, self.record, &sight, self.keeps_found, now);
        self.keeps_found &= sight.is_err();
        self.seen = sight.ok().map(|sight| sight.seen);
    }

    /// What is about to be done, if anything may be, with a name for the new thing. One whose name the system has no
    /// randomness for is not done.
    fn intent(&mut self) -> Option<Intent> {
        let (origin, earlier, drift) = match (&self.decision, &self.seen) {
            (Decision::Change(change), seen) => {
                (change.origin, earlier(change, seen.as_ref()), change.drift.clone())
            }
            // A unit that something of this pass brings: by then its turn has come.
            (Decision::Stop(_), Some(seen @ Seen::Unit(_))) if self.record.is_none() && !seen.is_there() => {
                (tenure_protocol::outcome::Origin::Changed, seen.state()?, None)
            }
            (Decision::Keep(_) | Decision::Hold(_) | Decision::Stop(_), _) => return None,
        };
        if self.temporary.is_empty() && self.resource.key.path().is_some() {
            match temporary() {
                Ok(fresh) => self.temporary = fresh,
                Err(error) => {
                    let reason = format!("the system gives no randomness: {error}");
                    self.decision = Decision::Stop(Trouble::failed("io_error", reason));
                    return None;
                }
            }
        }
        Some(Intent {
            key: self.resource.key.text(),
            module: self.resource.module.as_str().to_owned(),
            origin,
            earlier,
            wanted: (&self.resource.spec).into(),
            temporary: self.temporary.clone(),
            drift,
        })
    }

    fn package(&self) -> Option<&'a str> {
        match &self.resource.spec {
            Spec::Package(spec) => Some(spec.name.as_str()),
            Spec::Directory(_) | Spec::File(_) | Spec::Unit(_) => None,
        }
    }

    /// The change that is due, for tests that stand between two of its steps.
    #[cfg(test)]
    pub(super) fn into_change(self) -> Option<Item<'a>> {
        let Self { resource, decision, seen, temporary, .. } = self;
        let Decision::Change(change) = decision else { return None };
        Some(Item { resource, act: Act::Change { seen: seen?, change, temporary } })
    }

    /// Whether the engine takes it; else what became of it is known already.
    const fn is_taken(&self) -> bool {
        match (&self.decision, &self.resource.spec) {
            (Decision::Hold(_), _)
            | (Decision::Keep(None), Spec::Package(_) | Spec::Directory(_) | Spec::File(_)) => false,
            (Decision::Stop(_), Spec::Package(_) | Spec::Directory(_) | Spec::File(_)) => false,
            (_, Spec::Unit(_)) | (Decision::Keep(Some(_)) | Decision::Change(_), _) => true,
        }
    }
}

/// What was there before us; of a mask, whether it is there now: else nobody could tell afterwards whose it is.
fn earlier(change: &plan::Change, seen: Option<&Seen>) -> State {
    match (change.earlier.clone(), seen) {
        (State::Unit { enabled, running, on, .. }, Some(Seen::Unit(shown))) => {
            let masked = shown.masked() == Some(Until::Undone);
            State::Unit { enabled, running, masked, mask: None, on }
        }
        (earlier, _) => earlier,
    }
}

/// Whether a package transaction of an earlier life of the host is still at work: what that one noted must stay.
pub(super) fn is_at_work(turns: &VecDeque<Turn<'_>>) -> bool {
    let mut decisions = turns.iter().map(|turn| &turn.decision);
    decisions.any(|decision| matches!(decision, Decision::Stop(trouble) if trouble.code == STILL_RUNNING))
}

/// What the pass is about to do.
pub(super) fn intents(turns: &mut VecDeque<Turn<'_>>) -> Vec<Intent> {
    turns.iter_mut().filter_map(Turn::intent).collect()
}

/// Works on all of it, in order.
pub(super) fn work<'a>(
    engine: &mut Engine<'a>,
    mut turns: VecDeque<Turn<'a>>,
    records: &HashMap<String, Record>,
) {
    let held = turns.iter().filter(|turn| matches!(turn.decision, Decision::Hold(_)));
    engine.kept = held.filter_map(Turn::package).collect();
    while let Some(turn) = turns.pop_front() {
        engine.make_way(turn.resource, turn.is_taken());
        if engine.take_moved() {
            turns.push_front(turn);
            look_again(engine, &mut turns, records);
        } else {
            take(engine, turn);
        }
    }
    engine.flush();
}

fn look_again(engine: &mut Engine<'_>, turns: &mut VecDeque<Turn<'_>>, records: &HashMap<String, Record>) {
    let open = |turn: &&mut Turn<'_>| !matches!(turn.decision, Decision::Hold(_));
    let resources: Vec<Option<&Resource>> =
        turns.iter_mut().filter(open).map(|turn| Some(turn.resource)).collect();
    let sights = survey::look(&engine.site.fresh(), None, &resources, records, &|_| {});
    for (turn, sight) in turns.iter_mut().filter(open).zip(sights) {
        turn.decide(sight, engine.book.now);
    }
    let intents = intents(turns);
    engine.intend_also(intents);
}

fn take<'a>(engine: &mut Engine<'a>, turn: Turn<'a>) {
    let Turn { resource, record, decision, seen, temporary, .. } = turn;
    match (decision, &resource.spec, seen) {
        (Decision::Hold(reason), _, _) => {
            engine.settle(resource, Verdict::because(Outcome::Held, "found", reason));
        }
        // Whether it is to be restarted is known when its turn has come.
        (decision, Spec::Unit(_), _) => {
            let due = !matches!(decision, Decision::Keep(_));
            engine.take(Item { resource, act: Act::Unit { record, due } });
        }
        (Decision::Keep(None), Spec::Package(spec), _) => engine.leave_package(resource, spec),
        (Decision::Keep(None), _, _) => engine.settle(resource, Verdict::plain(Outcome::Unchanged)),
        (Decision::Keep(Some(record)), _, _) => engine.take(Item { resource, act: Act::Record(record) }),
        (Decision::Stop(trouble), Spec::Package(_), _) => engine.stop_package(resource, trouble),
        (Decision::Stop(trouble), _, _) => engine.settle(resource, trouble.into()),
        (Decision::Change(change), _, Some(seen)) => {
            engine.take(Item { resource, act: Act::Change { seen, change, temporary } });
        }
        // A change is only decided about what was seen.
        (Decision::Change(_), _, None) => {}
    }
}
