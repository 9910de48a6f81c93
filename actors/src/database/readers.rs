//! A few connections that cannot write, opened when they are needed and lent out one by one. A reader sees the last
//! commit and never waits for the writer, nor the writer for it.

use std::error::Error;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::open::{OpenError, reader};
use super::place::Place;
use super::{DatabaseError, Opening};

#[derive(Debug)]
pub(super) struct Readers {
    /// `None` after closing.
    idle: Mutex<Option<Idle>>,
    returned: Condvar,
    patience: Duration,
    path: PathBuf,
    place: Arc<Place>,
    cache_kib: u32,
}

#[derive(Debug)]
struct Idle {
    connections: Vec<Connection>,
    /// How many more may be opened, when all are lent.
    unopened: usize,
}

impl Readers {
    /// The first is opened now: it reads what is stored also when the store's file was moved away.
    pub(super) fn open(
        opening: &Opening<'_>,
        place: &Arc<Place>,
        patience: Duration,
    ) -> Result<Self, OpenError> {
        let most = opening.readers.max(1);
        let cache_kib = opening.cache_kib / 2 / u32::try_from(most).unwrap_or(u32::MAX);
        let first = reader(opening.path, cache_kib)?;
        let idle = Idle { connections: vec![first], unopened: most - 1 };
        let (path, place) = (opening.path.to_owned(), Arc::clone(place));
        let (idle, returned) = (Mutex::new(Some(idle)), Condvar::new());
        Ok(Self { idle, returned, patience, path, place, cache_kib })
    }

    pub(super) fn read<T>(
        &self,
        look: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, DatabaseError> {
        let lent = Lent { connection: Some(self.borrow()?), readers: self };
        // One transaction, so that two queries of one look see the same state. Dropped, it ends and changed nothing.
        let snapshot = Snapshot::of(lent.connection.as_ref().ok_or(DatabaseError::Closed)?)?;
        Ok(look(snapshot.0)?)
    }

    /// Without a transaction around it, for a statement that makes its own.
    pub(super) fn alone<T>(
        &self,
        act: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, DatabaseError> {
        let lent = Lent { connection: Some(self.borrow()?), readers: self };
        let connection = lent.connection.as_ref().ok_or(DatabaseError::Closed)?;
        Ok(act(connection)?)
    }

    /// No more reads; those that run end by themselves.
    pub(super) fn close(&self) {
        drop(self.lock().take());
        self.returned.notify_all();
    }

    fn borrow(&self) -> Result<Connection, DatabaseError> {
        let until = Instant::now() + self.patience;
        let mut may_open = true;
        loop {
            let none = |idle: &mut Option<Idle>| {
                let has_any = |idle: &Idle| !idle.connections.is_empty() || may_open && idle.unopened > 0;
                idle.as_ref().is_some_and(|idle| !has_any(idle))
            };
            let left = until.saturating_duration_since(Instant::now());
            let waited = self.returned.wait_timeout_while(self.lock(), left, none);
            let (mut guard, _) = waited.unwrap_or_else(PoisonError::into_inner);
            let idle = guard.as_mut().ok_or(DatabaseError::Closed)?;
            if let Some(connection) = idle.connections.pop() {
                return Ok(connection);
            }
            if !may_open || idle.unopened == 0 {
                return Err(DatabaseError::Busy);
            }
            idle.unopened -= 1;
            drop(guard);
            if let Some(connection) = self.one_more() {
                return Ok(connection);
            }
            may_open = false;
            if let Some(idle) = self.lock().as_mut() {
                idle.unopened += 1;
            }
        }
    }

    /// Another connection to the very file that is open. Where none can be had one waits for those there are.
    fn one_more(&self) -> Option<Connection> {
        let none = |error: &dyn Error| tracing::debug!(%error, "no further connection to the store");
        let connection = reader(&self.path, self.cache_kib).inspect_err(|error| none(error)).ok()?;
        // Something else may lie there by now.
        let in_place = self.place.check().map_err(DatabaseError::from);
        in_place.inspect_err(|error| none(error)).ok().map(|()| connection)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A transaction of a connection that cannot write: begun and ended by statements that are kept.
struct Snapshot<'c>(&'c Connection);

impl<'c> Snapshot<'c> {
    fn of(connection: &'c Connection) -> rusqlite::Result<Self> {
        connection.prepare_cached("BEGIN DEFERRED")?.execute(())?;
        Ok(Self(connection))
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        // Some errors end it by themselves.
        let is_over = self.0.is_autocommit();
        let ended = || self.0.prepare_cached("ROLLBACK")?.execute(());
        if !is_over && let Err(error) = ended() {
            tracing::debug!(%error, "a look at the store was not ended");
        }
    }
}

/// Comes back even if the look panics.
struct Lent<'a> {
    connection: Option<Connection>,
    readers: &'a Readers,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let (Some(connection), Some(idle)) = (self.connection.take(), self.readers.lock().as_mut()) {
            idle.connections.push(connection);
        }
        self.readers.returned.notify_one();
    }
}
