//! What may be asked of a host on its own machine, through its own socket, with no control plane at hand (H-01).

use serde::{Deserialize, Serialize};

use crate::enrolment::BriefingLine;
use crate::id::{ControlPlaneId, FencingToken, Generation, Millis, NodeId, Revision, StoreId};
use crate::machine::{MachineState, Mode};
use crate::outcome::{Origin, ResourceOutcome};
use crate::refusal::Refusal;
use crate::report::Summary;
use crate::secret::Secret;
use crate::wire::codec::bounded;

/// What is true here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {}

/// What is true here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusIs {
    /// The machine's own view of itself.
    pub machine_state: MachineState,
    /// The running version.
    pub version: String,
    /// Which life of the store.
    pub store_id: StoreId,
    /// The identity, if it has one.
    pub identity: Option<Identity>,
    /// How the link is.
    pub link: LinkStatus,
    /// The revision it holds, if any.
    pub revision: Option<Revision>,
    /// What the last pass did, if there was one.
    pub last: Option<Summary>,
    /// When the content of everything declared was last read, on the node's clock; none where no daemon says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_whole: Option<Millis>,
    /// How many resources are ours.
    pub owned: u64,
    /// Events that have not been acknowledged.
    pub spooled: u64,
    /// What an operator should know about the store, if anything (H-11).
    pub store_note: Option<String>,
    /// Why this machine cannot prove who it is, if it cannot (O-06).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<Refusal>,
    /// Whether it holds a directory tree only.
    pub sandbox: bool,
}

/// Who this machine is to its control plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The node.
    pub node: NodeId,
    /// Its control plane.
    pub control_plane_id: ControlPlaneId,
    /// Where that is dialled.
    #[serde(deserialize_with = "bounded::<_, _, 8>")]
    pub addresses: Vec<String>,
    /// Which life.
    pub generation: Generation,
    /// The enrolment it stands on.
    pub fencing: FencingToken,
    /// Whether found things are kept.
    pub mode: Mode,
}

/// How the link is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkStatus {
    /// There is nobody to dial.
    None,
    /// Open since then, to this address.
    Up {
        /// Since when.
        since: Millis,
        /// To where.
        address: String,
        /// What is unusual about it, if anything (O-60).
        note: Option<String>,
    },
    /// Not open: since when, and why the last try ended.
    Down {
        /// Since when.
        since: Millis,
        /// Why.
        reason: Option<Refusal>,
    },
}

/// Hands the host an enrolment token.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Enrol {
    /// The token.
    pub token: Secret,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnrolledAs {
    /// The node this machine is.
    pub node: NodeId,
    /// Whether found things are kept.
    pub mode: Mode,
    /// The lines it ended with.
    #[serde(deserialize_with = "bounded::<_, _, 64>")]
    pub briefing: Vec<BriefingLine>,
    /// It was enrolled with this very token before; nothing was redeemed.
    pub already: bool,
}

/// Reconcile what is stored, now. Answers when the pass is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Apply {}

/// What the pass did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// As it is reported upward.
    pub summary: Summary,
}

/// The outcomes of the last pass, by key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcomes {
    /// Those whose key comes after this one.
    pub after: Option<String>,
}

/// A page of outcomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomesPage {
    /// At most 200.
    #[serde(deserialize_with = "bounded::<_, _, 200>")]
    pub outcomes: Vec<ResourceOutcome>,
    /// Whether there are more.
    pub more: bool,
}

/// What is ours, by key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owned {
    /// Those whose key comes after this one.
    pub after: Option<String>,
}

/// A page of records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedPage {
    /// At most 200.
    #[serde(deserialize_with = "bounded::<_, _, 200>")]
    pub owned: Vec<OwnedLine>,
    /// Whether there are more.
    pub more: bool,
}

/// One record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedLine {
    /// Which resource.
    pub key: String,
    /// Of which module.
    pub module: String,
    /// How it became ours, which decides what leaving the declaration does.
    pub origin: Origin,
    /// When it was recorded.
    pub recorded_at: Millis,
}
