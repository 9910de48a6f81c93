//! Whether a presented token is redeemed: pure decisions of token, record and time. Two doors (N-03): [`valid`] needs no
//! store and holds against one that lost its record; [`decide`] runs inside the store's commit.

use std::time::Duration;

use tenure_protocol::id::{ControlPlaneId, Digest, Epoch, Millis, NodeId};
use tenure_protocol::machine::NodeState;
use tenure_protocol::proof::PublicKey;
use tenure_protocol::refusal::Explain;
use tenure_protocol::token::{Invitation, NoMasterKey};

use crate::fleet::invitation::{BEHIND, LONGEST};
use crate::store::{Attempt, InvitationRecord, NodeRecord};

/// Why an enrolment is refused. Told only after MAC and key were proven, save for [`EnrolRefusal::NotProven`] and
/// [`EnrolRefusal::NoMasterKey`], which say nothing of the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnrolRefusal {
    /// Not made by us, damaged, or the key was not proven. One answer for all of them.
    #[error("the token or the key was not proven")]
    NotProven,
    /// Nobody can judge a token here now (N-04). It says nothing of this one.
    #[error(transparent)]
    NoMasterKey(#[from] NoMasterKey),
    /// It could be redeemed once, and cannot any more or not here.
    #[error("the invitation of node {node} is not valid: {why}")]
    NotValid {
        /// Whose.
        node: NodeId,
        /// What does not hold.
        why: NotValid,
    },
    /// It was redeemed before, with another key.
    #[error("the invitation of node {node} was already used")]
    Spent {
        /// Whose.
        node: NodeId,
    },
    /// It is of our making, and there is no record of it.
    #[error("there is no record of an invitation of node {node}")]
    NotFound {
        /// Whose.
        node: NodeId,
    },
    /// The identity is withdrawn.
    #[error("node {node} is retired")]
    Retired {
        /// Whose.
        node: NodeId,
    },
    /// The key was bound by another enrolment.
    #[error("the key this machine presents for node {node} was used for another enrolment")]
    KeyUsed {
        /// Whose.
        node: NodeId,
    },
}

/// Which of the token's own words does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotValid {
    /// Its window has closed.
    #[error("its time has run out")]
    Expired,
    /// It was made by a clock that was ahead, or that of now is behind: until when it holds is a guess.
    #[error("it was made at a time that has not come by the control plane's clock")]
    Ahead,
    /// It is for an earlier or later life of the rental.
    #[error("it is for another generation")]
    Generation,
    /// It was made before a restore, or for another control plane.
    #[error("it was made in another life of the control plane")]
    Epoch,
    /// A newer one was minted in its place.
    #[error("a newer one took its place")]
    Replaced,
}

impl Explain for EnrolRefusal {
    fn code(&self) -> &'static str {
        match self {
            Self::NotProven => "not_proven",
            Self::NoMasterKey(_) => "no_master_key",
            Self::NotValid { .. } => "not_valid",
            Self::Spent { .. } => "spent",
            Self::NotFound { .. } => "not_found",
            Self::Retired { .. } => "retired",
            Self::KeyUsed { .. } => "key_used",
        }
    }

    fn meaning(&self) -> String {
        match self {
            Self::NotProven => "this control plane did not make the token, or it was changed on the way",
            Self::NoMasterKey(_) => {
                "no token can be judged there until the key is back; this one may be good"
            }
            Self::NotValid { .. } => "nothing was redeemed, and the machine stays as it is",
            Self::Spent { .. } => "another machine holds this identity, or this one lost its key",
            Self::NotFound { .. } => {
                "the control plane's record was lost, or the token is from before a restore"
            }
            Self::Retired { .. } => {
                "a retired identity never comes back; its machine keeps running what it runs"
            }
            Self::KeyUsed { .. } => {
                "each enrolment binds a key of its own; a key that was bound before is a copy"
            }
        }
        .to_owned()
    }

    fn remedy(&self) -> String {
        match self {
            Self::NotProven => "take the token again from where it was printed, whole".to_owned(),
            Self::NoMasterKey(_) => {
                "put the control plane's master.key back beside its store, start it again, and give the same token"
                    .to_owned()
            }
            Self::NotValid { node, .. } | Self::Spent { node } | Self::KeyUsed { node } => {
                format!("run `tenure reinvite {node}` and give the machine the new token")
            }
            Self::NotFound { node } => format!("run `tenure nodes`, then `tenure invite {node}`"),
            Self::Retired { .. } => "run `tenure invite` with another name".to_owned(),
        }
    }
}

/// The first door: what the token says of itself, against who we are. Needs no store.
pub fn valid(
    invitation: &Invitation,
    control_plane_id: ControlPlaneId,
    epoch: Epoch,
    now: Millis,
) -> Result<(), EnrolRefusal> {
    let not = |why| Err(EnrolRefusal::NotValid { node: invitation.node.clone(), why });
    if invitation.control_plane_id != control_plane_id || invitation.epoch != epoch {
        return not(NotValid::Epoch);
    }
    if now >= invitation.expires {
        return not(NotValid::Expired);
    }
    if invitation.expires > now.plus(Duration::from_millis(LONGEST)).plus(BEHIND) {
        return not(NotValid::Ahead);
    }
    Ok(())
}

/// What a redemption does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It is redeemed now.
    Redeem,
    /// It was redeemed by this key; the same answer again.
    Again,
    /// It is refused.
    Refuse(EnrolRefusal),
    /// It is refused as spent, and the operator hears of it: a second machine has the token. From where the first came.
    Alarm {
        /// The address of the redemption that holds.
        holder: String,
    },
}

/// The second door: the record, inside the commit. `bound_elsewhere`: another enrolment bound this key before.
pub fn decide(
    record: Option<&NodeRecord>,
    invitation: Option<&InvitationRecord>,
    attempt: &Attempt,
    bound_elsewhere: bool,
) -> Decision {
    let node = attempt.node.clone();
    let not_valid = |why| Decision::Refuse(EnrolRefusal::NotValid { node: attempt.node.clone(), why });
    let (Some(record), Some(invitation)) = (record, invitation) else {
        return Decision::Refuse(EnrolRefusal::NotFound { node });
    };
    if record.state == NodeState::Retired {
        return Decision::Refuse(EnrolRefusal::Retired { node });
    }
    if record.generation != attempt.generation {
        return not_valid(NotValid::Generation);
    }
    if attempt.now >= invitation.expires {
        return not_valid(NotValid::Expired);
    }
    match &invitation.spent {
        Some(spent) if spent.key != attempt.key => Decision::Alarm { holder: spent.from.clone() },
        Some(_) if record.key == Some(attempt.key) && !record.revoked => Decision::Again,
        Some(_) => Decision::Refuse(EnrolRefusal::Spent { node }),
        None if invitation.replaced => not_valid(NotValid::Replaced),
        None if invitation.minted_at > attempt.now.plus(BEHIND) => not_valid(NotValid::Ahead),
        None if bound_elsewhere => Decision::Refuse(EnrolRefusal::KeyUsed { node }),
        None => Decision::Redeem,
    }
}

/// Names one alarm, so that a machine that knocks again and again is one event and not a flood. What it begins with is
/// the token's: [`alarms_of`].
pub fn alarm_id(token: Digest, key: &PublicKey) -> [u8; 16] {
    let digest = Digest::of(&[token.as_bytes().as_slice(), key.as_bytes()].concat());
    let mut id = [0; 16];
    id[..8].copy_from_slice(&alarms_of(token));
    id[8..].copy_from_slice(&digest.as_bytes()[..8]);
    id
}

/// What the names of all alarms about one token begin with.
pub fn alarms_of(token: Digest) -> [u8; 8] {
    let mut begins = [0; 8];
    begins.copy_from_slice(&token.as_bytes()[..8]);
    begins
}

#[cfg(test)]
mod tests;
