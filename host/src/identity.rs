//! Who this machine is to its control plane: what an enrolment left in the store, and the node key in a file of its
//! own, so that losing the store keeps the identity (H-11).
//!
//! The store's row is the commit: it names the public key it stands on, and the key file that has this key is the one
//! that counts. Enrolment writes it, the link reads it, the manifest is written from it. Nothing here dials.

use serde::{Deserialize, Serialize};
use tenure_protocol::declaration::Header;
use tenure_protocol::enrolment::{Briefing, Enrolled, Root};
use tenure_protocol::id::{
    ControlPlaneId, Digest, Epoch, FencingToken, Generation, Millis, NodeId, NodeUuid, Rental,
};
use tenure_protocol::machine::Mode;
use tenure_protocol::proof::PublicKey;
use tenure_protocol::session::Welcome;
use tenure_protocol::wire::tls::{self, ALPN_LINK, Trust};

pub mod keep;
pub mod key;

/// What an enrolment left, kept up to date by each session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredIdentity {
    /// The control plane it belongs to.
    pub control_plane_id: ControlPlaneId,
    /// The highest epoch of it that an authenticated session stated.
    pub epoch: Epoch,
    /// The node this machine is.
    pub node: NodeId,
    /// The identity behind the name.
    pub node_uuid: NodeUuid,
    /// What it is rented as.
    pub rental: Rental,
    /// Which life of it.
    pub generation: Generation,
    /// The enrolment it stands on.
    pub fencing: FencingToken,
    /// Whether found things are kept.
    pub mode: Mode,
    /// When it enrolled, on the control plane's clock.
    pub enrolled_at: Millis,
    /// The roots that are pinned.
    pub roots: Vec<Root>,
    /// Where the control plane is dialled, as the token said.
    pub addresses: Vec<String>,
    /// The public half of the node key that was bound.
    pub key: PublicKey,
    /// The id of the token that was redeemed: the digest of its MAC, never the token.
    pub token: Digest,
    /// The lines the enrolment ended with.
    pub briefing: Briefing,
}

/// What a session states of this machine's standing is not believed (S-07, X-6, N-05).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StandingRefused {
    /// Two restores that both count the same.
    #[error("the control plane states epoch {number} with another id than the one held")]
    OtherLife {
        /// The number both have.
        number: u64,
    },
    /// It went back, or another store answers under its name.
    #[error("the control plane states epoch {stated}, and this machine has seen {held}")]
    WentBack {
        /// What it states.
        stated: u64,
        /// What is held.
        held: u64,
    },
    /// An older enrolment than the one this machine stands on (N-05).
    #[error("the control plane states fencing token {stated}, and this machine stands on {held}")]
    FencingWentBack {
        /// What it states.
        stated: FencingToken,
        /// What is held.
        held: FencingToken,
    },
    /// Further than any number of restores explains.
    #[error("the control plane states epoch {stated}, which is too far above {held}")]
    TooFar {
        /// What it states.
        stated: u64,
        /// What is held.
        held: u64,
    },
}

/// The largest step of an epoch that is believed (S-07).
const MOST_EPOCHS_AT_ONCE: u64 = 1_000;

/// The epoch to go on with, or why the stated one is not believed.
pub fn judge_epoch(held: Epoch, stated: Epoch) -> Result<Epoch, StandingRefused> {
    match stated.number.cmp(&held.number) {
        std::cmp::Ordering::Equal if stated.id == held.id => Ok(stated),
        std::cmp::Ordering::Equal => Err(StandingRefused::OtherLife { number: held.number }),
        std::cmp::Ordering::Less => {
            Err(StandingRefused::WentBack { stated: stated.number, held: held.number })
        }
        std::cmp::Ordering::Greater if stated.number - held.number > MOST_EPOCHS_AT_ONCE => {
            Err(StandingRefused::TooFar { stated: stated.number, held: held.number })
        }
        std::cmp::Ordering::Greater => Ok(stated),
    }
}

impl StoredIdentity {
    /// Whether a declaration of this head is for this machine, in this life of it.
    pub fn is_meant_by(&self, header: &Header) -> bool {
        (self.control_plane_id, &self.node, self.generation)
            == (header.control_plane_id, &header.node, header.generation)
    }

    /// What an answer to a redemption makes of a machine that was given these addresses, this token and this key.
    pub fn of(enrolled: Enrolled, addresses: Vec<String>, key: PublicKey, token: Digest) -> Self {
        Self {
            control_plane_id: enrolled.control_plane_id,
            epoch: enrolled.epoch,
            node: enrolled.node,
            node_uuid: enrolled.node_uuid,
            rental: enrolled.rental,
            generation: enrolled.generation,
            fencing: enrolled.fencing,
            mode: enrolled.mode,
            enrolled_at: enrolled.enrolled_at,
            roots: enrolled.roots,
            addresses,
            key,
            token,
            briefing: enrolled.briefing,
        }
    }

    /// Whether these roots follow on those that are pinned, and can be used.
    fn carries_on(&self, roots: &[Root]) -> bool {
        let is_pinned = |root: &Root| self.roots.iter().any(|pinned| pinned.certificate == root.certificate);
        let certificates = roots.iter().map(|root| root.certificate.clone()).collect();
        roots.iter().any(is_pinned) && tls::client(Trust::Roots(certificates), Millis(0), ALPN_LINK).is_ok()
    }

    /// This identity as an opened session states it. An epoch that is not believed changes nothing. Roots that cannot
    /// be read, or lack every one that is pinned, leave those that are: with others this machine might believe nobody.
    pub fn after(&self, welcome: &Welcome) -> Result<Self, StandingRefused> {
        let epoch = judge_epoch(self.epoch, welcome.epoch)?;
        if epoch == self.epoch && welcome.fencing < self.fencing {
            return Err(StandingRefused::FencingWentBack { stated: welcome.fencing, held: self.fencing });
        }
        let roots = if self.carries_on(&welcome.roots) { welcome.roots.clone() } else { self.roots.clone() };
        Ok(Self { epoch, fencing: welcome.fencing, mode: welcome.mode, roots, ..self.clone() })
    }
}

#[cfg(test)]
mod tests;
