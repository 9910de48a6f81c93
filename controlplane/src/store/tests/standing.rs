//! Who is known, what standing it has, and which moment is written beside it.

use super::*;
use crate::node::redeem::{EnrolRefusal, NotValid};

async fn invited(store: &dyn Store, node: &str) {
    assert!(store.invite(new(node), Millis(1)).await.unwrap());
}

async fn enrolled(store: &dyn Store, node: &str, key: u8) -> NodeRecord {
    match store.redeem(attempt(node, key)).await.unwrap() {
        Redeemed::Enrolled(record) => record,
        other => panic!("{other:?}"),
    }
}

async fn record(store: &dyn Store, node: &str) -> NodeRecord {
    store.node(name(node)).await.unwrap().unwrap()
}

async fn kinds(store: &dyn Store, node: &str) -> Vec<String> {
    let told = store.events(Some(0), Some(name(node)), 1000).await.unwrap();
    told.into_iter().map(|event| event.kind).collect()
}

fn token(counter: u64, expires: i64) -> NewToken {
    let token = Digest::of(&counter.to_be_bytes());
    NewToken { counter, token, bytes: vec![9], expires: Millis(expires) }
}

fn facts(counter: u64) -> SessionFacts {
    SessionFacts {
        store_id: StoreId::from_bytes([4; 16]),
        counter: SessionCounter(counter),
        boot_id: BootId::from_bytes([5; 16]),
        software: "0.1.0".to_owned(),
    }
}

// rule: N-20
pub(super) async fn nothing_is_known_of_a_node_that_was_never_invited(store: &dyn Store) {
    assert_eq!(store.node(name("a")).await.unwrap(), None);
    assert_eq!(store.summary(name("a")).await.unwrap(), None);
    assert_eq!(store.invitation(name("a")).await.unwrap(), None);
    assert_eq!(store.declared(name("a")).await.unwrap(), None);
    assert_eq!(store.retire(name("a"), Millis(1)).await.unwrap(), None);
    assert!(!store.reinvite(name("a"), Some(token(1, 9)), true, Millis(1)).await.unwrap());
    assert!(!store.marked(name("a"), NodeState::Lost, String::new(), Millis(1)).await.unwrap());
    store.session_opened(name("a"), facts(1), Millis(1)).await.unwrap();
    store.session_used(name("a"), FencingToken(1)).await.unwrap();
    assert!(store.outcomes(name("a"), None, 9).await.unwrap().is_empty());
    assert!(store.names(None, 9).await.unwrap().is_empty());
    assert!(store.events(Some(0), None, 9).await.unwrap().is_empty());
}

// rule: N-21
pub(super) async fn an_invitation_that_cannot_be_made_leaves_nothing_behind(store: &dyn Store) {
    invited(store, "a").await;
    let before = (store.summary(name("a")).await.unwrap(), store.invitation(name("a")).await.unwrap());
    assert!(!store.invite(NewNode { token: token(7, 9), ..new("a") }, Millis(2)).await.unwrap());
    assert_eq!((store.summary(name("a")).await.unwrap(), store.invitation(name("a")).await.unwrap()), before);
    let same_uuid = NewNode { uuid: uuid("a"), ..new("b") };
    let same_token = NewNode { token: new("a").token, ..new("b") };
    for taken in [same_uuid, same_token] {
        assert!(matches!(store.invite(taken, Millis(2)).await, Err(StoreError::Fault(_))));
        assert_eq!(store.node(name("b")).await.unwrap(), None);
    }
    let same_number = store.reinvite(name("a"), Some(token(1, 9)), false, Millis(3)).await;
    assert!(matches!(same_number, Err(StoreError::Fault(_))));
    assert!(!store.invitation(name("a")).await.unwrap().unwrap().replaced);
    assert_eq!(kinds(store, "a").await, ["invited"]);
}

// rule: N-03
pub(super) async fn every_redemption_that_is_refused_says_why_and_changes_nothing(store: &dyn Store) {
    invited(store, "a").await;
    invited(store, "b").await;
    invited(store, "gone").await;
    enrolled(store, "b", 7).await;
    store.retire(name("gone"), Millis(2)).await.unwrap();
    let before = store.summaries(None, 9).await.unwrap();
    let told = store.events(Some(0), None, 99).await.unwrap().len();
    let a = || attempt("a", 1);
    let not_valid = |why| EnrolRefusal::NotValid { node: name("a"), why };
    let table = [
        (attempt("nobody", 1), EnrolRefusal::NotFound { node: name("nobody") }),
        (Attempt { token: Digest::of(b"none"), ..a() }, EnrolRefusal::NotFound { node: name("a") }),
        (Attempt { token: attempt("b", 1).token, ..a() }, EnrolRefusal::NotFound { node: name("a") }),
        (Attempt { generation: Generation(2), ..a() }, not_valid(NotValid::Generation)),
        (Attempt { now: Millis(1000), ..a() }, not_valid(NotValid::Expired)),
        (Attempt { key: attempt("b", 7).key, ..a() }, EnrolRefusal::KeyUsed { node: name("a") }),
        (attempt("gone", 1), EnrolRefusal::Retired { node: name("gone") }),
    ];
    for (attempt, why) in table {
        assert_eq!(store.redeem(attempt).await.unwrap(), Redeemed::Refused(why));
    }
    assert_eq!(store.summaries(None, 9).await.unwrap(), before);
    assert_eq!(store.events(Some(0), None, 99).await.unwrap().len(), told);
}

// rule: H-13
pub(super) async fn an_enrolment_keeps_what_the_machine_said_and_begins_without_a_session(store: &dyn Store) {
    invited(store, "a").await;
    let profile = Profile { hostname: "edge".to_owned(), ..Profile::default() };
    let join = Join { profile: profile.clone(), inventory: Inventory::default() };
    let Redeemed::Enrolled(first) = store.redeem(Attempt { join, ..attempt("a", 1) }).await.unwrap() else {
        panic!()
    };
    assert_eq!((first.profile.as_ref(), first.enrolled_at), (Some(&profile), Some(Millis(5))));
    assert_eq!((first.key, first.uuid), (Some(attempt("a", 1).key), uuid("a")));
    assert_eq!(record(store, "a").await, first);
    let spent = store.invitation(name("a")).await.unwrap().unwrap().spent.unwrap();
    assert_eq!((spent.key, spent.from.as_str()), (attempt("a", 1).key, "192.0.2.1:1"));
    assert_eq!(store.summary(name("a")).await.unwrap().unwrap().invited_until, None);
}

// case: O-52
pub(super) async fn of_many_that_redeem_one_token_at_once_one_is_enrolled(store: &dyn Store) {
    invited(store, "a").await;
    let attempts = (1..=8).map(|key| store.redeem(attempt("a", key)));
    let mut enrolled = 0;
    let mut waiting: Vec<_> = attempts.collect();
    // Each is asked before any is answered.
    std::future::poll_fn(|context| {
        waiting.retain_mut(|pending| match pending.as_mut().poll(context) {
            std::task::Poll::Ready(redeemed) => {
                enrolled += usize::from(matches!(redeemed, Ok(Redeemed::Enrolled(_))));
                false
            }
            std::task::Poll::Pending => true,
        });
        if waiting.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    assert_eq!(enrolled, 1);
    assert_eq!(record(store, "a").await.fencing, FencingToken(1));
}

// rule: N-15
pub(super) async fn a_reinvite_replaces_what_is_outstanding_and_no_more(store: &dyn Store) {
    invited(store, "a").await;
    assert!(store.reinvite(name("a"), None, false, Millis(2)).await.unwrap());
    assert_eq!(kinds(store, "a").await, ["invited"], "the outstanding one was handed back: nothing changed");
    assert!(store.reinvite(name("a"), Some(token(2, 2000)), false, Millis(3)).await.unwrap());
    let newest = store.invitation(name("a")).await.unwrap().unwrap();
    assert_eq!((newest.counter, newest.token, newest.bytes), (2, token(2, 0).token, vec![9]));
    let until = store.summary(name("a")).await.unwrap().unwrap().invited_until;
    assert_eq!(until, Some(Millis(2000)));
    let old = store.redeem(attempt("a", 1)).await.unwrap();
    let replaced = EnrolRefusal::NotValid { node: name("a"), why: NotValid::Replaced };
    assert_eq!(old, Redeemed::Refused(replaced));
    assert_eq!(record(store, "a").await.state, NodeState::Enrolling);
    let next = Attempt { token: token(2, 0).token, ..attempt("a", 1) };
    assert!(matches!(store.redeem(next).await.unwrap(), Redeemed::Enrolled(_)));
    // A spent one stays what it is: the key that redeemed it is told the same again.
    assert!(store.reinvite(name("a"), Some(token(3, 3000)), false, Millis(6)).await.unwrap());
    let again = Attempt { token: token(2, 0).token, ..attempt("a", 1) };
    assert!(matches!(store.redeem(again).await.unwrap(), Redeemed::Again(_)));
}

// rule: N-15
pub(super) async fn an_enrolment_that_was_ended_by_hand_waits_for_a_new_token(store: &dyn Store) {
    invited(store, "a").await;
    assert!(store.reinvite(name("a"), None, true, Millis(2)).await.unwrap());
    assert!(!record(store, "a").await.revoked, "there was no enrolment to end");
    enrolled(store, "a", 1).await;
    for _ in 0..2 {
        assert!(store.reinvite(name("a"), None, true, Millis(6)).await.unwrap());
    }
    let ended = record(store, "a").await;
    assert_eq!((ended.revoked, ended.state, ended.fencing), (true, NodeState::Enrolling, FencingToken(1)));
    let spent = Redeemed::Refused(EnrolRefusal::Spent { node: name("a") });
    assert_eq!(store.redeem(attempt("a", 1)).await.unwrap(), spent);
    assert!(store.reinvite(name("a"), Some(token(2, 1000)), false, Millis(7)).await.unwrap());
    let next = Attempt { token: token(2, 0).token, ..attempt("a", 2) };
    let Redeemed::Enrolled(back) = store.redeem(next).await.unwrap() else { panic!() };
    assert_eq!((back.revoked, back.state, back.fencing), (false, NodeState::Ready, FencingToken(2)));
    let told = ["invited", "enrolled", "revoked", "reinvited", "enrolled"];
    assert_eq!(kinds(store, "a").await, told);
}

pub(super) async fn what_a_session_opened_with_is_kept_until_the_next_enrolment(store: &dyn Store) {
    invited(store, "a").await;
    enrolled(store, "a", 1).await;
    store.session_opened(name("a"), facts(3), Millis(6)).await.unwrap();
    assert_eq!(record(store, "a").await.last_session, Some(facts(3)));
    assert!(!record(store, "a").await.session_used);
    store.session_used(name("a"), FencingToken(1)).await.unwrap();
    store.session_opened(name("a"), facts(4), Millis(7)).await.unwrap();
    let now = record(store, "a").await;
    assert_eq!((now.last_session, now.session_used), (Some(facts(4)), true));
    store.reinvite(name("a"), Some(token(2, 1000)), false, Millis(8)).await.unwrap();
    store.redeem(Attempt { token: token(2, 0).token, ..attempt("a", 2) }).await.unwrap();
    let anew = record(store, "a").await;
    assert_eq!((anew.last_session, anew.session_used), (None, false));
}

// rule: N-08
pub(super) async fn a_mark_is_told_once_and_only_lost_and_ready_are_marks(store: &dyn Store) {
    invited(store, "a").await;
    enrolled(store, "a", 1).await;
    let mark = |state| store.marked(name("a"), state, format!("{state}"), Millis(9));
    for state in [NodeState::Enrolling, NodeState::Retired] {
        assert!(!mark(state).await.unwrap());
    }
    for state in [NodeState::Lost, NodeState::Lost, NodeState::Ready, NodeState::Ready] {
        mark(state).await.unwrap();
    }
    assert_eq!(kinds(store, "a").await, ["invited", "enrolled", "lost", "ready_again"]);
    let told = store.events(None, Some(name("a")), 2).await.unwrap();
    assert_eq!((told[0].text.as_str(), told[1].text.as_str()), ("lost", "ready"));
}

// rule: N-14
pub(super) async fn retiring_takes_the_outstanding_token_along_and_is_told_once(store: &dyn Store) {
    invited(store, "a").await;
    for already in [false, true] {
        assert_eq!(store.retire(name("a"), Millis(2)).await.unwrap(), Some(already));
    }
    assert_eq!(record(store, "a").await.retired_at, Some(Millis(2)));
    assert!(store.invitation(name("a")).await.unwrap().unwrap().replaced);
    let summary = store.summary(name("a")).await.unwrap().unwrap();
    assert_eq!((summary.record.state, summary.invited_until), (NodeState::Retired, None));
    let late = store.declare(vec![declaration("a", 0, vec![])], vec![], Millis(3)).await.unwrap();
    assert_eq!(late, Err(NotDeclared::NoStanding(name("a"))));
    assert!(!store.invite(new("a"), Millis(4)).await.unwrap(), "its name never comes back");
    assert_eq!(kinds(store, "a").await, ["invited", "retired"]);
}

// rule: N-13
pub(super) async fn the_newest_last_word_stands_and_one_of_nobody_is_passed_over(store: &dyn Store) {
    invited(store, "a").await;
    assert_eq!(store.summary(name("a")).await.unwrap().unwrap().contact, None, "not heard is no error");
    let word = |at, version: Option<&str>, disk| {
        let version = version.map(str::to_owned);
        Contact { received_at: Millis(at), version, disk }
    };
    let measured = Disk::Measured { free: 0, size: 9 };
    let first =
        vec![(name("a"), word(1, Some("1"), Disk::default())), (name("nobody"), word(1, None, measured))];
    store.contacts(first).await.unwrap();
    store.contacts(vec![(name("a"), word(2, None, measured))]).await.unwrap();
    let contact = store.summary(name("a")).await.unwrap().unwrap().contact;
    assert_eq!(contact, Some(word(2, None, measured)));
    assert_eq!(store.names(None, 9).await.unwrap().len(), 1);
}

// rule: N-20
pub(super) async fn pages_are_as_long_as_was_asked_and_go_on_behind_what_was_named(store: &dyn Store) {
    for node in ["b", "a-1", "a", "d"] {
        invited(store, node).await;
    }
    let names = |page: Vec<(NodeId, NodeState)>| -> Vec<String> {
        page.into_iter().map(|(node, _)| node.to_string()).collect()
    };
    assert_eq!(names(store.names(None, 3).await.unwrap()), ["a", "a-1", "b"]);
    assert_eq!(names(store.names(Some(name("b")), 3).await.unwrap()), ["d"]);
    assert_eq!(
        names(store.names(Some(name("c")), 3).await.unwrap()),
        ["d"],
        "one that is not there is a place too"
    );
    assert!(store.names(None, 0).await.unwrap().is_empty());
    let page = store.summaries(Some(name("a")), 2).await.unwrap();
    let of: Vec<&str> = page.iter().map(|summary| summary.record.node.as_str()).collect();
    assert_eq!(of, ["a-1", "b"]);
    assert_eq!(store.summary(name("b")).await.unwrap().as_ref(), page.get(1));
}

// rule: N-21
pub(super) async fn every_moment_in_the_store_is_the_one_that_came_with_the_change(store: &dyn Store) {
    // Long before anybody's clock, and not in order.
    let at = |millis: i64| Millis(millis - 1_000_000_000_000);
    let token = NewToken { expires: at(99), ..new("a").token };
    store.invite(NewNode { token, ..new("a") }, at(7)).await.unwrap();
    let enrolled = store.redeem(Attempt { now: at(3), ..attempt("a", 1) }).await.unwrap();
    assert!(matches!(enrolled, Redeemed::Enrolled(record) if record.enrolled_at == Some(at(3))));
    store.marked(name("a"), NodeState::Lost, String::new(), at(9)).await.unwrap();
    store.reinvite(name("a"), None, true, at(2)).await.unwrap();
    store.declare(vec![declaration("a", 0, vec![])], vec![], at(4)).await.unwrap().unwrap();
    store.tell(vec![Fact { node: None, kind: "own", text: String::new() }], at(5)).await.unwrap();
    store.retire(name("a"), at(8)).await.unwrap();
    let told = store.events(Some(0), None, 99).await.unwrap();
    let stamps: Vec<Millis> = told.iter().map(|event| event.received_at).collect();
    assert_eq!(stamps, [7, 3, 9, 2, 4, 5, 8].map(at));
    assert!(told.iter().all(|event| event.observed_at == event.received_at));
    assert!(told.windows(2).all(|two| two[0].seq < two[1].seq), "the order is that of the changes");
}
