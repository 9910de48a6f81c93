//! What every part of a running control plane shares: who it is, its store and keys, the clock, what is known in
//! memory, and the handles of its parts. Made once by the daemon, before anything runs.

use std::sync::Arc;

use tenure_actors::clock::SharedClock;
use tenure_actors::directory::Directory;
use tenure_protocol::content::Push;
use tenure_protocol::id::Millis;

use crate::catalogue::actor::Catalogue;
use crate::config::Config;
use crate::contacts::Contacts;
use crate::fleet::Fleet;
use crate::fleet::homes::Homes;
use crate::keys::Keys;
use crate::losses::Losses;
use crate::node::Node;
use crate::presence::Presence;
use crate::reconcile::foresee::Turns;
use crate::store::{DeclaredRecord, Fact, Founding, Store};

/// Shared by all parts; never copied.
pub struct Plane {
    /// Who this is.
    pub founding: Founding,
    /// What tokens and the link stand on.
    pub keys: Keys,
    /// What must not be forgotten.
    pub store: Arc<dyn Store>,
    /// The time of day.
    pub clock: SharedClock,
    /// What holds for this run.
    pub config: Config,
    /// What is known of nodes in memory.
    pub presence: Presence,
    /// The nodes, by name.
    pub nodes: Directory<Node>,
    /// Where their actors live.
    pub homes: Homes,
    /// Invites, lists, drains.
    pub fleet: Fleet,
    /// Declares and renders.
    pub catalogue: Catalogue,
    /// Flushes last words.
    pub contacts: Contacts,
    /// Tells of lost nodes, of many at once.
    pub losses: Losses,
    /// Turns at reading what nodes are asked about.
    pub offering: Turns,
}

impl Plane {
    /// The present moment on our clock.
    pub fn now(&self) -> Millis {
        Millis(self.clock.now().millis())
    }

    /// Stores a fact of our own. One that cannot be stored is only logged: it is history, not standing.
    pub async fn tell(&self, fact: Fact) {
        let kind = fact.kind;
        if let Err(error) = self.store.tell(vec![fact], self.now()).await {
            tracing::warn!(kind, %error, "an event could not be stored");
        }
    }
}

impl From<DeclaredRecord> for Push {
    fn from(declared: DeclaredRecord) -> Self {
        let DeclaredRecord { revision, sha256, bytes, resources } = declared;
        Self { revision, sha256, bytes, resources }
    }
}
