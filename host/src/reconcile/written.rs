//! Many files at the same time, in three hands: a few threads write beside, always some groups ahead; the pass's own
//! thread syncs group after group, where that was not done one by one, puts it in place and looks at it again; one more
//! records what worked, while the next group is put in place. Nothing of a group is said before it is recorded. Where one
//! could not be recorded, the next one is in place already: of both there are intents, so that the next pass knows them
//! for ours. Called by `apply`.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tenure_actors::database::DatabaseError;
use tenure_protocol::event::NodeEvent;

use super::apply::{Engine, GROUP, Made};
use super::attempt::{place, settle};
use super::item::Item;
use crate::resource::{Prepared, Site, Trouble};
use crate::store::Record;
use crate::walk::together::Together;

/// So many syncs at the same time; more gained nothing on the disks that were measured.
const IN_FLIGHT: usize = 16;
/// So many are written and not yet looked at again: few enough that the directories they keep open, each with the one
/// around it, fit a service of 1024 descriptors beside the walks. After as many the way to each is walked anew.
const AHEAD: usize = 3 * GROUP;
/// The same where each keeps itself open too, until it is synced with the others.
const AHEAD_TOGETHER: usize = 2 * GROUP;

type Ready = Result<Option<Prepared>, Trouble>;

impl<'a> Engine<'a> {
    /// What was written ahead of a group that is not done any more is removed again.
    pub(super) fn flush_large(&mut self, taken: &[Item<'a>]) {
        let store = self.store;
        let changes = taken.iter().filter(|item| item.changes()).count();
        let together = (changes > IN_FLIGHT).then(Together::begin).flatten().map(Arc::new);
        let site = Site { together: together.clone(), ..self.site.fresh() };
        let most = if together.is_some() { AHEAD_TOGETHER } else { AHEAD };
        let ahead = Ahead::new(site, taken.len(), most);
        let (written, receiver) = mpsc::channel();
        let (record, records) = mpsc::sync_channel::<(Vec<Record>, Vec<NodeEvent>)>(1);
        let (recorded, answers) = mpsc::sync_channel(1);
        let threads = changes.clamp(1, IN_FLIGHT);
        std::thread::scope(|scope| {
            // However this ends, nobody waits for a place any more.
            let ahead = Ends(&ahead);
            for _ in 0..threads {
                let (written, ahead) = (written.clone(), ahead.0);
                scope.spawn(move || {
                    while let Some((at, site)) = ahead.claim() {
                        // Nobody waits for it any more: dropped, it is undone.
                        drop(written.send((at, taken.get(at).map_or(Ok(None), |item| prepare(item, &site)))));
                    }
                });
            }
            drop(written);
            // One that panics breaks the pass off, as it would on the pass's own thread.
            scope.spawn(move || {
                for (records, events) in records {
                    drop(recorded.send(store.record(records, Vec::new(), events)));
                }
            });
            let mut ready = InOrder { receiver, early: HashMap::new() };
            let mut waiting: Option<Made<'_, 'a>> = None;
            for (number, group) in taken.chunks(GROUP).enumerate() {
                self.note_changes(group);
                if self.halted().is_some() {
                    ahead.0.stop();
                    self.hear(&mut waiting, &answers);
                }
                if self.leave_if_halted(group) {
                    continue;
                }
                let first = number * GROUP;
                let mut written: Vec<Ready> = (first..first + group.len()).map(|at| ready.wait(at)).collect();
                settle(&mut written, together.as_deref());
                let mut made = self.look_back(group, written.into_iter().map(place).collect());
                ahead.0.is_done(group.len());
                self.hear(&mut waiting, &answers);
                // Where nobody takes it, nobody answers either: that is heard as a store that is closed.
                drop(record.send(self.take_for_record(&mut made)));
                waiting = Some(made);
            }
            self.hear(&mut waiting, &answers);
            drop(record);
        });
    }

    /// Says what became of the group before, once it is recorded.
    fn hear<'g>(
        &mut self,
        waiting: &mut Option<Made<'g, 'a>>,
        answers: &Receiver<Result<(), DatabaseError>>,
    ) {
        if let Some(made) = waiting.take() {
            let recorded = answers.recv().unwrap_or(Err(DatabaseError::Closed));
            self.say_recorded(made, recorded);
        }
    }
}

/// A thread that panicked over one leaves the rest to be done: they are waited for in their order.
fn prepare(item: &Item<'_>, site: &Site<'_>) -> Ready {
    catch_unwind(AssertUnwindSafe(|| item.prepare(site))).unwrap_or_else(|_| Err(broke_off()))
}

fn broke_off() -> Trouble {
    let reason = "writing it broke off, which is a fault of the host: report it with what `journalctl -u tenure-host` shows";
    Trouble::failed("io_error", reason)
}

/// How far the writing threads are, and how far they may be.
struct Ahead<'a> {
    of: usize,
    most: usize,
    state: Mutex<State<'a>>,
    moved: Condvar,
}

struct State<'a> {
    next: usize,
    done: usize,
    is_over: bool,
    site: Arc<Site<'a>>,
}

impl<'a> Ahead<'a> {
    fn new(site: Site<'a>, of: usize, most: usize) -> Self {
        let state = State { next: 0, done: 0, is_over: false, site: Arc::new(site) };
        Self { of, most, state: Mutex::new(state), moved: Condvar::new() }
    }

    /// Which one is to be written next, and by which walk; none: nothing more is. It waits for as long as what is written
    /// is not put in place and looked at again.
    fn claim(&self) -> Option<(usize, Arc<Site<'a>>)> {
        let is_full = |state: &mut State<'_>| {
            !state.is_over && state.next < self.of && state.next >= state.done + self.most
        };
        let mut state = self.moved.wait_while(self.lock(), is_full).unwrap_or_else(PoisonError::into_inner);
        if state.is_over || state.next >= self.of {
            return None;
        }
        let at = state.next;
        state.next += 1;
        if at > 0 && at.is_multiple_of(self.most) {
            state.site = Arc::new(state.site.fresh());
        }
        Some((at, Arc::clone(&state.site)))
    }

    fn is_done(&self, many: usize) {
        self.lock().done += many;
        self.moved.notify_all();
    }

    fn stop(&self) {
        self.lock().is_over = true;
        self.moved.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Ends<'s, 'a>(&'s Ahead<'a>);

impl Drop for Ends<'_, '_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// What the writing threads have ready, handed out in order.
struct InOrder {
    receiver: Receiver<(usize, Ready)>,
    early: HashMap<usize, Ready>,
}

impl InOrder {
    fn wait(&mut self, at: usize) -> Ready {
        loop {
            if let Some(ready) = self.early.remove(&at) {
                return ready;
            }
            match self.receiver.recv() {
                Ok((at, ready)) => drop(self.early.insert(at, ready)),
                Err(_) => return Err(broke_off()),
            }
        }
    }
}
