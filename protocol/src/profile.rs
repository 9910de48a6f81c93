//! What a machine is (profile) and what was found on it (inventory), told once at enrolment, before the control plane
//! decides anything (H-13). And what of it is told again with each beat.

use serde::{Deserialize, Serialize};

use crate::id::Millis;

/// What the machine is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Profile {
    /// Its host name.
    pub hostname: String,
    /// `ID` and `VERSION_ID` of os-release, as in `debian 12`.
    pub os: String,
    /// Kernel release.
    pub kernel: String,
    /// Processor architecture, as in `x86_64`.
    pub architecture: String,
    /// Processors that are online.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory: u64,
    /// The machine-id, by digest: a copied disk shows by it, the id itself stays here.
    pub machine: String,
    /// Whether the host may only hold a directory tree of its own, without packages, units and owners.
    pub sandbox: bool,
}

/// What was found that somebody else made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Inventory {
    /// Listening sockets, as in `tcp 0.0.0.0:5432 postgres`; at most 200.
    #[serde(deserialize_with = "crate::wire::codec::bounded::<_, _, 10000>")]
    pub listeners: Vec<String>,
    /// Which resource kinds this host performs (N-19).
    #[serde(deserialize_with = "crate::wire::codec::bounded::<_, _, 10000>")]
    pub kinds: Vec<String>,
    /// Whether looking was complete; none: it was, else what could not be looked at (I-05).
    #[serde(deserialize_with = "crate::wire::codec::bounded::<_, _, 10000>")]
    pub could_not_look: Vec<String>,
}

/// What can be said of a node's disk: three answers, not two (N-13).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disk {
    /// Nobody has asked yet.
    #[default]
    NeverReported,
    /// The node looked and could not tell.
    Unmeasurable,
    /// What the node established; zero free is a full disk.
    Measured {
        /// Free bytes on the file system of the host's state directory.
        free: u64,
        /// Its size in bytes.
        size: u64,
    },
}

/// What a node says of itself with each beat. State, not history: the newest wins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// When the node looked, on its own clock.
    pub observed_at: Millis,
    /// The running version, not the installed one (H-20).
    pub running_version: String,
    /// Its disk.
    pub disk: Disk,
}
