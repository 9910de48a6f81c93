//! Whether a declaration is for this machine and may replace the one it holds. Pure: it knows no disk.

use tenure_protocol::declaration::{Declaration, Header};
use tenure_protocol::id::{ControlPlaneId, Digest, Epoch, Generation, NodeId, Revision};
use tenure_protocol::refusal::Explain;

/// What this machine stands on: who it is, and the epoch the control plane stated in this session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Its control plane.
    pub control_plane_id: ControlPlaneId,
    /// Which node it is.
    pub node: NodeId,
    /// Which life of it.
    pub generation: Generation,
    /// The epoch, as an authenticated session stated it.
    pub epoch: Epoch,
}

/// The declaration the machine holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Its revision.
    pub revision: Revision,
    /// The digest of its bytes.
    pub sha256: Digest,
}

/// What admitting comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admitted {
    /// It replaces the one that is held.
    New,
    /// It is the one that is held.
    Same,
}

/// Why a declaration is refused whole; the one that is held stays.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AdmitRefusal {
    /// It belongs to another control plane.
    #[error("the declaration is of control plane {found}, and this machine belongs to {ours}")]
    OtherControlPlane {
        /// Whose it is.
        found: ControlPlaneId,
        /// Whose this machine is.
        ours: ControlPlaneId,
    },
    /// It is for another node.
    #[error("the declaration is for node {found}, and this machine is {ours}")]
    OtherNode {
        /// Whom it is for.
        found: NodeId,
        /// Who this machine is.
        ours: NodeId,
    },
    /// It is for another life of this node.
    #[error("the declaration is for generation {found} of this node, and this machine is generation {ours}")]
    OtherGeneration {
        /// Which it is for.
        found: Generation,
        /// Which this machine is.
        ours: Generation,
    },
    /// Its epoch is not the one the session states.
    #[error("the declaration is of epoch {found}, and the session states epoch {stated}")]
    OtherEpoch {
        /// Its epoch.
        found: Epoch,
        /// The stated one.
        stated: Epoch,
    },
    /// It is older than the one that is held.
    #[error("the declaration is revision {found}: have {held}")]
    Older {
        /// Its revision.
        found: Revision,
        /// The one that is held.
        held: Revision,
    },
    /// The same number was used for something else.
    #[error("revision {revision} is held already, with another digest")]
    Reused {
        /// The revision.
        revision: Revision,
    },
    /// The same epoch number stands for another life of the control plane's store.
    #[error("epoch {0} is held already, with another id")]
    EpochForked(Epoch),
    /// It calls itself final and declares something.
    #[error("the declaration calls itself final and has {0} resources")]
    FinalNotEmpty(usize),
    /// It declares nothing, without saying that it is final.
    #[error("the declaration is empty and would drop all {owned} things this node owns")]
    Empty {
        /// How many are owned.
        owned: u64,
    },
    /// It drops more than it has the word for.
    #[error(
        "the declaration would drop {leaving} of the {owned} things this node owns; without a word it may drop {limit}"
    )]
    TooManyRemovals {
        /// How many would leave.
        leaving: u64,
        /// How many are owned.
        owned: u64,
        /// How many may leave.
        limit: u64,
    },
}

/// Whether `declaration` may replace what is held. `standing` is none on a machine without a control plane, where a
/// person applies a bundle by hand. `owned` are the keys of what the host has records of.
pub fn admit<'a>(
    standing: Option<&Standing>,
    held: Option<&Held>,
    declaration: &Declaration,
    sha256: Digest,
    owned: impl Iterator<Item = &'a str>,
) -> Result<Admitted, AdmitRefusal> {
    if let Some(standing) = standing {
        is_ours(standing, &declaration.header)?;
    }
    if let Some(held) = held
        && follows(held, declaration.header.revision(), sha256)? == Admitted::Same
    {
        return Ok(Admitted::Same);
    }
    removals(declaration, owned)?;
    Ok(Admitted::New)
}

fn is_ours(standing: &Standing, header: &Header) -> Result<(), AdmitRefusal> {
    if header.control_plane_id != standing.control_plane_id {
        let (found, ours) = (header.control_plane_id, standing.control_plane_id);
        return Err(AdmitRefusal::OtherControlPlane { found, ours });
    }
    if header.node != standing.node {
        return Err(AdmitRefusal::OtherNode { found: header.node.clone(), ours: standing.node.clone() });
    }
    if header.generation != standing.generation {
        return Err(AdmitRefusal::OtherGeneration { found: header.generation, ours: standing.generation });
    }
    if header.epoch != standing.epoch {
        return Err(AdmitRefusal::OtherEpoch { found: header.epoch, stated: standing.epoch });
    }
    Ok(())
}

/// Revisions are compared within an epoch; a later epoch begins anew, and was stated by the session.
fn follows(held: &Held, found: Revision, sha256: Digest) -> Result<Admitted, AdmitRefusal> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let older = AdmitRefusal::Older { found, held: held.revision };
    match found.epoch.number.cmp(&held.revision.epoch.number) {
        Less => return Err(older),
        Greater => return Ok(Admitted::New),
        Equal if found.epoch.id != held.revision.epoch.id => {
            return Err(AdmitRefusal::EpochForked(found.epoch));
        }
        Equal => {}
    }
    match found.number.cmp(&held.revision.number) {
        Less => Err(older),
        Greater => Ok(Admitted::New),
        Equal if sha256 == held.sha256 => Ok(Admitted::Same),
        Equal => Err(AdmitRefusal::Reused { revision: found }),
    }
}

/// The second door against a declaration that shrank by accident (H-23): without a word at most a tenth, or one, may
/// leave, with one that many in all; all, and so also an empty one, only when the word covers all or it is final.
fn removals<'a>(declaration: &Declaration, owned: impl Iterator<Item = &'a str>) -> Result<(), AdmitRefusal> {
    let header = &declaration.header;
    if header.is_final {
        return match declaration.entries.len() {
            0 => Ok(()),
            some => Err(AdmitRefusal::FinalNotEmpty(some)),
        };
    }
    let declared: std::collections::HashSet<String> =
        declaration.entries.iter().map(tenure_protocol::declaration::Entry::key).collect();
    let (mut count, mut leaving) = (0_u64, 0_u64);
    for key in owned {
        count += 1;
        leaving += u64::from(!declared.contains(key));
    }
    if leaving == 0 {
        return Ok(());
    }
    let word = header.allowed_removals.unwrap_or(0);
    if declared.is_empty() && word < count {
        return Err(AdmitRefusal::Empty { owned: count });
    }
    let free = (count / 10).max(1);
    let limit = if leaving == count { word } else { free.max(word) };
    if leaving > limit {
        let limit = if leaving == count { free.min(count - 1) } else { limit };
        return Err(AdmitRefusal::TooManyRemovals { leaving, owned: count, limit });
    }
    Ok(())
}

impl Explain for AdmitRefusal {
    fn code(&self) -> &'static str {
        match self {
            Self::OtherControlPlane { .. } => "other_control_plane",
            Self::OtherNode { .. } => "other_node",
            Self::OtherGeneration { .. } => "other_generation",
            Self::OtherEpoch { .. } => "other_epoch",
            Self::Older { .. } => "older_revision",
            Self::Reused { .. } => "revision_reused",
            Self::EpochForked(_) => "epoch_forked",
            Self::FinalNotEmpty(_) => "final_not_empty",
            Self::Empty { .. } => "empty_declaration",
            Self::TooManyRemovals { .. } => "too_many_removals",
        }
    }

    fn meaning(&self) -> String {
        let means = match self {
            Self::OtherControlPlane { .. } | Self::OtherNode { .. } | Self::OtherGeneration { .. } => {
                "it was not made for this machine; the one it holds stays in force"
            }
            Self::OtherEpoch { .. } | Self::EpochForked(_) => {
                "the control plane's store and this declaration are of different lives; the one held stays in force"
            }
            Self::Older { .. } => "a later one is in force, and stays so",
            Self::Reused { .. } => {
                "two declarations have one number, so neither can be told from the other; the one held stays"
            }
            Self::FinalNotEmpty(_) => {
                "a final declaration ends everything and can declare nothing; the one held stays"
            }
            Self::Empty { .. } | Self::TooManyRemovals { .. } => {
                "it looks like an accident of rendering; nothing was removed and the one held stays in force"
            }
        };
        means.to_owned()
    }

    fn remedy(&self) -> String {
        match self {
            Self::OtherControlPlane { .. } => {
                "apply it where it belongs, or enrol this machine there".to_owned()
            }
            Self::OtherNode { found, .. } => format!("apply it on {found}, or render one for this node"),
            Self::OtherGeneration { .. } => {
                "declare for the present generation with `tenure declare`".to_owned()
            }
            Self::OtherEpoch { .. } | Self::EpochForked(_) | Self::Older { .. } | Self::Reused { .. } => {
                "declare again with `tenure declare`, which takes the next number".to_owned()
            }
            Self::FinalNotEmpty(_) => {
                "declare what the node is to hold, or retire it with `tenure retire NODE`".to_owned()
            }
            Self::Empty { owned } => {
                format!("if nothing is to be left of what it owns, declare with `--allow-removals {owned}`")
            }
            Self::TooManyRemovals { leaving, .. } => {
                format!("if that is meant, declare with `--allow-removals {leaving}`")
            }
        }
    }
}

#[cfg(test)]
mod tests;
