//! Making the planned changes, in groups: everything is written beside and synced first, many at the same time; then it
//! is put in place; then each directory is synced once; then everything is looked at again on a fresh walk; then all
//! that is as declared is recorded in one transaction; and only then is any of it said. A kill between any two of these
//! leaves intents by which the next pass knows what is ours.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use tenure_actors::clock::Clock;
use tenure_actors::database::DatabaseError;
use tenure_protocol::declaration::Declaration;
use tenure_protocol::event::{DRIFT_REPAIRED, NodeEvent, PACKAGE_REMARK};
use tenure_protocol::id::Millis;
use tenure_protocol::outcome::{Origin, Outcome};
use tenure_protocol::resource::{Resource, ResourceKey, Spec};

use super::attempt::{Attempt, place, sync};
use super::book::{Book, Verdict};
use super::item::{Item, NOT_AS_WRITTEN};
use super::lane::{Lane, lane};
use super::recover::Unseen;
use super::reread::Unread;
use super::trigger::Triggers;
use crate::ground::own::is_unit_file;
use crate::resource::package::{Declared, Names};
use crate::resource::{Remark, Site, Trouble};
use crate::store::{Intent, LEAST_ROOM, Record, Store, StoreTrouble};

/// The most resources of one group, and of one transaction (H-09).
pub(super) const GROUP: usize = 64;

/// What makes changes, and stops making them when they could not be recorded.
pub(super) struct Engine<'a> {
    pub(super) site: Site<'a>,
    pub(super) store: &'a Store,
    pub(super) book: Book<'a>,
    pub(super) clock: &'a dyn Clock,
    pub(super) cancelled: &'a AtomicBool,
    /// Why nothing more is changed.
    pub(super) stopped: Option<StoreTrouble>,
    /// Something was changed and could not be recorded: its intent must stay.
    pub(super) unrecorded: bool,
    /// What was begun at its place and has no record yet: its intents stay (H-09).
    pub(super) unsettled: HashSet<String>,
    /// Those of them that nobody could look at before anything else was looked at.
    pub(super) unseen: HashMap<String, Unseen>,
    /// Keys that something needs, and whether they are as declared.
    pub(super) needed: HashMap<&'a ResourceKey, Option<bool>>,
    /// What is declared of packages, and which of those we brought are no longer declared.
    pub(super) packages: Declared<'a>,
    pub(super) may_go: Names<'a>,
    /// Packages that were found and are kept.
    pub(super) kept: Names<'a>,
    /// What units restart and reload on.
    pub(super) triggers: Triggers,
    /// Packages were changed: what comes after is looked at again.
    pub(super) moved: bool,
    /// Something was changed in this pass.
    pub(super) touched: bool,
    /// The keys that were recorded in this pass.
    pub(super) recorded: HashSet<String>,
    /// What the service manager has not read yet of the files of its units, and whether that is noted in the store.
    pub(super) unread: Unread,
    pub(super) noted_unread: bool,
    /// What was taken and not yet done, and the keys of it.
    taken: Vec<Item<'a>>,
    pending: HashSet<&'a ResourceKey>,
}

/// A group that was made and looked at again, before it is recorded.
pub(super) struct Made<'g, 'a> {
    group: &'g [Item<'a>],
    /// What came of each, and what is to be said of it besides.
    came: Vec<Result<Option<Remark>, Trouble>>,
    records: Vec<Record>,
    events: Vec<NodeEvent>,
}

impl<'a> Engine<'a> {
    pub(super) fn new(
        site: Site<'a>,
        store: &'a Store,
        book: Book<'a>,
        clock: &'a dyn Clock,
        cancelled: &'a AtomicBool,
    ) -> Self {
        Self {
            site,
            store,
            book,
            clock,
            cancelled,
            stopped: None,
            unrecorded: false,
            unsettled: HashSet::new(),
            unseen: HashMap::new(),
            needed: HashMap::new(),
            packages: Declared::new(),
            may_go: Names::new(),
            kept: Names::new(),
            triggers: Triggers::default(),
            moved: false,
            touched: false,
            recorded: HashSet::new(),
            unread: Unread::Nothing,
            noted_unread: false,
            taken: Vec::new(),
            pending: HashSet::new(),
        }
    }

    /// What is declared, and what of it has to be kept in mind.
    pub(super) fn know(&mut self, declaration: &'a Declaration, records: &'a HashMap<String, Record>) {
        let resources = || declaration.resources();
        self.needed = resources().flat_map(|resource| &resource.needs).map(|need| (need, None)).collect();
        self.triggers = Triggers::new(declaration, records);
        let package = |resource: &'a Resource| match &resource.spec {
            Spec::Package(spec) => Some((spec.name.as_str(), &spec.wanted)),
            Spec::Directory(_) | Spec::File(_) | Spec::Unit(_) => None,
        };
        self.packages = resources().filter_map(package).collect();
        let created = records.values().filter(|record| record.origin == Origin::Created);
        let ours = created.filter_map(|record| record.key.strip_prefix("package:"));
        self.may_go = ours.filter(|name| !self.packages.contains_key(name)).collect();
    }

    /// The time of day.
    pub(super) fn now(&self) -> Millis {
        Millis(self.clock.now().millis())
    }

    /// Writes what became of a declared resource.
    pub(super) fn settle(&mut self, resource: &'a Resource, verdict: Verdict) {
        if matches!(verdict.outcome, Outcome::Applied | Outcome::Removed) {
            self.touched = true;
            self.triggers.changed(&resource.key.text());
        }
        if let Some(needed) = self.needed.get_mut(&resource.key) {
            *needed = Some(verdict.outcome.is_as_declared());
        }
        self.book.write(&resource.key.text(), resource.module.as_str(), verdict);
    }

    /// Does what was taken before, where the next one needs it, follows it, or is worked on otherwise. `is_taken`: the
    /// next one is taken too. Packages are done before anything else is, since it is looked at again after them.
    pub(super) fn make_way(&mut self, resource: &Resource, is_taken: bool) {
        let Some(last) = self.taken.last() else { return };
        let (lane, next) = (lane(last.resource), lane(resource));
        let mut before = resource.needs.iter().chain(resource.spec.follows());
        let waits = before.any(|need| self.pending.contains(need));
        let full = self.taken.len() >= lane.most();
        if is_taken && (waits || lane != next || full) || lane == Lane::Packages && next != Lane::Packages {
            self.flush();
        }
    }

    /// Whether packages were changed since it was last asked.
    pub(super) fn take_moved(&mut self) -> bool {
        std::mem::take(&mut self.moved)
    }

    /// Takes one more, after [`Engine::make_way`].
    pub(super) fn take(&mut self, item: Item<'a>) {
        match self.blocked(item.resource) {
            Some(verdict) if item.changes() => self.settle(item.resource, verdict),
            Some(_) | None => {
                self.pending.insert(&item.resource.key);
                self.taken.push(item);
            }
        }
    }

    /// Only edges block, and only on what is not as declared (H-10).
    pub(super) fn blocked(&self, resource: &Resource) -> Option<Verdict> {
        let failed = |need: &&ResourceKey| self.needed.get(need).copied().flatten() != Some(true);
        let need = resource.needs.iter().find(failed)?;
        let reason = format!("it needs {need}, which is not as declared");
        Some(Verdict::because(Outcome::Outstanding, "needs_failed", reason))
    }

    /// Why nothing is changed now, if nothing is.
    pub(super) fn halted(&self) -> Option<Verdict> {
        let cancelled = || self.cancelled.load(Ordering::Relaxed).then(Trouble::cancelled);
        self.unwritable().or_else(cancelled).map(Verdict::from)
    }

    /// Why nothing more can be recorded, if nothing can.
    pub(super) fn unwritable(&self) -> Option<Trouble> {
        let trouble = self.stopped.as_ref()?;
        let why = format!("nothing is changed while it could not be recorded: {}", trouble.refusal.happened);
        Some(Trouble::outstanding("store_unwritable", why))
    }

    /// Stops all further changes: they could not be recorded (O-05).
    pub(super) fn stop(&mut self, error: &DatabaseError) {
        self.stopped = Some(StoreTrouble::of(error));
    }

    /// Begins nothing where what is begun might not be recorded any more.
    fn stop_without_room(&mut self, intents: &[Intent]) {
        let left = self.store.room().filter(|left| *left < LEAST_ROOM && !intents.is_empty());
        self.stopped = self.stopped.take().or_else(|| left.map(StoreTrouble::no_room));
    }

    /// Notes what is about to be done, unless nothing will be.
    pub(super) fn intend(&mut self, intents: Vec<Intent>) {
        self.stop_without_room(&intents);
        // What an earlier pass noted and nobody could record yet must not be forgotten over it.
        if self.stopped.is_none()
            && let Err(error) = self.store.intend(intents, &self.unsettled)
        {
            self.stop(&error);
        }
    }

    /// Notes more of it.
    pub(super) fn intend_also(&mut self, intents: Vec<Intent>) {
        self.stop_without_room(&intents);
        if self.stopped.is_none()
            && let Err(error) = self.store.intend_also(intents)
        {
            self.stop(&error);
        }
    }

    /// Does what was taken.
    pub(super) fn flush(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        self.pending.clear();
        match taken.first().map(|item| lane(item.resource)) {
            None => {}
            Some(Lane::Packages) => self.flush_packages(&taken),
            Some(Lane::Small) => self.flush_small(&taken),
            Some(Lane::Large) => self.flush_large(&taken),
            Some(Lane::Units) => self.flush_units(&taken),
        }
    }

    fn flush_small(&mut self, taken: &[Item<'a>]) {
        for group in taken.chunks(GROUP) {
            self.note_changes(group);
            if !self.leave_if_halted(group) {
                let site = self.site.fresh();
                let placed = group.iter().map(|item| place(item.prepare(&site))).collect();
                self.finish(group, placed);
            }
        }
    }

    /// Notes what the service manager will have to read of a group.
    pub(super) fn note_changes(&mut self, group: &[Item<'a>]) {
        if group.iter().any(|item| item.changes() && is_unit_file(&item.resource.key)) {
            self.note_unread();
        }
    }

    /// Says of a whole group that its turn did not come, if it does not.
    pub(super) fn leave_if_halted(&mut self, group: &[Item<'a>]) -> bool {
        let Some(halted) = self.halted() else { return false };
        for item in group {
            let verdict = if item.changes() { halted.clone() } else { Verdict::plain(Outcome::Unchanged) };
            self.settle(item.resource, verdict);
        }
        true
    }

    /// Syncs what was put in place, looks at it again, records it, and says it.
    pub(super) fn finish(&mut self, group: &[Item<'a>], attempts: Vec<Attempt>) {
        let made = self.look_back(group, attempts);
        self.record(made);
    }

    /// Syncs what was put in place, and looks at it again.
    pub(super) fn look_back<'g>(&mut self, group: &'g [Item<'a>], attempts: Vec<Attempt>) -> Made<'g, 'a> {
        let begun: Vec<bool> = attempts.iter().map(|attempt| attempt.begun).collect();
        let unsynced = sync(attempts.iter().filter_map(|attempt| attempt.placed.as_ref().ok()?.as_ref()));
        let is_unit = |item: &Item<'_>| is_unit_file(&item.resource.key);
        if group.iter().zip(&begun).any(|(item, begun)| *begun && is_unit(item)) {
            self.unread = Unread::Something;
        }
        let again = self.site.fresh();
        let look = |(item, attempt): (&Item<'_>, Attempt)| -> Result<_, Trouble> {
            let note = match attempt.placed? {
                Some(placed) => match unsynced.get(&placed.dir.inode()) {
                    Some(why) => return Err(Trouble::failed("io_error", why.clone())),
                    None => placed.note,
                },
                None => None,
            };
            Ok((item.verify(&again, self.now())?, note))
        };
        let made: Vec<_> = group.iter().zip(attempts).map(look).collect();
        let mut altered = Vec::new();
        for ((item, begun), made) in group.iter().zip(begun).zip(&made) {
            let Err(trouble) = made else { continue };
            match item.altered(&self.site, self.book.now).filter(|_| begun && trouble.code == NOT_AS_WRITTEN)
            {
                Some(record) => altered.push(record),
                None if begun => drop(self.unsettled.insert(item.resource.key.text())),
                None => {}
            }
        }
        self.made(group, made, altered)
    }

    /// What is to be recorded of a group, and told of it. `altered`: what was put in place and changed at once by somebody
    /// else; it is ours no less.
    pub(super) fn made<'g>(
        &self,
        group: &'g [Item<'a>],
        made: Vec<Result<(Record, Option<Remark>), Trouble>>,
        altered: Vec<Record>,
    ) -> Made<'g, 'a> {
        let records = made.iter().flatten().map(|(record, _)| record.clone()).chain(altered).collect();
        let worked = group.iter().zip(&made).filter(|(_, made)| made.is_ok());
        let drifts = worked.filter_map(|(item, _)| Some((DRIFT_REPAIRED, item, item.drift()?)));
        let remarks = group.iter().zip(&made).filter_map(|(item, made)| {
            let remark = made.as_ref().ok()?.1.as_ref().filter(|remark| remark.is_told())?;
            Some((PACKAGE_REMARK, item, remark.reason.as_str()))
        });
        let event = |(kind, item, text): (&str, &Item<'_>, &str)| {
            self.book.event(kind, &item.resource.key.text(), text)
        };
        let events = drifts.chain(remarks).map(event).collect::<Vec<_>>();
        let came = made.into_iter().map(|made| made.map(|(_, note)| note)).collect();
        Made { group, came, records, events }
    }

    /// Records all that worked, in one transaction, and says it.
    pub(super) fn record(&mut self, mut made: Made<'_, 'a>) {
        let (records, events) = self.take_for_record(&mut made);
        let recorded = self.store.record(records, Vec::new(), events);
        self.say_recorded(made, recorded);
    }

    /// What is to be recorded of a group in one transaction, and told of it.
    pub(super) fn take_for_record(&mut self, made: &mut Made<'_, 'a>) -> (Vec<Record>, Vec<NodeEvent>) {
        let records = std::mem::take(&mut made.records);
        self.note_records(&records);
        (records, made.events.clone())
    }

    /// Says what became of a group, once it is recorded, or is not. What stopped the pass meanwhile is nothing of its own.
    pub(super) fn say_recorded(&mut self, made: Made<'_, 'a>, recorded: Result<(), DatabaseError>) {
        let Made { group, came, events, .. } = made;
        let is_recorded = recorded.is_ok();
        self.note_recorded(events, recorded);
        let lost = if is_recorded { None } else { self.halted_by_store() };
        for (item, came) in group.iter().zip(came) {
            let verdict = match (came, &lost) {
                (Err(trouble), _) => trouble.into(),
                (Ok(_), Some(verdict)) if item.changes() => verdict.clone(),
                (Ok(note), _) => item.verdict(note, self.site.sets_owner),
            };
            self.settle(item.resource, verdict);
        }
    }

    /// Records, in one transaction with what is to be told of it.
    pub(super) fn keep(&mut self, records: Vec<Record>, events: Vec<NodeEvent>) {
        self.note_records(&records);
        let recorded = self.store.record(records, Vec::new(), events.clone());
        self.note_recorded(events, recorded);
    }

    fn note_records(&mut self, records: &[Record]) {
        records.iter().for_each(|record| self.triggers.recorded(record));
        self.recorded.extend(records.iter().map(|record| record.key.clone()));
    }

    fn note_recorded(&mut self, events: Vec<NodeEvent>, recorded: Result<(), DatabaseError>) {
        match recorded {
            Ok(()) => self.book.events.extend(events),
            Err(error) => {
                self.unrecorded = true;
                self.stop(&error);
            }
        }
    }

    pub(super) fn halted_by_store(&self) -> Option<Verdict> {
        self.unwritable().map(Verdict::from)
    }
}
