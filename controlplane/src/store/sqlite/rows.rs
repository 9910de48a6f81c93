//! Values of ours in columns, and back. A column that cannot be read back is a fault of the store, said as one.

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tenure_actors::database::rusqlite;
use tenure_protocol::id::{Epoch, EpochId, NodeId};
use tenure_protocol::machine::{Mode, NodeState};
use tenure_protocol::operator::Rejoin;
use tenure_protocol::wire::codec;

/// A number of ours as SQLite's; what does not fit cannot be counted up to.
pub(super) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The column's number, which never is negative.
pub(super) fn uint(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| fault(format!("{column} is {number}")))
}

/// The column's bytes, as many as they must be.
pub(super) fn bytes<const N: usize>(row: &Row<'_>, column: &str) -> rusqlite::Result<[u8; N]> {
    maybe_bytes(row, column)?.ok_or_else(|| fault(format!("{column} is empty")))
}

/// The same where it may be empty.
pub(super) fn maybe_bytes<const N: usize>(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<[u8; N]>> {
    let bytes: Option<Vec<u8>> = row.get(column)?;
    bytes
        .map(|bytes| {
            <[u8; N]>::try_from(bytes.as_slice())
                .map_err(|_| fault(format!("{column} has {} bytes", bytes.len())))
        })
        .transpose()
}

/// A value as bytes.
pub(super) fn blob<T: Serialize>(value: &T) -> Vec<u8> {
    codec::encode(value)
}

/// The value of the column's bytes, where there are any.
pub(super) fn maybe<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<T>> {
    let bytes: Option<Vec<u8>> = row.get(column)?;
    bytes.map(|bytes| codec::decode(&bytes).map_err(|error| fault(format!("{column}: {error}")))).transpose()
}

/// The value of a word, text or name in the column.
pub(super) fn parsed<T: std::str::FromStr>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    text.parse().map_err(|_| fault(format!("{column} holds a value of another form")))
}

pub(super) fn mode(row: &Row<'_>) -> rusqlite::Result<Mode> {
    let text: String = row.get("mode")?;
    [Mode::Adopted, Mode::Converged]
        .into_iter()
        .find(|mode| mode.as_str() == text)
        .ok_or_else(|| fault("mode is unknown".to_owned()))
}

pub(super) fn state(row: &Row<'_>) -> rusqlite::Result<NodeState> {
    let text: String = row.get("state")?;
    [NodeState::Enrolling, NodeState::Ready, NodeState::Lost, NodeState::Retired]
        .into_iter()
        .find(|state| state.as_str() == text)
        .ok_or_else(|| fault("state is unknown".to_owned()))
}

pub(super) const fn rejoin_word(rejoin: Rejoin) -> &'static str {
    match rejoin {
        Rejoin::Key => "key",
        Rejoin::Invitation => "invitation",
    }
}

pub(super) fn rejoin(row: &Row<'_>) -> rusqlite::Result<Rejoin> {
    let text: String = row.get("rejoin")?;
    [Rejoin::Key, Rejoin::Invitation]
        .into_iter()
        .find(|rejoin| rejoin_word(*rejoin) == text)
        .ok_or_else(|| fault("rejoin is unknown".to_owned()))
}

pub(super) fn epoch(row: &Row<'_>) -> rusqlite::Result<Epoch> {
    Ok(Epoch { number: uint(row, "epoch")?, id: EpochId::from_bytes(bytes(row, "epoch_id")?) })
}

/// The row number behind a name.
pub(super) fn id_of(db: &Connection, node: &NodeId) -> rusqlite::Result<Option<i64>> {
    db.prepare_cached("SELECT id FROM node WHERE name = ?1")?
        .query_row([node.as_str()], |row| row.get(0))
        .optional()
}

/// The same where the caller knows that there is one.
pub(super) fn known(db: &Connection, node: &NodeId) -> rusqlite::Result<i64> {
    id_of(db, node)?.ok_or_else(|| fault(format!("node {node} is not there")))
}

pub(super) fn fault(what: String) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, Type::Blob, what.into())
}
