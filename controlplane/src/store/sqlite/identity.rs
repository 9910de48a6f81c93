//! Identities, their tokens and their standing.

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use tenure_actors::database::rusqlite;
use tenure_protocol::id::{
    BootId, ControlPlaneId, Digest, FencingToken, Generation, Millis, NodeId, NodeUuid, SessionCounter,
    StoreId,
};
use tenure_protocol::machine::NodeState;
use tenure_protocol::proof::PublicKey;

use super::events;
use super::rows::{
    blob, bytes, epoch, fault, id_of, int, known, maybe, maybe_bytes, mode, parsed, rejoin, rejoin_word,
    state, uint,
};
use crate::store::{
    Contact, Founding, InvitationRecord, NewNode, NewToken, NodeRecord, SessionFacts, Spent, facts,
};

pub(super) fn founding(db: &Connection) -> rusqlite::Result<Option<Founding>> {
    let read = |row: &Row<'_>| {
        let control_plane_id = ControlPlaneId::from_bytes(bytes(row, "control_plane_id")?);
        Ok(Founding { control_plane_id, epoch: epoch(row)? })
    };
    db.query_row("SELECT * FROM control", (), read).optional()
}

pub(super) fn found(tx: &Transaction<'_>, founding: Founding, now: Millis) -> rusqlite::Result<Founding> {
    tx.execute(
        "INSERT OR IGNORE INTO control (one, control_plane_id, epoch, epoch_id, founded_at)
         VALUES (1, ?1, ?2, ?3, ?4)",
        params![
            founding.control_plane_id.as_bytes(),
            int(founding.epoch.number),
            founding.epoch.id.as_bytes(),
            now.0
        ],
    )?;
    self::founding(tx)?.ok_or_else(|| fault("the control plane has no identity".to_owned()))
}

pub(super) fn node(db: &Connection, node: &NodeId) -> rusqlite::Result<Option<NodeRecord>> {
    db.prepare_cached("SELECT * FROM node WHERE name = ?1")?.query_row([node.as_str()], record).optional()
}

/// The record of a row of the table `node`.
pub(super) fn record(row: &Row<'_>) -> rusqlite::Result<NodeRecord> {
    Ok(NodeRecord {
        node: parsed(row, "name")?,
        uuid: NodeUuid::from_bytes(bytes(row, "uuid")?),
        rental: parsed(row, "rental")?,
        generation: Generation(uint(row, "generation")?),
        mode: mode(row)?,
        rejoin: rejoin(row)?,
        state: state(row)?,
        fencing: FencingToken(uint(row, "fencing")?),
        key: maybe_bytes(row, "key")?.map(PublicKey::from_bytes),
        revoked: row.get("revoked")?,
        enrolled_at: row.get::<_, Option<i64>>("enrolled_at")?.map(Millis),
        retired_at: row.get::<_, Option<i64>>("retired_at")?.map(Millis),
        profile: maybe(row, "profile")?,
        briefing: maybe(row, "briefing")?.unwrap_or_default(),
        last_session: last_session(row)?,
        session_used: row.get("session_used")?,
    })
}

fn last_session(row: &Row<'_>) -> rusqlite::Result<Option<SessionFacts>> {
    let Some(store_id) = maybe_bytes(row, "store_id")? else { return Ok(None) };
    Ok(Some(SessionFacts {
        store_id: StoreId::from_bytes(store_id),
        counter: SessionCounter(uint(row, "session_counter")?),
        boot_id: BootId::from_bytes(bytes(row, "boot_id")?),
        software: row.get("software")?,
    }))
}

pub(super) fn invite(tx: &Transaction<'_>, new: &NewNode, now: Millis) -> rusqlite::Result<bool> {
    if id_of(tx, &new.node)?.is_some() {
        return Ok(false);
    }
    tx.execute(
        "INSERT INTO node (name, uuid, rental, generation, mode, rejoin, state, invited_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'enrolling', ?7)",
        params![
            new.node.as_str(),
            new.uuid.as_bytes(),
            new.rental.as_str(),
            int(new.generation.0),
            new.mode.as_str(),
            rejoin_word(new.rejoin),
            now.0
        ],
    )?;
    mint(tx, tx.last_insert_rowid(), &new.token, now)?;
    events::tell(tx, &facts::invited(new), now)?;
    Ok(true)
}

fn mint(tx: &Transaction<'_>, id: i64, token: &NewToken, now: Millis) -> rusqlite::Result<()> {
    tx.execute(
        "INSERT INTO invitation (node, counter, token, bytes, expires, minted_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![id, int(token.counter), token.token.as_bytes(), token.bytes, token.expires.0, now.0],
    )
    .map(drop)
}

pub(super) fn newest_invitation(
    db: &Connection,
    node: &NodeId,
) -> rusqlite::Result<Option<InvitationRecord>> {
    db.prepare_cached(
        "SELECT node.name, invitation.* FROM invitation JOIN node ON node.id = invitation.node
         WHERE node.name = ?1 ORDER BY counter DESC LIMIT 1",
    )?
    .query_row([node.as_str()], invitation)
    .optional()
}

/// The token of this id, if it was minted for this node.
pub(super) fn invitation_of(
    db: &Connection,
    node: &NodeId,
    token: Digest,
) -> rusqlite::Result<Option<InvitationRecord>> {
    db.prepare_cached(
        "SELECT node.name, invitation.* FROM invitation JOIN node ON node.id = invitation.node
         WHERE token = ?1 AND node.name = ?2",
    )?
    .query_row(params![token.as_bytes(), node.as_str()], invitation)
    .optional()
}

fn invitation(row: &Row<'_>) -> rusqlite::Result<InvitationRecord> {
    let spent = maybe_bytes(row, "spent_key")?
        .map(|key| {
            Ok::<_, rusqlite::Error>(Spent { key: PublicKey::from_bytes(key), from: row.get("spent_from")? })
        })
        .transpose()?;
    Ok(InvitationRecord {
        node: parsed(row, "name")?,
        counter: uint(row, "counter")?,
        token: Digest::from_bytes(bytes(row, "token")?),
        bytes: row.get("bytes")?,
        expires: Millis(row.get("expires")?),
        minted_at: Millis(row.get("minted_at")?),
        spent,
        replaced: row.get("replaced")?,
    })
}

pub(super) fn reinvite(
    tx: &Transaction<'_>,
    node: &NodeId,
    token: Option<&NewToken>,
    revoke: bool,
    now: Millis,
) -> rusqlite::Result<bool> {
    let Some(record) = self::node(tx, node)?.filter(|record| record.state != NodeState::Retired) else {
        return Ok(false);
    };
    let id = known(tx, node)?;
    if let Some(token) = token {
        tx.execute("UPDATE invitation SET replaced = 1 WHERE node = ?1 AND spent_at IS NULL", [id])?;
        mint(tx, id, token, now)?;
        events::tell(tx, &facts::reinvited(node), now)?;
    }
    if revoke && record.key.is_some() && !record.revoked {
        tx.execute("UPDATE node SET revoked = 1, state = 'enrolling' WHERE id = ?1", [id])?;
        events::tell(tx, &facts::revoked(&record), now)?;
    }
    Ok(true)
}

pub(super) fn session_opened(
    tx: &Transaction<'_>,
    node: &NodeId,
    facts: &SessionFacts,
    now: Millis,
) -> rusqlite::Result<()> {
    tx.execute(
        "UPDATE node SET store_id = ?2, session_counter = ?3, boot_id = ?4, software = ?5, session_at = ?6
         WHERE name = ?1",
        params![
            node.as_str(),
            facts.store_id.as_bytes(),
            int(facts.counter.0),
            facts.boot_id.as_bytes(),
            facts.software,
            now.0
        ],
    )
    .map(drop)
}

/// What is still said on a session of the enrolment before says nothing of the one that stands.
pub(super) fn session_used(
    tx: &Transaction<'_>,
    node: &NodeId,
    fencing: FencingToken,
) -> rusqlite::Result<()> {
    let sql = "UPDATE node SET session_used = 1 WHERE name = ?1 AND fencing = ?2";
    tx.execute(sql, params![node.as_str(), int(fencing.0)]).map(drop)
}

pub(super) fn marked(
    tx: &Transaction<'_>,
    node: &NodeId,
    state: NodeState,
    text: &str,
    now: Millis,
) -> rusqlite::Result<bool> {
    let Some((before, fact)) = facts::marked(node, state, text) else { return Ok(false) };
    let moved = tx.execute(
        "UPDATE node SET state = ?2 WHERE name = ?1 AND state = ?3",
        params![node.as_str(), state.as_str(), before.as_str()],
    )?;
    if moved > 0 {
        events::tell(tx, &fact, now)?;
    }
    Ok(moved > 0)
}

pub(super) fn retire(tx: &Transaction<'_>, node: &NodeId, now: Millis) -> rusqlite::Result<Option<bool>> {
    let Some(id) = id_of(tx, node)? else { return Ok(None) };
    let moved = tx.execute(
        "UPDATE node SET state = 'retired', retired_at = ?2 WHERE id = ?1 AND state <> 'retired'",
        params![id, now.0],
    )?;
    if moved > 0 {
        tx.execute("UPDATE invitation SET replaced = 1 WHERE node = ?1 AND spent_at IS NULL", [id])?;
        events::tell(tx, &facts::retired(node), now)?;
    }
    Ok(Some(moved == 0))
}

pub(super) fn contacts(tx: &Transaction<'_>, contacts: &[(NodeId, Contact)]) -> rusqlite::Result<()> {
    let mut write = tx.prepare_cached(
        "INSERT OR REPLACE INTO contact (node, received_at, version, disk)
         SELECT id, ?2, ?3, ?4 FROM node WHERE name = ?1",
    )?;
    for (node, contact) in contacts {
        write.execute(params![node.as_str(), contact.received_at.0, contact.version, blob(&contact.disk)])?;
    }
    Ok(())
}
