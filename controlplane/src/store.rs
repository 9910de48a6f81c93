//! What a control plane must not forget: identities and their standing, invitations, declarations and content, reports
//! and events. A change is durable before its future resolves (O-64). Sessions, leases and last words live in memory.
//!
//! [`Store`] is what every store does; [`sqlite`] is the embedded one, [`memory`] one for tests. Decisions inside a
//! commit (who may redeem, what a part of a report changes) and the events that go with it are pure functions of rows,
//! the same for every store. No store looks at a clock or makes an identity: both come with what is asked (N-21).

use std::future::Future;
use std::pin::Pin;

use tenure_protocol::content::{Piece, Wanted};
use tenure_protocol::event::{Listed, NodeEvent};
use tenure_protocol::id::{Digest, EventId, FencingToken, Millis, NodeId, StoreId};
use tenure_protocol::machine::NodeState;
use tenure_protocol::outcome::ResourceOutcome;
use tenure_protocol::proof::PublicKey;
use tenure_protocol::refusal::{Explain, Refusal};
use tenure_protocol::report::Part;

mod facts;
pub mod memory;
mod records;
mod reporting;
pub mod sqlite;
#[cfg(test)]
pub(crate) mod tests;
mod upload;

pub use records::{
    Attempt, Contact, DeclaredRecord, Fact, Founding, InvitationRecord, NewDeclaration, NewNode, NewToken,
    NodeRecord, NodeSummary, NotDeclared, NotPut, PartStored, Redeemed, ReportRecord, SessionFacts, Spent,
};

/// What a store will answer, and its own state where it cannot.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// The store could not do it. The name is the store's own state, so that nobody looks for the fault at a node, a
/// credential or the network (O-70).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The disk under it is full.
    #[error("the disk under the control plane's store is full")]
    Full,
    /// It takes no writes.
    #[error("the control plane's store is read-only")]
    ReadOnly,
    /// A page is not what was written.
    #[error("the control plane's store is damaged")]
    Damaged,
    /// The disk answers with errors.
    #[error("the disk under the control plane's store reports errors")]
    Failing,
    /// Too much waits, or another program holds it.
    #[error("the control plane's store is busy")]
    Busy,
    /// A file of it was removed while it was open.
    #[error("a file of the control plane's store was removed while it was open")]
    Removed,
    /// Another file lies in the place of one of its own.
    #[error("another file lies in the place of the control plane's store")]
    Replaced,
    /// Another file system lies at its folder.
    #[error("the file system of the control plane's store is not mounted at its place any more")]
    Unmounted,
    /// It is being closed.
    #[error("the control plane's store is closed")]
    Closed,
    /// A statement or row is not as it should be: a fault of ours.
    #[error("the control plane's store answered with a fault: {0}")]
    Fault(String),
}

impl Explain for StoreError {
    fn code(&self) -> &'static str {
        match self {
            Self::Full => "store_full",
            Self::ReadOnly => "store_read_only",
            Self::Damaged => "store_damaged",
            Self::Failing => "store_failing",
            Self::Busy => "store_busy",
            Self::Removed => "store_removed",
            Self::Replaced => "store_replaced",
            Self::Unmounted => "store_unmounted",
            Self::Closed => "store_closed",
            Self::Fault(_) => "store_fault",
        }
    }

    fn meaning(&self) -> String {
        "nothing was changed, and nothing was said about the node or its credentials".to_owned()
    }

    fn remedy(&self) -> String {
        match self {
            Self::Full => "try later; make room on the disk of the control plane".to_owned(),
            Self::ReadOnly | Self::Failing => {
                "try later; look at the disk and the mount of the control plane's state directory".to_owned()
            }
            Self::Damaged => {
                "try later; stop the control plane, keep its store aside, and put a backup in its place".to_owned()
            }
            Self::Removed => {
                "try later; move the very file back, or put the copy in its place that the control plane's log names, \
                 and start it again"
                    .to_owned()
            }
            Self::Replaced => {
                "try later; move the control plane's own file back, or start it again if the other file shall count"
                    .to_owned()
            }
            Self::Unmounted => {
                "try later; mount it there again, or start the control plane again if what lies there now shall count"
                    .to_owned()
            }
            Self::Busy | Self::Closed => {
                "try later; if it stays, look at the control plane's log (`journalctl -u tenure-control`)"
                    .to_owned()
            }
            Self::Fault(_) => "try later; if it stays, report it with the control plane's log (`journalctl -u tenure-control`)".to_owned(),
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        error.refusal()
    }
}

/// The operator said that the clock is right, whatever was written before.
pub const CLOCK_TRUSTED: &str = "clock_trusted";

/// What every store does. Each change is one transaction.
pub trait Store: Send + Sync + 'static {
    /// Who this control plane is, if that was stored.
    fn founding(&self) -> Pending<'_, Option<Founding>>;
    /// Stores who it is, once; answers what is stored.
    fn found(&self, founding: Founding, now: Millis) -> Pending<'_, Founding>;

    /// Names and states after `after`, in order.
    fn names(&self, after: Option<NodeId>, most: u32) -> Pending<'_, Vec<(NodeId, NodeState)>>;
    /// One identity.
    fn node(&self, node: NodeId) -> Pending<'_, Option<NodeRecord>>;
    /// What is known of identities after `after`, in order.
    fn summaries(&self, after: Option<NodeId>, most: u32) -> Pending<'_, Vec<NodeSummary>>;
    /// What is known of one.
    fn summary(&self, node: NodeId) -> Pending<'_, Option<NodeSummary>>;
    /// Reserves an identity; false: there is one of this name.
    fn invite(&self, new: NewNode, now: Millis) -> Pending<'_, bool>;
    /// The newest token of a node.
    fn invitation(&self, node: NodeId) -> Pending<'_, Option<InvitationRecord>>;
    /// Replaces the tokens of a node that is not retired; false: it is. With `revoke`, ends its enrolment.
    fn reinvite(&self, node: NodeId, token: Option<NewToken>, revoke: bool, now: Millis)
    -> Pending<'_, bool>;
    /// Redeems a token, or says why not, in one commit.
    fn redeem(&self, attempt: Attempt) -> Pending<'_, Redeemed>;
    /// The key that this enrolment of the node bound, if there was one. Keys that hold no longer are kept.
    fn bound_key(&self, node: NodeId, fencing: FencingToken) -> Pending<'_, Option<PublicKey>>;
    /// Notes what a session opened with.
    fn session_opened(&self, node: NodeId, facts: SessionFacts, now: Millis) -> Pending<'_, ()>;
    /// Notes that the host of a session that opened spoke on it, if the node still stands on that enrolment.
    fn session_used(&self, node: NodeId, fencing: FencingToken) -> Pending<'_, ()>;
    /// Ready to lost, or lost to ready, with an event; false: it was not in the state before.
    fn marked(&self, node: NodeId, state: NodeState, text: String, now: Millis) -> Pending<'_, bool>;
    /// Withdraws its standing; true: it already was. None: not known.
    fn retire(&self, node: NodeId, now: Millis) -> Pending<'_, Option<bool>>;
    /// Last words, in a batch.
    fn contacts(&self, contacts: Vec<(NodeId, Contact)>) -> Pending<'_, ()>;

    /// A part of a report.
    fn report(&self, node: NodeId, store_id: StoreId, part: Part, now: Millis) -> Pending<'_, PartStored>;
    /// Outcomes of a node after a key, in order.
    fn outcomes(&self, node: NodeId, after: Option<String>, most: u32) -> Pending<'_, Vec<ResourceOutcome>>;
    /// A node's events, each once; answers those that are stored now, or were before.
    fn node_events(&self, node: NodeId, events: Vec<NodeEvent>, now: Millis) -> Pending<'_, Vec<EventId>>;
    /// The events of an enrolment that holds no longer, each once and with `mark` before its text; those for which there
    /// is room. None: of this enrolment or this node as many were taken as ever are, and none of these was.
    fn last_words(
        &self,
        node: NodeId,
        enrolment: FencingToken,
        mark: String,
        events: Vec<NodeEvent>,
        now: Millis,
    ) -> Pending<'_, Option<Vec<EventId>>>;
    /// Facts of our own.
    fn tell(&self, facts: Vec<Fact>, now: Millis) -> Pending<'_, ()>;
    /// When the newest durable write was made, by our clock then; zero: none was. What was written before the operator
    /// last said that the clock is right (a fact of the kind [`CLOCK_TRUSTED`]) does not count.
    fn newest_stamp(&self) -> Pending<'_, Millis>;
    /// Events after a place, oldest first; without one, the newest.
    fn events(&self, after: Option<u64>, node: Option<NodeId>, most: u32) -> Pending<'_, Vec<Listed>>;

    /// Those that are not there whole.
    fn missing(&self, contents: Vec<Digest>) -> Pending<'_, Vec<Digest>>;
    /// Pieces of content, in order.
    fn put(&self, pieces: Vec<Piece>, now: Millis) -> Pending<'_, Result<(), NotPut>>;
    /// Whole contents, all of them or none: false where there is no room for content that no declaration names. Those that
    /// are there already take none.
    fn keep(&self, contents: Vec<Vec<u8>>, now: Millis) -> Pending<'_, bool>;
    /// Sets of whole contents that are only planned, each of them whole or not at all: how many found room, from the first
    /// one on, in the share that what is only planned has of the room for content that no declaration names.
    fn lay_aside(&self, sets: Vec<Vec<Vec<u8>>>, now: Millis) -> Pending<'_, usize>;
    /// The document of a plan: false where it finds no room in what plans have of it.
    fn keep_plan(&self, document: Vec<u8>, now: Millis) -> Pending<'_, bool>;
    /// A whole content.
    fn content(&self, sha256: Digest) -> Pending<'_, Option<Vec<u8>>>;
    /// Pieces from these places on, as many as fit one answer. For a node: only of what its newest declaration
    /// names. The error is the first that is not there, or not its.
    fn pieces(&self, wanted: Vec<Wanted>, of: Option<NodeId>) -> Pending<'_, Result<Vec<Piece>, Digest>>;
    /// Drops contents that nothing refers to and that came before `before`; answers how many.
    fn sweep(&self, before: Millis) -> Pending<'_, u64>;

    /// The newest declaration of a node.
    fn declared(&self, node: NodeId) -> Pending<'_, Option<DeclaredRecord>>;
    /// Declarations, all or none, with the contents they bring.
    fn declare(
        &self,
        declarations: Vec<NewDeclaration>,
        contents: Vec<Vec<u8>>,
        now: Millis,
    ) -> Pending<'_, Result<(), NotDeclared>>;
}
