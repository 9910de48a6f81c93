//! Where the identity lies: in the store, which is the commit, and in a copy beside the node key, so that a lost store
//! does not make a stranger of a machine that can still prove who it is (H-11). The copy holds nothing secret.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use tenure_actors::database::DatabaseError;
use tenure_actors::file::{self, FileError, Links};
use tenure_protocol::refusal::{Explain as _, Refusal};
use tenure_protocol::wire::codec;

use super::StoredIdentity;
use super::key::{KeyError, KeyFiles, in_words};
use crate::ground::Ground;
use crate::steps;
use crate::store::Store;

/// Keeps the identity. A copy that cannot be written is said and costs nothing until the store is lost.
pub fn keep(store: &Store, ground: &Ground, identity: &StoredIdentity) -> Result<(), DatabaseError> {
    store.set_identity(identity)?;
    copy_out(ground, identity);
    Ok(())
}

fn copy_out(ground: &Ground, identity: &StoredIdentity) {
    if let Err(error) = write(&copy(ground), &codec::encode(identity)) {
        tracing::warn!(%error, "identity not copied beside the node key");
    }
}

/// The identity of this machine. Where the store has none and the copy names the very key that lies beside it, the copy
/// is put back into the store.
pub fn recover(store: &Store, ground: &Ground) -> Result<Option<StoredIdentity>, DatabaseError> {
    if let Some(identity) = store.identity()? {
        // The copy follows the store, also where somebody removed or damaged it, or a crash came between the two.
        if read(&copy(ground)).ok().flatten().as_ref() != Some(&identity) {
            copy_out(ground, &identity);
        }
        return Ok(Some(identity));
    }
    match kept(ground) {
        Ok(None) => Ok(None),
        Ok(Some(identity)) => {
            store.set_identity(&identity)?;
            tracing::warn!(node = %identity.node, "identity put back into a new store");
            Ok(Some(identity))
        }
        Err(why) => {
            tracing::error!(code = %why.code, why = why.happened, "identity not put back into a new store");
            Ok(None)
        }
    }
}

/// Why this machine cannot prove who it is, if it cannot: its key is not what `identity` stands on, or it has a key, no
/// identity, and no copy of one that can be read.
pub fn trouble(ground: &Ground, identity: Option<&StoredIdentity>) -> Option<Refusal> {
    match identity {
        Some(identity) => {
            let trouble = KeyFiles::at(ground.node_key()).trouble(&identity.key)?;
            Some(trouble.of(&identity.node))
        }
        None => kept(ground).err(),
    }
}

/// The copied identity with a key that is its own, if this machine was enrolled.
fn kept(ground: &Ground) -> Result<Option<StoredIdentity>, Refusal> {
    let (files, path) = (KeyFiles::at(ground.node_key()), copy(ground));
    match read(&path) {
        Ok(Some(identity)) => match files.standing(&identity.key) {
            Ok(_) => Ok(Some(identity)),
            Err(error) => Err(error.of(&identity.node)),
        },
        Ok(None) if !files.is_there() => Ok(None),
        Ok(None) => match files.unreadable() {
            Some(error) => Err(error.refusal()),
            None => Err(unreadable(&path, "it is not there")),
        },
        Err(why) => Err(unreadable(&path, &why)),
    }
}

fn unreadable(path: &Path, why: &str) -> Refusal {
    KeyError::Identity { path: path.to_owned(), why: why.to_owned() }.refusal()
}

fn copy(ground: &Ground) -> PathBuf {
    ground.state().join("node.identity")
}

/// An enrolment with all its roots and its briefing is a few kilobytes.
const MOST_BYTES: u64 = 256 * 1024;

/// The copy, if there is one; an error says in which way it cannot be read.
fn read(path: &Path) -> Result<Option<StoredIdentity>, String> {
    let bytes = match file::read(path, Links::Refused, MOST_BYTES) {
        Ok(bytes) => bytes,
        Err(FileError::Absent { .. }) => return Ok(None),
        Err(error) => return Err(in_words(error)),
    };
    if bytes.is_empty() {
        return Err("it is empty".to_owned());
    }
    codec::decode(&bytes).map(Some).map_err(|_| "it is damaged".to_owned())
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("identity.new");
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    steps::IDENTITY_WRITTEN.take(|| file.write_all(bytes).and_then(|()| file.sync_all()))?;
    steps::IDENTITY_COPIED.take(|| std::fs::rename(&beside, path))?;
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}
