//! The units of a pass: each is decided when its turn has come, since whether it is to be restarted depends on what was
//! changed before it; they are looked at together. What a unit does after it was told to is what became of it: one that
//! does not stay up has failed.

use std::collections::HashMap;
use std::time::Duration;

use tenure_protocol::event::DRIFT_REPAIRED;
use tenure_protocol::id::Millis;
use tenure_protocol::outcome::{Origin, Outcome};
use tenure_protocol::resource::{Resource, ResourceKey, Spec, UnitSpec};

use super::apply::Engine;
use super::book::Verdict;
use super::item::{Act as Doing, Item};
use super::plan::drift;
use super::survey;
use crate::resource::unit::{Act, Active, Fired, Shown, Until, acts};
use crate::resource::{Seen, Site, Trouble};
use crate::store::{Intent, Record, State, Wanted};

/// How long what was started is given to fall over again.
const SETTLE: Duration = Duration::from_millis(1_500);
/// How often what is still on its way up is looked at again, and how many times.
const AGAIN: Duration = Duration::from_secs(1);
const MOST_LOOKS: usize = 30;

/// One that was started anew by itself so often, and the last time less than this ago, does not stay up.
const OFTEN: u64 = 2;
const YOUNG: Duration = Duration::from_secs(60);

/// One unit, with what is done with it.
struct Turn<'a> {
    resource: &'a Resource,
    spec: &'a UnitSpec,
    record: Option<&'a Record>,
    before: Seen,
    acts: Vec<Act>,
    /// What was changed that it restarts or reloads on.
    fired: Option<&'a ResourceKey>,
    /// What somebody else changed since we left it.
    drift: Option<String>,
    said: Result<(), Trouble>,
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
                Ok(mut turn) => match self.journal(&turn) {
                    Ok(()) => {
                        turn.act(&self.site);
                        turns.push(turn);
                    }
                    Err(verdict) => self.settle(item.resource, verdict),
                },
                Err(verdict) => self.settle(item.resource, verdict),
            }
        }
        let (first, last) = watch(&self.site, &turns);
        let ended: Vec<Ended<'a>> = turns.into_iter().map(|turn| self.end(turn, &first, &last)).collect();
        self.keep_units(ended);
    }

    /// Looks again where something was changed since the pass began, after the service manager has read what it has to.
    fn look_at_units(&mut self, taken: &[Item<'a>]) {
        let names: Vec<&str> = taken.iter().map(|item| item.resource.key.name()).collect();
        let unread = self.unit_files;
        self.reload_units();
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
            self.unit_files = true;
            self.reload_units();
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

    /// Has the service manager read its unit files anew, where one was changed.
    pub(super) fn reload_units(&mut self) {
        if std::mem::take(&mut self.unit_files)
            && let Err(trouble) = self.site.tools.daemon_reload()
            && trouble.code == "unit_failed"
        {
            tracing::warn!(why = trouble.reason, "the service manager has not read its unit files anew");
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
            said: Ok(()),
        })
    }

    /// One that ends again and again does not run, though whoever looks may find it up.
    fn stays(&self, spec: &UnitSpec, shown: &Shown) -> Result<(), Trouble> {
        let young = self.site.tools.age(shown.began).is_some_and(|age| age < YOUNG);
        if shown.again || shown.restarts >= OFTEN && young && !shown.passes {
            let (times, name) = (shown.restarts, &spec.name);
            let how = if shown.again { format!("; it ended with {}", shown.result) } else { String::new() };
            let reason = format!(
                "it was started anew by itself {times} times and does not stay up{how}; `journalctl -u {name}` on the \
                 machine says why"
            );
            return Err(Trouble::failed("unit_died", reason));
        }
        Ok(())
    }

    /// Notes that this unit is about to be restarted: whoever finds the note can tell whether it was (H-09).
    fn journal(&mut self, turn: &Turn<'a>) -> Result<(), Verdict> {
        let Seen::Unit(shown) = &turn.before else { return Ok(()) };
        if !turn.does(&[Act::Restart]) {
            return Ok(());
        }
        let (spec, began) = (turn.spec.clone(), shown.began);
        self.intend_also(vec![Intent {
            key: turn.resource.key.to_string(),
            module: turn.resource.module.as_str().to_owned(),
            origin: if turn.changes_state() { Origin::Changed } else { Origin::AlreadyThere },
            earlier: turn.before.state().unwrap_or(State::Absent),
            wanted: Wanted::Restarted { spec, began, on: self.triggers.on(turn.spec) },
            temporary: String::new(),
            drift: turn.drift.clone(),
        }]);
        self.halted_by_store().map_or(Ok(()), Err)
    }

    /// When it last began to run, on the clock of the records.
    fn began(&self, shown: &Shown) -> Option<Millis> {
        let age = self.site.tools.age(shown.began).filter(|_| shown.began > 0)?;
        Some(Millis(self.clock.now().minus(age).millis()))
    }

    fn end(&self, turn: Turn<'a>, first: &Looks, last: &Looks) -> Ended<'a> {
        if turn.acts.is_empty() {
            let record = self.unit_record(&turn, &turn.before, true);
            return Ended { resource: turn.resource, record, verdict: turn.unchanged(), drift: None };
        }
        let name = turn.spec.name.as_str();
        let never = || Err(Trouble::unknown("could_not_look", "it was not looked at again"));
        let last = last.get(name).cloned().unwrap_or_else(never);
        let worked = last.and_then(|mut last| {
            turn.credit(&mut last);
            turn.worked(&self.site, first.get(name), &last).map(|()| last)
        });
        match worked {
            Ok(last) => {
                let record = self.unit_record(&turn, &last, true);
                let verdict = turn.verdict();
                Ended { resource: turn.resource, record, verdict, drift: turn.drift }
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
        let (was_enabled, ran, by_us, on) = match turn.record.map(|record| &record.applied) {
            Some(State::Unit { enabled, running, masked, on }) => (*enabled, *running, *masked, on.clone()),
            Some(_) | None => (None, None, false, Default::default()),
        };
        let by_us = by_us || turn.does(&[Act::Mask]);
        // What is no longer declared, and still is as we left it, is ours to take back all the same.
        let hidden = shown.masked().is_some();
        let was_enabled = was_enabled.filter(|was| hidden || *was == shown.is_enabled());
        let applied = State::Unit {
            enabled: spec.enabled.map(|_| shown.is_enabled()).or(was_enabled),
            running: spec.running.map(|_| shown.is_up()).or(ran.filter(|ran| *ran == shown.is_up())),
            masked: by_us && spec.masked == Some(true) && shown.masked() == Some(Until::Undone),
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
    fn act(&mut self, site: &Site<'_>) {
        let Seen::Unit(shown) = &self.before else { return };
        let name = shown.real_name(&self.spec.name);
        self.said = self.acts.iter().try_for_each(|act| site.tools.act(*act, name));
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

    fn does(&self, wanted: &[Act]) -> bool {
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

    fn begins(&self) -> bool {
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

    /// It runs, as the same run, since it was first looked at.
    fn stays_up(&self, shown: &Shown, first: Option<&Result<Seen, Trouble>>) -> Result<(), Trouble> {
        let name = &self.spec.name;
        let died = |how: String| {
            let said = self.said.as_ref().err().map(|said| format!("; {}", said.reason)).unwrap_or_default();
            let reason = format!("{how}{said}; `journalctl -u {name}` on the machine says why");
            Err(Trouble::failed("unit_died", reason))
        };
        if shown.again {
            return died(format!(
                "it was started, ended with {}, and is to be started anew by itself",
                shown.result
            ));
        }
        if shown.active == Active::Starting {
            let reason = format!(
                "it is still on its way up after {MOST_LOOKS} s; systemd goes on with it, and the next pass looks again; \
                 `systemctl status {name}` says what it waits for"
            );
            return Err(Trouble::outstanding("unit_starting", reason));
        }
        if shown.active == Active::Failed || !shown.is_up() && shown.result != "success" {
            return died(format!("it was started and ended with {}", shown.result));
        }
        if !shown.is_up() {
            return match &self.said {
                Err(said) => Err(said.clone()),
                Ok(()) => died("it was started and does not run".to_owned()),
            };
        }
        match first {
            Some(Ok(Seen::Unit(first)))
                if !shown.passes
                    && first.is_up()
                    && (first.began != shown.began || shown.restarts > first.restarts) =>
            {
                died("it was started, ended, and was started anew by itself".to_owned())
            }
            Some(_) | None => Ok(()),
        }
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

type Looks = HashMap<String, Result<Seen, Trouble>>;

/// Looks at what was acted on, twice where something was started: first at once, then when it had time to fall over.
/// What is on its way up is waited for.
fn watch(site: &Site<'_>, turns: &[Turn<'_>]) -> (Looks, Looks) {
    let acted: Vec<&Turn<'_>> = turns.iter().filter(|turn| !turn.acts.is_empty()).collect();
    let mut last = looks(site, &acted);
    let begun: Vec<&Turn<'_>> = acted.into_iter().filter(|turn| turn.begins()).collect();
    if begun.is_empty() {
        return (Looks::new(), last);
    }
    for _ in 0..MOST_LOOKS {
        let rising = |turn: &&&Turn<'_>| match last.get(turn.spec.name.as_str()) {
            Some(Ok(Seen::Unit(shown))) => shown.active == Active::Starting && !shown.again,
            Some(_) | None => false,
        };
        let rising: Vec<&Turn<'_>> = begun.iter().filter(rising).copied().collect();
        if rising.is_empty() {
            break;
        }
        site.tools.rest(AGAIN);
        last.extend(looks(site, &rising));
    }
    let first = last.clone();
    site.tools.rest(SETTLE);
    last.extend(looks(site, &begun));
    (first, last)
}

fn looks(site: &Site<'_>, turns: &[&Turn<'_>]) -> Looks {
    let names: Vec<&str> = turns.iter().map(|turn| turn.spec.name.as_str()).collect();
    if !names.is_empty() {
        site.tools.look_at_units(&names);
    }
    let look =
        |turn: &&Turn<'_>| (turn.spec.name.as_str().to_owned(), site.observe(&turn.resource.spec, false));
    turns.iter().map(look).collect()
}
