use std::time::Duration;

use tenure_protocol::envelope::{Frame, Request};
use tenure_protocol::event::{NodeEvent, Spooled};
use tenure_protocol::id::{Epoch, EpochId, EventId, FencingToken, Millis};
use tenure_protocol::machine::{MachineState, NodeState};
use tenure_protocol::operator::{self, Invite, Rejoin};
use tenure_protocol::proof::NodeKey;
use tenure_protocol::session::{Heartbeat, Hello, Renew};
use tenure_protocol::version::ProtocolRange;
use tenure_protocol::wire::codec;
use tenure_protocol::wire::exchange::CallError;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::scripted::{Host, SOON, invitation, name, other_generation, refusal, up};

// rule: N-06
#[tokio::test]
async fn a_session_opens_by_proof_and_is_told_its_windows_and_the_second_its_token_ends() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let open = host.session(&up).await;
    let welcome = &open.welcome;
    assert_eq!((welcome.lease_ms, welcome.heartbeat_ms, welcome.silence_ms), (90_000, 10_000, 25_000));
    assert_eq!(welcome.token_expires, welcome.now.plus(Duration::from_secs(1800)));
    let detail = up.node("edge-1").await;
    assert_eq!(detail.line.machine_state, Some(MachineState::Enrolled));
    assert_eq!(detail.session.unwrap().session, welcome.session);
    up.clock.advance(Duration::from_secs(60));
    let renewed = open.ask(&Renew {}).await.unwrap();
    assert_eq!(renewed.expires, welcome.token_expires.plus(Duration::from_secs(60)));
}

// rule: N-03
#[tokio::test]
async fn before_the_proof_holds_there_is_one_answer_whatever_else_is_wrong() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    up.invite("edge-2").await;
    type Change = fn(Hello) -> Hello;
    let changes: [Change; 5] = [
        |hello| Hello { node: name("ghost"), ..hello },
        |hello| Hello { node: name("edge-2"), ..hello },
        other_generation,
        |hello| Hello { control_plane_id: tenure_protocol::id::ControlPlaneId::random(), ..hello },
        |hello| Hello { proof: NodeKey::generate().unwrap().prove(&claim_of(&hello)), ..hello },
    ];
    for change in changes {
        let refused = host.session_as(&up, change).await.err().unwrap();
        assert!(refused.is("not_proven"), "{refused:?}");
    }
    fn claim_of(hello: &Hello) -> tenure_protocol::proof::Claim<'_> {
        tenure_protocol::proof::Claim {
            purpose: tenure_protocol::proof::Purpose::Session,
            control_plane_id: hello.control_plane_id,
            node: &hello.node,
            generation: hello.generation,
            binding: &[0; 32],
        }
    }
}

// rule: N-05
#[tokio::test]
async fn after_the_proof_each_cause_has_its_own_name() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    type Change = fn(Hello) -> Hello;
    let cases: [(&str, Change); 4] = [
        ("fenced", |hello| Hello { fencing: FencingToken(0), ..hello }),
        ("epoch_behind", |hello| Hello { epoch: Epoch { number: 2, ..hello.epoch }, ..hello }),
        ("epoch_forked", |hello| Hello {
            epoch: Epoch { id: EpochId::from_bytes([1; 16]), ..hello.epoch },
            ..hello
        }),
        ("protocol_not_spoken", |hello| Hello { protocol: ProtocolRange { lowest: 7, highest: 9 }, ..hello }),
    ];
    for (code, change) in cases {
        let refused = host.session_as(&up, change).await.err().unwrap();
        assert!(refused.is(code), "{code}: {refused:?}");
    }
}

// rule: N-07
#[tokio::test]
async fn a_newer_session_supersedes_the_older_which_is_told() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let mut first = host.session(&up).await;
    let second = host.session(&up).await;
    assert_eq!(first.ended().await.as_deref(), Some("superseded"));
    assert!(matches!(first.beat().await, Err(CallError::Gone)));
    second.beat().await.unwrap();
    assert_eq!(up.node("edge-1").await.session.unwrap().session, second.welcome.session);
}

// rule: S-02
#[tokio::test]
async fn an_address_beyond_the_sessions_node_is_never_believed() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let mut other = up.host("edge-2").await;
    let (open, _other) = (host.session(&up).await, other.session(&up).await);
    let heard = up.node("edge-2").await.line.last_contact;
    up.clock.advance(Duration::from_secs(30));
    let body = Heartbeat {
        facts: tenure_protocol::profile::Facts {
            observed_at: Millis(1),
            running_version: "x".to_owned(),
            disk: tenure_protocol::profile::Disk::Unmeasurable,
        },
    };
    assert!(refusal(open.link.call("lease/edge-2", &body, SOON).await).is("not_yours"));
    assert!(refusal(open.link.call("fleet", &body, SOON).await).is("not_yours"));
    assert_eq!(up.node("edge-2").await.line.last_contact, heard);
}

// rule: S-02
#[tokio::test]
async fn what_belongs_to_another_door_is_refused_before_its_body_is_read() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let open = host.session(&up).await;
    let raw = open.link.call_raw("fleet", "retire", vec![0xc1], SOON).await;
    assert!(refusal(raw).is("wrong_door"));
    let raw = open.link.call_raw("fleet", "invite", vec![0xc1], SOON).await;
    assert!(refusal(raw).is("wrong_door"));
    let raw = open.link.call_raw("lease/edge-1", "heartbaet", vec![], SOON).await;
    assert!(refusal(raw).is("unsupported_kind"));
    let raw = open.link.call_raw("lease/edge-1", "heartbeat", vec![0xc1], SOON).await;
    assert!(refusal(raw).is("malformed"));
    assert!(
        refusal(up.operator.call_raw("lease/edge-1", "heartbeat", vec![0xc1], SOON).await).is("wrong_door")
    );
    open.beat().await.unwrap();
}

// rule: X-1
#[tokio::test]
async fn a_node_invited_to_return_by_invitation_needs_a_token_that_has_not_lapsed() {
    let up = up().await;
    let invited =
        up.ask("fleet", &Invite { rejoin: Rejoin::Invitation, ..invitation("edge-1") }).await.unwrap();
    let key = NodeKey::generate().unwrap();
    let enrolled = up.enrol(invited.token.reveal(), &key).await.unwrap();
    let mut host = Host { key, enrolled, store_id: tenure_protocol::id::StoreId::random(), sessions: 0 };
    // Until a session was used, nobody knows that its token arrived.
    host.session(&up).await;
    let open = host.session_as(&up, |hello| hello).await.unwrap();
    open.beat().await.unwrap();
    up.until_used("edge-1").await;
    let token = open.welcome.token.clone();
    let with = |hello| Hello { session_token: Some(token.clone()), ..hello };
    host.session_as(&up, with).await.unwrap();
    assert!(host.session_as(&up, |hello| hello).await.err().unwrap().is("lapsed"));
    up.clock.advance(Duration::from_secs(31 * 60));
    let refused = host.session_as(&up, with).await.err().unwrap();
    assert!(refused.is("lapsed") && refused.remedy.contains("tenure reinvite edge-1"), "{refused:?}");
}

// rule: N-11
#[tokio::test]
async fn a_replayed_spool_changes_nothing_and_is_acknowledged_again() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let open = host.session(&up).await;
    let event = NodeEvent {
        id: EventId::random(),
        at: Millis(77),
        kind: "drift_repaired".to_owned(),
        key: Some("file:/etc/motd".to_owned()),
        text: "mode was 0600".to_owned(),
    };
    for _ in 0..2 {
        let acknowledged = open.ask(&Spooled { events: vec![event.clone()] }).await.unwrap();
        assert_eq!(acknowledged.events, vec![event.id]);
    }
    let page = up.ask("events", &operator::Events { after: None, node: Some(name("edge-1")) }).await.unwrap();
    let told: Vec<_> = page.events.iter().filter(|event| event.kind == "drift_repaired").collect();
    assert!(matches!(&told[..], [one] if one.observed_at == Millis(77) && one.received_at != Millis(77)));
}

// rule: N-08
#[tokio::test]
async fn a_restarted_control_plane_gives_every_lease_a_full_window_and_knows_the_last_contact() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let open = host.session(&up).await;
    open.beat().await.unwrap();
    let before = up.node("edge-1").await.line.last_contact;
    assert!(before.is_some());
    up.clock.advance(Duration::from_secs(3600));
    let up = up.restart().await;
    let detail = up.node("edge-1").await;
    assert_eq!((detail.line.state, detail.line.last_contact), (NodeState::Ready, before));
    let window = Duration::from_secs(90);
    assert_eq!(detail.lease_expires, Some(up.control.plane().now().plus(window)));
}

/// Lets the timers of everything in this test go forward, then real time go on.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

// rule: N-08
#[tokio::test]
async fn a_silent_node_is_lost_exactly_once_and_ready_again_when_it_beats() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let open = host.session(&up).await;
    open.beat().await.unwrap();
    pass(Duration::from_secs(80)).await;
    assert_eq!(up.node("edge-1").await.line.state, NodeState::Ready);
    pass(Duration::from_secs(11)).await;
    let detail = up.until("edge-1", |detail| detail.line.state == NodeState::Lost).await;
    assert_eq!(detail.lease_expires, None);
    for _ in 0..3 {
        pass(Duration::from_secs(200)).await;
        assert_eq!(up.node("edge-1").await.line.state, NodeState::Lost);
    }
    // Its connection said nothing for longer than silence is believed, too.
    up.until("edge-1", |detail| detail.session.is_none()).await;
    let again = host.session(&up).await;
    again.beat().await.unwrap();
    up.until("edge-1", |detail| detail.line.state == NodeState::Ready).await;
    let kinds: Vec<String> = up.events("edge-1").await.into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["invited", "enrolled", "lost", "ready_again"]);
}

// rule: N-06
#[tokio::test]
async fn a_session_whose_token_is_not_renewed_ends_by_name_and_one_that_renews_goes_on() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let mut open = host.session(&up).await;
    let step = Duration::from_secs(20);
    let minutes = |count: u64| count * 60 / 20;
    for _ in 0..minutes(20) {
        pass(step).await;
        open.beat().await.unwrap();
    }
    open.ask(&Renew {}).await.unwrap();
    for _ in 0..minutes(20) {
        pass(step).await;
        open.beat().await.unwrap();
    }
    for _ in 0..=minutes(10) {
        pass(step).await;
        if open.beat().await.is_err() {
            break;
        }
    }
    assert_eq!(open.ended().await.as_deref(), Some("session_lapsed"));
}

// rule: N-07
#[tokio::test]
async fn a_node_actor_that_crashed_still_supersedes_the_session_before_it() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let mut first = host.session(&up).await;
    crate::fleet::find(up.control.plane(), &name("edge-1")).unwrap().crash();
    let again = async {
        loop {
            match host.session_as(&up, |hello| hello).await {
                Ok(open) => return open,
                Err(refused) => assert!(refused.is("try_later"), "{refused:?}"),
            }
        }
    };
    let second = tokio::time::timeout(SOON, again).await.unwrap();
    assert_eq!(first.ended().await.as_deref(), Some("superseded"));
    second.beat().await.unwrap();
}

// rule: X-3
#[tokio::test]
async fn when_the_link_breaks_the_node_stays_ready_and_the_machine_is_disconnected() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let open = host.session(&up).await;
    drop(open);
    let detail = up.until("edge-1", |detail| detail.session.is_none()).await;
    assert_eq!(detail.line.state, NodeState::Ready);
    assert_eq!(detail.line.machine_state, Some(MachineState::Disconnected));
}

// rule: S-22
#[tokio::test]
async fn a_greeting_above_its_bound_gets_no_answer_and_costs_a_connection() {
    let up = up().await;
    let mut link = up.dial().await;
    let request =
        Request { to: "fleet".to_owned(), id: 1, kind: "session.hello".to_owned(), body: vec![0; 5000] };
    link.connection.send(&Frame::Request(request)).await.unwrap();
    assert!(link.connection.receive(SOON).await.is_err());
    assert!(codec::decode::<Hello>(&[0xc1]).is_err());
    up.host("edge-1").await;
}

// rule: S-22
#[tokio::test]
async fn nonsense_on_the_link_and_on_the_socket_costs_a_connection_and_nothing_else() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let open = host.session(&up).await;
    let mut raw = tokio::net::TcpStream::connect(up.control.address).await.unwrap();
    raw.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    // TLS answers with an alert, and closes.
    raw.read_to_end(&mut answer).await.unwrap();
    assert!(answer.len() < 64);
    let mut socket = tokio::net::UnixStream::connect(&up.control.socket).await.unwrap();
    socket.write_all(&[0xff; 64]).await.unwrap();
    assert_eq!(socket.read(&mut [0; 8]).await.unwrap(), 0);
    for kind in ["nodes", "declare", "invite", "no.such.kind", "session.hello"] {
        let refused = refusal(up.operator.call_raw("fleet", kind, vec![0xc1; 9], SOON).await);
        assert!(
            ["malformed", "wrong_address", "unsupported_kind", "wrong_door"]
                .iter()
                .any(|code| refused.is(code))
        );
    }
    open.beat().await.unwrap();
}

// rule: S-22
#[tokio::test]
async fn whoever_connects_and_says_nothing_is_let_go_after_ten_seconds() {
    let up = up().await;
    let mut silent = tokio::net::TcpStream::connect(up.control.address).await.unwrap();
    let mut shaken = up.dial().await;
    up.node_count().await;
    pass(Duration::from_secs(11)).await;
    assert_eq!(silent.read(&mut [0; 8]).await.unwrap_or(0), 0);
    assert!(shaken.connection.receive(SOON).await.is_err());
}

// rule: X-10
#[tokio::test]
async fn a_control_plane_that_stops_says_draining_and_nothing_that_costs_a_host_anything() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let mut open = host.session(&up).await;
    let stopping = tokio::spawn(up.control.stop());
    assert_eq!(open.ended().await.as_deref(), Some("draining"));
    stopping.await.unwrap();
}
