//! The kernel's lock on a store: two processes never open the same one. It is a lock on `<path>.lock`, which goes with
//! the process however it ends; the file itself stays and says whose the lock is, and which store was open under it
//! until that was closed. Nobody deletes it: that would let two processes lock two different files of one name.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::sys::statfs::{
    AFS_SUPER_MAGIC, CODA_SUPER_MAGIC, FsType, NCP_SUPER_MAGIC, NFS_SUPER_MAGIC, SMB_SUPER_MAGIC,
};

use super::open::OpenError;
use crate::clock::{self, Moment};

/// Held for as long as the store is open.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    open: Option<Open>,
    /// The file may say that something is open.
    is_said: bool,
}

pub(super) fn take(store: &Path) -> Result<Lock, OpenError> {
    refuse_network(store)?;
    let path = beside(store, ".lock");
    let cannot = |error| OpenError::of_file(&path, error);
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
    // What was left open stays noted until it is opened, or another one is.
    let open = read(&mut file).open;
    unsigned(sign(&mut file, open));
    Ok(Lock { file, open, is_said: open.is_some() })
}

/// Held for as long as nobody may open the store. Many may hold it.
#[derive(Debug)]
pub struct Unopened {
    _file: File,
}

pub(super) fn keep_unopened(store: &Path) -> std::io::Result<Option<Unopened>> {
    let file = File::open(beside(store, ".lock"))?;
    match file.try_lock_shared() {
        Ok(()) => Ok(Some(Unopened { _file: file })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

impl Lock {
    /// This store is open from now on. Its log has its name on the disk before this says so: what a power cut leaves
    /// must not look like a log that somebody removed.
    pub(super) fn opened(&mut self, store: &Path) {
        unsigned(self.open_here(store));
    }

    fn open_here(&mut self, store: &Path) -> std::io::Result<()> {
        let named = File::open(folder(store)).and_then(|folder| folder.sync_all());
        let has_log = has_log(store);
        self.open = std::fs::metadata(store).ok().map(|found| Open { store: found.ino(), has_log });
        self.is_said = true;
        named.and_then(|()| self.sign())
    }

    /// The same, by whoever only reads at first: of a log with nothing in it nobody was promised anything, so that this
    /// is noted with the first commit.
    pub(super) fn opened_to_look(&mut self, store: &Path) {
        if self.open.is_some() || has_log(store) {
            self.opened(store);
        }
    }

    /// After a commit, and before that is answered: from where something is in the log an empty one would be one that
    /// somebody emptied.
    pub(super) fn log_is_filled(&mut self, store: &Path) {
        match self.open {
            // Where it cannot be noted now, the next commit tries again.
            None => unsigned(self.open_here(store).inspect_err(|_| self.open = None)),
            Some(open) if !open.has_log && has_log(store) => unsigned(self.has_log(true)),
            Some(_) => {}
        }
    }

    /// It is about to be written back into the store, and may be empty from now on. After an error it must not be.
    pub(super) fn log_may_be_empty(&mut self) -> std::io::Result<()> {
        self.has_log(false)
    }

    fn has_log(&mut self, has_log: bool) -> std::io::Result<()> {
        let before = self.open;
        let Some(open) = self.open.as_mut().filter(|open| open.has_log != has_log) else { return Ok(()) };
        open.has_log = has_log;
        self.sign().inspect_err(|_| self.open = before)
    }

    fn sign(&mut self) -> std::io::Result<()> {
        sign(&mut self.file, self.open)?;
        self.file.sync_all()
    }

    /// It was closed, and its log is written back. It is on the disk when this returns, so that the log may go; after an
    /// error the log must stay.
    pub(super) fn closed(&mut self) -> std::io::Result<()> {
        self.open = None;
        // Where it was never said that it is open there is nothing to take back. Whoever said so last may have died just
        // here, and a power cut soon after it bring that back: then a log is missed that nobody lost.
        if self.is_said {
            self.sign()?;
            self.is_said = false;
        }
        Ok(())
    }
}

/// Whether anything is in the log of this store.
fn has_log(store: &Path) -> bool {
    beside(store, "-wal").metadata().is_ok_and(|log| log.len() > 0)
}

/// Whether this store was left open by a process that ended, and its log was removed or emptied since: then what was
/// acknowledged last is not in it. A store that took its place since, a backup say, was not left open.
pub(super) fn log_is_gone(store: &Path) -> bool {
    let signed = || File::open(beside(store, ".lock")).map(|mut file| read(&mut file)).unwrap_or_default();
    let before = signed();
    let Some(Open { store: left_open, has_log }) = before.open else { return false };
    let is_gone = match beside(store, "-wal").symlink_metadata() {
        Ok(log) => has_log && log.is_file() && log.len() == 0,
        Err(error) => error.kind() == ErrorKind::NotFound,
    };
    let is_it = || std::fs::metadata(store).is_ok_and(|found| found.ino() == left_open);
    // Whoever closed it while we looked has said so before its log went.
    is_gone && is_it() && signed() == before
}

/// The store that a process has open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Open {
    /// The kernel's name of it.
    store: u64,
    /// Whether something is in its log.
    has_log: bool,
}

/// What a lock file says: the process, since when, and what it has open.
#[derive(Debug, Default, PartialEq, Eq)]
struct Signature {
    pid: Option<u32>,
    since: Option<Moment>,
    open: Option<Open>,
}

/// The word for a log with something in it.
const LOG: &str = "log";

/// A signature has three numbers and a word; what is longer is none of ours, and no memory is spent on it.
const MOST_SIGNED: u64 = 256;

/// On a full disk it may not work.
fn sign(file: &mut File, open: Option<Open>) -> std::io::Result<()> {
    let (pid, since) = (std::process::id(), clock::system().now().millis());
    let open = open.map_or_else(String::new, |Open { store, has_log }| {
        format!(" {store}{}", if has_log { format!(" {LOG}") } else { String::new() })
    });
    let name = format!("{pid} {since}{open}\n");
    // Over the name before it, which has its room already.
    file.rewind()?;
    file.write_all(name.as_bytes())?;
    file.set_len(u64::try_from(name.len()).unwrap_or(u64::MAX))
}

/// The lock is held all the same; only its holder's name is missing.
fn unsigned(signed: std::io::Result<()>) {
    if let Err(error) = signed {
        tracing::warn!(%error, "the store's lock could not be signed");
    }
}

fn held(store: &Path, file: &mut File) -> OpenError {
    let Signature { pid, since, .. } = read(file);
    OpenError::Locked { path: store.to_owned(), pid, since }
}

/// Unreadable or half written, the lock is held all the same; only the name is missing.
fn read(file: &mut File) -> Signature {
    let mut text = String::new();
    drop(file.take(MOST_SIGNED).read_to_string(&mut text));
    let mut words = text.split_ascii_whitespace();
    Signature {
        pid: words.next().and_then(|word| word.parse().ok()),
        since: words.next().and_then(|word| word.parse().ok()).map(Moment::from_millis),
        open: words
            .next()
            .and_then(|word| word.parse().ok())
            .map(|store| Open { store, has_log: words.next() == Some(LOG) }),
    }
}

/// The file of that name with something after it.
pub(super) fn beside(store: &Path, ending: &str) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// The folder that a store lies in.
pub(super) fn folder(store: &Path) -> &Path {
    store.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// SQLite's shared memory and the kernel's lock hold within one machine only.
fn refuse_network(store: &Path) -> Result<(), OpenError> {
    let folder = folder(store);
    let found = nix::sys::statfs::statfs(folder).map_err(|error| OpenError::of_file(folder, error.into()))?;
    refuse(store, found.filesystem_type())
}

pub(super) fn refuse(store: &Path, found: FsType) -> Result<(), OpenError> {
    match network(found) {
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
