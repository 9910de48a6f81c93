//! Opening the host's store. What is damaged is set aside under a name of its own and said (H-11); what is newer, in
//! use, another program's or unreadable is named and not touched.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_actors::clock::Moment;
use tenure_actors::database::{Create, Database, DatabaseError, OpenError, Opening};
use tenure_protocol::event::{NodeEvent, STORE_LOST};
use tenure_protocol::id::{EventId, Millis, StoreId};
use tenure_protocol::refusal::Explain;
use tenure_protocol::wire::codec::encode;

use super::schema::{APPLICATION_ID, MIGRATIONS};
use super::{STORE_ID, Store, fact, set_fact};
use crate::ground::Ground;

/// An open store, and what an operator should hear about it.
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub store: Store,
    /// That the one before was lost, and where what is left of it lies. Told again at each start until
    /// [`Store::clear_note`] of `store_note`.
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
    /// must be there ([`Ground::create`]). Without `create` a damaged one is refused and not touched. It reads the whole file once: not for a runtime's worker.
    pub fn open(ground: &Ground, create: bool, now: Moment) -> Result<Opened, OpenStoreError> {
        let path = ground.store();
        let missing = !path.exists();
        let lost = match open(&path, if create { Create::WhenAbsent } else { Create::Never }) {
            // A machine that has its key had a store.
            Ok(database) if missing && has_key(ground) => {
                return begin(&path, database, Some(gone()), now);
            }
            Ok(database) => return begin(&path, database, None, now),
            Err(
                error
                @ (OpenError::Damaged { .. } | OpenError::NotADatabase { .. } | OpenError::Empty { .. }),
            ) => error,
            Err(error) => return Err(error.into()),
        };
        // Whoever only looks leaves it to the host to set it aside.
        if !create {
            return Err(lost.into());
        }
        let failed = |source| OpenStoreError::SetAside { path: path.clone(), source };
        let _alone = alone(&path).map_err(failed)?;
        // Another process may have set it aside while we waited; then the one that lies there now is good.
        let lost = match open(&path, Create::Never) {
            Ok(database) => return begin(&path, database, None, now),
            Err(OpenError::Absent { .. }) => lost,
            Err(
                error
                @ (OpenError::Damaged { .. } | OpenError::NotADatabase { .. } | OpenError::Empty { .. }),
            ) => error,
            Err(error) => return Err(error.into()),
        };
        let kept = set_aside(&path, now).map_err(failed)?;
        let database = open(&path, Create::WhenAbsent)?;
        begin(&path, database, Some(damaged(&lost, &kept)), now)
    }
}

fn open(path: &Path, create: Create) -> Result<Database, OpenError> {
    Database::open(Opening {
        path,
        application_id: APPLICATION_ID,
        migrations: MIGRATIONS,
        create,
        cache_kib: CACHE_KIB,
        readers: READERS,
    })
}

/// 2 MiB hold the pages of ten thousand records, and an idle host stays small.
const CACHE_KIB: u32 = 2048;
/// As many as threads that copy content out of the store at the same time on a small machine.
const READERS: usize = 4;

fn begin(
    path: &Path,
    database: Database,
    lost: Option<String>,
    now: Moment,
) -> Result<Opened, OpenStoreError> {
    let failed = |source| OpenStoreError::First { path: path.to_owned(), source };
    let told = lost.clone();
    let id = database
        .write_blocking(move |t| match fact::<StoreId>(t, STORE_ID)? {
            Some(id) => Ok(id),
            None => {
                let id = StoreId::random();
                set_fact(t, STORE_ID, &encode(&id))?;
                if let Some(text) = told {
                    let at = Millis(now.millis());
                    super::spool::push(
                        t,
                        &NodeEvent {
                            id: EventId::random(),
                            at,
                            kind: STORE_LOST.to_owned(),
                            key: None,
                            text: text.clone(),
                        },
                    )?;
                    set_fact(t, &format!("note:{NOTE}"), text.as_bytes())?;
                }
                Ok(id)
            }
        })
        .map_err(failed)?;
    let store = Store { database, id, passing: Arc::default() };
    let note = store.note(NOTE).map_err(failed)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(Opened { store, note })
}

const NOTE: &str = "store_note";

fn has_key(ground: &Ground) -> bool {
    ground.node_key().exists()
}

fn gone() -> String {
    "the store was gone, and a new one was made: what this host owned is not known to it; what is found is kept".to_owned()
}

fn damaged(why: &OpenError, kept: &Path) -> String {
    format!(
        "{why}; it was kept as {} and a new one was made: what this host owned is not known to it; what is found is kept",
        kept.display()
    )
}

/// One process sets aside at a time; the lock ends with the file.
fn alone(path: &Path) -> io::Result<File> {
    let file =
        File::options().create(true).truncate(false).write(true).open(path.with_extension("set-aside"))?;
    file.lock()?;
    Ok(file)
}

/// Renames the store and what belongs to it, under the time of the find.
fn set_aside(path: &Path, now: Moment) -> io::Result<PathBuf> {
    let mut kept = path.as_os_str().to_owned();
    kept.push(format!(".damaged-{}", now.millis()));
    for suffix in ["-wal", "-shm", ""] {
        let (mut from, mut to) = (path.as_os_str().to_owned(), kept.clone());
        from.push(suffix);
        to.push(suffix);
        match std::fs::rename(&from, &to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    if let Some(directory) = path.parent() {
        File::open(directory)?.sync_all()?;
    }
    Ok(kept.into())
}

impl Explain for OpenStoreError {
    fn code(&self) -> &'static str {
        match self {
            Self::Open(OpenError::Absent { .. }) => "store_absent",
            Self::Open(OpenError::Newer { .. }) => "store_newer",
            Self::Open(OpenError::Locked { .. }) => "store_locked",
            Self::Open(OpenError::NotOurs { .. }) => "store_not_ours",
            Self::Open(OpenError::OnNetwork { .. }) => "store_on_network",
            Self::Open(
                OpenError::Damaged { .. } | OpenError::NotADatabase { .. } | OpenError::Empty { .. },
            )
            | Self::SetAside { .. } => "store_damaged",
            Self::Open(OpenError::Migration { .. } | OpenError::CannotOpen { .. }) | Self::First { .. } => {
                "store_unreadable"
            }
        }
    }

    fn meaning(&self) -> String {
        let means = match self {
            Self::Open(OpenError::Absent { .. }) => "no host has run here yet",
            Self::Open(OpenError::Newer { .. }) => {
                "a newer tenure-host has used it; this one would misread it"
            }
            Self::Open(OpenError::Locked { .. }) => {
                "another tenure-host works with it; two would undo each other's work"
            }
            Self::Open(OpenError::NotOurs { .. }) => "something else lies where the host's store belongs",
            Self::Open(OpenError::OnNetwork { .. }) => "locks do not hold there between machines",
            Self::Open(
                OpenError::Damaged { .. } | OpenError::NotADatabase { .. } | OpenError::Empty { .. },
            )
            | Self::SetAside { .. } => "what this host owns cannot be read from it, and nothing was changed",
            Self::Open(OpenError::Migration { .. } | OpenError::CannotOpen { .. }) | Self::First { .. } => {
                "the host does not know what it owns, so it changes nothing"
            }
        };
        means.to_owned()
    }

    fn remedy(&self) -> String {
        match self {
            Self::Open(OpenError::Absent { .. }) => "start the host with `tenure-host run`".to_owned(),
            Self::Open(OpenError::Newer { .. }) => "install that version of tenure-host again".to_owned(),
            Self::Open(OpenError::Locked { pid: Some(pid), .. }) => {
                format!("ask the host that runs (process {pid}), or stop it first")
            }
            Self::Open(OpenError::Locked { pid: None, .. }) => {
                "ask the host that runs, or stop it first".to_owned()
            }
            Self::Open(OpenError::NotOurs { path, .. } | OpenError::OnNetwork { path, .. }) => {
                format!("move {} to where it belongs", path.display())
            }
            Self::SetAside { path, .. } | Self::First { path, .. } => {
                format!("make {} writable and its disk free, then start the host again", path.display())
            }
            Self::Open(
                OpenError::Damaged { path, .. }
                | OpenError::NotADatabase { path }
                | OpenError::Empty { path }
                | OpenError::Migration { path, .. }
                | OpenError::CannotOpen { path, .. },
            ) => format!("look at {} and its disk, then start the host again", path.display()),
        }
    }
}
