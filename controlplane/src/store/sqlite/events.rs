//! Events: a node's, each stored once whatever is replayed (N-11), and our own.

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use tenure_actors::database::rusqlite;
use tenure_protocol::event::{Listed, NodeEvent};
use tenure_protocol::id::{EventId, Millis, NodeId};

use super::rows::{id_of, int, known, uint};
use crate::bounds;
use crate::store::Fact;

pub(super) fn of_node(
    tx: &Transaction<'_>,
    node: &NodeId,
    events: &[NodeEvent],
    now: Millis,
) -> rusqlite::Result<Vec<EventId>> {
    let id = known(tx, node)?;
    let mut write = tx.prepare_cached(
        "INSERT OR IGNORE INTO event (id, node, own, kind, key, text, observed_at, received_at)
         VALUES (?1, ?2, 0, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let mut is_there = tx.prepare_cached("SELECT 1 FROM event WHERE node = ?1 AND own = 0 AND id = ?2")?;
    let mut stored = Vec::with_capacity(events.len());
    for event in events {
        write.execute(params![
            event.id.as_bytes(),
            id,
            bounds::clause(&event.kind, bounds::WORD),
            event.key.as_ref().map(|key| bounds::clause(key, bounds::CLAUSE)),
            bounds::clause(&event.text, bounds::CLAUSE),
            event.at.0,
            now.0
        ])?;
        if is_there.exists(params![id, event.id.as_bytes()])? {
            stored.push(event.id);
        }
    }
    forget_the_oldest(tx, id)?;
    Ok(stored)
}

/// The newest events that a node told are kept; where older ones were, there is a gap that says so.
const MOST_OF_A_NODE: u32 = 10_000;

fn forget_the_oldest(tx: &Transaction<'_>, node: i64) -> rusqlite::Result<()> {
    let newest_too_many = tx
        .prepare_cached(
            "SELECT seq FROM event WHERE node = ?1 AND own = 0 ORDER BY seq DESC LIMIT 1 OFFSET ?2",
        )?
        .query_row(params![node, MOST_OF_A_NODE], |row| row.get::<_, i64>(0))
        .optional()?;
    let Some(seq) = newest_too_many else { return Ok(()) };
    tx.prepare_cached("DELETE FROM event WHERE node = ?1 AND own = 0 AND seq < ?2")?.execute([node, seq])?;
    tx.prepare_cached("UPDATE event SET kind = ?2, key = NULL, id = NULL, text = ?3 WHERE seq = ?1")?
        .execute(params![
            seq,
            tenure_protocol::event::GAP,
            format!("older events of this node are forgotten; the newest {MOST_OF_A_NODE} are kept")
        ])
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
    tx.prepare_cached(
        "INSERT OR IGNORE INTO event (id, node, own, kind, text, observed_at, received_at)
         VALUES (?1, ?2, 1, ?3, ?4, ?5, ?5)",
    )?
    .execute(params![id.as_ref().map(|id| id.as_bytes().as_slice()), node, fact.kind, fact.text, now.0])
    .map(drop)
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

/// When the newest of our durable writes was made, by our own clock then. The newest few are looked at, so that one
/// write made while the clock is behind does not hide it.
pub(super) fn newest_stamp(db: &Connection) -> rusqlite::Result<Millis> {
    db.prepare_cached(
        "SELECT coalesce(max(received_at), 0) FROM (SELECT received_at FROM event ORDER BY seq DESC LIMIT 1000)",
    )?
    .query_row((), |row| row.get(0).map(Millis))
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
