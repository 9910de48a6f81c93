//! Whether the files of an open store still are the ones at their paths. SQLite goes on writing into files that were
//! removed or replaced, and says yes to every change; nobody would ever find it again. So the writer looks before and
//! after each commit.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::DatabaseError;
use super::lock::beside;
use super::obstacle::Obstacle;

/// The store's file, its log, the memory its connections share, and its lock: whoever replaces one of them breaks a
/// promise that the others keep.
const PARTS: [&str; 4] = ["", "-wal", "-shm", ".lock"];

/// A path, and the files that lay there when the store was opened.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    /// The store's own first.
    parts: Vec<(PathBuf, (u64, u64))>,
}

impl Place {
    pub(super) fn of(path: &Path) -> std::io::Result<Self> {
        let parts = PARTS.iter().map(|part| beside(path, part));
        let parts = parts.map(|part| kernels_name(&part).map(|found| (part, found)));
        Ok(Self { path: path.to_owned(), parts: parts.collect::<Result<_, _>>()? })
    }

    /// An error says that a file is known to be another or none. Where nobody can look, SQLite itself will say what is
    /// wrong.
    pub(super) fn check(&self) -> Result<(), Moved> {
        self.parts.iter().try_for_each(|(part, opened)| {
            let moved = match kernels_name(part) {
                Ok(found) if found == *opened => return Ok(()),
                Ok(_) => Moved::Replaced,
                Err(error) if error.kind() == ErrorKind::NotFound => Moved::Removed,
                Err(_) => return Ok(()),
            };
            Err(if *part == self.path { moved } else { Moved::Log })
        })
    }

    /// The same error under the name of its cause: SQLite calls some full and some read-only disks failing ones.
    pub(super) fn named(&self, error: DatabaseError) -> DatabaseError {
        let DatabaseError::Failing = error else { return error };
        let why =
            Obstacle::under(&self.path).or_else(|| Obstacle::of_writing(&beside(&self.path, ".scratch")));
        match why {
            Some(Obstacle::Full) => DatabaseError::Full,
            Some(Obstacle::ReadOnly) => DatabaseError::ReadOnly,
            Some(Obstacle::Denied | Obstacle::Failing | Obstacle::Busy | Obstacle::Other) | None => error,
        }
    }
}

/// What became of a file.
#[derive(Debug, Clone, Copy)]
pub(super) enum Moved {
    Removed,
    Replaced,
    /// What lies beside the store, while the store's own file is in its place.
    Log,
}

impl From<Moved> for DatabaseError {
    fn from(moved: Moved) -> Self {
        match moved {
            Moved::Removed => Self::Removed,
            Moved::Replaced => Self::Replaced,
            Moved::Log => Self::LogRemoved,
        }
    }
}

fn kernels_name(path: &Path) -> std::io::Result<(u64, u64)> {
    std::fs::metadata(path).map(|found| (found.dev(), found.ino()))
}
