//! Nodes that were lost, gathered for a moment: when a switch or a whole site goes, an operator hears of it once and not
//! a thousand times (O-56). Each node keeps its own event; this is the line and the event about all of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tenure_actors::Child;
use tenure_actors::gather::{Batches, Gather};
use tenure_protocol::id::NodeId;

use crate::plane::Plane;
use crate::store::{Fact, StoreError};

/// Tells of lost nodes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Losses {
    gather: Gather<NodeId>,
}

/// How long losses gather: leases that ended over one cause end within a beat of each other.
const GATHER: Duration = Duration::from_secs(12);
const NODES_LOST: &str = "nodes_lost";
/// So many are named; the rest is counted.
const NAMED: usize = 5;

impl Losses {
    /// Nobody gathers yet.
    pub fn vacant() -> Self {
        Self { gather: Gather::vacant() }
    }

    /// The actor for the tree.
    pub fn child(plane: &Arc<Plane>) -> Child {
        plane.losses.gather.child("losses", GATHER, Lost(Arc::clone(plane)))
    }

    /// This node was marked lost.
    pub fn lost(&self, node: NodeId) {
        if self.gather.tell(node.clone()).is_err() {
            // Between two lives of the gatherer it is said by itself.
            tracing::warn!(%node, "lost");
        }
    }
}

#[derive(Clone)]
struct Lost(Arc<Plane>);

impl Batches for Lost {
    type One = NodeId;
    type Error = StoreError;

    /// Says in the log who was lost since, and stores the event about them and those of whom there is none yet.
    async fn put(&self, fresh: BTreeSet<NodeId>, mut waiting: BTreeSet<NodeId>) -> Result<(), StoreError> {
        let Self(plane) = self;
        match fresh.len() {
            0 => {}
            1 => tracing::warn!(node = %named(&fresh), "lost"),
            count => tracing::warn!(count, nodes = %named(&fresh), "lost"),
        }
        waiting.extend(fresh);
        match fact(plane, &waiting) {
            Some(fact) => plane.store.tell(vec![fact], plane.now()).await,
            None => Ok(()),
        }
    }

    fn failed(&self, why: &str) {
        tracing::warn!(kind = NODES_LOST, error = why, "an event could not be stored, and waits");
    }
}

/// The event about them; of one node its own event says enough.
fn fact(plane: &Plane, nodes: &BTreeSet<NodeId>) -> Option<Fact> {
    let (count, lease) = (nodes.len(), plane.config.lease.as_secs());
    let text = format!(
        "{count} nodes were not heard for {lease} s ({}): unobserved, not dead; look at what they have in common, a \
         network or this machine",
        named(nodes)
    );
    (count > 1).then_some(Fact { node: None, kind: NODES_LOST, text })
}

/// The first few of them by name, and how many more.
fn named(nodes: &BTreeSet<NodeId>) -> String {
    let names: Vec<&str> = nodes.iter().take(NAMED).map(NodeId::as_str).collect();
    match nodes.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}
