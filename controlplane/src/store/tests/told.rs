//! What nodes and the control plane tell: reports, outcomes and events.

use super::*;

fn outcome(key: &str) -> ResourceOutcome {
    ResourceOutcome {
        key: key.to_owned(),
        module: "base".to_owned(),
        outcome: Outcome::Applied,
        since: Millis(1),
        count: 1,
        code: None,
        reason: None,
    }
}

fn revision(number: u64) -> Revision {
    Revision { epoch: epoch(), number: RevisionNumber(number) }
}

fn whole(pass: u64, of: u64, outcomes: Vec<ResourceOutcome>) -> Part {
    let summary = Summary {
        pass,
        trigger: Trigger::Timer,
        revision: Some(revision(of)),
        started: Millis(1),
        took_ms: 1,
        counts: Counts::default(),
        owned: 0,
        digest: report::digest(&outcomes),
        refused: None,
        refused_revision: None,
    };
    Part { summary, full: true, part: 0, outcomes, forgotten: vec![], last: true }
}

fn life(number: u8) -> StoreId {
    StoreId::from_bytes([number; 16])
}

fn fact(node: Option<&str>, kind: &'static str) -> Fact {
    Fact { node: node.map(name), kind, text: kind.to_owned() }
}

// rule: N-11
pub(super) async fn facts_are_told_all_or_none(store: &dyn Store) {
    store.invite(new("a"), Millis(1)).await.unwrap();
    let some = vec![fact(Some("a"), "one"), fact(Some("nobody"), "two")];
    assert!(matches!(store.tell(some, Millis(2)).await, Err(StoreError::Fault(_))));
    assert_eq!(store.events(Some(0), None, 9).await.unwrap().len(), 1);
    // The same fact again is another fact: it has no name of its own.
    store
        .tell(vec![fact(Some("a"), "one"), fact(None, "own"), fact(Some("a"), "one")], Millis(2))
        .await
        .unwrap();
    let told = store.events(Some(1), None, 9).await.unwrap();
    let kinds: Vec<&str> = told.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["one", "own", "one"]);
    assert_eq!(
        told.iter().map(|event| event.node.clone()).collect::<Vec<_>>(),
        [Some(name("a")), None, Some(name("a"))]
    );
}

// rule: S-20
pub(super) async fn pages_of_events_are_bounded_and_one_nodes_are_its_own(store: &dyn Store) {
    for node in ["a", "b"] {
        store.invite(new(node), Millis(1)).await.unwrap();
    }
    for kind in ["1", "2", "3"] {
        store.tell(vec![fact(Some("a"), kind), fact(Some("b"), kind)], Millis(2)).await.unwrap();
    }
    let of = |after, most| store.events(after, Some(name("a")), most);
    let kinds = |told: Vec<Listed>| -> Vec<String> { told.into_iter().map(|event| event.kind).collect() };
    assert_eq!(kinds(of(None, 2).await.unwrap()), ["2", "3"], "the newest, oldest first");
    let first = of(Some(0), 2).await.unwrap();
    let next = of(Some(first[1].seq), 9).await.unwrap();
    assert_eq!(
        (kinds(first), kinds(next)),
        (vec!["invited".to_owned(), "1".to_owned()], vec!["2".to_owned(), "3".to_owned()])
    );
    assert!(of(Some(u64::MAX), 9).await.unwrap().is_empty());
    assert!(of(None, 0).await.unwrap().is_empty());
    assert!(store.events(None, Some(name("nobody")), 9).await.unwrap().is_empty());
    assert_eq!(store.events(Some(0), None, 99).await.unwrap().len(), 8);
}

// rule: N-11
pub(super) async fn a_report_or_event_of_nobody_is_refused_and_leaves_nothing(store: &dyn Store) {
    let event = NodeEvent {
        id: EventId::from_bytes([1; 16]),
        at: Millis(1),
        kind: "applied".to_owned(),
        key: None,
        text: String::new(),
    };
    let told = store.node_events(name("a"), vec![event.clone()], Millis(1)).await;
    let reported = store.report(name("a"), life(1), whole(1, 1, vec![outcome("file:/a")]), Millis(1)).await;
    assert!(matches!((told, reported), (Err(StoreError::Fault(_)), Err(StoreError::Fault(_)))));
    store.invite(new("a"), Millis(2)).await.unwrap();
    assert_eq!(store.events(Some(0), None, 9).await.unwrap().len(), 1);
    assert_eq!(store.summary(name("a")).await.unwrap().unwrap().report, None);
    assert!(store.outcomes(name("a"), None, 9).await.unwrap().is_empty());
    // The same event twice in one frame is one event, and both are acknowledged.
    let known = store.node_events(name("a"), vec![event.clone(), event], Millis(3)).await.unwrap();
    assert_eq!(known, vec![EventId::from_bytes([1; 16]); 2]);
    assert_eq!(store.events(Some(0), None, 9).await.unwrap().len(), 2);
}

pub(super) async fn a_new_life_of_a_hosts_store_reports_anew_and_keeps_what_was_applied(store: &dyn Store) {
    store.invite(new("a"), Millis(1)).await.unwrap();
    let report = |life, part| store.report(name("a"), life, part, Millis(3));
    let both = vec![outcome("file:/a"), outcome("file:/b")];
    let first = report(life(1), whole(9, 4, both)).await.unwrap();
    assert_eq!(first, PartStored::Whole { newly: Some(revision(4)) });
    assert_eq!(report(life(1), whole(8, 5, vec![])).await.unwrap(), PartStored::Older);
    // A lower pass of another life is newer, and the outcomes of the life before are gone with its first part.
    let part = Part { last: false, ..whole(1, 4, vec![outcome("file:/c")]) };
    assert_eq!(report(life(2), part).await.unwrap(), PartStored::Part);
    let held = store.summary(name("a")).await.unwrap().unwrap().report.unwrap();
    assert_eq!((held.received, held.whole, held.applied), (1, false, Some(revision(4))));
    assert_eq!(store.outcomes(name("a"), None, 9).await.unwrap(), [outcome("file:/c")]);
    let last = Part { part: 1, ..whole(1, 4, vec![outcome("file:/d")]) };
    assert_eq!(report(life(2), last).await.unwrap(), PartStored::Whole { newly: None });
    let held = store.summary(name("a")).await.unwrap().unwrap().report.unwrap();
    assert_eq!((held.received, held.whole, held.received_at), (2, true, Millis(3)));
    let next = report(life(2), whole(2, 5, vec![outcome("file:/d")])).await.unwrap();
    assert_eq!(next, PartStored::Whole { newly: Some(revision(5)) });
    assert_eq!(store.outcomes(name("a"), None, 9).await.unwrap(), [outcome("file:/d")]);
}

pub(super) async fn outcomes_come_in_the_order_of_their_keys_bytes_and_in_pages(store: &dyn Store) {
    store.invite(new("a"), Millis(1)).await.unwrap();
    let keys = ["file:/é", "file:/a b", "file:/Z", "unit:x", "file:/a"];
    let part = whole(1, 1, keys.map(outcome).to_vec());
    store.report(name("a"), life(1), part, Millis(2)).await.unwrap();
    let page = |after: Option<&str>, most| store.outcomes(name("a"), after.map(str::to_owned), most);
    let keys =
        |page: Vec<ResourceOutcome>| -> Vec<String> { page.into_iter().map(|line| line.key).collect() };
    assert_eq!(keys(page(None, 3).await.unwrap()), ["file:/Z", "file:/a", "file:/a b"]);
    assert_eq!(keys(page(Some("file:/a b"), 3).await.unwrap()), ["file:/é", "unit:x"]);
    assert!(page(None, 0).await.unwrap().is_empty());
}
