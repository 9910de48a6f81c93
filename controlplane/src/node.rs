//! The authority over one identity: who may redeem it, who may open a session as it, when it is retired. One actor
//! `node/<id>` for each, so that these steps never overlap. What it decides by is read from the store at each step and
//! written before it is told; in memory it holds only which session is open.

use std::sync::Arc;
use std::time::Duration;

use tenure_actors::{Address, AskError, Child};
use tenure_protocol::enrolment::{Enrolled, Join};
use tenure_protocol::id::{FencingToken, NodeId, SessionId};
use tenure_protocol::machine::NodeState;
use tenure_protocol::operator::{Invited, Reinvite, Rejoin, Retired};
use tenure_protocol::proof::{Binding, PublicKey};
use tenure_protocol::refusal::Refusal;
use tenure_protocol::session::{Hello, Welcome};
use tenure_protocol::token::Presented;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::lease::Lease;
use crate::plane::Plane;
use crate::reconcile::Reconcile;
use crate::session::Session;
use crate::session::current::Current;

mod actor;
pub mod recognise;
pub mod redeem;
pub mod refusals;

use actor::{Authority, Msg};
use recognise::Standing;

/// One node's authority, and what stands beside it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Node {
    id: NodeId,
    address: Address<Msg>,
    session: Current,
    /// Held by the one connection on which a machine of it tells its last words.
    parting: Arc<Mutex<()>>,
    /// How long its silence is believed.
    pub lease: Lease,
    /// What is declared against what it reports.
    pub reconcile: Reconcile,
}

/// A verified token and key that want to be redeemed.
pub struct Redemption {
    /// The token, made by us and within its time.
    pub presented: Presented,
    /// The key that was proven.
    pub key: PublicKey,
    /// What the machine is.
    pub join: Join,
    /// From where.
    pub from: String,
    /// The version of the protocol that is spoken.
    pub protocol: u16,
}

/// A session that may open now: what it is told, what it stands on, and its place, to be filled by its actor.
pub struct Opened {
    /// The answer to its greeting.
    pub welcome: Box<Welcome>,
    /// What it stands on.
    pub standing: Standing,
    /// Its handle.
    pub session: Session,
    /// What the node was when it came.
    pub state: NodeState,
    /// How it comes back once a session lapsed.
    pub rejoin: Rejoin,
    /// The version that runs there.
    pub software: String,
    /// That it is still to begin.
    pub unbegun: Unbegun,
}

/// Whoever spoke proved a key of this node, and its standing is withdrawn.
pub struct Withdrawn {
    /// Which node.
    pub node: NodeId,
    /// The enrolment whose key it proved.
    pub fencing: FencingToken,
    /// What it is told.
    pub refusal: Refusal,
    /// That it may tell what it did; none: another connection of this node does.
    pub turn: Option<OwnedMutexGuard<()>>,
}

/// A session that was opened and has no actor yet. Dropped before it begins (its connection went, or had to give way),
/// it tells the node that there is none.
pub struct Unbegun {
    node: Node,
    session: Option<SessionId>,
}

impl Unbegun {
    /// Whose it is.
    pub const fn node(&self) -> &Node {
        &self.node
    }

    /// It begins; whose it is.
    pub fn begins(mut self) -> Node {
        self.session = None;
        self.node.clone()
    }
}

impl Drop for Unbegun {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            self.node.session_ended(session, "never begun");
        }
    }
}

/// A step may wait for a store that is busy, and the store gives up by itself within ten seconds.
const WITHIN: Duration = Duration::from_secs(25);

impl Node {
    /// The node of this name; nobody stands behind it until its child runs.
    pub fn vacant(id: NodeId) -> Self {
        Self {
            id,
            address: Address::vacant(),
            session: Current::default(),
            parting: Arc::default(),
            lease: Lease::vacant(),
            reconcile: Reconcile::vacant(),
        }
    }

    /// Its name.
    pub const fn id(&self) -> &NodeId {
        &self.id
    }

    /// Its address, as in `node/edge-1`.
    pub fn name(id: &NodeId) -> String {
        format!("node/{id}")
    }

    fn child(&self, plane: &Arc<Plane>) -> Child {
        let (plane, node) = (Arc::clone(plane), self.clone());
        Child::new(Self::name(&self.id), self.address.clone(), move || {
            (Authority, actor::Seed { plane: Arc::clone(&plane), node: node.clone() })
        })
    }

    /// Redeems, or says why not.
    pub async fn redeem(&self, redemption: Redemption) -> Result<Enrolled, Refusal> {
        self.step(|reply| Msg::Redeem(Box::new(redemption), reply)).await
    }

    /// Opens a session for whoever proves the node's key, ending the one before it.
    pub async fn open(
        &self,
        hello: Box<Hello>,
        binding: Binding,
        from: String,
    ) -> Result<Result<Opened, Withdrawn>, Refusal> {
        self.step(|reply| Msg::Open(hello, binding, from, reply)).await
    }

    /// The actor of a session runs now; one that was overtaken meanwhile is told.
    ///
    /// Not by way of the mailbox: whoever is between two lives hears nothing, and a session that runs gets what is
    /// declared whatever crashed when it began.
    pub fn session_up(&self, session: &Session) {
        self.session.with(|current| match current {
            Some(current) if current.id() == session.id() => self.reconcile.attach(session),
            Some(_) => session.end(actor::superseded()),
            None => session.end(actor::withdrawn()),
        });
    }

    /// A session ended.
    pub fn session_ended(&self, session: SessionId, why: &str) {
        if self.session.ended(session) {
            tracing::info!(node = %self.id, reason = why, "session ended");
        }
        self.reconcile.detach(session);
        // Between two lives of the actor nobody hears it; the next one looks at the slot.
        let _ = self.address.tell(Msg::SessionEnded(session));
    }

    /// A token for the same identity.
    pub async fn reinvite(&self, reinvite: Reinvite) -> Result<Invited, Refusal> {
        self.step(|reply| Msg::Reinvite(reinvite, reply)).await
    }

    /// Withdraws its standing for good.
    pub async fn retire(&self) -> Result<Retired, Refusal> {
        self.step(Msg::Retire).await
    }

    /// Its open session, if there is one.
    pub fn session(&self) -> Option<Session> {
        self.session.get()
    }

    /// Ends its session, if one is open, for this reason.
    pub fn end_session(&self, why: Refusal) {
        let _ = self.address.tell(Msg::EndSession(why));
    }

    /// Makes its actor panic, as a fault of ours would.
    #[cfg(test)]
    pub(crate) fn crash(&self) {
        let _ = self.address.tell(Msg::Crash);
    }

    async fn step<T: Send + 'static>(
        &self,
        make: impl FnOnce(tenure_actors::Reply<Result<T, Refusal>>) -> Msg,
    ) -> Result<T, Refusal> {
        self.address.ask(WITHIN, make).await.unwrap_or_else(|error| Err(later(&error)))
    }
}

/// A part of ours did not answer: a fault here, never a word about the node.
pub fn later(error: &AskError) -> Refusal {
    Refusal::new(
        "try_later",
        error.to_string(),
        "the control plane could not decide; nothing was said about the node or its credentials",
        "try later; if it stays, look at the control plane's log (`journalctl -u tenure-control`)",
    )
}

/// Gives a node its authority, and its lease where one runs, and lists it. Doing so again does nothing.
pub async fn house(plane: &Arc<Plane>, id: &NodeId, state: NodeState) -> Node {
    let address = Node::name(id);
    if let Some(node) = plane.nodes.find(&address) {
        return node;
    }
    let node = Node::vacant(id.clone());
    match plane.nodes.register(&address, node.clone()) {
        // It stays listed for as long as this process runs: identities are never forgotten.
        Ok(entry) => std::mem::forget(entry),
        Err(_) => return plane.nodes.find(&address).unwrap_or(node),
    }
    plane.homes.add(id, node.child(plane)).await;
    match state {
        NodeState::Ready => lease(plane, &node, state).await,
        // One that is lost already has nothing to lose; its lease begins with its next session.
        NodeState::Lost | NodeState::Enrolling | NodeState::Retired => {}
    }
    node
}

/// Gives an enrolled node its lease, where it has none.
pub async fn lease(plane: &Arc<Plane>, node: &Node, state: NodeState) {
    plane.homes.add(node.id(), node.lease.child(plane, node.id(), state)).await;
}

/// Gives a node that comes what it needs while it is there. Afterwards both stay: most nodes come again.
pub async fn attend(plane: &Arc<Plane>, node: &Node, state: NodeState) {
    lease(plane, node, state).await;
    plane.homes.add(node.id(), node.reconcile.child(plane, node.id(), &node.session)).await;
    // It may have been retired meanwhile, and what it had taken away before this gave it back.
    let record = plane.store.node(node.id().clone()).await;
    if record.is_ok_and(|record| record.is_some_and(|record| record.state == NodeState::Retired)) {
        leave(plane, node.id()).await;
    }
}

/// Takes away what [`attend`] gives: a retired node has neither.
pub async fn leave(plane: &Arc<Plane>, node: &NodeId) {
    for name in [Lease::name(node), Reconcile::name(node)] {
        plane.homes.remove(node, &name).await;
    }
    plane.presence.leased(node, None);
}
