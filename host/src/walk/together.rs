//! One sync for the small files that are written at the same time, in place of one each: a disk takes as long for either.
//! It writes all that its file system has not written yet, so it is done only where that is little: nobody's database
//! is to wait for it, and nobody's bulk is to be waited for. Called by the pass that writes many files.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use nix::sys::statfs::{EXT4_SUPER_MAGIC, FsType, XFS_SUPER_MAGIC, fstatfs};
use nix::unistd::syncfs;

use super::Dir;
use super::change::Fresh;
use crate::steps;

/// These write all they have when they are told to, and say what they could not write. Others do nothing (FUSE), end a
/// transaction of everybody's (Btrfs), or are not known. ext2 and ext3 have the number of ext4.
const KNOWN: [FsType; 2] = [EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC];
/// Of a larger file it is the bytes that take long, and many of them would be much to have unwritten.
const SMALL: u64 = 64 * 1024;
/// So much may be unwritten on the whole machine, in bytes: what a slow disk takes a second for.
const LITTLE: u64 = 64 * 1024 * 1024;
/// Before it, a sync of a file system said nothing of what it could not write.
const SAYS_SINCE: (u32, u32) = (5, 8);

/// Where files are synced together, as long as they may be.
#[derive(Debug)]
pub struct Together {
    /// Each file system by its device, held open since before anything was written there: what cannot be written from
    /// then on is told. None: there it is not done.
    held: Mutex<HashMap<u64, Option<Arc<File>>>>,
    is_calm: AtomicBool,
}

impl Together {
    /// None: each is to be synced by itself.
    pub fn begin() -> Option<Self> {
        let says = read("/proc/sys/kernel/osrelease").is_some_and(|release| is_since(&release, SAYS_SINCE));
        (says && is_calm()).then(|| Self { held: Mutex::default(), is_calm: AtomicBool::new(true) })
    }

    /// Whether a file of this size may wait there for the others.
    pub fn takes(&self, dir: &Dir, size: u64) -> bool {
        size <= SMALL && self.is_calm.load(Ordering::Relaxed) && self.held(dir).is_some()
    }

    fn held(&self, dir: &Dir) -> Option<Arc<File>> {
        self.all_held().entry(dir.inode().dev).or_insert_with(|| hold(dir).map(Arc::new)).clone()
    }

    /// There each is synced by itself from now on.
    fn leave(&self, device: u64) {
        self.all_held().insert(device, None);
    }

    fn all_held(&self) -> MutexGuard<'_, HashMap<u64, Option<Arc<File>>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Syncs all that are not synced yet, with one call for each file system. What is not synced after it is to be synced
    /// by itself, which says of each whether it is on the disk.
    pub fn sync<'f>(&self, fresh: impl Iterator<Item = &'f mut Fresh>) {
        let mut places: BTreeMap<u64, Vec<&mut Fresh>> = BTreeMap::new();
        for one in fresh.filter(|one| !one.is_synced()) {
            places.entry(one.dir().inode().dev).or_default().push(one);
        }
        for (device, all) in places {
            let held = all.first().and_then(|one| self.held(one.dir()));
            let synced = held.map(|held| steps::FILE_SYNCED.take(|| syncfs(held)));
            if matches!(synced, Some(Ok(()))) {
                all.into_iter().for_each(Fresh::was_synced);
            } else {
                self.leave(device);
            }
        }
        self.is_calm.store(is_calm(), Ordering::Relaxed);
    }
}

fn hold(dir: &Dir) -> Option<File> {
    let is_known = fstatfs(&dir.fd).is_ok_and(|seen| KNOWN.contains(&seen.filesystem_type()));
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let open = || openat(&dir.fd, ".", flags, Mode::empty()).ok();
    is_known.then(open).flatten().map(File::from)
}

fn is_calm() -> bool {
    read("/proc/meminfo").and_then(|text| unwritten(&text)).is_some_and(|bytes| bytes <= LITTLE)
}

/// What the kernel has taken and not written, in bytes.
fn unwritten(meminfo: &str) -> Option<u64> {
    let kibibytes = |name: &str| -> Option<u64> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim_end().parse().ok()
    };
    kibibytes("Dirty:")?.checked_add(kibibytes("Writeback:")?)?.checked_mul(1024)
}

/// Whether a kernel of this name is that one or a later one.
fn is_since(release: &str, (major, minor): (u32, u32)) -> bool {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(first)), Some(Ok(second))) => (first, second) >= (major, minor),
        (_, _) => false,
    }
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests;
