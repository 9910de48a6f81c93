//! The check of every page, which an opening may leave to a thread beside it. Until it is known that the store is sound
//! nothing is written into it; what was read before that is only to be acted on after it.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::obstacle::Obstacle;
use super::open::{OpenError, reader, sql};
use super::{Check, DatabaseError};

/// The verdict on a store, or whoever is still finding it.
#[derive(Debug)]
pub(super) struct Checking {
    running: Mutex<Option<JoinHandle<Result<(), OpenError>>>>,
    /// What is wrong, if anything is.
    verdict: OnceLock<Option<OpenError>>,
}

impl Checking {
    /// It was checked and is sound.
    pub(super) fn done() -> Self {
        Self { running: Mutex::new(None), verdict: OnceLock::from(None) }
    }

    /// Starts the check on a connection and a thread of its own. Where no thread can be had it is done at once.
    pub(super) fn beside(path: &Path) -> Result<Self, OpenError> {
        let connection = reader(path, 0)?;
        let place = path.to_owned();
        let thread = std::thread::Builder::new().name("store-check".to_owned());
        match thread.spawn(move || check(&place, &connection)) {
            Ok(running) => Ok(Self { running: Mutex::new(Some(running)), verdict: OnceLock::new() }),
            Err(error) => {
                tracing::debug!(%error, "no thread to check the store on");
                check(path, &reader(path, 0)?)?;
                Ok(Self::done())
            }
        }
    }

    /// Blocks until it is known; each who asks hears the same.
    pub(super) fn wait(&self) -> Result<(), OpenError> {
        self.verdict.get_or_init(|| self.join().err()).as_ref().map_or(Ok(()), |wrong| Err(again(wrong)))
    }

    fn join(&self) -> Result<(), OpenError> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        match running.map(JoinHandle::join) {
            Some(Ok(verdict)) => verdict,
            Some(Err(panicked)) => std::panic::resume_unwind(panicked),
            None => Ok(()),
        }
    }
}

/// The same once more: what lies beneath is kept in its words.
fn again(wrong: &OpenError) -> OpenError {
    match wrong {
        OpenError::Damaged { path, what } => OpenError::Damaged { path: path.clone(), what: what.clone() },
        OpenError::NotADatabase { path } => OpenError::NotADatabase { path: path.clone() },
        OpenError::CannotOpen { path, why, source } => {
            OpenError::CannotOpen { path: path.clone(), why: *why, source: source.to_string().into() }
        }
        // A check says nothing else.
        other => OpenError::Damaged { path: PathBuf::new(), what: other.to_string() },
    }
}

/// What a store that is not known to be sound answers to a change.
pub(super) fn refused(verdict: &OpenError) -> DatabaseError {
    match verdict {
        OpenError::CannotOpen { why: Obstacle::Busy, .. } => DatabaseError::Busy,
        OpenError::CannotOpen { .. } => DatabaseError::Failing,
        _ => DatabaseError::Damaged,
    }
}

/// Whether a store may be opened before it was checked: only one whose schema needs no step, which would write.
pub(super) fn may_be_beside(check: Check, connection: &Connection, steps: usize) -> bool {
    let had = || connection.query_row("PRAGMA user_version", (), |row| row.get::<_, i64>(0));
    check == Check::Beside && had().is_ok_and(|had| usize::try_from(had) == Ok(steps))
}

/// Reads every page, and whether they fit together.
pub(super) fn check(path: &Path, connection: &Connection) -> Result<(), OpenError> {
    let found: rusqlite::Result<String> = connection.query_row("PRAGMA quick_check(1)", (), |row| row.get(0));
    match found {
        Ok(answer) if answer == "ok" => Ok(()),
        Ok(found) => {
            // The first fault stands below a line of stars.
            let fault = found.lines().find(|line| !line.starts_with("***"));
            let what = fault.unwrap_or("its pages do not fit together").to_owned();
            Err(OpenError::Damaged { path: path.to_owned(), what })
        }
        Err(error) => Err(sql(path, error)),
    }
}
