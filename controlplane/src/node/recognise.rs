//! Whether a greeting opens a session: a pure decision of record, greeting, connection and time. Until the proof holds
//! there is one answer, `not_proven`, whatever else is wrong; afterwards each cause has its own name.

use std::time::Duration;

use tenure_protocol::id::{ControlPlaneId, Epoch, FencingToken, Generation, Millis, NodeId};
use tenure_protocol::machine::NodeState;
use tenure_protocol::operator::Rejoin;
use tenure_protocol::proof::{Binding, Claim, PublicKey, Purpose};
use tenure_protocol::refusal::Explain;
use tenure_protocol::session::Hello;
use tenure_protocol::token::{NoMasterKey, NotProven, SessionClaims, Signer};
use tenure_protocol::version::SPOKEN;

use crate::config::LONGEST_SESSION;
use crate::fleet::invitation::BEHIND;
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
    /// It knows another life of this control plane by the number that this one has.
    #[error("node {node} knows epoch {knows} of this control plane with another id than it has here")]
    Forked {
        /// Which.
        node: NodeId,
        /// What it knows.
        knows: Epoch,
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

impl SessionRefusal {
    /// Whether it is about a standing that was there, told to whoever proved a key of it: what happened under it is
    /// still taken.
    pub const fn is_withdrawal(&self) -> bool {
        match self {
            Self::Retired(_) | Self::Revoked(_) | Self::Fenced { .. } => true,
            Self::NotProven
            | Self::Generation { .. }
            | Self::Epoch { .. }
            | Self::Forked { .. }
            | Self::Lapsed(_)
            | Self::Protocol(_)
            | Self::Signer(_) => false,
        }
    }
}

/// A greeting that opens nothing: why, and which enrolment whoever spoke stood on, where it proved the key of one. What
/// it says of itself is no proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unopened {
    /// Why.
    pub refusal: SessionRefusal,
    /// The enrolment whose key was proven; none, too, of a node that has been retired for too long to be heard.
    pub proven: Option<FencingToken>,
}

impl Explain for SessionRefusal {
    fn code(&self) -> &'static str {
        match self {
            Self::NotProven => "not_proven",
            Self::Retired(_) => "retired",
            Self::Revoked(_) => "revoked",
            Self::Fenced { .. } => "fenced",
            Self::Generation { .. } => "wrong_generation",
            Self::Epoch { .. } => "epoch_behind",
            Self::Forked { .. } => "epoch_forked",
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
                "another enrolment of this identity holds, or the record of this one was lost; the machine goes on \
                 holding what it was last told, gets nothing new, and what it did is still recorded"
            }
            Self::Generation { .. } => "this is another life of the machine than the one that enrolled",
            Self::Epoch { .. } => "this control plane's store is older than what the node was told by it",
            Self::Forked { .. } => {
                "two control planes went on from one store or backup, and the node was last told by the other one"
            }
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
            Self::Retired(_) => "leave the machine as it is, or remove tenure-host from it; `tenure invite` with another name is a new node".to_owned(),
            Self::Fenced { node, .. } => format!(
                "if this machine is to be {node} again, run `tenure reinvite {node}` and give it the new token; if \
                 not, stop what it runs by hand: nobody else can"
            ),
            Self::Revoked(node) | Self::Generation { node, .. } | Self::Lapsed(node) => {
                format!("run `tenure reinvite {node}` and give the machine the new token")
            }
            Self::Epoch { .. } => "stop this control plane (`systemctl stop tenure-control`) and put its newest store or backup back".to_owned(),
            Self::Forked { node, .. } => format!(
                "let one of the two go on and stop the other (`systemctl stop tenure-control`); if it is this one, run \
                 `tenure reinvite {node}` here and give the machine the new token"
            ),
            Self::Protocol(_) => "compare the versions (`tenure-host status`, `tenure nodes`) and upgrade the older side".to_owned(),
            Self::Signer(_) => {
                "put the control plane's master.key back beside its store, and start it again".to_owned()
            }
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

/// Judges a greeting against the record of the node it names. `earlier`: the enrolment it names and the key that this one
/// had bound, where it is not the one that holds.
pub fn recognise(
    record: Option<&NodeRecord>,
    earlier: Option<(FencingToken, PublicKey)>,
    hello: &Hello,
    binding: &Binding,
    founding: Founding,
    signer: &Signer,
    now: Millis,
) -> Result<Standing, Unopened> {
    let not_proven = || Unopened { refusal: SessionRefusal::NotProven, proven: None };
    let record = record.ok_or_else(not_proven)?;
    let proves = |key: &PublicKey| proves(*key, &record.node, hello, binding, founding.control_plane_id);
    let key = record.key.filter(proves);
    // A key of before opens nothing, and its holder is told why (O-57).
    let before = earlier.filter(|(_, key)| proves(key)).map(|(fencing, _)| fencing);
    let proven = key.map(|_| record.fencing).or(before).ok_or_else(not_proven)?;
    stands(record, key, hello, founding, signer, now).map_err(|refusal| Unopened {
        refusal,
        proven: Some(proven).filter(|_| !is_long_retired(record, now)),
    })
}

/// What a machine of a retired node did is taken for so long (S-22): whoever has its key has no door for ever.
const HEARD_AFTER_RETIRING: Duration = Duration::from_secs(30 * 24 * 3600);

fn is_long_retired(record: &NodeRecord, now: Millis) -> bool {
    record.retired_at.is_some_and(|at| at.plus(HEARD_AFTER_RETIRING) <= now)
}

/// What holds of a greeting that was proven; by which key of the enrolment that holds, if by one of it.
fn stands(
    record: &NodeRecord,
    key: Option<PublicKey>,
    hello: &Hello,
    founding: Founding,
    signer: &Signer,
    now: Millis,
) -> Result<Standing, SessionRefusal> {
    let node = record.node.clone();
    if record.state == NodeState::Retired {
        return Err(SessionRefusal::Retired(node));
    }
    let Some(key) = key else {
        return Err(SessionRefusal::Fenced { node, has: hello.fencing, holds: record.fencing });
    };
    if record.revoked {
        return Err(SessionRefusal::Revoked(node));
    }
    if hello.generation != record.generation {
        return Err(SessionRefusal::Generation { node, has: hello.generation, holds: record.generation });
    }
    let ours = founding.epoch;
    if hello.epoch.number > ours.number {
        return Err(SessionRefusal::Epoch { node, knows: hello.epoch, ours });
    }
    if hello.epoch.number == ours.number && hello.epoch.id != ours.id {
        return Err(SessionRefusal::Forked { node, knows: hello.epoch });
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

fn proves(
    key: PublicKey,
    node: &NodeId,
    hello: &Hello,
    binding: &Binding,
    control_plane_id: ControlPlaneId,
) -> bool {
    let purpose = Purpose::Session;
    let claim = Claim { purpose, control_plane_id, node, generation: hello.generation, binding };
    hello.control_plane_id == control_plane_id && key.proves(&claim, &hello.proof)
}

fn unlapsed(
    hello: &Hello,
    standing: &Standing,
    founding: Founding,
    signer: &Signer,
    now: Millis,
) -> Result<(), SessionRefusal> {
    let claims = match hello.session_token.as_ref().map(|token| signer.judge_session(token)) {
        // Nobody can tell whether it lapsed, and a reinvite would be the wrong thing to do (N-04).
        Some(Err(NotProven::Signer(no_key))) => return Err(no_key.into()),
        Some(Err(NotProven::Mac)) | None => None,
        Some(Ok(claims)) => Some(claims),
    };
    // One that was made while the clock was ahead would be good for as long as that was. Not one life as it is set now:
    // that may have been made shorter meanwhile, which ends no standing.
    let latest = now.plus(Duration::from_secs(60 * LONGEST_SESSION)).plus(BEHIND);
    let holds = claims.is_some_and(|claims| {
        let Standing { node, generation, fencing, key, .. } = standing;
        claims.are_of(founding.control_plane_id, founding.epoch, node, *generation, *fencing, key)
            && now < claims.expires
            && claims.expires <= latest
    });
    if holds { Ok(()) } else { Err(SessionRefusal::Lapsed(standing.node.clone())) }
}
