use std::os::unix::fs::PermissionsExt;

use std::collections::HashSet;

use tenure_actors::clock::Moment;
use tenure_actors::database::OpenError;
use tenure_protocol::content::Piece;
use tenure_protocol::event::{GAP, NodeEvent, STORE_LOST};
use tenure_protocol::id::{Epoch, EpochId, EventId, RevisionNumber};
use tenure_protocol::outcome::Origin;
use tenure_protocol::refusal::Explain;
use tenure_protocol::report::{Counts, Summary, Trigger};
use tenure_protocol::resource::Content;

use super::*;
use crate::ground::Ground;

mod states;

struct Kept {
    _folder: tempfile::TempDir,
    ground: Ground,
}

impl Kept {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ground = Ground::new(folder.path(), true);
        ground.create().unwrap();
        Self { _folder: folder, ground }
    }

    fn open(&self) -> Opened {
        Store::open(&self.ground, true, Moment::from_millis(7)).unwrap()
    }
}

fn store() -> (Kept, Store) {
    let kept = Kept::new();
    let store = kept.open().store;
    (kept, store)
}

fn event(number: u128) -> NodeEvent {
    NodeEvent {
        id: EventId::from_bytes(number.to_be_bytes()),
        at: Millis(1),
        kind: "removed".to_owned(),
        key: None,
        text: number.to_string(),
    }
}

// rule: H-11
#[test]
fn a_damaged_store_is_kept_aside_said_aloud_and_replaced() {
    for garbage in [&b""[..], b"not a database at all", &[0; 8192]] {
        let kept = Kept::new();
        let before = kept.open().store;
        let lost = before.store_id();
        before.close();
        std::fs::write(kept.ground.store(), garbage).unwrap();
        let opened = kept.open();
        let note = opened.note.unwrap();
        let aside = kept.ground.state().join("store.db.damaged-7");
        assert_eq!(std::fs::read(&aside).unwrap(), garbage);
        assert!(note.contains(aside.to_str().unwrap()), "{note}");
        assert_ne!(opened.store.store_id(), lost);
        let told = opened.store.spooled(10).unwrap();
        assert_eq!((told.len(), told[0].kind.as_str(), &told[0].text), (1, STORE_LOST, &note));
        // It is told until somebody has read it.
        opened.store.close();
        let again = kept.open();
        assert_eq!(again.note.as_ref(), Some(&note));
        again.store.acknowledge(&[told[0].id]).unwrap();
        assert_eq!(again.store.store_note().unwrap(), None);
        again.store.close();
        assert_eq!(kept.open().note, None);
    }
}

// rule: N-11
#[test]
fn an_event_that_cannot_be_read_any_more_is_told_as_a_gap_and_does_not_hold_up_the_rest() {
    let (_kept, store) = store();
    store.spool(&[event(1), event(2), event(3)]).unwrap();
    store
        .database
        .write_blocking(|t| t.execute("UPDATE event SET body = X'C1' WHERE seq IN (1, 2)", ()))
        .unwrap();
    let spooled = store.spooled(10).unwrap();
    let kinds: Vec<_> = spooled.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!((kinds, &spooled[2]), (vec![GAP, GAP, "removed"], &event(3)));
    assert_eq!(spooled[0].id, event(1).id);
    store.acknowledge(&[spooled[0].id]).unwrap();
    store.spool_at_most(&[event(4), event(5)], 2).unwrap();
    assert_eq!(store.spooled(10).unwrap().last(), Some(&event(5)));
}

// case: O-05
#[test]
fn a_pass_that_could_not_be_kept_has_a_number_of_its_own_all_the_same() {
    let (_kept, store) = store();
    assert_eq!((store.next_pass(7), store.next_pass(7), store.next_pass(7)), (8, 9, 10));
    assert_eq!(store.next_pass(20), 21);
}

// case: O-05
#[test]
fn a_number_that_was_told_while_the_store_was_full_is_not_told_again_after_a_restart() {
    let (kept, store) = store();
    let summary = |pass| Summary {
        pass,
        trigger: Trigger::Timer,
        revision: None,
        started: Millis(1),
        took_ms: 0,
        counts: Counts::default(),
        owned: 0,
        digest: Digest::of(b""),
        refused: None,
        refused_revision: None,
    };
    let next = |store: &Store| store.next_pass(store.last_pass().unwrap().map_or(0, |last| last.pass));
    let first = next(&store);
    store.put_pass(&summary(first), vec![], vec![], vec![], None).unwrap();
    let told = (0..50).map(|_| next(&store)).max().unwrap();
    assert_eq!((first, told), (1, 51));
    store.close();
    let store = kept.open().store;
    let again = next(&store);
    assert!(again > told, "{again}");
    let told_again = next(&store);
    store.close();
    let store = kept.open().store;
    let third = next(&store);
    assert!(third > told_again, "though nothing of the second opening was kept");
    assert_eq!(super::in_a_row(first, third), 2, "and how often something came is not lost by it");
}

// rule: H-11
#[test]
fn a_store_whose_log_was_removed_after_a_kill_begins_a_new_life_and_says_what_is_missing() {
    let kept = Kept::new();
    let store = kept.open().store;
    let id = store.store_id();
    store.set_note("life", b"checkpointed").unwrap();
    store.close();
    // As a kill leaves it: the mark of the open store, and then no log.
    let store = kept.open().store;
    let lock = std::fs::read(kept.ground.state().join("store.db.lock")).unwrap();
    store.close();
    std::fs::write(kept.ground.state().join("store.db.lock"), &lock).unwrap();
    let opened = kept.open();
    assert!(opened.note.as_ref().unwrap().contains("what was recorded last is missing"), "{:?}", opened.note);
    assert_ne!(opened.store.store_id(), id);
    assert_eq!(opened.store.note("life").unwrap().as_deref(), Some(&b"checkpointed"[..]), "the rest is kept");
    assert_eq!(opened.store.spooled(9).unwrap()[0].kind, STORE_LOST);
    let id = opened.store.store_id();
    opened.store.close();
    let again = kept.open();
    assert_eq!((again.store.store_id(), again.store.spooled_count().unwrap()), (id, 1), "it is lost once");
    again.store.close();
    // A death after the opening that made a new log, and before the loss was in the store.
    std::fs::write(kept.ground.state().join("store.log-gone"), "").unwrap();
    assert_ne!(kept.open().store.store_id(), id);
    assert!(!kept.ground.state().join("store.log-gone").exists());
}

// rule: H-11
// A store that only lost its mark is told where it is set aside; what a recovery copy gives back comes later.
#[test]
fn whoever_only_looks_refuses_a_damaged_store_and_leaves_it_where_it_is() {
    let kept = Kept::new();
    let garbage = b"this is no database, whatever it once was".repeat(100);
    std::fs::write(kept.ground.store(), &garbage).unwrap();
    let error = Store::open(&kept.ground, false, Moment::from_millis(7)).unwrap_err();
    assert_eq!(error.code(), "store_damaged");
    assert_eq!(std::fs::read(kept.ground.store()).unwrap(), garbage);
    assert!(!kept.ground.state().join("store.db.damaged-7").exists());
}

// rule: H-11
#[test]
fn a_page_that_was_overwritten_is_noticed_and_the_whole_store_kept_aside() {
    let (kept, store) = store();
    for number in 0..200 {
        store.set_note(&format!("{number}"), &[7; 500]).unwrap();
    }
    store.close();
    let mut bytes = std::fs::read(kept.ground.store()).unwrap();
    for byte in bytes.iter_mut().skip(8192).step_by(3) {
        *byte ^= 0x5a;
    }
    std::fs::write(kept.ground.store(), bytes).unwrap();
    assert!(kept.open().note.is_some());
}

// rule: H-11
#[test]
fn a_store_that_is_gone_while_the_node_key_is_there_was_lost() {
    let kept = Kept::new();
    std::fs::write(kept.ground.node_key(), "key").unwrap();
    let opened = kept.open();
    assert!(opened.note.unwrap().contains("gone"));
    assert_eq!(opened.store.spooled(1).unwrap()[0].kind, STORE_LOST);
    // The very first store of a machine is nobody's loss.
    assert_eq!(Kept::new().open().note, None);
}

// rule: H-11
#[test]
fn a_newer_a_foreign_a_locked_or_an_unreadable_store_is_named_and_not_touched() {
    let kept = Kept::new();
    let error = Store::open(&kept.ground, false, Moment::from_millis(1)).unwrap_err();
    assert_eq!(error.code(), "store_absent");
    let store = kept.open().store;
    let error = Store::open(&kept.ground, true, Moment::from_millis(1)).unwrap_err();
    assert!(matches!(error, OpenStoreError::Open(OpenError::Locked { .. })));
    assert!(error.remedy().contains(&std::process::id().to_string()));
    store.close();
    let path = kept.ground.store();
    for (pragma, code) in [("user_version = 99", "store_newer"), ("application_id = 5", "store_not_ours")] {
        let other = rusqlite::Connection::open(&path).unwrap();
        other.execute_batch(&format!("PRAGMA {pragma}")).unwrap();
        other.close().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let error = Store::open(&kept.ground, true, Moment::from_millis(1)).unwrap_err();
        assert_eq!(error.code(), code);
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
    assert_eq!(
        std::fs::read_dir(kept.ground.state())
            .unwrap()
            .filter(|e| { e.as_ref().unwrap().file_name().to_string_lossy().contains("damaged") })
            .count(),
        0
    );
}

#[test]
fn the_store_is_nobody_elses_to_read() {
    let (kept, _store) = store();
    assert_eq!(kept.ground.store().metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn no_session_number_is_ever_given_twice_and_control_time_only_rises() {
    let (kept, store) = store();
    assert_eq!(store.next_session_counter().unwrap(), SessionCounter(1));
    assert_eq!(store.next_session_counter().unwrap(), SessionCounter(2));
    store.set_control_time(Millis(50)).unwrap();
    store.set_control_time(Millis(40)).unwrap();
    let id = store.store_id();
    store.close();
    let store = kept.open().store;
    assert_eq!(store.store_id(), id);
    assert!(
        store.next_session_counter().unwrap() > SessionCounter(1_000_000),
        "above what was told unwritten"
    );
    assert_eq!(store.control_time().unwrap(), Some(Millis(50)));
}

// rule: H-09
// rule: H-11
#[test]
fn a_loss_that_a_death_came_before_saying_is_said_by_the_next_start() {
    let kept = Kept::new();
    kept.open().store.close();
    std::fs::write(kept.ground.node_key(), "a key").unwrap();
    // The new store was made, and nothing was put into it yet.
    let db = rusqlite::Connection::open(kept.ground.store()).unwrap();
    db.execute("DELETE FROM fact", ()).unwrap();
    drop(db);
    let opened = kept.open();
    assert!(opened.note.unwrap().contains("gone"));
    assert_eq!(opened.store.spooled(9).unwrap().iter().filter(|event| event.kind == STORE_LOST).count(), 1);
    opened.store.close();
    assert_eq!(kept.open().store.spooled_count().unwrap(), 1, "it is one event however often it is started");
}

#[test]
fn identity_notes_and_declaration_are_kept_and_given_up() {
    let (kept, store) = store();
    store.set_identity(&("edge-1", 4_u8)).unwrap();
    store.set_note("token", b"bytes").unwrap();
    let epoch = Epoch { number: 1, id: EpochId::from_bytes([1; 16]) };
    let declaration = |number: u64| StoredDeclaration {
        revision: Revision { epoch, number: RevisionNumber(number) },
        sha256: Digest::of(b"x"),
        bytes: Arc::from(&b"x"[..]),
    };
    store.put_declaration(declaration(1)).unwrap();
    store.put_declaration(declaration(2)).unwrap();
    store.close();
    let store = kept.open().store;
    assert_eq!(store.identity::<(String, u8)>().unwrap(), Some(("edge-1".to_owned(), 4)));
    assert_eq!(store.note("token").unwrap().as_deref(), Some(&b"bytes"[..]));
    assert_eq!(store.declaration().unwrap(), Some(declaration(2)));
    store.clear_identity().unwrap();
    assert_eq!(store.identity::<(String, u8)>().unwrap(), None);
    // One that cannot be read is an error, never *none*.
    store.set_identity(&7_u8).unwrap();
    assert!(store.identity::<(String, u8)>().is_err());
}

fn pieces(bytes: &[u8], named: Digest) -> Vec<Piece> {
    let size = u64::try_from(bytes.len()).unwrap();
    let mut offset = 0;
    let mut pieces = Vec::new();
    for part in bytes.chunks(128 * 1024) {
        pieces.push(Piece { sha256: named, size, offset, bytes: part.to_vec() });
        offset += u64::try_from(part.len()).unwrap();
    }
    pieces
}

// rule: S-11
#[test]
fn content_counts_only_when_it_is_whole_and_has_the_digest_it_is_named_by() {
    let (_kept, store) = store();
    let bytes: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    let content = Content { sha256: Digest::of(&bytes), size: u64::try_from(bytes.len()).unwrap() };
    let mut all = pieces(&bytes, content.sha256);
    assert_eq!(store.missing(&[content]).unwrap(), [(content, 0)]);
    let late = store.put_piece(all[2].clone()).unwrap_err();
    assert!(matches!(late, ContentError::OutOfOrder { expected: 0, found: 262_144, .. }));
    assert!(!store.put_piece(all[0].clone()).unwrap());
    assert_eq!(store.missing(&[content]).unwrap(), [(content, 131_072)]);
    assert!(store.reader(content.sha256).unwrap().is_none());
    assert!(store.put_pieces(all.split_off(1)).unwrap());
    assert_eq!(store.missing(&[content]).unwrap(), []);
    assert_eq!(store.reader(content.sha256).unwrap().unwrap().read_all().unwrap(), bytes);
    // Again is harmless.
    assert!(store.put_piece(all[0].clone()).unwrap());
    store.forget_contents_except(&[content.sha256]).unwrap();
    assert!(store.reader(content.sha256).unwrap().is_some());
    store.forget_contents_except(&[]).unwrap();
    assert!(store.reader(content.sha256).unwrap().is_none());
}

// rule: S-11
#[test]
fn content_under_a_false_name_is_dropped_whole_and_can_be_sent_again() {
    let (_kept, store) = store();
    let wanted = vec![1_u8; 200_000];
    let named = Digest::of(&wanted);
    let lie = pieces(&vec![2_u8; 200_000], named);
    assert!(matches!(store.put_pieces(lie), Err(ContentError::Digest { .. })));
    assert!(store.reader(named).unwrap().is_none());
    assert!(store.put_pieces(pieces(&wanted, named)).unwrap());
    let small = Digest::of(b"small");
    assert!(matches!(store.put_pieces(pieces(b"other", small)), Err(ContentError::Digest { .. })));
    let long = Piece { sha256: small, size: 3, offset: 0, bytes: b"small".to_vec() };
    assert!(matches!(store.put_piece(long), Err(ContentError::Length { .. })));
    let none = Piece { sha256: small, size: 5, offset: 0, bytes: Vec::new() };
    assert!(matches!(store.put_piece(none), Err(ContentError::Length { .. })));
}

#[test]
fn content_that_was_begun_under_a_wrong_size_begins_anew_under_the_right_one() {
    let (_kept, store) = store();
    let sha256 = Digest::of(b"small");
    let piece = |size, offset, bytes: &[u8]| Piece { sha256, size, offset, bytes: bytes.to_vec() };
    assert!(!store.put_piece(piece(50, 0, b"sma")).unwrap());
    let content = Content { sha256, size: 5 };
    assert_eq!(store.missing(&[content]).unwrap(), [(content, 0)]);
    assert!(store.put_piece(piece(5, 0, b"small")).unwrap());
    assert!(store.reader(sha256).unwrap().is_some());
}

#[test]
fn the_spool_keeps_order_drops_what_is_acknowledged_and_takes_a_replay_for_nothing() {
    let (kept, store) = store();
    store.spool(&[event(1), event(2)]).unwrap();
    store.spool(&[event(2), event(3)]).unwrap();
    store.acknowledge(&[event(1).id, event(9).id]).unwrap();
    store.close();
    let store = kept.open().store;
    assert_eq!(store.spooled(10).unwrap(), [event(2), event(3)]);
    assert_eq!((store.spooled(1).unwrap().len(), store.spooled_count().unwrap()), (1, 2));
}

#[test]
fn a_spool_that_is_full_drops_the_oldest_and_one_event_says_how_many() {
    let (_kept, store) = store();
    for number in 0..20 {
        store.spool_at_most(&[event(number)], 5).unwrap();
    }
    let left = store.spooled(10).unwrap();
    assert_eq!((left.len(), left[0].kind.as_str()), (5, GAP));
    assert!(left[0].text.starts_with("16 events were dropped"), "{}", left[0].text);
    assert_eq!(left[1..], [event(16), event(17), event(18), event(19)]);
    // Once the gap was told, a new one counts anew.
    store.acknowledge(&[left[0].id]).unwrap();
    store.spool_at_most(&[event(20), event(21)], 5).unwrap();
    let left = store.spooled(10).unwrap();
    assert!(left[0].text.starts_with("2 events were dropped"), "{}", left[0].text);
}

#[test]
fn a_record_takes_its_intent_along_and_pages_come_by_key() {
    let (_kept, store) = store();
    let record = |key: &str| Record {
        key: key.to_owned(),
        module: "base".to_owned(),
        origin: Origin::Created,
        earlier: State::Absent,
        applied: State::Directory { mode: 0o755, uid: 0, gid: 0 },
        recorded_at: Millis(3),
    };
    let intent = |key: &str| Intent {
        key: key.to_owned(),
        module: "base".to_owned(),
        origin: Origin::Created,
        earlier: State::Absent,
        wanted: Wanted::Gone,
        temporary: String::new(),
        drift: None,
    };
    store.intend(vec![intent("a"), intent("b"), intent("c")], &HashSet::new()).unwrap();
    store.record(vec![record("a"), record("b")], vec![], vec![event(1)]).unwrap();
    assert_eq!(store.intents().unwrap(), [intent("c")]);
    assert_eq!(store.records().unwrap()["a"], record("a"));
    let page = store.owned_page(Some("a"), 10).unwrap();
    assert_eq!((page.len(), page[0].key.as_str()), (1, "b"));
    store.record(vec![], vec!["a".to_owned()], vec![]).unwrap();
    assert_eq!((store.owned_keys().unwrap(), store.owned_count().unwrap()), (vec!["b".to_owned()], 1));
    assert_eq!(store.spooled_count().unwrap(), 1);
}

#[tokio::test]
async fn an_actor_reaches_the_store_off_its_own_thread() {
    let (_kept, store) = store();
    let counter = store.off(Store::next_session_counter).await.unwrap();
    assert_eq!(counter, SessionCounter(1));
    store.clone().close();
    assert!(store.off(Store::next_session_counter).await.is_err());
}
