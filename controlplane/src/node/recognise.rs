//! Whether a greeting opens a session: a pure decision of record, greeting, connection and time. Until the proof holds
//! there is one answer, `not_proven`, whatever else is wrong; afterwards each cause has its own name.

use tenure_protocol::id::{ControlPlaneId, Epoch, FencingToken, Generation, Millis, NodeId};
use tenure_protocol::machine::NodeState;
use tenure_protocol::operator::Rejoin;
use tenure_protocol::proof::{Binding, Claim, PublicKey, Purpose};
use tenure_protocol::refusal::Explain;
use tenure_protocol::session::Hello;
use tenure_protocol::token::{NoMasterKey, SessionClaims, Signer};
use tenure_protocol::version::SPOKEN;

use crate::store::{Founding, NodeRecord};

/// Why no session opens.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionRefusal {
    /// Whoever speaks did not prove to be a node of ours. One answer for every cause.
    #[error("the node key was not proven")]
    NotProven,
    /// Its standing is withdrawn.
    #[error("node {0} is retired")]
    Retired(NodeId),
    /// Its enrolment was ended by hand.
    #[error("the enrolment of node {0} was revoked")]
    Revoked(NodeId),
    /// It stands on an enrolment that a later one replaced, or that we do not know of.
    #[error("node {node} stands on enrolment {has}, and {holds} holds")]
    Fenced {
        /// Which.
        node: NodeId,
        /// The token it came with.
        has: FencingToken,
        /// The token that holds.
        holds: FencingToken,
    },
    /// It is another life of the rental.
    #[error("node {node} speaks as generation {has}, and {holds} is enrolled")]
    Generation {
        /// Which.
        node: NodeId,
        /// What it came with.
        has: Generation,
        /// What is enrolled.
        holds: Generation,
    },
    /// It knows a life of this control plane that this one does not: a restore went back behind it (S-07).
    #[error("node {node} knows epoch {knows} of this control plane, which is in epoch {ours}")]
    Epoch {
        /// Which.
        node: NodeId,
        /// What it knows.
        knows: Epoch,
        /// Ours.
        ours: Epoch,
    },
    /// Its session lapsed, and it may only come back by a reinvite.
    #[error("the session of node {0} lapsed, and it was invited to come back only by a new invitation")]
    Lapsed(NodeId),
    /// No version of the protocol is spoken by both.
    #[error("node {0} speaks no version of the protocol that this control plane speaks")]
    Protocol(NodeId),
    /// The control plane has no key to make a session token.
    #[error(transparent)]
    Signer(#[from] NoMasterKey),
}

impl Explain for SessionRefusal {
    fn code(&self) -> &'static str {
        match self {
            Self::NotProven => "not_proven",
            Self::Retired(_) => "retired",
            Self::Revoked(_) => "revoked",
            Self::Fenced { .. } => "fenced",
            Self::Generation { .. } => "wrong_generation",
            Self::Epoch { .. } => "other_epoch",
            Self::Lapsed(_) => "lapsed",
            Self::Protocol(_) => "protocol_not_spoken",
            Self::Signer(_) => "no_master_key",
        }
    }

    fn meaning(&self) -> String {
        match self {
            Self::NotProven => "nothing is known about whoever speaks, and nothing was changed",
            Self::Retired(_) => "the identity is withdrawn for good; the machine keeps running what it runs",
            Self::Revoked(_) | Self::Lapsed(_) => "the identity waits for a new enrolment",
            Self::Fenced { .. } => {
                "another enrolment of this identity holds, or the record of this one was lost"
            }
            Self::Generation { .. } => "this is another life of the machine than the one that enrolled",
            Self::Epoch { .. } => "this control plane's store is older than what the node was told by it",
            Self::Protocol(_) => "one side is too old for the other; the node holds its machine as it is",
            Self::Signer(_) => "sessions can be neither opened nor renewed until the key is back",
        }
        .to_owned()
    }

    fn remedy(&self) -> String {
        match self {
            Self::NotProven => {
                "look at the control plane's `tenure nodes` and at this machine's `tenure-host status`"
                    .to_owned()
            }
            Self::Retired(_) => "run `tenure-host retire` on the machine, or leave it as it is".to_owned(),
            Self::Revoked(node)
            | Self::Fenced { node, .. }
            | Self::Generation { node, .. }
            | Self::Lapsed(node) => {
                format!("run `tenure reinvite {node}` and give the machine the new token")
            }
            Self::Epoch { .. } => "restore the newest backup of the control plane".to_owned(),
            Self::Protocol(_) => "bring the older side to a version the other speaks".to_owned(),
            Self::Signer(_) => "put the control plane's master.key back beside its store".to_owned(),
        }
    }
}

/// What a session stands on from here on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Whose.
    pub node: NodeId,
    /// Which life of it.
    pub generation: Generation,
    /// The enrolment.
    pub fencing: FencingToken,
    /// The key that was proven.
    pub key: PublicKey,
    /// The version of the protocol that is spoken.
    pub protocol: u16,
}

impl Standing {
    /// The claims of a session token on this standing.
    pub fn claims(&self, founding: Founding, expires: Millis) -> SessionClaims {
        SessionClaims {
            v: 1,
            key_id: 1,
            control_plane_id: founding.control_plane_id,
            epoch: founding.epoch,
            node: self.node.clone(),
            generation: self.generation,
            fencing: self.fencing,
            key: self.key.digest(),
            expires,
        }
    }
}

/// Judges a greeting against the record of the node it names.
pub fn recognise(
    record: Option<&NodeRecord>,
    hello: &Hello,
    binding: &Binding,
    founding: Founding,
    signer: &Signer,
    now: Millis,
) -> Result<Standing, SessionRefusal> {
    let (record, key) = proven(record, hello, binding, founding.control_plane_id)?;
    let node = record.node.clone();
    if record.state == NodeState::Retired {
        return Err(SessionRefusal::Retired(node));
    }
    if record.revoked {
        return Err(SessionRefusal::Revoked(node));
    }
    if hello.generation != record.generation {
        return Err(SessionRefusal::Generation { node, has: hello.generation, holds: record.generation });
    }
    let ours = founding.epoch;
    if hello.epoch.number > ours.number || (hello.epoch.number == ours.number && hello.epoch.id != ours.id) {
        return Err(SessionRefusal::Epoch { node, knows: hello.epoch, ours });
    }
    if hello.fencing != record.fencing || record.fencing == FencingToken(0) {
        return Err(SessionRefusal::Fenced { node, has: hello.fencing, holds: record.fencing });
    }
    let Some(protocol) = SPOKEN.common(hello.protocol) else {
        return Err(SessionRefusal::Protocol(node));
    };
    let standing = Standing { node, generation: record.generation, fencing: record.fencing, key, protocol };
    // A host whose first welcome was lost on the way never had a token: only one that was used is asked for.
    if record.rejoin == Rejoin::Invitation && record.session_used {
        unlapsed(hello, &standing, founding, signer, now)?;
    }
    Ok(standing)
}

fn proven<'a>(
    record: Option<&'a NodeRecord>,
    hello: &Hello,
    binding: &Binding,
    control_plane_id: ControlPlaneId,
) -> Result<(&'a NodeRecord, PublicKey), SessionRefusal> {
    let (record, key) =
        record.and_then(|record| record.key.map(|key| (record, key))).ok_or(SessionRefusal::NotProven)?;
    let claim = Claim {
        purpose: Purpose::Session,
        control_plane_id,
        node: &record.node,
        generation: hello.generation,
        binding,
    };
    let holds = hello.control_plane_id == control_plane_id && key.proves(&claim, &hello.proof);
    if holds { Ok((record, key)) } else { Err(SessionRefusal::NotProven) }
}

fn unlapsed(
    hello: &Hello,
    standing: &Standing,
    founding: Founding,
    signer: &Signer,
    now: Millis,
) -> Result<(), SessionRefusal> {
    let claims = hello.session_token.as_ref().and_then(|token| signer.judge_session(token).ok());
    let holds = claims.is_some_and(|claims| {
        let Standing { node, generation, fencing, key, .. } = standing;
        claims.are_of(founding.control_plane_id, founding.epoch, node, *generation, *fencing, key)
            && now < claims.expires
    });
    if holds { Ok(()) } else { Err(SessionRefusal::Lapsed(standing.node.clone())) }
}
