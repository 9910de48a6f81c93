//! The moment in which a session begins: it answers its greeting, and whoever has a word for it reaches it.

use std::time::Duration;

use tenure_protocol::envelope::Frame;
use tenure_protocol::proof::Purpose;
use tenure_protocol::wire::frame::MOST;
use tenure_protocol::wire::{Connection, exchange::exchange};
use tokio::io::DuplexStream;

use super::declaring::{folder, module, pushed};
use super::scripted::{Host, Open, SOON, Up, name, up};
use crate::node::{self, Opened};
use crate::session::Beginning;

/// The node has a session for this host from now on, and its actor is still to begin.
async fn opened(up: &Up, host: &mut Host) -> Opened {
    host.sessions += 1;
    let node = crate::fleet::find(up.control.plane(), &name("edge-1")).unwrap();
    let binding = up.dial().await.binding(Purpose::Session);
    let opened = node.open(Box::new(host.hello(&binding)), binding, "here".to_owned()).await.unwrap();
    let Ok(opened) = opened else { panic!("its standing is withdrawn") };
    node::attend(up.control.plane(), &node, opened.state).await;
    opened
}

/// It begins, and whoever starts it has not noted yet where it is.
async fn begins(up: &Up, host: &Host, opened: Opened) -> Open {
    let (near, far): (DuplexStream, _) = tokio::io::duplex(MOST);
    let (session, welcome) = (opened.session.clone(), (*opened.welcome).clone());
    let beginning = Beginning { connection: Connection::new(near, MOST), greeting: 1, opened };
    session.start(up.control.plane(), beginning).await;
    let mut connection = Connection::new(far, MOST);
    let Frame::Answer(_) = connection.receive(SOON).await.unwrap() else { panic!("no welcome") };
    let (link, incoming, frames) = exchange(connection, Duration::from_secs(600));
    tokio::spawn(frames.run());
    Open { welcome, link, incoming, node: host.enrolled.node.clone() }
}

#[tokio::test]
async fn a_session_that_answered_its_greeting_gets_what_is_declared() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let opened = opened(&up, &mut host).await;
    up.declare(&folder(&module(&[("/etc/motd", "hello")]))).await.unwrap();
    let mut open = begins(&up, &host, opened).await;
    assert_eq!(pushed(&up, &mut open).await.resources, 1);
}

// rule: N-07
#[tokio::test]
async fn a_session_that_was_overtaken_before_it_began_is_told_so_and_ends() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let first = opened(&up, &mut host).await;
    let second = opened(&up, &mut host).await;
    let mut overtaken = begins(&up, &host, first).await;
    assert_eq!(overtaken.ended().await.as_deref(), Some("superseded"));
    let stands = begins(&up, &host, second).await;
    stands.beat().await.unwrap();
}

// rule: N-07
#[tokio::test]
async fn a_session_whose_node_was_revoked_before_it_began_is_told_so_and_not_that_another_took_its_place() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let opened = opened(&up, &mut host).await;
    up.reinvite("edge-1", true).await.unwrap();
    let mut ended = begins(&up, &host, opened).await;
    assert_eq!(ended.ended().await.as_deref(), Some("session_ended"));
}
