//! The supervisor's mailbox. It decides nothing about limits (that is `restart`) and holds the only list of children.
//!
//! Three facts of ractor shape it. A start that fails sends no event, so it is counted where it is tried. A parent that
//! ends has its children killed without `post_stop`, so they are stopped here first. Events and due restarts may be
//! stale, so a child is recognised by its cell, and a restart by its number.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::watch;
use tokio::time::Instant;

use super::child::{self, Child};
use super::restart::{Record, Verdict};
use super::{ChildState, Ended, Limits, StartError};
use crate::address::{Reply, answer};
use crate::timer::{Timer, after, jittered};

pub(super) struct Overseer;

/// What one life of a supervisor begins with.
pub(super) struct Seed {
    pub(super) name: String,
    pub(super) limits: Limits,
    pub(super) children: Vec<Child>,
    pub(super) ended: Arc<watch::Sender<Option<Ended>>>,
    /// Present at a root, which retries first starts in place and reports by this why it could not start.
    pub(super) root: Option<Arc<Mutex<Option<StartError>>>>,
}

pub(super) enum Msg {
    Add(Child, Reply<Result<(), StartError>>),
    Remove(String, Reply<()>),
    Removed { serial: u64 },
    RestartDue { serial: u64, epoch: u64 },
    Alive(Reply<Vec<(String, ChildState)>>),
}

pub(super) struct Tree {
    name: String,
    limits: Limits,
    slots: Vec<Slot>,
    serials: u64,
    end: End,
}

struct Slot {
    serial: u64,
    epoch: u64,
    child: Child,
    record: Record,
    place: Place,
}

enum Place {
    Running { cell: ActorCell, since: Instant },
    Waiting { _until: Option<Timer> },
    Stopping { cell: ActorCell, told: Vec<Reply<()>> },
}

/// Says how the supervisor ended, even when it ends by a fault of its own.
struct End {
    name: String,
    sender: Arc<watch::Sender<Option<Ended>>>,
}

/// A fifth either way, so that children which failed together do not start together.
const JITTER: f64 = 0.2;

impl Actor for Overseer {
    type Msg = Msg;
    type State = Tree;
    type Arguments = Seed;

    async fn pre_start(&self, me: ActorRef<Msg>, seed: Seed) -> Result<Tree, ActorProcessingErr> {
        seed.ended.send_replace(None);
        let end = End { name: seed.name.clone(), sender: seed.ended };
        let mut tree = Tree { name: seed.name, limits: seed.limits, slots: Vec::new(), serials: 0, end };
        for child in seed.children {
            if let Err(error) = tree.start_first(&me, child, seed.root.is_some()).await {
                tree.stop_all().await;
                let why = error.to_string();
                if let Some(root) = seed.root {
                    *root.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
                return Err(why.into());
            }
        }
        Ok(tree)
    }

    async fn handle(&self, me: ActorRef<Msg>, msg: Msg, tree: &mut Tree) -> Result<(), ActorProcessingErr> {
        match msg {
            Msg::Add(child, reply) => tree.add(&me, child, reply).await,
            Msg::Remove(name, reply) => {
                tree.remove(&me, &name, reply);
                Ok(())
            }
            Msg::Removed { serial } => {
                tree.removed(serial);
                Ok(())
            }
            Msg::RestartDue { serial, epoch } => tree.restart_due(&me, serial, epoch).await,
            Msg::Alive(reply) => {
                answer(reply, tree.states());
                Ok(())
            }
        }
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<Msg>,
        event: SupervisionEvent,
        tree: &mut Tree,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorTerminated(cell, Some(_), why) => {
                let why = why.unwrap_or_else(|| "it ended by itself".to_owned());
                tree.child_ended(&me, &cell, false, why).await
            }
            SupervisionEvent::ActorTerminated(cell, None, _) => {
                tree.child_ended(&me, &cell, true, "it was killed".to_owned()).await
            }
            SupervisionEvent::ActorFailed(cell, why) => {
                tree.child_ended(&me, &cell, true, why.to_string()).await
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => Ok(()),
        }
    }

    async fn post_stop(&self, _: ActorRef<Msg>, tree: &mut Tree) -> Result<(), ActorProcessingErr> {
        tree.stop_all().await;
        tree.end.say(Ended::Stopped);
        Ok(())
    }
}

impl Tree {
    /// One of the children that the supervisor begins with. `patient`: try again in place, within the limits.
    async fn start_first(
        &mut self,
        me: &ActorRef<Msg>,
        mut child: Child,
        patient: bool,
    ) -> Result<(), StartError> {
        if self.has(child.name()) {
            return Err(StartError::Taken { child: child.name().to_owned() });
        }
        let mut record = Record::default();
        let cell = loop {
            let why = match child.start(me.get_cell()).await {
                Ok(cell) => break cell,
                Err(why) => why,
            };
            match record.failed(&self.limits, Instant::now(), None) {
                Verdict::Again(wait) if patient && child.comes_back(true) => {
                    tracing::warn!(supervisor = %self.name, child = child.name(), why, "did not start: trying again");
                    tokio::time::sleep(jittered(wait, JITTER)).await;
                }
                Verdict::Again(_) | Verdict::GiveUp => {
                    return Err(StartError::Failed { child: child.name().to_owned(), why });
                }
            }
        };
        self.hold(child, record, Place::Running { cell, since: Instant::now() });
        Ok(())
    }

    async fn add(
        &mut self,
        me: &ActorRef<Msg>,
        mut child: Child,
        reply: Reply<Result<(), StartError>>,
    ) -> Result<(), ActorProcessingErr> {
        let name = child.name().to_owned();
        if self.has(&name) {
            answer(reply, Err(StartError::Taken { child: name }));
            return Ok(());
        }
        match child.start(me.get_cell()).await {
            Ok(cell) => {
                self.hold(child, Record::default(), Place::Running { cell, since: Instant::now() });
                answer(reply, Ok(()));
                Ok(())
            }
            Err(why) if !child.comes_back(true) => {
                answer(reply, Err(StartError::Failed { child: name, why }));
                Ok(())
            }
            Err(why) => {
                let index = self.hold(child, Record::default(), Place::Waiting { _until: None });
                answer(reply, Ok(()));
                self.failed(me, index, None, why).await
            }
        }
    }

    fn remove(&mut self, me: &ActorRef<Msg>, name: &str, reply: Reply<()>) {
        let Some(index) = self.slots.iter().position(|slot| slot.child.name() == name) else {
            return answer(reply, ());
        };
        let slot = &mut self.slots[index];
        match &mut slot.place {
            // Its timer goes with the slot; a restart that is already in the mailbox finds no slot of its number.
            Place::Waiting { .. } => {
                self.slots.remove(index);
                answer(reply, ());
            }
            Place::Stopping { told, .. } => told.push(reply),
            Place::Running { cell, .. } => {
                let (cell, within, serial) = (cell.clone(), slot.child.time_to_stop(), slot.serial);
                slot.child.vacate();
                slot.place = Place::Stopping { cell: cell.clone(), told: vec![reply] };
                let (me, name) = (me.clone(), name.to_owned());
                // Beside the mailbox, so that one slow stop holds up nobody else.
                tokio::spawn(async move {
                    child::stop(&name, &cell, within).await;
                    drop(me.send_message(Msg::Removed { serial }));
                });
            }
        }
    }

    fn removed(&mut self, serial: u64) {
        let Some(index) = self.slots.iter().position(|slot| slot.serial == serial) else { return };
        if let Place::Stopping { told, .. } = self.slots.remove(index).place {
            told.into_iter().for_each(|reply| answer(reply, ()));
        }
    }

    async fn restart_due(
        &mut self,
        me: &ActorRef<Msg>,
        serial: u64,
        epoch: u64,
    ) -> Result<(), ActorProcessingErr> {
        let due = |slot: &Slot| {
            slot.serial == serial && slot.epoch == epoch && matches!(slot.place, Place::Waiting { .. })
        };
        let Some(index) = self.slots.iter().position(due) else { return Ok(()) };
        let slot = &mut self.slots[index];
        match slot.child.start(me.get_cell()).await {
            Ok(cell) => {
                slot.place = Place::Running { cell, since: Instant::now() };
                tracing::info!(supervisor = %self.name, child = slot.child.name(), "restarted");
                Ok(())
            }
            Err(why) => self.failed(me, index, None, why).await,
        }
    }

    async fn child_ended(
        &mut self,
        me: &ActorRef<Msg>,
        cell: &ActorCell,
        failed: bool,
        why: String,
    ) -> Result<(), ActorProcessingErr> {
        let ended = self.slots.iter().enumerate().find_map(|(index, slot)| match &slot.place {
            Place::Running { cell: own, since } if own.get_id() == cell.get_id() => Some((index, *since)),
            // A child that is being removed has ended as it was asked to.
            Place::Running { .. } | Place::Waiting { .. } | Place::Stopping { .. } => None,
        });
        let Some((index, since)) = ended else { return Ok(()) };
        let slot = &self.slots[index];
        // It would refuse messages anyway; emptied, the address gives the dead actor's memory back.
        slot.child.vacate();
        if slot.child.comes_back(failed) {
            return self.failed(me, index, Some(since.elapsed()), why).await;
        }
        if failed {
            tracing::warn!(supervisor = %self.name, child = slot.child.name(), why, "failed and is not restarted");
        }
        self.slots.remove(index);
        Ok(())
    }

    /// One more failure of a child: wait and try again, or give up and fail as a whole.
    async fn failed(
        &mut self,
        me: &ActorRef<Msg>,
        index: usize,
        ran: Option<Duration>,
        why: String,
    ) -> Result<(), ActorProcessingErr> {
        let slot = &mut self.slots[index];
        let wait = match slot.record.failed(&self.limits, Instant::now(), ran) {
            Verdict::Again(wait) => jittered(wait, JITTER),
            Verdict::GiveUp => return self.give_up(index, why).await,
        };
        tracing::warn!(supervisor = %self.name, child = slot.child.name(), why, ?wait, "failed: restarting it");
        slot.epoch += 1;
        let (serial, epoch) = (slot.serial, slot.epoch);
        let until = after(me, wait, move || Msg::RestartDue { serial, epoch });
        slot.place = Place::Waiting { _until: Some(until) };
        Ok(())
    }

    async fn give_up(&mut self, index: usize, why: String) -> Result<(), ActorProcessingErr> {
        let child = self.slots.remove(index).child.name().to_owned();
        tracing::error!(supervisor = %self.name, child, why, "failed too often: giving up");
        self.stop_all().await;
        let said = format!("{child} failed too often, at last: {why}");
        self.end.say(Ended::GaveUp { child, why });
        Err(said.into())
    }

    /// The last started first. Whoever waits for a removal learns of it by its dropped reply.
    async fn stop_all(&mut self) {
        while let Some(slot) = self.slots.pop() {
            match &slot.place {
                Place::Running { cell, .. } | Place::Stopping { cell, .. } => {
                    slot.child.vacate();
                    child::stop(slot.child.name(), cell, slot.child.time_to_stop()).await;
                }
                Place::Waiting { .. } => {}
            }
        }
    }

    fn hold(&mut self, child: Child, record: Record, place: Place) -> usize {
        self.serials += 1;
        self.slots.push(Slot { serial: self.serials, epoch: 0, child, record, place });
        self.slots.len() - 1
    }

    fn has(&self, name: &str) -> bool {
        self.slots.iter().any(|slot| slot.child.name() == name)
    }

    fn states(&self) -> Vec<(String, ChildState)> {
        let state = |slot: &Slot| match slot.place {
            Place::Running { .. } => ChildState::Running,
            Place::Waiting { .. } => ChildState::Waiting { failures: slot.record.in_a_row() },
            Place::Stopping { .. } => ChildState::Stopping,
        };
        self.slots.iter().map(|slot| (slot.child.name().to_owned(), state(slot))).collect()
    }
}

impl End {
    fn say(&self, ended: Ended) {
        self.sender.send_replace(Some(ended));
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let fault =
            Ended::GaveUp { child: self.name.clone(), why: "the supervisor itself was ended".to_owned() };
        self.sender.send_if_modified(|ended| {
            let unsaid = ended.is_none();
            if unsaid {
                *ended = Some(fault);
            }
            unsaid
        });
    }
}
