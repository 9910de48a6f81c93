//! What a pass by hand saw and came to, kept for the next one, which is another process: in a file beside the store, for
//! it is large, and a daemon never reads it. The store has one line of it: which program kept it, after which pass, and
//! the digest of the file. It stands for as long as nothing is done that it does not know of: whoever is about to do
//! anything takes the line away in the same transaction. Nothing is ever done by it alone: whoever goes by it looks whether
//! all is as it says. So it is never synced, and where it cannot be read or written that is all.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use serde::{Deserialize, Serialize};
use tenure_actors::database::rusqlite::{self, Connection, Transaction};
use tenure_protocol::id::Digest;
use tenure_protocol::report::Summary;
use tenure_protocol::wire::codec::encode;

use super::back::{clear, with};
use super::{LAST_PASS, LEAST_ROOM, Store, bytes, fact, set_fact, transaction, unread};

const STANDS: &str = "look_stands";
const FILE: &str = ".look";
/// What is larger is not kept: about a million files.
const MOST: usize = 128 * 1024 * 1024;

/// Which file stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Stands {
    /// The program that kept it.
    by: Digest,
    /// The last pass before or since that found all as it says.
    pass: u64,
    sha256: Digest,
}

impl Store {
    /// What this program kept, where the pass after which it did is still the last thing that was done here.
    pub(crate) fn kept_look(&self, by: Digest) -> Option<Vec<u8>> {
        // What of a store is newer than the rest is not known where its log is gone.
        let stands = self.database.read_blocking(stands).ok().flatten().filter(|_| !self.lacks_log)?;
        let bytes = (stands.by == by).then(|| read(&with(&self.path, FILE)).ok()).flatten()?;
        (Digest::of(&bytes) == stands.sha256).then_some(bytes)
    }

    /// Keeps what the pass with this number saw and came to. Whoever asks for it sees whether anything was done since.
    pub(crate) fn keep_look(&self, by: Digest, pass: u64, look: &[u8]) {
        // What was there stands no more, and is in the way where there is little room.
        self.drop_look();
        let needed = u64::try_from(look.len()).unwrap_or(u64::MAX).saturating_add(LEAST_ROOM);
        let has_room = self.room().is_none_or(|left| left >= needed);
        if self.lacks_log || look.len() > MOST || !has_room {
            return;
        }
        if let Err(error) = write(&with(&self.path, FILE), look) {
            return tracing::debug!(%error, "what was seen is not kept for the next pass");
        }
        let line = encode(&Stands { by, pass, sha256: Digest::of(look) });
        if let Err(error) = self.database.write_blocking(move |t| set_fact(t, STANDS, &line)) {
            tracing::debug!(%error, "what was seen is not kept for the next pass");
        }
    }

    /// Removes what does not stand any more, or nobody will ask for, with what was left of writing it.
    pub(crate) fn drop_look(&self) {
        for file in [with(&self.path, FILE), beside(&with(&self.path, FILE))] {
            if let Err(error) = clear(&file) {
                tracing::debug!(%error, path = %file.display(), "what a pass by hand left was not removed");
            }
        }
    }
}

/// It does not stand any more.
pub(super) fn forget(t: &Transaction<'_>) -> rusqlite::Result<()> {
    t.prepare_cached("DELETE FROM fact WHERE name = ?1")?.execute([STANDS]).map(drop)
}

/// The pass with this number, which is about to be kept, found all as it was: what stood still stands.
pub(super) fn stands_after(t: &Transaction<'_>, pass: u64) -> rusqlite::Result<()> {
    match stands(t)? {
        Some(before) => set_fact(t, STANDS, &encode(&Stands { pass, ..before })),
        None => forget(t),
    }
}

/// What stands after all that was done here.
fn stands(connection: &Connection) -> rusqlite::Result<Option<Stands>> {
    let Some(stands) = fact::<Stands>(connection, STANDS)? else { return Ok(None) };
    let is_last = stands.pass == last_pass(connection)? && !is_at_work(connection)?;
    Ok(is_last.then_some(stands))
}

fn last_pass(connection: &Connection) -> rusqlite::Result<u64> {
    Ok(fact::<Summary>(connection, LAST_PASS)?.map_or(0, |summary| summary.pass))
}

/// Whether anything was begun of which nobody has seen the end.
fn is_at_work(connection: &Connection) -> rusqlite::Result<bool> {
    let intended = connection.prepare_cached("SELECT 1 FROM intent LIMIT 1")?.exists(())?;
    Ok(intended
        || bytes(connection, transaction::TRANSACTION)?.is_some()
        || bytes(connection, unread::UNREAD)?.is_some())
}

/// Only a file, and of no more than is kept: nothing else that lies there is waited for.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)?;
    let (seen, most) = (file.metadata()?, u64::try_from(MOST).unwrap_or(u64::MAX));
    if !seen.is_file() || seen.len() > most {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn beside(path: &Path) -> PathBuf {
    with(path, ".new")
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = beside(path);
    clear(&beside)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    file.write_all(bytes).and_then(|()| std::fs::rename(&beside, path)).inspect_err(|_| drop(clear(&beside)))
}
