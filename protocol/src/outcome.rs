//! What became of one resource in one pass. Nothing is reported that was not read back (H-09).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::Millis;

/// What became of one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was as declared before the pass looked.
    Unchanged,
    /// It was changed, observed again, and matches.
    Applied,
    /// It is gone: it left the declaration and we had created it, or it was declared absent.
    Removed,
    /// It left the declaration and stays as it is, since it existed before us; no longer ours.
    Released,
    /// It was found and is kept as found.
    Held,
    /// It will not be done as declared, by rule.
    Refused,
    /// It was tried and did not come to be.
    Failed,
    /// It waits for something that is not its own fault: a lock, a need, the node.
    Outstanding,
    /// Nobody could look.
    Unknown,
}

impl Outcome {
    /// Every outcome, in the order they are listed.
    pub const ALL: [Self; 9] = [
        Self::Unchanged,
        Self::Applied,
        Self::Removed,
        Self::Released,
        Self::Held,
        Self::Refused,
        Self::Failed,
        Self::Outstanding,
        Self::Unknown,
    ];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Applied => "applied",
            Self::Removed => "removed",
            Self::Released => "released",
            Self::Held => "held",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Outstanding => "outstanding",
            Self::Unknown => "unknown",
        }
    }

    /// Whether the resource is now as the declaration says.
    pub const fn is_as_declared(self) -> bool {
        match self {
            Self::Unchanged | Self::Applied | Self::Removed | Self::Released => true,
            Self::Held | Self::Refused | Self::Failed | Self::Outstanding | Self::Unknown => false,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How our record of a resource began (H-24): what leaving the declaration does depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// There was nothing: we created it, and remove it when it leaves.
    Created,
    /// There was something else, which we changed: released when it leaves.
    Changed,
    /// It was already as declared: released when it leaves.
    AlreadyThere,
}

/// What became of one resource, as it is reported and stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceOutcome {
    /// Its key, or what stood in its place when that was not understood.
    pub key: String,
    /// The module that declares or declared it.
    pub module: String,
    /// What became of it.
    pub outcome: Outcome,
    /// Since when it has had this outcome without a break, on the node's clock. Of one that fails: the first failure.
    pub since: Millis,
    /// In how many passes in a row.
    pub count: u32,
    /// The stable name of the reason, where it is not as declared or was drift.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The reason in words; at most 500 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
