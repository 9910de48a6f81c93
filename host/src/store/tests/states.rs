//! A store that is damaged, cut short, removed, or without room: kept aside, put back, or named.

use super::*;

fn damaged(kept: &Kept) -> Vec<String> {
    let names = std::fs::read_dir(kept.ground.state()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name.contains(".damaged-"));
    names.sort_by_key(|name| (name.len(), name.clone()));
    names
}

// rule: H-11
#[test]
fn a_second_damage_does_not_write_over_the_first_and_the_first_and_the_newest_are_kept() {
    let kept = Kept::new();
    for number in 0..6 {
        kept.open().store.close();
        std::fs::write(kept.ground.store(), format!("damage {number}")).unwrap();
    }
    kept.open().store.close();
    // The clock stands still here, and no name is used twice.
    let names = damaged(&kept);
    assert_eq!(names.len(), 4, "{names:?}");
    let texts: Vec<String> =
        names.iter().map(|name| std::fs::read_to_string(kept.ground.state().join(name)).unwrap()).collect();
    assert_eq!(texts, ["damage 0", "damage 3", "damage 4", "damage 5"]);
}

// rule: H-11
#[test]
fn a_log_without_its_store_is_kept_too_and_never_read_into_the_new_one() {
    let kept = Kept::new();
    let store = kept.open().store;
    store.set_note("life", b"before").unwrap();
    let log = kept.ground.state().join("store.db-wal");
    let bytes = std::fs::read(&log).unwrap();
    store.close();
    std::fs::remove_file(kept.ground.store()).unwrap();
    std::fs::write(&log, &bytes).unwrap();
    let opened = kept.open();
    assert!(opened.note.unwrap().contains("store.db.damaged-7"));
    assert_eq!(opened.store.note("life").unwrap(), None);
    assert_eq!(std::fs::read(kept.ground.state().join("store.db.damaged-7-wal")).unwrap(), bytes);
    assert_eq!(opened.store.spooled(1).unwrap()[0].kind, STORE_LOST);
}

// rule: H-11
#[test]
fn a_log_that_was_missed_is_never_said_of_the_store_that_takes_the_place_of_a_damaged_one() {
    let (kept, store) = store();
    let lock = std::fs::read(kept.ground.state().join("store.db.lock")).unwrap();
    store.close();
    std::fs::write(kept.ground.state().join("store.log-gone"), "").unwrap();
    std::fs::write(kept.ground.store(), "damage").unwrap();
    let opened = kept.open();
    let id = opened.store.store_id();
    assert!(opened.note.unwrap().contains("damaged"));
    opened.store.close();
    let again = kept.open();
    assert_eq!((again.store.store_id(), again.store.spooled_count().unwrap()), (id, 1), "it is said once");
    again.store.close();
    // A death after it was set aside with its log, and before there was a new one.
    std::fs::rename(kept.ground.store(), kept.ground.state().join("store.db.damaged-9")).unwrap();
    std::fs::write(kept.ground.state().join("store.db.lock"), lock).unwrap();
    let opened = kept.open();
    let id = opened.store.store_id();
    opened.store.close();
    let again = kept.open();
    assert_eq!((again.store.store_id(), again.store.spooled_count().unwrap()), (id, 1), "it is said once");
}

// rule: H-11
#[test]
fn whoever_only_looks_leaves_every_byte_of_the_store_and_every_number_as_it_is() {
    let (kept, store) = store();
    store.set_note("life", b"whole").unwrap();
    let first = store.next_pass(0);
    store.close();
    let bytes = || std::fs::read(kept.ground.store()).unwrap();
    let before = bytes();
    for _ in 0..3 {
        let looked = Store::open(&kept.ground, false, Moment::from_millis(9)).unwrap();
        assert_eq!(looked.store.note("life").unwrap().as_deref(), Some(&b"whole"[..]));
        looked.store.close();
        assert!(bytes() == before, "a look has written");
    }
    let store = kept.open().store;
    assert_eq!(store.next_pass(0) >> 32, (first >> 32) + 1, "and no opening was counted but those of hosts");
    store.close();
    // One that is looked at between its making and its first rows is begun by the host.
    let (kept, store) = self::store();
    store.close();
    let db = rusqlite::Connection::open(kept.ground.store()).unwrap();
    db.execute("DELETE FROM fact", ()).unwrap();
    drop(db);
    Store::open(&kept.ground, false, Moment::from_millis(9)).unwrap().store.close();
    let store = kept.open().store;
    let id = store.store_id();
    store.close();
    assert_eq!(kept.open().store.store_id(), id);
}

// rule: H-11
#[test]
fn a_store_that_was_cut_short_is_kept_aside_and_one_that_nobody_may_read_is_not_touched() {
    let (kept, store) = store();
    for number in 0..200 {
        store.set_note(&format!("{number}"), &[7; 500]).unwrap();
    }
    store.close();
    let bytes = std::fs::read(kept.ground.store()).unwrap();
    std::fs::write(kept.ground.store(), &bytes[..bytes.len() / 2]).unwrap();
    let opened = kept.open();
    assert!(opened.note.is_some());
    opened.store.close();
    assert_eq!(damaged(&kept), ["store.db.damaged-7"]);
    std::fs::remove_file(kept.ground.store()).unwrap();
    std::fs::create_dir(kept.ground.store()).unwrap();
    let error = Store::open(&kept.ground, true, Moment::from_millis(9)).unwrap_err();
    assert_eq!(error.code(), "store_unreadable");
    assert!(kept.ground.store().is_dir() && damaged(&kept).len() == 1);
}

#[test]
fn a_disk_without_room_or_without_writes_is_named_where_a_store_cannot_be_opened() {
    use tenure_actors::database::{DatabaseError, Obstacle};
    let path = std::path::PathBuf::from("/var/lib/tenure-host/store.db");
    let open = |why: Obstacle| {
        let source = std::sync::Arc::new(std::io::Error::other("it did not"));
        OpenStoreError::Open(OpenError::CannotOpen { path: path.clone(), why, source })
    };
    for (error, code) in [
        (open(Obstacle::Full), "store_full"),
        (open(Obstacle::ReadOnly), "store_read_only"),
        (open(Obstacle::Denied), "store_unreadable"),
        (OpenStoreError::First { path: path.clone(), source: DatabaseError::Full }, "store_full"),
    ] {
        assert_eq!(error.code(), code);
        assert!(error.remedy().contains("/var/lib/tenure-host/store.db"), "{}", error.remedy());
    }
}

// case: O-05
#[test]
fn a_store_whose_file_was_removed_is_written_to_its_place_again_with_all_it_held() {
    let (kept, store) = store();
    store.set_note("life", b"whole").unwrap();
    store.spool(&[event(1)]).unwrap();
    let id = store.store_id();
    std::fs::remove_file(kept.ground.store()).unwrap();
    assert!(matches!(store.in_place(), Err(DatabaseError::Removed)));
    assert!(store.set_note("life", b"said and lost").is_err());
    // Something that lies there by now is left.
    std::fs::write(kept.ground.store(), "somebody's").unwrap();
    assert!(store.put_back(&kept.ground).is_err());
    assert_eq!(std::fs::read(kept.ground.store()).unwrap(), b"somebody's");
    std::fs::remove_file(kept.ground.store()).unwrap();
    store.put_back(&kept.ground).unwrap();
    assert_eq!(kept.ground.store().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    store.close();
    let again = kept.open();
    assert_eq!((again.store.store_id(), again.note), (id, None));
    assert_eq!(again.store.note("life").unwrap().as_deref(), Some(&b"whole"[..]));
    assert_eq!(again.store.spooled(9).unwrap(), [event(1)]);
}

// case: O-05
#[test]
fn a_store_that_a_crash_left_under_the_name_of_its_copy_is_taken_back() {
    let (kept, store) = store();
    store.set_note("life", b"whole").unwrap();
    let id = store.store_id();
    store.close();
    let beside = kept.ground.state().join("store.db.back");
    std::fs::rename(kept.ground.store(), &beside).unwrap();
    std::fs::write(kept.ground.state().join("store.db-wal"), "of the one that was removed").unwrap();
    let opened = kept.open();
    assert_eq!((opened.store.store_id(), opened.note), (id, None));
    assert_eq!(opened.store.note("life").unwrap().as_deref(), Some(&b"whole"[..]));
    assert_eq!(damaged(&kept), ["store.db.damaged-7-wal"], "and the log is kept, not read into it");
    opened.store.close();
    // One that is not whole is kept aside like any damaged store.
    std::fs::remove_file(kept.ground.store()).unwrap();
    std::fs::write(&beside, "half of a copy").unwrap();
    let opened = kept.open();
    assert!(opened.note.unwrap().contains("damaged-8") && !beside.exists());
    assert_ne!(opened.store.store_id(), id);
}

struct Mounted(std::path::PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        nix::mount::umount2(&self.0, nix::mount::MntFlags::MNT_DETACH).unwrap();
    }
}

// case: O-05
#[test]
fn a_store_is_opened_on_a_full_disk_with_the_room_that_was_kept_for_it_again_and_again() {
    use nix::mount::{MsFlags, mount};
    let kept = Kept::new();
    let state = kept.ground.state();
    if mount(Some("tmpfs"), &state, Some("tmpfs"), MsFlags::empty(), Some("size=2m")).is_err() {
        eprintln!("skipped: mounting needs root");
        return;
    }
    let _mounted = Mounted(state.clone());
    let store = kept.open().store;
    store.set_note("life", b"whole").unwrap();
    store.close();
    let mut file = std::fs::File::create(state.join("ballast")).unwrap();
    while std::io::Write::write(&mut file, &[0; 4096]).is_ok_and(|wrote| wrote > 0) {}
    drop(file);
    for _ in 0..3 {
        let store = kept.open().store;
        assert_eq!(store.note("life").unwrap().as_deref(), Some(&b"whole"[..]));
        assert!(matches!(store.set_note("life", &[0; 256 * 1024]), Err(DatabaseError::Full)));
        store.close();
    }
    // With nothing kept it is named, and not taken for a disk that fails.
    std::fs::remove_file(state.join("store.reserve")).unwrap();
    let mut file = std::fs::File::create(state.join("more")).unwrap();
    while std::io::Write::write(&mut file, &[0; 4096]).is_ok_and(|wrote| wrote > 0) {}
    drop(file);
    let error = Store::open(&kept.ground, true, Moment::from_millis(9)).unwrap_err();
    assert_eq!(error.code(), "store_full");
    assert!(damaged(&kept).is_empty());
}

// case: O-05
#[test]
fn what_a_removed_log_held_outlives_a_full_disk_because_the_store_stays_open_until_it_is_written_back() {
    use nix::mount::{MsFlags, mount};
    let kept = Kept::new();
    let state = kept.ground.state();
    if mount(Some("tmpfs"), &state, Some("tmpfs"), MsFlags::empty(), Some("size=4m")).is_err() {
        eprintln!("skipped: mounting needs root");
        return;
    }
    let _mounted = Mounted(state.clone());
    let store = kept.open().store;
    store.set_note("life", &[7; 256 * 1024]).unwrap();
    let mut file = std::fs::File::create(state.join("ballast")).unwrap();
    while std::io::Write::write(&mut file, &[0; 4096]).is_ok_and(|wrote| wrote > 0) {}
    drop(file);
    std::fs::remove_file(state.join("store.db-wal")).unwrap();
    let trouble = StoreTrouble::of(&store.in_place().unwrap_err());
    assert_eq!((trouble.refusal.code.as_str(), trouble.cure), ("store_log_removed", Cure::WriteBack));
    let named = StoreTrouble::not_written_back(&store.write_back().unwrap_err());
    assert_eq!((named.refusal.code.as_str(), named.cure), ("store_full", Cure::Time));
    assert!(named.refusal.happened.contains("log was removed"), "{named:?}");
    assert!(named.refusal.remedy.contains("do not stop the host"), "{named:?}");
    assert_eq!(store.note("life").unwrap().as_deref(), Some(&[7; 256 * 1024][..]), "nothing is lost yet");
    std::fs::remove_file(state.join("ballast")).unwrap();
    store.write_back().unwrap();
    store.close();
    let again = kept.open();
    assert_eq!(again.note, None);
    assert_eq!(again.store.note("life").unwrap().as_deref(), Some(&[7; 256 * 1024][..]));
}
