//! Where the identity lies: in the store, which is the commit, and in a copy beside the node key, so that a lost store
//! does not make a stranger of a machine that can still prove who it is (H-11). The copy holds nothing secret.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use tenure_actors::database::DatabaseError;
use tenure_protocol::wire::codec;

use super::StoredIdentity;
use super::key::KeyFiles;
use crate::ground::Ground;
use crate::store::Store;

/// Keeps the identity. A copy that cannot be written is said and costs nothing until the store is lost.
pub fn keep(store: &Store, ground: &Ground, identity: &StoredIdentity) -> Result<(), DatabaseError> {
    store.set_identity(identity)?;
    if let Err(error) = write(&copy(ground), &codec::encode(identity)) {
        tracing::warn!(%error, "identity not copied beside the node key");
    }
    Ok(())
}

/// The identity of this machine. Where the store has none and the copy names the very key that lies beside it, the copy
/// is put back into the store.
pub fn recover(store: &Store, ground: &Ground) -> Result<Option<StoredIdentity>, DatabaseError> {
    if let Some(identity) = store.identity()? {
        return Ok(Some(identity));
    }
    let Some(identity) = read(&copy(ground)) else { return Ok(None) };
    match KeyFiles::at(ground.node_key()).standing(&identity.key) {
        Ok(_) => {
            store.set_identity(&identity)?;
            tracing::warn!(node = %identity.node, "identity put back into a new store");
            Ok(Some(identity))
        }
        Err(error) => {
            tracing::warn!(%error, node = %identity.node, "identity not put back: its key is not here");
            Ok(None)
        }
    }
}

fn copy(ground: &Ground) -> PathBuf {
    ground.state().join("node.identity")
}

/// An enrolment with all its roots and its briefing is a few kilobytes.
const MOST_BYTES: u64 = 256 * 1024;

fn read(path: &Path) -> Option<StoredIdentity> {
    let file = OpenOptions::new().read(true).custom_flags(nix::libc::O_NOFOLLOW).open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    codec::decode(&bytes).ok()
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("identity.new");
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&beside, path)?;
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}
