//! The mailbox of one reconcile loop. Reports are written beside it, one part at a time and in order.

use std::sync::Arc;
use std::time::Duration;

use tenure_actors::ractor::{Actor, ActorProcessingErr, ActorRef};
use tenure_actors::timer::{Timer, after};
use tenure_actors::{Reply, answer};
use tenure_protocol::content::{Push, Pushed};
use tenure_protocol::id::{NodeId, SessionId, StoreId};
use tenure_protocol::refusal::Refusal;
use tenure_protocol::report::{Part, Received, Summary};

use super::state::{After, Desired};
use crate::plane::Plane;
use crate::session::Session;
use crate::session::current::Current;
use crate::store::{Fact, PartStored};

pub(super) struct Reconciler;

pub(super) struct Seed {
    pub(super) plane: Arc<Plane>,
    pub(super) node: NodeId,
    pub(super) current: Current,
}

pub(super) enum Msg {
    Attached(Session),
    Detached(SessionId),
    Declared(Push),
    Pushed(SessionId, Push, Result<Pushed, String>),
    AgainDue,
    Report(StoreId, Box<Part>, Reply<Result<Received, Refusal>>),
    #[cfg(test)]
    Crash,
}

pub(super) struct Loop {
    plane: Arc<Plane>,
    node: NodeId,
    current: Current,
    session: Option<Session>,
    desired: Desired,
    pushing: bool,
    again: Option<Timer>,
}

/// How long to wait after a push that got no answer, on a session that is still open.
const AGAIN: Duration = Duration::from_secs(15);
/// How long to wait for a session that is not there yet.
const SOON: Duration = Duration::from_secs(1);

impl Actor for Reconciler {
    type Msg = Msg;
    type State = Loop;
    type Arguments = Seed;

    async fn pre_start(&self, me: ActorRef<Msg>, seed: Seed) -> Result<Loop, ActorProcessingErr> {
        let Seed { plane, node, current } = seed;
        // After a crash the session that was open still is, and was told nothing meanwhile.
        if let Some(session) = current.get() {
            me.send_message(Msg::Attached(session))?;
        }
        let desired = Desired::default();
        Ok(Loop { plane, node, current, session: None, desired, pushing: false, again: None })
    }

    async fn handle(&self, me: ActorRef<Msg>, msg: Msg, state: &mut Loop) -> Result<(), ActorProcessingErr> {
        match msg {
            Msg::Attached(session) => state.attached(&me, session).await,
            Msg::Detached(session) => state.detached(session),
            Msg::Declared(push) => state.declared(&me, push),
            Msg::Pushed(session, push, said) => state.pushed(&me, session, push, said).await,
            Msg::AgainDue => state.push(&me),
            Msg::Report(store_id, part, reply) => answer(reply, state.report(store_id, *part).await),
            #[cfg(test)]
            Msg::Crash => panic!("asked to by a test"),
        }
        Ok(())
    }
}

impl Loop {
    /// The welcome told the host what was declared when it opened; what came since is pushed.
    async fn attached(&mut self, me: &ActorRef<Msg>, session: Session) {
        let held = session.held().map(|held| held.sha256);
        self.desired.came(None);
        let again = session.clone();
        self.session = Some(session);
        self.pushing = false;
        self.again = None;
        match self.plane.store.declared(self.node.clone()).await {
            Ok(Some(declared)) if held == Some(declared.sha256) => self.desired.came(Some(declared.into())),
            Ok(Some(declared)) => self.desired.declare(declared.into()),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(node = %self.node, %error, "what is declared could not be read, and is looked for again");
                self.again = Some(after(me, AGAIN, || Msg::Attached(again)));
                return;
            }
        }
        self.push(me);
    }

    fn detached(&mut self, ended: SessionId) {
        if self.session.take_if(|session| session.id() == ended).is_some() {
            self.pushing = false;
            self.again = None;
        }
    }

    fn declared(&mut self, me: &ActorRef<Msg>, push: Push) {
        self.desired.declare(push);
        self.push(me);
    }

    fn push(&mut self, me: &ActorRef<Msg>) {
        self.again = None;
        let (Some(session), Some(push), false) = (&self.session, self.desired.next(), self.pushing) else {
            return;
        };
        // A failed line of its briefing: the node is assigned nothing (H-13).
        if !session.is_assignable() {
            return;
        }
        self.pushing = session.push(push);
        // Nobody took it. While the session is its node's, its actor is to come; one that ended is the node's no longer.
        if !self.pushing && self.current.id() == Some(session.id()) {
            self.again = Some(after(me, SOON, || Msg::AgainDue));
        }
    }

    async fn pushed(
        &mut self,
        me: &ActorRef<Msg>,
        session: SessionId,
        push: Push,
        said: Result<Pushed, String>,
    ) {
        if self.session.as_ref().is_none_or(|open| open.id() != session) {
            return;
        }
        self.pushing = false;
        match said {
            Ok(said) => match self.desired.said(push, said) {
                After::Taken => {}
                After::Push(_) => self.push(me),
                After::Ahead(later) => {
                    let text = format!("has revision {later}, and {} is declared here", push.revision);
                    tracing::warn!(node = %self.node, has = %later, declared = %push.revision, "ahead of what is declared");
                    self.plane.tell(Fact { node: Some(self.node.clone()), kind: "ahead", text }).await;
                }
            },
            Err(error) => {
                tracing::info!(node = %self.node, revision = %push.revision, %error, "push not answered");
                self.again = Some(after(me, AGAIN, || Msg::AgainDue));
            }
        }
    }

    async fn report(&mut self, store_id: StoreId, part: Part) -> Result<Received, Refusal> {
        let summary = part.summary.clone();
        let stored = self.plane.store.report(self.node.clone(), store_id, part, self.plane.now()).await?;
        match stored {
            PartStored::Part | PartStored::Older => Ok(Received { resend: false }),
            PartStored::Differs => Ok(Received { resend: true }),
            PartStored::Whole { newly } => {
                if newly.is_some() {
                    self.say(&summary);
                }
                Ok(Received { resend: false })
            }
        }
    }

    /// One line for a revision that came to an end on the node, whichever it is.
    fn say(&self, summary: &Summary) {
        let Some(revision) = summary.revision else { return };
        let counts = summary.counts;
        let (node, failed, waits) = (
            &self.node,
            counts.failed.saturating_add(counts.refused),
            counts.outstanding.saturating_add(counts.unknown),
        );
        match (failed, waits) {
            (0, 0) => tracing::info!(%node, %revision, "applied"),
            (0, outstanding) => tracing::info!(%node, %revision, outstanding, "outstanding"),
            (failed, outstanding) => tracing::warn!(%node, %revision, failed, outstanding, "failed"),
        }
    }
}
