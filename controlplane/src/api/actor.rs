//! Accepts peers of the local socket and serves each, one request after the other; only what waits for a node is answered
//! beside what comes after it.

use std::sync::Arc;
use std::time::Duration;

use tenure_actors::ractor::{Actor, ActorProcessingErr, ActorRef};
use tenure_actors::work::{Panicked, Work, work};
use tenure_protocol::foresight::MOST_AT_ONCE;
use tenure_protocol::refusal::Refusal;
use tenure_protocol::wire::Connection;
use tenure_protocol::wire::exchange::{Incoming, Outgoing, exchange};
use tenure_protocol::wire::frame::MOST;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;

use super::{dispatch, peer};
use crate::listener::pool::{Place, Pool};
use crate::plane::Plane;

pub(super) struct Receiving;

pub(super) struct Seed {
    pub(super) plane: Arc<Plane>,
    pub(super) socket: Arc<UnixListener>,
}

pub(super) enum Msg {
    Ended(Panicked),
}

/// Command lines and integrations of one machine; each may have a `declare` in memory.
pub const MOST_PEERS: usize = 64;
/// Those that have connected and asked nothing yet; the oldest gives way.
pub const MOST_WAITING: usize = 64;
/// An integration may wait a while between two questions; while it waits for an answer, that is not counted.
const SILENCE: Duration = Duration::from_secs(10 * 60);
const PAUSE: Duration = Duration::from_millis(200);

impl Actor for Receiving {
    type Msg = Msg;
    type State = Work;
    type Arguments = Seed;

    async fn pre_start(&self, me: ActorRef<Msg>, seed: Seed) -> Result<Work, ActorProcessingErr> {
        let accept = accept(seed.plane, seed.socket);
        Ok(work(&me, accept, |result: Result<std::convert::Infallible, _>| match result {
            Ok(never) => match never {},
            Err(panicked) => Msg::Ended(panicked),
        }))
    }

    async fn handle(&self, _: ActorRef<Msg>, msg: Msg, _: &mut Work) -> Result<(), ActorProcessingErr> {
        match msg {
            Msg::Ended(panicked) => Err(panicked.into()),
        }
    }
}

async fn accept(plane: Arc<Plane>, socket: Arc<UnixListener>) -> std::convert::Infallible {
    let seats = Arc::new(Semaphore::new(MOST_PEERS));
    // Whoever has not asked anything yet is known by its user only, and gives way to the next who comes.
    let doorstep = Pool::new(MOST_WAITING, MOST_WAITING);
    let mut peers = tokio::task::JoinSet::new();
    loop {
        // Those that ended leave nothing behind; those that run end with this loop.
        while peers.try_join_next().is_some() {}
        let Ok((stream, _)) = socket.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (plane, seats) = (Arc::clone(&plane), Arc::clone(&seats));
        let place = doorstep.place(stream.peer_cred().ok().map(|peer| peer.uid()));
        let number = place.number();
        let task = peers.spawn(async move {
            match peer::may_operate(&stream) {
                Ok(()) => serve(&plane, stream, Door { place, seats }).await,
                // Until it has asked, whoever may not speak may have to give way as well.
                Err(refusal) => {
                    Connection::new(stream, MOST).turn_away(refusal).await;
                    drop(place);
                }
            }
        });
        doorstep.hold(number, task);
    }
}

/// What a peer passes when it asks for the first time.
struct Door {
    place: Place<Option<u32>>,
    seats: Arc<Semaphore>,
}

impl Door {
    /// A seat, for as long as the peer stays; none when all are taken.
    fn seat(self) -> Option<OwnedSemaphorePermit> {
        self.place.leave();
        self.seats.try_acquire_owned().ok()
    }
}

fn crowded() -> Refusal {
    Refusal::new(
        "too_many_connections",
        format!("{MOST_PEERS} connections are open on the control plane's socket"),
        "each of them may hold memory, so that there is a bound; nothing was done",
        "try later, or close connections that are not used",
    )
}

async fn serve(plane: &Arc<Plane>, stream: UnixStream, door: Door) {
    let (outgoing, incoming, frames) = exchange(Connection::new(stream, MOST), SILENCE);
    // Requests end when the frames do, and the frames end when requests no longer hold their queue.
    tokio::join!(frames.patient().run(), requests(plane, outgoing, incoming, door));
}

async fn requests(
    plane: &Arc<Plane>,
    outgoing: Outgoing,
    mut incoming: mpsc::Receiver<Incoming>,
    door: Door,
) {
    let (mut door, mut seat) = (Some(door), None);
    // What waits for nodes. It is given up with the connection.
    let mut waiting = JoinSet::new();
    loop {
        let is_full = waiting.len() >= MOST_AT_ONCE;
        let unasked = tokio::select! {
            unasked = incoming.recv(), if !is_full => unasked,
            Some(answered) = waiting.join_next() => match answered {
                Ok(Ok(())) => continue,
                // Nobody takes the answer; or by a fault of ours there is none, and the end of the connection says so.
                Ok(Err(_)) | Err(_) => return,
            },
            () = outgoing.ended(), if is_full => return,
        };
        let request = match unasked {
            Some(Incoming::Request(request)) => request,
            // Nothing comes in as an event here.
            Some(Incoming::Event(_)) => continue,
            None => return,
        };
        if let Some(door) = door.take() {
            seat = door.seat();
        }
        if seat.is_some() && dispatch::waits_for_a_node(&request) {
            let (plane, outgoing) = (Arc::clone(plane), outgoing.clone());
            let answering = async move {
                let result = dispatch::serve(&plane, &request).await;
                outgoing.answer(request.id, result).await
            };
            waiting.spawn(answering);
            continue;
        }
        let result = match &seat {
            Some(_) => dispatch::serve(plane, &request).await,
            None => Err(crowded()),
        };
        if outgoing.answer(request.id, result).await.is_err() || seat.is_none() {
            return;
        }
    }
}
