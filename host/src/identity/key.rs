//! The node key on disk: `node.key` for the enrolment that stands, `node.key.pending` for one that is being tried, so
//! that a refused redemption costs the standing one nothing. Each is 0600, written beside, synced and renamed, and
//! remembers the id of the token it was made for.
//!
//! A file that is there and cannot be read is *credential unreadable*; it is never replaced by a new identity.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use tenure_actors::file::{self, FileError, Links, Opened};
use tenure_protocol::id::{Digest, NodeId};
use tenure_protocol::proof::{NodeKey, PublicKey};
use tenure_protocol::refusal::{Explain, Refusal};
use zeroize::Zeroizing;

use crate::steps;

/// The two places of a node key.
#[derive(Debug, Clone)]
pub struct KeyFiles {
    standing: PathBuf,
    pending: PathBuf,
}

/// A node key and the token it was made for.
#[derive(Debug)]
pub struct KeptKey {
    /// The key.
    pub key: NodeKey,
    /// The id of the token.
    pub token: Digest,
}

/// Why there is no node key to go on with.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// It is there and is not what we wrote, or could not be looked at.
    #[error("the node key {} cannot be read: {why}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// In what way; nothing of its content.
        why: String,
    },
    /// The store is new, and the copy of the identity that lies beside the key cannot be put back into it.
    #[error("the identity of this machine, kept in {}, cannot be read: {why}", path.display())]
    Identity {
        /// Which file.
        path: PathBuf,
        /// In what way.
        why: String,
    },
    /// The store names a key that neither file has.
    #[error("the node key of this enrolment is not in {}", path.display())]
    NotThere {
        /// Where it should be.
        path: PathBuf,
    },
    /// It could not be written.
    #[error("the node key {} cannot be written", path.display())]
    CannotWrite {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The operating system gives no randomness.
    #[error("no node key can be made: the system gives no randomness")]
    NoRandomness,
}

impl Explain for KeyError {
    fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } | Self::Identity { .. } | Self::NotThere { .. } => {
                "credential_unreadable"
            }
            Self::CannotWrite { .. } | Self::NoRandomness => "credential_not_written",
        }
    }

    fn meaning(&self) -> String {
        match self {
            Self::Unreadable { .. } | Self::Identity { .. } | Self::NotThere { .. } => {
                "this machine cannot prove who it is; it goes on holding what it was told, and no new identity is made"
            }
            Self::CannotWrite { .. } | Self::NoRandomness => {
                "without a key that is safely stored nothing is redeemed; the token is still good"
            }
        }
        .to_owned()
    }

    fn remedy(&self) -> String {
        match self {
            Self::Unreadable { .. } | Self::Identity { .. } | Self::NotThere { .. } => {
                "put the file back from a backup, or run `tenure reinvite NODE` where the control plane is and give \
                 this machine the new token with `tenure-host enrol --token-file FILE`"
            }
            Self::CannotWrite { .. } => "make room or make the directory writable, then give the same token again",
            Self::NoRandomness => "find out why /dev/urandom does not work here, then give the same token again",
        }
        .to_owned()
    }
}

impl KeyError {
    /// The same for a node whose name is known.
    pub fn of(&self, node: &NodeId) -> Refusal {
        let refusal = self.refusal();
        let remedy = refusal.remedy.replace("reinvite NODE", &format!("reinvite {node}"));
        Refusal { remedy, ..refusal }
    }
}

impl KeyFiles {
    /// Those of the key file at `standing`; the pending one lies beside it.
    pub fn at(standing: PathBuf) -> Self {
        let mut pending = standing.clone().into_os_string();
        pending.push(".pending");
        Self { standing, pending: pending.into() }
    }

    /// The key to redeem `token` with: the one that was made for it before, else a fresh one, which is on disk before
    /// this returns. A fresh one replaces a pending key of another token, and never the standing one.
    pub fn for_token(&self, token: Digest) -> Result<NodeKey, KeyError> {
        for path in [&self.standing, &self.pending] {
            match read(path) {
                Ok(Some(kept)) if kept.token == token => return Ok(kept.key),
                Ok(_) => {}
                // A token handed over is the operator's word to go on. The damaged file stays until it is answered.
                Err(error) => tracing::warn!(%error, "node key unreadable"),
            }
        }
        let key = NodeKey::generate().map_err(|_| KeyError::NoRandomness)?;
        write(&self.pending, &key, token)?;
        Ok(key)
    }

    /// The key of the enrolment that stands on `public`. If a crash came between the answer and the renaming, the
    /// renaming is done now.
    pub fn standing(&self, public: &PublicKey) -> Result<NodeKey, KeyError> {
        let standing = read(&self.standing);
        if let Ok(Some(kept)) = &standing
            && kept.key.public() == *public
        {
            return standing
                .map(|kept| kept.map(|kept| kept.key))
                .and_then(|key| key.ok_or_else(|| self.gone()));
        }
        match read(&self.pending) {
            Ok(Some(kept)) if kept.key.public() == *public => {
                self.promote()?;
                Ok(kept.key)
            }
            Ok(_) | Err(_) => match standing {
                Err(error) => Err(error),
                Ok(_) => Err(self.gone()),
            },
        }
    }

    /// Why the key of the enrolment that stands on `public` cannot be used, if it cannot. It renames nothing.
    pub fn trouble(&self, public: &PublicKey) -> Option<KeyError> {
        let is_it = |kept: &Option<KeptKey>| kept.as_ref().is_some_and(|kept| kept.key.public() == *public);
        let standing = look(&self.standing);
        if standing.as_ref().is_ok_and(is_it) || look(&self.pending).as_ref().is_ok_and(is_it) {
            return None;
        }
        Some(standing.err().unwrap_or_else(|| self.gone()))
    }

    /// Why the standing key cannot be read, if one is there and cannot.
    pub fn unreadable(&self) -> Option<KeyError> {
        look(&self.standing).err()
    }

    /// Whether there is a standing key, of whatever kind.
    pub fn is_there(&self) -> bool {
        self.standing.symlink_metadata().is_ok()
    }

    /// Makes sure that what lies as pending is not the key of the enrolment that stands on `public`, which a new token
    /// would overwrite. A standing key that is lost or damaged is no reason to refuse a new token.
    pub fn free_pending(&self, public: &PublicKey) -> Result<(), KeyError> {
        match self.standing(public) {
            Err(error @ (KeyError::CannotWrite { .. } | KeyError::NoRandomness)) => Err(error),
            Ok(_)
            | Err(KeyError::Unreadable { .. } | KeyError::Identity { .. } | KeyError::NotThere { .. }) => {
                Ok(())
            }
        }
    }

    /// The pending key becomes the standing one, if there is a pending one. Called after the store has committed.
    pub fn promote(&self) -> Result<(), KeyError> {
        match steps::KEY_STANDING.take(|| std::fs::rename(&self.pending, &self.standing)) {
            Ok(()) => sync_directory(&self.standing),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(source),
        }
        .map_err(|source| KeyError::CannotWrite { path: self.standing.clone(), source })
    }

    fn gone(&self) -> KeyError {
        KeyError::NotThere { path: self.standing.clone() }
    }
}

const FIRST_LINE: &str = "tenure node key v1";
/// A first line, a seed and a digest, with room to spare.
const MOST_BYTES: u64 = 512;

/// Reads a key file, if there is one; it follows no link and waits for nobody.
fn read(path: &Path) -> Result<Option<KeptKey>, KeyError> {
    take(path, |opened| tighten(path, opened))
}

/// The same for whoever only looks: nothing of it is changed.
fn look(path: &Path) -> Result<Option<KeptKey>, KeyError> {
    take(path, |_| Ok(()))
}

fn take(
    path: &Path,
    found: impl FnOnce(&Opened) -> std::io::Result<()>,
) -> Result<Option<KeptKey>, KeyError> {
    let unreadable = |why: String| KeyError::Unreadable { path: path.to_owned(), why };
    let mut opened = match file::open(path, Links::Refused) {
        Ok(opened) => opened,
        Err(FileError::Absent { .. }) => return Ok(None),
        Err(error) => return Err(unreadable(in_words(error))),
    };
    if !opened.is_ours() {
        return Err(unreadable(format!(
            "it belongs to user {}, who could have put it there",
            opened.owner()
        )));
    }
    found(&opened).map_err(|error| unreadable(error.to_string()))?;
    let bytes = Zeroizing::new(opened.read(MOST_BYTES).map_err(|error| unreadable(in_words(error)))?);
    let text = std::str::from_utf8(&bytes).map_err(|_| unreadable("it is no text".to_owned()))?;
    parse(text).map(Some).map_err(|why| unreadable(why.to_owned()))
}

/// Without the path, which is named already.
pub(super) fn in_words(error: FileError) -> String {
    match error {
        FileError::Absent { .. } => "it is not there".to_owned(),
        FileError::Link { .. } => "it is a link, which is not followed".to_owned(),
        FileError::NotAFile { what, .. } => format!("it is {what}, not a file"),
        FileError::TooLarge { most, .. } => format!("it is larger than {most} bytes"),
        FileError::Io { source, .. } => source.to_string(),
    }
}

/// A wider mode than ours is said, and taken back.
fn tighten(path: &Path, opened: &Opened) -> std::io::Result<()> {
    if opened.is_open_to_others() {
        let mode = format!("{:04o}", opened.mode());
        tracing::warn!(path = %path.display(), %mode, "node key was open to others than its owner");
        opened.close()?;
    }
    Ok(())
}

fn parse(text: &str) -> Result<KeptKey, &'static str> {
    if text.is_empty() {
        return Err("it is empty");
    }
    if text.bytes().all(|byte| byte == 0) {
        return Err("it holds nothing but zero bytes");
    }
    let mut lines = text.lines();
    let (first, seed, token, rest) = (lines.next(), lines.next(), lines.next(), lines.next());
    if first != Some(FIRST_LINE) || rest.is_some() {
        return Err("it is not a node key of this version");
    }
    let (Some(seed), Some(token)) = (seed, token) else { return Err("it is cut short") };
    // Both are 64 hexadecimal characters, and a digest is the type that reads exactly those.
    let seed = seed.parse::<Digest>().map_err(|_| "its key is damaged")?;
    let token = token.parse().map_err(|_| "its token id is damaged")?;
    Ok(KeptKey { key: NodeKey::from_seed(seed.as_bytes()), token })
}

fn write(path: &Path, key: &NodeKey, token: Digest) -> Result<(), KeyError> {
    let seed = Zeroizing::new(Digest::from_bytes(*key.seed()).to_string());
    let text = Zeroizing::new(format!("{FIRST_LINE}\n{}\n{token}\n", seed.as_str()));
    let mut beside = path.to_path_buf().into_os_string();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let put = || {
        // Left by a crash: it was never renamed, so it is nobody's key.
        match std::fs::remove_file(&beside) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        steps::KEY_WRITTEN.take(|| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))?;
        steps::KEY_PENDING.take(|| std::fs::rename(&beside, path))?;
        sync_directory(path)
    };
    put().map_err(|source| KeyError::CannotWrite { path: path.to_owned(), source })
}

fn sync_directory(path: &Path) -> std::io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

#[cfg(test)]
mod tests;
