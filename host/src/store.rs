//! The host's store: what it was told, what it owns, what it means to do, what became of it, and what it has not yet
//! told. It answers only after a change is on the disk. It never decides, and it never begins anew unsaid: a damaged
//! store is kept aside and named (H-11). Every call blocks its thread; an actor goes through [`Store::off`].

use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tenure_actors::crash::Step;
use tenure_actors::database::rusqlite::{self, OptionalExtension, params};
use tenure_actors::database::{Database, DatabaseError};
use tenure_protocol::id::{Digest, Millis, Revision, SessionCounter, StoreId};
use tenure_protocol::wire::codec::{decode, encode};

use crate::resource::unit::Memory;
use crate::steps;

mod aside;
mod back;
mod content;
mod look;
mod numbers;
mod open;
mod outcome;
mod record;
mod reserve;
mod schema;
mod spool;
mod transaction;
mod trouble;
mod unread;

pub use back::{LEAST_ROOM, PutBackError};
pub use content::{ContentError, Reader};
pub(crate) use numbers::in_a_row;
pub(crate) use open::lacks_its_log;
pub use open::{OpenStoreError, Opened};
pub use outcome::Remembered;
pub use record::{Intent, Record, State, Wanted};
pub use trouble::{Cure, StoreTrouble};

/// The store. Clones are cheap and share it.
#[derive(Debug, Clone)]
pub struct Store {
    database: Database,
    path: PathBuf,
    id: StoreId,
    passing: Arc<Mutex<()>>,
    /// Which opening of the store this is.
    opening: u64,
    /// The place of the last pass of this process.
    passes: Arc<AtomicU64>,
    /// What this process remembers of units.
    units: Arc<Mutex<Memory>>,
    /// It was opened without its log: what was written last may be gone.
    lacks_log: bool,
    /// It was opened by hand: its numbers stay as they are.
    is_by_hand: bool,
}

/// The declaration the host holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDeclaration {
    /// Its revision.
    pub revision: Revision,
    /// The digest of its bytes.
    pub sha256: Digest,
    /// The bytes themselves.
    pub bytes: Arc<[u8]>,
}

impl Store {
    /// Held by the pass that runs, so that two never overlap.
    pub(crate) fn passing(&self) -> Arc<Mutex<()>> {
        Arc::clone(&self.passing)
    }

    /// What this process remembers of units, from one pass to the next.
    pub(crate) fn units(&self) -> &Mutex<Memory> {
        &self.units
    }

    /// The number of the pass that begins, where the last that was kept has `kept`. While the store takes no writes this
    /// process counts on by itself: two passes of one number would be one to the control plane (O-05). It is above that
    /// of every pass of an earlier process. Passes do not overlap.
    pub(crate) fn next_pass(&self, kept: u64) -> u64 {
        let (next, place) = numbers::next_pass(self.opening, kept, self.passes.load(Ordering::Relaxed));
        self.passes.store(place, Ordering::Relaxed);
        next
    }

    /// Counts on with every pass that begins, in this process.
    pub(crate) fn passes_begun(&self) -> u64 {
        self.passes.load(Ordering::Relaxed)
    }

    /// Which life of the store this is.
    pub const fn store_id(&self) -> StoreId {
        self.id
    }

    /// Runs `work` on a thread that may block, for callers on a runtime. If the caller stops waiting, it is done all
    /// the same.
    pub async fn off<T: Send + 'static, E: From<DatabaseError> + Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let store = self.clone();
        match tokio::task::spawn_blocking(move || work(&store)).await {
            Ok(result) => result,
            Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
            // The runtime is going down.
            Err(_) => Err(DatabaseError::Closed.into()),
        }
    }

    /// Writes everything back, ends the writer and gives the lock free.
    pub fn close(self) {
        let lies_there = self.in_place().is_ok();
        self.database.close();
        if lies_there {
            // What SQLite needed beside it is free again.
            reserve::keep(&self.path);
        }
    }

    /// The identity of this machine, if it has one.
    pub fn identity<T: DeserializeOwned>(&self) -> Result<Option<T>, DatabaseError> {
        self.fact(IDENTITY)
    }

    /// Keeps the identity; it replaces the one before.
    pub fn set_identity<T: Serialize>(&self, identity: &T) -> Result<(), DatabaseError> {
        let bytes = encode(identity);
        self.write(steps::IDENTITY, move |t| set_fact(t, IDENTITY, &bytes))
    }

    /// Gives the identity up. What the host owns and holds stays.
    pub fn clear_identity(&self) -> Result<(), DatabaseError> {
        self.database.write_blocking(|t| {
            t.prepare_cached("DELETE FROM fact WHERE name = ?1")?.execute([IDENTITY]).map(drop)
        })
    }

    /// The number of the session that is about to open. It is on the disk before it is returned, so that no number is
    /// ever used twice.
    pub fn next_session_counter(&self) -> Result<SessionCounter, DatabaseError> {
        self.write(steps::SESSION_NUMBERED, |t| {
            let next = fact::<SessionCounter>(t, SESSIONS)?.unwrap_or_default().next();
            set_fact(t, SESSIONS, &encode(&next))?;
            Ok(next)
        })
    }

    /// The latest time a control plane told us, in an authenticated session (S-18).
    pub fn control_time(&self) -> Result<Option<Millis>, DatabaseError> {
        self.fact(CONTROL_TIME)
    }

    /// Keeps that time, unless a later one is kept.
    pub fn set_control_time(&self, told: Millis) -> Result<(), DatabaseError> {
        self.write(steps::TIME_TOLD, move |t| {
            let later = fact::<Millis>(t, CONTROL_TIME)?.is_none_or(|kept| kept < told);
            if later { set_fact(t, CONTROL_TIME, &encode(&told)) } else { Ok(()) }
        })
    }

    /// A note another room of the host keeps here under a name of its own.
    pub fn note(&self, name: &str) -> Result<Option<Vec<u8>>, DatabaseError> {
        let name = format!("note:{name}");
        self.database.read_blocking(|c| bytes(c, &name))
    }

    /// Keeps a note; it replaces the one of that name.
    pub fn set_note(&self, name: &str, bytes: &[u8]) -> Result<(), DatabaseError> {
        let name = format!("note:{name}");
        let bytes = bytes.to_vec();
        self.database.write_blocking(move |t| set_fact(t, &name, &bytes))
    }

    /// Drops a note, if it is there.
    pub fn clear_note(&self, name: &str) -> Result<(), DatabaseError> {
        let name = format!("note:{name}");
        self.database.write_blocking(move |t| {
            t.prepare_cached("DELETE FROM fact WHERE name = ?1")?.execute([name]).map(drop)
        })
    }

    /// The declaration the host holds, if any.
    pub fn declaration(&self) -> Result<Option<StoredDeclaration>, DatabaseError> {
        self.database.read_blocking(|c| {
            let sql = "SELECT revision, sha256, bytes FROM declaration";
            c.prepare_cached(sql)?
                .query_row((), |row| {
                    Ok(StoredDeclaration {
                        revision: from_row(row.get_ref(0)?.as_blob()?)?,
                        sha256: Digest::from_bytes(row.get(1)?),
                        bytes: Arc::from(row.get_ref(2)?.as_blob()?),
                    })
                })
                .optional()
        })
    }

    /// Which declaration the host holds, if any: its revision and the digest of its bytes.
    pub fn declaration_held(&self) -> Result<Option<(Revision, Digest)>, DatabaseError> {
        self.database.read_blocking(|c| {
            c.prepare_cached("SELECT revision, sha256 FROM declaration")?
                .query_row((), |row| {
                    Ok((from_row(row.get_ref(0)?.as_blob()?)?, Digest::from_bytes(row.get(1)?)))
                })
                .optional()
        })
    }

    /// These parts of the bytes of the declaration that has this digest; none where another one is held. The rest of it
    /// is not read.
    pub fn declaration_parts(
        &self,
        sha256: Digest,
        places: &[Range<usize>],
    ) -> Result<Option<Vec<Vec<u8>>>, DatabaseError> {
        self.database.read_blocking(|c| {
            let mut held = c.prepare_cached("SELECT 1 FROM declaration WHERE sha256 = ?1")?;
            if !held.exists([sha256.as_bytes()])? {
                return Ok(None);
            }
            let bytes = c.blob_open("main", "declaration", "bytes", ONLY_ONE, true)?;
            let part = |place: &Range<usize>| {
                let mut part = vec![0; place.len()];
                bytes.read_at_exact(&mut part, place.start)?;
                Ok(part)
            };
            places.iter().map(part).collect::<rusqlite::Result<_>>().map(Some)
        })
    }

    /// Keeps a declaration; it replaces the one before, whose content may lie here from then on until it is dropped.
    /// Called once it was admitted and all it needs is here.
    pub fn put_declaration(&self, declaration: StoredDeclaration) -> Result<(), DatabaseError> {
        self.write(steps::DECLARATION_KEPT, move |t| {
            look::forget(t)?;
            let sql = "INSERT INTO declaration (only_one, revision, sha256, bytes) VALUES (1, ?1, ?2, ?3)
                ON CONFLICT DO UPDATE SET revision = excluded.revision, sha256 = excluded.sha256, bytes = excluded.bytes";
            t.prepare_cached(sql)?
                .execute(params![
                    encode(&declaration.revision),
                    declaration.sha256.as_bytes(),
                    &*declaration.bytes
                ])?;
            set_fact(t, UNTIDY, &[])
        })
    }

    /// Whether content may lie here that the declaration does not need.
    pub fn is_untidy(&self) -> Result<bool, DatabaseError> {
        self.database.read_blocking(|c| Ok(bytes(c, UNTIDY)?.is_some()))
    }

    fn fact<T: DeserializeOwned>(&self, name: &'static str) -> Result<Option<T>, DatabaseError> {
        self.database.read_blocking(|c| fact(c, name))
    }

    /// One change, on the disk when this returns.
    fn write<T: Send + 'static>(
        &self,
        step: Step,
        change: impl FnOnce(&rusqlite::Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, DatabaseError> {
        step.take(|| self.database.write_blocking(change))
    }
}

/// The row of the one declaration there is.
const ONLY_ONE: i64 = 1;

const STORE_ID: &str = "store_id";
const IDENTITY: &str = "identity";
const SESSIONS: &str = "session_counter";
const CONTROL_TIME: &str = "control_time";
const LAST_PASS: &str = "last_pass";
const UNTIDY: &str = "note:contents_untidy";

fn bytes(connection: &rusqlite::Connection, name: &str) -> rusqlite::Result<Option<Vec<u8>>> {
    connection
        .prepare_cached("SELECT value FROM fact WHERE name = ?1")?
        .query_row([name], |r| r.get(0))
        .optional()
}

fn fact<T: DeserializeOwned>(connection: &rusqlite::Connection, name: &str) -> rusqlite::Result<Option<T>> {
    bytes(connection, name)?.map(|bytes| from_row(&bytes)).transpose()
}

fn set_fact(transaction: &rusqlite::Transaction<'_>, name: &str, value: &[u8]) -> rusqlite::Result<()> {
    let sql =
        "INSERT INTO fact (name, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value";
    transaction.prepare_cached(sql)?.execute(params![name, value]).map(drop)
}

/// A number as SQLite keeps it; sizes and counts here never come near its end.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The same back.
fn whole(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or(0))
}

/// A value out of a row. One that cannot be read is a fault of the store, said as such.
fn from_row<T: DeserializeOwned>(bytes: &[u8]) -> rusqlite::Result<T> {
    decode(bytes).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Blob, Box::new(error))
    })
}

#[cfg(test)]
mod tests;
