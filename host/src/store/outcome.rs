//! What became of each resource in the last pass, so that *since when* and *how often* survive a restart.

use std::collections::{HashMap, HashSet};

use tenure_actors::database::DatabaseError;
use tenure_actors::database::rusqlite::{self, Connection, OptionalExtension, Row, Transaction, params};
use tenure_protocol::event::NodeEvent;
use tenure_protocol::id::Millis;
use tenure_protocol::outcome::{Outcome, ResourceOutcome};
use tenure_protocol::report::Summary;
use tenure_protocol::wire::codec::encode;

use super::numbers::in_a_row;
use super::record::forget_intents;
use super::{LAST_PASS, Store, fact, from_row, look, set_fact, signed, spool, whole};
use crate::steps;

/// An outcome with the pass in which it began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// The outcome; its `count` is as of the last pass.
    pub line: ResourceOutcome,
    /// The pass in which it began.
    pub began: u64,
}

impl Store {
    /// What the last pass did, if there was one.
    pub fn last_pass(&self) -> Result<Option<Summary>, DatabaseError> {
        self.fact(LAST_PASS)
    }

    /// The outcomes of the last pass, by key.
    pub fn last_outcomes(&self) -> Result<HashMap<String, Remembered>, DatabaseError> {
        self.database.read_blocking(|c| {
            let pass = passes(c)?;
            let mut query = c.prepare_cached(&select(""))?;
            let lines = query.query_map((), |row| remembered(row, pass).map(|r| (r.line.key.clone(), r)))?;
            lines.collect()
        })
    }

    /// Those of these keys, where there are any.
    pub fn last_outcomes_of(&self, keys: &[String]) -> Result<HashMap<String, Remembered>, DatabaseError> {
        self.database.read_blocking(|c| {
            let pass = passes(c)?;
            let mut query = c.prepare_cached(&select("WHERE key = ?1"))?;
            let mut of =
                |key: &String| query.query_row([key], |row| remembered(row, pass)).optional().transpose();
            let found = keys.iter().filter_map(&mut of);
            found.map(|found| found.map(|found| (found.line.key.clone(), found))).collect()
        })
    }

    /// Up to `limit` outcomes of the last pass whose key comes after `after`, by key.
    pub fn outcomes_page(
        &self,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<ResourceOutcome>, DatabaseError> {
        self.database.read_blocking(|c| {
            let pass = passes(c)?;
            let mut query = c.prepare_cached(&select("WHERE key > ?1 ORDER BY key LIMIT ?2"))?;
            let lines = query
                .query_map(params![after.unwrap_or(""), limit], |row| Ok(remembered(row, pass)?.line))?;
            lines.collect()
        })
    }

    /// Keeps what a pass did: its summary, the outcomes that began with it or changed, which keys it no longer has
    /// anything to say about, and what is to be told. `unsettled`: the keys whose intents
    /// stay, because what was begun has no record yet; none: those of all, for nothing could be recorded.
    pub fn put_pass(
        &self,
        summary: &Summary,
        changed: Vec<Remembered>,
        forgotten: Vec<String>,
        events: Vec<NodeEvent>,
        unsettled: Option<HashSet<String>>,
    ) -> Result<(), DatabaseError> {
        let summary = encode(summary);
        self.write(steps::PASS_KEPT, move |t| {
            look::forget(t)?;
            if let Some(unsettled) = &unsettled {
                forget_intents(t, unsettled)?;
            }
            spool::keep(t, &events)?;
            put(t, &changed)?;
            for key in &forgotten {
                t.prepare_cached("DELETE FROM outcome WHERE key = ?1")?.execute([key])?;
            }
            set_fact(t, LAST_PASS, &summary)
        })
    }

    /// Keeps the summary of a pass that found all as it was: nothing else became of anything.
    pub fn put_quiet_pass(&self, summary: &Summary) -> Result<(), DatabaseError> {
        let (pass, summary) = (summary.pass, encode(summary));
        let put = move |t: &Transaction<'_>| {
            look::stands_after(t, pass)?;
            set_fact(t, LAST_PASS, &summary)
        };
        if self.is_by_hand {
            // Its number goes no further than this, and what it says is seen by looking again.
            steps::PASS_KEPT.take(|| self.database.write_unsynced_blocking(put))
        } else {
            self.write(steps::PASS_KEPT, put)
        }
    }
}

fn select(rest: &str) -> String {
    format!("SELECT key, module, outcome, since, began, code, reason FROM outcome {rest}")
}

fn passes(connection: &Connection) -> rusqlite::Result<u64> {
    Ok(fact::<Summary>(connection, LAST_PASS)?.map_or(0, |summary| summary.pass))
}

fn put(connection: &Connection, changed: &[Remembered]) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO outcome (key, module, outcome, since, began, code, reason)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let mut put = connection.prepare_cached(sql)?;
    changed.iter().try_for_each(|Remembered { line, began }| {
        put.execute(params![
            line.key,
            line.module,
            encode(&line.outcome),
            line.since.0,
            signed(*began),
            line.code,
            line.reason
        ])
        .map(drop)
    })
}

fn remembered(row: &Row<'_>, pass: u64) -> rusqlite::Result<Remembered> {
    let began = whole(row, 4)?;
    let line = ResourceOutcome {
        key: row.get(0)?,
        module: row.get(1)?,
        outcome: from_row::<Outcome>(row.get_ref(2)?.as_blob()?)?,
        since: Millis(row.get(3)?),
        count: in_a_row(began, pass),
        code: row.get(5)?,
        reason: row.get(6)?,
    };
    Ok(Remembered { line, began })
}
