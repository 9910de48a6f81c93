//! Whether the files of an open store still are the ones at their paths. SQLite goes on writing into files that were
//! removed or replaced, and says yes to every change; nobody would ever find it again. So the writer looks before and
//! after each commit.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::DatabaseError;
use super::lock::{beside, folder};
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
    /// The file system of its folder.
    device: u64,
}

impl Place {
    pub(super) fn of(path: &Path) -> std::io::Result<Self> {
        let parts = PARTS.iter().map(|part| beside(path, part));
        let parts = parts.map(|part| kernels_name(&part).map(|found| (part, found)));
        let (device, _) = kernels_name(folder(path))?;
        Ok(Self { path: path.to_owned(), parts: parts.collect::<Result<_, _>>()?, device })
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
            Err(match moved {
                _ if self.is_unmounted() => Moved::Unmounted,
                moved if *part == self.path => moved,
                Moved::Removed | Moved::Replaced | Moved::Log | Moved::Unmounted => Moved::Log,
            })
        })
    }

    /// The store's own file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether another file system lies at the folder by now, or where the folder would lie. Nothing was removed then,
    /// and what is written there is written to the wrong disk.
    fn is_unmounted(&self) -> bool {
        let found = folder(&self.path).ancestors().find_map(|folder| kernels_name(folder).ok());
        found.is_some_and(|(device, _)| device != self.device)
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
    /// Nothing: the file system it lies on.
    Unmounted,
}

impl From<Moved> for DatabaseError {
    fn from(moved: Moved) -> Self {
        match moved {
            Moved::Removed => Self::Removed,
            Moved::Replaced => Self::Replaced,
            Moved::Log => Self::LogRemoved,
            Moved::Unmounted => Self::Unmounted,
        }
    }
}

fn kernels_name(path: &Path) -> std::io::Result<(u64, u64)> {
    std::fs::metadata(path).map(|found| (found.dev(), found.ino()))
}
