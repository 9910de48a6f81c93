//! One connection from its first byte to its first answer. The frame that comes first decides: an enrolment, which
//! ends with its answer, or a session, which is handed to an actor of its own. Everything else ends here.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tenure_protocol::enrolment::{self, Join, Verified};
use tenure_protocol::envelope::{Answer, Event, Frame, Request};
use tenure_protocol::kind::{Door, Message as _, admit};
use tenure_protocol::proof::{Binding, Claim, Purpose};
use tenure_protocol::refusal::{Explain as _, Refusal};
use tenure_protocol::session::{self as link, Ended};
use tenure_protocol::token::{Invitation, NotProven, Presented};
use tenure_protocol::version::SPOKEN;
use tenure_protocol::wire::connection::PATIENCE;
use tenure_protocol::wire::frame::{MOST, MOST_GREETING};
use tenure_protocol::wire::{Connection, codec, tls};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::node::recognise::SessionRefusal;
use crate::node::redeem::{EnrolRefusal, valid};
use crate::node::{Node, Opened, Redemption, Withdrawn, attend};
use crate::plane::Plane;
use crate::session::Beginning;

use super::admission::Admission;
use super::parting::part;
use super::pool::{Place, source_of};

type Link = Connection<TlsStream<TcpStream>>;

/// The handshake and the first frame together.
const WITHIN: Duration = PATIENCE;

/// What a connection can prove by: one binding for each purpose a greeting may have.
struct Bindings {
    enrol: Binding,
    session: Binding,
}

/// Greets whoever came. A stranger that breaks off is not worth a line.
pub(super) async fn greet(
    plane: &Arc<Plane>,
    stream: TcpStream,
    from: SocketAddr,
    place: &Place<IpAddr>,
    admission: &Admission,
) {
    let met = tokio::time::timeout(WITHIN, meet(plane, stream)).await;
    let Ok(Some((mut connection, bindings, request))) = met else { return };
    let judged = match admission.enter(source_of(from.ip())) {
        Ok(judged) => judged,
        Err(ended) => return turn_away(connection, &ended).await,
    };
    let from = from.to_string();
    let refused = match admit(&request.kind, Door::Greeting) {
        Err(refusal) => {
            drop(judged);
            Err(refusal)
        }
        Ok(kind) if kind.name == "session.hello" => {
            match open(plane, &request, &bindings.session, from).await {
                Ok(Ok(opened)) => {
                    place.leave();
                    return begin(plane, connection, request.id, opened).await;
                }
                Ok(Err(withdrawn)) => {
                    drop(judged);
                    part(plane, &mut connection, request.id, &withdrawn).await;
                    return goodbye(connection).await;
                }
                // Whoever takes no answer must not keep a place from others.
                Err(refusal) => {
                    drop(judged);
                    Err(refusal)
                }
            }
        }
        Ok(_) => {
            // A machine that joins takes its time between its two frames, and is one of few.
            drop(judged);
            enrol(plane, &mut connection, &request, &bindings.enrol, from, place).await
        }
    };
    if let Err(refusal) = refused {
        answer(&mut connection, request.id, Err(refusal)).await;
    }
    goodbye(connection).await;
}

async fn goodbye(connection: Link) {
    let (_, mut writer) = connection.split();
    writer.close().await;
}

/// Too many come at once: this one is told when to come back, and nothing of it was looked at.
async fn turn_away(mut connection: Link, ended: &Ended) {
    let kind = Ended::KIND.name.to_owned();
    let event = Event { from: "session".to_owned(), seq: 1, kind, body: codec::encode(ended) };
    // One that is gone already comes back as it likes.
    drop(connection.send(&Frame::Event(event)).await);
    goodbye(connection).await;
}

async fn meet(plane: &Plane, stream: TcpStream) -> Option<(Link, Bindings, Request)> {
    // Small frames both ways: waiting to fill a segment would cost each of them a round trip.
    drop(stream.set_nodelay(true));
    let stream = TlsAcceptor::from(Arc::clone(&plane.keys.server)).accept(stream).await.ok()?;
    let (_, session) = stream.get_ref();
    // A client that names no protocol at all is let through by TLS, and is none of ours.
    if session.alpn_protocol() != Some(tls::ALPN_LINK) {
        return None;
    }
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
    place: &Place<IpAddr>,
) -> Result<(), Refusal> {
    let hello: enrolment::Hello =
        codec::decode(&request.body).map_err(|_| EnrolRefusal::NotProven.refusal())?;
    let presented = verified(plane, &hello, binding).map_err(|refusal| refusal.refusal())?;
    let protocol = SPOKEN
        .common(hello.protocol)
        .ok_or_else(|| SessionRefusal::Protocol(presented.invitation.node.clone()).refusal())?;
    // Nothing is redeemed yet; the token's holder is known well enough for larger frames, and so counts apart.
    place.is_invited();
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
    plane.keys.signer.judge(&presented).map_err(|not| match not {
        NotProven::Mac => EnrolRefusal::NotProven,
        NotProven::Signer(no_key) => no_key.into(),
    })?;
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

async fn open(
    plane: &Plane,
    request: &Request,
    binding: &Binding,
    from: String,
) -> Result<Result<Opened, Withdrawn>, Refusal> {
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
