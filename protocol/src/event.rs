//! An event: a fact a node or the control plane tells once, with an id, kept until it is acknowledged (N-11).

use serde::{Deserialize, Serialize};

use crate::id::{EventId, Millis, NodeId};

/// A fact of a node on its way up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeEvent {
    /// Unique across loss of the node's store, so that a replay changes nothing.
    pub id: EventId,
    /// When it happened, on the node's clock.
    pub at: Millis,
    /// Its kind, as in `drift_repaired`.
    pub kind: String,
    /// The resource it is about, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What happened, in one clause; at most 500 characters.
    pub text: String,
}

/// A resource was not as declared, by a change that was not ours, and was put right.
pub const DRIFT_REPAIRED: &str = "drift_repaired";
/// A held thing was changed by something else; it is left as it is.
pub const HELD_CHANGED: &str = "held_changed";
/// A resource failed for the first time.
pub const FAILURE_BEGAN: &str = "failure_began";
/// A resource that failed no longer does.
pub const FAILURE_ENDED: &str = "failure_ended";
/// A resource left the declaration and was removed.
pub const REMOVED: &str = "removed";
/// A resource left the declaration and was left as it is.
pub const RELEASED: &str = "released";
/// A package was brought, and something is to be known of it: its script failed, or a configuration file lies beside
/// the one that was kept.
pub const PACKAGE_REMARK: &str = "package_remark";
/// The host's store was lost or damaged; what it owned is not known to it any more.
pub const STORE_LOST: &str = "store_lost";
/// Events were dropped because too many waited.
pub const GAP: &str = "gap";

/// Spooled events, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spooled {
    /// At most 100 at a time.
    #[serde(deserialize_with = "crate::wire::codec::bounded::<_, _, 100>")]
    pub events: Vec<NodeEvent>,
}

/// The events that need not be told again: stored, or known already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledged {
    /// Their ids.
    #[serde(deserialize_with = "crate::wire::codec::bounded::<_, _, 100>")]
    pub events: Vec<EventId>,
}

/// An event as the control plane lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Its place in the list, rising.
    pub seq: u64,
    /// Whose; none: the control plane's own.
    pub node: Option<NodeId>,
    /// Its kind.
    pub kind: String,
    /// The resource it is about, if any.
    pub key: Option<String>,
    /// What happened.
    pub text: String,
    /// When whoever tells it says it happened.
    pub observed_at: Millis,
    /// When the control plane received it, on its own clock.
    pub received_at: Millis,
}
