//! Events that have not been acknowledged. Bounded: past the cap the oldest go, and one event says how many (N-11).

use serde::{Deserialize, Serialize};
use tenure_actors::database::DatabaseError;
use tenure_actors::database::rusqlite::{self, Connection, OptionalExtension as _, Row, Transaction, params};
use tenure_protocol::event::{GAP, NodeEvent, STORE_LOST};
use tenure_protocol::id::{EventId, Millis};
use tenure_protocol::wire::codec::encode;

use super::open::NOTE;
use super::{Store, fact, from_row, set_fact, signed, whole};
use crate::steps;

/// About 3 MiB of store, and more than weeks of a quiet machine away from its control plane.
const MOST_SPOOLED: u64 = 10_000;

impl Store {
    /// Keeps events until they are acknowledged. An event whose id is kept already changes nothing.
    pub fn spool(&self, events: &[NodeEvent]) -> Result<(), DatabaseError> {
        self.spool_at_most(events, MOST_SPOOLED)
    }

    pub(super) fn spool_at_most(&self, events: &[NodeEvent], most: u64) -> Result<(), DatabaseError> {
        let events = events.to_vec();
        if events.is_empty() {
            return Ok(());
        }
        self.database.write_blocking(move |t| keep_at_most(t, &events, most))
    }

    /// The oldest events that are not acknowledged, in the order they happened. One that cannot be read any more is told
    /// as a gap under its own id, and does not hold up the rest (N-11).
    pub fn spooled(&self, limit: u32) -> Result<Vec<NodeEvent>, DatabaseError> {
        self.database.read_blocking(|c| {
            let mut query = c.prepare_cached("SELECT id, body FROM event ORDER BY seq LIMIT ?1")?;
            query.query_map([limit], event)?.collect()
        })
    }

    /// Drops events that the control plane has, and with a loss of the store the note of it. Ids nobody knows are ignored.
    pub fn acknowledge(&self, events: &[EventId]) -> Result<(), DatabaseError> {
        let events = events.to_vec();
        self.write(steps::EVENTS_DROPPED, move |t| {
            let mut delete = t.prepare_cached("DELETE FROM event WHERE id = ?1 RETURNING id, body")?;
            for id in &events {
                let dropped = delete.query_row([id.as_bytes()], event).optional()?;
                if dropped.is_some_and(|event| event.kind == STORE_LOST) {
                    t.execute("DELETE FROM fact WHERE name = ?1", [format!("note:{NOTE}")])?;
                }
            }
            Ok(())
        })
    }

    /// How many events wait.
    pub fn spooled_count(&self) -> Result<u64, DatabaseError> {
        self.database.read_blocking(count)
    }
}

fn event(row: &Row<'_>) -> rusqlite::Result<NodeEvent> {
    let id = EventId::from_bytes(row.get(0)?);
    Ok(from_row(row.get_ref(1)?.as_blob()?).unwrap_or_else(|_| NodeEvent {
        id,
        at: Millis(0),
        kind: GAP.to_owned(),
        key: None,
        text: "an event was kept here that cannot be read any more".to_owned(),
    }))
}

fn count(connection: &Connection) -> rusqlite::Result<u64> {
    connection.prepare_cached("SELECT count(*) FROM event")?.query_row((), |row| whole(row, 0))
}

/// As [`Store::spool`], inside another change.
pub(super) fn keep(t: &Transaction<'_>, events: &[NodeEvent]) -> rusqlite::Result<()> {
    keep_at_most(t, events, MOST_SPOOLED)
}

fn keep_at_most(t: &Transaction<'_>, events: &[NodeEvent], most: u64) -> rusqlite::Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    events.iter().try_for_each(|event| push(t, event))?;
    shorten(t, most)
}

pub(super) fn push(t: &Transaction<'_>, event: &NodeEvent) -> rusqlite::Result<()> {
    let sql = "INSERT OR IGNORE INTO event (id, body) VALUES (?1, ?2)";
    t.prepare_cached(sql)?.execute(params![event.id.as_bytes(), encode(event)]).map(drop)
}

/// The event that stands for those that were dropped.
#[derive(Serialize, Deserialize)]
struct Gap {
    id: EventId,
    dropped: u64,
}

const SPOOL_GAP: &str = "spool_gap";

/// Drops the oldest until `most` are left, the gap event counted. It takes the place of the first that was dropped, and
/// a fresh id whenever its number changes: the control plane may have seen the one before.
fn shorten(t: &Transaction<'_>, most: u64) -> rusqlite::Result<()> {
    if count(t)? <= most {
        return Ok(());
    }
    let earlier = match fact::<Gap>(t, SPOOL_GAP)? {
        Some(gap) if t.execute("DELETE FROM event WHERE id = ?1", [gap.id.as_bytes()])? == 1 => gap.dropped,
        // None, or it was acknowledged: a new gap begins.
        Some(_) | None => 0,
    };
    let drop_now = count(t)?.saturating_sub(most.saturating_sub(1));
    let mut oldest = t.prepare_cached("SELECT id, body, seq FROM event ORDER BY seq LIMIT 1")?;
    let (seq, first): (i64, NodeEvent) = oldest.query_row((), |row| Ok((row.get(2)?, event(row)?)))?;
    let sql = "DELETE FROM event WHERE seq IN (SELECT seq FROM event ORDER BY seq LIMIT ?1)";
    t.prepare_cached(sql)?.execute([signed(drop_now)])?;
    let dropped = earlier.saturating_add(drop_now);
    let gap = NodeEvent {
        id: EventId::random(),
        at: first.at,
        kind: GAP.to_owned(),
        key: None,
        text: format!("{dropped} events were dropped here, since more than {most} waited"),
    };
    t.prepare_cached("INSERT INTO event (seq, id, body) VALUES (?1, ?2, ?3)")?.execute(params![
        seq,
        gap.id.as_bytes(),
        encode(&gap)
    ])?;
    set_fact(t, SPOOL_GAP, &encode(&Gap { id: gap.id, dropped }))
}
