//! What is still taken from a machine whose standing was withdrawn (X-9, O-57): after it proved a key that this identity
//! had, and was told why no session opens, it may tell the events of what it did, and nothing else. They are stored as
//! what an enrolment told that holds no longer. So many messages at a time, on one connection of a node at a time, in a
//! place of the pool that gives way.

use tenure_protocol::envelope::{Answer, Frame, Request};
use tenure_protocol::event::{Acknowledged, Spooled};
use tenure_protocol::kind::{Door, admit};
use tenure_protocol::refusal::Refusal;
use tenure_protocol::wire::connection::PATIENCE;
use tenure_protocol::wire::frame::MOST;
use tenure_protocol::wire::{Connection, codec};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::node::{Node, Withdrawn};
use crate::plane::Plane;

/// Messages on one connection. A host comes again for the rest.
const MOST_MESSAGES: usize = 20;

/// Takes what it has to tell, until it goes.
pub(super) async fn part<S: AsyncRead + AsyncWrite>(
    plane: &Plane,
    connection: &mut Connection<S>,
    greeting: u64,
    withdrawn: &Withdrawn,
) {
    connection.set_most(MOST);
    let mut answer = Answer { re: greeting, result: Err(withdrawn.refusal.clone()) };
    let messages = if withdrawn.turn.is_some() { MOST_MESSAGES } else { 0 };
    for _ in 0..messages {
        if connection.send(&Frame::Answer(answer)).await.is_err() {
            return;
        }
        let Ok(Frame::Request(request)) = connection.receive(PATIENCE).await else { return };
        answer = Answer { re: request.id, result: last_words(plane, &request, withdrawn).await };
    }
    // The last answer is told, and then there is enough.
    drop(connection.send(&Frame::Answer(answer)).await);
}

async fn last_words(plane: &Plane, request: &Request, withdrawn: &Withdrawn) -> Result<Vec<u8>, Refusal> {
    // Whatever else it asks for has the one answer.
    let closed = || withdrawn.refusal.clone();
    admit(&request.kind, Door::Withdrawn).map_err(|_| closed())?;
    if request.to != Node::name(&withdrawn.node) {
        return Err(closed());
    }
    let Spooled { events } = crate::session::read(request)?;
    // Nothing to store must not cost the store anything.
    if events.is_empty() {
        return Err(closed());
    }
    let Withdrawn { node, fencing, refusal, .. } = withdrawn;
    // Whoever reads it must not take it for a word of the enrolment that holds.
    let mark = format!("by enrolment {fencing} ({}): ", refusal.code);
    let taken = plane.store.last_words(node.clone(), *fencing, mark, events, plane.now()).await?;
    taken.map(|events| codec::encode(&Acknowledged { events })).ok_or_else(closed)
}
