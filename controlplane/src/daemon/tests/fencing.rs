//! A machine that comes back after its identity was given to another one.

use tenure_protocol::content::Fetch;
use tenure_protocol::event::{NodeEvent, Spooled};
use tenure_protocol::id::{Digest, EventId, FencingToken, Millis};
use tenure_protocol::machine::NodeState;
use tenure_protocol::proof::{NodeKey, Purpose};
use tenure_protocol::refusal::Refusal;
use tenure_protocol::session::{Heartbeat, Renew};

use super::declaring::{folder, module};
use super::scripted::{Dialled, Host, SOON, Up, name, up};

fn event(number: u8) -> NodeEvent {
    NodeEvent {
        id: EventId::from_bytes([number; 16]),
        at: Millis(number.into()),
        kind: "drift_repaired".to_owned(),
        key: Some("file:/etc/motd".to_owned()),
        text: "mode was 0600".to_owned(),
    }
}

/// The old host, and the new one that has its identity now.
async fn moved(up: &Up) -> (Host, Host) {
    let old = up.host("edge-1").await;
    let invited = up.reinvite("edge-1", true).await.unwrap();
    let key = NodeKey::generate().unwrap();
    let enrolled = up.enrol(invited.token.reveal(), &key).await.unwrap();
    let new = Host { key, enrolled, store_id: tenure_protocol::id::StoreId::random(), sessions: 0 };
    (old, new)
}

/// Greets as a host that has an identity; the connection stays, and what it was told.
async fn greet(up: &Up, host: &Host) -> (Dialled, Refusal) {
    let mut dialled = up.dial().await;
    let hello = host.hello(&dialled.binding(Purpose::Session));
    let refused = dialled.ask("fleet", &hello).await.unwrap_err();
    (dialled, refused)
}

// rule: N-05
// rule: X-9
// case: O-57
#[tokio::test]
async fn a_machine_that_was_fenced_is_told_so_and_what_it_did_is_taken_as_what_it_is() {
    let up = up().await;
    let (old, mut new) = moved(&up).await;
    let open = new.session(&up).await;
    open.beat().await.unwrap();
    let (mut link, refused) = greet(&up, &old).await;
    assert!(refused.is("fenced"), "{refused:?}");
    assert!(refused.remedy.contains("tenure reinvite edge-1"), "{refused:?}");
    for _ in 0..2 {
        let told = link.ask("node/edge-1", &Spooled { events: vec![event(7)] }).await.unwrap();
        assert_eq!(told.events, [event(7).id], "stored once, acknowledged each time");
    }
    let told: Vec<_> =
        up.events("edge-1").await.into_iter().filter(|(kind, _)| kind == "drift_repaired").collect();
    assert_eq!(told, [("drift_repaired".to_owned(), "by enrolment 1 (fenced): mode was 0600".to_owned())]);
    open.beat().await.unwrap();
    let detail = up.node("edge-1").await;
    assert_eq!((detail.fencing_token, detail.line.state), (FencingToken(2), NodeState::Ready));
    assert_eq!(detail.session.unwrap().session, open.welcome.session, "the one that holds is not disturbed");
}

// rule: N-05
// case: O-57
#[tokio::test]
async fn a_fenced_machine_gets_no_declaration_no_content_no_lease_and_no_token() {
    let up = up().await;
    let (old, mut new) = moved(&up).await;
    let open = new.session(&up).await;
    up.declare(&folder(&module(&[("/etc/motd", "hello")]))).await.unwrap();
    let heard = up.node("edge-1").await.line.last_contact;
    let facts = tenure_protocol::profile::Facts {
        observed_at: Millis(1),
        running_version: "9".to_owned(),
        disk: tenure_protocol::profile::Disk::Unmeasurable,
    };
    let (mut link, _) = greet(&up, &old).await;
    let wanted = vec![tenure_protocol::content::Wanted { sha256: Digest::of(b"hello"), offset: 0 }];
    assert!(link.ask("reconcile/edge-1", &Fetch { wanted }).await.unwrap_err().is("fenced"));
    assert!(link.ask("lease/edge-1", &Heartbeat { facts }).await.unwrap_err().is("fenced"));
    assert!(link.ask("session/edge-1", &Renew {}).await.unwrap_err().is("fenced"));
    assert!(link.ask("node/edge-2", &Spooled { events: vec![event(1)] }).await.unwrap_err().is("fenced"));
    assert_eq!(up.node("edge-1").await.line.last_contact, heard);
    drop(open);
}

// rule: N-03
// case: O-57
#[tokio::test]
async fn a_key_that_was_never_bound_learns_nothing_of_who_is_fenced() {
    let up = up().await;
    let (mut old, _new) = moved(&up).await;
    old.key = NodeKey::generate().unwrap();
    let (mut link, refused) = greet(&up, &old).await;
    assert!(refused.is("not_proven"), "{refused:?}");
    assert!(link.ask("node/edge-1", &Spooled { events: vec![event(1)] }).await.unwrap_err().is("closed"));
    assert!(up.events("edge-1").await.iter().all(|(kind, _)| kind != "drift_repaired"));
}

// rule: X-9
// rule: N-14
#[tokio::test]
async fn a_retired_machine_tells_what_happened_and_hears_that_it_is_retired() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    drop(host.session(&up).await);
    up.ask("fleet", &tenure_protocol::operator::Retire { node: name("edge-1") }).await.unwrap();
    let (mut link, refused) = greet(&up, &host).await;
    assert!(refused.is("retired"), "{refused:?}");
    link.ask("node/edge-1", &Spooled { events: vec![event(3)] }).await.unwrap();
    let told = up.events("edge-1").await;
    assert!(told.iter().any(|(_, text)| text.starts_with("by enrolment 1 (retired): ")), "{told:?}");
}

/// Tells one event as soon as the connection before it is known to have gone.
async fn told_in_turn(up: &Up, host: &Host, number: u8) {
    let telling = async {
        loop {
            let (mut link, refused) = greet(up, host).await;
            assert!(refused.is("retired"), "{refused:?}");
            if link.ask("node/edge-1", &Spooled { events: vec![event(number)] }).await.is_ok() {
                return;
            }
        }
    };
    tokio::time::timeout(SOON, telling).await.unwrap();
}

// rule: S-22
// case: O-57
#[tokio::test]
async fn a_machine_that_names_another_number_than_its_key_proves_is_taken_for_what_it_proved() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    drop(host.session(&up).await);
    up.ask("fleet", &tenure_protocol::operator::Retire { node: name("edge-1") }).await.unwrap();
    for number in 0..3_u8 {
        host.enrolled.fencing = FencingToken(u64::from(number) * 7);
        told_in_turn(&up, &host, number).await;
    }
    let told = up.events("edge-1").await;
    let marked = told.iter().filter(|(_, text)| text.starts_with("by enrolment 1 (retired): ")).count();
    assert_eq!(marked, 3, "one enrolment, and so one allowance: {told:?}");
}

// rule: S-22
#[tokio::test]
async fn of_two_connections_of_a_withdrawn_machine_one_tells_and_neither_tells_nothing() {
    let up = up().await;
    let (old, _new) = moved(&up).await;
    let (mut first, _) = greet(&up, &old).await;
    let (mut second, refused) = greet(&up, &old).await;
    assert!(refused.is("fenced"), "{refused:?}");
    assert!(second.ask("node/edge-1", &Spooled { events: vec![event(1)] }).await.unwrap_err().is("closed"));
    let nothing = first.ask("node/edge-1", &Spooled { events: vec![] }).await.unwrap_err();
    assert!(nothing.is("fenced"), "{nothing:?}");
    assert_eq!(first.ask("node/edge-1", &Spooled { events: vec![event(1)] }).await.unwrap().events.len(), 1);
}

// rule: S-22
// rule: N-14
#[tokio::test]
async fn a_month_after_a_node_was_retired_its_machine_hears_so_and_nothing_of_it_is_taken() {
    let up = up().await;
    let host = up.host("edge-1").await;
    up.ask("fleet", &tenure_protocol::operator::Retire { node: name("edge-1") }).await.unwrap();
    up.clock.advance(std::time::Duration::from_secs(30 * 24 * 3600));
    let (mut link, refused) = greet(&up, &host).await;
    assert!(refused.is("retired"), "{refused:?}");
    assert!(link.ask("node/edge-1", &Spooled { events: vec![event(1)] }).await.unwrap_err().is("closed"));
    assert!(up.events("edge-1").await.iter().all(|(kind, _)| kind != "drift_repaired"));
}
