//! Whether the store still lies where it was opened, how much room is left beside it, and writing it to its place again
//! after its file was removed: what the host has open is whole, and nowhere else.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;
use tenure_actors::clock::Moment;
use tenure_actors::database::{DatabaseError, blocks_left};

use super::Store;
use super::aside::{is_log_alone, set_aside};
use crate::ground::Ground;
use crate::steps;

/// So much must be free before a change is begun: the records of a whole group, the log they go through, and the pass's
/// own end take a fraction of it. SQLite says *full* only when it is too late to note what was done (O-05).
pub const LEAST_ROOM: u64 = 1024 * 1024;

/// Why the store was not written to its place again.
#[derive(Debug, thiserror::Error)]
pub enum PutBackError {
    /// What is open could not be copied.
    #[error("what is open could not be copied")]
    Copy(#[from] DatabaseError),
    /// The copy could not be put in place.
    #[error("the copy could not be put in its place")]
    Place(#[from] io::Error),
}

impl Store {
    /// Whether the file still lies where it was opened.
    pub fn in_place(&self) -> Result<(), DatabaseError> {
        self.database.in_place()
    }

    /// Writes into the file what its log holds, also a log that was removed. It stays open.
    pub fn write_back(&self) -> Result<(), DatabaseError> {
        self.database.write_back()
    }

    /// How many bytes are free beside the store; none where that cannot be measured.
    pub fn room(&self) -> Option<u64> {
        let found = statvfs(self.path.parent()?).ok()?;
        blocks_left(&found).checked_mul(found.fragment_size())
    }

    /// Writes what is open to its empty place. This value stays with the removed file and takes no change any more; the
    /// store is to be opened anew. Where something lies in the place by now, that is left as it is.
    pub fn put_back(&self, ground: &Ground) -> Result<(), PutBackError> {
        ground.create()?;
        let beside = with(&self.path, ".back");
        clear(&beside)?;
        // SQLite fills an empty file, and would make one that others can read.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        if let Err(error) = self.database.copy_to(&beside) {
            clear(&beside)?;
            return Err(error.into());
        }
        file.sync_all()?;
        if self.path.symlink_metadata().is_ok() {
            clear(&beside)?;
            return Err(io::Error::from(io::ErrorKind::AlreadyExists).into());
        }
        // They belong to the file that was removed, and would be read into this one.
        for ending in ["-wal", "-shm"] {
            clear(&with(&self.path, ending))?;
        }
        steps::STORE_BACK.take(|| std::fs::rename(&beside, &self.path))?;
        File::open(ground.state())?.sync_all()?;
        Ok(())
    }
}

/// Takes the copy that a crash left beside an empty place, and says whether there was one. A log that lies there is of
/// the file that was removed, and is kept aside; whether the copy is whole, its opening finds out.
pub(super) fn take_back(path: &Path, now: Moment) -> io::Result<bool> {
    let beside = with(path, ".back");
    if beside.symlink_metadata().is_err() {
        return Ok(false);
    }
    if is_log_alone(path) {
        set_aside(path, now)?;
    }
    clear(&with(path, "-shm"))?;
    steps::STORE_BACK.take(|| std::fs::rename(&beside, path))?;
    if let Some(folder) = path.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok(true)
}

pub(super) fn clear(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

pub(super) fn with(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
