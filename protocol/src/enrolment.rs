//! Enrolment: redeeming an invitation in two frames. The first is verified and redeems nothing; the second carries
//! what the machine is, and one commit redeems (H-13).

use serde::{Deserialize, Serialize};

use crate::id::{ControlPlaneId, Epoch, FencingToken, Generation, Millis, NodeId, NodeUuid, Rental};
use crate::machine::Mode;
use crate::profile::{Inventory, Profile};
use crate::proof::{Proof, PublicKey};
use crate::secret::Secret;
use crate::version::ProtocolRange;

/// The first frame, at most 4 KiB: the token, the new public key, and the proof that its holder speaks.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hello {
    /// The enrolment token as it was handed over.
    pub token: Secret,
    /// The machine's public key.
    pub key: PublicKey,
    /// Proof of that key over this connection, for the purpose *enrol*.
    pub proof: Proof,
    /// The software that speaks.
    pub software: String,
    /// What it speaks.
    pub protocol: ProtocolRange,
}

/// The token holds and can be redeemed; larger frames are taken now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// The protocol version this connection speaks from here on.
    pub protocol: u16,
}

/// The second frame: what the machine is and what was found on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// What the machine is.
    pub profile: Profile,
    /// What was found.
    pub inventory: Inventory,
}

/// The identity a machine now has. A repeat with the same key inside the window is answered with the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enrolled {
    /// Which control plane.
    pub control_plane_id: ControlPlaneId,
    /// Its epoch.
    pub epoch: Epoch,
    /// The node this machine is.
    pub node: NodeId,
    /// The identity behind the name.
    pub node_uuid: NodeUuid,
    /// What it is rented as.
    pub rental: Rental,
    /// Which life of it.
    pub generation: Generation,
    /// What voids older standing.
    pub fencing: FencingToken,
    /// Whether found things are kept.
    pub mode: Mode,
    /// When it enrolled, on the control plane's clock.
    pub enrolled_at: Millis,
    /// The roots to pin from now on (S-17).
    #[serde(deserialize_with = "crate::wire::codec::bounded::<_, _, 8>")]
    pub roots: Vec<Root>,
    /// The briefing that ends the enrolment.
    pub briefing: Briefing,
}

/// A certificate authority of the control plane, by number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// Rises with each new one.
    pub number: u32,
    /// The certificate, DER.
    #[serde(with = "serde_bytes")]
    pub certificate: Vec<u8>,
}

/// The structured lines an enrolment ends with. Its verdict is computed from them, never stated beside them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Briefing {
    #[serde(deserialize_with = "crate::wire::codec::bounded::<_, _, 64>")]
    lines: Vec<BriefingLine>,
}

/// One line of a briefing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BriefingLine {
    /// What was judged, as in `protocol`.
    pub subject: String,
    /// Whether it stands in the way of assigning the node anything.
    pub failed: bool,
    /// What is so, in one clause.
    pub text: String,
}

impl Briefing {
    /// A briefing of these lines.
    pub const fn new(lines: Vec<BriefingLine>) -> Self {
        Self { lines }
    }

    /// Its lines.
    pub fn lines(&self) -> &[BriefingLine] {
        &self.lines
    }

    /// Whether the node may be assigned anything: no line failed.
    pub fn is_assignable(&self) -> bool {
        self.lines.iter().all(|line| !line.failed)
    }
}
