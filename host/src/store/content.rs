//! Content by digest, in rows of at most one piece. It counts as here only once all of it is and its SHA-256 is the one
//! it is named by (S-11); what is applied comes only from here.

use std::collections::HashSet;

use sha2::{Digest as _, Sha256};
use tenure_actors::database::DatabaseError;
use tenure_actors::database::rusqlite::{self, OptionalExtension, Transaction, params};
use tenure_protocol::content::{PIECE, Piece};
use tenure_protocol::id::Digest;
use tenure_protocol::resource::Content;

use super::{Store, UNTIDY, signed, whole};
use crate::steps;

/// Why a piece was not taken. What was kept of that content before stays, unless it is said otherwise.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// It does not continue what is here; ask from `expected` on.
    #[error("a piece of {sha256} begins at {found}, and {expected} comes next")]
    OutOfOrder {
        /// Which content.
        sha256: Digest,
        /// Where the next piece begins.
        expected: u64,
        /// Where this one does.
        found: u64,
    },
    /// It is empty, longer than a piece may be, goes past the end, or names another size than the pieces before.
    #[error("a piece of {sha256} at {offset} has {length} bytes, which does not fit its {size}")]
    Length {
        /// Which content.
        sha256: Digest,
        /// Where it begins.
        offset: u64,
        /// How long it is.
        length: usize,
        /// How long the content is.
        size: u64,
    },
    /// All is here and its digest is another: it was dropped, whole.
    #[error("the content that was sent as {sha256} has another digest")]
    Digest {
        /// What it was named by.
        sha256: Digest,
    },
    /// The store did not keep it.
    #[error("the content could not be kept")]
    Store(#[from] DatabaseError),
}

/// Content, read row by row.
#[derive(Debug)]
pub struct Reader<'a> {
    store: &'a Store,
    id: i64,
    size: u64,
    next: u64,
    /// The first piece, which for most contents is all there is: found in the same look.
    first: Option<Vec<u8>>,
}

impl Store {
    /// Those that are not here whole, each with the byte from which on it is missing. What is begun is kept.
    pub fn missing(&self, contents: &[Content]) -> Result<Vec<(Content, u64)>, DatabaseError> {
        self.database.read_blocking(|c| {
            let mut query = c.prepare_cached("SELECT have, complete, size FROM content WHERE sha256 = ?1")?;
            let mut missing = Vec::new();
            for content in contents {
                let found: Option<(u64, bool, u64)> = query
                    .query_row([content.sha256.as_bytes()], |row| {
                        Ok((whole(row, 0)?, row.get(1)?, whole(row, 2)?))
                    })
                    .optional()?;
                match found {
                    Some((_, true, _)) => {}
                    Some((have, false, size)) if size == content.size => missing.push((*content, have)),
                    // Begun under another size: that was wrong, or this is; it begins anew.
                    Some(_) | None => missing.push((*content, 0)),
                }
            }
            Ok(missing)
        })
    }

    /// Keeps a piece; says whether its content is now here whole.
    pub fn put_piece(&self, piece: Piece) -> Result<bool, ContentError> {
        self.put_pieces(vec![piece])
    }

    /// Keeps pieces in one transaction, up to the first that is refused; says whether the content of the last is now
    /// here whole. A piece of something that is here whole is taken and changes nothing.
    pub fn put_pieces(&self, pieces: Vec<Piece>) -> Result<bool, ContentError> {
        self.write(steps::CONTENT_KEPT, move |t| {
            let mut complete = false;
            for piece in &pieces {
                match put(t, piece)? {
                    Ok(whole) => complete = whole,
                    Err(refused) => return Ok(Err(refused)),
                }
            }
            Ok(Ok(complete))
        })?
    }

    /// A reader of some content; none when it is not here whole.
    pub fn reader(&self, sha256: Digest) -> Result<Option<Reader<'_>>, DatabaseError> {
        let found = self.database.read_blocking(|c| {
            let sql =
                "SELECT id, size, bytes FROM content LEFT JOIN piece ON piece.content = id AND offset = 0
                WHERE sha256 = ?1 AND complete";
            c.prepare_cached(sql)?
                .query_row([sha256.as_bytes()], |row| Ok((row.get(0)?, whole(row, 1)?, row.get(2)?)))
                .optional()
        })?;
        Ok(found.map(|(id, size, first)| Reader { store: self, id, size, next: 0, first }))
    }

    /// Drops every content but these; nothing is untidy then.
    pub fn forget_contents_except(&self, keep: &[Digest]) -> Result<(), DatabaseError> {
        let keep: HashSet<Digest> = keep.iter().copied().collect();
        self.write(steps::CONTENT_DROPPED, move |t| {
            let all: Vec<(i64, [u8; 32])> = t
                .prepare_cached("SELECT id, sha256 FROM content")?
                .query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<rusqlite::Result<_>>()?;
            let mut delete = t.prepare_cached("DELETE FROM content WHERE id = ?1")?;
            for (id, _) in all.iter().filter(|(_, sha256)| !keep.contains(&Digest::from_bytes(*sha256))) {
                delete.execute([id])?;
            }
            t.prepare_cached("DELETE FROM fact WHERE name = ?1")?.execute([UNTIDY]).map(drop)
        })
    }
}

impl Reader<'_> {
    /// How many bytes it has in all.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The next bytes; none at the end.
    pub fn next_piece(&mut self) -> Result<Option<Vec<u8>>, DatabaseError> {
        if self.next >= self.size {
            return Ok(None);
        }
        let (id, offset) = (self.id, self.next);
        let read = || {
            self.store.database.read_blocking(|c| {
                let sql = "SELECT bytes FROM piece WHERE content = ?1 AND offset = ?2";
                c.prepare_cached(sql)?.query_row(params![id, signed(offset)], |row| row.get(0))
            })
        };
        let bytes: Vec<u8> = match self.first.take() {
            Some(first) => first,
            None => read()?,
        };
        self.next = self.next.saturating_add(length(&bytes));
        Ok(Some(bytes))
    }

    /// All the rest, for content that is known to be small.
    pub fn read_all(mut self) -> Result<Vec<u8>, DatabaseError> {
        let mut all = Vec::new();
        while let Some(piece) = self.next_piece()? {
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

struct Begun {
    id: i64,
    size: u64,
    have: u64,
    complete: bool,
}

/// The inner error is an answer that stands; the outer one rolls back.
fn put(t: &Transaction<'_>, piece: &Piece) -> rusqlite::Result<Result<bool, ContentError>> {
    let sha256 = piece.sha256;
    let mut begun = begun_of(t, piece)?;
    if begun.complete {
        return Ok(Ok(true));
    }
    if begun.size != piece.size && piece.offset == 0 {
        t.prepare_cached("DELETE FROM content WHERE id = ?1")?.execute([begun.id])?;
        begun = begun_of(t, piece)?;
    }
    if piece.offset != begun.have {
        return Ok(Err(ContentError::OutOfOrder { sha256, expected: begun.have, found: piece.offset }));
    }
    let length = length(&piece.bytes);
    let end = piece.offset.saturating_add(length);
    let empty = length == 0 && piece.size > 0;
    if piece.size != begun.size || end > begun.size || length > u64::from(PIECE) || empty {
        let (offset, length, size) = (piece.offset, piece.bytes.len(), begun.size);
        return Ok(Err(ContentError::Length { sha256, offset, length, size }));
    }
    if length > 0 {
        t.prepare_cached("INSERT INTO piece (content, offset, bytes) VALUES (?1, ?2, ?3)")?
            .execute(params![begun.id, signed(piece.offset), piece.bytes])?;
    }
    if end < begun.size {
        t.prepare_cached("UPDATE content SET have = ?2 WHERE id = ?1")?
            .execute(params![begun.id, signed(end)])?;
        return Ok(Ok(false));
    }
    let found = if piece.offset == 0 { Digest::of(&piece.bytes) } else { digest(t, begun.id)? };
    if found != sha256 {
        t.prepare_cached("DELETE FROM content WHERE id = ?1")?.execute([begun.id])?;
        return Ok(Err(ContentError::Digest { sha256 }));
    }
    t.prepare_cached("UPDATE content SET have = ?2, complete = 1 WHERE id = ?1")?
        .execute(params![begun.id, signed(end)])?;
    Ok(Ok(true))
}

fn begun_of(t: &Transaction<'_>, piece: &Piece) -> rusqlite::Result<Begun> {
    let sql = "SELECT id, size, have, complete FROM content WHERE sha256 = ?1";
    let found = t
        .prepare_cached(sql)?
        .query_row([piece.sha256.as_bytes()], |row| {
            Ok(Begun { id: row.get(0)?, size: whole(row, 1)?, have: whole(row, 2)?, complete: row.get(3)? })
        })
        .optional()?;
    if let Some(found) = found {
        return Ok(found);
    }
    t.prepare_cached("INSERT INTO content (sha256, size, have, complete) VALUES (?1, ?2, 0, 0)")?
        .execute(params![piece.sha256.as_bytes(), signed(piece.size)])?;
    Ok(Begun { id: t.last_insert_rowid(), size: piece.size, have: 0, complete: false })
}

fn digest(t: &Transaction<'_>, content: i64) -> rusqlite::Result<Digest> {
    let mut hasher = Sha256::new();
    let mut query = t.prepare_cached("SELECT bytes FROM piece WHERE content = ?1 ORDER BY offset")?;
    let mut rows = query.query([content])?;
    while let Some(row) = rows.next()? {
        hasher.update(row.get_ref(0)?.as_blob()?);
    }
    Ok(Digest::from_bytes(hasher.finalize().into()))
}
