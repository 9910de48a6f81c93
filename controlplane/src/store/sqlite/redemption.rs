//! The one redeeming commit: decided by [`crate::node::redeem::decide`] from rows of this very transaction.

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};
use tenure_actors::database::rusqlite;
use tenure_protocol::id::{EventId, FencingToken, NodeId};
use tenure_protocol::proof::PublicKey;

use super::rows::{blob, bytes, fault, int, known};
use super::{events, identity};
use crate::node::redeem::{Decision, EnrolRefusal, alarm_id, alarms_of, decide};
use crate::store::{Attempt, NodeRecord, Redeemed, facts};

pub(super) fn redeem(tx: &Transaction<'_>, attempt: &Attempt) -> rusqlite::Result<Redeemed> {
    let record = identity::node(tx, &attempt.node)?;
    let invitation = identity::invitation_of(tx, &attempt.node, attempt.token)?;
    let bound: Option<i64> = tx
        .prepare_cached("SELECT node FROM bound_key WHERE key = ?1")?
        .query_row([attempt.key.as_bytes()], |row| row.get(0))
        .optional()?;
    let decision = decide(record.as_ref(), invitation.as_ref(), attempt, bound.is_some());
    match (decision, record) {
        (Decision::Redeem, Some(record)) => Ok(Redeemed::Enrolled(enrol(tx, &record, attempt)?)),
        (Decision::Again, Some(record)) => Ok(Redeemed::Again(record)),
        (Decision::Refuse(refusal), _) => Ok(Redeemed::Refused(refusal)),
        (Decision::Alarm { holder }, _) => {
            alarm(tx, attempt, &holder)?;
            Ok(Redeemed::Refused(EnrolRefusal::Spent { node: attempt.node.clone() }))
        }
        (Decision::Redeem | Decision::Again, None) => Err(fault("a redemption without a record".to_owned())),
    }
}

fn enrol(tx: &Transaction<'_>, before: &NodeRecord, attempt: &Attempt) -> rusqlite::Result<NodeRecord> {
    let id = known(tx, &attempt.node)?;
    let fencing = before.fencing.next();
    tx.execute(
        "UPDATE invitation SET spent_at = ?3, spent_key = ?4, spent_from = ?5 WHERE node = ?1 AND token = ?2",
        params![id, attempt.token.as_bytes(), attempt.now.0, attempt.key.as_bytes(), attempt.from],
    )?;
    tx.execute(
        "INSERT INTO bound_key (key, node, fencing) VALUES (?1, ?2, ?3)",
        params![attempt.key.as_bytes(), id, int(fencing.0)],
    )?;
    tx.execute(
        "UPDATE node SET state = 'ready', fencing = ?2, key = ?3, revoked = 0, enrolled_at = ?4, profile = ?5,
            inventory = ?6, briefing = ?7, store_id = NULL, session_used = 0
         WHERE id = ?1",
        params![
            id,
            int(fencing.0),
            attempt.key.as_bytes(),
            attempt.now.0,
            blob(&attempt.join.profile),
            blob(&attempt.join.inventory),
            blob(&attempt.briefing)
        ],
    )?;
    events::tell(tx, &facts::enrolled(attempt, fencing), attempt.now)?;
    identity::node(tx, &attempt.node)?.ok_or_else(|| fault("the enrolled node is not there".to_owned()))
}

/// The key that this enrolment of the node bound.
pub(super) fn bound_key(
    db: &Connection,
    node: &NodeId,
    fencing: FencingToken,
) -> rusqlite::Result<Option<PublicKey>> {
    db.prepare_cached(
        "SELECT bound_key.key FROM bound_key JOIN node ON node.id = bound_key.node
         WHERE node.name = ?1 AND bound_key.fencing = ?2",
    )?
    .query_row(params![node.as_str(), int(fencing.0)], |row| Ok(PublicKey::from_bytes(bytes(row, "key")?)))
    .optional()
}

fn alarm(tx: &Transaction<'_>, attempt: &Attempt, holder: &str) -> rusqlite::Result<()> {
    if events::told_of(tx, &attempt.node, alarms_of(attempt.token))? >= facts::MOST_ALARMS {
        return Ok(());
    }
    let id = EventId::from_bytes(alarm_id(attempt.token, &attempt.key));
    events::tell_once(tx, id, &facts::presented_again(attempt, holder), attempt.now)
}
