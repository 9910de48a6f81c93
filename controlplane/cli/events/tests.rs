use tenure_protocol::id::{Millis, NodeId};
use tenure_protocol::operator::EventsPage;

use super::*;
use crate::caller::tests::{answered_by, asked, ok};
use crate::screen::tests::kept;

fn events() -> Vec<Listed> {
    let event = |seq, node: Option<&str>, kind: &str, key: Option<&str>, text: &str| Listed {
        seq,
        node: node.map(|node| NodeId::new(node).unwrap()),
        kind: kind.to_owned(),
        key: key.map(str::to_owned),
        text: text.to_owned(),
        observed_at: Millis(1_700_000_000_000),
        received_at: Millis(1_700_000_001_000),
    };
    vec![
        event(1, None, "started", None, "epoch 1"),
        event(2, Some("edge-1"), "drift_repaired", Some("file:/etc/a.conf"), "mode was 0666\u{1b}[2J"),
    ]
}

// rule: S-20
#[tokio::test]
async fn events_are_listed_oldest_first_with_what_nodes_said_made_harmless() {
    let control = answered_by(|_| ok::<Events>(EventsPage { events: events(), more: false }));
    let (mut screen, out, _) = kept(false, None);
    run(&command::Events { node: None }, &control, &mut screen).await.unwrap();
    assert_eq!(
        out.text(),
        "\
RECEIVED              NODE    EVENT           WHAT
2023-11-14 22:13:21Z  —       started         epoch 1
2023-11-14 22:13:21Z  edge-1  drift_repaired  file:/etc/a.conf: mode was 0666\\u{1b}[2J
"
    );
}

#[tokio::test]
async fn only_the_named_nodes_events_are_asked_for() {
    let edge = NodeId::new("edge-1").unwrap();
    let expected = edge.clone();
    let control = answered_by(move |request| {
        let asked = asked::<Events>(request).unwrap();
        assert_eq!((asked.node.as_ref(), asked.after), (Some(&expected), None));
        ok::<Events>(EventsPage { events: vec![], more: false })
    });
    let (mut screen, out, _) = kept(true, None);
    run(&command::Events { node: Some(edge) }, &control, &mut screen).await.unwrap();
    assert_eq!(out.text(), "[]\n");
}

// rule: S-20
#[tokio::test]
async fn whatever_an_event_says_no_column_of_it_moves_the_cursor() {
    let page = EventsPage { events: events(), more: false };
    let page = crate::caller::tests::hostile_answer::<Events>(&page);
    let control = answered_by(move |_| ok::<Events>(page.clone()));
    let (mut screen, out, _) = kept(false, None);
    run(&command::Events { node: None }, &control, &mut screen).await.unwrap();
    crate::caller::tests::assert_harmless(&out.text());
}
