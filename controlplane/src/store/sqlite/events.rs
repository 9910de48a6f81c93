//! Events: a node's, each stored once whatever is replayed (N-11), and our own.

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use tenure_actors::database::rusqlite;
use tenure_protocol::event::{Listed, NodeEvent};
use tenure_protocol::id::{EventId, FencingToken, Millis, NodeId};

use super::rows::{id_of, int, known, uint};
use crate::store::{CLOCK_TRUSTED, Fact, facts};

pub(super) fn of_node(
    tx: &Transaction<'_>,
    node: &NodeId,
    events: &[NodeEvent],
    now: Millis,
) -> rusqlite::Result<Vec<EventId>> {
    let id = known(tx, node)?;
    let stored = store(tx, id, None, events, now)?;
    forget_the_oldest(tx, id)?;
    Ok(stored)
}

fn store(
    tx: &Transaction<'_>,
    id: i64,
    enrolment: Option<FencingToken>,
    events: &[NodeEvent],
    now: Millis,
) -> rusqlite::Result<Vec<EventId>> {
    let enrolment = enrolment.map(|enrolment| int(enrolment.0));
    let mut write = tx.prepare_cached(
        "INSERT OR IGNORE INTO event (id, node, own, kind, key, text, observed_at, received_at, enrolment)
         VALUES (?1, ?2, 0, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    let mut is_there = tx.prepare_cached("SELECT 1 FROM event WHERE node = ?1 AND own = 0 AND id = ?2")?;
    let (mut stored, mut written) = (Vec::with_capacity(events.len()), 0);
    for event in events {
        let NodeEvent { id: own, at, kind, key, text } = facts::kept(event);
        written += write.execute(params![own.as_bytes(), id, kind, key, text, at.0, now.0, enrolment])?;
        if is_there.exists(params![id, event.id.as_bytes()])? {
            stored.push(event.id);
        }
    }
    if written > 0 {
        stamp(tx, now)?;
    }
    Ok(stored)
}

/// Events of an enrolment that holds no longer, with `mark` before their text.
pub(super) fn last_words(
    tx: &Transaction<'_>,
    node: &NodeId,
    enrolment: FencingToken,
    mark: &str,
    events: Vec<NodeEvent>,
    now: Millis,
) -> rusqlite::Result<Option<Vec<EventId>>> {
    let room = room_for_last_words(tx, node, enrolment)?;
    if room == 0 {
        return Ok(None);
    }
    let marked = events.into_iter().take(room).map(|event| facts::marked_as(mark, event));
    store(tx, known(tx, node)?, Some(enrolment), &marked.collect::<Vec<_>>(), now).map(Some)
}

/// How many more last words of this enrolment are taken.
pub(super) fn room_for_last_words(
    db: &Connection,
    node: &NodeId,
    enrolment: FencingToken,
) -> rusqlite::Result<usize> {
    db.prepare_cached(
        "SELECT count(*) FILTER (WHERE enrolment = ?2) AS of_enrolment, count(*) AS of_node FROM event
         WHERE node = ?1 AND enrolment IS NOT NULL",
    )?
    .query_row(params![known(db, node)?, int(enrolment.0)], |row| {
        Ok(facts::room_for_last_words(uint(row, "of_enrolment")?, uint(row, "of_node")?))
    })
}

fn forget_the_oldest(tx: &Transaction<'_>, node: i64) -> rusqlite::Result<()> {
    let newest_too_many = tx
        .prepare_cached(
            "SELECT seq FROM event WHERE node = ?1 AND own = 0 AND enrolment IS NULL
             ORDER BY seq DESC LIMIT 1 OFFSET ?2",
        )?
        .query_row(params![node, facts::MOST_OF_A_NODE], |row| row.get::<_, i64>(0))
        .optional()?;
    let Some(seq) = newest_too_many else { return Ok(()) };
    tx.prepare_cached("DELETE FROM event WHERE node = ?1 AND own = 0 AND enrolment IS NULL AND seq < ?2")?
        .execute([node, seq])?;
    tx.prepare_cached("UPDATE event SET kind = ?2, key = NULL, id = NULL, text = ?3 WHERE seq = ?1")?
        .execute(params![seq, tenure_protocol::event::GAP, facts::gap()])
        .map(drop)
}

/// A fact of our own.
pub(super) fn tell(tx: &Transaction<'_>, fact: &Fact, now: Millis) -> rusqlite::Result<()> {
    write(tx, None, fact, now)
}

/// A fact of our own that is one event however often it is told.
pub(super) fn tell_once(tx: &Transaction<'_>, id: EventId, fact: &Fact, now: Millis) -> rusqlite::Result<()> {
    write(tx, Some(id), fact, now)
}

fn write(tx: &Transaction<'_>, id: Option<EventId>, fact: &Fact, now: Millis) -> rusqlite::Result<()> {
    let node = fact.node.as_ref().map(|node| known(tx, node)).transpose()?;
    let written = tx
        .prepare_cached(
            "INSERT OR IGNORE INTO event (id, node, own, kind, text, observed_at, received_at)
         VALUES (?1, ?2, 1, ?3, ?4, ?5, ?5)",
        )?
        .execute(params![
            id.as_ref().map(|id| id.as_bytes().as_slice()),
            node,
            fact.kind,
            fact.text,
            now.0
        ])?;
    if written == 0 {
        return Ok(());
    }
    if fact.node.is_none() && fact.kind == CLOCK_TRUSTED {
        trust(tx, now)?;
    }
    stamp(tx, now)
}

/// How many facts of our own about this node have an id that begins so.
pub(super) fn told_of(tx: &Transaction<'_>, node: &NodeId, begins: [u8; 8]) -> rusqlite::Result<u64> {
    let id = known(tx, node)?;
    let (mut first, mut last) = ([0x00; 16], [0xff; 16]);
    first[..8].copy_from_slice(&begins);
    last[..8].copy_from_slice(&begins);
    tx.prepare_cached(
        "SELECT count(*) AS told FROM event WHERE node = ?1 AND own = 1 AND id BETWEEN ?2 AND ?3",
    )?
    .query_row(params![id, first, last], |row| uint(row, "told"))
}

/// When the newest of our durable writes was made, by our own clock then: one made while the clock is behind does not
/// hide it, however many there are.
pub(super) fn newest_stamp(db: &Connection) -> rusqlite::Result<Millis> {
    let newest =
        db.prepare_cached("SELECT at FROM newest_write")?.query_row((), |row| row.get(0)).optional()?;
    Ok(Millis(newest.unwrap_or(0)))
}

fn stamp(tx: &Transaction<'_>, now: Millis) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO newest_write (one, at) VALUES (1, ?1) ON CONFLICT (one) DO UPDATE SET at = max(at, excluded.at)",
    )?
    .execute([now.0])
    .map(drop)
}

/// The clock was said to be right: no stamp of ours is of later than now.
fn trust(tx: &Transaction<'_>, now: Millis) -> rusqlite::Result<()> {
    tx.execute("UPDATE newest_write SET at = min(at, ?1)", [now.0])?;
    // Else it would be of use to nobody and never dropped.
    tx.execute("UPDATE content SET added_at = ?1 WHERE added_at > ?1", [now.0]).map(drop)
}

pub(super) fn page(
    db: &Connection,
    after: Option<u64>,
    node: Option<&NodeId>,
    most: u32,
) -> rusqlite::Result<Vec<Listed>> {
    let id = match node {
        Some(node) => match id_of(db, node)? {
            Some(id) => Some(id),
            None => return Ok(Vec::new()),
        },
        None => None,
    };
    let filter = if id.is_some() { "event.node = ?1" } else { "?1 IS NULL" };
    let order = if after.is_some() { "ASC" } else { "DESC" };
    let sql = format!(
        "SELECT event.*, node.name FROM event LEFT JOIN node ON node.id = event.node
         WHERE {filter} AND seq > ?2 ORDER BY seq {order} LIMIT ?3"
    );
    let mut listed = db
        .prepare_cached(&sql)?
        .query_map(params![id, int(after.unwrap_or(0)), most], line)?
        .collect::<rusqlite::Result<Vec<Listed>>>()?;
    listed.sort_unstable_by_key(|event| event.seq);
    Ok(listed)
}

fn line(row: &Row<'_>) -> rusqlite::Result<Listed> {
    let node: Option<String> = row.get("name")?;
    Ok(Listed {
        seq: uint(row, "seq")?,
        node: node.and_then(|name| name.parse().ok()),
        kind: row.get("kind")?,
        key: row.get("key")?,
        text: row.get("text")?,
        observed_at: Millis(row.get("observed_at")?),
        received_at: Millis(row.get("received_at")?),
    })
}
