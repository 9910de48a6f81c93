//! How much one node, one token and one operator can put into a store (S-22).

use tenure_protocol::content::PIECE;
use tenure_protocol::declaration::MOST_RESOURCES;
use tenure_protocol::refusal::Refusal;

use super::*;

fn outcome(key: String) -> ResourceOutcome {
    let (module, outcome) = ("base".to_owned(), Outcome::Applied);
    ResourceOutcome { key, module, outcome, since: Millis(1), count: 1, code: None, reason: None }
}

fn part(pass: u64, full: bool, outcomes: Vec<ResourceOutcome>) -> Part {
    let summary = Summary {
        pass,
        trigger: Trigger::Timer,
        revision: None,
        started: Millis(1),
        took_ms: 1,
        counts: Counts::default(),
        owned: 2,
        digest: report::digest(&outcomes),
        refused: None,
        refused_revision: None,
    };
    Part { summary, full, part: 0, outcomes, forgotten: vec![], last: true }
}

async fn report(store: &dyn Store, part: Part) -> PartStored {
    store.report(name("a"), StoreId::from_bytes([1; 16]), part, Millis(3)).await.unwrap()
}

async fn stored(store: &dyn Store) -> Vec<ResourceOutcome> {
    store.outcomes(name("a"), None, u32::MAX).await.unwrap()
}

// rule: S-22
pub(super) async fn no_more_outcomes_are_stored_than_a_declaration_may_have_resources(store: &dyn Store) {
    store.invite(new("a"), Millis(1)).await.unwrap();
    let many = (0..MOST_RESOURCES).map(|number| outcome(format!("file:/{number}"))).collect();
    assert!(matches!(report(store, part(1, true, many)).await, PartStored::Whole { .. }));
    assert_eq!(stored(store).await.len(), MOST_RESOURCES);
    let more = vec![outcome("file:/one".to_owned()), outcome("file:/more".to_owned())];
    assert_eq!(report(store, part(2, false, more)).await, PartStored::Differs);
    assert_eq!(stored(store).await.len(), MOST_RESOURCES);
    // What is known is still brought up to date, and what is forgotten makes room.
    let known = vec![ResourceOutcome { outcome: Outcome::Failed, ..outcome("file:/7".to_owned()) }];
    report(store, part(3, false, known)).await;
    let forgotten = vec!["file:/8".to_owned(), "file:/9".to_owned()];
    report(store, Part { forgotten, ..part(4, false, vec![outcome("file:/more".to_owned())]) }).await;
    let stored = stored(store).await;
    assert_eq!(stored.len(), MOST_RESOURCES - 1);
    let of = |key: &str| stored.iter().find(|line| line.key == key).map(|line| line.outcome);
    assert_eq!((of("file:/7"), of("file:/more")), (Some(Outcome::Failed), Some(Outcome::Applied)));
}

// rule: S-22
pub(super) async fn what_a_full_report_leaves_out_makes_room_for_what_it_brings(store: &dyn Store) {
    store.invite(new("a"), Millis(1)).await.unwrap();
    let many = (0..MOST_RESOURCES).map(|number| outcome(format!("file:/{number}"))).collect();
    report(store, part(1, true, many)).await;
    let others = vec![outcome("file:/other".to_owned()), outcome("file:/7".to_owned())];
    assert!(matches!(report(store, part(2, true, others)).await, PartStored::Whole { .. }));
    let keys: Vec<String> = stored(store).await.into_iter().map(|line| line.key).collect();
    assert_eq!(keys, ["file:/7", "file:/other"]);
}

fn event(number: u64, text: &str) -> NodeEvent {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&number.to_be_bytes());
    let (kind, text) = ("drift_repaired".to_owned(), text.to_owned());
    NodeEvent { id: EventId::from_bytes(id), at: Millis(1), kind, key: None, text }
}

// rule: S-22
pub(super) async fn the_newest_ten_thousand_events_of_a_node_stay_and_a_gap_says_that_there_were_more(
    store: &dyn Store,
) {
    store.invite(new("a"), Millis(1)).await.unwrap();
    for some in 0..3_u64 {
        let events = (0..4000).map(|number| event(some * 4000 + number, &number.to_string())).collect();
        store.node_events(name("a"), events, Millis(9)).await.unwrap();
    }
    let all = store.events(Some(0), Some(name("a")), u32::MAX).await.unwrap();
    let kinds: Vec<&str> = all.iter().take(3).map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["invited", "gap", "drift_repaired"]);
    assert_eq!((all.len(), all[2].text.as_str()), (10_002, "2000"));
    // Again, so that there is one gap and not two.
    store.node_events(name("a"), vec![event(99_999, "last")], Millis(9)).await.unwrap();
    let all = store.events(Some(0), Some(name("a")), u32::MAX).await.unwrap();
    assert_eq!(all.iter().filter(|event| event.kind == "gap").count(), 1);
    assert_eq!((all.len(), all.last().unwrap().text.as_str()), (10_002, "last"));
}

// rule: S-22
pub(super) async fn a_token_raises_sixteen_alarms_and_no_more(store: &dyn Store) {
    store.invite(new("a"), Millis(1)).await.unwrap();
    store.redeem(attempt("a", 1)).await.unwrap();
    for key in 2..60 {
        assert!(matches!(store.redeem(attempt("a", key)).await.unwrap(), Redeemed::Refused(_)));
    }
    let told = store.events(Some(0), None, 100).await.unwrap();
    assert_eq!(told.iter().filter(|event| event.kind == "second_redemption").count(), 16);
}

// rule: N-11
pub(super) async fn two_nodes_may_use_the_same_event_id_and_neither_silences_an_alarm(store: &dyn Store) {
    for node in ["a", "b"] {
        store.invite(new(node), Millis(1)).await.unwrap();
        let stored = store.node_events(name(node), vec![event(7, node)], Millis(2)).await.unwrap();
        assert_eq!(stored, vec![event(7, node).id]);
        let of = store.events(Some(0), Some(name(node)), 100).await.unwrap();
        assert!(of.iter().any(|event| event.text == node), "{node}: {of:?}");
    }
    store.redeem(attempt("a", 1)).await.unwrap();
    let alarm = crate::node::redeem::alarm_id(attempt("a", 2).token, &attempt("a", 2).key);
    let silencing = NodeEvent { id: EventId::from_bytes(alarm), ..event(1, "nothing to see") };
    store.node_events(name("a"), vec![silencing], Millis(2)).await.unwrap();
    store.redeem(attempt("a", 2)).await.unwrap();
    let told = store.events(Some(0), Some(name("a")), 100).await.unwrap();
    assert_eq!(told.iter().filter(|event| event.kind == "second_redemption").count(), 1);
}

// rule: S-20
pub(super) async fn keys_are_stored_as_they_came_so_that_the_digest_agrees(store: &dyn Store) {
    store.invite(new("a"), Millis(1)).await.unwrap();
    let odd = ["file:/b\u{202e}", "file:/a\n", "file:/a", "file:/é"];
    let all: Vec<ResourceOutcome> = odd.iter().map(|key| outcome((*key).to_owned())).collect();
    assert!(matches!(report(store, part(1, false, all.clone())).await, PartStored::Whole { .. }));
    let forgotten = vec!["file:/a\n".to_owned()];
    let left = part(2, false, vec![all[0].clone(), all[2].clone(), all[3].clone()]);
    let less = Part { forgotten, outcomes: vec![], ..left };
    assert!(matches!(report(store, less).await, PartStored::Whole { .. }));
}

// rule: S-20
pub(super) async fn a_report_whose_texts_are_long_is_stored_short(store: &dyn Store) {
    store.invite(new("a"), Millis(1)).await.unwrap();
    let long = "\u{202e}".repeat(60_000);
    let refused = Some(Refusal::new(&long, long.clone(), long.clone(), long.clone()));
    let line =
        ResourceOutcome { reason: Some(long.clone()), code: Some(long.clone()), ..outcome(long.clone()) };
    let mut sent = part(1, true, vec![ResourceOutcome { module: long.clone(), ..line }]);
    let counts = Counts { failed: u64::MAX, refused: u64::MAX, ..Counts::default() };
    sent.summary = Summary { refused, counts, owned: u64::MAX, ..sent.summary };
    report(store, sent).await;
    let most = u64::try_from(MOST_RESOURCES).unwrap();
    let kept = store.summary(name("a")).await.unwrap().unwrap().report.unwrap().summary;
    assert!(tenure_protocol::wire::codec::encode(&kept).len() < 4500);
    assert_eq!((kept.owned, kept.counts.failed, kept.counts.total()), (most, most, 2 * most));
    assert!(tenure_protocol::wire::codec::encode(&stored(store).await).len() < 8000);
    store.node_events(name("a"), vec![event(1, &long)], Millis(1)).await.unwrap();
    let told = store.events(None, Some(name("a")), 1).await.unwrap();
    assert!(told[0].text.len() <= 1000);
}

// rule: S-08
pub(super) async fn an_upload_that_begins_again_does_not_undo_the_progress_of_another(store: &dyn Store) {
    let step = usize::try_from(PIECE).unwrap();
    let bytes: Vec<u8> = (0..3 * step).map(|n| n.to_be_bytes()[6]).collect();
    let sha256 = Digest::of(&bytes);
    let piece = |number: usize| Piece {
        sha256,
        size: u64::try_from(bytes.len()).unwrap(),
        offset: u64::try_from(number * step).unwrap(),
        bytes: bytes[number * step..(number + 1) * step].to_vec(),
    };
    let put = |piece| store.put(vec![piece], Millis(1));
    put(piece(0)).await.unwrap().unwrap();
    put(piece(1)).await.unwrap().unwrap();
    put(piece(0)).await.unwrap().unwrap();
    put(piece(2)).await.unwrap().unwrap();
    assert_eq!(store.content(sha256).await.unwrap(), Some(bytes.clone()));
    // A beginning that was wrong is put right by one that differs.
    let (other, whole) =
        (Digest::of(b"ab"), Piece { sha256: Digest::of(b"ab"), size: 2, offset: 0, bytes: b"ab".to_vec() });
    put(Piece { bytes: b"x".to_vec(), ..whole.clone() }).await.unwrap().unwrap();
    put(whole).await.unwrap().unwrap();
    assert_eq!(store.content(other).await.unwrap().as_deref(), Some(b"ab".as_slice()));
}

// case: O-53
pub(super) async fn the_newest_stamp_is_that_of_the_newest_write(store: &dyn Store) {
    assert_eq!(store.newest_stamp().await.unwrap(), Millis(0));
    store.invite(new("a"), Millis(700)).await.unwrap();
    store.invite(new("b"), Millis(5)).await.unwrap();
    assert_eq!(store.newest_stamp().await.unwrap(), Millis(700));
    let trusted = || Fact { node: None, kind: CLOCK_TRUSTED, text: "so it was said".to_owned() };
    store.tell(vec![trusted()], Millis(6)).await.unwrap();
    assert_eq!(store.newest_stamp().await.unwrap(), Millis(6));
    store.invite(new("c"), Millis(9)).await.unwrap();
    assert_eq!(store.newest_stamp().await.unwrap(), Millis(9));
}

// case: O-53
pub(super) async fn writes_made_while_the_clock_is_behind_never_hide_the_newest_however_many(
    store: &dyn Store,
) {
    store.invite(new("a"), Millis(1_000_000)).await.unwrap();
    let events = (0..1_001).map(|number| event(number, "x")).collect();
    store.node_events(name("a"), events, Millis(5)).await.unwrap();
    assert_eq!(store.newest_stamp().await.unwrap(), Millis(1_000_000));
    let fact = || Fact { node: None, kind: "own", text: String::new() };
    for _ in 0..1_001 {
        store.tell(vec![fact()], Millis(5)).await.unwrap();
    }
    assert_eq!(store.newest_stamp().await.unwrap(), Millis(1_000_000));
}

// case: O-53
// rule: S-22
pub(super) async fn content_that_came_while_the_clock_was_ahead_is_swept_once_it_was_said_to_be_right(
    store: &dyn Store,
) {
    store.keep(vec![b"ahead".to_vec()], Millis(1_000_000)).await.unwrap();
    assert_eq!(store.sweep(Millis(10)).await.unwrap(), 0);
    let trusted = Fact { node: None, kind: CLOCK_TRUSTED, text: "so it was said".to_owned() };
    store.tell(vec![trusted], Millis(6)).await.unwrap();
    assert_eq!(store.sweep(Millis(6)).await.unwrap(), 0, "from then on it has its time");
    assert_eq!(store.sweep(Millis(7)).await.unwrap(), 1);
}

// case: O-57
pub(super) async fn each_enrolment_keeps_the_key_it_bound(store: &dyn Store) {
    store.invite(new("a"), Millis(1)).await.unwrap();
    store.redeem(attempt("a", 1)).await.unwrap();
    let token = Digest::of(b"second");
    let minted = NewToken { counter: 2, token, bytes: vec![2], expires: Millis(1000) };
    assert!(store.reinvite(name("a"), Some(minted), true, Millis(2)).await.unwrap());
    store.redeem(Attempt { token, ..attempt("a", 2) }).await.unwrap();
    let bound = |fencing| store.bound_key(name("a"), FencingToken(fencing));
    assert_eq!(bound(1).await.unwrap(), Some(PublicKey::from_bytes([1; 32])));
    assert_eq!(bound(2).await.unwrap(), Some(PublicKey::from_bytes([2; 32])));
    assert_eq!(bound(3).await.unwrap(), None);
    assert_eq!(store.bound_key(name("b"), FencingToken(1)).await.unwrap(), None);
}

fn numbered(number: u16) -> EventId {
    let mut bytes = [0; 16];
    bytes[..2].copy_from_slice(&number.to_be_bytes());
    EventId::from_bytes(bytes)
}

// rule: S-22
// case: O-57
pub(super) async fn the_last_words_of_an_enrolment_have_a_bound_and_the_node_that_holds_has_all_its_room(
    store: &dyn Store,
) {
    store.invite(new("a"), Millis(1)).await.unwrap();
    let event = |number: u16| NodeEvent {
        id: numbered(number),
        at: Millis(1),
        kind: "removed".to_owned(),
        key: None,
        text: "x".to_owned(),
    };
    let told = |enrolment: u64, why: &str, numbers: std::ops::Range<u16>| {
        let (mark, events) = (format!("by enrolment {enrolment} ({why}): "), numbers.map(event).collect());
        store.last_words(name("a"), FencingToken(enrolment), mark, events, Millis(2))
    };
    let own: Vec<NodeEvent> = (50_000..60_000).map(event).collect();
    store.node_events(name("a"), own, Millis(2)).await.unwrap();
    assert_eq!(told(1, "fenced", 0..600).await.unwrap().unwrap().len(), 600);
    assert_eq!(
        told(1, "retired", 600..2_000).await.unwrap().unwrap().len(),
        400,
        "whatever it is refused by"
    );
    assert_eq!(told(1, "fenced", 1_000..1_001).await.unwrap(), None, "the machine keeps what is not taken");
    for enrolment in 2..5 {
        let from = 10_000 * u16::try_from(enrolment).unwrap();
        assert_eq!(told(enrolment, "fenced", from..from + 2_000).await.unwrap().unwrap().len(), 1_000);
    }
    assert_eq!(told(5, "fenced", 5_000..5_001).await.unwrap(), None, "and so of the whole node");
    let all = store.events(Some(0), Some(name("a")), u32::MAX).await.unwrap();
    assert_eq!(all.len(), 1 + 10_000 + 4_000, "nothing of the enrolment that holds was pushed out");
    let taken = store.node_events(name("a"), vec![event(2_500)], Millis(3)).await.unwrap();
    assert_eq!(taken, [event(2_500).id]);
}
