//! Numbers that never go back: those of passes and of sessions. While the store takes no writes a process counts on by
//! itself, and tells numbers that are on no disk (O-05). So each opening leaves far behind whatever the one before may
//! have told: the control plane takes a lower number for an older word, and a session's for a copied disk.

use tenure_actors::database::rusqlite::{self, Connection, Transaction};
use tenure_protocol::id::SessionCounter;
use tenure_protocol::report::Summary;
use tenure_protocol::wire::codec::encode;

use super::{LAST_PASS, SESSIONS, fact, set_fact};

/// How often this store was opened after it was made.
const OPENINGS: &str = "openings";

/// More passes than a store sees. The opening stands above them in a pass's number, so that how often an outcome came in
/// a row can still be told from two of them; two million openings stay below 2^53, which JSON's readers hold exactly.
const PASSES: u64 = 1 << 32;
/// More sessions than a process opens while the store takes no writes.
const SESSIONS_AHEAD: u64 = 1 << 20;

/// The number of this opening, one above every earlier one that told of a pass.
pub(super) fn opening(connection: &Connection) -> rusqlite::Result<u64> {
    let noted = fact::<u64>(connection, OPENINGS)?.unwrap_or_default();
    let told = fact::<Summary>(connection, LAST_PASS)?.map_or(0, |summary| summary.pass / PASSES);
    Ok(noted.max(told).saturating_add(1))
}

/// Moves both on, for a store that has begun before; answers the number of this opening.
pub(super) fn move_on(t: &Transaction<'_>) -> rusqlite::Result<u64> {
    let opening = opening(t)?;
    set_fact(t, OPENINGS, &encode(&opening))?;
    let SessionCounter(sessions) = fact(t, SESSIONS)?.unwrap_or_default();
    set_fact(t, SESSIONS, &encode(&SessionCounter(sessions.saturating_add(SESSIONS_AHEAD))))?;
    Ok(opening)
}

/// The number of a pass of this opening, and its place among the passes of the store: the one after the last that was
/// kept as `kept`, and after the place `before`.
pub(super) fn next_pass(opening: u64, kept: u64, before: u64) -> (u64, u64) {
    let place = (kept % PASSES).max(before).saturating_add(1);
    (opening.saturating_mul(PASSES).saturating_add(place), place)
}

/// How many passes in a row an outcome came that began with one and still stands in the other.
pub(crate) fn in_a_row(began: u64, pass: u64) -> u32 {
    let count = (pass % PASSES).saturating_sub(began % PASSES).saturating_add(1);
    u32::try_from(count).unwrap_or(u32::MAX)
}
