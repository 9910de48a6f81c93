//! One open session: frames only. It moves what the node sends to whoever it is for, as the node it was proven to be,
//! and carries pushes down. It decides nothing about the node and keeps nothing. One actor `session/<node>/<id>` while
//! the connection lives; a panic in it drops that connection and no other.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tenure_actors::{Address, Child, Restart};
use tenure_protocol::content::Push;
use tenure_protocol::foresight::{Foresee, ForeseenPage};
use tenure_protocol::id::{Digest, NodeId, SessionId, StoreId};
use tenure_protocol::refusal::Refusal;
use tenure_protocol::session::{HeldDeclaration, Renewed};
use tenure_protocol::token::NoMasterKey;
use tenure_protocol::wire::Connection;
use tenure_protocol::wire::exchange::CallError;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::node::Opened;
use crate::node::recognise::Standing;
use crate::plane::Plane;

mod actor;
pub mod current;
mod offer;
mod serve;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use actor::draining;
use actor::{Link, Msg};
use offer::Offer;
pub use serve::MOST_HELD;
pub(crate) use serve::{read, unhandled};

/// One session. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Session {
    id: SessionId,
    store_id: StoreId,
    held: Option<HeldDeclaration>,
    assignable: bool,
    offer: Offer,
    address: Address<Msg>,
}

/// What the actor of a session begins with.
pub struct Beginning<S> {
    /// Its connection.
    pub connection: Connection<S>,
    /// The request that the welcome answers.
    pub greeting: u64,
    /// What was decided about it.
    pub opened: Opened,
}

impl Session {
    /// A session whose actor is still to be started.
    pub fn vacant(id: SessionId, store_id: StoreId, held: Option<HeldDeclaration>, assignable: bool) -> Self {
        Self { id, store_id, held, assignable, offer: Offer::default(), address: Address::vacant() }
    }

    /// Its name.
    pub const fn id(&self) -> SessionId {
        self.id
    }

    /// Which life of the host's store speaks.
    pub const fn store_id(&self) -> StoreId {
        self.store_id
    }

    /// Which declaration the host came with.
    pub const fn held(&self) -> Option<HeldDeclaration> {
        self.held
    }

    /// Whether its node may be assigned anything. It cannot change while the session lasts: a new briefing comes with a
    /// new enrolment, which ends it.
    pub const fn is_assignable(&self) -> bool {
        self.assignable
    }

    /// Its actor, which begins with the welcome. It is never started again: the host dials.
    pub fn child<S>(&self, plane: &Arc<Plane>, beginning: Beginning<S>) -> Child
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let name = Self::name(&beginning.opened.standing.node, self.id);
        let (plane, session) = (Arc::clone(plane), self.clone());
        let mut once = Some(beginning);
        Child::new(name, self.address.clone(), move || {
            let seed =
                actor::Seed { plane: Arc::clone(&plane), session: session.clone(), beginning: once.take() };
            (Link(std::marker::PhantomData), seed)
        })
        .restart(Restart::Never)
    }

    /// Starts its actor as a supervisor does, up to the moment in which that would note where it is.
    #[cfg(test)]
    pub(crate) async fn start<S>(&self, plane: &Arc<Plane>, beginning: Beginning<S>)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (plane, session) = (Arc::clone(plane), self.clone());
        let seed = actor::Seed { plane, session, beginning: Some(beginning) };
        tenure_actors::ractor::Actor::spawn(None, Link(std::marker::PhantomData), seed).await.unwrap();
    }

    fn name(node: &NodeId, id: SessionId) -> String {
        format!("session/{node}/{id}")
    }

    /// Ends it; the host is told why, where the connection still carries that.
    pub fn end(&self, why: Refusal) {
        // Not up yet: it will be told when it says that it is.
        let _ = self.address.tell(Msg::End(why));
    }

    /// Asks the host what it foresees; while it is asked, it may fetch `offered` too. None: another is being asked.
    pub async fn foresee(
        &self,
        asked: Foresee,
        offered: HashSet<Digest>,
    ) -> Option<Result<ForeseenPage, CallError>> {
        let _offered = self.offer.make(offered)?;
        let within = FORESEEN_WITHIN + Duration::from_secs(1);
        // A session that ends meanwhile takes the question with it.
        let asked = self.address.ask(within, |reply| Msg::Foresee(asked, reply)).await;
        Some(asked.unwrap_or(Err(CallError::Gone)))
    }

    /// Tells the host that something newer is declared; what it says goes to the reconcile loop. False: nobody is there
    /// to tell it, before the session begins and after it ended.
    #[must_use]
    pub fn push(&self, push: Push) -> bool {
        self.address.tell(Msg::Push(push)).is_ok()
    }
}

/// How long a host may take to look at everything and to simulate its packages.
const FORESEEN_WITHIN: Duration = Duration::from_secs(60);

/// A session token on this standing, for one life of a session from now.
pub fn token(plane: &Plane, standing: &Standing) -> Result<Renewed, NoMasterKey> {
    let life = plane.config.session_life;
    let expires = plane.now().plus(life);
    let token = plane.keys.signer.mint_session(&standing.claims(plane.founding, expires))?;
    Ok(Renewed { token, expires, expires_in_ms: u64::try_from(life.as_millis()).unwrap_or(u64::MAX) })
}
