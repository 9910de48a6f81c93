//! One connection from its first byte to its first answer. The frame that comes first decides: an enrolment, which
//! ends with its answer, or a session, which is handed to an actor of its own. Everything else ends here.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tenure_protocol::enrolment::{self, Join, Verified};
use tenure_protocol::envelope::{Answer, Frame, Request};
use tenure_protocol::kind::{Door, admit};
use tenure_protocol::proof::{Binding, Claim, Purpose};
use tenure_protocol::refusal::{Explain as _, Refusal};
use tenure_protocol::session as link;
use tenure_protocol::token::{Invitation, Presented};
use tenure_protocol::version::SPOKEN;
use tenure_protocol::wire::connection::PATIENCE;
use tenure_protocol::wire::frame::{MOST, MOST_GREETING};
use tenure_protocol::wire::{Connection, codec, tls};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::node::recognise::SessionRefusal;
use crate::node::redeem::{EnrolRefusal, valid};
use crate::node::{Node, Opened, Redemption, attend};
use crate::plane::Plane;
use crate::session::Beginning;

use super::pool::Place;

type Link = Connection<TlsStream<TcpStream>>;

/// The handshake and the first frame together.
const WITHIN: Duration = PATIENCE;

/// What a connection can prove by: one binding for each purpose a greeting may have.
struct Bindings {
    enrol: Binding,
    session: Binding,
}

/// Greets whoever came. A stranger that breaks off is not worth a line.
pub(super) async fn greet(plane: &Arc<Plane>, stream: TcpStream, from: SocketAddr, place: &Place) {
    let met = tokio::time::timeout(WITHIN, meet(plane, stream)).await;
    let Ok(Some((mut connection, bindings, request))) = met else { return };
    let from = from.to_string();
    let refused = match admit(&request.kind, Door::Greeting) {
        Err(refusal) => Err(refusal),
        Ok(kind) if kind.name == "session.hello" => {
            match open(plane, &request, &bindings.session, from).await {
                Ok(opened) => {
                    place.leave();
                    return begin(plane, connection, request.id, opened).await;
                }
                Err(refusal) => Err(refusal),
            }
        }
        Ok(_) => enrol(plane, &mut connection, &request, &bindings.enrol, from, place).await,
    };
    if let Err(refusal) = refused {
        answer(&mut connection, request.id, Err(refusal)).await;
    }
    let (_, mut writer) = connection.split();
    writer.close().await;
}

async fn meet(plane: &Plane, stream: TcpStream) -> Option<(Link, Bindings, Request)> {
    // Small frames both ways: waiting to fill a segment would cost each of them a round trip.
    drop(stream.set_nodelay(true));
    let stream = TlsAcceptor::from(Arc::clone(&plane.keys.server)).accept(stream).await.ok()?;
    let (_, session) = stream.get_ref();
    let bindings = Bindings {
        enrol: tls::binding(session, Purpose::Enrol).ok()?,
        session: tls::binding(session, Purpose::Session).ok()?,
    };
    let mut connection = Connection::new(stream, MOST_GREETING);
    match connection.receive(WITHIN).await.ok()? {
        Frame::Request(request) => Some((connection, bindings, request)),
        Frame::Answer(_) | Frame::Event(_) => None,
    }
}

async fn answer(connection: &mut Link, re: u64, result: Result<Vec<u8>, Refusal>) -> bool {
    connection.send(&Frame::Answer(Answer { re, result })).await.is_ok()
}

async fn enrol(
    plane: &Arc<Plane>,
    connection: &mut Link,
    request: &Request,
    binding: &Binding,
    from: String,
    place: &Place,
) -> Result<(), Refusal> {
    let hello: enrolment::Hello =
        codec::decode(&request.body).map_err(|_| EnrolRefusal::NotProven.refusal())?;
    let presented = verified(plane, &hello, binding).map_err(|refusal| refusal.refusal())?;
    let protocol = SPOKEN
        .common(hello.protocol)
        .ok_or_else(|| SessionRefusal::Protocol(presented.invitation.node.clone()).refusal())?;
    place.leave();
    // Nothing is redeemed yet; the machine is known well enough for larger frames.
    if !answer(connection, request.id, Ok(codec::encode(&Verified { protocol }))).await {
        return Ok(());
    }
    connection.set_most(MOST);
    let Ok(Frame::Request(second)) = connection.receive(PATIENCE).await else { return Ok(()) };
    let result = join(plane, &second, presented, &hello, protocol, from).await;
    answer(connection, second.id, result).await;
    Ok(())
}

/// The first door: MAC, then key, then what the token says of itself. No store is asked (N-03).
fn verified(plane: &Plane, hello: &enrolment::Hello, binding: &Binding) -> Result<Presented, EnrolRefusal> {
    let presented = Presented::parse(hello.token.reveal()).map_err(|_| EnrolRefusal::NotProven)?;
    plane.keys.signer.judge(&presented).map_err(|_| EnrolRefusal::NotProven)?;
    let Invitation { control_plane_id, node, generation, .. } = &presented.invitation;
    let claim = Claim {
        purpose: Purpose::Enrol,
        control_plane_id: *control_plane_id,
        node,
        generation: *generation,
        binding,
    };
    if !hello.key.proves(&claim, &hello.proof) {
        return Err(EnrolRefusal::NotProven);
    }
    valid(&presented.invitation, plane.founding.control_plane_id, plane.founding.epoch, plane.now())?;
    Ok(presented)
}

async fn join(
    plane: &Arc<Plane>,
    request: &Request,
    presented: Presented,
    hello: &enrolment::Hello,
    protocol: u16,
    from: String,
) -> Result<Vec<u8>, Refusal> {
    admit(&request.kind, Door::Enrolling)?;
    let join: Join = crate::session::read(request)?;
    let node = presented.invitation.node.clone();
    let node =
        plane.nodes.find(&Node::name(&node)).ok_or_else(|| EnrolRefusal::NotFound { node }.refusal())?;
    let redemption = Redemption { presented, key: hello.key, join, from, protocol };
    Ok(codec::encode(&node.redeem(redemption).await?))
}

async fn open(plane: &Plane, request: &Request, binding: &Binding, from: String) -> Result<Opened, Refusal> {
    let not_proven = || SessionRefusal::NotProven.refusal();
    let hello: link::Hello = codec::decode(&request.body).map_err(|_| not_proven())?;
    let node = plane.nodes.find(&Node::name(&hello.node)).ok_or_else(not_proven)?;
    node.open(Box::new(hello), *binding, from).await
}

async fn begin(plane: &Arc<Plane>, mut connection: Link, greeting: u64, opened: Opened) {
    connection.set_most(MOST);
    let (node, session) = (opened.unbegun.node().clone(), opened.session.clone());
    attend(plane, &node, opened.state).await;
    node.lease.heard(&opened.software);
    let beginning = Beginning { connection, greeting, opened };
    plane.homes.add(node.id(), session.child(plane, beginning)).await;
}
