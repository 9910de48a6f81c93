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
        self.has_below(MOST, db, bytes)
    }

    /// Whether this many bytes more may come, so that no more than `most` are there.
    pub(super) fn has_below(&self, most: u64, db: &Connection, bytes: usize) -> rusqlite::Result<bool> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let fits = |there: u64| there.saturating_add(bytes) <= most;
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
    use crate::store::upload::MOST_PLANNED;

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
        let plan =
            |bytes: &[u8]| content::lay_aside(&tx, &room, &[vec![bytes.to_vec()]], Millis(1)).unwrap() == 1;
        assert_eq!(put(), Err(NotPut::NoRoom(Digest::of(b"aa"))));
        assert!(!plan(b"planned"));
        tx.execute_batch(
            "INSERT INTO node (id, name, uuid, rental, generation, mode, rejoin, state, invited_at)
             VALUES (1, 'a', x'00', 'own', 1, 'adopted', 'key', 'ready', 1)",
        )
        .unwrap();
        tx.execute("INSERT INTO named_content (node, sha256) VALUES (1, ?1)", [full.as_bytes()]).unwrap();
        assert_eq!(put(), Ok(()));
        assert!(plan(b"planned"));
    }

    // rule: S-22
    #[test]
    fn what_is_only_planned_fills_a_share_of_the_room_and_what_is_there_already_takes_none_of_it() {
        let mut db = Connection::open_in_memory().unwrap();
        db.execute_batch(schema::MIGRATIONS[0]).unwrap();
        let tx = db.transaction().unwrap();
        let there = i64::try_from(MOST_PLANNED).unwrap() - 3;
        tx.execute(
            "INSERT INTO content (sha256, size, received, added_at) VALUES (x'00', ?1, ?1, 1)",
            [there],
        )
        .unwrap();
        let room = Room::default();
        let plan = |contents: &[&[u8]]| {
            let contents: Vec<Vec<u8>> = contents.iter().map(|bytes| bytes.to_vec()).collect();
            content::lay_aside(&tx, &room, &[contents], Millis(1)).unwrap() == 1
        };
        let is_there = |bytes: &[u8]| content::is_whole(&tx, Digest::of(bytes)).unwrap();
        assert!(!plan(&[b"aa", b"bb"]) && !is_there(b"aa"), "all of it or none");
        assert!(plan(&[b"aaa"]) && is_there(b"aaa"));
        for _ in 0..3 {
            assert!(plan(&[b"aaa"]), "what is planned again is there");
        }
        assert!(!plan(&[b"b"]));
        let piece = Piece { sha256: Digest::of(b"cc"), size: 2, offset: 0, bytes: b"cc".to_vec() };
        assert_eq!(content::put(&tx, &room, &[piece], Millis(1)).unwrap(), Ok(()), "uploads go on");
    }
}
