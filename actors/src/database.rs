//! One SQLite store: opened under a lock of its own, written by one thread in groups, read on connections of their own.
//! It never acknowledges a change that is not on the disk, unless it was told that nobody would miss it, never creates a
//! store where one was expected, never opens one that is foreign, newer or in use, and never writes into a damaged one.
//! It knows no table; the daemons' `store` rooms hold their rows.
//!
//! A group commits together, but each change runs inside its own savepoint, so that one that fails goes alone. Schemas
//! must not use deferred constraints: those fail at the commit, where a group can no longer be told apart.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, Transaction};

use crate::crash::Step;

mod checking;
mod header;
mod lock;
mod obstacle;
mod open;
mod place;
mod queue;
mod readers;
mod writer;

#[cfg(test)]
mod tests;

pub use lock::Unopened;
pub use obstacle::{Obstacle, blocks_left};
pub use open::OpenError;
pub use rusqlite;

use checking::Checking;
use place::Place;
use queue::Queue;
use readers::Readers;
use writer::{Durability, Outcome, Task};

/// A store that is made has its name, and its tables.
pub const CREATED: Step = Step::named("store.created");

/// What is to be opened, and what must be found there.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'a> {
    /// The store's file. Beside it lie `…-wal` and `…-shm`, which are part of it, and `….lock`, which stays.
    pub path: &'a Path,
    /// The number in the file's header that says whose store it is. Not zero.
    pub application_id: i32,
    /// The schema's steps in order, each frozen once released. The file's `user_version` counts those it has had.
    pub migrations: &'static [&'static str],
    /// Whether a missing store is made.
    pub create: Create,
    /// The page cache in KiB: half for the writer, the rest shared by the readers.
    pub cache_kib: u32,
    /// How many reads run at the same time; at least one.
    pub readers: usize,
    /// When every page is checked.
    pub check: Check,
}

/// When every page of a store is checked, which takes 0.8 ms for each MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Before it is open: a damaged one is refused.
    Before,
    /// While it is open, for whoever only reads at first. Nothing is written until it is known to be sound, and nothing
    /// may be done with what was read until [`Database::checked`] says so. A schema that needs a step is checked before.
    Beside,
}

/// What to do where no store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Create {
    /// Make one: nobody has promised that there is one.
    WhenAbsent,
    /// Refuse: a store that vanished must not be replaced by an empty one.
    Never,
}

/// An open store. Clones are cheap and share it. When the last one is dropped it ends by itself, without waiting;
/// [`Database::close`] waits.
#[derive(Clone, Debug)]
pub struct Database {
    queue: Arc<Queue>,
    readers: Arc<Readers>,
    place: Arc<Place>,
    checking: Arc<Checking>,
}

/// Why the store did not do it. Each names the state of the store, so that nobody looks for the fault elsewhere.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// Nothing more can be written; reading still works.
    #[error("the disk under the store is full")]
    Full,
    /// The file, or the file system below it, takes no writes.
    #[error("the store is read-only")]
    ReadOnly,
    /// A page or the file itself is not what was written.
    #[error("the store is damaged")]
    Damaged,
    /// The disk answered with an error.
    #[error("the disk under the store reports errors")]
    Failing,
    /// The file is in its place, and its log or its lock is not: what the next opening would find lacks what was done
    /// last. [`Database::write_back`] writes all of it into the file.
    #[error("the store's log or its lock was removed")]
    LogRemoved,
    /// Too much is waiting, or another program holds the file; later it may work. Nothing was changed.
    #[error("the store is busy")]
    Busy,
    /// The file was removed while it was open. What was acknowledged before can still be read, and nowhere else;
    /// writing works again once the very same file lies there again.
    #[error("the store's file was removed")]
    Removed,
    /// Another file lies in its place; what is open is not what the next opening would find.
    #[error("another file lies in the place of the store's")]
    Replaced,
    /// Another file system lies at its folder than when it was opened; that one is still there for this process alone.
    #[error("the file system of the store is not mounted at its place any more")]
    Unmounted,
    /// The store was closed. Nothing was changed.
    #[error("the store is closed")]
    Closed,
    /// The statement itself failed, for example by a constraint. Its change was rolled back, alone.
    #[error("the store refused the statement")]
    Sql(#[source] rusqlite::Error),
}

/// Changes that may wait. A group commits in about a millisecond and holds 64, so this many are some tens of
/// milliseconds; whoever finds the queue full should rather hear it than wait behind more.
const QUEUE: usize = 1024;

/// How long a caller waits for a place in the queue or for a free reader.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether the store at `path` was left open by a process that ended, and its log was removed or emptied since. SQLite opens such
/// a store as it was some time before, without a word; whoever made promises since must not.
#[must_use]
pub fn log_is_gone(path: &Path) -> bool {
    lock::log_is_gone(path)
}

/// Nobody opens the store at `path` while what this answers is held, so that its files can be read as they lie; nothing is
/// written for it. None where somebody has it open. One that nobody has ever opened has no lock, which is an error.
pub fn keep_unopened(path: &Path) -> std::io::Result<Option<Unopened>> {
    lock::keep_unopened(path)
}

impl Database {
    /// Open a store, bring its schema up to date, and start its writer. It blocks for as long as the check of the whole
    /// file takes (55 ms for 70 MB were measured) unless that is left to a thread beside ([`Check::Beside`]), so a daemon does
    /// it before its tree is up, or on a blocking thread.
    pub fn open(opening: Opening<'_>) -> Result<Self, OpenError> {
        Self::open_with(opening, QUEUE, PATIENCE)
    }

    fn open_with(opening: Opening<'_>, queue: usize, patience: Duration) -> Result<Self, OpenError> {
        let cannot = |error| OpenError::of_file(opening.path, error);
        let opened = open::open(&opening)?;
        let place = Arc::new(Place::of(opening.path).map_err(cannot)?);
        let checking = Arc::clone(&opened.checking);
        let queue = writer::start(opened, Arc::clone(&place), queue, patience).map_err(cannot)?;
        let readers = Readers::open(&opening, Arc::clone(&place), patience).inspect_err(|_| queue.close())?;
        Ok(Self { queue: Arc::new(queue), readers: Arc::new(readers), place, checking })
    }

    /// Queue one change and wait until it is on the disk. An `Err` out of `change` rolls it back, alone; a panic does
    /// too, and goes on in the caller. If the caller stops waiting, a change that is queued is still made.
    pub async fn write<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, DatabaseError> {
        let (answer, answered) = tokio::sync::oneshot::channel();
        let place = Arc::clone(&self.place);
        let answer = move |outcome: Outcome<T>| drop(answer.send(outcome.named(&place)));
        self.queue.push(writer::change(Durability::Synced, change, answer)).await?;
        answered.await.unwrap_or(Outcome::Failed(DatabaseError::Closed)).into_result()
    }

    /// The same for a thread of one's own; never call it on a runtime's worker.
    pub fn write_blocking<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, DatabaseError> {
        self.queue_blocking(Durability::Synced, change)
    }

    /// The same for what nobody misses: it is answered before it is on the disk, and a power cut may take it back, with
    /// nothing before it. The end of the store brings it there.
    pub fn write_unsynced_blocking<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, DatabaseError> {
        self.queue_blocking(Durability::Unsynced, change)
    }

    fn queue_blocking<T: Send + 'static>(
        &self,
        durability: Durability,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, DatabaseError> {
        let (answer, answered) = std::sync::mpsc::sync_channel(1);
        let place = Arc::clone(&self.place);
        let answer = move |outcome: Outcome<T>| drop(answer.send(outcome.named(&place)));
        self.queue.push_blocking(writer::change(durability, change, answer))?;
        answered.recv().unwrap_or(Outcome::Failed(DatabaseError::Closed)).into_result()
    }

    /// Read on a connection that cannot write. It sees every change that was acknowledged before it began. Keep it
    /// short: an open read holds back the checkpoint.
    pub async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, DatabaseError> {
        let (readers, place) = (Arc::clone(&self.readers), Arc::clone(&self.place));
        let read = move || readers.read(look).map_err(|error| place.named(error));
        match tokio::task::spawn_blocking(read).await {
            Ok(result) => result,
            Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
            // The runtime is going down.
            Err(_) => Err(DatabaseError::Closed),
        }
    }

    /// The same for a thread of one's own; never call it on a runtime's worker.
    pub fn read_blocking<T>(
        &self,
        look: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, DatabaseError> {
        self.named(self.readers.read(look))
    }

    /// It asks the disk, which may take its time while that fails: on the writer's thread or one of the caller's own.
    fn named<T>(&self, result: Result<T, DatabaseError>) -> Result<T, DatabaseError> {
        result.map_err(|error| self.place.named(error))
    }

    /// Whether the files still lie where they were opened: [`DatabaseError::Removed`], [`DatabaseError::Replaced`],
    /// [`DatabaseError::LogRemoved`] or [`DatabaseError::Unmounted`] if not. Every change asks before and after, so that none is acknowledged that nobody could find again.
    pub fn in_place(&self) -> Result<(), DatabaseError> {
        Ok(self.place.check()?)
    }

    /// Whether the store is sound; blocks until that is known, so never on a runtime's worker. Each who asks hears the
    /// same.
    pub fn checked(&self) -> Result<(), OpenError> {
        self.checking.wait()
    }

    /// The same, as the answer to a change.
    pub fn sound(&self) -> Result<(), DatabaseError> {
        self.checking.wait().map_err(|wrong| checking::refused(&wrong))
    }

    /// Write a whole copy of what is stored to `path`, where nothing or an empty file may be; also when the store's own
    /// file was removed. It is not synced. Never call it on a runtime's worker.
    pub fn copy_to(&self, path: &Path) -> Result<(), DatabaseError> {
        self.named(
            self.readers
                .alone(|connection| connection.execute("VACUUM INTO ?1", [path.to_string_lossy()]).map(drop)),
        )
    }

    /// Write the log back into the file and stay open; it blocks until then. After the log was removed this is what makes
    /// the file whole again, so nobody closes the store before it has worked: what is open is the only copy.
    /// [`DatabaseError::Busy`] where a reader or another program held it up.
    pub fn write_back(&self) -> Result<(), DatabaseError> {
        let (answer, answered) = std::sync::mpsc::sync_channel(1);
        self.queue.push_blocking(Task::WriteBack(answer))?;
        self.named(answered.recv().map_err(|_| DatabaseError::Closed)?)
    }

    /// Make the changes that are queued, write the log back into the file, end the writer, and give the lock free; it
    /// blocks until then. Other clones get [`DatabaseError::Closed`] from now on.
    pub fn close(self) {
        self.readers.close();
        self.queue.close();
    }
}

impl From<rusqlite::Error> for DatabaseError {
    fn from(error: rusqlite::Error) -> Self {
        // SQLite names the disk's own errors, except where its shared memory finds no room.
        let without_room = error
            .sqlite_error()
            .is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE);
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::SystemIoFailure) if without_room => Self::Full,
            Some(ErrorCode::ReadOnly) => Self::ReadOnly,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged,
            Some(ErrorCode::SystemIoFailure) => Self::Failing,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            _ => Self::Sql(error),
        }
    }
}
