//! Tokens: the single-use secret of an invitation, and the short-lived proof of a session (S-03).
//!
//! Both are MessagePack bytes with an HMAC-SHA256 over exactly those bytes behind them, each under a key of its own
//! derived from the control plane's master key. The host reads an enrolment token without being able to judge it;
//! a session token is opaque to it. Expiry is judged by the control plane alone (S-18).

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use crate::id::{ControlPlaneId, Digest, Epoch, FencingToken, Generation, Millis, NodeId, Rental};
use crate::machine::Mode;
use crate::proof::PublicKey;
use crate::secret::Secret;
use crate::wire::codec;

/// What every enrolment token begins with.
pub const PREFIX: &str = "tenure_e1_";
/// The most characters a token may have.
pub const MOST_CHARACTERS: usize = 2048;
/// The most addresses a token may carry.
pub const MOST_ADDRESSES: usize = 8;

const ALPHABET: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// So many characters of a token behind its beginning are one, wherever they stand. A file that is named after a token's
/// beginning has fewer; a token has hundreds.
const TELLING: usize = 16;
const MAC: usize = 32;
const CHECKSUM: usize = 4;

/// Whether a word of a command line is, or carries, an enrolment token: `TOKEN`, `--token=TOKEN`, or one that is quoted
/// or glued to something. Such a word is printed nowhere, whatever else is wrong with the command (N-02).
pub fn is_in(word: &str) -> bool {
    // Where a token begins an argument, the shortest piece of one counts too.
    word.split('=').any(|part| part.trim_start().starts_with(PREFIX))
        || word
            .split(PREFIX)
            .skip(1)
            .any(|rest| rest.bytes().take_while(u8::is_ascii_alphanumeric).count() >= TELLING)
}

/// What an enrolment token says. Everything joining needs and nothing more (N-02).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    /// The form of this token; 1.
    pub v: u16,
    /// Where to dial, as `host:port`; at most [`MOST_ADDRESSES`].
    #[serde(deserialize_with = "codec::bounded::<_, _, 8>")]
    pub addresses: Vec<String>,
    /// SHA-256 of the control plane's CA certificate: selects the root among what is presented (S-01).
    pub ca: Digest,
    /// Which control plane.
    pub control_plane_id: ControlPlaneId,
    /// Its epoch when this was minted.
    pub epoch: Epoch,
    /// The node the machine will be.
    pub node: NodeId,
    /// What it is rented as.
    pub rental: Rental,
    /// Which life of it.
    pub generation: Generation,
    /// Whether found things are kept.
    pub mode: Mode,
    /// Until when it can be redeemed, on the control plane's clock.
    pub expires: Millis,
    /// Counts the tokens minted for this node, so that no two are alike.
    pub counter: u64,
    /// Which key made the MAC.
    pub key_id: u32,
}

/// What a session token says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionClaims {
    /// The form of this token; 1.
    pub v: u16,
    /// Which key made the MAC.
    pub key_id: u32,
    /// Which control plane.
    pub control_plane_id: ControlPlaneId,
    /// Its epoch.
    pub epoch: Epoch,
    /// Whose session.
    pub node: NodeId,
    /// Which life of it.
    pub generation: Generation,
    /// The enrolment it stands on.
    pub fencing: FencingToken,
    /// SHA-256 of the node's public key: stolen, it is worth nothing with another.
    pub key: Digest,
    /// Until when, on the control plane's clock.
    pub expires: Millis,
}

/// Why a text is not an enrolment token. Says nothing of what stands in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It begins with something else, or has other characters or too many.
    #[error("this is not an enrolment token")]
    NotAToken,
    /// It began as one, and its checksum does not hold: cut, extended or mistyped.
    #[error("the enrolment token is damaged: a character is missing, added or changed")]
    Damaged,
    /// It is a token of a form this version does not read.
    #[error("the enrolment token has a form this version does not read")]
    OtherForm,
}

/// The key that would judge a token is not there, so it can neither be minted nor judged (N-04).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the control plane has no master key")]
pub struct NoMasterKey;

/// Why presented material was not accepted as ours. One answer for every cause (N-03): the difference would tell a
/// stranger how near a guess was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotProven {
    /// Made under another key, for another purpose, or changed.
    #[error("the token was not made by this control plane")]
    Mac,
    /// There is no key to judge it by.
    #[error(transparent)]
    Signer(#[from] NoMasterKey),
}

/// An enrolment token as it was presented: readable, not judged.
#[derive(Clone)]
pub struct Presented {
    /// What it says of itself.
    pub invitation: Invitation,
    bytes: Zeroizing<Vec<u8>>,
    mac: Zeroizing<[u8; MAC]>,
}

impl std::fmt::Debug for Presented {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Presented").field("node", &self.invitation.node).finish_non_exhaustive()
    }
}

impl Presented {
    /// Reads a token. White space around it is what a file or terminal adds, and is passed over.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        let body = text.strip_prefix(PREFIX).ok_or(TokenError::NotAToken)?;
        if text.len() > MOST_CHARACTERS || !body.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(TokenError::NotAToken);
        }
        let all = Zeroizing::new(base_x::decode(ALPHABET, body).map_err(|_| TokenError::NotAToken)?);
        let (signed, checksum) = split_behind(&all, CHECKSUM).ok_or(TokenError::Damaged)?;
        if Digest::of(signed).as_bytes()[..CHECKSUM] != *checksum {
            return Err(TokenError::Damaged);
        }
        let (bytes, mac) = split_behind(signed, MAC).ok_or(TokenError::Damaged)?;
        let invitation: Invitation = codec::decode(bytes).map_err(|_| TokenError::OtherForm)?;
        let mac: [u8; MAC] = mac.try_into().map_err(|_| TokenError::Damaged)?;
        if invitation.v != 1 || invitation.addresses.is_empty() {
            return Err(TokenError::OtherForm);
        }
        Ok(Self { invitation, bytes: Zeroizing::new(bytes.to_vec()), mac: Zeroizing::new(mac) })
    }

    /// SHA-256 of the MAC: what a record keeps, and what may be logged.
    pub fn id(&self) -> Digest {
        Digest::of(self.mac.as_ref())
    }

    /// The text of the token again, to be presented.
    pub fn text(&self) -> Secret {
        text(&self.bytes, &self.mac)
    }
}

/// A freshly minted enrolment token.
pub struct Minted {
    /// What is printed once.
    pub text: Secret,
    /// What the record keeps of the secret: SHA-256 of the MAC.
    pub id: Digest,
    /// The exact bytes the MAC covers, which the record keeps so that the token can be handed back.
    pub bytes: Vec<u8>,
}

/// Makes and judges tokens. Without a master key it refuses both (N-04).
pub struct Signer(Option<Keys>);

struct Keys {
    enrolment: Zeroizing<[u8; 32]>,
    session: Zeroizing<[u8; 32]>,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Signer(…)" } else { "Signer(no master key)" })
    }
}

impl Signer {
    /// A signer under this master key, with a derived key for each purpose.
    pub fn new(master: &[u8; 32]) -> Self {
        Self(Some(Keys {
            enrolment: derive(master, b"tenure/enrolment-token/v1"),
            session: derive(master, b"tenure/session-token/v1"),
        }))
    }

    /// A signer without a key: it refuses everything.
    pub const fn without_key() -> Self {
        Self(None)
    }

    fn keys(&self) -> Result<&Keys, NoMasterKey> {
        self.0.as_ref().ok_or(NoMasterKey)
    }

    /// A token for this invitation.
    pub fn mint(&self, invitation: &Invitation) -> Result<Minted, NoMasterKey> {
        let bytes = codec::encode(invitation);
        let mac = mac(&self.keys()?.enrolment, &bytes);
        Ok(Minted { text: text(&bytes, &mac), id: Digest::of(&mac), bytes })
    }

    /// The token of stored bytes again; none when it is not the one with this id (then a fresh one is minted).
    pub fn hand_back(&self, bytes: &[u8], id: Digest) -> Result<Option<Secret>, NoMasterKey> {
        let mac = mac(&self.keys()?.enrolment, bytes);
        Ok((Digest::of(&mac) == id).then(|| text(bytes, &mac)))
    }

    /// Whether this control plane made the token. Nothing durable is needed for it. Constant time.
    pub fn judge(&self, presented: &Presented) -> Result<(), NotProven> {
        let key = hmac(&self.keys()?.enrolment);
        key.chain_update(presented.bytes.as_slice())
            .verify_slice(presented.mac.as_ref())
            .map_err(|_| NotProven::Mac)
    }

    /// A session token with these claims.
    pub fn mint_session(&self, claims: &SessionClaims) -> Result<SessionToken, NoMasterKey> {
        let mut bytes = codec::encode(claims);
        let mac = mac(&self.keys()?.session, &bytes);
        bytes.extend(mac);
        Ok(SessionToken(bytes))
    }

    /// The claims of a session token this control plane made. Its expiry is the caller's to judge.
    pub fn judge_session(&self, token: &SessionToken) -> Result<SessionClaims, NotProven> {
        let keys = self.keys()?;
        let (bytes, mac) = split_behind(&token.0, MAC).ok_or(NotProven::Mac)?;
        hmac(&keys.session).chain_update(bytes).verify_slice(mac).map_err(|_| NotProven::Mac)?;
        codec::decode(bytes).map_err(|_| NotProven::Mac)
    }
}

/// The short-lived proof of a session. Opaque to the host; never opens a session by itself (N-06).
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionToken(#[serde(with = "serde_bytes")] Vec<u8>);

/// In constant time, as whatever holds a MAC is compared.
impl PartialEq for SessionToken {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for SessionToken {}

impl std::fmt::Debug for SessionToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionToken(…)")
    }
}

impl SessionClaims {
    /// Whether these claims are of this standing: same control plane, epoch, node, generation, fencing and key.
    pub fn are_of(
        &self,
        control_plane_id: ControlPlaneId,
        epoch: Epoch,
        node: &NodeId,
        generation: Generation,
        fencing: FencingToken,
        key: &PublicKey,
    ) -> bool {
        self.control_plane_id == control_plane_id
            && self.epoch == epoch
            && self.node == *node
            && self.generation == generation
            && self.fencing == fencing
            && self.key == key.digest()
    }
}

fn text(bytes: &[u8], mac: &[u8; MAC]) -> Secret {
    let mut all = Zeroizing::new([bytes, mac].concat());
    let checksum = Digest::of(&all);
    all.extend(&checksum.as_bytes()[..CHECKSUM]);
    Secret::new(format!("{PREFIX}{}", base_x::encode(ALPHABET, &all)))
}

fn split_behind(bytes: &[u8], behind: usize) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(bytes.len().checked_sub(behind)?)
}

fn derive(master: &[u8; 32], purpose: &[u8]) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(hmac(master).chain_update(purpose).finalize().into_bytes().into())
}

fn mac(key: &[u8; 32], bytes: &[u8]) -> [u8; MAC] {
    hmac(key).chain_update(bytes).finalize().into_bytes().into()
}

fn hmac(key: &[u8; 32]) -> Hmac<Sha256> {
    // A key shorter than the block is padded with zeros by definition; doing it here leaves no error to handle.
    let mut block = [0; 64];
    block[..32].copy_from_slice(key);
    Hmac::new(&block.into())
}

#[cfg(test)]
mod tests;
