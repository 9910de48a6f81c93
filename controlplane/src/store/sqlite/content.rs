//! Content by digest, in pieces as they came. It counts as there once all its bytes are, and are what they are called.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use sha2::{Digest as _, Sha256};
use tenure_actors::database::rusqlite;
use tenure_protocol::content::{MOST_IN_AN_ANSWER, PIECE, Piece, Wanted};
use tenure_protocol::id::{Digest, Millis, NodeId};

use super::room::Room;
use super::rows::{id_of, int, uint};
use crate::store::NotPut;
use crate::store::upload::{self, Held, MOST_PLANNED, Step};

struct Stored {
    id: i64,
    held: Held,
}

fn stored(db: &Connection, sha256: Digest) -> rusqlite::Result<Option<Stored>> {
    let read = |row: &Row<'_>| {
        let held = Held { size: uint(row, "size")?, received: uint(row, "received")? };
        Ok(Stored { id: row.get("id")?, held })
    };
    db.prepare_cached("SELECT id, size, received FROM content WHERE sha256 = ?1")?
        .query_row([sha256.as_bytes()], read)
        .optional()
}

pub(super) fn is_whole(db: &Connection, sha256: Digest) -> rusqlite::Result<bool> {
    Ok(stored(db, sha256)?.is_some_and(|stored| stored.held.is_whole()))
}

pub(super) fn missing(db: &Connection, contents: &[Digest]) -> rusqlite::Result<Vec<Digest>> {
    let mut missing = Vec::new();
    for sha256 in contents {
        if !is_whole(db, *sha256)? {
            missing.push(*sha256);
        }
    }
    Ok(missing)
}

pub(super) fn put(
    tx: &Transaction<'_>,
    room: &Room,
    pieces: &[Piece],
    now: Millis,
) -> rusqlite::Result<Result<(), NotPut>> {
    for piece in pieces {
        if !room.has(tx, piece.bytes.len())? {
            return Ok(Err(NotPut::NoRoom(piece.sha256)));
        }
        if let Err(refused) = put_one(tx, piece, now)? {
            return Ok(Err(refused));
        }
        room.taken(piece.bytes.len());
    }
    Ok(Ok(()))
}

fn put_one(tx: &Transaction<'_>, piece: &Piece, now: Millis) -> rusqlite::Result<Result<(), NotPut>> {
    let there = stored(tx, piece.sha256)?;
    let is_there = || there.as_ref().map_or(Ok(false), |stored| is_piece(tx, stored.id, piece));
    let id = match (upload::step(there.as_ref().map(|stored| stored.held), piece, is_there)?, &there) {
        (Step::There, _) => return Ok(Ok(())),
        (Step::Refused(why), _) => return Ok(Err(why)),
        (Step::Next, Some(stored)) => stored.id,
        (Step::Anew | Step::Next, stored) => {
            stored.as_ref().map_or(Ok(()), |stored| drop_content(tx, stored.id))?;
            begin(tx, piece, now)?
        }
    };
    if !piece.bytes.is_empty() {
        tx.prepare_cached("INSERT INTO piece (content, offset, bytes) VALUES (?1, ?2, ?3)")?
            .execute(params![id, int(piece.offset), piece.bytes])?;
    }
    let end = upload::end(piece);
    tx.prepare_cached("UPDATE content SET received = ?2, added_at = ?3 WHERE id = ?1")?.execute(params![
        id,
        int(end),
        now.0
    ])?;
    if end == piece.size && digest(tx, id)? != piece.sha256 {
        drop_content(tx, id)?;
        return Ok(Err(NotPut::WrongDigest(piece.sha256)));
    }
    Ok(Ok(()))
}

fn begin(tx: &Transaction<'_>, piece: &Piece, now: Millis) -> rusqlite::Result<i64> {
    tx.prepare_cached("INSERT INTO content (sha256, size, received, added_at) VALUES (?1, ?2, 0, ?3)")?
        .execute(params![piece.sha256.as_bytes(), int(piece.size), now.0])?;
    Ok(tx.last_insert_rowid())
}

/// Whether this very piece is there.
fn is_piece(tx: &Transaction<'_>, content: i64, piece: &Piece) -> rusqlite::Result<bool> {
    tx.prepare_cached("SELECT 1 FROM piece WHERE content = ?1 AND offset = ?2 AND bytes = ?3")?
        .exists(params![content, int(piece.offset), piece.bytes])
}

fn digest(db: &Connection, id: i64) -> rusqlite::Result<Digest> {
    let mut hasher = Sha256::new();
    let mut read = db.prepare_cached("SELECT bytes FROM piece WHERE content = ?1 ORDER BY offset")?;
    let mut rows = read.query([id])?;
    while let Some(row) = rows.next()? {
        hasher.update(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?);
    }
    Ok(Digest::from_bytes(hasher.finalize().into()))
}

fn drop_content(tx: &Transaction<'_>, id: i64) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM piece WHERE content = ?1")?.execute([id])?;
    tx.prepare_cached("DELETE FROM content WHERE id = ?1")?.execute([id]).map(drop)
}

/// Whole content of ours, if it is not there yet.
pub(super) fn keep(tx: &Transaction<'_>, bytes: &[u8], now: Millis) -> rusqlite::Result<()> {
    let sha256 = Digest::of(bytes);
    match stored(tx, sha256)? {
        Some(whole) if whole.held.is_whole() => {
            // It is wanted again: an hour from now, not from when it first came.
            return tx
                .prepare_cached("UPDATE content SET added_at = ?2 WHERE id = ?1")?
                .execute(params![whole.id, now.0])
                .map(drop);
        }
        Some(half) => drop_content(tx, half.id)?,
        None => {}
    }
    let size = int(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    tx.prepare_cached("INSERT INTO content (sha256, size, received, added_at) VALUES (?1, ?2, ?2, ?3)")?
        .execute(params![sha256.as_bytes(), size, now.0])?;
    let id = tx.last_insert_rowid();
    let mut write = tx.prepare_cached("INSERT INTO piece (content, offset, bytes) VALUES (?1, ?2, ?3)")?;
    let step = usize::try_from(PIECE).unwrap_or(usize::MAX);
    for (number, piece) in bytes.chunks(step).enumerate() {
        let offset = u64::try_from(number.saturating_mul(step)).unwrap_or(u64::MAX);
        write.execute(params![id, int(offset), piece])?;
    }
    Ok(())
}

/// Sets of contents that are only planned, as many as find room, from the first one on.
pub(super) fn lay_aside(
    tx: &Transaction<'_>,
    room: &Room,
    sets: &[Vec<Vec<u8>>],
    now: Millis,
) -> rusqlite::Result<usize> {
    for (number, contents) in sets.iter().enumerate() {
        if !keep_below(MOST_PLANNED, tx, room, contents, now)? {
            return Ok(number);
        }
    }
    Ok(sets.len())
}

/// Whole contents, all or none: false where more than `most` bytes would lie there that nothing names. What is there
/// already takes no room.
pub(super) fn keep_below(
    most: u64,
    tx: &Transaction<'_>,
    room: &Room,
    contents: &[Vec<u8>],
    now: Millis,
) -> rusqlite::Result<bool> {
    let mut more = 0_usize;
    for bytes in contents {
        if !is_whole(tx, Digest::of(bytes))? {
            more = more.saturating_add(bytes.len());
        }
    }
    if !room.has_below(most, tx, more)? {
        return Ok(false);
    }
    contents.iter().try_for_each(|bytes| keep(tx, bytes, now))?;
    room.taken(more);
    Ok(true)
}

pub(super) fn whole(db: &Connection, sha256: Digest) -> rusqlite::Result<Option<Vec<u8>>> {
    let Some(Stored { id, held }) = stored(db, sha256)?.filter(|stored| stored.held.is_whole()) else {
        return Ok(None);
    };
    let mut bytes = Vec::with_capacity(usize::try_from(held.size).unwrap_or(0));
    let mut read = db.prepare_cached("SELECT bytes FROM piece WHERE content = ?1 ORDER BY offset")?;
    let mut rows = read.query([id])?;
    while let Some(row) = rows.next()? {
        bytes.extend_from_slice(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?);
    }
    Ok(Some(bytes))
}

pub(super) fn pieces(
    db: &Connection,
    wanted: &[Wanted],
    of: Option<&NodeId>,
) -> rusqlite::Result<Result<Vec<Piece>, Digest>> {
    let node = match of.map(|node| id_of(db, node)).transpose()?.flatten() {
        Some(id) => Some(id),
        None if of.is_some() => return Ok(Err(wanted.first().map_or(Digest::of(b""), |w| w.sha256))),
        None => None,
    };
    let mut pieces = Vec::new();
    let mut room = MOST_IN_AN_ANSWER;
    let mut seen: HashMap<Digest, bool> = HashMap::new();
    for want in wanted {
        let allowed = match (node, seen.get(&want.sha256)) {
            (None, _) => true,
            (Some(_), Some(known)) => *known,
            (Some(node), None) => is_named(db, node, want.sha256)?,
        };
        seen.insert(want.sha256, allowed);
        let found = if allowed { piece(db, want, room)? } else { None };
        match found {
            Some(Fits::Yes(piece)) => {
                room -= piece.bytes.len();
                pieces.push(piece);
            }
            Some(Fits::No) => break,
            // What was found before it still is of use; it is named when it comes first.
            None if pieces.is_empty() => return Ok(Err(want.sha256)),
            None => break,
        }
    }
    Ok(Ok(pieces))
}

enum Fits {
    Yes(Piece),
    No,
}

/// The bytes from this place on: to the end of the stored piece they lie in.
fn piece(db: &Connection, want: &Wanted, room: usize) -> rusqlite::Result<Option<Fits>> {
    let Some(Stored { id, held }) = stored(db, want.sha256)?.filter(|stored| stored.held.is_whole()) else {
        return Ok(None);
    };
    let made = |bytes: Vec<u8>| Piece { sha256: want.sha256, size: held.size, offset: want.offset, bytes };
    if want.offset >= held.size {
        // The end of it, and all there is of empty content.
        return Ok((want.offset == held.size).then(|| Fits::Yes(made(Vec::new()))));
    }
    let mut read = db.prepare_cached(
        "SELECT offset, bytes FROM piece WHERE content = ?1 AND offset <= ?2 ORDER BY offset DESC LIMIT 1",
    )?;
    let stored = read
        .query_row(params![id, int(want.offset)], |row| {
            Ok((uint(row, "offset")?, row.get::<_, Vec<u8>>("bytes")?))
        })
        .optional()?;
    Ok(stored.map(|(offset, bytes)| {
        let skip = usize::try_from(want.offset.saturating_sub(offset)).unwrap_or(usize::MAX);
        let bytes = bytes.get(skip..).unwrap_or_default().to_vec();
        if bytes.len() <= room { Fits::Yes(made(bytes)) } else { Fits::No }
    }))
}

fn is_named(db: &Connection, node: i64, sha256: Digest) -> rusqlite::Result<bool> {
    db.prepare_cached("SELECT 1 FROM named_content WHERE node = ?1 AND sha256 = ?2")?
        .exists(params![node, sha256.as_bytes()])
}

pub(super) fn sweep(tx: &Transaction<'_>, before: Millis) -> rusqlite::Result<u64> {
    let unnamed = "SELECT id FROM content WHERE added_at < ?1
         AND NOT EXISTS (SELECT 1 FROM named_content WHERE named_content.sha256 = content.sha256)";
    tx.execute(&format!("DELETE FROM piece WHERE content IN ({unnamed})"), [before.0])?;
    let dropped = tx.execute(&format!("DELETE FROM content WHERE id IN ({unnamed})"), [before.0])?;
    Ok(u64::try_from(dropped).unwrap_or(u64::MAX))
}
