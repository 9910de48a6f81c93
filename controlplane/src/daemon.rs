//! The daemon: opens the ground, builds the tree, says that it is ready, and stops in order. Nothing is decided here.
//! `bin/tenure-control` runs it; tests start it in process.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tenure_actors::clock::SharedClock;
use tenure_actors::database::{self, Create, OpenError};
use tenure_actors::directory::Directory;
use tenure_actors::watchdog::{self, Progress};
use tenure_actors::{Ended, Limits, StartError, Supervisor, systemd};
use tenure_protocol::id::{ControlPlaneId, Epoch, EpochId, Millis};
use tenure_protocol::refusal::Refusal;

use crate::api::{self, SocketError};
use crate::catalogue::actor::Catalogue;
use crate::config::{Config, ConfigError};
use crate::contacts::Contacts;
use crate::fleet::homes::Homes;
use crate::fleet::{self, Fleet, invitation};
use crate::ground::{Ground, GroundError};
use crate::keys::{self, KeyError, Keys};
use crate::listener::{self, ListenError};
use crate::losses::Losses;
use crate::plane::Plane;
use crate::presence::Presence;
use crate::reconcile::foresee::Turns;
use crate::store::sqlite::Sqlite;
use crate::store::{Founding, Store as _, StoreError};
use crate::sweeper;

mod explain;

/// How a control plane is started.
pub struct Options {
    /// Everything lies below this; `/` for the one of this machine.
    pub root: PathBuf,
    /// Where to listen, before what is configured.
    pub listen: Option<SocketAddr>,
    /// What to advertise, before what is configured.
    pub advertise: Vec<String>,
    /// The time of day.
    pub clock: SharedClock,
}

/// A control plane that runs. Dropping it stops nothing.
pub struct Control {
    /// Where the link is listened on.
    pub address: SocketAddr,
    /// Where operators speak to it.
    pub socket: PathBuf,
    plane: Arc<Plane>,
    root: Supervisor,
    store: Sqlite,
}

/// Why it does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartRefusal {
    /// A folder cannot be had.
    #[error(transparent)]
    Ground(#[from] GroundError),
    /// What is configured cannot be.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Keys are there, and the store they belong to is not.
    #[error("{} is there, and there is no store beside it", .0.display())]
    StoreGone(PathBuf),
    /// The store was left open, and the log that belongs to it was removed or emptied.
    #[error("the store at {} was not closed, and its log {}-wal is gone or empty", .0.display(), .0.display())]
    LogGone(PathBuf),
    /// The store does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A key is missing or damaged.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// The address of the link cannot be had.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The local socket cannot be had.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// A part did not start.
    #[error(transparent)]
    Part(#[from] StartError),
    /// The nodes could not be read.
    #[error("{0}")]
    Nodes(Refusal),
}

/// Starts everything. It resolves when hosts and operators are served.
pub async fn start(options: Options) -> Result<Control, StartRefusal> {
    let Options { root, listen, advertise, clock } = options;
    let ground = Ground::new(root);
    ground.create()?;
    let config = Config::read(&ground.config(), listen, &advertise)?;
    let (store, founding, keys) = open(&ground, Millis(clock.now().millis())).await?;
    match serve(&ground, config, clock, &store, founding, keys).await {
        Ok(control) => Ok(control),
        Err(refusal) => {
            // The lock is free again when this returns, for a second try in the same process.
            close(store).await;
            Err(refusal)
        }
    }
}

async fn serve(
    ground: &Ground,
    config: Config,
    clock: SharedClock,
    store: &Sqlite,
    founding: Founding,
    keys: Keys,
) -> Result<Control, StartRefusal> {
    let link = listener::bind(config.listen).await?;
    let address = link.local_addr().map_err(|source| ListenError::Io { address: config.listen, source })?;
    let local = api::bind(ground)?;
    let plane = Arc::new(Plane {
        founding,
        keys,
        store: Arc::new(store.clone()),
        clock,
        config,
        presence: Presence::default(),
        nodes: Directory::new(),
        homes: Homes::vacant(),
        fleet: Fleet::vacant(),
        catalogue: Catalogue::vacant(),
        contacts: Contacts::vacant(),
        losses: Losses::vacant(),
        offering: Turns::default(),
    });
    if let Err(error) = sweeper::sweep(&plane).await {
        // A store that takes no writes now still shows what it knows, and may take them later.
        tracing::warn!(%error, "content that nothing names could not be dropped, and is looked for again");
    }
    if let Err(refusal) = invitation::clock_holds(&plane, false).await {
        tracing::warn!(code = %refusal.code, means = %refusal.means, "do" = %refusal.remedy, "{}", refusal.happened);
    }
    if let Some(error) = &plane.keys.no_master_key {
        explain::without_master_key(error);
    }
    let root = grow(&plane, store, link, local).await?;
    tracing::info!(%address, control_plane = %founding.control_plane_id, "listening");
    systemd::ready(&format!("listening on {address}"));
    Ok(Control { address, socket: ground.socket(), plane, root, store: store.clone() })
}

/// The tree, in the order in which parts need each other; hosts are let in last.
async fn grow(
    plane: &Arc<Plane>,
    store: &Sqlite,
    link: tokio::net::TcpListener,
    local: tokio::net::UnixListener,
) -> Result<Supervisor, StartRefusal> {
    let mut children = vec![store.child(), Contacts::child(plane), Losses::child(plane)];
    children.extend(plane.homes.children());
    children.extend([Fleet::child(plane), Catalogue::child(plane), sweeper::child(plane)]);
    let root = Supervisor::start("tenure-control", Limits::default(), children).await?;
    let rest = async {
        plane.fleet.gathered().await.map_err(StartRefusal::Nodes)?;
        root.add(api::child(plane, &Arc::new(local))).await?;
        root.add(listener::child(plane, &Arc::new(link))).await?;
        watchdog::watch(&root, &Progress::new()).await?;
        Ok(())
    };
    match rest.await {
        Ok(()) => Ok(root),
        Err(refusal) => {
            root.stop().await;
            Err(refusal)
        }
    }
}

/// Store and keys belong together: both are made at the first start, and neither is made anew where the other is.
async fn open(ground: &Ground, now: Millis) -> Result<(Sqlite, Founding, Keys), StartRefusal> {
    let found = keys::found(ground);
    let create = if found.is_empty() { Create::WhenAbsent } else { Create::Never };
    if database::log_is_gone(&ground.store()) {
        return Err(StartRefusal::LogGone(ground.store()));
    }
    let opened = {
        let ground = ground.clone();
        tokio::task::spawn_blocking(move || Sqlite::open(&ground, create)).await
    };
    let store = match (opened, found.into_iter().next()) {
        (Ok(Err(OpenError::Absent { .. })), Some(key)) => return Err(StartRefusal::StoreGone(key)),
        (Ok(opened), _) => opened?,
        (Err(_), _) => return Err(StoreError::Closed.into()),
    };
    match found_or_load(ground, &store, now).await {
        Ok((founding, keys)) => Ok((store, founding, keys)),
        Err(refusal) => {
            close(store).await;
            Err(refusal)
        }
    }
}

async fn found_or_load(
    ground: &Ground,
    store: &Sqlite,
    now: Millis,
) -> Result<(Founding, Keys), StartRefusal> {
    if let Some(founding) = store.founding().await? {
        return Ok((founding, keys::load(ground)?));
    }
    // A first start, or one that was interrupted before anything was promised: keys first, then the identity.
    keys::make(ground)?;
    let keys = keys::load(ground)?;
    let epoch = Epoch { number: 1, id: EpochId::random() };
    let founding = store.found(Founding { control_plane_id: ControlPlaneId::random(), epoch }, now).await?;
    Ok((founding, keys))
}

async fn close(store: Sqlite) {
    // It writes its log back, which may take a moment; a thread of the runtime must not wait for it.
    drop(tokio::task::spawn_blocking(move || store.close()).await);
}

impl Control {
    /// Tells every session, stops every part in reverse, then closes the store.
    pub async fn stop(self) {
        systemd::stopping();
        fleet::drain(&self.plane);
        self.root.stop().await;
        close(self.store).await;
        tracing::info!("stopped");
    }

    /// Resolves when the tree ended by itself: a part failed past its limits, and the process should exit.
    pub async fn ended(&self) -> Ended {
        self.root.ended().await
    }

    /// What its parts share, for tests in process.
    pub fn plane(&self) -> &Arc<Plane> {
        &self.plane
    }
}

#[cfg(test)]
mod tests;
