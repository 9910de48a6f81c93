//! Nodes that were lost, gathered for a moment: when a switch or a whole site goes, an operator hears of it once and not
//! a thousand times (O-56). Each node keeps its own event; this is the line and the event about all of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tenure_actors::ractor::{Actor, ActorProcessingErr, ActorRef};
use tenure_actors::timer::{Timer, after};
use tenure_actors::work::{Panicked, Work, work};
use tenure_actors::{Address, Child};
use tenure_protocol::id::NodeId;

use crate::plane::Plane;
use crate::store::{Fact, StoreError};

/// Tells of lost nodes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Losses {
    address: Address<Msg>,
}

/// How long losses gather: leases that ended over one cause end within a beat of each other.
const GATHER: Duration = Duration::from_secs(12);
const NODES_LOST: &str = "nodes_lost";
/// So many are named; the rest is counted.
const NAMED: usize = 5;

impl Losses {
    /// Nobody gathers yet.
    pub fn vacant() -> Self {
        Self { address: Address::vacant() }
    }

    /// The actor for the tree.
    pub fn child(plane: &Arc<Plane>) -> Child {
        let (plane, address) = (Arc::clone(plane), plane.losses.address.clone());
        Child::new("losses", address, move || (Gatherer, Arc::clone(&plane)))
    }

    /// This node was marked lost.
    pub fn lost(&self, node: NodeId) {
        if self.address.tell(Msg::Lost(node.clone())).is_err() {
            // Between two lives of the gatherer it is said by itself.
            tracing::warn!(%node, "lost");
        }
    }
}

struct Gatherer;

enum Msg {
    Lost(NodeId),
    TellDue,
    Told(BTreeSet<NodeId>, Result<Result<(), StoreError>, Panicked>),
}

struct Gathered {
    plane: Arc<Plane>,
    nodes: BTreeSet<NodeId>,
    /// The log has them, and the event about them could not be stored yet.
    untold: BTreeSet<NodeId>,
    due: Option<Timer>,
    telling: Option<Work>,
}

impl Actor for Gatherer {
    type Msg = Msg;
    type State = Gathered;
    type Arguments = Arc<Plane>;

    async fn pre_start(&self, _: ActorRef<Msg>, plane: Arc<Plane>) -> Result<Gathered, ActorProcessingErr> {
        let (nodes, untold) = (BTreeSet::new(), BTreeSet::new());
        Ok(Gathered { plane, nodes, untold, due: None, telling: None })
    }

    async fn handle(
        &self,
        me: ActorRef<Msg>,
        msg: Msg,
        gathered: &mut Gathered,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            Msg::Lost(node) => gathered.lost(&me, node),
            Msg::TellDue => gathered.tell(&me),
            Msg::Told(nodes, result) => gathered.told(&me, nodes, result),
        }
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<Msg>, gathered: &mut Gathered) -> Result<(), ActorProcessingErr> {
        let nodes = gathered.said();
        if let Some(fact) = gathered.fact(&nodes) {
            gathered.plane.tell(fact).await;
        }
        Ok(())
    }
}

impl Gathered {
    fn lost(&mut self, me: &ActorRef<Msg>, node: NodeId) {
        self.nodes.insert(node);
        self.arm(me);
    }

    fn arm(&mut self, me: &ActorRef<Msg>) {
        if self.due.is_none() && self.telling.is_none() {
            self.due = Some(after(me, GATHER, || Msg::TellDue));
        }
    }

    fn tell(&mut self, me: &ActorRef<Msg>) {
        self.due = None;
        let nodes = self.said();
        let Some(fact) = self.fact(&nodes) else { return };
        let plane = Arc::clone(&self.plane);
        let write = async move { plane.store.tell(vec![fact], plane.now()).await };
        self.telling = Some(work(me, write, move |result| Msg::Told(nodes, result)));
    }

    /// What could not be stored is told with whoever is lost next, or after a while by itself.
    fn told(
        &mut self,
        me: &ActorRef<Msg>,
        nodes: BTreeSet<NodeId>,
        result: Result<Result<(), StoreError>, Panicked>,
    ) {
        self.telling = None;
        let failed = match result {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(panicked) => Some(panicked.to_string()),
        };
        if let Some(error) = failed {
            tracing::warn!(kind = NODES_LOST, %error, "an event could not be stored, and waits");
            self.untold = nodes;
        }
        if !self.nodes.is_empty() || !self.untold.is_empty() {
            self.arm(me);
        }
    }

    /// Says in the log who was lost since; these, and those of whom there is no event yet.
    fn said(&mut self) -> BTreeSet<NodeId> {
        let mut nodes = std::mem::take(&mut self.nodes);
        match nodes.len() {
            0 => {}
            1 => tracing::warn!(node = %named(&nodes), "lost"),
            count => tracing::warn!(count, nodes = %named(&nodes), "lost"),
        }
        nodes.append(&mut self.untold);
        nodes
    }

    /// The event about them; of one node its own event says enough.
    fn fact(&self, nodes: &BTreeSet<NodeId>) -> Option<Fact> {
        let (count, lease) = (nodes.len(), self.plane.config.lease.as_secs());
        let text = format!(
            "{count} nodes were not heard for {lease} s ({}): unobserved, not dead; look at what they have in common, a \
             network or this machine",
            named(nodes)
        );
        (count > 1).then_some(Fact { node: None, kind: NODES_LOST, text })
    }
}

/// The first few of them by name, and how many more.
fn named(nodes: &BTreeSet<NodeId>) -> String {
    let names: Vec<&str> = nodes.iter().take(NAMED).map(NodeId::as_str).collect();
    match nodes.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}
