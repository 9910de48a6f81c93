//! Whether a file system's change times can be trusted to tell that a file was changed. Those that are listed set them
//! from this machine's own clock at each change, and let nobody set them. Others keep them elsewhere (NFS, FUSE), for
//! two seconds at once, or not at all (FAT): there, and on whatever is not known, files are read instead.

use std::os::fd::BorrowedFd;

use nix::sys::statfs::{
    BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, FsType, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC, XFS_SUPER_MAGIC, fstatfs,
};

/// ext2 and ext3 have the number of ext4.
const KEPT: [FsType; 5] =
    [EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC];

/// Whether the file system here gives each change of a file a change time of its own that nobody can set.
pub(crate) fn are_kept(directory: BorrowedFd<'_>) -> bool {
    fstatfs(directory).is_ok_and(|seen| KEPT.contains(&seen.filesystem_type()))
}
