//! The catalogue's mailbox: takes a fleet folder by digest, renders it, and writes declarations, one `declare` at a
//! time, all or nothing. Rendering is pure and runs on a thread of its own; content goes to and from the store directly.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tenure_actors::ractor::{Actor, ActorProcessingErr, ActorRef};
use tenure_actors::work::{Panicked, Work, work};
use tenure_actors::{Address, Child, Reply, answer};
use tenure_protocol::content::{MOST_PIECES, Piece, Wanted};
use tenure_protocol::operator::{Declare, Declared, Render, Rendered};
use tenure_protocol::refusal::{Explain as _, Refusal};

use super::declare;
use super::refusals::CatalogueRefusal;
use crate::node::later;
use crate::plane::Plane;

/// The catalogue. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Catalogue {
    address: Address<Msg>,
}

enum Msg {
    Asked(Asked),
    Done(Result<(), Panicked>),
}

enum Asked {
    Declare(Declare, Reply<Result<Declared, Refusal>>),
    Render(Render, Reply<Result<Rendered, Refusal>>),
}

/// Ten thousand nodes with a thousand files each are rendered in minutes; the command line shows that it waits.
const WITHIN: Duration = Duration::from_secs(15 * 60);
/// Folders that may wait; each is read when its turn comes.
const MOST_WAITING: usize = 32;

impl Catalogue {
    /// Nobody there yet.
    pub fn vacant() -> Self {
        Self { address: Address::vacant() }
    }

    /// The actor for the tree.
    pub fn child(plane: &Arc<Plane>) -> Child {
        let (plane, address) = (Arc::clone(plane), plane.catalogue.address.clone());
        Child::new("catalogue", address, move || (Librarian, Arc::clone(&plane)))
    }

    /// Declares a folder, or says what that would change.
    pub async fn declare(&self, asked: Declare) -> Result<Declared, Refusal> {
        let asked = self.address.ask(WITHIN, |reply| Msg::Asked(Asked::Declare(asked, reply))).await;
        asked.unwrap_or_else(|error| Err(later(&error)))
    }

    /// Renders one node of a folder; writes no declaration.
    pub async fn render(&self, asked: Render) -> Result<Rendered, Refusal> {
        let asked = self.address.ask(WITHIN, |reply| Msg::Asked(Asked::Render(asked, reply))).await;
        asked.unwrap_or_else(|error| Err(later(&error)))
    }

    /// Takes pieces of content.
    pub async fn put(&self, plane: &Plane, pieces: Vec<Piece>) -> Result<(), Refusal> {
        let taken = plane.store.put(pieces, plane.now()).await?;
        taken.map_err(|not| CatalogueRefusal::NotPut(not).refusal())
    }

    /// Gives out pieces of content to an operator.
    pub async fn get(&self, plane: &Plane, wanted: Vec<Wanted>) -> Result<Vec<Piece>, Refusal> {
        if wanted.is_empty() || wanted.len() > MOST_PIECES {
            return Err(CatalogueRefusal::NothingWanted.refusal());
        }
        let pieces = plane.store.pieces(wanted, None).await?;
        pieces.map_err(|sha256| CatalogueRefusal::NoContent(sha256).refusal())
    }
}

struct Librarian;

struct Desk {
    plane: Arc<Plane>,
    waiting: VecDeque<Asked>,
    working: Option<Work>,
}

impl Actor for Librarian {
    type Msg = Msg;
    type State = Desk;
    type Arguments = Arc<Plane>;

    async fn pre_start(&self, _: ActorRef<Msg>, plane: Arc<Plane>) -> Result<Desk, ActorProcessingErr> {
        Ok(Desk { plane, waiting: VecDeque::new(), working: None })
    }

    async fn handle(&self, me: ActorRef<Msg>, msg: Msg, desk: &mut Desk) -> Result<(), ActorProcessingErr> {
        match msg {
            Msg::Asked(asked) => desk.asked(&me, asked),
            Msg::Done(result) => desk.done(&me, result),
        }
        Ok(())
    }
}

impl Desk {
    fn asked(&mut self, me: &ActorRef<Msg>, asked: Asked) {
        if self.waiting.len() < MOST_WAITING {
            self.waiting.push_back(asked);
            return self.next(me);
        }
        match asked {
            Asked::Declare(_, reply) => answer(reply, Err(CatalogueRefusal::Crowded.refusal())),
            Asked::Render(_, reply) => answer(reply, Err(CatalogueRefusal::Crowded.refusal())),
        }
    }

    /// One at a time: a declaration follows the one before it, or would be overtaken by it.
    fn next(&mut self, me: &ActorRef<Msg>) {
        if self.working.is_some() {
            return;
        }
        let Some(asked) = self.waiting.pop_front() else { return };
        let plane = Arc::clone(&self.plane);
        let job = async move {
            match asked {
                Asked::Declare(asked, reply) => answer(reply, declare::declare(&plane, asked).await),
                Asked::Render(asked, reply) => answer(reply, declare::render(&plane, asked).await),
            }
        };
        self.working = Some(work(me, job, Msg::Done));
    }

    fn done(&mut self, me: &ActorRef<Msg>, result: Result<(), Panicked>) {
        if let Err(panicked) = result {
            // Whoever asked was told that the question was dropped.
            tracing::error!(%panicked, "a declaration broke off by a fault of ours; nothing was written");
        }
        self.working = None;
        self.next(me);
    }
}
