//! Many who come at once: so many are judged, and the others hear at once when to come back.

use std::time::Duration;

use tenure_protocol::envelope::{Frame, Request};
use tenure_protocol::kind::Message as _;
use tenure_protocol::machine::NodeState;
use tenure_protocol::operator;
use tenure_protocol::proof::{NodeKey, Purpose};
use tenure_protocol::session::{Ended, Hello};
use tenure_protocol::wire::codec;

use super::scripted::{Dialled, Host, SOON, Up, invitation, refusal, up};
use crate::ground::Ground;

/// What is judged at the same time of one source, which all of them come from here.
const MOST: usize = 8;

async fn say_hello(up: &Up, host: &Host) -> Dialled {
    let mut dialled = up.dial().await;
    let body = codec::encode(&host.hello(&dialled.binding(Purpose::Session)));
    let kind = Hello::KIND.name.to_owned();
    let hello = Frame::Request(Request { to: "fleet".to_owned(), id: 1, kind, body });
    dialled.connection.send(&hello).await.unwrap();
    dialled
}

// case: O-61
#[tokio::test]
async fn while_the_store_is_slow_whoever_comes_beyond_the_bound_hears_at_once_when_to_come_back() {
    let up = up().await;
    let mut hosts = Vec::new();
    for number in 0..=MOST {
        hosts.push(up.host(&format!("edge-{number}")).await);
    }
    let holder = rusqlite::Connection::open(Ground::new(up.folder.path()).store()).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (last, first) = hosts.split_last().unwrap();
    let mut waiting = Vec::new();
    for host in first {
        waiting.push(say_hello(&up, host).await);
    }
    let busy = tokio::time::timeout(Duration::from_secs(5), async {
        // Whether the others are inside already shows only in that the next one is not let in.
        loop {
            let mut link = say_hello(&up, last).await;
            let quick = tokio::time::timeout(Duration::from_millis(300), link.connection.receive(SOON));
            if let Ok(Ok(Frame::Event(event))) = quick.await {
                return event;
            }
        }
    });
    let busy = busy.await.expect("nobody was turned away");
    let ended: Ended = codec::decode(&busy.body).unwrap();
    assert!(busy.kind == Ended::KIND.name && ended.reason.is("busy"), "{ended:?}");
    assert!((3_000..=30_000).contains(&ended.retry_after_ms), "{ended:?}");
    holder.execute_batch("ROLLBACK").unwrap();
    let mut welcomed = 0;
    for mut link in waiting {
        let answered = link.connection.receive(SOON).await;
        welcomed += usize::from(matches!(answered, Ok(Frame::Answer(answer)) if answer.result.is_ok()));
    }
    assert!(welcomed >= MOST - 2, "{welcomed} of those who were let in got their session");
    let mut last = hosts.pop().unwrap();
    last.session(&up).await.beat().await.unwrap();
}

/// A hundred nodes that enrolled and have said nothing since.
async fn a_hundred() -> Up {
    let up = up().await;
    for number in 0..100 {
        let invited = up.invite(&format!("edge-{number:03}")).await;
        up.enrol(invited.token.reveal(), &NodeKey::generate().unwrap()).await.unwrap();
    }
    up
}

async fn in_state(up: &Up, state: NodeState) -> usize {
    let page = up.ask("fleet", &operator::Nodes { after: None }).await.unwrap();
    page.nodes.iter().filter(|line| line.state == state).count()
}

async fn told(up: &Up, kind: &str) -> Vec<String> {
    let events = up.ask("events", &operator::Events { after: None, node: None }).await.unwrap().events;
    events.into_iter().filter(|event| event.kind == kind).map(|event| event.text).collect()
}

/// Lets the timers of everything in this test go forward, then real time go on.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

// case: O-56
// rule: N-08
#[tokio::test]
async fn many_nodes_that_are_lost_at_once_are_one_event_of_the_control_plane() {
    let up = a_hundred().await;
    pass(Duration::from_secs(91)).await;
    let lost = async { while in_state(&up, NodeState::Lost).await < 100 {} };
    tokio::time::timeout(SOON, lost).await.unwrap();
    pass(Duration::from_secs(13)).await;
    let said = async { while told(&up, "nodes_lost").await.is_empty() {} };
    tokio::time::timeout(SOON, said).await.unwrap();
    let said = told(&up, "nodes_lost").await;
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].starts_with("100 nodes were not heard for 90 s (edge-000, ")
            && said[0].contains("and 95 more"),
        "{said:?}"
    );
}

// case: O-56
// case: O-70
#[tokio::test]
async fn the_event_of_many_lost_nodes_waits_for_a_store_that_is_busy() {
    let up = up().await;
    for node in ["edge-1", "edge-2", "edge-3"] {
        up.host(node).await;
    }
    pass(Duration::from_secs(91)).await;
    let lost = async { while in_state(&up, NodeState::Lost).await < 3 {} };
    tokio::time::timeout(SOON, lost).await.unwrap();
    let holder = rusqlite::Connection::open(Ground::new(up.folder.path()).store()).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    pass(Duration::from_secs(13)).await;
    // They wait behind it: when they are refused, it was.
    for _ in 0..2 {
        assert!(refusal(up.ask("fleet", &invitation("edge-4")).await).is("store_busy"));
    }
    holder.execute_batch("ROLLBACK").unwrap();
    // The runtime's clock is moved here: how long this may take is told by another one.
    let until = std::time::Instant::now() + SOON;
    while told(&up, "nodes_lost").await.is_empty() {
        assert!(std::time::Instant::now() < until, "it is never told");
        pass(Duration::from_secs(13)).await;
    }
    let said = told(&up, "nodes_lost").await;
    assert!(said.len() == 1 && said[0].starts_with("3 nodes were not heard"), "{said:?}");
}

// case: O-56
// rule: N-08
#[tokio::test]
async fn after_a_restart_a_hundred_nodes_are_as_they_were_and_none_is_called_lost() {
    let up = a_hundred().await;
    up.clock.advance(Duration::from_secs(600));
    let up = up.restart().await;
    assert_eq!(in_state(&up, NodeState::Ready).await, 100);
    pass(Duration::from_secs(80)).await;
    assert_eq!(
        in_state(&up, NodeState::Ready).await,
        100,
        "ten minutes in which nobody heard are no silence"
    );
    assert!(told(&up, "lost").await.is_empty() && told(&up, "nodes_lost").await.is_empty());
}
