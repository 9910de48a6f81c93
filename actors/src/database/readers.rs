//! A few connections that cannot write, lent out one by one; all but the first are made when they are needed. A reader
//! sees the last commit and never waits for the writer, nor the writer for it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

use super::open::{OpenError, reader};
use super::place::Place;
use super::{DatabaseError, Opening};

#[derive(Debug)]
pub(super) struct Readers {
    /// `None` after closing.
    pool: Mutex<Option<Pool>>,
    returned: Condvar,
    patience: Duration,
    place: Arc<Place>,
    cache_kib: u32,
    most: usize,
}

#[derive(Debug)]
struct Pool {
    idle: Vec<Connection>,
    /// How many there are, also those that are lent or just made.
    made: usize,
}

impl Readers {
    pub(super) fn open(
        opening: &Opening<'_>,
        place: Arc<Place>,
        patience: Duration,
    ) -> Result<Self, OpenError> {
        let most = opening.readers.max(1);
        let cache_kib = opening.cache_kib / 2 / u32::try_from(most).unwrap_or(u32::MAX);
        let pool = Pool { idle: vec![reader(opening.path, cache_kib)?], made: 1 };
        let (pool, returned) = (Mutex::new(Some(pool)), Condvar::new());
        Ok(Self { pool, returned, patience, place, cache_kib, most })
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
        if let Some(connection) = self.one_more() {
            return Ok(connection);
        }
        let empty = |pool: &mut Option<Pool>| pool.as_ref().is_some_and(|pool| pool.idle.is_empty());
        let waited = self.returned.wait_timeout_while(self.lock(), self.patience, empty);
        let (mut pool, _) = waited.unwrap_or_else(PoisonError::into_inner);
        pool.as_mut().ok_or(DatabaseError::Closed)?.idle.pop().ok_or(DatabaseError::Busy)
    }

    /// One more, where all there are are lent and there may be more. Where it cannot be had, one that comes back is waited
    /// for: so too where the store is not in its place any more, and another one may lie there.
    fn one_more(&self) -> Option<Connection> {
        {
            let mut pool = self.lock();
            let pool = pool.as_mut().filter(|pool| pool.idle.is_empty() && pool.made < self.most)?;
            pool.made += 1;
        }
        let in_place = || self.place.check().is_ok();
        let made = in_place().then(|| reader(self.place.path(), self.cache_kib).ok()).flatten();
        let made = made.filter(|_| in_place());
        if made.is_none()
            && let Some(pool) = self.lock().as_mut()
        {
            pool.made -= 1;
        }
        made
    }

    fn lock(&self) -> MutexGuard<'_, Option<Pool>> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
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
        if let (Some(connection), Some(pool)) = (self.connection.take(), self.readers.lock().as_mut()) {
            pool.idle.push(connection);
        }
        self.readers.returned.notify_one();
    }
}
