//! The fleet: invites identities, houses the actors of those that are known, finds them by name, and answers lists from
//! the store and from memory without troubling a link. One actor `fleet`; it decides about no single node.

use std::sync::Arc;
use std::time::Duration;

use tenure_actors::{Address, AskError, Child};
use tenure_protocol::id::NodeId;
use tenure_protocol::operator::{Invite, Invited};
use tenure_protocol::refusal::{Explain as _, Refusal};
use tenure_protocol::text::nearest;

use crate::node::refusals::NodeRefusal;
use crate::node::{Node, later};
use crate::plane::Plane;
use crate::session::draining;

mod actor;
pub mod homes;
pub mod invitation;
pub mod lists;

use actor::{Host, Msg};

/// The fleet. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Fleet {
    address: Address<Msg>,
}

/// An invitation waits for the store, which gives up by itself within ten seconds.
const WITHIN: Duration = Duration::from_secs(25);
/// A large fleet is housed at some ten thousand nodes a second.
const GATHER_WITHIN: Duration = Duration::from_secs(300);

impl Fleet {
    /// Nobody there yet.
    pub fn vacant() -> Self {
        Self { address: Address::vacant() }
    }

    /// The actor for the tree.
    pub fn child(plane: &Arc<Plane>) -> Child {
        let plane = Arc::clone(plane);
        let address = plane.fleet.address.clone();
        Child::new("fleet", address, move || (Host, Arc::clone(&plane)))
    }

    /// Resolves when every known node has its actors; how many there are, or why they could not be read.
    pub async fn gathered(&self) -> Result<u64, Refusal> {
        self.ask(GATHER_WITHIN, Msg::Gather).await
    }

    /// Reserves an identity and mints its token.
    pub async fn invite(&self, invite: Invite) -> Result<Invited, Refusal> {
        self.ask(WITHIN, |reply| Msg::Invite(invite, reply)).await
    }

    async fn ask<T: Send + 'static>(
        &self,
        within: Duration,
        make: impl FnOnce(tenure_actors::Reply<Result<T, Refusal>>) -> Msg,
    ) -> Result<T, Refusal> {
        self.address.ask(within, make).await.unwrap_or_else(|error: AskError| Err(later(&error)))
    }
}

/// The node of this name, or a refusal that names the nearest one.
pub fn find(plane: &Plane, node: &NodeId) -> Result<Node, Refusal> {
    plane.nodes.find(&Node::name(node)).ok_or_else(|| unknown(plane, node))
}

/// There is no node of this name.
pub fn unknown(plane: &Plane, node: &NodeId) -> Refusal {
    let addresses = plane.nodes.list();
    let known = addresses.iter().filter_map(|address| address.strip_prefix("node/"));
    let near = nearest(node.as_str(), known).map(str::to_owned);
    NodeRefusal::Unknown { node: node.clone(), near }.refusal()
}

/// Tells every open session that the control plane stops; they end by themselves.
pub fn drain(plane: &Plane) {
    for address in plane.nodes.list() {
        if let Some(node) = plane.nodes.find(&address) {
            node.end_session(draining());
        }
    }
}
