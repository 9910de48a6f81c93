//! One node that says too much, and what it costs the others: nothing.

use tenure_protocol::event::{NodeEvent, Spooled};
use tenure_protocol::id::{EventId, Millis};
use tenure_protocol::operator::{Events, Nodes, Resources, Rollout};
use tenure_protocol::outcome::{Outcome, ResourceOutcome};
use tenure_protocol::refusal::Refusal;
use tenure_protocol::wire::exchange::CallError;

use super::declaring::{folder, module, outcome, part, pushed};
use super::scripted::{Open, SOON, Up, name, up};
use crate::ground::Ground;

async fn declared(up: &Up) -> (Open, tenure_protocol::content::Push) {
    let mut host = up.host("edge-1").await;
    let mut open = host.session(up).await;
    up.declare(&folder(&module(&[("/etc/motd", "hello")]))).await.unwrap();
    let push = pushed(up, &mut open).await;
    (open, push)
}

// rule: S-22
#[tokio::test]
async fn a_page_of_long_keys_or_texts_is_cut_and_all_of_it_comes_in_more_pages() {
    let up = up().await;
    let (open, push) = declared(&up).await;
    let key = |number: usize| format!("file:/{number:04}{}", "k".repeat(4000));
    let all: Vec<ResourceOutcome> = (0..200)
        .map(|number| {
            let reason = Some("\u{202e}".repeat(500));
            ResourceOutcome { reason, ..outcome(&key(number), Outcome::Failed) }
        })
        .collect();
    for (number, some) in all.chunks(20).enumerate() {
        let last = number == 9;
        let sent = tenure_protocol::report::Part {
            part: u32::try_from(number).unwrap(),
            last,
            ..part(&push, 1, &all, some)
        };
        assert!(!open.ask(&sent).await.unwrap().resend);
    }
    let (mut got, mut pages, mut after) = (Vec::new(), 0, None);
    loop {
        let page = up.ask("reconcile/edge-1", &Resources { node: name("edge-1"), after }).await.unwrap();
        pages += 1;
        after = page.resources.last().map(|line| line.key.clone());
        got.extend(page.resources.into_iter().map(|line| line.key));
        if !page.more {
            break;
        }
    }
    assert_eq!(got, (0..200).map(key).collect::<Vec<_>>());
    assert!(pages > 5, "{pages}");
    for some in 0..3_u8 {
        let event = |number: u8| NodeEvent {
            id: EventId::from_bytes([some; 16].map(|byte: u8| byte.wrapping_add(number))),
            at: Millis(1),
            kind: "drift_repaired".to_owned(),
            key: Some("\u{202e}".repeat(300)),
            text: "\u{202e}".repeat(500),
        };
        let events = (0..60).map(|number| event(number * 4)).collect();
        open.ask(&Spooled { events }).await.unwrap();
    }
    let newest = up.ask("events", &Events { after: None, node: None }).await.unwrap().events;
    let (mut seen, mut after) = (Vec::new(), 0);
    loop {
        let page = up.ask("events", &Events { after: Some(after), node: None }).await.unwrap();
        after = page.events.last().unwrap().seq;
        seen.extend(page.events);
        if !page.more {
            break;
        }
    }
    assert!(newest.len() < seen.len() && seen.ends_with(&newest));
}

// rule: S-22
#[tokio::test]
async fn a_node_that_refuses_in_a_hundred_thousand_words_spoils_no_list_of_nodes() {
    let up = up().await;
    let (open, push) = declared(&up).await;
    let long = "\u{202e}".repeat(20_000);
    let mut sent = part(&push, 1, &[], &[]);
    sent.summary.revision = None;
    sent.summary.refused = Some(Refusal::new("older", long.clone(), long.clone(), long));
    open.ask(&sent).await.unwrap();
    let line = up.ask("catalogue", &Rollout { after: None }).await.unwrap().nodes.remove(0);
    assert!(line.reason.len() < 2000);
    assert_eq!(up.ask("fleet", &Nodes { after: None }).await.unwrap().nodes.len(), 1);
    assert!(up.node("edge-1").await.report.unwrap().refused.unwrap().means.len() <= 1000);
    up.declare(&folder(&module(&[("/etc/motd", "another")]))).await.unwrap();
}

// rule: S-22
#[tokio::test]
async fn a_node_whose_messages_wait_for_the_store_hears_try_later_and_its_beats_are_answered() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let open = host.session(&up).await;
    let holder = rusqlite::Connection::open(Ground::new(up.folder.path()).store()).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let spooled = Spooled { events: vec![] };
    let mut asked = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (link, spooled, node) = (open.link.clone(), spooled.clone(), open.node.clone());
        asked.spawn(async move { link.call(&format!("node/{node}"), &spooled, SOON).await });
    }
    let first = asked.join_next().await.unwrap().unwrap();
    assert!(matches!(&first, Err(CallError::Refused(refusal)) if refusal.is("try_later")), "{first:?}");
    let heard = tokio::time::timeout(std::time::Duration::from_secs(5), open.beat()).await;
    heard.unwrap().unwrap();
    holder.execute_batch("ROLLBACK").unwrap();
}
