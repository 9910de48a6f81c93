//! Accepts peers of the local socket and serves each, one request after the other.

use std::sync::Arc;
use std::time::Duration;

use tenure_actors::ractor::{Actor, ActorProcessingErr, ActorRef};
use tenure_actors::work::{Panicked, Work, work};
use tenure_protocol::envelope::{Answer, Frame};
use tenure_protocol::refusal::Refusal;
use tenure_protocol::wire::Connection;
use tenure_protocol::wire::connection::PATIENCE;
use tenure_protocol::wire::exchange::{Incoming, Outgoing, exchange};
use tenure_protocol::wire::frame::MOST;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};

use super::{dispatch, peer};
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
const MOST_PEERS: usize = 64;
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
    let places = Arc::new(Semaphore::new(MOST_PEERS));
    let mut peers = tokio::task::JoinSet::new();
    loop {
        // Those that ended leave nothing behind; those that run end with this loop.
        while peers.try_join_next().is_some() {}
        let Ok((stream, _)) = socket.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (plane, place) = (Arc::clone(&plane), Arc::clone(&places).try_acquire_owned());
        peers.spawn(async move {
            match (peer::may_operate(&stream), place) {
                (Ok(()), Ok(_place)) => serve(&plane, stream).await,
                (Err(refusal), _) => refuse(stream, refusal).await,
                (Ok(()), Err(_)) => refuse(stream, crowded()).await,
            }
        });
    }
}

/// Whoever may not speak hears so as the answer to what it asks first.
async fn refuse(stream: UnixStream, refusal: Refusal) {
    let mut connection = Connection::new(stream, MOST);
    if let Ok(Frame::Request(request)) = connection.receive(PATIENCE).await {
        let answer = Answer { re: request.id, result: Err(refusal) };
        // A peer that left meanwhile needs no answer.
        drop(connection.send(&Frame::Answer(answer)).await);
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

async fn serve(plane: &Arc<Plane>, stream: UnixStream) {
    let (outgoing, incoming, frames) = exchange(Connection::new(stream, MOST), SILENCE);
    // Requests end when the frames do, and the frames end when requests no longer hold their queue.
    tokio::join!(frames.patient().run(), requests(plane, outgoing, incoming));
}

async fn requests(plane: &Arc<Plane>, outgoing: Outgoing, mut incoming: mpsc::Receiver<Incoming>) {
    while let Some(unasked) = incoming.recv().await {
        // Nothing comes in as an event here.
        let Incoming::Request(request) = unasked else { continue };
        let result = dispatch::serve(plane, &request).await;
        if outgoing.answer(request.id, result).await.is_err() {
            return;
        }
    }
}
