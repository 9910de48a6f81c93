//! Declarations: the newest of a node, and writing new ones, all or none.

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use tenure_actors::database::rusqlite;
use tenure_protocol::id::{Digest, Millis, NodeId, Revision, RevisionNumber};

use super::rows::{bytes, epoch, id_of, int, known, uint};
use super::{content, events, identity};
use crate::store::{DeclaredRecord, NewDeclaration, NotDeclared, facts};

pub(super) fn newest(db: &Connection, node: &NodeId) -> rusqlite::Result<Option<DeclaredRecord>> {
    match id_of(db, node)? {
        Some(id) => newest_of(db, id),
        None => Ok(None),
    }
}

pub(super) fn newest_of(db: &Connection, id: i64) -> rusqlite::Result<Option<DeclaredRecord>> {
    let read = |row: &Row<'_>| {
        Ok(DeclaredRecord {
            revision: Revision { epoch: epoch(row)?, number: RevisionNumber(uint(row, "number")?) },
            sha256: Digest::from_bytes(bytes(row, "sha256")?),
            bytes: uint(row, "bytes")?,
            resources: uint(row, "resources")?,
        })
    };
    db.prepare_cached("SELECT * FROM declaration WHERE node = ?1 ORDER BY epoch DESC, number DESC LIMIT 1")?
        .query_row([id], read)
        .optional()
}

pub(super) fn declare(
    tx: &Transaction<'_>,
    declarations: &[NewDeclaration],
    contents: &[Vec<u8>],
    now: Millis,
) -> rusqlite::Result<Result<(), NotDeclared>> {
    for declaration in declarations {
        if let Err(refused) = may(tx, declaration)? {
            return Ok(Err(refused));
        }
    }
    let brought: std::collections::HashSet<Digest> = contents.iter().map(|bytes| Digest::of(bytes)).collect();
    for declaration in declarations {
        for sha256 in declaration.contents.iter().filter(|sha256| !brought.contains(*sha256)) {
            if !content::is_whole(tx, *sha256)? {
                return Ok(Err(NotDeclared::ContentMissing(declaration.node.clone(), *sha256)));
            }
        }
    }
    contents.iter().try_for_each(|bytes| content::keep(tx, bytes, now))?;
    declarations.iter().try_for_each(|declaration| write(tx, declaration, now))?;
    Ok(Ok(()))
}

fn may(tx: &Transaction<'_>, declaration: &NewDeclaration) -> rusqlite::Result<Result<(), NotDeclared>> {
    let record = identity::node(tx, &declaration.node)?;
    Ok(declaration.may_follow(record.as_ref(), newest(tx, &declaration.node)?.as_ref()))
}

fn write(tx: &Transaction<'_>, declaration: &NewDeclaration, now: Millis) -> rusqlite::Result<()> {
    let id = known(tx, &declaration.node)?;
    let sha256 = Digest::of(&declaration.bytes);
    let Revision { epoch, number } = declaration.revision;
    content::keep(tx, &declaration.bytes, now)?;
    tx.execute(
        "INSERT INTO declaration (node, epoch, number, epoch_id, sha256, bytes, resources, declared_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            id,
            int(epoch.number),
            int(number.0),
            epoch.id.as_bytes(),
            sha256.as_bytes(),
            int(u64::try_from(declaration.bytes.len()).unwrap_or(u64::MAX)),
            int(declaration.resources),
            now.0
        ],
    )?;
    tx.execute("DELETE FROM named_content WHERE node = ?1", [id])?;
    let mut name = tx.prepare_cached("INSERT OR IGNORE INTO named_content (node, sha256) VALUES (?1, ?2)")?;
    for named in declaration.contents.iter().chain([&sha256]) {
        name.execute(params![id, named.as_bytes()])?;
    }
    events::tell(tx, &facts::declared(declaration), now)
}
