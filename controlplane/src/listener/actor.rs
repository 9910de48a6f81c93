//! The accept loop, as work of an actor: when it fails the supervisor begins it anew.

use std::sync::Arc;
use std::time::Duration;

use tenure_actors::ractor::{Actor, ActorProcessingErr, ActorRef};
use tenure_actors::work::{Panicked, Work, work};
use tokio::net::TcpListener;

use super::admission::Admission;
use super::greeting;
use super::pool::{MOST_PER_SOURCE, MOST_STRANGERS, Pool, source_of};
use crate::plane::Plane;

pub(super) struct Accepting;

pub(super) struct Seed {
    pub(super) plane: Arc<Plane>,
    pub(super) socket: Arc<TcpListener>,
}

pub(super) enum Msg {
    Ended(Panicked),
}

impl Actor for Accepting {
    type Msg = Msg;
    type State = Work;
    type Arguments = Seed;

    async fn pre_start(&self, me: ActorRef<Msg>, seed: Seed) -> Result<Work, ActorProcessingErr> {
        // The loop has no end of its own, so that what comes back is a panic.
        Ok(work(&me, accept(seed.plane, seed.socket), |result: Result<std::convert::Infallible, _>| {
            match result {
                Ok(never) => match never {},
                Err(panicked) => Msg::Ended(panicked),
            }
        }))
    }

    async fn handle(&self, _: ActorRef<Msg>, msg: Msg, _: &mut Work) -> Result<(), ActorProcessingErr> {
        match msg {
            Msg::Ended(panicked) => Err(panicked.into()),
        }
    }
}

/// Without descriptors to spare, accepting fails at once and again; a moment lets some come free.
const PAUSE: Duration = Duration::from_millis(200);

async fn accept(plane: Arc<Plane>, socket: Arc<TcpListener>) -> std::convert::Infallible {
    let (pool, admission) = (Pool::new(MOST_STRANGERS, MOST_PER_SOURCE), Admission::default());
    loop {
        match socket.accept().await {
            Ok((stream, from)) => {
                let (plane, place) = (Arc::clone(&plane), pool.place(source_of(from.ip())));
                let (number, admission) = (place.number(), admission.clone());
                let task = tokio::spawn(async move {
                    greeting::greet(&plane, stream, from, &place, &admission).await;
                });
                pool.hold(number, task.abort_handle());
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
