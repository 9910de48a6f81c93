//! A declaration on its way from a push to the store: bytes by digest, read, admitted, its contents fetched, kept
//! whole, and the loop told. One that is refused leaves the last good one in force and is reported.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tenure_actors::database::DatabaseError;
use tenure_actors::timer::Backoff;
use tenure_protocol::content::{Push, Pushed};
use tenure_protocol::declaration::{Declaration, MOST_BYTES};
use tenure_protocol::refusal::{Explain as _, Refusal, chain};
use tenure_protocol::resource::Content;
use tenure_protocol::wire::Outgoing;
use tokio::sync::watch;
use tokio::time::sleep;

use super::Around;
use super::fetch::{FetchError, fetch};
use crate::identity::StoredIdentity;
use crate::reconcile::admit::{AdmitRefusal, Admitted, Held, Standing};
use crate::reconcile::intake::{self, IntakeError};
use crate::store::LEAST_ROOM;

/// Whether something that is pushed is worth fetching. What is not newer is answered with what is held.
pub(super) fn judge(held: Option<&Held>, push: &Push) -> Pushed {
    let Some(held) = held else { return Pushed::Fetching };
    if held.sha256 == push.sha256 && held.revision == push.revision {
        return Pushed::Have;
    }
    let (ours, theirs) = (held.revision, push.revision);
    let older = theirs.epoch.number < ours.epoch.number
        || (theirs.epoch == ours.epoch && theirs.number < ours.number);
    if older { Pushed::HaveLater(ours) } else { Pushed::Fetching }
}

/// Takes each declaration that is pushed, the newest where several wait. What could not be fetched is tried again.
pub(super) async fn take(
    around: &Around,
    identity: &StoredIdentity,
    outgoing: &Outgoing,
    mut pushes: watch::Receiver<Option<Push>>,
) -> Infallible {
    let mut backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(60));
    let mut said = None;
    loop {
        let push = *pushes.borrow_and_update();
        let again = match push {
            None => None,
            Some(push) => match one(around, identity, outgoing, push).await {
                Ok(()) => None,
                Err(TakeError::Refused(refusal)) => {
                    tracing::warn!(
                        revision = %push.revision, code = %refusal.code, why = refusal.happened, "declaration refused"
                    );
                    around.reconcile.refused(push.revision, refusal);
                    None
                }
                Err(TakeError::NoRoom(refusal)) => {
                    // Told once; from then on it only waits for room.
                    if said.replace(push.revision) != Some(push.revision) {
                        tracing::warn!(revision = %push.revision, why = refusal.happened, "declaration not fetched");
                        around.reconcile.refused(push.revision, refusal);
                    }
                    Some(backoff.full_jitter())
                }
                Err(error) => {
                    tracing::warn!(revision = %push.revision, why = chain(&error), "declaration not fetched");
                    Some(backoff.full_jitter())
                }
            },
        };
        if again.is_none() {
            backoff.reset();
        }
        let due = async {
            match again {
                Some(wait) => sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // The sender lives as long as the session does, and so longer than this future.
            _ = pushes.changed() => {}
            () = due => {}
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum TakeError {
    #[error(transparent)]
    Refused(Refusal),
    /// There is no room for its content yet.
    #[error(transparent)]
    NoRoom(Refusal),
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("the store does not answer")]
    Store(#[from] DatabaseError),
}

async fn one(
    around: &Around,
    identity: &StoredIdentity,
    outgoing: &Outgoing,
    push: Push,
) -> Result<(), TakeError> {
    let store = &around.store;
    let us = identity.clone();
    let held = store.off(move |store| intake::held_whole(store, &us)).await?;
    match judge(held.as_ref(), &push) {
        Pushed::Have => return Ok(()),
        Pushed::HaveLater(held) => {
            tracing::info!(revision = %push.revision, have = %held, "older declaration ignored");
            return Ok(());
        }
        Pushed::Fetching => {}
    }
    if push.bytes > MOST_BYTES {
        return Err(TakeError::Refused(too_large(push.bytes)));
    }
    let to = format!("reconcile/{}", identity.node);
    fetch(outgoing, &to, store, vec![Content { sha256: push.sha256, size: push.bytes }]).await?;
    let standing = Standing {
        control_plane_id: identity.control_plane_id,
        node: identity.node.clone(),
        generation: identity.generation,
        epoch: identity.epoch,
    };
    let admitted = store.off(move |store| read(store, &standing, push)).await?;
    let (declaration, bytes, admitted) = admitted.map_err(TakeError::Refused)?;
    let resources = declaration.entries.len();
    let contents = declaration.contents();
    let asked = contents.clone();
    let (missing, room) =
        store.off(move |store| Ok::<_, DatabaseError>((store.missing(&asked)?, store.room()))).await?;
    if let Some(why) = no_room(&push, &missing, room) {
        return Err(TakeError::NoRoom(why));
    }
    fetch(outgoing, &to, store, contents).await?;
    if admitted == Admitted::Same {
        // It is here whole again, and what failed for want of its content can be done.
        around.reconcile.admitted();
        return Ok(());
    }
    store.off(move |store| intake::keep(store, &declaration, push.sha256, &bytes)).await?;
    tracing::info!(revision = %push.revision, resources, "declaration admitted");
    around.reconcile.admitted();
    Ok(())
}

type Read = (Declaration, Arc<[u8]>, Admitted);

fn read(
    store: &crate::store::Store,
    standing: &Standing,
    push: Push,
) -> Result<Result<Read, Refusal>, DatabaseError> {
    let Some(reader) = store.reader(push.sha256)? else { return Err(DatabaseError::Closed) };
    let bytes: Arc<[u8]> = reader.read_all()?.into();
    let declaration = match Declaration::parse(&bytes) {
        Ok(declaration) => declaration,
        Err(error) => return Ok(Err(not_read(&chain(&error)))),
    };
    if declaration.header.revision() != push.revision {
        return Ok(Err(not_read("it says another revision of itself than the control plane said")));
    }
    match intake::admit(store, Some(standing), &declaration, push.sha256) {
        Ok(admitted) => Ok(Ok((declaration, bytes, admitted))),
        Err(IntakeError::Refused(refusal)) => Ok(Err(AdmitRefusal::refusal(&refusal))),
        Err(IntakeError::Store(error)) => Err(error),
    }
}

fn not_read(why: &str) -> Refusal {
    Refusal::new(
        "declaration_unreadable",
        format!("the declaration was refused whole: {why}"),
        "the machine holds the last good one; nothing of the refused one was done",
        "declare again with `tenure declare`; if it stays, compare the versions of both sides",
    )
}

/// Why content is not fetched that would fill the disk under the store, where what the host does could then not be
/// recorded (O-05). Its pieces take a sixteenth more than they hold, and go through a log of a few megabytes.
fn no_room(push: &Push, missing: &[(Content, u64)], room: Option<u64>) -> Option<Refusal> {
    let bytes = missing.iter().map(|(content, have)| content.size.saturating_sub(*have));
    let bytes = bytes.fold(0_u64, u64::saturating_add);
    let needed = bytes.saturating_add(bytes / 16).saturating_add(LOG).saturating_add(LEAST_ROOM);
    let room = room.filter(|room| !missing.is_empty() && *room < needed)?;
    Some(Refusal::new(
        "no_room_for_content",
        format!(
            "the content of revision {} needs {} KiB, and {} KiB are free beside the host's store",
            push.revision,
            needed / 1024,
            room / 1024
        ),
        "none of it was fetched, so that what the host does can still be recorded; the machine holds its last \
         declaration",
        "make room on the file system of the host's store (`df -h /var/lib/tenure-host`); the host then fetches it by \
         itself",
    ))
}

/// SQLite writes its log back when it has about this size.
const LOG: u64 = 4 * 1024 * 1024;

fn too_large(bytes: u64) -> Refusal {
    not_read(&format!("it has {bytes} bytes, at most {MOST_BYTES}"))
}

#[cfg(test)]
mod tests {
    use tenure_protocol::id::{Digest, Epoch, EpochId, Revision, RevisionNumber};

    use super::*;

    fn revision(epoch: u64, number: u64) -> Revision {
        let id = EpochId::from_bytes([u8::try_from(epoch).unwrap(); 16]);
        Revision { epoch: Epoch { number: epoch, id }, number: RevisionNumber(number) }
    }

    // case: O-05
    #[test]
    fn content_that_would_fill_the_disk_under_the_store_is_not_fetched() {
        let push = Push { revision: revision(1, 7), sha256: Digest::of(b"7"), bytes: 1, resources: 1 };
        let content = |size| Content { sha256: Digest::of(b"c"), size };
        let no_room = |size, have, room| no_room(&push, &[(content(size), have)], room);
        let mib = 1024 * 1024;
        assert_eq!(no_room(16 * mib, 0, Some(22 * mib)), None);
        let why = no_room(16 * mib, 0, Some(22 * mib - 1)).unwrap();
        assert_eq!(why.code, "no_room_for_content");
        assert!(why.happened.contains("needs 22528 KiB, and 22527 KiB are free"), "{}", why.happened);
        assert_eq!(no_room(1000 * mib, 1000 * mib, Some(6 * mib)), None, "what is here needs no room");
        assert_eq!(no_room(1000 * mib, 0, None), None, "SQLite will say what nobody could measure");
        assert_eq!(super::no_room(&push, &[], Some(0)), None);
    }

    // rule: X-6
    // case: O-71
    #[test]
    fn an_older_declaration_that_overtakes_is_answered_with_what_is_held() {
        let held = Held { revision: revision(2, 42), sha256: Digest::of(b"42") };
        let push = |revision, of: &[u8]| Push { revision, sha256: Digest::of(of), bytes: 1, resources: 1 };
        let judge = |push: &Push| judge(Some(&held), push);
        assert_eq!(judge(&push(revision(2, 42), b"42")), Pushed::Have);
        assert_eq!(judge(&push(revision(2, 41), b"41")), Pushed::HaveLater(revision(2, 42)));
        assert_eq!(judge(&push(revision(1, 99), b"99")), Pushed::HaveLater(revision(2, 42)));
        assert_eq!(judge(&push(revision(2, 43), b"43")), Pushed::Fetching);
        assert_eq!(judge(&push(revision(3, 1), b"1")), Pushed::Fetching);
        assert_eq!(
            judge(&push(revision(2, 42), b"other")),
            Pushed::Fetching,
            "admitting it will refuse it by name"
        );
        assert_eq!(super::judge(None, &push(revision(1, 1), b"1")), Pushed::Fetching);
    }
}
