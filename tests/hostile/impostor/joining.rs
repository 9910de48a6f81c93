//! A machine that joins while somebody else holds the control plane's certificate.

use std::sync::Arc;

use tenure_controlplane::keys::Keys;
use tenure_protocol::enrolment::{self, Briefing, Enrolled, Verified};
use tenure_protocol::envelope::{Answer, Frame};
use tenure_protocol::id::{FencingToken, Millis, NodeId, NodeUuid};
use tenure_protocol::machine::Mode;
use tenure_protocol::token::Presented;
use tenure_protocol::wire::frame::MOST;
use tenure_protocol::wire::{Connection, codec};
use tenure_tests::sandbox::Sandbox;
use tokio::net::TcpStream;

use super::{Impostor, served};
use crate::bytes::request;
use crate::link::SOON;

/// How a control plane in wrong hands answers a machine that wants to join.
#[derive(Debug, Clone, Copy)]
enum Joining {
    Closes,
    Nonsense,
    LongQuestion,
    ClosesOnTheSecond,
    AnotherNode,
}

async fn join(keys: Arc<Keys>, stream: TcpStream, way: Joining) -> Option<()> {
    let stream = served(Arc::clone(&keys.server), stream).await?;
    let mut connection = Connection::new(stream, MOST);
    let Frame::Request(asked) = connection.receive(SOON).await.ok()? else { return None };
    let answer = |re, body| Frame::Answer(Answer { re, result: Ok(body) });
    match way {
        Joining::Closes => return Some(()),
        Joining::Nonsense => connection.send(&answer(asked.id, vec![0xc1; 3])).await.ok()?,
        Joining::LongQuestion => {
            connection.send(&request(1, "link", "x", vec![0; MOST - 1024])).await.ok()?;
        }
        Joining::ClosesOnTheSecond | Joining::AnotherNode => {
            connection.send(&answer(asked.id, codec::encode(&Verified { protocol: 1 }))).await.ok()?;
            let Frame::Request(second) = connection.receive(SOON).await.ok()? else { return None };
            if matches!(way, Joining::AnotherNode) {
                let hello: enrolment::Hello = codec::decode(&asked.body).ok()?;
                let invitation = Presented::parse(hello.token.reveal()).ok()?.invitation;
                let enrolled = Enrolled {
                    control_plane_id: invitation.control_plane_id,
                    epoch: invitation.epoch,
                    node: NodeId::new("edge-9").ok()?,
                    node_uuid: NodeUuid::from_bytes([5; 16]),
                    rental: invitation.rental,
                    generation: invitation.generation,
                    fencing: FencingToken(u64::MAX),
                    mode: Mode::Converged,
                    enrolled_at: Millis(i64::MAX),
                    roots: vec![keys.root.clone()],
                    briefing: Briefing::default(),
                };
                connection.send(&answer(second.id, codec::encode(&enrolled))).await.ok()?;
            }
        }
    }
    connection.receive(SOON).await.ok().map(drop)
}

// rule: X-10
#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_joins_a_control_plane_in_wrong_hands_hears_a_name_and_stays_what_it_was() {
    let mut impostor = Impostor::new().await;
    let mut machine = Sandbox::empty();
    machine.start_host();
    let token = impostor.token.clone();
    for (way, code) in [
        (Joining::Closes, "no_answer"),
        (Joining::Nonsense, "unreadable_answer"),
        (Joining::LongQuestion, "unreadable_answer"),
        (Joining::ClosesOnTheSecond, "unanswered"),
        (Joining::AnotherNode, "other_answer"),
    ] {
        let keys = Arc::clone(&impostor.keys);
        impostor.plays(move |stream| join(Arc::clone(&keys), stream, way));
        let refused = machine.redeem(&token).expect(3);
        assert!(refused.err.contains(code), "{way:?}: {}", refused.err);
        assert_eq!(
            machine.host(&["status", "--json"]).expect(0).json()["machine_state"],
            "hosted",
            "{way:?}"
        );
        assert_eq!(machine.read("/etc/tenure/node.json"), None, "{way:?}: a manifest was written");
    }
    impostor.ends();
}
