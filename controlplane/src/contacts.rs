//! Last words on their way to the store: gathered for some seconds, written in one batch, so that ten thousand beats
//! cost one transaction. A word that could not be written waits for the next batch; nothing else depends on it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tenure_actors::Child;
use tenure_actors::gather::{Batches, Gather};
use tenure_protocol::id::NodeId;

use crate::plane::Plane;
use crate::store::StoreError;

/// Tells whose last word is newer than the store's. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Contacts {
    gather: Gather<NodeId>,
}

/// How long words gather.
const EVERY: Duration = Duration::from_secs(10);

impl Contacts {
    /// Nobody gathers yet.
    pub fn vacant() -> Self {
        Self { gather: Gather::vacant() }
    }

    /// The actor for the tree.
    pub fn child(plane: &Arc<Plane>) -> Child {
        plane.contacts.gather.child("contacts", EVERY, LastWords(Arc::clone(plane)))
    }

    /// This node was heard; presence knows what it said.
    pub fn heard(&self, node: NodeId) {
        // Between two lives of the gatherer a word is not noted; the next beat is.
        let _ = self.gather.tell(node);
    }
}

#[derive(Clone)]
struct LastWords(Arc<Plane>);

impl Batches for LastWords {
    type One = NodeId;
    type Error = StoreError;

    async fn put(&self, fresh: BTreeSet<NodeId>, waiting: BTreeSet<NodeId>) -> Result<(), StoreError> {
        let Self(plane) = self;
        let last = plane.presence.contacts(fresh.into_iter().chain(waiting).collect::<BTreeSet<_>>());
        plane.store.contacts(last).await
    }

    fn failed(&self, why: &str) {
        tracing::warn!(error = why, "the last words of nodes could not be stored, and wait");
    }
}
