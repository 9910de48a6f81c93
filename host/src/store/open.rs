//! Opening the host's store. What is damaged is set aside under a name of its own and said (H-11); what is newer, in
//! use, another program's or unreadable is named and not touched.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_actors::clock::Moment;
use tenure_actors::database::{self, Check, Create, Database, DatabaseError, Obstacle, OpenError, Opening};
use tenure_protocol::event::{NodeEvent, STORE_LOST};
use tenure_protocol::id::{EventId, Millis, StoreId};
use tenure_protocol::wire::codec::encode;

use super::aside::{alone, is_log_alone, kept, set_aside};
use super::back::take_back;
use super::schema::{APPLICATION_ID, MIGRATIONS};
use super::{STORE_ID, Store, fact, numbers, reserve, rusqlite, set_fact};
use crate::ground::Ground;
use crate::steps;

mod explain;

/// An open store, and what an operator should hear about it.
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub store: Store,
    /// That the one before was lost, and where what is left of it lies. Told again at each start until
    /// the control plane has acknowledged the event that says so.
    pub note: Option<String>,
}

/// Why there is no store to work with.
#[derive(Debug, thiserror::Error)]
pub enum OpenStoreError {
    /// It was not opened; nothing in it was touched.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It is damaged, and could not be set aside either.
    #[error("the damaged store at {} could not be set aside", path.display())]
    SetAside {
        /// The store.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It was opened and did not do its first work.
    #[error("the store at {} does not answer", path.display())]
    First {
        /// The store.
        path: PathBuf,
        /// What it said.
        source: DatabaseError,
    },
}

impl Store {
    /// Opens the store of this ground; where there is none it is made if `create` says so. A damaged one is renamed,
    /// kept, and replaced by a new one: the note says so, and a `store_lost` event waits in the spool. The directories
    /// must be there ([`Ground::create`]). Without `create` it is only looked at: nothing is written into it, and a
    /// damaged one is refused and not touched. It reads the whole file once: not for a runtime's worker.
    pub fn open(ground: &Ground, create: bool, now: Moment) -> Result<Opened, OpenStoreError> {
        let path = ground.store();
        // Before anything opens it: that makes a new log.
        let log_gone = log_gone(&path);
        if !create {
            // Whoever only looks leaves it to the host to set a damaged one aside.
            return look(ground, open(&path, Create::Never, Check::Before)?, log_gone);
        }
        let before = || log_gone.or_else(|| life_before(ground, &path).ok().flatten());
        let first = match open(&path, Create::Never, Check::Before) {
            Ok(database) => return begin(ground, database, before(), now),
            Err(error) => unusable(error)?,
        };
        let failed = |source| match first {
            OpenError::Absent { .. } => {
                let why = Obstacle::of(&source);
                OpenError::CannotOpen { path: path.clone(), why, source: Arc::new(source) }.into()
            }
            _ => OpenStoreError::SetAside { path: path.clone(), source },
        };
        let _alone = alone(&path).map_err(failed)?;
        if !path.exists() && take_back(&path, now).map_err(failed)? {
            tracing::warn!(path = %path.display(), "store put back that was being written to its place again");
        }
        // Another process may have put it right while we waited; then the one that lies there now is good.
        let lost = match open(&path, Create::Never, Check::Before) {
            Ok(database) => return begin(ground, database, before(), now),
            Err(error) => unusable(error)?,
        };
        let lost = match lost {
            OpenError::Absent { .. } if !is_log_alone(&path) => life_before(ground, &path).map_err(failed)?,
            OpenError::Absent { .. } => Some(gone(Some(&set_aside(&path, now).map_err(failed)?))),
            lost => Some(damaged(&lost, &set_aside(&path, now).map_err(failed)?)),
        };
        // Whose log is gone is gone itself.
        drop(std::fs::remove_file(cut(&path)));
        begin(ground, open(&path, Create::WhenAbsent, Check::Before)?, lost, now)
    }
}

impl Store {
    /// As [`Store::open`] without `create`, for a pass by hand: what is stored is read while the store is still checked.
    /// Nothing is written before it is known to be sound, and nothing may be done before [`Store::checked`] says so.
    pub fn open_ahead(ground: &Ground) -> Result<Opened, OpenStoreError> {
        let path = ground.store();
        let log_gone = log_gone(&path);
        let database = open(&path, Create::Never, Check::Beside)?;
        let opened = look(ground, database.clone(), log_gone);
        if opened.is_err() {
            // Of a damaged store this is what is wrong, whatever came of reading it.
            database.checked()?;
        }
        opened
    }

    /// Whether the store is sound; blocks until that is known.
    pub fn checked(&self) -> Result<(), OpenStoreError> {
        Ok(self.database.checked()?)
    }

    /// The same, for a pass.
    pub(crate) fn sound(&self) -> Result<(), DatabaseError> {
        self.database.sound()
    }
}

/// A machine that has its key, or keeps a damaged store, had one: what is to be said of that.
fn life_before(ground: &Ground, path: &Path) -> io::Result<Option<Lost>> {
    let kept = kept(path)?;
    Ok((has_key(ground) || !kept.is_empty()).then(|| gone(kept.last())))
}

/// What a new store is made in place of; everything else is an error that leaves the store as it is.
fn unusable(error: OpenError) -> Result<OpenError, OpenError> {
    match error {
        OpenError::Absent { .. }
        | OpenError::Damaged { .. }
        | OpenError::NotADatabase { .. }
        | OpenError::Empty { .. } => Ok(error),
        OpenError::NotOurs { .. }
        | OpenError::Newer { .. }
        | OpenError::Locked { .. }
        | OpenError::OnNetwork { .. }
        | OpenError::Migration { .. }
        | OpenError::CannotOpen { .. } => Err(error),
    }
}

fn open(path: &Path, create: Create, check: Check) -> Result<Database, OpenError> {
    let opening = Opening {
        path,
        application_id: APPLICATION_ID,
        migrations: MIGRATIONS,
        create,
        cache_kib: CACHE_KIB,
        readers: READERS,
        check,
    };
    match Database::open(opening) {
        Err(error) if explain::is_full(&error) && reserve::give_up(path) => Database::open(opening),
        opened => opened,
    }
}

/// 2 MiB hold the pages of ten thousand records, and an idle host stays small.
const CACHE_KIB: u32 = 2048;
/// As many as threads that copy content out of the store at the same time on a small machine.
const READERS: usize = 4;

fn begin(
    ground: &Ground,
    database: Database,
    lost: Option<Lost>,
    now: Moment,
) -> Result<Opened, OpenStoreError> {
    let failed = |source| OpenStoreError::First { path: ground.store(), source };
    let is_cut = matches!(lost, Some(Lost::Log(_)));
    let first = |lost: Option<Lost>| database.write_blocking(move |t| begin_in(t, lost, now));
    let (id, opening) = match steps::STORE_BEGUN.take(|| first(lost)) {
        // What has begun goes on; the number of its opening is on no disk then, and the next one may be the same.
        Err(error @ (DatabaseError::Full | DatabaseError::ReadOnly | DatabaseError::Failing)) if !is_cut => {
            match database.read_blocking(begun).map_err(failed)? {
                (Some(id), opening) => (id, opening),
                (None, _) => return Err(failed(error)),
            }
        }
        first => first.map_err(failed)?,
    };
    if is_cut {
        drop(steps::LOG_TOLD.take(|| std::fs::remove_file(cut(&ground.store()))));
    }
    let (path, passing, passes, units) = (ground.store(), Arc::default(), Arc::default(), Arc::default());
    let (lacks_log, is_by_hand) = (is_cut, false);
    let store = Store { database, path, id, passing, opening, passes, units, lacks_log, is_by_hand };
    reserve::settle(&store.path, store.room());
    let note = store.store_note().map_err(failed)?;
    Ok(Opened { store, note })
}

/// The opening of whoever makes neither passes nor sessions: their numbers stay, and so does what is to be said of a
/// loss, which the host says itself.
fn look(ground: &Ground, database: Database, lost: Option<Lost>) -> Result<Opened, OpenStoreError> {
    let failed = |source| OpenStoreError::First { path: ground.store(), source };
    let (id, opening) = database.read_blocking(begun).map_err(failed)?;
    let lacks_log = matches!(lost, Some(Lost::Log(_)));
    // One that was made and not begun holds nothing yet; the host begins it.
    let id = id.unwrap_or_else(StoreId::random);
    let (path, passing, passes, units) = (ground.store(), Arc::default(), Arc::default(), Arc::default());
    let store = Store { database, path, id, passing, opening, passes, units, lacks_log, is_by_hand: true };
    let told = store.store_note().map_err(failed)?;
    let note = told.or(lost.map(Lost::text));
    Ok(Opened { store, note })
}

/// Which life of the store this is, if it has begun, and which opening of it.
fn begun(connection: &rusqlite::Connection) -> rusqlite::Result<(Option<StoreId>, u64)> {
    Ok((fact(connection, STORE_ID)?, numbers::opening(connection)?))
}

/// The first change of an opening: which life of the store this is, what was lost before it, and the number of the
/// opening, above which no earlier one told of a pass.
fn begin_in(
    t: &rusqlite::Transaction<'_>,
    lost: Option<Lost>,
    now: Moment,
) -> rusqlite::Result<(StoreId, u64)> {
    let begun = fact::<StoreId>(t, STORE_ID)?;
    let opening = if begun.is_some() { numbers::move_on(t)? } else { 0 };
    let text = match (begun, lost) {
        (Some(id), None | Some(Lost::Before(_))) => return Ok((id, opening)),
        (_, Some(Lost::Before(text) | Lost::Log(text))) => Some(text),
        (None, None) => None,
    };
    let id = StoreId::random();
    set_fact(t, STORE_ID, &encode(&id))?;
    if let Some(text) = text {
        set_fact(t, &format!("note:{NOTE}"), text.as_bytes())?;
        let (at, kind) = (Millis(now.millis()), STORE_LOST.to_owned());
        super::spool::push(t, &NodeEvent { id: EventId::random(), at, kind, key: None, text })?;
    }
    Ok((id, opening))
}

impl Store {
    /// That the store before this one was lost, until the control plane has heard of it.
    pub fn store_note(&self) -> Result<Option<String>, DatabaseError> {
        Ok(self.note(NOTE)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }
}

/// What was lost.
enum Lost {
    /// The store before this one. Of a store that has begun already, it is not said again.
    Before(String),
    /// What the log of this very store held: it begins a life of its own.
    Log(String),
}

impl Lost {
    fn text(self) -> String {
        let (Self::Before(text) | Self::Log(text)) = self;
        text
    }
}

/// Says that a log is known to be gone until that is in the store: opening makes a new one, and only a missing one
/// shows.
fn cut(path: &Path) -> PathBuf {
    path.with_extension("log-gone")
}

/// Whether the store lacks what its log held. It only looks.
pub(crate) fn lacks_its_log(path: &Path) -> bool {
    database::log_is_gone(path) || cut(path).exists()
}

/// Whether the store lacks what its log held, and what is to be said of it.
fn log_gone(path: &Path) -> Option<Lost> {
    let mark = cut(path);
    let is_gone = database::log_is_gone(path);
    if is_gone && let Err(error) = steps::LOG_MISSED.take(|| std::fs::File::create(&mark)) {
        tracing::warn!(%error, path = %mark.display(), "that the store's log is gone is noted nowhere else");
    }
    let text = "the store's log was removed or emptied while no host had it open: what was recorded last is missing, so \
                what this host did last is not known to it; what is found is kept";
    (is_gone || mark.exists()).then(|| Lost::Log(text.to_owned()))
}

pub(super) const NOTE: &str = "store_note";

fn has_key(ground: &Ground) -> bool {
    ground.node_key().exists()
}

fn gone(kept: Option<&PathBuf>) -> Lost {
    let left = kept.map(|kept| format!(" (what was left of it is kept as {})", kept.display()));
    Lost::Before(format!(
        "the store was gone{}, and a new one was made: what this host owned is not known to it; what is found is kept",
        left.unwrap_or_default()
    ))
}

fn damaged(why: &OpenError, kept: &Path) -> Lost {
    Lost::Before(format!(
        "{why}; it was kept as {} and a new one was made: what this host owned is not known to it; what is found is kept",
        kept.display()
    ))
}
