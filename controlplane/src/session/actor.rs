//! The mailbox of one session: it owns the connection's three tasks (frames, requests, the slow lane) and ends them.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tenure_actors::ractor::{Actor, ActorProcessingErr, ActorRef};
use tenure_actors::timer::{Timer, after};
use tenure_actors::work::{Panicked, Work, work};
use tenure_actors::{Reply, answer};
use tenure_protocol::content::{Push, Pushed};
use tenure_protocol::foresight::{Foresee, ForeseenPage};
use tenure_protocol::operator::Rejoin;
use tenure_protocol::refusal::Refusal;
use tenure_protocol::session::Ended;
use tenure_protocol::wire::exchange::{CallError, Outgoing, exchange};
use tenure_protocol::wire::{WireError, codec};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;

use super::serve::Desk;
use super::{Beginning, FORESEEN_WITHIN, Session};
use crate::node::{Node, Opened};
use crate::plane::Plane;

pub(super) struct Link<S>(pub(super) PhantomData<fn() -> S>);

pub(super) struct Seed<S> {
    pub(super) plane: Arc<Plane>,
    pub(super) session: Session,
    pub(super) beginning: Option<Beginning<S>>,
}

pub(super) enum Msg {
    Push(Push),
    Pushed(Push, Result<Result<Pushed, CallError>, Panicked>),
    Foresee(Foresee, Reply<Result<ForeseenPage, CallError>>),
    Foreseen(Result<(), Panicked>),
    Renewed,
    TokenDue,
    End(Refusal),
    Closed(&'static str),
    Served(Result<(), Panicked>),
}

pub(super) struct Open {
    plane: Arc<Plane>,
    session: Session,
    node: Node,
    /// Dropped, it lets the frames go out that are queued, and the connection end.
    outgoing: Option<Outgoing>,
    frames: Option<JoinHandle<()>>,
    serving: Option<Work>,
    pushing: Vec<Work>,
    token_due: Timer,
    why: String,
}

/// How long a host may take to say what it does with a push.
const PUSH_WITHIN: Duration = Duration::from_secs(10);
/// How long a goodbye may take to go out.
const GOODBYE: Duration = Duration::from_secs(2);

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Actor for Link<S> {
    type Msg = Msg;
    type State = Open;
    type Arguments = Seed<S>;

    async fn pre_start(&self, me: ActorRef<Msg>, seed: Seed<S>) -> Result<Open, ActorProcessingErr> {
        let Seed { plane, session, beginning } = seed;
        let beginning = beginning.ok_or("a session has one connection")?;
        Ok(begin(&me, plane, session, beginning))
    }

    async fn handle(&self, me: ActorRef<Msg>, msg: Msg, open: &mut Open) -> Result<(), ActorProcessingErr> {
        match msg {
            Msg::Push(push) => open.push(&me, push),
            Msg::Pushed(push, result) => open.pushed(push, result),
            Msg::Foresee(asked, reply) => open.foresee(&me, asked, reply),
            Msg::Foreseen(result) => open.foreseen(&result),
            Msg::Renewed => open.renewed(&me),
            Msg::TokenDue => open.end(&me, &lapsed()),
            Msg::End(why) => open.end(&me, &why),
            Msg::Closed(why) => open.closed(&me, why),
            Msg::Served(result) => open.served(&me, result),
        }
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<Msg>, open: &mut Open) -> Result<(), ActorProcessingErr> {
        open.say_goodbye().await;
        open.node.session_ended(open.session.id(), &open.why);
        Ok(())
    }
}

fn begin<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    me: &ActorRef<Msg>,
    plane: Arc<Plane>,
    session: Session,
    beginning: Beginning<S>,
) -> Open {
    let Beginning { connection, greeting, opened } = beginning;
    let Opened { welcome, standing, rejoin, unbegun, .. } = opened;
    let node = unbegun.begins();
    let (outgoing, incoming, frames) = exchange(connection, plane.config.silence);
    let told = me.clone();
    let frames = tokio::spawn(async move {
        let why = in_a_word(&frames.run().await);
        drop(told.send_message(Msg::Closed(why)));
    });
    let renewed = me.clone();
    let desk = Desk {
        plane: Arc::clone(&plane),
        standing,
        node: node.clone(),
        store_id: session.store_id(),
        assignable: session.is_assignable(),
        offer: session.offer.clone(),
        unused: AtomicBool::new(rejoin == Rejoin::Invitation),
        outgoing: outgoing.clone(),
        renewed: Box::new(move || drop(renewed.send_message(Msg::Renewed))),
    };
    let (up, there) = (session.clone(), me.clone());
    let serving = work(
        me,
        async move {
            // The queue is empty: the welcome is the first frame, before anything else can be answered or pushed.
            if desk.outgoing.answer(greeting, Ok(codec::encode(&*welcome))).await.is_ok() {
                // The node may have a word for it at once, and whoever starts this may not have noted yet where it is.
                up.address.fill(there);
                desk.node.session_up(&up);
                desk.serve(incoming).await;
            }
        },
        Msg::Served,
    );
    let token_due = after(me, plane.config.session_life, || Msg::TokenDue);
    Open {
        plane,
        session,
        node,
        outgoing: Some(outgoing),
        frames: Some(frames),
        serving: Some(serving),
        pushing: Vec::new(),
        token_due,
        why: "stopped".to_owned(),
    }
}

impl Open {
    fn push(&mut self, me: &ActorRef<Msg>, push: Push) {
        let Some(outgoing) = self.outgoing.clone() else { return };
        let call = async move { outgoing.call("reconcile", &push, PUSH_WITHIN).await };
        self.pushing.retain(|work| !work.is_done());
        self.pushing.push(work(me, call, move |result| Msg::Pushed(push, result)));
    }

    fn pushed(&mut self, push: Push, result: Result<Result<Pushed, CallError>, Panicked>) {
        let result = match result {
            Ok(Ok(pushed)) => Ok(pushed),
            Ok(Err(error)) => Err(error.to_string()),
            Err(panicked) => Err(panicked.to_string()),
        };
        self.node.reconcile.pushed(self.session.id(), push, result);
    }

    fn foresee(&mut self, me: &ActorRef<Msg>, asked: Foresee, reply: Reply<Result<ForeseenPage, CallError>>) {
        let Some(outgoing) = self.outgoing.clone() else { return answer(reply, Err(CallError::Gone)) };
        let call = async move { answer(reply, outgoing.call("reconcile", &asked, FORESEEN_WITHIN).await) };
        self.pushing.retain(|work| !work.is_done());
        self.pushing.push(work(me, call, Msg::Foreseen));
    }

    /// Whoever asked has the answer, or was told that the question was dropped.
    fn foreseen(&self, result: &Result<(), Panicked>) {
        if let Err(panicked) = result {
            tracing::error!(node = %self.node.id(), %panicked, "a question broke off by a fault of ours");
        }
    }

    fn renewed(&mut self, me: &ActorRef<Msg>) {
        self.token_due = after(me, self.plane.config.session_life, || Msg::TokenDue);
    }

    fn end(&mut self, me: &ActorRef<Msg>, why: &Refusal) {
        self.why.clone_from(&why.code);
        if let Some(outgoing) = &self.outgoing {
            let ended = Ended { reason: why.clone(), retry_after_ms: 0 };
            // A queue without room belongs to a host that takes nothing any more.
            drop(outgoing.tell("session", &ended));
        }
        me.stop(None);
    }

    fn closed(&mut self, me: &ActorRef<Msg>, why: &str) {
        why.clone_into(&mut self.why);
        me.stop(None);
    }

    fn served(&mut self, me: &ActorRef<Msg>, result: Result<(), Panicked>) {
        if let Err(panicked) = result {
            tracing::error!(node = %self.node.id(), %panicked, "a session broke off by a fault of ours");
            self.why = "fault".to_owned();
            me.stop(None);
        }
    }

    /// Lets what is queued go out, then the connection end; a host that takes nothing is left after a moment.
    async fn say_goodbye(&mut self) {
        if let (Some(outgoing), "stopped") = (&self.outgoing, self.why.as_str()) {
            drop(outgoing.tell("session", &Ended { reason: draining(), retry_after_ms: 0 }));
        }
        self.serving = None;
        self.pushing.clear();
        self.outgoing = None;
        if let Some(mut frames) = self.frames.take()
            && tokio::time::timeout(GOODBYE, &mut frames).await.is_err()
        {
            frames.abort();
        }
    }
}

/// How a connection ended, as the log says it.
const fn in_a_word(end: &WireError) -> &'static str {
    match end {
        WireError::Closed => "closed",
        WireError::Cut => "cut",
        WireError::Silent(_) => "silent",
        WireError::Frame(_) => "malformed",
        WireError::Io(_) => "broken",
    }
}

/// The session token was not renewed in its time (N-06).
fn lapsed() -> Refusal {
    Refusal::new(
        "session_lapsed",
        "the session's token was not renewed in its time",
        "the node proves its key again when it comes back; nothing else changed",
        "nothing: the host connects again by itself",
    )
}

/// The control plane stops.
pub(crate) fn draining() -> Refusal {
    Refusal::new(
        "draining",
        "the control plane stops",
        "the machine is held in its last state meanwhile",
        "nothing: the host connects again by itself; start the control plane again when you are done",
    )
}
