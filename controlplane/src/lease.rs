//! A lease says how long silence is believed (N-08). A beat renews it; at its end the node is marked lost, once:
//! unobserved, not dead, and nothing is stopped because of it. It lives in memory; after a restart it has a full
//! window. One actor `lease/<node>` for each node that is ready or has come since; sessions hand it the beats.

use std::sync::Arc;
use std::time::Duration;

use tenure_actors::{Address, AskError, Child};
use tenure_protocol::id::{Millis, NodeId};
use tenure_protocol::machine::NodeState;
use tenure_protocol::profile::Facts;

use crate::plane::Plane;

mod actor;
mod state;

use actor::{Keeper, Msg};
use state::Standing;

/// The lease of one node. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Lease {
    address: Address<Msg>,
}

/// A beat changes memory only, so that an answer takes no time.
const WITHIN: Duration = Duration::from_secs(5);

impl Lease {
    /// Nobody keeps it yet.
    pub fn vacant() -> Self {
        Self { address: Address::vacant() }
    }

    /// The actor that keeps it, for a node that the store knows in this state. When it crashes, the next life does not
    /// know the state, and finds out by the next beat or by the end of the window.
    pub fn child(&self, plane: &Arc<Plane>, node: &NodeId, state: NodeState) -> Child {
        let (plane, node) = (Arc::clone(plane), node.clone());
        let mut known = Some(match state {
            NodeState::Lost => Standing::Lost,
            NodeState::Enrolling | NodeState::Ready | NodeState::Retired => Standing::Held,
        });
        Child::new(Self::name(&node), self.address.clone(), move || {
            let standing = known.take().unwrap_or(Standing::Unknown);
            (Keeper, actor::Seed { plane: Arc::clone(&plane), node: node.clone(), standing })
        })
    }

    /// What the actor is called.
    pub fn name(node: &NodeId) -> String {
        format!("lease/{node}")
    }

    /// A beat; the answer is our clock.
    pub async fn beat(&self, facts: Facts) -> Result<Millis, AskError> {
        self.address.ask(WITHIN, |reply| Msg::Beat(facts, reply)).await
    }

    /// It was heard otherwise, by proof of its key: the version that runs there.
    pub fn heard(&self, version: &str) {
        // Between two lives of the keeper nothing is lost: the next beat says the same.
        let _ = self.address.tell(Msg::Heard(version.to_owned()));
    }

    /// It enrolled just now, and is ready in the store.
    pub fn granted(&self) {
        let _ = self.address.tell(Msg::Granted);
    }
}
