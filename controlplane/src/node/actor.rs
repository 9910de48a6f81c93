//! The mailbox of one identity. Each step reads the store, decides, writes, and answers before the next one begins:
//! that steps do not overlap is what this actor is for, so it waits for the store inside its handler.

use std::sync::Arc;
use std::time::Duration;

use tenure_actors::ractor::{Actor, ActorProcessingErr, ActorRef};
use tenure_actors::{Reply, answer};
use tenure_protocol::enrolment::Enrolled;
use tenure_protocol::id::{FencingToken, Millis, SessionId};
use tenure_protocol::machine::{Mode, NodeState};
use tenure_protocol::operator::{Invited, Reinvite, Rejoin, Retired, SessionLine};
use tenure_protocol::proof::Binding;
use tenure_protocol::refusal::{Explain as _, Refusal};
use tenure_protocol::session::{Hello, Renewed, Welcome};
use tenure_protocol::text::shown;
use tokio::time::Instant;

use super::recognise::{SessionRefusal, Standing, Unopened, recognise};
use super::refusals::NodeRefusal;
use super::{Node, Opened, Redemption, Unbegun, Withdrawn, lease, leave};
use crate::bounds;
use crate::briefing::{briefing, not_assignable};
use crate::fleet::invitation;
use crate::plane::Plane;
use crate::session::{self, Session};
use crate::store::{Attempt, NodeRecord, Redeemed, SessionFacts};

pub(super) struct Authority;

pub(super) struct Seed {
    pub(super) plane: Arc<Plane>,
    pub(super) node: Node,
}

pub(super) enum Msg {
    Redeem(Box<Redemption>, Reply<Result<Enrolled, Refusal>>),
    Open(Box<Hello>, Binding, String, Reply<Result<Result<Opened, Withdrawn>, Refusal>>),
    SessionEnded(SessionId),
    Reinvite(Reinvite, Reply<Result<Invited, Refusal>>),
    Retire(Reply<Result<Retired, Refusal>>),
    EndSession(Refusal),
    #[cfg(test)]
    Crash,
}

pub(super) struct Held {
    plane: Arc<Plane>,
    node: Node,
    /// When a session of a standing that was withdrawn was last said to be refused.
    refused: Option<Instant>,
}

/// A machine whose standing was withdrawn comes again and again; a line for each time would bury the others.
const REFUSED_SAID_EACH: Duration = Duration::from_secs(10 * 60);

impl Actor for Authority {
    type Msg = Msg;
    type State = Held;
    type Arguments = Seed;

    async fn pre_start(&self, _: ActorRef<Msg>, seed: Seed) -> Result<Held, ActorProcessingErr> {
        let Seed { plane, node } = seed;
        // A session that ended while nobody was here is shown no longer.
        plane.presence.only(node.id(), node.session.id());
        Ok(Held { plane, node, refused: None })
    }

    async fn handle(&self, _: ActorRef<Msg>, msg: Msg, held: &mut Held) -> Result<(), ActorProcessingErr> {
        match msg {
            Msg::Redeem(redemption, reply) => answer(reply, held.redeem(*redemption).await),
            Msg::Open(hello, binding, from, reply) => answer(reply, held.open(&hello, &binding, from).await),
            Msg::SessionEnded(session) => held.plane.presence.ended(held.node.id(), session),
            Msg::Reinvite(reinvite, reply) => answer(reply, held.reinvite(&reinvite).await),
            Msg::Retire(reply) => answer(reply, held.retire().await),
            Msg::EndSession(why) => held.end_session(why),
            #[cfg(test)]
            Msg::Crash => panic!("asked to by a test"),
        }
        Ok(())
    }
}

impl Held {
    async fn redeem(&mut self, redemption: Redemption) -> Result<Enrolled, Refusal> {
        let Redemption { presented, key, join, from, protocol } = redemption;
        let plane = Arc::clone(&self.plane);
        let join = bounds::join(join);
        let briefing = briefing(&join, presented.invitation.mode, protocol);
        let attempt = Attempt {
            node: self.node.id().clone(),
            generation: presented.invitation.generation,
            token: presented.id(),
            key,
            from: from.clone(),
            join,
            briefing,
            now: plane.now(),
        };
        match plane.store.redeem(attempt).await? {
            Redeemed::Enrolled(record) => {
                tracing::info!(node = %record.node, fencing = %record.fencing, %from, "enrolled");
                // Older standing is void from here on, and whoever holds it hears so.
                self.end_session(fenced(&record));
                lease(&plane, &self.node, NodeState::Ready).await;
                self.node.lease.granted();
                Ok(self.enrolled(&record))
            }
            Redeemed::Again(record) => Ok(self.enrolled(&record)),
            Redeemed::Refused(refusal) => {
                tracing::info!(node = %self.node.id(), %from, code = refusal.code(), "enrolment refused");
                Err(refusal.refusal())
            }
        }
    }

    fn enrolled(&self, record: &NodeRecord) -> Enrolled {
        Enrolled {
            control_plane_id: self.plane.founding.control_plane_id,
            epoch: self.plane.founding.epoch,
            node: record.node.clone(),
            node_uuid: record.uuid,
            rental: record.rental.clone(),
            generation: record.generation,
            fencing: record.fencing,
            mode: record.mode,
            enrolled_at: record.enrolled_at.unwrap_or(Millis(0)),
            roots: vec![self.plane.keys.root.clone()],
            briefing: record.briefing.clone(),
        }
    }

    async fn open(
        &mut self,
        hello: &Hello,
        binding: &Binding,
        from: String,
    ) -> Result<Result<Opened, Withdrawn>, Refusal> {
        let plane = Arc::clone(&self.plane);
        let record = plane.store.node(self.node.id().clone()).await?;
        let earlier = match &record {
            Some(record) if record.fencing != hello.fencing => {
                let bound = plane.store.bound_key(record.node.clone(), hello.fencing).await?;
                bound.map(|key| (hello.fencing, key))
            }
            Some(_) | None => None,
        };
        let (founding, now, signer) = (plane.founding, plane.now(), &plane.keys.signer);
        let standing = match recognise(record.as_ref(), earlier, hello, binding, founding, signer, now) {
            Ok(standing) => standing,
            Err(Unopened { refusal, proven: Some(fencing) }) if refusal.is_withdrawal() => {
                return Ok(Err(self.withdrawn(fencing, &refusal, &from)));
            }
            Err(Unopened { refusal, .. }) => return Err(refusal.refusal()),
        };
        // Before anything is noted: without a master key there is no welcome, and nobody is to look ready who gets none.
        let renewed =
            session::token(&plane, &standing).map_err(|error| SessionRefusal::from(error).refusal())?;
        // It was heard, whatever the store does from here on: what cannot be stored does not end a lease (O-70).
        self.node.lease.heard(&shown(&hello.software, 64));
        let declared = plane.store.declared(self.node.id().clone()).await?;
        let facts = SessionFacts {
            store_id: hello.store_id,
            counter: hello.session_counter,
            boot_id: hello.boot_id,
            software: shown(&hello.software, 64),
        };
        let assignable = record.as_ref().is_some_and(|record| not_assignable(record).is_none());
        let (mode, state, rejoin) = record.map_or((Mode::Adopted, NodeState::Ready, Rejoin::Key), |record| {
            (record.mode, record.state, record.rejoin)
        });
        let declared = declared.filter(|_| assignable).map(Into::into);
        let welcome = Box::new(self.welcome(&standing, renewed, mode, declared));
        plane.store.session_opened(self.node.id().clone(), facts.clone(), now).await?;
        let session = Session::vacant(welcome.session, hello.store_id, hello.held, assignable);
        self.supersede(&session, from, now);
        let unbegun = Unbegun { node: self.node.clone(), session: Some(session.id()) };
        Ok(Ok(Opened { welcome, standing, session, state, rejoin, software: facts.software, unbegun }))
    }

    fn withdrawn(&mut self, fencing: FencingToken, refusal: &SessionRefusal, from: &str) -> Withdrawn {
        let node = self.node.id().clone();
        let now = Instant::now();
        if self.refused.is_none_or(|last| now.saturating_duration_since(last) >= REFUSED_SAID_EACH) {
            self.refused = Some(now);
            tracing::info!(%node, %fencing, from, reason = refusal.code(), "session refused");
        }
        let turn = Arc::clone(&self.node.parting).try_lock_owned().ok();
        Withdrawn { node, fencing, refusal: refusal.refusal(), turn }
    }

    fn welcome(
        &self,
        standing: &Standing,
        renewed: Renewed,
        mode: Mode,
        declared: Option<tenure_protocol::content::Push>,
    ) -> Welcome {
        let config = &self.plane.config;
        let now = self.plane.now();
        let millis = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Welcome {
            session: SessionId::random(),
            epoch: self.plane.founding.epoch,
            protocol: standing.protocol,
            fencing: standing.fencing,
            mode,
            lease_ms: millis(config.lease),
            heartbeat_ms: millis(config.heartbeat),
            silence_ms: millis(config.silence),
            token: renewed.token,
            token_expires: renewed.expires,
            token_expires_in_ms: renewed.expires_in_ms,
            now,
            roots: vec![self.plane.keys.root.clone()],
            declared,
        }
    }

    /// One session a node: the newer one stands, the older one is told (N-07).
    fn supersede(&mut self, session: &Session, from: String, now: Millis) {
        self.end_session(superseded());
        tracing::info!(node = %self.node.id(), %from, "session opened");
        let line = SessionLine { session: session.id(), address: from, since: now };
        self.plane.presence.opened(self.node.id(), line);
        self.node.session.replace(Some(session.clone()));
    }

    fn end_session(&mut self, why: Refusal) {
        if let Some(session) = self.node.session.replace(None) {
            tracing::info!(node = %self.node.id(), reason = %why.code, "session ended");
            self.plane.presence.ended(self.node.id(), session.id());
            self.node.reconcile.detach(session.id());
            session.end(why);
        }
    }

    async fn reinvite(&mut self, reinvite: &Reinvite) -> Result<Invited, Refusal> {
        let plane = Arc::clone(&self.plane);
        let node = self.node.id().clone();
        let record = plane.store.node(node.clone()).await?;
        let refuse = |refusal: NodeRefusal| refusal.refusal();
        let record = record.ok_or_else(|| refuse(NodeRefusal::Unknown { node: node.clone(), near: None }))?;
        if record.state == NodeState::Retired {
            return Err(refuse(NodeRefusal::Retired(node)));
        }
        invitation::clock_holds(&plane, reinvite.clock_is_right).await?;
        let outstanding = plane.store.invitation(node.clone()).await?;
        let asked =
            invitation::again(&plane, &record, outstanding.as_ref(), reinvite.valid_ms).map_err(refuse)?;
        if !plane.store.reinvite(node.clone(), asked.minted, reinvite.revoke_now, plane.now()).await? {
            return Err(refuse(NodeRefusal::Retired(node)));
        }
        if reinvite.revoke_now {
            self.end_session(SessionRefusal::Revoked(node.clone()).refusal());
        }
        tracing::info!(%node, handed_back = asked.invited.handed_back, until = %invitation::until(asked.invited.expires), "reinvited");
        Ok(asked.invited)
    }

    /// Written before the door is closed (N-14).
    async fn retire(&mut self) -> Result<Retired, Refusal> {
        let plane = Arc::clone(&self.plane);
        let node = self.node.id().clone();
        let already = plane.store.retire(node.clone(), plane.now()).await?;
        let already =
            already.ok_or_else(|| NodeRefusal::Unknown { node: node.clone(), near: None }.refusal())?;
        self.end_session(SessionRefusal::Retired(node.clone()).refusal());
        if !already {
            tracing::info!(%node, "retired");
            plane.presence.leased(&node, None);
            // Beside the mailbox: the home may be waiting for this very actor.
            tokio::spawn(async move { leave(&plane, &node).await });
        }
        Ok(Retired { already })
    }
}

pub(super) fn superseded() -> Refusal {
    Refusal::new(
        "superseded",
        "another session of this node was opened",
        "one session a node: the newer one stands",
        "nothing, if this machine connected anew; else look for a copy of it",
    )
}

pub(super) fn withdrawn() -> Refusal {
    Refusal::new(
        "session_ended",
        "the session was ended while it was being opened",
        "the node's standing or its session changed meanwhile",
        "nothing: the host connects again by itself; if it stays, look at `tenure events`",
    )
}

fn fenced(record: &NodeRecord) -> Refusal {
    Refusal::new(
        "fenced",
        format!("node {} was enrolled anew", record.node),
        "the enrolment this session stood on is void",
        format!("nothing on the machine that enrolled; elsewhere run `tenure reinvite {}`", record.node),
    )
}
