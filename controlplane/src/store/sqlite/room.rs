//! How much content that no declaration names may lie in the store (S-22). Counting it exactly looks at every content,
//! so that it is done only when what came since the last count could have filled the room.

use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;
use tenure_actors::database::rusqlite;

use super::rows::uint;
use crate::store::upload::MOST_UNNAMED as MOST;

/// What is there at most. The store's one writer asks and tells.
#[derive(Debug)]
pub(super) struct Room {
    at_most: AtomicU64,
}

impl Default for Room {
    /// Nobody has counted yet.
    fn default() -> Self {
        Self { at_most: AtomicU64::new(u64::MAX) }
    }
}

impl Room {
    /// Whether this many bytes more may come.
    pub(super) fn has(&self, db: &Connection, bytes: usize) -> rusqlite::Result<bool> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let fits = |there: u64| there.saturating_add(bytes) <= MOST;
        if fits(self.at_most.load(Ordering::Relaxed)) {
            return Ok(true);
        }
        let there = unnamed(db)?;
        self.at_most.store(there, Ordering::Relaxed);
        Ok(fits(there))
    }

    /// This many bytes came.
    pub(super) fn taken(&self, bytes: usize) {
        let there = self.at_most.load(Ordering::Relaxed);
        self.at_most.store(there.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX)), Ordering::Relaxed);
    }
}

fn unnamed(db: &Connection) -> rusqlite::Result<u64> {
    db.prepare_cached(
        "SELECT coalesce(sum(received), 0) AS bytes FROM content
         WHERE NOT EXISTS (SELECT 1 FROM named_content WHERE named_content.sha256 = content.sha256)",
    )?
    .query_row((), |row| uint(row, "bytes"))
}

#[cfg(test)]
mod tests {
    use rusqlite::params;
    use tenure_protocol::content::Piece;
    use tenure_protocol::id::{Digest, Millis};

    use super::super::{content, schema};
    use super::*;
    use crate::store::NotPut;

    // rule: S-22
    #[test]
    fn content_that_nothing_names_has_a_bound_and_what_a_declaration_names_does_not_count() {
        let mut db = Connection::open_in_memory().unwrap();
        db.execute_batch(schema::MIGRATIONS[0]).unwrap();
        let tx = db.transaction().unwrap();
        let full = Digest::of(b"full");
        tx.execute(
            "INSERT INTO content (sha256, size, received, added_at) VALUES (?1, ?2, ?2, 1)",
            params![full.as_bytes(), i64::try_from(MOST).unwrap()],
        )
        .unwrap();
        let piece = || vec![Piece { sha256: Digest::of(b"aa"), size: 2, offset: 0, bytes: b"aa".to_vec() }];
        let room = Room::default();
        let put = || content::put(&tx, &room, &piece(), Millis(1)).unwrap();
        assert_eq!(put(), Err(NotPut::NoRoom(Digest::of(b"aa"))));
        tx.execute_batch(
            "INSERT INTO node (id, name, uuid, rental, generation, mode, rejoin, state, invited_at)
             VALUES (1, 'a', x'00', 'own', 1, 'adopted', 'key', 'ready', 1)",
        )
        .unwrap();
        tx.execute("INSERT INTO named_content (node, sha256) VALUES (1, ?1)", [full.as_bytes()]).unwrap();
        assert_eq!(put(), Ok(()));
    }
}
