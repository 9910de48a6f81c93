//! What a node sends on its open session, answered one after the other. Beats and renewals are answered at once; what
//! writes to the store goes through a lane of its own, in order, so that a busy store does not look like silence.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tenure_protocol::content::{Fetch, MOST_PIECES, Pieces};
use tenure_protocol::envelope::Request;
use tenure_protocol::event::{Acknowledged, Spooled};
use tenure_protocol::id::{NodeId, StoreId};
use tenure_protocol::kind::{Door, Kind, Message, admit};
use tenure_protocol::refusal::{Explain as _, Refusal};
use tenure_protocol::report::Part;
use tenure_protocol::session::{Beaten, Heartbeat, Renew};
use tenure_protocol::text::shown;
use tenure_protocol::wire::exchange::{self, Incoming, Outgoing};
use tenure_protocol::wire::{codec, frame};
use tokio::sync::mpsc;

use super::offer::Offer;
use crate::node::recognise::{SessionRefusal, Standing};
use crate::node::{Node, later};
use crate::plane::Plane;

pub(super) struct Desk {
    pub(super) plane: Arc<Plane>,
    pub(super) standing: Standing,
    pub(super) node: Node,
    pub(super) store_id: StoreId,
    /// Whether its node may be assigned anything.
    pub(super) assignable: bool,
    /// What it may fetch besides.
    pub(super) offer: Offer,
    /// It is still to be noted that the host has its session token, and will be asked for it.
    pub(super) unused: AtomicBool,
    pub(super) outgoing: Outgoing,
    pub(super) renewed: Box<dyn Fn() + Send + Sync>,
}

/// Requests that may wait for the store; what a node sends beyond them is refused, so that its beats are still heard. A
/// host sends one after the other, and whole frames wait: each is memory that somebody else could fill.
const LANE: usize = 8;

/// The most bytes that one session holds of what its node sent: what the wire holds, what waits for the store, and one
/// that the store works on, which exists as bytes and as a value.
pub const MOST_HELD: usize = exchange::MOST_HELD + (LANE + 2) * frame::MOST;

impl Desk {
    /// Until the connection ends.
    pub(super) async fn serve(&self, mut incoming: mpsc::Receiver<Incoming>) {
        let (lane, mut slow) = mpsc::channel::<(&'static Kind, Request)>(LANE);
        // A place for one word is enough: that it spoke is noted once.
        let (spoke, mut spoken) = mpsc::channel::<()>(1);
        let quick = async move {
            while let Some(unasked) = incoming.recv().await {
                // No kind comes up as an event, so one that does is nobody's.
                let Incoming::Request(request) = unasked else { continue };
                let admitted = self.admitted(&request);
                if admitted.is_ok() {
                    let _ = spoke.try_send(());
                }
                match admitted {
                    Err(refusal) => self.answer(request.id, Err(refusal)).await,
                    Ok(kind) if is_quick(kind) => {
                        let result = self.handle(kind, &request).await;
                        self.answer(request.id, result).await;
                    }
                    Ok(kind) => {
                        if let Err(full) = lane.try_send((kind, request)) {
                            let (_, request) = full.into_inner();
                            self.answer(request.id, Err(lane_full())).await;
                        }
                    }
                }
            }
        };
        let in_order = async {
            while let Some((kind, request)) = slow.recv().await {
                let result = self.handle(kind, &request).await;
                self.answer(request.id, result).await;
            }
        };
        // Beside both: no beat waits for the store.
        let noted = async {
            while spoken.recv().await.is_some() {
                self.used().await;
            }
        };
        tokio::join!(quick, in_order, noted);
    }

    async fn answer(&self, re: u64, result: Result<Vec<u8>, Refusal>) {
        // A connection that ended says so by itself.
        drop(self.outgoing.answer(re, result).await);
    }

    /// The door, and whom it is for: this node, whatever the frame says (S-02). Asked before the body is read.
    fn admitted(&self, request: &Request) -> Result<&'static Kind, Refusal> {
        let kind = admit(&request.kind, Door::LinkUp)?;
        let own = kind.to.replace("{node}", self.standing.node.as_str());
        if request.to == own { Ok(kind) } else { Err(not_yours(&request.to, &own)) }
    }

    async fn handle(&self, kind: &Kind, request: &Request) -> Result<Vec<u8>, Refusal> {
        match kind.name {
            "heartbeat" => {
                let Heartbeat { facts } = read::<Heartbeat>(request)?;
                let now = self.node.lease.beat(facts).await.map_err(|error| later(&error))?;
                Ok(codec::encode(&Beaten { now }))
            }
            "session.renew" => {
                let Renew {} = read::<Renew>(request)?;
                let renewed = super::token(&self.plane, &self.standing)
                    .map_err(|error| SessionRefusal::from(error).refusal())?;
                (self.renewed)();
                Ok(codec::encode(&renewed))
            }
            "report" => {
                let part = read::<Part>(request)?;
                let received = self.node.reconcile.report(self.store_id, part).await?;
                Ok(codec::encode(&received))
            }
            "events" => self.events(read::<Spooled>(request)?).await,
            "content.fetch" => self.fetch(read::<Fetch>(request)?).await,
            // A kind that is admitted here and not handled is a hole in this table, and says so.
            other => Err(unhandled(other)),
        }
    }

    /// The first word on a session, whatever it is, shows that its welcome arrived. One that cannot be noted is with the next.
    async fn used(&self) {
        let Standing { node, fencing, .. } = &self.standing;
        if self.unused.load(Ordering::Relaxed)
            && self.plane.store.session_used(node.clone(), *fencing).await.is_ok()
        {
            self.unused.store(false, Ordering::Relaxed);
        }
    }

    async fn events(&self, spooled: Spooled) -> Result<Vec<u8>, Refusal> {
        let (node, now) = (self.standing.node.clone(), self.plane.now());
        let events = self.plane.store.node_events(node, spooled.events, now).await?;
        Ok(codec::encode(&Acknowledged { events }))
    }

    /// Only what the node's own declaration names, or one that it is asked about (S-08).
    async fn fetch(&self, fetch: Fetch) -> Result<Vec<u8>, Refusal> {
        if fetch.wanted.is_empty() || fetch.wanted.len() > MOST_PIECES {
            return Err(malformed("content.fetch", "it names no piece"));
        }
        let node = self.standing.node.clone();
        if !self.assignable {
            return Err(not_assignable(&node));
        }
        let of = (!self.offer.covers(&fetch.wanted)).then_some(node);
        match self.plane.store.pieces(fetch.wanted, of).await? {
            Ok(pieces) => Ok(codec::encode(&Pieces { pieces })),
            Err(sha256) => Err(Refusal::new(
                "not_declared",
                format!("content {} is not named by what is declared for this node now", sha256.short()),
                "a newer declaration may have taken its place; nothing was given out",
                "fetch what the newest declaration names",
            )),
        }
    }
}

fn is_quick(kind: &Kind) -> bool {
    matches!(kind.name, "heartbeat" | "session.renew")
}

/// The body of a request of this kind.
pub(crate) fn read<M: Message>(request: &Request) -> Result<M, Refusal> {
    codec::decode(&request.body).map_err(|error| malformed(&request.kind, &error.to_string()))
}

fn malformed(kind: &str, why: &str) -> Refusal {
    Refusal::new(
        "malformed",
        format!("a message of the kind `{}` cannot be read: {}", shown(kind, 64), shown(why, 200)),
        "it has another form than this version knows; nothing was done",
        "compare the versions of both sides (`tenure nodes`)",
    )
}

pub(crate) fn unhandled(kind: &str) -> Refusal {
    Refusal::new(
        "unsupported_kind",
        format!("the message kind `{kind}` is not performed here"),
        "this control plane knows its name and nothing more",
        "report it, with the version of the control plane",
    )
}

fn lane_full() -> Refusal {
    Refusal::new(
        "try_later",
        format!("{LANE} messages of this node wait for the control plane's store already"),
        "the store is slower than the node speaks; nothing of this message was done",
        "send it again after a while",
    )
}

fn not_assignable(node: &NodeId) -> Refusal {
    Refusal::new(
        "not_assignable",
        format!("a line of the briefing that node {node} enrolled with failed"),
        "such a node is assigned nothing, and so there is no content for it; the machine stays as it is",
        format!("run `tenure node {node}` to see which line; then reinvite the node"),
    )
}

fn not_yours(to: &str, own: &str) -> Refusal {
    Refusal::new(
        "not_yours",
        format!("a message for `{}` came in on a session that speaks for `{own}`", shown(to, 100)),
        "on a link the node is the session's, whatever a message says; it was not read",
        format!("send it to `{own}`"),
    )
}
