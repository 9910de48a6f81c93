//! Nodes in lists, in order of their names, with what the store knows of each.

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use tenure_actors::database::rusqlite;
use tenure_protocol::id::{Millis, NodeId};
use tenure_protocol::machine::NodeState;

use super::rows::{maybe, parsed, state};
use super::{declared, identity, report};
use crate::store::{Contact, NodeSummary};

pub(super) fn names(
    db: &Connection,
    after: Option<&NodeId>,
    most: u32,
) -> rusqlite::Result<Vec<(NodeId, NodeState)>> {
    db.prepare_cached("SELECT name, state FROM node WHERE name > ?1 ORDER BY name LIMIT ?2")?
        .query_map(params![after.map_or("", NodeId::as_str), most], |row| {
            Ok((parsed(row, "name")?, state(row)?))
        })?
        .collect()
}

pub(super) fn summaries(
    db: &Connection,
    after: Option<&NodeId>,
    most: u32,
) -> rusqlite::Result<Vec<NodeSummary>> {
    db.prepare_cached("SELECT * FROM node WHERE name > ?1 ORDER BY name LIMIT ?2")?
        .query_map(params![after.map_or("", NodeId::as_str), most], |row| one(db, row))?
        .collect()
}

pub(super) fn summary(db: &Connection, node: &NodeId) -> rusqlite::Result<Option<NodeSummary>> {
    db.prepare_cached("SELECT * FROM node WHERE name = ?1")?
        .query_row([node.as_str()], |row| one(db, row))
        .optional()
}

fn one(db: &Connection, row: &Row<'_>) -> rusqlite::Result<NodeSummary> {
    let id: i64 = row.get("id")?;
    let record = identity::record(row)?;
    let contact =
        db.prepare_cached("SELECT * FROM contact WHERE node = ?1")?.query_row([id], contact).optional()?;
    let invited_until = db
        .prepare_cached(
            "SELECT expires FROM invitation WHERE node = ?1 AND spent_at IS NULL AND replaced = 0
             ORDER BY counter DESC LIMIT 1",
        )?
        .query_row([id], |row| row.get(0).map(Millis))
        .optional()?;
    Ok(NodeSummary {
        record,
        contact,
        declared: declared::newest_of(db, id)?,
        report: report::newest(db, id)?,
        invited_until,
    })
}

fn contact(row: &Row<'_>) -> rusqlite::Result<Contact> {
    Ok(Contact {
        received_at: Millis(row.get("received_at")?),
        version: row.get("version")?,
        disk: maybe(row, "disk")?.unwrap_or_default(),
    })
}
