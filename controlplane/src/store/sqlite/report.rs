//! Reports: state, not history. The newest pass wins, its outcomes are kept by key.

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use tenure_actors::database::rusqlite;
use tenure_protocol::declaration::MOST_RESOURCES;
use tenure_protocol::id::{Digest, Millis, NodeId, StoreId};
use tenure_protocol::outcome::{Outcome, ResourceOutcome};
use tenure_protocol::report::{Digesting, Part, Summary};

use super::rows::{blob, bytes, fault, id_of, int, known, maybe, uint};
use crate::bounds;
use crate::store::reporting::{self, Standing, Verdict, Writing};
use crate::store::{PartStored, ReportRecord};

pub(super) fn newest(db: &Connection, id: i64) -> rusqlite::Result<Option<ReportRecord>> {
    db.prepare_cached("SELECT * FROM report WHERE node = ?1")?.query_row([id], record).optional()
}

fn record(row: &Row<'_>) -> rusqlite::Result<ReportRecord> {
    Ok(ReportRecord {
        summary: maybe(row, "summary")?.ok_or_else(|| fault("a report without a summary".to_owned()))?,
        received_at: Millis(row.get("received_at")?),
        received: uint(row, "received")?,
        whole: row.get("whole")?,
        applied: maybe(row, "applied")?,
    })
}

pub(super) fn outcomes(
    db: &Connection,
    node: &NodeId,
    after: Option<&str>,
    most: u32,
) -> rusqlite::Result<Vec<ResourceOutcome>> {
    let Some(id) = id_of(db, node)? else { return Ok(Vec::new()) };
    db.prepare_cached("SELECT * FROM outcome WHERE node = ?1 AND key > ?2 ORDER BY key LIMIT ?3")?
        .query_map(params![id, after.unwrap_or(""), most], outcome)?
        .collect()
}

fn outcome(row: &Row<'_>) -> rusqlite::Result<ResourceOutcome> {
    let word: String = row.get("outcome")?;
    let outcome = Outcome::ALL
        .into_iter()
        .find(|known| known.as_str() == word)
        .ok_or_else(|| fault("outcome is unknown".to_owned()))?;
    Ok(ResourceOutcome {
        key: row.get("key")?,
        module: row.get("module")?,
        outcome,
        since: Millis(row.get("since")?),
        count: row.get("count")?,
        code: row.get("code")?,
        reason: row.get("reason")?,
    })
}

/// Where the report of a node stands in the store, and how many outcomes are kept with it.
struct Held {
    standing: Standing,
    outcomes: u64,
}

fn held(tx: &Transaction<'_>, id: i64) -> rusqlite::Result<Option<Held>> {
    let read = |row: &Row<'_>| {
        let standing = Standing {
            store_id: StoreId::from_bytes(bytes(row, "store_id")?),
            pass: uint(row, "pass")?,
            received: uint(row, "received")?,
            whole: row.get("whole")?,
            applied: maybe(row, "applied")?,
        };
        Ok(Held { standing, outcomes: uint(row, "outcomes")? })
    };
    tx.prepare_cached("SELECT * FROM report WHERE node = ?1")?.query_row([id], read).optional()
}

/// What writing a part came to.
pub(super) enum Written {
    /// There is no more to it.
    Stored(PartStored),
    /// Our copy is to be compared with the node's, and the pass to be [`settled`]. One part of a node is written at a
    /// time, so that nothing comes between.
    Compare,
}

pub(super) fn part(
    tx: &Transaction<'_>,
    node: &NodeId,
    store_id: StoreId,
    part: &Part,
    now: Millis,
) -> rusqlite::Result<Written> {
    let id = known(tx, node)?;
    let held = held(tx, id)?;
    let verdict = reporting::judge(held.as_ref().map(|held| &held.standing), store_id, part);
    let Writing { begins_anew, standing, stored } = match verdict {
        Verdict::Nothing(stored) => return Ok(Written::Stored(stored)),
        Verdict::Write(writing) => writing,
    };
    let before = if begins_anew {
        tx.execute("DELETE FROM outcome WHERE node = ?1", [id])?;
        0
    } else {
        held.map_or(0, |held| held.outcomes)
    };
    let mut outcomes = write_outcomes(tx, id, part, before)?;
    if part.last && part.full {
        outcomes = outcomes.saturating_sub(drop_older(tx, id, standing.pass)?);
    }
    tx.prepare_cached(
        "INSERT OR REPLACE INTO report (node, store_id, pass, summary, received_at, received, whole, applied, outcomes)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(params![
        id,
        standing.store_id.as_bytes(),
        int(standing.pass),
        blob(&part.summary),
        now.0,
        int(standing.received),
        standing.whole,
        standing.applied.as_ref().map(blob),
        int(outcomes)
    ])?;
    Ok(stored.map_or(Written::Compare, Written::Stored))
}

/// Bounded in bytes and in number (S-22). What the digest covers is kept as it came, and escaped where it is shown; a node
/// whose keys are longer, or more, than any declaration allows never agrees with us, and that is its own affair.
/// Answers how many outcomes there are now, of the `count` before.
fn write_outcomes(tx: &Transaction<'_>, id: i64, part: &Part, mut count: u64) -> rusqlite::Result<u64> {
    let most = u64::try_from(MOST_RESOURCES).unwrap_or(u64::MAX);
    let mut forget = tx.prepare_cached("DELETE FROM outcome WHERE node = ?1 AND key = ?2")?;
    for key in &part.forgotten {
        let gone = forget.execute(params![id, bounds::cut(key, bounds::KEY)])?;
        count = count.saturating_sub(u64::try_from(gone).unwrap_or(0));
    }
    let mut change = tx.prepare_cached(
        "UPDATE outcome SET module = ?3, outcome = ?4, since = ?5, count = ?6, code = ?7, reason = ?8, pass = ?9
         WHERE node = ?1 AND key = ?2",
    )?;
    let mut add = tx.prepare_cached(
        "INSERT INTO outcome (node, key, module, outcome, since, count, code, reason, pass)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    for line in &part.outcomes {
        let (code, reason) = (line.code.as_deref(), line.reason.as_deref());
        let row = params![
            id,
            bounds::cut(&line.key, bounds::KEY),
            bounds::cut(&line.module, bounds::WORD),
            line.outcome.as_str(),
            line.since.0,
            line.count,
            code.map(|code| bounds::cut(code, bounds::WORD)),
            reason.map(|reason| bounds::clause(reason, bounds::CLAUSE)),
            int(part.summary.pass)
        ];
        if change.execute(row)? > 0 {
            continue;
        }
        if count >= most && part.full {
            // What earlier passes left would be dropped at the end of this one anyway.
            count = count.saturating_sub(drop_older(tx, id, part.summary.pass)?);
        }
        if count < most {
            add.execute(row)?;
            count += 1;
        }
    }
    Ok(count)
}

/// What a full report did not mention is gone.
fn drop_older(tx: &Transaction<'_>, id: i64, pass: u64) -> rusqlite::Result<u64> {
    let dropped =
        tx.prepare_cached("DELETE FROM outcome WHERE node = ?1 AND pass <> ?2")?.execute([id, int(pass)])?;
    Ok(u64::try_from(dropped).unwrap_or(u64::MAX))
}

/// The digest of our copy, row by row.
pub(super) fn copy(db: &Connection, node: &NodeId) -> rusqlite::Result<Digest> {
    let id = known(db, node)?;
    let mut read = db.prepare_cached("SELECT * FROM outcome WHERE node = ?1")?;
    let mut rows = read.query([id])?;
    let mut digesting = Digesting::default();
    while let Some(row) = rows.next()? {
        digesting.outcome(&outcome(row)?);
    }
    Ok(digesting.end())
}

/// The pass whose last part came is whole, if it still is the newest.
pub(super) fn settled(
    tx: &Transaction<'_>,
    node: &NodeId,
    store_id: StoreId,
    summary: &Summary,
) -> rusqlite::Result<PartStored> {
    let id = known(tx, node)?;
    let held = held(tx, id)?;
    let standing = held.as_ref().map(|held| &held.standing);
    let settled = reporting::settled(standing, store_id, summary.pass, summary.revision);
    let Some((standing, stored)) = settled else { return Ok(PartStored::Older) };
    tx.prepare_cached("UPDATE report SET whole = 1, applied = ?2 WHERE node = ?1")?
        .execute(params![id, standing.applied.as_ref().map(blob)])?;
    Ok(stored)
}
