//! Where the actors of nodes live: a fixed number of supervisors, so that none of them has so many children that
//! finding one takes long. A node's actors all live in the same one. They never give up: an actor that keeps failing
//! waits longer each time, and costs the others nothing.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use tenure_actors::{Child, Limits, StartError, Supervisor};
use tenure_protocol::id::NodeId;

/// The homes. Clones are cheap and share them.
#[derive(Debug, Clone)]
pub struct Homes {
    homes: Arc<[Supervisor]>,
}

/// A supervisor looks through its children one by one; a hundred thousand nodes make some hundreds in each.
const HOMES: usize = 256;

impl Homes {
    /// Homes that are still to be put into the tree.
    pub fn vacant() -> Self {
        Self { homes: (0..HOMES).map(|_| Supervisor::vacant()).collect() }
    }

    /// The homes as children of the root.
    pub fn children(&self) -> Vec<Child> {
        let limits = Limits { restarts: u32::MAX, ..Limits::default() };
        let child = |(number, slot): (usize, &Supervisor)| {
            Supervisor::as_child(format!("nodes/{number}"), limits, Vec::new, slot)
        };
        self.homes.iter().enumerate().map(child).collect()
    }

    /// Adds an actor of this node; one that is there stays.
    pub async fn add(&self, node: &NodeId, child: Child) {
        match self.of(node).add(child).await {
            Ok(()) | Err(StartError::Taken { .. }) => {}
            Err(error) => tracing::error!(%node, %error, "a part of a node could not be started"),
        }
    }

    /// Stops an actor of this node for good.
    pub async fn remove(&self, node: &NodeId, name: &str) {
        self.of(node).remove(name).await;
    }

    fn of(&self, node: &NodeId) -> &Supervisor {
        let mut hasher = DefaultHasher::new();
        node.hash(&mut hasher);
        let number = usize::try_from(hasher.finish()).unwrap_or(usize::MAX) % self.homes.len();
        &self.homes[number]
    }
}
