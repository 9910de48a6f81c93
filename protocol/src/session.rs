//! A session: one outbound connection of a node, opened by proof of its key, kept by heartbeats.

use serde::{Deserialize, Serialize};

use crate::enrolment::Root;
use crate::id::{
    BootId, ControlPlaneId, Digest, Epoch, FencingToken, Generation, Millis, NodeId, Revision,
    SessionCounter, SessionId, StoreId,
};
use crate::machine::Mode;
use crate::profile::Facts;
use crate::proof::Proof;
use crate::refusal::Refusal;
use crate::token::SessionToken;
use crate::version::ProtocolRange;

/// The first frame of a session, at most 4 KiB.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The control plane this is meant for.
    pub control_plane_id: ControlPlaneId,
    /// The epoch the node last knew.
    pub epoch: Epoch,
    /// Who speaks.
    pub node: NodeId,
    /// Which life of it.
    pub generation: Generation,
    /// The enrolment it stands on.
    pub fencing: FencingToken,
    /// Which life of the host's store.
    pub store_id: StoreId,
    /// The number of this session; it rises with each, with gaps.
    pub session_counter: SessionCounter,
    /// Which boot of the machine.
    pub boot_id: BootId,
    /// The running version (H-20).
    pub software: String,
    /// What it speaks.
    pub protocol: ProtocolRange,
    /// What it performs beyond the protocol's base (N-19); at most 32 words.
    #[serde(deserialize_with = "crate::wire::codec::bounded::<_, _, 32>")]
    pub capabilities: Vec<String>,
    /// Proof of the node key over this connection, for the purpose *session*.
    pub proof: Proof,
    /// The last session token, if one is kept. It decides only whether a lapse needs a reinvite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_token: Option<SessionToken>,
    /// The declaration the host holds, if any.
    pub held: Option<HeldDeclaration>,
    /// The pass it last reported on and the digest of its outcomes, if any.
    pub reported: Option<(u64, Digest)>,
}

/// Which declaration a host has in its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldDeclaration {
    /// Its revision.
    pub revision: Revision,
    /// The digest of its bytes.
    pub sha256: Digest,
}

/// The session is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// Names this session.
    pub session: SessionId,
    /// The control plane's epoch; a higher one than the host knew is a restore, and is taken from here only.
    pub epoch: Epoch,
    /// The protocol version this connection speaks from here on.
    pub protocol: u16,
    /// The fencing token that holds.
    pub fencing: FencingToken,
    /// The mode the node is in.
    pub mode: Mode,
    /// How long silence is believed.
    pub lease_ms: u64,
    /// How often to beat.
    pub heartbeat_ms: u64,
    /// After how long without an answer the other side counts as gone.
    pub silence_ms: u64,
    /// The session's token.
    pub token: SessionToken,
    /// The exact moment it ends, on the control plane's clock.
    pub token_expires: Millis,
    /// The same as a duration from now: the host has a clock of its own (S-18).
    pub token_expires_in_ms: u64,
    /// The control plane's clock.
    pub now: Millis,
    /// The roots to pin from now on.
    #[serde(deserialize_with = "crate::wire::codec::bounded::<_, _, 8>")]
    pub roots: Vec<Root>,
    /// What is declared for the node, if anything: the host asks for what it lacks.
    pub declared: Option<crate::content::Push>,
}

/// A new session token ahead of the old one's end. Writes nothing durable (N-06).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renew {}

/// The new token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renewed {
    /// The token.
    pub token: SessionToken,
    /// The exact moment it ends, on the control plane's clock.
    pub expires: Millis,
    /// The same as a duration from now.
    pub expires_in_ms: u64,
}

/// A beat: what is true of the node now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// What the node says of itself.
    pub facts: Facts,
}

/// The answer to a beat, so that both sides know the other is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beaten {
    /// The control plane's clock.
    pub now: Millis,
}

/// The session ends, and why. Told before the connection closes, where that is possible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Why. `superseded`: another session of this node opened. `retired`, `draining`, and so on.
    pub reason: Refusal,
    /// Do not come back before this; zero: as the host likes.
    pub retry_after_ms: u64,
}
