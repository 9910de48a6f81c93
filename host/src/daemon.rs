//! The daemon: the tree of actors over one store, started in order and stopped in reverse. READY is said when the
//! store is open and the tree is up, never after link or pass. The binary's `run` calls it, and tests run it whole, in
//! process.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_actors::clock::{self, Moment, SharedClock};
use tenure_actors::database::OpenError;
use tenure_actors::supervisor::{Ended, Limits, StartError, Supervisor};
use tenure_actors::watchdog::{self, Progress};
use tenure_actors::{signal, systemd};
use tenure_protocol::refusal::{Explain, chain};
use tenure_protocol::version::SOFTWARE;
use tokio::sync::Notify;

use crate::api::{self, Behind};
use crate::config::{Config, ConfigError};
use crate::ground::Ground;
use crate::heartbeat::Heartbeat;
use crate::identity::keep;
use crate::link::counter::Counter;
use crate::link::dial::{Resolve, system_resolver};
use crate::link::{Around, Asked, Foreseeing, Link};
use crate::manifest;
use crate::outbox::Outbox;
use crate::reconcile::{Reconcile, Setting, SharedMemory};
use crate::store::{OpenStoreError, Opened, Store};

/// How a daemon is to run.
#[derive(Clone)]
pub struct Options {
    /// Where.
    pub ground: Ground,
    /// The time of day.
    pub clock: SharedClock,
    /// How names become addresses.
    pub resolve: Resolve,
    /// How often to look for drift; none: as the configuration says.
    pub reconcile_every: Option<Duration>,
    /// How what is only planned is looked at.
    pub foreseeing: Foreseeing,
}

impl Options {
    /// As a machine runs it.
    pub fn at(ground: Ground) -> Self {
        let foreseeing = Foreseeing::default();
        Self { ground, clock: clock::system(), resolve: system_resolver(), reconcile_every: None, foreseeing }
    }
}

/// A running daemon. Dropping it stops nothing; [`Daemon::stop`] does.
#[derive(Debug)]
pub struct Daemon {
    root: Supervisor,
    store: Store,
    anew: Arc<Notify>,
    /// The link, for whoever is in the same process.
    pub link: Link,
    /// The loop, likewise.
    pub reconcile: Reconcile,
}

/// Why a daemon did not start. Nothing was changed by it.
#[derive(Debug, thiserror::Error)]
pub enum StartRefused {
    /// The directories could not be made.
    #[error("the directories below {} cannot be made or used", root.display())]
    Ground {
        /// Where.
        root: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is no store to work with.
    #[error(transparent)]
    Store(#[from] OpenStoreError),
    /// Preparing the start broke off.
    #[error("the start broke off: {0}")]
    BrokeOff(String),
    /// A part of the tree did not come up.
    #[error("the host could not be started")]
    Tree(#[from] StartError),
}

/// Starts the tree: what holds the machine first, what speaks last.
pub async fn start(options: Options) -> Result<Daemon, StartRefused> {
    start_counting(options, Counter::default()).await
}

/// As [`start`], where sessions were counted already by an earlier life of the tree.
async fn start_counting(options: Options, counter: Counter) -> Result<Daemon, StartRefused> {
    let Options { ground, clock, resolve, reconcile_every, foreseeing } = options;
    let (place, now) = (ground.clone(), clock.now());
    let prepared = tokio::task::spawn_blocking(move || prepare(&place, now)).await;
    let (config, opened) = prepared.map_err(|ended| StartRefused::BrokeOff(ended.to_string()))??;
    let store = opened.store;
    if let Some(note) = &opened.note {
        tracing::error!(note, "store lost");
    }
    let (reconcile, link, heartbeat) = (Reconcile::new(), Link::new(), Heartbeat::new());
    let (outbox, progress, anew) = (Outbox::default(), Progress::new(), Arc::new(Notify::new()));
    let setting = Setting {
        ground: ground.clone(),
        store: store.clone(),
        clock: clock.clone(),
        outbox: outbox.clone(),
        every: reconcile_every.unwrap_or(config.timer),
        full_look: config.full_look,
        memory: SharedMemory::default(),
        progress: progress.clone(),
        anew: Arc::clone(&anew),
    };
    let around = Around {
        ground: ground.clone(),
        store: store.clone(),
        clock: clock.clone(),
        reconcile: reconcile.clone(),
        heartbeat: heartbeat.clone(),
        outbox: outbox.clone(),
        resolve,
        writing: Arc::default(),
        counter,
        asked: Asked::default(),
        foreseeing,
    };
    let state = ground.state();
    let behind =
        Behind { ground, store: store.clone(), link: link.clone(), reconcile: reconcile.clone(), outbox };
    let children =
        vec![reconcile.child(setting), heartbeat.child(clock, state), link.child(around), api::child(behind)];
    let root = Supervisor::start("tenure-host", Limits::default(), children).await;
    let root = match root {
        Ok(root) => root,
        Err(error) => {
            store.close();
            return Err(error.into());
        }
    };
    let daemon = Daemon { root, store, anew, link, reconcile };
    if let Err(error) = watchdog::watch(&daemon.root, &progress).await {
        daemon.stop().await;
        return Err(error.into());
    }
    Ok(daemon)
}

/// Opening reads the whole store once, so this is no work for a runtime's thread.
fn prepare(ground: &Ground, now: Moment) -> Result<(Config, Opened), StartRefused> {
    ground.create().map_err(|source| StartRefused::Ground { root: ground.root().to_owned(), source })?;
    let config = Config::read(&ground.config())?;
    let opened = open(ground, now)?;
    put_manifest(ground, &opened.store);
    Ok((config, opened))
}

/// A rescue command has the store for a moment; another daemon has it for as long as it runs. So the lock is waited
/// for, but not long.
fn open(ground: &Ground, now: Moment) -> Result<Opened, OpenStoreError> {
    let begun = Instant::now();
    loop {
        match Store::open(ground, true, now) {
            Err(OpenStoreError::Open(OpenError::Locked { .. })) if begun.elapsed() < LOCK_PATIENCE => {
                std::thread::park_timeout(Duration::from_millis(50));
            }
            Err(error) => return Err(error),
            Ok(opened) => {
                // It was for passes by hand, and is nothing to a daemon.
                opened.store.drop_look();
                return Ok(opened);
            }
        }
    }
}

/// Longer than any rescue command that only reads.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// The manifest is what the store holds, also where somebody removed it or an older host wrote it.
fn put_manifest(ground: &Ground, store: &Store) {
    match keep::recover(store, ground) {
        Ok(Some(identity)) => match manifest::write(&ground.manifest(), &identity) {
            Ok(true) => tracing::info!(node = %identity.node, "manifest written"),
            Ok(false) => {}
            Err(error) => tracing::warn!(error = %chain(&error), "manifest not written"),
        },
        Ok(None) => {}
        Err(error) => tracing::error!(%error, "identity unreadable"),
    }
}

impl Daemon {
    /// Stops the tree, lets a pass that changes something end with the group it is at, and gives the store free.
    pub async fn stop(self) {
        self.root.stop().await;
        let store = self.store;
        // Closing waits for the writer, which is no work for a runtime's thread.
        let _ = tokio::task::spawn_blocking(move || store.close()).await;
    }

    /// Resolves when the tree has ended, and says how.
    pub async fn ended(&self) -> Ended {
        self.root.ended().await
    }

    /// Resolves when the store is to be opened anew: it was damaged, or put back after somebody removed it.
    pub async fn store_lost(&self) {
        self.anew.notified().await;
    }

    /// The store, for whoever is in the same process.
    pub const fn store(&self) -> &Store {
        &self.store
    }
}

/// Runs until asked to stop or past the tree's limits; answers whether it ended as it should. A store that is lost under
/// it is opened anew with a new tree, as the next start would do it, but with no need of one.
pub async fn run(options: Options) -> Result<bool, StartRefused> {
    let mut opened: Option<Instant> = None;
    let counter = Counter::default();
    // One for all lives of the tree: a signal between two of them is heard too.
    let mut asked = pin!(signal::shutdown_asked());
    loop {
        let daemon = start_counting(options.clone(), counter.clone()).await?;
        let ground = &options.ground;
        tracing::info!(version = %SOFTWARE, root = %ground.root().display(), sandbox = ground.is_sandbox(), "host up");
        systemd::ready("holding this machine");
        let before = opened.replace(Instant::now());
        let well = tokio::select! {
            signal = &mut asked => {
                tracing::info!(%signal, "host stopping");
                Some(true)
            }
            ended = daemon.ended() => {
                match ended {
                    Ended::Stopped => tracing::info!("host stopped"),
                    Ended::GaveUp { child, why } => tracing::error!(%child, why, "host gave up"),
                }
                Some(false)
            }
            () = daemon.store_lost() => {
                let again = before.is_some_and(|before| before.elapsed() < LOSSES_APART);
                if again {
                    tracing::error!("the store was lost again within a minute; the host ends");
                } else {
                    tracing::warn!("the store is opened anew");
                }
                again.then_some(false)
            }
        };
        match well {
            Some(well) => {
                systemd::stopping();
                daemon.stop().await;
                return Ok(well);
            }
            None => daemon.stop().await,
        }
    }
}

/// A disk that damages store after store is no place to go on at once: then the process ends, and whoever keeps it
/// running waits before the next start.
const LOSSES_APART: Duration = Duration::from_secs(60);

impl Explain for StartRefused {
    fn code(&self) -> &'static str {
        match self {
            Self::Ground { .. } => "directories_not_made",
            Self::Config(error) => error.code(),
            Self::Store(error) => error.code(),
            Self::BrokeOff(_) | Self::Tree(_) => "not_started",
        }
    }

    fn meaning(&self) -> String {
        match self {
            Self::Ground { .. } => {
                "the host has no place to remember what it does, so it does nothing".to_owned()
            }
            Self::Config(error) => error.meaning(),
            Self::Store(error) => error.meaning(),
            Self::BrokeOff(_) | Self::Tree(_) => {
                "the host does not run; the machine stays as it is".to_owned()
            }
        }
    }

    fn remedy(&self) -> String {
        match self {
            Self::Ground { root, .. } => {
                format!(
                    "run it as root or as the user the directories belong to, or give a root of your own: \
                     `tenure-host run --sandbox --root DIR` (was {})",
                    root.display()
                )
            }
            Self::Config(error) => error.remedy(),
            Self::Store(error) => error.remedy(),
            Self::BrokeOff(_) | Self::Tree(_) => {
                "put right what the message names, then start it again".to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests;
