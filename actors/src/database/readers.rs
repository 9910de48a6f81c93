//! A few connections that cannot write, lent out one by one. A reader sees the last commit and never waits for the
//! writer, nor the writer for it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

use super::open::{OpenError, reader};
use super::{DatabaseError, Opening};

#[derive(Debug)]
pub(super) struct Readers {
    /// `None` after closing.
    idle: Mutex<Option<Vec<Connection>>>,
    returned: Condvar,
    patience: Duration,
}

impl Readers {
    pub(super) fn open(opening: &Opening<'_>, patience: Duration) -> Result<Self, OpenError> {
        let count = opening.readers.max(1);
        let each = opening.cache_kib / 2 / u32::try_from(count).unwrap_or(u32::MAX);
        let idle: Result<Vec<_>, _> = (0..count).map(|_| reader(opening.path, each)).collect();
        Ok(Self { idle: Mutex::new(Some(idle?)), returned: Condvar::new(), patience })
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
        let empty = |idle: &mut Option<Vec<Connection>>| idle.as_ref().is_some_and(Vec::is_empty);
        let waited = self.returned.wait_timeout_while(self.lock(), self.patience, empty);
        let (mut idle, _) = waited.unwrap_or_else(PoisonError::into_inner);
        idle.as_mut().ok_or(DatabaseError::Closed)?.pop().ok_or(DatabaseError::Busy)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<Connection>>> {
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
            idle.push(connection);
        }
        self.readers.returned.notify_one();
    }
}
