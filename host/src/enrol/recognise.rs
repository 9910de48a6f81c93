//! Is this machine free to be the node that a token names? Decided from what the machine carries, before the token is
//! spent and before one byte is written. Foreign comes first: it is asked before the node is (I-09).

use tenure_protocol::id::{ControlPlaneId, NodeId};
use tenure_protocol::manifest::{NodeManifest, Unreadable};
use tenure_protocol::refusal::Explain;
use tenure_protocol::text::shown;
use tenure_protocol::token::Invitation;

use crate::identity::StoredIdentity;
use crate::manifest::Finding;

/// Why this machine is not the token's to have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stranger {
    /// It belongs to another control plane.
    #[error("this machine belongs to the control plane {theirs}, and the token is of {ours}")]
    ForeignControlPlane {
        /// Whose it is, as it says itself.
        theirs: String,
        /// Whose token it is.
        ours: ControlPlaneId,
    },
    /// It is another node of the same control plane.
    #[error("this machine is node {is}, and the token is for node {token}")]
    OtherNode {
        /// Who it is.
        is: NodeId,
        /// Whom the token names.
        token: NodeId,
    },
    /// It carries a manifest that is not ours to read.
    #[error(transparent)]
    UnreadableManifest(Unreadable),
    /// Nobody could look whether it carries one.
    #[error("this machine could not be looked at: {0}")]
    CouldNotLook(String),
}

/// Whether the machine may go on to redeem. `stored` is what the host's own store says, where it has an identity.
pub fn recognise(
    finding: &Finding,
    stored: Option<&StoredIdentity>,
    invitation: &Invitation,
) -> Result<(), Stranger> {
    if let Some(stored) = stored {
        same_control_plane(stored.control_plane_id == invitation.control_plane_id, invitation, || {
            stored.control_plane_id.to_string()
        })?;
    }
    match finding {
        Finding::Absent => {}
        Finding::CouldNotLook(why) => return Err(Stranger::CouldNotLook(why.clone())),
        Finding::Unreadable(unreadable) => return Err(Stranger::UnreadableManifest(unreadable.clone())),
        Finding::Found(manifest) => {
            same_control_plane(is_ours(manifest, invitation), invitation, || named(manifest))?;
            same_node(&manifest.node, invitation)?;
        }
    }
    stored.map_or(Ok(()), |stored| same_node(&stored.node, invitation))
}

fn is_ours(manifest: &NodeManifest, invitation: &Invitation) -> bool {
    let id = Some(invitation.control_plane_id);
    invitation.addresses.iter().any(|address| manifest.belongs_to(id, address))
}

fn named(manifest: &NodeManifest) -> String {
    match manifest.control_plane_id {
        Some(id) => format!("{id} ({})", shown(&manifest.control_plane_url, 100)),
        None if manifest.control_plane_url.is_empty() => "(its manifest names none)".to_owned(),
        None => shown(&manifest.control_plane_url, 100),
    }
}

fn same_control_plane(
    same: bool,
    invitation: &Invitation,
    theirs: impl FnOnce() -> String,
) -> Result<(), Stranger> {
    let foreign = || Stranger::ForeignControlPlane { theirs: theirs(), ours: invitation.control_plane_id };
    if same { Ok(()) } else { Err(foreign()) }
}

fn same_node(is: &NodeId, invitation: &Invitation) -> Result<(), Stranger> {
    if *is == invitation.node {
        Ok(())
    } else {
        Err(Stranger::OtherNode { is: is.clone(), token: invitation.node.clone() })
    }
}

impl Explain for Stranger {
    fn code(&self) -> &'static str {
        match self {
            Self::ForeignControlPlane { .. } => "refuse_foreign_control_plane",
            Self::OtherNode { .. } => "refuse_other_node",
            Self::UnreadableManifest(_) => "refuse_unreadable_manifest",
            Self::CouldNotLook(_) => "could_not_look",
        }
    }

    fn meaning(&self) -> String {
        match self {
            Self::ForeignControlPlane { .. } => {
                "somebody else holds this machine; nothing was sent, nothing was changed, and the token is still good"
            }
            Self::OtherNode { .. } => {
                "the token belongs to another machine, or this one was to be replaced; nothing was sent or changed"
            }
            Self::UnreadableManifest(_) => {
                "nobody can say whose machine this is, and that is not the same as nobody's; nothing was sent or changed"
            }
            Self::CouldNotLook(_) => {
                "whether this machine belongs to somebody is not known, and not knowing is no reason to go on"
            }
        }
        .to_owned()
    }

    fn remedy(&self) -> String {
        match self {
            Self::ForeignControlPlane { .. } => {
                "retire the node where it belongs (`tenure retire NODE` there), then remove the manifest \
                 /etc/tenure/node.json and give the token again"
                    .to_owned()
            }
            Self::OtherNode { is, token } => format!(
                "give this token to the machine of node {token}; for this machine run `tenure reinvite {is}`"
            ),
            Self::UnreadableManifest(_) => {
                "read /etc/tenure/node.json yourself, find out whose it is, and move it away once you know"
                    .to_owned()
            }
            Self::CouldNotLook(_) => {
                "make /etc/tenure/node.json readable (are you root?), then give the token again".to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests;
