//! The kernel's lock on a store: two processes never open the same one. It is a lock on `<path>.lock`, which goes with
//! the process however it ends; the file itself stays and says whose the lock is. Nobody deletes it: that would let
//! two processes lock two different files of one name.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::sys::statfs::{
    AFS_SUPER_MAGIC, CODA_SUPER_MAGIC, FsType, NCP_SUPER_MAGIC, NFS_SUPER_MAGIC, SMB_SUPER_MAGIC,
};

use super::open::OpenError;
use crate::clock::{self, Moment};

/// Held for as long as the store is open.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

pub(super) fn take(store: &Path) -> Result<Lock, OpenError> {
    refuse_network(store)?;
    let path = beside(store, ".lock");
    let cannot = |error: std::io::Error| OpenError::CannotOpen { path: path.clone(), source: error.into() };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(cannot)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(held(store, &mut file)),
        Err(TryLockError::Error(error)) => return Err(cannot(error)),
    }
    sign(&mut file).map_err(cannot)?;
    Ok(Lock { _file: file })
}

/// The holder's name in its own lock file: the process, and since when.
fn sign(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{} {}", std::process::id(), clock::system().now().millis())
}

fn held(store: &Path, file: &mut File) -> OpenError {
    let mut text = String::new();
    // Unreadable or half written, the lock is held all the same; only the name is missing.
    drop(file.read_to_string(&mut text));
    let (pid, since) = signed(&text);
    OpenError::Locked { path: store.to_owned(), pid, since }
}

fn signed(text: &str) -> (Option<u32>, Option<Moment>) {
    let mut words = text.split_ascii_whitespace();
    let pid = words.next().and_then(|word| word.parse().ok());
    (pid, words.next().and_then(|word| word.parse().ok()).map(Moment::from_millis))
}

/// The file of that name with something after it.
pub(super) fn beside(store: &Path, ending: &str) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// SQLite's shared memory and the kernel's lock hold within one machine only.
fn refuse_network(store: &Path) -> Result<(), OpenError> {
    let folder = match store.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    };
    let found = nix::sys::statfs::statfs(folder)
        .map_err(|error| OpenError::CannotOpen { path: folder.to_owned(), source: Box::new(error) })?;
    match network(found.filesystem_type()) {
        Some(kind) => Err(OpenError::OnNetwork { path: store.to_owned(), kind }),
        None => Ok(()),
    }
}

pub(super) fn network(found: FsType) -> Option<&'static str> {
    let known = [
        (NFS_SUPER_MAGIC, "NFS"),
        (SMB_SUPER_MAGIC, "SMB"),
        (FsType(0xff53_4d42), "CIFS"),
        (FsType(0xfe53_4d42), "SMB2"),
        (FsType(0x00c3_6400), "Ceph"),
        (FsType(0x0102_1997), "9P"),
        (AFS_SUPER_MAGIC, "AFS"),
        (CODA_SUPER_MAGIC, "Coda"),
        (NCP_SUPER_MAGIC, "NCP"),
    ];
    known.iter().find(|(kind, _)| *kind == found).map(|(_, name)| *name)
}
