//! The node manifest: what a machine says about itself, readable by anyone (`/etc/tenure/node.json`, 0644).
//!
//! It holds nothing secret and nothing that is compared for trust (I-02). It may only cause a refusal (I-11).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::{ControlPlaneId, Generation, Millis, NodeId, NodeUuid};
use crate::machine::Mode;
use crate::text::shown;

/// What a machine says about itself. Older readers ignore fields they do not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeManifest {
    /// The form of this document; 1.
    pub manifest: u32,
    /// The node's name.
    pub node: NodeId,
    /// The identity behind the name, minted with it and never reused.
    pub node_uuid: NodeUuid,
    /// The provider's id of the machine, where one is known.
    pub provider_uuid: Option<String>,
    /// Which control plane; none on a machine whose manifest was written by hand or by a predecessor.
    pub control_plane_id: Option<ControlPlaneId>,
    /// The address under which that control plane is reached.
    pub control_plane_url: String,
    /// The life of the machine under its identity.
    pub generation: Generation,
    /// Whether found things are kept here.
    pub mode: Mode,
    /// The revision of the whole stack of components that was bootstrapped; none where there was no bootstrap.
    pub stack_version: Option<String>,
    /// The version of the host that wrote this.
    pub host_version: String,
    /// What bootstrap steps put here: component key → version.
    pub components: BTreeMap<String, String>,
    /// When it enrolled, on the control plane's clock.
    pub enrolled_at: Millis,
    /// When a bootstrap finished here, if one did.
    pub bootstrapped_at: Option<Millis>,
}

/// A manifest that is there and is not one of ours (I-04): another fact than an absent one, and equally no match.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the node manifest cannot be read as ours: {0}")]
pub struct Unreadable(pub String);

/// The most bytes a manifest may have.
pub const MOST_BYTES: usize = 64 * 1024;

impl NodeManifest {
    /// Reads one; an empty, cut, oversized or foreign document is unreadable.
    pub fn parse(bytes: &[u8]) -> Result<Self, Unreadable> {
        if bytes.is_empty() {
            return Err(Unreadable("it is empty".to_owned()));
        }
        if bytes.len() > MOST_BYTES {
            return Err(Unreadable(format!("it has {} bytes, at most {MOST_BYTES}", bytes.len())));
        }
        let manifest: Self =
            serde_json::from_slice(bytes).map_err(|error| Unreadable(shown(&error.to_string(), 200)))?;
        match manifest.manifest {
            1 => Ok(manifest),
            other => Err(Unreadable(format!("its form is {other}, and this version reads form 1"))),
        }
    }

    /// The document, with a line break at its end.
    pub fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Whether this manifest names that control plane (I-06): by id where both have one, by normalised address where
    /// one has none. An empty id and address belong to nobody.
    pub fn belongs_to(&self, id: Option<ControlPlaneId>, url: &str) -> bool {
        match (self.control_plane_id, id) {
            (Some(ours), Some(theirs)) => ours == theirs,
            (None, _) | (_, None) => match (normalised(&self.control_plane_url), normalised(url)) {
                (Some(ours), Some(theirs)) => ours == theirs,
                (None, _) | (_, None) => false,
            },
        }
    }
}

/// An address without what makes no difference: scheme, case, a trailing dot or slash, the default port. None when
/// nothing is left.
pub fn normalised(url: &str) -> Option<String> {
    let url = url.trim().to_ascii_lowercase();
    let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port))
            if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) && !host.ends_with(':') =>
        {
            (host, port.trim_start_matches('0'))
        }
        _ => (authority, DEFAULT_PORT),
    };
    let host = host.trim_end_matches(':').trim_end_matches('.');
    (!host.is_empty()).then(|| format!("{host}:{port}"))
}

const DEFAULT_PORT: &str = "7443";

#[cfg(test)]
mod tests;
