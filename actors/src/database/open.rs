//! Opening a store, step by step, so that each thing that may be wrong has its own name: the lock, the header, the
//! check of every page, the schema. Until the header says that the file is ours, nothing is written to it.

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::checking::{Checking, check, may_be_beside};
use super::header::recognise;
use super::lock::{Lock, beside, folder, take};
use super::obstacle::Obstacle;
use super::{CREATED, Create, DatabaseError, Opening};
use crate::clock::Moment;

/// Why a store was not opened. Nothing was changed in it, save for a migration that is named.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OpenError {
    /// No file, where one was expected.
    #[error("there is no store at {}", path.display())]
    Absent {
        /// Where it was expected.
        path: PathBuf,
    },
    /// A file of no bytes: something emptied it, or made it.
    #[error("the store at {} is an empty file", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Not a SQLite file.
    #[error("the file at {} is not a database", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// A database, but another program's.
    #[error("the database at {} belongs to another program (application id {found})", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// The application id in its header.
        found: i32,
    },
    /// Written by a newer version of this program.
    #[error("the store at {} has schema {found}, and this program knows {known}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The schema it has.
        found: i64,
        /// The newest one this program knows.
        known: usize,
    },
    /// Another process has it open.
    #[error("the store at {} is open in {}", path.display(), holder(*pid))]
    Locked {
        /// The file.
        path: PathBuf,
        /// The holder, if it has signed already.
        pid: Option<u32>,
        /// Since when it holds it.
        since: Option<Moment>,
    },
    /// Some page is not what was written.
    #[error("the store at {} is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first fault that the check found.
        what: String,
    },
    /// It lies where locks do not hold between machines.
    #[error("the store at {} lies on a network file system ({kind})", path.display())]
    OnNetwork {
        /// The file.
        path: PathBuf,
        /// The file system's name.
        kind: &'static str,
    },
    /// A step of the schema failed; it was rolled back, and the steps before it stay.
    #[error("step {number} of the schema of {} failed", path.display())]
    Migration {
        /// The file.
        path: PathBuf,
        /// The step, from 1.
        number: usize,
        /// What SQLite said.
        source: Arc<rusqlite::Error>,
    },
    /// The system or SQLite did not let us.
    #[error("{} cannot be opened", path.display())]
    CannotOpen {
        /// The file.
        path: PathBuf,
        /// What stood in the way.
        why: Obstacle,
        /// What was said.
        source: Arc<dyn Error + Send + Sync>,
    },
}

impl OpenError {
    /// The system did not let us at this file.
    pub(super) fn of_file(path: &Path, error: std::io::Error) -> Self {
        Self::CannotOpen { path: path.to_owned(), why: Obstacle::of(&error), source: Arc::new(error) }
    }
}

/// The writer's connection, and the lock that must outlive it.
pub(super) struct Opened {
    pub(super) connection: Connection,
    pub(super) lock: Lock,
    pub(super) checking: Arc<Checking>,
}

/// Another program (a person with `sqlite3`, a backup) may hold the file for a moment.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

const STATEMENTS: usize = 64;

pub(super) fn open(opening: &Opening<'_>) -> Result<Opened, OpenError> {
    let path = opening.path;
    if opening.create == Create::Never && is_absent(path)? {
        return Err(OpenError::Absent { path: path.to_owned() });
    }
    let mut lock = take(path)?;
    // Only now: another process may have made or moved it while we came here.
    match (is_absent(path)?, opening.create) {
        (false, _) => recognise(opening)?,
        (true, Create::WhenAbsent) => create(opening)?,
        (true, Create::Never) => return Err(OpenError::Absent { path: path.to_owned() }),
    }
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    if connection.is_readonly("main").map_err(|error| sql(path, error))? {
        return Err(cannot(path, DatabaseError::ReadOnly));
    }
    // Closing it leaves every byte as it is: until it was checked, and until the writer knows what it closes.
    keep_log(&connection).map_err(|error| sql(path, error))?;
    let beside = may_be_beside(opening.check, &connection, opening.migrations.len());
    if !beside {
        check(path, &connection)?;
    }
    migrate(opening, &mut connection)?;
    settle(&connection, opening.cache_kib / 2).map_err(|error| sql(path, error))?;
    let checking = Arc::new(if beside { Checking::beside(path)? } else { Checking::done(path) });
    if beside {
        lock.opened_to_look(path);
    } else {
        lock.opened(path);
    }
    Ok(Opened { connection, lock, checking })
}

/// A connection that only reads, for a store that is open already.
pub(super) fn reader(path: &Path, cache_kib: u32) -> Result<Connection, OpenError> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    cache(&connection, cache_kib).and_then(|()| keep_log(&connection)).map_err(|error| sql(path, error))?;
    Ok(connection)
}

fn is_absent(path: &Path) -> Result<bool, OpenError> {
    match std::fs::metadata(path) {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) => Err(file(path, error)),
    }
}

/// Make it under another name and move it into place whole, so that a crash on the way leaves no half of a store.
fn create(opening: &Opening<'_>) -> Result<(), OpenError> {
    let path = opening.path;
    let fresh = beside(path, ".new");
    // Of a store that was moved away or half made: SQLite would read such a log into the new one.
    let logs = ["-wal", "-shm", "-journal"].map(|ending| beside(path, ending));
    for left in [fresh.clone(), beside(&fresh, "-journal")].iter().chain(&logs) {
        match std::fs::remove_file(left) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(file(left, error)),
            Ok(()) | Err(_) => {}
        }
    }
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&fresh)
        .map_err(|error| file(&fresh, error))?;
    let mut connection = connect(&fresh, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let own = |connection: &Connection| {
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "application_id", opening.application_id)
    };
    own(&connection).map_err(|error| sql(path, error))?;
    migrate(opening, &mut connection)?;
    connection.close().map_err(|(_, error)| sql(path, error))?;
    let moved =
        CREATED.take(|| std::fs::rename(&fresh, path)).and_then(|()| File::open(folder(path))?.sync_all());
    moved.map_err(|error| file(path, error))
}

fn connect(path: &Path, access: OpenFlags) -> Result<Connection, OpenError> {
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| sql(path, error))?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(|error| sql(path, error))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // A statement is planned once, and not anew for each value it is given.
    let planned = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true);
    planned.map_err(|error| sql(path, error))?;
    Ok(connection)
}

/// Bring the schema up to date, one step a transaction, each with its number.
fn migrate(opening: &Opening<'_>, connection: &mut Connection) -> Result<(), OpenError> {
    let path = opening.path;
    let known = opening.migrations.len();
    let found: i64 = connection
        .query_row("PRAGMA user_version", (), |row| row.get(0))
        .map_err(|error| sql(path, error))?;
    let done = match usize::try_from(found) {
        Ok(done) if done <= known => done,
        Ok(_) => return Err(OpenError::Newer { path: path.to_owned(), found, known }),
        Err(_) => {
            let what = format!("its schema has the number {found}");
            return Err(OpenError::Damaged { path: path.to_owned(), what });
        }
    };
    // A step may rebuild a table that others refer to; that the references hold is checked before its commit.
    connection.pragma_update(None, "foreign_keys", false).map_err(|error| sql(path, error))?;
    for (step, number) in opening.migrations.iter().zip(1..).skip(done) {
        one_step(connection, step, number).map_err(|source| OpenError::Migration {
            path: path.to_owned(),
            number,
            source: Arc::new(source),
        })?;
    }
    Ok(())
}

fn one_step(connection: &mut Connection, step: &str, number: usize) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(step)?;
    if transaction.prepare("PRAGMA foreign_key_check")?.exists(())? {
        return Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY),
            Some("rows are left that refer to nothing".to_owned()),
        ));
    }
    transaction.pragma_update(None, "user_version", i64::try_from(number).unwrap_or(i64::MAX))?;
    transaction.commit()
}

fn settle(connection: &Connection, cache_kib: u32) -> rusqlite::Result<()> {
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", (), |row| row.get(0))?;
    if mode != "wal" {
        // A file system without shared memory; its guarantees are not the ones we give.
        return Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN),
            Some(format!("write-ahead logging is not possible here (it stays at {mode})")),
        ));
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    cache(connection, cache_kib)?;
    // A first look makes the log and the shared memory, where they are not there yet.
    connection.query_row("SELECT count(*) FROM sqlite_schema", (), |_| Ok(()))
}

fn cache(connection: &Connection, kib: u32) -> rusqlite::Result<()> {
    // Negative means KiB, positive would mean pages.
    connection.pragma_update(None, "cache_size", -i64::from(kib.max(64)))?;
    connection.pragma_update(None, "temp_store", "MEMORY")
}

/// Closing this connection neither writes the log back nor removes it.
pub(super) fn keep_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map(drop)
}

/// Closing this connection removes the log that was written back.
pub(super) fn remove_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map(drop)
}

fn file(path: &Path, error: std::io::Error) -> OpenError {
    OpenError::of_file(path, error)
}

pub(super) fn sql(path: &Path, error: rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    let said = error.to_string();
    match (error.sqlite_error_code(), DatabaseError::from(error)) {
        (Some(rusqlite::ErrorCode::NotADatabase), _) => OpenError::NotADatabase { path },
        (_, DatabaseError::Damaged) => OpenError::Damaged { path, what: said },
        (_, error) => cannot(&path, error),
    }
}

/// SQLite says that it could not, and often not why: then the file system and the files are asked.
fn cannot(path: &Path, error: DatabaseError) -> OpenError {
    let asked = || Obstacle::under(path).or_else(|| refused(path));
    let why = match &error {
        DatabaseError::Full => Obstacle::Full,
        DatabaseError::Busy => Obstacle::Busy,
        DatabaseError::ReadOnly => asked().unwrap_or(Obstacle::Denied),
        DatabaseError::Failing => asked().unwrap_or(Obstacle::Failing),
        DatabaseError::Damaged
        | DatabaseError::Removed
        | DatabaseError::Replaced
        | DatabaseError::Unmounted
        | DatabaseError::LogRemoved
        | DatabaseError::Closed
        | DatabaseError::Sql(_) => asked().unwrap_or(Obstacle::Other),
    };
    let source: Arc<dyn Error + Send + Sync> = match (error, why) {
        (DatabaseError::Failing, Obstacle::Full) => Arc::new(DatabaseError::Full),
        (DatabaseError::Failing, Obstacle::ReadOnly) => Arc::new(DatabaseError::ReadOnly),
        (DatabaseError::Sql(error), _) => Arc::new(error),
        (named, _) => Arc::new(named),
    };
    OpenError::CannotOpen { path: path.to_owned(), why, source }
}

/// What the system says to whoever wants to write to one of the files.
fn refused(path: &Path) -> Option<Obstacle> {
    let parts = ["", "-wal", "-shm"].map(|part| beside(path, part));
    let open = |part: &PathBuf| OpenOptions::new().read(true).write(true).open(part).err();
    parts
        .iter()
        .filter_map(open)
        .find(|error| error.kind() != ErrorKind::NotFound)
        .map(|error| Obstacle::of(&error))
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}
