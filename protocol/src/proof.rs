//! The node key and the one thing it signs (S-04): that its holder is at the other end of this very connection.

use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::id::{ControlPlaneId, Digest, Generation, NodeId};

/// What a proof is for. A proof for one purpose is worth nothing for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Redeeming an invitation.
    Enrol,
    /// Opening a session.
    Session,
    /// Answering a probe.
    Probe,
    /// A retired node's last door.
    Retired,
}

impl Purpose {
    /// Every purpose.
    pub const ALL: [Self; 4] = [Self::Enrol, Self::Session, Self::Probe, Self::Retired];

    /// The word in the signed bytes, and the context of the TLS exporter.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enrol => "enrol",
            Self::Session => "session",
            Self::Probe => "probe",
            Self::Retired => "retired",
        }
    }
}

/// What a connection is bound by: 32 bytes of its TLS exporter with the purpose as context, or, for a probe, the
/// SHA-256 of nonce and SSH host key.
pub type Binding = [u8; 32];

/// Who is proven, to whom.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// What for.
    pub purpose: Purpose,
    /// The control plane it is shown to.
    pub control_plane_id: ControlPlaneId,
    /// The node that shows it.
    pub node: &'a NodeId,
    /// The life of that node.
    pub generation: Generation,
    /// The connection it is shown on.
    pub binding: &'a Binding,
}

impl Claim<'_> {
    /// The bytes that are signed. Each part has a fixed length or its length before it, so no two claims share them.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"tenure/node-key/v1\0".to_vec();
        for part in [
            self.purpose.as_str().as_bytes(),
            self.control_plane_id.as_bytes().as_slice(),
            self.node.as_str().as_bytes(),
        ] {
            bytes.extend(u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
            bytes.extend(part);
        }
        bytes.extend(self.generation.0.to_be_bytes());
        bytes.extend(self.binding);
        bytes
    }
}

/// A node's public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PublicKey(#[serde(with = "serde_bytes")] [u8; 32]);

impl PublicKey {
    /// One that was stored.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Its digest, which stands in a session token.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.0)
    }

    /// Whether `proof` was made for `claim` by the holder of this key. Strict: weak keys and other spellings of a
    /// signature prove nothing.
    pub fn proves(&self, claim: &Claim<'_>, proof: &Proof) -> bool {
        let Ok(key) = VerifyingKey::from_bytes(&self.0) else { return false };
        key.verify_strict(&claim.bytes(), &ed25519_dalek::Signature::from_bytes(&proof.0)).is_ok()
    }
}

/// An Ed25519 signature over a [`Claim`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Proof(#[serde(with = "serde_bytes")] [u8; 64]);

impl Proof {
    /// One made of these bytes.
    pub const fn from_bytes(bytes: [u8; 64]) -> Self {
        Self(bytes)
    }
}

/// The machine's own key pair. It cannot be printed and is wiped when it goes.
pub struct NodeKey(SigningKey);

impl NodeKey {
    /// A fresh key from the operating system's randomness.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(seed.as_mut())?;
        Ok(Self::from_seed(&seed))
    }

    /// The key of this stored seed.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// The seed, to be stored; wiped when dropped.
    pub fn seed(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0.to_bytes())
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    /// The proof of `claim`. The key signs nothing else.
    pub fn prove(&self, claim: &Claim<'_>) -> Proof {
        Proof(self.0.sign(&claim.bytes()).to_bytes())
    }
}

impl std::fmt::Debug for NodeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NodeKey(…)")
    }
}

#[cfg(test)]
mod tests;
