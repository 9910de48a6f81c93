//! The one thread that writes. It takes what is waiting, makes it in one transaction, and answers after the commit:
//! with full sync that is when the change is on the disk. One caller pays for one sync; many share it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::DatabaseError;
use super::checking::refused;
use super::lock::Lock;
use super::open::{OpenError, Opened, keep_log, remove_log};
use super::place::{Moved, Place};
use super::queue::{Queue, Waiting, bounded};

/// The most changes in one commit. 64 keep the wait of each near a millisecond, at over half of the best rate.
const GROUP: usize = 64;

/// One queued change with whoever waits for it.
pub(super) trait Change: Send {
    /// When it is answered.
    fn durability(&self) -> Durability;
    /// Make it, inside its own savepoint, which must be rolled back if it was not made.
    fn apply(&mut self, transaction: &Transaction<'_>) -> Applied;
    /// Its savepoint was lost after all.
    fn lose(&mut self, error: DatabaseError);
    /// Answer: its own failure if it had one, else what became of the group.
    fn settle(self: Box<Self>, group: Result<(), DatabaseError>);
}

/// When a change is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    /// Once it is on the disk.
    Synced,
    /// Once it is made: a power cut may take it back, and nothing before it. The end of the store brings it to the disk, or
    /// before that whatever is written after it and synced. SQLite syncs the head of a new log and its name in either
    /// case, so that the log is no empty one after it.
    Unsynced,
}

/// How the attempt went; what SQLite said is for the neighbours, in case it took the whole transaction along.
pub(super) enum Applied {
    Made,
    Refused(rusqlite::Error),
    Panicked,
}

/// What became of a change.
pub(super) enum Outcome<T> {
    Made(T),
    Failed(DatabaseError),
    Panicked(Box<dyn Any + Send>),
}

/// What the writer is asked for.
pub(super) enum Task {
    /// A change, which shares a commit with others.
    Change(Box<dyn Change>),
    /// That the log is written back into the file, after all that was queued before; and who hears what came of it.
    WriteBack(SyncSender<Result<(), DatabaseError>>),
}

struct Pending<T, F, A> {
    durability: Durability,
    change: Option<F>,
    outcome: Option<Outcome<T>>,
    answer: A,
}

pub(super) fn change<T, F, A>(durability: Durability, change: F, answer: A) -> Task
where
    T: Send + 'static,
    F: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    A: FnOnce(Outcome<T>) + Send + 'static,
{
    Task::Change(Box::new(Pending { durability, change: Some(change), outcome: None, answer }))
}

pub(super) fn start(
    opened: Opened,
    place: Arc<Place>,
    places: usize,
    patience: Duration,
) -> std::io::Result<Queue> {
    let (queue, waiting) = bounded(places, patience);
    let writer = std::thread::Builder::new()
        .name("store-writer".to_owned())
        .spawn(move || run(opened, &place, &waiting))?;
    queue.has_writer(writer);
    Ok(queue)
}

fn run(opened: Opened, place: &Place, waiting: &Waiting) {
    let Opened { mut connection, mut lock, checking } = opened;
    let mut commits = Durability::Synced;
    while let Some(tasks) = waiting.take(GROUP) {
        if let Err(verdict) = checking.wait() {
            refuse(tasks, &verdict);
            continue;
        }
        let (mut rest, mut asked) = (Vec::new(), Vec::new());
        for task in tasks {
            match task {
                Task::Change(change) => rest.push(change),
                Task::WriteBack(answer) => asked.push(answer),
            }
        }
        while !rest.is_empty() {
            rest = group((&mut connection, &mut commits), &mut lock, place, rest);
        }
        for answer in asked {
            // Whoever does not wait any more has no use for the answer.
            drop(answer.send(write_back(&connection, &mut lock).map_err(DatabaseError::from)));
        }
    }
    // What is not sound is left as it lies, its log beside it.
    let closed = checking.wait().map_or(Ok(Closed::AsItLies), |()| close(&connection, &mut lock, place));
    match closed {
        Ok(Closed::WrittenBack) => forget_log(&connection, &mut lock),
        Ok(Closed::AsItLies) => {}
        Err(error) if matches!(place.check(), Err(Moved::Log)) => {
            tracing::error!(
                %error,
                "what was recorded last is lost: the store's log was removed, and could not be written back"
            );
        }
        Err(error) => {
            // Nothing is lost: the log is part of the store, and the next opening reads it.
            tracing::warn!(%error, "the store's log could not be written back");
        }
    }
    // The lock outlives the connection.
    drop(connection);
    drop(lock);
}

fn refuse(tasks: Vec<Task>, verdict: &OpenError) {
    for task in tasks {
        match task {
            Task::Change(change) => change.settle(Err(refused(verdict))),
            // Whoever does not wait any more has no use for the answer.
            Task::WriteBack(answer) => drop(answer.send(Err(refused(verdict)))),
        }
    }
}

/// What the end of a store left.
enum Closed {
    /// Everything is in the file itself.
    WrittenBack,
    /// It lies where it was moved to, or as it was found, its log beside it.
    AsItLies,
}

fn close(connection: &Connection, lock: &mut Lock, place: &Place) -> rusqlite::Result<Closed> {
    // At its end SQLite removes the log by its name, which may be another store's by now.
    keep_log(connection)?;
    match place.check() {
        Err(Moved::Removed | Moved::Replaced | Moved::Unmounted) => return Ok(Closed::AsItLies),
        // What lies under the names of the log now is somebody else's.
        Err(Moved::Log) => write_back(connection, lock)?,
        Ok(()) => {
            write_back(connection, lock)?;
            remove_log(connection)?;
        }
    }
    Ok(Closed::WrittenBack)
}

/// The log goes after the lock says that nothing is in it. Where that cannot be noted it stays: a lock that says that the
/// store is open, and no log, is what somebody's removing it looks like.
fn forget_log(connection: &Connection, lock: &mut Lock) {
    if let Err(error) = lock.closed() {
        tracing::warn!(%error, "the end of the store could not be noted in its lock; its log stays");
        if let Err(error) = keep_log(connection) {
            tracing::warn!(%error, "the store's log could not be kept");
        }
    }
}

/// A checkpoint that a reader or another program held up says so in its row, and not as an error.
fn write_back(connection: &Connection, lock: &mut Lock) -> rusqlite::Result<()> {
    let held_up = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
    let checkpoint = match lock.log_may_be_empty() {
        Ok(()) => "PRAGMA wal_checkpoint(TRUNCATE)",
        // It would look like one that somebody emptied.
        Err(_) => "PRAGMA wal_checkpoint(FULL)",
    };
    match connection.query_row(checkpoint, (), held_up)? {
        0 => Ok(()),
        _ => Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY), None)),
    }
}

/// Make changes in one transaction and settle them. Returned are those that were not tried, because SQLite had ended
/// the transaction by itself (a full disk does that) and took the changes before them along.
fn group(
    (connection, commits): (&mut Connection, &mut Durability),
    lock: &mut Lock,
    place: &Place,
    changes: Vec<Box<dyn Change>>,
) -> Vec<Box<dyn Change>> {
    if let Err(moved) = place.check() {
        settle(changes, || Err(moved.into()));
        return Vec::new();
    }
    let is_synced = changes.iter().any(|change| change.durability() == Durability::Synced);
    let wanted = if is_synced { Durability::Synced } else { Durability::Unsynced };
    if let Err(error) = commit_as(connection, commits, wanted) {
        settle(changes, || Err(copy(&error).into()));
        return Vec::new();
    }
    let transaction = match connection.transaction_with_behavior(TransactionBehavior::Immediate) {
        Ok(transaction) => transaction,
        Err(error) => {
            settle(changes, || Err(copy(&error).into()));
            return Vec::new();
        }
    };
    let mut changes = changes.into_iter();
    let mut tried = Vec::with_capacity(changes.len());
    for mut change in changes.by_ref() {
        let kept = one(&transaction, change.as_mut());
        tried.push(change);
        if let Err(error) = kept {
            drop(transaction);
            settle(tried, || Err(copy(&error).into()));
            return changes.collect();
        }
    }
    match transaction.commit() {
        Err(error) => settle(tried, || Err(copy(&error).into())),
        // What was moved away while it was written nobody will find.
        Ok(()) => {
            if wanted == Durability::Synced {
                lock.log_is_filled(place.path());
            }
            let in_place = place.check();
            settle(tried, || Ok(in_place?));
        }
    }
    Vec::new()
}

/// From here on commits are this durable; `commits`: as they were.
fn commit_as(connection: &Connection, commits: &mut Durability, wanted: Durability) -> rusqlite::Result<()> {
    if *commits != wanted {
        let how = match wanted {
            Durability::Synced => "FULL",
            // The log is synced when it is written back.
            Durability::Unsynced => "NORMAL",
        };
        connection.pragma_update(None, "synchronous", how)?;
        *commits = wanted;
    }
    Ok(())
}

/// One change in its savepoint. An error means that the whole transaction is lost.
fn one(transaction: &Transaction<'_>, change: &mut dyn Change) -> rusqlite::Result<()> {
    let run = |sql| transaction.prepare_cached(sql)?.execute(()).map(drop);
    run("SAVEPOINT one")?;
    let applied = change.apply(transaction);
    match (transaction.is_autocommit(), applied) {
        (true, Applied::Refused(error)) => return Err(error),
        (true, Applied::Made | Applied::Panicked) => return Err(lost()),
        (false, Applied::Refused(_) | Applied::Panicked) => {}
        (false, Applied::Made) => match run("RELEASE one") {
            Ok(()) => return Ok(()),
            Err(error) => change.lose(error.into()),
        },
    }
    run("ROLLBACK TO one")?;
    run("RELEASE one")
}

/// A change ended the transaction by a statement of its own, which no change may do.
fn lost() -> rusqlite::Error {
    let text = "the transaction ended before its commit".to_owned();
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ABORT), Some(text))
}

fn settle(changes: Vec<Box<dyn Change>>, group: impl Fn() -> Result<(), DatabaseError>) {
    changes.into_iter().for_each(|change| change.settle(group()));
}

/// SQLite's errors are not `Clone`, and each change of a group needs one.
fn copy(error: &rusqlite::Error) -> rusqlite::Error {
    match error {
        rusqlite::Error::SqliteFailure(code, text) => rusqlite::Error::SqliteFailure(*code, text.clone()),
        other => rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ERROR),
            Some(other.to_string()),
        ),
    }
}

impl<T, F, A> Change for Pending<T, F, A>
where
    T: Send,
    F: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send,
    A: FnOnce(Outcome<T>) + Send,
{
    fn durability(&self) -> Durability {
        self.durability
    }

    fn apply(&mut self, transaction: &Transaction<'_>) -> Applied {
        // It is tried once; the queue hands it out once.
        let Some(change) = self.change.take() else { return Applied::Panicked };
        let (outcome, applied) = match catch_unwind(AssertUnwindSafe(|| change(transaction))) {
            Ok(Ok(value)) => (Outcome::Made(value), Applied::Made),
            Ok(Err(error)) => {
                let heard = copy(&error);
                (Outcome::Failed(error.into()), Applied::Refused(heard))
            }
            Err(panic) => (Outcome::Panicked(panic), Applied::Panicked),
        };
        self.outcome = Some(outcome);
        applied
    }

    fn lose(&mut self, error: DatabaseError) {
        self.outcome = Some(Outcome::Failed(error));
    }

    fn settle(self: Box<Self>, group: Result<(), DatabaseError>) {
        let outcome = match (self.outcome, group) {
            (Some(Outcome::Made(value)), Ok(())) => Outcome::Made(value),
            (Some(Outcome::Made(_)) | None, Err(error)) => Outcome::Failed(error),
            (None, Ok(())) => Outcome::Failed(DatabaseError::Closed),
            (Some(own), _) => own,
        };
        (self.answer)(outcome);
    }
}

impl<T> Outcome<T> {
    /// A failure under the name of its cause, which asks the disk: called on the writer's own thread.
    pub(super) fn named(self, place: &Place) -> Self {
        match self {
            Self::Failed(error) => Self::Failed(place.named(error)),
            Self::Made(_) | Self::Panicked(_) => self,
        }
    }

    /// A panic goes on in the caller, whose closure it was.
    pub(super) fn into_result(self) -> Result<T, DatabaseError> {
        match self {
            Self::Made(value) => Ok(value),
            Self::Failed(error) => Err(error),
            Self::Panicked(panic) => resume_unwind(panic),
        }
    }
}
