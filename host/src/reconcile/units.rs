//! The units of a pass: each is decided when its turn has come, since whether it is to be restarted depends on what was
//! changed before it; they are looked at together. What a unit does after it was told to is what became of it: one that
//! does not stay up has failed.

use tenure_protocol::event::DRIFT_REPAIRED;
use tenure_protocol::id::Millis;
use tenure_protocol::outcome::{Origin, Outcome};
use tenure_protocol::resource::{Resource, ResourceKey, Spec, UnitSpec};

use super::apply::{Engine, GROUP};
use super::book::Verdict;
use super::item::{Act as Doing, Item};
use super::perform::{Task, changes_files};
use super::plan::drift;
use super::reread::Unread;
use super::standing::{Looks, watch};
use super::survey;
use crate::resource::unit::{Act, Fired, Shown, Until, acts};
use crate::resource::{Seen, Site, Trouble};
use crate::store::{Intent, Record, State, Wanted};

/// One unit, with what is done with it.
pub(super) struct Turn<'a> {
    pub(super) resource: &'a Resource,
    pub(super) spec: &'a UnitSpec,
    record: Option<&'a Record>,
    before: Seen,
    pub(super) acts: Vec<Act>,
    /// What was changed that it restarts or reloads on.
    fired: Option<&'a ResourceKey>,
    /// What somebody else changed since we left it.
    drift: Option<String>,
    /// Why it is not well, though it may be up when all is done.
    ails: Option<Trouble>,
    pub(super) said: Result<(), Trouble>,
}

impl<'a> Engine<'a> {
    pub(super) fn flush_units(&mut self, taken: &[Item<'a>]) {
        if self.leave_if_halted(taken) {
            return;
        }
        self.look_at_units(taken);
        let mut turns = Vec::with_capacity(taken.len());
        for item in taken {
            match self.unit_turn(item) {
                Ok(turn) => turns.push(turn),
                Err(verdict) => self.settle(item.resource, verdict),
            }
        }
        self.journal(&turns);
        if let Some(halted) = self.halted_by_store() {
            turns.into_iter().for_each(|turn| self.settle(turn.resource, turn.left(&halted)));
            return;
        }
        let tasks: Vec<Task<'_>> = turns.iter().map(Turn::task).collect();
        let said = self.perform(&tasks);
        turns.iter_mut().zip(said).for_each(|(turn, said)| turn.said = said);
        let (first, last) = watch(&self.site, &turns);
        let mut ended = turns.into_iter().map(|turn| self.end(turn, &first, &last)).collect::<Vec<_>>();
        while !ended.is_empty() {
            let rest = ended.split_off(ended.len().min(GROUP));
            self.keep_units(std::mem::replace(&mut ended, rest));
        }
    }

    /// Looks again where something was changed since the pass began, after the service manager has read what it has to.
    fn look_at_units(&mut self, taken: &[Item<'a>]) {
        let names: Vec<&str> = taken.iter().map(|item| item.resource.key.name()).collect();
        let unread = self.unread == Unread::Something;
        // Where it was refused the units that need it say so themselves.
        drop(self.reread_units());
        // What is only remembered is enough for leaving it, and not for acting on it.
        let acts = |item: &Item<'_>| item.changes() || self.is_fired(item);
        if self.touched || unread || self.site.tools.has_recalled(&names) && taken.iter().any(acts) {
            self.site.tools.look_at_units(&names);
        }
        let stale = |item: &Item<'_>| match self.site.observe(&item.resource.spec, false) {
            Ok(Seen::Unit(shown)) => shown.needs_reload,
            Ok(_) | Err(_) => false,
        };
        if taken.iter().any(stale) {
            self.unread = Unread::Something;
            drop(self.reread_units());
            self.site.tools.look_at_units(&names);
        }
    }

    fn is_fired(&self, item: &Item<'_>) -> bool {
        match (self.site.observe(&item.resource.spec, false), &item.resource.spec, &item.act) {
            (Ok(Seen::Unit(shown)), Spec::Unit(spec), Doing::Unit { record, .. }) => {
                self.triggers.fired(spec, *record, self.began(&shown)).0 != Fired::Nothing
            }
            (Ok(_) | Err(_), _, _) => false,
        }
    }

    fn unit_turn(&self, item: &Item<'a>) -> Result<Turn<'a>, Verdict> {
        let (Spec::Unit(spec), Doing::Unit { record, .. }) = (&item.resource.spec, &item.act) else {
            return Err(Trouble::failed("could_not_look", "this is no unit").into());
        };
        let before = survey::observe(&self.site, item.resource, *record, false).map_err(Verdict::from)?;
        let differs = self.site.differences(&item.resource.spec, &before).map_err(Verdict::from)?;
        let Seen::Unit(shown) = &before else {
            return Err(Trouble::failed("could_not_look", "this is no unit").into());
        };
        let (fired, key) = self.triggers.fired(spec, *record, self.began(shown));
        let acts = acts(spec, shown, fired);
        if acts.is_empty() && spec.running == Some(true) {
            self.stays(spec, shown).map_err(Verdict::from)?;
        }
        let ails = if fired == Fired::Nothing { self.ails(spec, *record, shown) } else { None };
        if !acts.is_empty()
            && let Some(verdict) = self.blocked(item.resource).or_else(|| self.halted())
        {
            return Err(verdict);
        }
        let fired = key.filter(|_| acts.iter().any(|act| matches!(act, Act::Restart | Act::Reload)));
        let drifted = record.filter(|_| !differs.is_empty()).and_then(|r| drift(&r.applied, &before));
        Ok(Turn {
            resource: item.resource,
            spec,
            record: *record,
            before,
            acts,
            fired,
            drift: drifted,
            ails,
            said: Ok(()),
        })
    }

    /// Notes which units are about to be restarted: whoever finds the note can tell whether they were (H-09). And that the
    /// service manager will have files to read, where it will.
    fn journal(&mut self, turns: &[Turn<'a>]) {
        let restart = |turn: &Turn<'a>| {
            let Seen::Unit(shown) = &turn.before else { return None };
            let (spec, began) = (turn.spec.clone(), shown.began);
            turn.does(&[Act::Restart]).then(|| Intent {
                key: turn.resource.key.to_string(),
                module: turn.resource.module.as_str().to_owned(),
                origin: if turn.changes_state() { Origin::Changed } else { Origin::AlreadyThere },
                earlier: turn.before.state().unwrap_or(State::Absent),
                wanted: Wanted::Restarted { spec, began, on: self.triggers.on(turn.spec) },
                temporary: String::new(),
                drift: turn.drift.clone(),
            })
        };
        self.intend_also(turns.iter().filter_map(restart).collect());
        if turns.iter().any(|turn| changes_files(&turn.acts)) {
            self.note_unread();
        }
    }

    /// When it last began to run, on the clock of the records.
    pub(super) fn began(&self, shown: &Shown) -> Option<Millis> {
        self.site.tools.began(shown, Millis(self.clock.now().millis()))
    }

    fn end(&self, turn: Turn<'a>, first: &Looks, last: &Looks) -> Ended<'a> {
        if turn.acts.is_empty() {
            let record = self.unit_record(&turn, &turn.before, true);
            return Ended { resource: turn.resource, record, verdict: turn.unchanged(), drift: None };
        }
        let name = turn.spec.name.as_str();
        let never = || Err(Trouble::unknown("could_not_look", "it was not looked at again"));
        let last = last.get(name).cloned().unwrap_or_else(never);
        let called_off = turn.said.as_ref().is_err_and(|said| said.code == "cancelled");
        let last = if called_off { turn.said.clone().and(last) } else { last };
        let worked = last.and_then(|mut last| {
            turn.credit(&mut last);
            self.note_falls(&turn, &last);
            turn.worked(&self.site, first.get(name), &last).map(|()| last)
        });
        match worked {
            Ok(last) => {
                let record = self.unit_record(&turn, &last, true);
                let resource = turn.resource;
                match turn.ails {
                    Some(ails) => Ended { resource, record, verdict: ails.into(), drift: None },
                    None => Ended { resource, record, verdict: turn.verdict(), drift: turn.drift },
                }
            }
            Err(trouble) => {
                // What we did with it is ours to take back, also where it did not help.
                let seen = self.site.observe(&turn.resource.spec, false).ok();
                let ours = turn.does(&[Act::Mask]) || turn.record.is_none() && turn.changes_state();
                let record = seen.and_then(|seen| {
                    let lost = || survey::without_lost_mask(turn.record?, &seen);
                    if ours { self.unit_record(&turn, &seen, false) } else { lost() }
                });
                Ended { resource: turn.resource, record, verdict: trouble.into(), drift: None }
            }
        }
    }

    /// The record of a unit; none where it says that already. `began`: it runs with all that it restarts on.
    fn unit_record(&self, turn: &Turn<'a>, seen: &Seen, began: bool) -> Option<Record> {
        let Seen::Unit(shown) = seen else { return None };
        let spec = turn.spec;
        let (was_enabled, ran, on) = match turn.record.map(|record| &record.applied) {
            Some(State::Unit { enabled, running, on, .. }) => (*enabled, *running, on.clone()),
            Some(_) | None => (None, None, Default::default()),
        };
        let wears_ours = matches!(&turn.before, Seen::Unit(before) if before.masked_by_us);
        let by_us = wears_ours || turn.does(&[Act::Mask]);
        let masked = by_us && spec.masked == Some(true) && shown.masked() == Some(Until::Undone);
        // What is no longer declared, and still is as we left it, is ours to take back all the same.
        let hidden = shown.masked().is_some();
        let was_enabled = was_enabled.filter(|was| hidden || *was == shown.is_enabled());
        let applied = State::Unit {
            enabled: spec.enabled.map(|_| shown.is_enabled()).or(was_enabled),
            running: spec.running.map(|_| shown.is_up()).or(ran.filter(|ran| *ran == shown.is_up())),
            masked,
            mask: shown.mask.filter(|_| masked),
            on: if began { self.triggers.on(spec) } else { on },
        };
        let module = turn.resource.module.as_str();
        match turn.record {
            Some(record) if record.applied == applied && record.module == module && turn.acts.is_empty() => {
                None
            }
            Some(record) => {
                Some(Record { module: module.to_owned(), applied, recorded_at: self.now(), ..record.clone() })
            }
            None => Some(Record {
                key: turn.resource.key.to_string(),
                module: module.to_owned(),
                origin: if turn.changes_state() { Origin::Changed } else { Origin::AlreadyThere },
                earlier: turn.before.state()?,
                applied,
                recorded_at: self.now(),
            }),
        }
    }

    fn keep_units(&mut self, ended: Vec<Ended<'a>>) {
        let records = ended.iter().filter_map(|ended| ended.record.clone()).collect();
        let event = |ended: &Ended<'a>| {
            let drift = ended.drift.as_ref()?;
            Some(self.book.event(DRIFT_REPAIRED, &ended.resource.key.to_string(), drift))
        };
        let events = ended.iter().filter_map(event).collect();
        self.keep(records, events);
        for Ended { resource, verdict, .. } in ended {
            let verdict = match self.halted_by_store() {
                Some(halted) if verdict.outcome == Outcome::Applied => halted,
                Some(_) | None => verdict,
            };
            self.settle(resource, verdict);
        }
    }
}

/// What became of one.
struct Ended<'a> {
    resource: &'a Resource,
    record: Option<Record>,
    verdict: Verdict,
    drift: Option<String>,
}

impl Turn<'_> {
    fn task(&self) -> Task<'_> {
        let name = if let Seen::Unit(shown) = &self.before {
            shown.real_name(&self.spec.name)
        } else {
            self.spec.name.as_str()
        };
        Task { name, acts: &self.acts }
    }

    /// What is said of it where nothing is done.
    fn left(&self, halted: &Verdict) -> Verdict {
        if self.acts.is_empty() { self.unchanged() } else { halted.clone() }
    }

    /// By which name systemd knows it, where it is declared by another one (O-16).
    fn alias(&self) -> Option<String> {
        let Seen::Unit(shown) = &self.before else { return None };
        let (name, real) = (self.spec.name.as_str(), shown.real_name(&self.spec.name));
        (name != real).then(|| format!("{name} is another name of {real}"))
    }

    fn unchanged(&self) -> Verdict {
        match self.alias() {
            Some(alias) => Verdict::because(Outcome::Unchanged, "alias", alias),
            None => Verdict::plain(Outcome::Unchanged),
        }
    }

    pub(super) fn does(&self, wanted: &[Act]) -> bool {
        self.acts.iter().any(|act| wanted.contains(act))
    }

    /// Whether it was brought to another state, not only restarted.
    fn changes_state(&self) -> bool {
        self.does(&[
            Act::Enable,
            Act::Disable,
            Act::DisableUntilBoot,
            Act::Start,
            Act::Stop,
            Act::Mask,
            Act::Unmask,
        ])
    }

    /// One that does its work and ends is forgotten by systemd: that it did so is what the act itself has said, which
    /// waits for it.
    fn credit(&self, last: &mut Seen) {
        if let (Seen::Unit(shown), Ok(())) = (last, &self.said)
            && self.does(&[Act::Start, Act::Restart, Act::Await])
        {
            shown.has_run();
        }
    }

    pub(super) fn begins(&self) -> bool {
        self.does(&[Act::Start, Act::Restart, Act::Reload, Act::Await])
    }

    /// Whether all that was to be done is there to be seen.
    fn worked(
        &self,
        site: &Site<'_>,
        first: Option<&Result<Seen, Trouble>>,
        last: &Seen,
    ) -> Result<(), Trouble> {
        let (Seen::Unit(before), Seen::Unit(shown)) = (&self.before, last) else {
            return Err(Trouble::unknown("could_not_look", "it was not looked at again"));
        };
        if self.begins() {
            self.stays_up(shown, first)?;
        }
        let unsaid = |reason: String| match &self.said {
            Err(said) => said.clone(),
            Ok(()) => Trouble::failed("not_as_written", reason),
        };
        if self.does(&[Act::Restart]) && shown.began == before.began && !shown.passes {
            return Err(unsaid("it was restarted, and looked at again it runs on as before".to_owned()));
        }
        let differs = site.differences(&self.resource.spec, last)?;
        if !differs.is_empty() {
            let word = &shown.unit_file;
            let reason = format!(
                "it was changed, and looked at again {} (systemd calls it {word})",
                differs.join(", ")
            );
            return Err(unsaid(reason));
        }
        // Whether it has read its configuration anew nobody can see.
        if self.does(&[Act::Reload]) { self.said.clone() } else { Ok(()) }
    }

    fn verdict(&self) -> Verdict {
        let drift = self.drift.as_ref().map(|drift| format!("repaired: {drift}"));
        let word = if self.does(&[Act::Restart]) { "restarted" } else { "reloaded" };
        let fired = self.fired.map(|key| format!("{word}, since {key} was changed"));
        let alias = self.alias();
        let code = if drift.is_some() {
            Some("drift")
        } else if fired.is_some() {
            Some(word)
        } else {
            alias.is_some().then_some("alias")
        };
        let reason: Vec<String> = [drift, fired, alias].into_iter().flatten().collect();
        Verdict { outcome: Outcome::Applied, code, reason: (!reason.is_empty()).then(|| reason.join("; ")) }
    }
}
