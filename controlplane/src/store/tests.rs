//! What every store must do (N-21), as functions over any of them: each runs against the embedded store and against the
//! one in memory. Moments and identities come from the tests alone, so that the same script says the same everywhere.

use std::sync::Arc;

use tenure_actors::database::Create;
use tenure_protocol::content::{Piece, Wanted};
use tenure_protocol::enrolment::{Briefing, Join};
use tenure_protocol::id::{
    BootId, ControlPlaneId, Epoch, EpochId, FencingToken, Generation, NodeUuid, Rental, Revision,
    RevisionNumber, SessionCounter,
};
use tenure_protocol::machine::Mode;
use tenure_protocol::operator::Rejoin;
use tenure_protocol::outcome::Outcome;
use tenure_protocol::profile::{Disk, Inventory, Profile};
use tenure_protocol::proof::PublicKey;
use tenure_protocol::report::{self, Counts, Summary, Trigger};

use super::memory::Memory;
use super::sqlite::Sqlite;
use super::*;
use crate::ground::Ground;

fn embedded() -> (tempfile::TempDir, Arc<dyn Store>) {
    let folder = tempfile::tempdir().unwrap();
    let ground = Ground::new(folder.path());
    ground.create().unwrap();
    let store = Sqlite::open(&ground, Create::WhenAbsent).unwrap();
    (folder, Arc::new(store))
}

macro_rules! held_by_every_store {
    ($($name:ident;)+) => {
        mod embedded_store {
            $(#[tokio::test]
            async fn $name() {
                let (_folder, store) = super::embedded();
                super::$name(&*store).await;
            })+
        }

        mod store_in_memory {
            $(#[tokio::test]
            async fn $name() {
                super::$name(&super::Memory::default()).await;
            })+
        }
    };
}

held_by_every_store! {
    an_identity_is_founded_once_and_stays;
    a_token_is_redeemed_once_and_the_fencing_token_rises_with_it;
    a_word_on_a_session_of_the_enrolment_before_is_none_on_the_one_that_stands;
    lost_and_ready_again_are_marked_once_each;
    declarations_are_all_or_none;
    content_is_there_when_whole_and_true_and_in_pieces;
    a_nodes_event_is_stored_once_and_pages_run_in_order;
    a_report_is_the_newest_and_agrees_with_its_digest;
    names_come_in_order_and_in_pages;
    no_more_outcomes_are_stored_than_a_declaration_may_have_resources;
    what_a_full_report_leaves_out_makes_room_for_what_it_brings;
    the_newest_ten_thousand_events_of_a_node_stay_and_a_gap_says_that_there_were_more;
    a_token_raises_sixteen_alarms_and_no_more;
    two_nodes_may_use_the_same_event_id_and_neither_silences_an_alarm;
    keys_are_stored_as_they_came_so_that_the_digest_agrees;
    a_report_whose_texts_are_long_is_stored_short;
    an_upload_that_begins_again_does_not_undo_the_progress_of_another;
    the_newest_stamp_is_that_of_the_newest_write;
    writes_made_while_the_clock_is_behind_never_hide_the_newest_however_many;
    content_that_came_while_the_clock_was_ahead_is_swept_once_it_was_said_to_be_right;
    each_enrolment_keeps_the_key_it_bound;
    the_last_words_of_an_enrolment_have_a_bound_and_the_node_that_holds_has_all_its_room;
    nothing_is_known_of_a_node_that_was_never_invited;
    an_invitation_that_cannot_be_made_leaves_nothing_behind;
    every_redemption_that_is_refused_says_why_and_changes_nothing;
    an_enrolment_keeps_what_the_machine_said_and_begins_without_a_session;
    of_many_that_redeem_one_token_at_once_one_is_enrolled;
    a_reinvite_replaces_what_is_outstanding_and_no_more;
    an_enrolment_that_was_ended_by_hand_waits_for_a_new_token;
    what_a_session_opened_with_is_kept_until_the_next_enrolment;
    a_mark_is_told_once_and_only_lost_and_ready_are_marks;
    retiring_takes_the_outstanding_token_along_and_is_told_once;
    the_newest_last_word_stands_and_one_of_nobody_is_passed_over;
    pages_are_as_long_as_was_asked_and_go_on_behind_what_was_named;
    every_moment_in_the_store_is_the_one_that_came_with_the_change;
    facts_are_told_all_or_none;
    pages_of_events_are_bounded_and_one_nodes_are_its_own;
    a_report_or_event_of_nobody_is_refused_and_leaves_nothing;
    a_new_life_of_a_hosts_store_reports_anew_and_keeps_what_was_applied;
    outcomes_come_in_the_order_of_their_keys_bytes_and_in_pages;
    a_malformed_piece_is_refused_and_what_came_before_it_stays;
    a_content_that_is_not_what_it_is_called_is_dropped_whole;
    pieces_are_answered_from_any_place_and_only_as_far_as_they_may_be_seen;
    what_is_missing_is_named_in_the_order_it_was_asked_for;
    content_is_swept_once_nothing_names_it_and_its_time_is_over;
    a_declaration_that_is_refused_brings_no_content_along;
    the_newest_declaration_stands_and_content_only_an_older_one_names_may_go;
}

mod bounded;
mod contents;
mod standing;
mod told;

use bounded::*;
use contents::*;
use standing::*;
use told::*;

pub(crate) fn name(text: &str) -> NodeId {
    NodeId::new(text).unwrap()
}

fn epoch() -> Epoch {
    Epoch { number: 1, id: EpochId::from_bytes([1; 16]) }
}

/// The identity behind a name: the same one each time.
fn uuid(node: &str) -> NodeUuid {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&Digest::of(node.as_bytes()).as_bytes()[..16]);
    NodeUuid::from_bytes(bytes)
}

pub(crate) fn new(node: &str) -> NewNode {
    let token = Digest::of(node.as_bytes());
    NewNode {
        node: name(node),
        uuid: uuid(node),
        rental: Rental::new("own").unwrap(),
        generation: Generation(1),
        mode: Mode::Converged,
        rejoin: Rejoin::Key,
        token: NewToken { counter: 1, token, bytes: vec![1], expires: Millis(1000) },
    }
}

fn attempt(node: &str, key: u8) -> Attempt {
    Attempt {
        node: name(node),
        generation: Generation(1),
        token: Digest::of(node.as_bytes()),
        key: PublicKey::from_bytes([key; 32]),
        from: "192.0.2.1:1".to_owned(),
        join: Join { profile: Profile::default(), inventory: Inventory::default() },
        briefing: Briefing::default(),
        now: Millis(5),
    }
}

async fn an_identity_is_founded_once_and_stays(store: &dyn Store) {
    assert_eq!(store.founding().await.unwrap(), None);
    let first = Founding { control_plane_id: ControlPlaneId::from_bytes([1; 16]), epoch: epoch() };
    let second = Founding { control_plane_id: ControlPlaneId::from_bytes([2; 16]), epoch: epoch() };
    assert_eq!(store.found(first, Millis(1)).await.unwrap(), first);
    assert_eq!(store.found(second, Millis(2)).await.unwrap(), first);
    assert_eq!(store.founding().await.unwrap(), Some(first));
}

// rule: N-03
async fn a_token_is_redeemed_once_and_the_fencing_token_rises_with_it(store: &dyn Store) {
    assert!(store.invite(new("a"), Millis(1)).await.unwrap());
    assert!(!store.invite(new("a"), Millis(1)).await.unwrap());
    let Redeemed::Enrolled(record) = store.redeem(attempt("a", 1)).await.unwrap() else { panic!() };
    assert_eq!((record.fencing, record.state), (FencingToken(1), NodeState::Ready));
    assert!(matches!(store.redeem(attempt("a", 1)).await.unwrap(), Redeemed::Again(same) if same == record));
    for _ in 0..2 {
        assert!(matches!(store.redeem(attempt("a", 2)).await.unwrap(), Redeemed::Refused(_)));
    }
    let told = store.events(Some(0), None, 100).await.unwrap();
    assert_eq!(told.iter().filter(|event| event.kind == "second_redemption").count(), 1);
    let token = NewToken { counter: 2, token: Digest::of(b"next"), bytes: vec![2], expires: Millis(1000) };
    assert!(store.reinvite(name("a"), Some(token), false, Millis(6)).await.unwrap());
    let next = Attempt { token: Digest::of(b"next"), ..attempt("a", 3) };
    let Redeemed::Enrolled(record) = store.redeem(next).await.unwrap() else { panic!() };
    assert_eq!(record.fencing, FencingToken(2));
    assert_eq!(store.retire(name("a"), Millis(7)).await.unwrap(), Some(false));
    assert_eq!(store.retire(name("a"), Millis(8)).await.unwrap(), Some(true));
    assert_eq!(store.retire(name("b"), Millis(8)).await.unwrap(), None);
    assert!(!store.reinvite(name("a"), None, false, Millis(9)).await.unwrap());
}

// rule: N-06
async fn a_word_on_a_session_of_the_enrolment_before_is_none_on_the_one_that_stands(store: &dyn Store) {
    store.invite(new("a"), Millis(1)).await.unwrap();
    store.redeem(attempt("a", 1)).await.unwrap();
    let used = async || store.node(name("a")).await.unwrap().unwrap().session_used;
    assert!(!used().await);
    store.session_used(name("a"), FencingToken(1)).await.unwrap();
    assert!(used().await);
    let token = NewToken { counter: 2, token: Digest::of(b"next"), bytes: vec![2], expires: Millis(1000) };
    store.reinvite(name("a"), Some(token), false, Millis(6)).await.unwrap();
    store.redeem(Attempt { token: Digest::of(b"next"), ..attempt("a", 2) }).await.unwrap();
    // A beat that was on its way when the node enrolled anew.
    store.session_used(name("a"), FencingToken(1)).await.unwrap();
    assert!(!used().await, "its first session would be asked for a token that it never had");
    store.session_used(name("a"), FencingToken(2)).await.unwrap();
    assert!(used().await);
}

// rule: N-08
async fn lost_and_ready_again_are_marked_once_each(store: &dyn Store) {
    store.invite(new("a"), Millis(1)).await.unwrap();
    let mark = |state| store.marked(name("a"), state, "text".to_owned(), Millis(9));
    assert!(!mark(NodeState::Lost).await.unwrap());
    store.redeem(attempt("a", 1)).await.unwrap();
    assert!(!mark(NodeState::Ready).await.unwrap());
    assert!(mark(NodeState::Lost).await.unwrap());
    assert!(!mark(NodeState::Lost).await.unwrap());
    assert!(mark(NodeState::Ready).await.unwrap());
    store.retire(name("a"), Millis(9)).await.unwrap();
    assert!(!mark(NodeState::Lost).await.unwrap());
    assert_eq!(store.node(name("a")).await.unwrap().unwrap().state, NodeState::Retired);
}

pub(crate) fn declaration(node: &str, after: u64, contents: Vec<Digest>) -> NewDeclaration {
    let number = RevisionNumber(after + 1);
    NewDeclaration {
        node: name(node),
        after: RevisionNumber(after),
        revision: Revision { epoch: epoch(), number },
        bytes: format!("{node} {number}").into_bytes(),
        resources: 1,
        contents,
    }
}

// case: O-68
async fn declarations_are_all_or_none(store: &dyn Store) {
    store.invite(new("a"), Millis(1)).await.unwrap();
    store.invite(new("b"), Millis(1)).await.unwrap();
    let content = Digest::of(b"x");
    let lacking = vec![declaration("a", 0, vec![]), declaration("b", 0, vec![content])];
    let refused = store.declare(lacking, vec![], Millis(2)).await.unwrap();
    assert_eq!(refused, Err(NotDeclared::ContentMissing(name("b"), content)));
    let unknown = vec![declaration("a", 0, vec![]), declaration("c", 0, vec![])];
    assert!(store.declare(unknown, vec![], Millis(2)).await.unwrap().is_err());
    assert_eq!(store.declared(name("a")).await.unwrap(), None);
    let whole = vec![declaration("a", 0, vec![content]), declaration("b", 0, vec![content])];
    assert_eq!(store.declare(whole, vec![b"x".to_vec()], Millis(2)).await.unwrap(), Ok(()));
    let late = store.declare(vec![declaration("a", 0, vec![])], vec![], Millis(3)).await.unwrap();
    assert_eq!(late, Err(NotDeclared::Overtaken(name("a"))));
    assert_eq!(store.declared(name("a")).await.unwrap().unwrap().revision.number, RevisionNumber(1));
}

// rule: S-08
async fn content_is_there_when_whole_and_true_and_in_pieces(store: &dyn Store) {
    let bytes: Vec<u8> = (0..200_000_u32).map(|n| n.to_be_bytes()[3]).collect();
    let sha256 = Digest::of(&bytes);
    let piece = |offset: usize, len: usize| Piece {
        sha256,
        size: 200_000,
        offset: u64::try_from(offset).unwrap(),
        bytes: bytes[offset..offset + len].to_vec(),
    };
    store.put(vec![piece(0, 131_072)], Millis(1)).await.unwrap().unwrap();
    assert_eq!(store.missing(vec![sha256]).await.unwrap(), vec![sha256]);
    assert_eq!(store.content(sha256).await.unwrap(), None);
    let skipped = store.put(vec![piece(140_000, 60_000)], Millis(1)).await.unwrap();
    assert_eq!(skipped, Err(NotPut::OutOfOrder { sha256, expected: 131_072 }));
    store.put(vec![piece(131_072, 68_928)], Millis(1)).await.unwrap().unwrap();
    assert_eq!(store.content(sha256).await.unwrap().as_deref(), Some(bytes.as_slice()));
    let wanted = vec![Wanted { sha256, offset: 0 }, Wanted { sha256, offset: 131_072 }];
    let got = store.pieces(wanted, None).await.unwrap().unwrap();
    // Both together are more than one answer may have.
    assert_eq!(got.iter().map(|piece| piece.bytes.len()).collect::<Vec<_>>(), [131_072]);
    store.invite(new("a"), Millis(1)).await.unwrap();
    let of_a = |sha256| store.pieces(vec![Wanted { sha256, offset: 0 }], Some(name("a")));
    assert_eq!(of_a(sha256).await.unwrap(), Err(sha256));
    store.declare(vec![declaration("a", 0, vec![sha256])], vec![], Millis(2)).await.unwrap().unwrap();
    assert!(of_a(sha256).await.unwrap().is_ok());
    store.keep(vec![b"nobody's".to_vec(), vec![]], Millis(1)).await.unwrap();
    assert_eq!(store.content(Digest::of(b"")).await.unwrap(), Some(vec![]));
    assert_eq!(store.sweep(Millis(100)).await.unwrap(), 2);
    assert!(store.content(sha256).await.unwrap().is_some());
}

// rule: N-11
async fn a_nodes_event_is_stored_once_and_pages_run_in_order(store: &dyn Store) {
    store.invite(new("a"), Millis(1)).await.unwrap();
    let event = |number: u8| NodeEvent {
        id: EventId::from_bytes([number; 16]),
        at: Millis(i64::from(number)),
        kind: "applied".to_owned(),
        key: None,
        text: "text\u{1b}[2J".to_owned(),
    };
    store.node_events(name("a"), vec![event(1), event(2)], Millis(9)).await.unwrap();
    let known = store.node_events(name("a"), vec![event(2), event(3)], Millis(10)).await.unwrap();
    assert_eq!(known.len(), 2);
    let all = store.events(Some(0), Some(name("a")), 100).await.unwrap();
    assert_eq!(all.len(), 4);
    assert!(all.iter().all(|event| !event.text.contains('\u{1b}')));
    let newest = store.events(None, None, 2).await.unwrap();
    assert_eq!(newest, all[2..]);
    let after = store.events(Some(all[1].seq), None, 1).await.unwrap();
    assert_eq!(after, all[2..3]);
}

async fn a_report_is_the_newest_and_agrees_with_its_digest(store: &dyn Store) {
    store.invite(new("a"), Millis(1)).await.unwrap();
    let outcome = |key: &str, outcome| ResourceOutcome {
        key: key.to_owned(),
        module: "base".to_owned(),
        outcome,
        since: Millis(1),
        count: 1,
        code: None,
        reason: None,
    };
    let all = [outcome("file:/a", Outcome::Applied), outcome("file:/b", Outcome::Held)];
    let part = |pass, number, last| Part {
        summary: Summary {
            pass,
            trigger: Trigger::Timer,
            revision: Some(Revision { epoch: epoch(), number: RevisionNumber(1) }),
            started: Millis(1),
            took_ms: 1,
            counts: Counts::of(all.iter().map(|outcome| outcome.outcome)),
            owned: 2,
            digest: report::digest(&all),
            refused: None,
            refused_revision: None,
        },
        full: false,
        part: number,
        outcomes: vec![all[usize::try_from(number).unwrap()].clone()],
        forgotten: vec![],
        last,
    };
    let life = StoreId::from_bytes([1; 16]);
    let report = |part| store.report(name("a"), life, part, Millis(3));
    assert_eq!(report(part(2, 0, false)).await.unwrap(), PartStored::Part);
    let summary = store.summary(name("a")).await.unwrap().unwrap();
    assert!(summary.report.is_some_and(|report| report.received == 1 && !report.whole));
    assert!(matches!(report(part(2, 1, true)).await.unwrap(), PartStored::Whole { newly: Some(_) }));
    assert!(matches!(report(part(2, 1, true)).await.unwrap(), PartStored::Whole { newly: None }));
    assert_eq!(report(part(1, 0, true)).await.unwrap(), PartStored::Older);
    assert_eq!(store.outcomes(name("a"), None, 10).await.unwrap(), all);
    assert_eq!(store.outcomes(name("a"), Some("file:/a".to_owned()), 10).await.unwrap(), all[1..]);
    let less = Part { forgotten: vec!["file:/a".to_owned()], outcomes: vec![], ..part(3, 0, true) };
    assert_eq!(report(less).await.unwrap(), PartStored::Differs);
}

// rule: N-20
async fn names_come_in_order_and_in_pages(store: &dyn Store) {
    for node in ["c", "a", "b"] {
        store.invite(new(node), Millis(1)).await.unwrap();
    }
    store.retire(name("b"), Millis(2)).await.unwrap();
    let page = store.names(None, 2).await.unwrap();
    assert_eq!(page, [(name("a"), NodeState::Enrolling), (name("b"), NodeState::Retired)]);
    let rest = store.summaries(Some(name("b")), 2).await.unwrap();
    assert!(matches!(&rest[..], [one] if one.record.node == name("c") && one.record.enrolled_at.is_none()));
    assert_eq!(store.node(name("nobody")).await.unwrap(), None);
}

// case: O-70
#[test]
fn each_state_of_a_store_has_its_own_code_and_all_of_them_say_later() {
    use tenure_actors::database::DatabaseError;
    let states = [
        (DatabaseError::Full, "store_full"),
        (DatabaseError::ReadOnly, "store_read_only"),
        (DatabaseError::Damaged, "store_damaged"),
        (DatabaseError::Failing, "store_failing"),
        (DatabaseError::Busy, "store_busy"),
        (DatabaseError::Removed, "store_removed"),
        (DatabaseError::Replaced, "store_replaced"),
        (DatabaseError::Unmounted, "store_unmounted"),
        (DatabaseError::Closed, "store_closed"),
    ];
    for (state, code) in states {
        let refusal = StoreError::from(state).refusal();
        assert!(refusal.is(code) && refusal.remedy.starts_with("try later"), "{refusal:?}");
        assert!(refusal.happened.contains("store"), "{refusal:?}");
    }
}
