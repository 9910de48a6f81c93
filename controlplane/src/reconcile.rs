//! Desired against reported, for one node: it stores what the node reports, and tells the node while it holds something
//! older than what is declared. It never polls and never dials. One actor `reconcile/<node>` from its first session on.

use std::sync::Arc;
use std::time::Duration;

use tenure_actors::{Address, Child};
use tenure_protocol::content::{Push, Pushed};
use tenure_protocol::id::{NodeId, SessionId, StoreId};
use tenure_protocol::refusal::Refusal;
use tenure_protocol::report::{Part, Received};

use crate::node::later;
use crate::plane::Plane;
use crate::session::Session;
use crate::session::current::Current;

mod actor;
pub mod foresee;
mod state;

use actor::{Msg, Reconciler};

/// The reconcile loop of one node. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Reconcile {
    address: Address<Msg>,
}

/// A part waits for the store, which gives up by itself within ten seconds.
const WITHIN: Duration = Duration::from_secs(25);

impl Reconcile {
    /// Nobody compares yet.
    pub fn vacant() -> Self {
        Self { address: Address::vacant() }
    }

    /// What the actor is called.
    pub fn name(node: &NodeId) -> String {
        format!("reconcile/{node}")
    }

    /// The actor.
    pub fn child(&self, plane: &Arc<Plane>, node: &NodeId, current: &Current) -> Child {
        let (plane, node, current) = (Arc::clone(plane), node.clone(), current.clone());
        Child::new(Self::name(&node), self.address.clone(), move || {
            let (plane, node, current) = (Arc::clone(&plane), node.clone(), current.clone());
            (Reconciler, actor::Seed { plane, node, current })
        })
    }

    /// A session is open, and its host holds what it said.
    pub fn attach(&self, session: &Session) {
        let _ = self.address.tell(Msg::Attached(session.clone()));
    }

    /// That session ended.
    pub fn detach(&self, session: SessionId) {
        let _ = self.address.tell(Msg::Detached(session));
    }

    /// Something newer was declared, and is in the store.
    pub fn declared(&self, push: Push) {
        // Nobody there: the node is not enrolled, or its next session says it in the welcome.
        let _ = self.address.tell(Msg::Declared(push));
    }

    /// What the host said to a push.
    pub fn pushed(&self, session: SessionId, push: Push, said: Result<Pushed, String>) {
        let _ = self.address.tell(Msg::Pushed(session, push, said));
    }

    /// Makes its actor panic, as a fault of ours would.
    #[cfg(test)]
    pub(crate) fn crash(&self) {
        let _ = self.address.tell(Msg::Crash);
    }

    /// A part of a report; answered once it is stored.
    pub async fn report(&self, store_id: StoreId, part: Part) -> Result<Received, Refusal> {
        self.address
            .ask(WITHIN, |reply| Msg::Report(store_id, Box::new(part), reply))
            .await
            .unwrap_or_else(|error| Err(later(&error)))
    }
}
