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
    path: PathBuf,
    running: Mutex<Option<JoinHandle<Result<(), OpenError>>>>,
    verdict: OnceLock<Result<(), OpenError>>,
}

impl Checking {
    /// It was checked and is sound.
    pub(super) fn done(path: &Path) -> Self {
        Self { path: path.to_owned(), running: Mutex::new(None), verdict: OnceLock::from(Ok(())) }
    }

    /// Starts the check on a connection and a thread of its own. Where no thread can be had it is done at once.
    pub(super) fn beside(path: &Path) -> Result<Self, OpenError> {
        let connection = reader(path, 0)?;
        let place = path.to_owned();
        let thread = std::thread::Builder::new().name("store-check".to_owned());
        match thread.spawn(move || check(&place, &connection)) {
            Ok(running) => {
                let running = Mutex::new(Some(running));
                Ok(Self { path: path.to_owned(), running, verdict: OnceLock::new() })
            }
            Err(error) => {
                tracing::debug!(%error, "no thread to check the store on");
                check(path, &reader(path, 0)?)?;
                Ok(Self::done(path))
            }
        }
    }

    /// One whose thread panics.
    #[cfg(test)]
    pub(super) fn broken(path: &Path) -> Self {
        let running = std::thread::spawn(|| std::panic::panic_any("the check breaks off"));
        Self { path: path.to_owned(), running: Mutex::new(Some(running)), verdict: OnceLock::new() }
    }

    /// Blocks until it is known; each who asks hears the same.
    pub(super) fn wait(&self) -> Result<(), OpenError> {
        self.verdict.get_or_init(|| self.join()).clone()
    }

    fn join(&self) -> Result<(), OpenError> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        match running.map(JoinHandle::join) {
            Some(Ok(verdict)) => verdict,
            // Nobody knows, and nobody will: that is never soundness.
            Some(Err(_)) | None => {
                let broke_off = std::io::Error::other("the check of it broke off");
                Err(OpenError::of_file(&self.path, broke_off))
            }
        }
    }
}

/// What a store that is not known to be sound answers to a change.
pub(super) fn refused(verdict: &OpenError) -> DatabaseError {
    match verdict {
        OpenError::CannotOpen { why: Obstacle::Busy, .. } => DatabaseError::Busy,
        OpenError::CannotOpen { .. } => DatabaseError::Failing,
        // A check says nothing else.
        _ => DatabaseError::Damaged,
    }
}

/// Whether a store may be opened before it was checked: only one into which opening writes nothing. One whose schema needs
/// a step, or that keeps no log yet, as a copy does, is written to.
pub(super) fn may_be_beside(check: Check, connection: &Connection, steps: usize) -> bool {
    let had = || connection.query_row("PRAGMA user_version", (), |row| row.get::<_, i64>(0));
    let has_steps = || had().is_ok_and(|had| usize::try_from(had) == Ok(steps));
    let mode = || connection.query_row("PRAGMA journal_mode", (), |row| row.get::<_, String>(0));
    check == Check::Beside && has_steps() && mode().is_ok_and(|mode| mode == "wal")
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
