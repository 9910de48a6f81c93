//! The rows of a store as values: what is kept of identities, tokens, declarations, reports and events, and what
//! changes to them come to. Every store speaks these; none adds its own.

use tenure_protocol::enrolment::{Briefing, Join};
use tenure_protocol::id::{
    BootId, ControlPlaneId, Digest, Epoch, FencingToken, Generation, Millis, NodeId, NodeUuid, Rental,
    Revision, RevisionNumber, SessionCounter, StoreId,
};
use tenure_protocol::machine::{Mode, NodeState};
use tenure_protocol::operator::Rejoin;
use tenure_protocol::profile::{Disk, Profile};
use tenure_protocol::proof::PublicKey;
use tenure_protocol::report::Summary;

use crate::node::redeem::EnrolRefusal;

/// Who this control plane is; minted once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Founding {
    /// Its identity.
    pub control_plane_id: ControlPlaneId,
    /// The life of this store.
    pub epoch: Epoch,
}

/// An identity and its standing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRecord {
    /// Its name.
    pub node: NodeId,
    /// The identity behind the name.
    pub uuid: NodeUuid,
    /// What it is rented as.
    pub rental: Rental,
    /// Which life of it.
    pub generation: Generation,
    /// Whether found things are kept.
    pub mode: Mode,
    /// How a lapsed session comes back.
    pub rejoin: Rejoin,
    /// What it is to us.
    pub state: NodeState,
    /// What voids older standing.
    pub fencing: FencingToken,
    /// The key its last enrolment bound.
    pub key: Option<PublicKey>,
    /// That enrolment was ended by hand, and a new one is awaited.
    pub revoked: bool,
    /// When it enrolled.
    pub enrolled_at: Option<Millis>,
    /// When its standing was withdrawn for good.
    pub retired_at: Option<Millis>,
    /// What the machine said it is.
    pub profile: Option<Profile>,
    /// The lines its enrolment ended with.
    pub briefing: Briefing,
    /// What its last session opened with.
    pub last_session: Option<SessionFacts>,
    /// A session of this enrolment was used, so that its host was given a session token. Noted where one is asked for.
    pub session_used: bool,
}

/// What a session opens with, kept from the first day for telling copies apart later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFacts {
    /// Which life of the host's store.
    pub store_id: StoreId,
    /// How many sessions that store has opened.
    pub counter: SessionCounter,
    /// Which boot.
    pub boot_id: BootId,
    /// The version that runs there.
    pub software: String,
}

/// A minted token, as the record keeps it: never the MAC itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvitationRecord {
    /// Whose.
    pub node: NodeId,
    /// Counts the tokens of this node.
    pub counter: u64,
    /// SHA-256 of the MAC.
    pub token: Digest,
    /// The bytes the MAC covers.
    pub bytes: Vec<u8>,
    /// Until when it can be redeemed.
    pub expires: Millis,
    /// When it was made, by our clock then.
    pub minted_at: Millis,
    /// By whom it was redeemed, and from where.
    pub spent: Option<Spent>,
    /// A newer one was minted in its place.
    pub replaced: bool,
}

/// A redemption that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spent {
    /// The key that was bound.
    pub key: PublicKey,
    /// From where.
    pub from: String,
}

/// A new identity with its first token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewNode {
    /// Its name.
    pub node: NodeId,
    /// The identity behind the name.
    pub uuid: NodeUuid,
    /// What it is rented as.
    pub rental: Rental,
    /// Which life of it.
    pub generation: Generation,
    /// Whether found things are kept.
    pub mode: Mode,
    /// How a lapsed session comes back.
    pub rejoin: Rejoin,
    /// The token.
    pub token: NewToken,
}

/// A token to be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// Counts the tokens of this node.
    pub counter: u64,
    /// SHA-256 of the MAC.
    pub token: Digest,
    /// The bytes the MAC covers.
    pub bytes: Vec<u8>,
    /// Until when it can be redeemed.
    pub expires: Millis,
}

/// Somebody presents a token that our key made, and a proof of the key they present with it.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The node the token names.
    pub node: NodeId,
    /// The life it names.
    pub generation: Generation,
    /// SHA-256 of its MAC.
    pub token: Digest,
    /// The machine's key.
    pub key: PublicKey,
    /// From where.
    pub from: String,
    /// What the machine is.
    pub join: Join,
    /// The lines this enrolment ends with.
    pub briefing: Briefing,
    /// Our clock.
    pub now: Millis,
}

/// What a redemption came to, durable before it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redeemed {
    /// It is enrolled now.
    Enrolled(NodeRecord),
    /// It was enrolled by this very key and token before; nothing moved.
    Again(NodeRecord),
    /// It is refused, and why.
    Refused(EnrolRefusal),
}

/// One node in a list, as far as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSummary {
    /// Its record.
    pub record: NodeRecord,
    /// When it was last heard, as last flushed.
    pub contact: Option<Contact>,
    /// The newest declaration.
    pub declared: Option<DeclaredRecord>,
    /// Its last report.
    pub report: Option<ReportRecord>,
    /// Until when its outstanding token can be redeemed.
    pub invited_until: Option<Millis>,
}

/// A node's last word, flushed in batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contact {
    /// When it was received, on our clock.
    pub received_at: Millis,
    /// The version that runs there.
    pub version: Option<String>,
    /// What it said of its disk.
    pub disk: Disk,
}

/// The newest declaration of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeclaredRecord {
    /// Which revision.
    pub revision: Revision,
    /// The digest of its bytes.
    pub sha256: Digest,
    /// How many bytes.
    pub bytes: u64,
    /// How many resources.
    pub resources: u64,
}

/// The last report of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportRecord {
    /// The report as a whole.
    pub summary: Summary,
    /// When its last part was received.
    pub received_at: Millis,
    /// How many outcomes of this pass have been received.
    pub received: u64,
    /// Whether all of it is here, and is what the node meant.
    pub whole: bool,
    /// The newest revision of which a whole pass was reported.
    pub applied: Option<Revision>,
}

/// What became of a part of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartStored {
    /// It is stored, and more is to come.
    Part,
    /// It is older than what is known, and changes nothing.
    Older,
    /// It was the last part, and our copy is the node's.
    Whole {
        /// A whole pass of a revision that was not known as applied before.
        newly: Option<Revision>,
    },
    /// It was the last part, and our copy is not the node's.
    Differs,
}

/// A declaration to be written, compared with the one it follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDeclaration {
    /// Whose.
    pub node: NodeId,
    /// The number it follows; zero: none. Another one in the store means that somebody was faster.
    pub after: RevisionNumber,
    /// Which revision.
    pub revision: Revision,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// How many resources.
    pub resources: u64,
    /// The contents it needs.
    pub contents: Vec<Digest>,
}

impl NewDeclaration {
    /// Whether it may be written for a node of this record whose newest declaration is `held`.
    pub(super) fn may_follow(
        &self,
        record: Option<&NodeRecord>,
        held: Option<&DeclaredRecord>,
    ) -> Result<(), NotDeclared> {
        if record.is_none_or(|record| record.state == NodeState::Retired) {
            return Err(NotDeclared::NoStanding(self.node.clone()));
        }
        if held.map_or(RevisionNumber(0), |held| held.revision.number) != self.after {
            return Err(NotDeclared::Overtaken(self.node.clone()));
        }
        Ok(())
    }
}

/// Why a declaration was not written; none of them was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotDeclared {
    /// Another declaration of this node came between.
    Overtaken(NodeId),
    /// The node was retired or is not known.
    NoStanding(NodeId),
    /// A content it needs is not there.
    ContentMissing(NodeId, Digest),
}

/// Why pieces were not taken. The pieces before the one named were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotPut {
    /// It is not the next piece of its content.
    OutOfOrder {
        /// Which content.
        sha256: Digest,
        /// The byte that would be next.
        expected: u64,
    },
    /// It is too long, empty before the end, or reaches past the stated size.
    Malformed(Digest),
    /// All bytes are there, and they are not the content named; they were dropped.
    WrongDigest(Digest),
    /// There is as much content already as may lie here without a declaration that names it.
    NoRoom(Digest),
}

/// A fact of the control plane's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// About whom.
    pub node: Option<NodeId>,
    /// Its kind.
    pub kind: &'static str,
    /// What happened, in one clause.
    pub text: String,
}
