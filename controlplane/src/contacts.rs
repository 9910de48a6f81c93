//! Last words on their way to the store: gathered for some seconds, written in one batch, so that ten thousand beats
//! cost one transaction. A word that could not be written waits for the next batch; nothing else depends on it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tenure_actors::ractor::{Actor, ActorProcessingErr, ActorRef};
use tenure_actors::timer::{Timer, after};
use tenure_actors::work::{Panicked, Work, work};
use tenure_actors::{Address, Child};
use tenure_protocol::id::NodeId;

use crate::plane::Plane;
use crate::store::StoreError;

/// Tells whose last word is newer than the store's. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Contacts {
    address: Address<Msg>,
}

/// How long words gather.
const EVERY: Duration = Duration::from_secs(10);

impl Contacts {
    /// Nobody gathers yet.
    pub fn vacant() -> Self {
        Self { address: Address::vacant() }
    }

    /// The actor for the tree.
    pub fn child(plane: &Arc<Plane>) -> Child {
        let (plane, address) = (Arc::clone(plane), plane.contacts.address.clone());
        Child::new("contacts", address, move || (Gatherer, Arc::clone(&plane)))
    }

    /// This node was heard; presence knows what it said.
    pub fn heard(&self, node: NodeId) {
        // Between two lives of the gatherer a word is not noted; the next beat is.
        let _ = self.address.tell(Msg::Heard(node));
    }
}

struct Gatherer;

enum Msg {
    Heard(NodeId),
    FlushDue,
    Flushed(HashSet<NodeId>, Result<Result<(), StoreError>, Panicked>),
}

struct Gathered {
    plane: Arc<Plane>,
    fresh: HashSet<NodeId>,
    due: Option<Timer>,
    flushing: Option<Work>,
    /// The last batch failed: said once, not every ten seconds.
    failing: bool,
}

impl Actor for Gatherer {
    type Msg = Msg;
    type State = Gathered;
    type Arguments = Arc<Plane>;

    async fn pre_start(&self, _: ActorRef<Msg>, plane: Arc<Plane>) -> Result<Gathered, ActorProcessingErr> {
        Ok(Gathered { plane, fresh: HashSet::new(), due: None, flushing: None, failing: false })
    }

    async fn handle(
        &self,
        me: ActorRef<Msg>,
        msg: Msg,
        gathered: &mut Gathered,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            Msg::Heard(node) => gathered.heard(&me, node),
            Msg::FlushDue => gathered.flush(&me),
            Msg::Flushed(nodes, result) => gathered.flushed(&me, nodes, result),
        }
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<Msg>, gathered: &mut Gathered) -> Result<(), ActorProcessingErr> {
        let last = gathered.plane.presence.contacts(gathered.fresh.drain());
        if let Err(error) = gathered.plane.store.contacts(last).await {
            tracing::warn!(%error, "the last words of nodes could not be stored");
        }
        Ok(())
    }
}

impl Gathered {
    fn heard(&mut self, me: &ActorRef<Msg>, node: NodeId) {
        self.fresh.insert(node);
        self.arm(me);
    }

    fn arm(&mut self, me: &ActorRef<Msg>) {
        if self.due.is_none() && self.flushing.is_none() {
            self.due = Some(after(me, EVERY, || Msg::FlushDue));
        }
    }

    fn flush(&mut self, me: &ActorRef<Msg>) {
        self.due = None;
        let nodes = std::mem::take(&mut self.fresh);
        let batch = self.plane.presence.contacts(nodes.iter().cloned());
        let plane = Arc::clone(&self.plane);
        let write = async move { plane.store.contacts(batch).await };
        self.flushing = Some(work(me, write, move |result| Msg::Flushed(nodes, result)));
    }

    fn flushed(
        &mut self,
        me: &ActorRef<Msg>,
        nodes: HashSet<NodeId>,
        result: Result<Result<(), StoreError>, Panicked>,
    ) {
        self.flushing = None;
        let failed = match result {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(panicked) => Some(panicked.to_string()),
        };
        if let Some(error) = &failed {
            if !self.failing {
                tracing::warn!(%error, "the last words of nodes could not be stored, and wait");
            }
            self.fresh.extend(nodes);
        }
        self.failing = failed.is_some();
        if !self.fresh.is_empty() {
            self.arm(me);
        }
    }
}
