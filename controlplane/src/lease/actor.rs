//! The keeper of one lease: one timer that looks at the deadline, and marks in the store beside the mailbox.

use std::sync::Arc;
use std::time::Duration;

use tenure_actors::ractor::{Actor, ActorProcessingErr, ActorRef};
use tenure_actors::timer::{Timer, after};
use tenure_actors::work::{Panicked, Work, work};
use tenure_actors::{Reply, answer};
use tenure_protocol::id::{Millis, NodeId};
use tenure_protocol::machine::NodeState;
use tenure_protocol::profile::{Disk, Facts};
use tokio::time::Instant;

use super::state::{Due, Lease, Standing};
use crate::plane::Plane;
use crate::store::{Contact, StoreError};

pub(super) struct Keeper;

pub(super) struct Seed {
    pub(super) plane: Arc<Plane>,
    pub(super) node: NodeId,
    pub(super) standing: Standing,
}

pub(super) enum Msg {
    Beat(Facts, Reply<Millis>),
    Heard(String),
    Granted,
    LookDue,
    Marked(NodeState, Result<Result<bool, StoreError>, Panicked>),
}

pub(super) struct Kept {
    plane: Arc<Plane>,
    node: NodeId,
    started: Instant,
    lease: Lease,
    due: Option<Timer>,
    marking: Option<Work>,
}

/// How long to wait with a mark that the store did not take.
const AGAIN: Duration = Duration::from_secs(10);

impl Actor for Keeper {
    type Msg = Msg;
    type State = Kept;
    type Arguments = Seed;

    async fn pre_start(&self, me: ActorRef<Msg>, seed: Seed) -> Result<Kept, ActorProcessingErr> {
        let Seed { plane, node, standing } = seed;
        let lease = Lease::new(standing, plane.config.lease, Duration::ZERO);
        plane.presence.leased(&node, Some(plane.now().plus(plane.config.lease)));
        let mut kept = Kept { plane, node, started: Instant::now(), lease, due: None, marking: None };
        kept.look(&me);
        Ok(kept)
    }

    async fn handle(&self, me: ActorRef<Msg>, msg: Msg, kept: &mut Kept) -> Result<(), ActorProcessingErr> {
        match msg {
            Msg::Beat(facts, reply) => answer(reply, kept.beat(&me, facts)),
            Msg::Heard(version) => kept.heard(&me, Some(version), None),
            Msg::Granted => kept.granted(&me),
            Msg::LookDue => kept.look_due(&me),
            Msg::Marked(state, result) => kept.marked(&me, state, result),
        }
        Ok(())
    }
}

impl Kept {
    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn beat(&mut self, me: &ActorRef<Msg>, facts: Facts) -> Millis {
        let version = tenure_protocol::text::shown(&facts.running_version, 64);
        self.heard(me, Some(version), Some(facts.disk));
        self.plane.now()
    }

    /// The second stamp is our own clock's, whatever the node says of its own (N-13).
    fn heard(&mut self, me: &ActorRef<Msg>, version: Option<String>, disk: Option<Disk>) {
        let received_at = self.plane.now();
        let disk = disk
            .or_else(|| self.plane.presence.of(&self.node).contact.map(|contact| contact.disk))
            .unwrap_or_default();
        let returns = self.lease.heard(self.now());
        let contact = Contact { received_at, version, disk };
        self.plane.presence.heard(&self.node, contact, received_at.plus(self.plane.config.lease));
        self.plane.contacts.heard(self.node.clone());
        if returns {
            self.mark(me, NodeState::Ready);
        }
        self.look(me);
    }

    fn granted(&mut self, me: &ActorRef<Msg>) {
        self.lease.stands(Standing::Held);
        self.lease.heard(self.now());
        self.plane.presence.leased(&self.node, Some(self.plane.now().plus(self.plane.config.lease)));
        self.look(me);
    }

    fn look_due(&mut self, me: &ActorRef<Msg>) {
        self.due = None;
        self.look(me);
    }

    /// Lazily armed: a timer that runs is left to find out by itself that the deadline moved.
    fn look(&mut self, me: &ActorRef<Msg>) {
        if self.due.is_some() {
            return;
        }
        match self.lease.due(self.now()) {
            Due::Later(left) => self.due = Some(after(me, left, || Msg::LookDue)),
            Due::Expired => {
                self.plane.presence.leased(&self.node, None);
                self.mark(me, NodeState::Lost);
            }
            Due::Lost => {}
        }
    }

    fn mark(&mut self, me: &ActorRef<Msg>, state: NodeState) {
        // One mark at a time; what it finds when it ends decides about the next.
        if self.marking.is_some() {
            return;
        }
        let (plane, node) = (Arc::clone(&self.plane), self.node.clone());
        let text = match state {
            NodeState::Lost => {
                format!("not heard for {} s; unobserved, not dead", plane.config.lease.as_secs())
            }
            NodeState::Enrolling | NodeState::Ready | NodeState::Retired => "heard again".to_owned(),
        };
        let write = async move { plane.store.marked(node, state, text, plane.now()).await };
        self.marking = Some(work(me, write, move |result| Msg::Marked(state, result)));
    }

    fn marked(
        &mut self,
        me: &ActorRef<Msg>,
        state: NodeState,
        result: Result<Result<bool, StoreError>, Panicked>,
    ) {
        self.marking = None;
        match result {
            Ok(Ok(moved)) => return self.settled(me, state, moved),
            // The store says once what is wrong with it; a line of every node's own would hide that.
            Ok(Err(error)) => {
                tracing::debug!(node = %self.node, %state, %error, "a mark waits for the store")
            }
            Err(panicked) => tracing::error!(node = %self.node, %state, %panicked, "a mark broke off"),
        }
        self.due = Some(after(me, AGAIN, || Msg::LookDue));
    }

    fn settled(&mut self, me: &ActorRef<Msg>, state: NodeState, moved: bool) {
        let (node, lost) = (&self.node, state == NodeState::Lost);
        self.lease.stands(if lost { Standing::Lost } else { Standing::Held });
        match (moved, lost) {
            (true, true) => self.plane.losses.lost(node.clone()),
            (true, false) => tracing::info!(%node, "ready again"),
            (false, _) => {}
        }
        // It may have been heard while the mark was on its way.
        if lost && self.lease.left(self.now()) > Duration::ZERO {
            self.mark(me, NodeState::Ready);
        }
        self.look(me);
    }
}
