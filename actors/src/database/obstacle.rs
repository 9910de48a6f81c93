//! What stands between a program and a file of its own when the file itself is not to blame: so that nobody is sent to
//! look for a damaged store where a disk is full (O-70).

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::statvfs::{FsFlags, Statvfs, statvfs};
use nix::unistd::geteuid;

/// Why the system did not let us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// The disk, or what we may use of it, is full.
    Full,
    /// The file system takes no writes.
    ReadOnly,
    /// An owner or a mode is in the way.
    Denied,
    /// The disk answers with errors.
    Failing,
    /// Another program holds it.
    Busy,
    /// None of these; the error says what.
    Other,
}

impl Obstacle {
    /// What the system's own error says.
    #[must_use]
    pub fn of(error: &std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::Full,
            ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            ErrorKind::PermissionDenied => Self::Denied,
            ErrorKind::ResourceBusy => Self::Busy,
            _ if error.raw_os_error().map(Errno::from_raw) == Some(Errno::EIO) => Self::Failing,
            _ => Self::Other,
        }
    }

    /// What the file system under `path` says of itself, for an error that does not tell one cause from another.
    pub(super) fn under(path: &Path) -> Option<Self> {
        let found = path.ancestors().skip(1).find_map(|folder| statvfs(folder).ok())?;
        if found.flags().contains(FsFlags::ST_RDONLY) {
            return Some(Self::ReadOnly);
        }
        (blocks_left(&found) == 0).then_some(Self::Full)
    }

    /// What the system says to whoever writes: a page is written to `scratch`, a name of our own, and removed again. Some
    /// read-only file systems do not say that they are.
    pub(super) fn of_writing(scratch: &Path) -> Option<Self> {
        let write = || {
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(scratch)?.write_all(&[0; 4096])
        };
        // One that a kill left is in the way, and another thread's says as much as ours would.
        drop(std::fs::remove_file(scratch));
        let refused = write().err().filter(|error| error.kind() != ErrorKind::AlreadyExists);
        drop(std::fs::remove_file(scratch));
        refused.map(|error| Self::of(&error))
    }
}

/// How many blocks of a file system this process may still use: root also has those that are kept from everybody else.
#[must_use]
pub fn blocks_left(found: &Statvfs) -> u64 {
    left(geteuid().is_root(), found.blocks_free(), found.blocks_available())
}

fn left(is_root: bool, free: u64, available: u64) -> u64 {
    if is_root { free } else { available }
}

#[cfg(test)]
mod tests {
    use super::*;

    // case: O-05
    #[test]
    fn the_room_that_is_kept_for_root_is_room_for_root_alone() {
        assert_eq!((left(true, 9, 0), left(false, 9, 0)), (9, 0));
    }
}
