//! The host's own socket: what root on this machine may ask, with no control plane at hand. It asks the actors and the
//! store and decides nothing itself; whoever is neither root nor the user we run as is turned away unheard.

use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tenure_actors::socket::{InTheWay, vacant};
use tenure_actors::{Address, AskError, Child};
use tenure_protocol::envelope::Request;
use tenure_protocol::kind::{self, Door, Message};
use tenure_protocol::refusal::{Explain as _, Refusal, chain};
use tenure_protocol::rescue::{Applied, Apply, Enrol, Outcomes, OutcomesPage, Owned, OwnedPage, Status};
use tenure_protocol::token::Presented;
use tenure_protocol::wire::exchange::exchange;
use tenure_protocol::wire::{Connection, Incoming, Outgoing, codec, frame};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::enrol::EnrolError;
use crate::ground::Ground;
use crate::ground::own::Inode;
use crate::link::Link;
use crate::link::greeting::unreadable_message;
use crate::outbox::Outbox;
use crate::reconcile::{Reconcile, unreadable};
use crate::status;
use crate::store::Store;

/// What the socket asks.
#[derive(Clone)]
pub struct Behind {
    /// Where.
    pub ground: Ground,
    /// The store.
    pub store: Store,
    /// The link.
    pub link: Link,
    /// The loop.
    pub reconcile: Reconcile,
    /// What the last pass had to tell, also where the store could not keep it.
    pub outbox: Outbox,
}

/// People and scripts on one machine: enough for all of them, and bounded. As many again may be hearing that there is
/// no room; whoever comes beyond those is let go unheard.
pub const MOST_CONNECTIONS: usize = 16;
/// How many requests of one connection are worked on at once.
const MOST_REQUESTS: usize = 4;
/// A connection that says nothing for so long is closed; while it waits for an answer, that is not counted.
const IDLE: Duration = Duration::from_secs(10 * 60);
/// A pass over very many resources takes its time; whoever waits may stop waiting.
const PASS_WITHIN: Duration = Duration::from_secs(60 * 60);
const PAGE: u32 = 200;

/// The actor, for the tree.
pub fn child(behind: Behind) -> Child {
    Child::new("api", Address::vacant(), move || (Api, behind.clone()))
}

struct Api;

enum Msg {}

/// Listens for as long as it lives.
struct Listening {
    path: PathBuf,
    /// What was bound there; none: nothing was.
    bound: Arc<OnceLock<Inode>>,
    _accepting: JoinSet<()>,
}

impl Actor for Api {
    type Msg = Msg;
    type State = Listening;
    type Arguments = Behind;

    async fn pre_start(&self, _: ActorRef<Msg>, behind: Behind) -> Result<Listening, ActorProcessingErr> {
        let path = behind.ground.socket();
        let mut accepting = JoinSet::new();
        let ours = Arc::new(OnceLock::new());
        let first = bind(&path, &ours);
        let (behind, place, mark) = (Arc::new(behind), path.clone(), Arc::clone(&ours));
        accepting.spawn(async move { accept(bound(first, &place, &mark).await, behind).await });
        Ok(Listening { path, bound: ours, _accepting: accepting })
    }

    async fn handle(&self, _: ActorRef<Msg>, msg: Msg, _: &mut Listening) -> Result<(), ActorProcessingErr> {
        match msg {}
    }

    async fn post_stop(&self, _: ActorRef<Msg>, this: &mut Listening) -> Result<(), ActorProcessingErr> {
        // Whoever looks for us then hears that nobody is there, instead of a refused connection. What anybody else has
        // there stays; while we listen, the number of ours is nobody else's.
        if this.bound.get().is_some_and(|ours| inode(&this.path).is_ok_and(|there| there == *ours)) {
            let _ = std::fs::remove_file(&this.path);
        }
        Ok(())
    }
}

/// A path under which the kernel takes a socket, however long its own path is: at most about a hundred bytes, so a
/// longer one goes by way of its directory. The file keeps that way open.
pub(crate) fn reachable(path: &Path) -> io::Result<(PathBuf, Option<File>)> {
    const MOST: usize = 100;
    match (path.parent(), path.file_name()) {
        (Some(directory), Some(name)) if path.as_os_str().len() > MOST => {
            let directory = File::open(directory)?;
            let way = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
            Ok((way, Some(directory)))
        }
        _ => Ok((path.to_owned(), None)),
    }
}

/// Why there is no local socket.
#[derive(Debug, thiserror::Error)]
enum BindError {
    /// What lies there is somebody else's.
    #[error(transparent)]
    InTheWay(#[from] InTheWay),
    /// The system does not let us.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A socket that only its owner may open, from its first moment on: it is bound beside and renamed over one that an
/// earlier life left. What anybody else has there stays. `ours`: is told which it is.
fn bind(path: &Path, ours: &OnceLock<Inode>) -> Result<UnixListener, BindError> {
    let (own, _open) = reachable(path)?;
    vacant(path, &own)?;
    let beside = path.with_extension("new");
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        Ok(()) | Err(_) => {}
    }
    let (way, _open) = reachable(&beside)?;
    let listener = UnixListener::bind(way)?;
    std::fs::set_permissions(&beside, Permissions::from_mode(0o600))?;
    let inode = inode(&beside)?;
    std::fs::rename(&beside, path)?;
    // It is bound once in a life.
    let _ = ours.set(inode);
    Ok(listener)
}

fn inode(path: &Path) -> io::Result<Inode> {
    path.symlink_metadata().map(|seen| Inode { dev: seen.dev(), ino: seen.ino() })
}

/// A place that cannot be bound must not end the holding: it is tried until it can be.
async fn bound(first: Result<UnixListener, BindError>, path: &Path, ours: &OnceLock<Inode>) -> UnixListener {
    let mut tried = first;
    let mut said = false;
    loop {
        match tried {
            Ok(listener) => return listener,
            Err(error) if !said => {
                tracing::error!(
                    error = %chain(&error),
                    path = %path.display(),
                    means = "the machine is held; `tenure-host` commands cannot reach this host meanwhile",
                    "do" = "move away what lies there, or stop who listens there; it is tried again by itself",
                    "local socket not bound"
                );
                said = true;
            }
            Err(_) => {}
        }
        tokio::time::sleep(BIND_AGAIN).await;
        tried = bind(path, ours);
    }
}

const BIND_AGAIN: Duration = Duration::from_secs(5);

async fn accept(listener: UnixListener, behind: Arc<Behind>) {
    let [room, doorstep] = [(); 2].map(|()| Arc::new(Semaphore::new(MOST_CONNECTIONS)));
    // Dropped with this future, it ends every connection.
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) if is_trusted(&stream) => {
                let behind = Arc::clone(&behind);
                if let Ok(permit) = Arc::clone(&room).try_acquire_owned() {
                    connections.spawn(async move {
                        serve(stream, behind).await;
                        drop(permit);
                    });
                } else if let Ok(permit) = Arc::clone(&doorstep).try_acquire_owned() {
                    connections.spawn(async move {
                        Connection::new(stream, frame::MOST).turn_away(crowded()).await;
                        drop(permit);
                    });
                }
            }
            Ok(_) => {}
            Err(error) => {
                // Out of descriptors, most likely: others will be closed.
                tracing::warn!(%error, "api connection not accepted");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

fn is_trusted(stream: &UnixStream) -> bool {
    let ours = nix::unistd::geteuid().as_raw();
    match stream.peer_cred() {
        Ok(peer) if peer.uid() == 0 || peer.uid() == ours => true,
        Ok(peer) => {
            tracing::warn!(uid = peer.uid(), "api connection refused");
            false
        }
        Err(error) => {
            tracing::warn!(%error, "api connection refused: nobody says who it is");
            false
        }
    }
}

async fn serve(stream: UnixStream, behind: Arc<Behind>) {
    let (outgoing, mut incoming, exchange) = exchange(Connection::new(stream, frame::MOST), IDLE);
    let room = Arc::new(Semaphore::new(MOST_REQUESTS));
    let mut requests = JoinSet::new();
    let answering = async {
        while let Some(came) = incoming.recv().await {
            let Incoming::Request(request) = came else { continue };
            let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
            let (outgoing, behind) = (outgoing.clone(), Arc::clone(&behind));
            requests.spawn(async move {
                respond(&behind, &outgoing, request).await;
                drop(permit);
            });
            while requests.try_join_next().is_some() {}
        }
    };
    tokio::select! {
        _ = exchange.patient().run() => {}
        () = answering => {}
    }
}

async fn respond(behind: &Behind, outgoing: &Outgoing, request: Request) {
    let id = request.id;
    let result = dispatch(behind, request).await;
    // Whoever asked may have gone.
    let _ = outgoing.answer(id, result).await;
}

async fn dispatch(behind: &Behind, request: Request) -> Result<Vec<u8>, Refusal> {
    let kind = kind::admit(&request.kind, Door::HostSocket)?;
    let body = &request.body;
    if kind == Status::KIND {
        read::<Status>(body)?;
        return Ok(codec::encode(&behind.status().await?));
    }
    if kind == Enrol::KIND {
        let enrol = read::<Enrol>(body)?;
        let token =
            Presented::parse(enrol.token.reveal()).map_err(|error| EnrolError::from(error).refusal())?;
        let enrolled = behind.link.enrol(token).await.map_err(no_answer)??;
        return Ok(codec::encode(&enrolled));
    }
    if kind == Apply::KIND {
        read::<Apply>(body)?;
        let summary = behind.reconcile.ask(PASS_WITHIN).await.map_err(no_answer)??;
        return Ok(codec::encode(&Applied { summary }));
    }
    if kind == Outcomes::KIND {
        let Outcomes { after } = read(body)?;
        let outcomes = behind.store.off(move |store| store.outcomes_page(after.as_deref(), PAGE + 1)).await;
        let (outcomes, more) = page(outcomes.map_err(unreadable)?);
        return Ok(codec::encode(&OutcomesPage { outcomes, more }));
    }
    let Owned { after } = read(body)?;
    let owned = behind.store.off(move |store| store.owned_page(after.as_deref(), PAGE + 1)).await;
    let (owned, more) = page(owned.map_err(unreadable)?);
    Ok(codec::encode(&OwnedPage { owned, more }))
}

fn read<M: Message>(body: &[u8]) -> Result<M, Refusal> {
    codec::decode(body).map_err(|error| unreadable_message(&error))
}

/// A page, and whether there is more: one line more was asked for than a page has.
fn page<T>(mut lines: Vec<T>) -> (Vec<T>, bool) {
    let most = usize::try_from(PAGE).unwrap_or(usize::MAX);
    let more = lines.len() > most;
    lines.truncate(most);
    (lines, more)
}

impl Behind {
    async fn status(&self) -> Result<tenure_protocol::rescue::StatusIs, Refusal> {
        let view = self.link.view().await.map_err(no_answer)?;
        let ground = self.ground.clone();
        let look = move |store: &Store| status::read(store, &ground, Some(view), store.store_note()?);
        let read = self.store.off(look).await;
        let mut status = read.map_err(unreadable)?;
        if let Some(report) = self.outbox.newest() {
            status.last = Some(report.summary.clone());
            status.read_whole = report.read_whole;
        }
        Ok(status)
    }
}

fn crowded() -> Refusal {
    Refusal::new(
        "too_many_connections",
        format!("{MOST_CONNECTIONS} connections are open on the host's socket"),
        "each of them may hold memory, so that there is a bound; nothing was done",
        "end the programs that hold them (`ss -xp` names them), or try again later",
    )
}

fn no_answer(error: AskError) -> Refusal {
    Refusal::new(
        "host_busy",
        format!("the host did not answer: {}", chain(&error)),
        "a part of it is being started anew, or works on something long; what was asked may still be done",
        "ask again, and look at `journalctl -u tenure-host`",
    )
}

#[cfg(test)]
mod tests;
