//! The host's own socket: what root on this machine may ask, with no control plane at hand. It asks the actors and the
//! store and decides nothing itself; whoever is neither root nor the user we run as is turned away unheard.

use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
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
use crate::link::Link;
use crate::link::greeting::unreadable_message;
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
    /// What an operator should hear about the store, if anything.
    pub store_note: Option<String>,
}

/// People and scripts on one machine: enough for all of them, and bounded.
const MOST_CONNECTIONS: usize = 16;
/// How many requests of one connection are worked on at once.
const MOST_REQUESTS: usize = 4;
/// A connection that says nothing for so long is closed.
const IDLE: Duration = Duration::from_secs(60 * 60);
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
    _accepting: JoinSet<()>,
}

impl Actor for Api {
    type Msg = Msg;
    type State = Listening;
    type Arguments = Behind;

    async fn pre_start(&self, _: ActorRef<Msg>, behind: Behind) -> Result<Listening, ActorProcessingErr> {
        let path = behind.ground.socket();
        let mut accepting = JoinSet::new();
        let (first, behind, place) = (bind(&path), Arc::new(behind), path.clone());
        accepting.spawn(async move { accept(bound(first, &place).await, behind).await });
        Ok(Listening { path, _accepting: accepting })
    }

    async fn handle(&self, _: ActorRef<Msg>, msg: Msg, _: &mut Listening) -> Result<(), ActorProcessingErr> {
        match msg {}
    }

    async fn post_stop(&self, _: ActorRef<Msg>, this: &mut Listening) -> Result<(), ActorProcessingErr> {
        // Whoever looks for us then hears that nobody is there, instead of a refused connection.
        let _ = std::fs::remove_file(&this.path);
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

/// A socket that only its owner may open, from its first moment on: it is bound beside and renamed. One that lies there
/// is of an earlier life, since the store's lock is ours.
fn bind(path: &Path) -> io::Result<UnixListener> {
    let beside = path.with_extension("new");
    for old in [&beside, path] {
        match std::fs::remove_file(old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    let (way, _open) = reachable(&beside)?;
    let listener = UnixListener::bind(way)?;
    std::fs::set_permissions(&beside, Permissions::from_mode(0o600))?;
    std::fs::rename(&beside, path)?;
    Ok(listener)
}

/// A place that cannot be bound must not end the holding: it is tried until it can be.
async fn bound(first: io::Result<UnixListener>, path: &Path) -> UnixListener {
    let mut tried = first;
    let mut said = false;
    loop {
        match tried {
            Ok(listener) => return listener,
            Err(error) if !said => {
                tracing::error!(%error, path = %path.display(), "local socket not bound; trying again");
                said = true;
            }
            Err(_) => {}
        }
        tokio::time::sleep(BIND_AGAIN).await;
        tried = bind(path);
    }
}

const BIND_AGAIN: Duration = Duration::from_secs(5);

async fn accept(listener: UnixListener, behind: Arc<Behind>) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    // Dropped with this future, it ends every connection.
    let mut connections = JoinSet::new();
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) if is_trusted(&stream) => {
                let behind = Arc::clone(&behind);
                connections.spawn(async move {
                    serve(stream, behind).await;
                    drop(permit);
                });
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
        _ = exchange.run() => {}
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
        let (note, sandbox) = (self.store_note.clone(), self.ground.is_sandbox());
        let read = self.store.off(move |store| status::read(store, Some(view), note, sandbox)).await;
        read.map_err(unreadable)
    }
}

fn no_answer(error: AskError) -> Refusal {
    Refusal::new(
        "host_busy",
        format!("the host did not answer: {}", chain(&error)),
        "a part of it is being started anew, or works on something long; what was asked may still be done",
        "ask again, and look at the journal of tenure-host",
    )
}

#[cfg(test)]
mod tests;
