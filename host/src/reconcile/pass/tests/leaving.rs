//! What leaves the declaration.

use super::*;

/// Enough that one more or less needs no word.
fn filled() -> Machine {
    let mut machine = Machine::new();
    machine.file("/srv/stays", "stays");
    machine
}

// rule: H-24
#[test]
fn only_what_we_created_is_removed_and_what_existed_before_us_is_left() {
    let mut machine = filled();
    machine.write("/srv/changed", "theirs");
    machine.write("/srv/already", "same");
    machine.file("/srv/created", "ours");
    machine.file("/srv/changed", "ours");
    machine.file("/srv/already", "same");
    machine.pass();
    for key in ["file:/srv/created", "file:/srv/changed", "file:/srv/already"] {
        machine.forget(key);
    }
    let done = machine.pass();
    assert_eq!(line(&done, "file:/srv/created").outcome, Removed);
    assert!(!machine.at("/srv/created").exists());
    for key in ["file:/srv/changed", "file:/srv/already"] {
        assert_eq!(line(&done, key).outcome, Released);
        assert_eq!(reason(&done, key), "left: existed before us");
    }
    assert_eq!(
        (machine.read("/srv/changed").as_str(), machine.read("/srv/already").as_str()),
        ("ours", "same")
    );
    let mut told = kinds(&done);
    told.sort_unstable();
    assert_eq!(told, [event::RELEASED, event::RELEASED, event::REMOVED]);
    assert_eq!(machine.store.owned_keys().unwrap(), ["file:/srv/stays"]);
    // They are reported once, and then there is nothing more to say of them.
    let next = machine.pass();
    assert_eq!(next.outcomes.len(), 1);
    assert_eq!(next.forgotten, ["file:/srv/already", "file:/srv/changed", "file:/srv/created"]);
}

// rule: H-24
#[test]
fn what_somebody_changed_since_we_created_it_is_released_and_said() {
    let mut machine = filled();
    machine.file("/srv/edited", "ours");
    machine.file("/srv/replaced", "ours");
    machine.file("/srv/gone", "ours");
    machine.pass();
    machine.write("/srv/edited", "by hand");
    std::fs::remove_file(machine.at("/srv/replaced")).unwrap();
    symlink("/srv/stays", machine.at("/srv/replaced")).unwrap();
    std::fs::remove_file(machine.at("/srv/gone")).unwrap();
    for key in ["file:/srv/edited", "file:/srv/replaced", "file:/srv/gone"] {
        machine.forget(key);
    }
    let done = machine.pass();
    assert_eq!(line(&done, "file:/srv/edited").outcome, Released);
    assert_eq!(reason(&done, "file:/srv/edited"), "left: its content was changed since");
    assert_eq!(line(&done, "file:/srv/replaced").outcome, Released);
    assert_eq!(line(&done, "file:/srv/gone").outcome, Removed);
    assert_eq!(
        (machine.read("/srv/edited").as_str(), machine.read("/srv/stays").as_str()),
        ("by hand", "stays")
    );
    assert!(machine.at("/srv/replaced").is_symlink());
}

// case: O-08
#[test]
fn a_directory_with_files_the_host_never_wrote_is_left_with_them() {
    let mut machine = filled();
    machine.directory("/srv/app.d", "0755");
    machine.file("/srv/app.d/one", "1");
    machine.file("/srv/app.d/two", "2");
    machine.pass();
    machine.write("/srv/app.d/by-hand", "mine");
    machine.forget("file:/srv/app.d/one");
    let done = machine.pass();
    assert_eq!(line(&done, "file:/srv/app.d/one").outcome, Removed);
    assert!(!machine.at("/srv/app.d/one").exists());
    machine.forget("file:/srv/app.d/two");
    machine.forget("directory:/srv/app.d");
    let done = machine.pass();
    assert_eq!(line(&done, "file:/srv/app.d/two").outcome, Removed);
    assert_eq!(line(&done, "directory:/srv/app.d").outcome, Released);
    assert_eq!(reason(&done, "directory:/srv/app.d"), "left: holds 1 entries not ours");
    assert_eq!(machine.read("/srv/app.d/by-hand"), "mine");
}

// case: O-08
#[test]
fn a_directory_declared_absent_goes_only_when_it_is_empty() {
    let mut machine = filled();
    std::fs::create_dir(machine.at("/srv/full")).unwrap();
    std::fs::create_dir(machine.at("/srv/empty")).unwrap();
    machine.write("/srv/full/theirs", "x");
    machine.absent("directory", "/srv/full");
    machine.absent("directory", "/srv/empty");
    let done = machine.pass();
    assert_eq!(line(&done, "directory:/srv/empty").outcome, Removed);
    assert_eq!(outcome(&done, "directory:/srv/full"), (Refused, Some("not_empty".to_owned())));
    assert_eq!(reason(&done, "directory:/srv/full"), "left: holds 1 entries not ours");
    assert_eq!(machine.read("/srv/full/theirs"), "x");
}

#[test]
fn directories_we_created_go_with_what_lay_in_them_the_deepest_first() {
    let mut machine = filled();
    machine.directory("/srv/x", "0755");
    machine.directory("/srv/x/y", "0755");
    machine.file("/srv/x/y/f", "f");
    machine.pass();
    machine.resources.retain(|entry| entry["key"] == "file:/srv/stays");
    assert_eq!(machine.pass().summary.counts.in_words(), "1 unchanged, 3 removed");
    assert!(!machine.at("/srv/x").exists());
}

#[test]
fn a_file_makes_way_for_a_directory_declared_in_its_place() {
    let mut machine = filled();
    machine.file("/srv/place", "file");
    machine.pass();
    machine.forget("file:/srv/place");
    machine.directory("/srv/place", "0755");
    machine.file("/srv/place/inside", "x");
    let done = machine.pass();
    assert_eq!(line(&done, "file:/srv/place").outcome, Removed);
    assert_eq!(line(&done, "directory:/srv/place").outcome, Applied);
    assert_eq!(machine.read("/srv/place/inside"), "x");
}

#[test]
fn a_directory_that_leaves_stays_for_what_is_declared_in_it() {
    let mut machine = filled();
    machine.directory("/srv/d", "0755");
    machine.pass();
    machine.forget("directory:/srv/d");
    machine.file("/srv/d/f", "f");
    let done = machine.pass();
    assert_eq!(line(&done, "file:/srv/d/f").outcome, Applied);
    assert_eq!(line(&done, "directory:/srv/d").outcome, Released);
}

#[test]
fn what_was_declared_absent_and_leaves_is_not_put_back() {
    let mut machine = filled();
    machine.write("/srv/old", "old");
    machine.absent("file", "/srv/old");
    assert_eq!(line(&machine.pass(), "file:/srv/old").outcome, Removed);
    machine.write("/srv/old", "again");
    let back = machine.pass();
    assert_eq!(outcome(&back, "file:/srv/old"), (Removed, Some("drift".to_owned())));
    machine.forget("file:/srv/old");
    assert_eq!(line(&machine.pass(), "file:/srv/old").outcome, Released);
    assert!(!machine.at("/srv/old").exists());
}

// rule: H-24
#[test]
fn what_is_spelt_through_a_link_now_is_neither_removed_nor_anybody_elses() {
    let mut machine = filled();
    std::fs::create_dir_all(machine.at("/usr/share")).unwrap();
    symlink("usr/share", machine.at("/share")).unwrap();
    machine.file("/share/a", "ours");
    machine.directory("/share/d", "0755");
    machine.file("/share/d/f", "ours");
    machine.pass();
    for key in ["file:/share/a", "directory:/share/d", "file:/share/d/f"] {
        machine.forget(key);
    }
    machine.file("/usr/share/a", "ours");
    machine.directory("/usr/share/d", "0755");
    machine.file("/usr/share/d/f", "newer");
    let done = machine.pass();
    assert_eq!(done.summary.counts.in_words(), "3 unchanged, 1 applied");
    assert_eq!(
        (machine.read("/usr/share/a"), machine.read("/usr/share/d/f")),
        ("ours".to_owned(), "newer".to_owned())
    );
    let records = machine.store.records().unwrap();
    assert_eq!(records.len(), 4);
    assert!(records.values().all(|record| record.origin == tenure_protocol::outcome::Origin::Created));
    machine.forget("file:/usr/share/a");
    assert_eq!(line(&machine.pass(), "file:/usr/share/a").outcome, Removed);
}

// rule: H-24
#[test]
fn the_second_path_of_one_place_is_refused_by_name_and_leaving_it_removes_nothing() {
    let mut machine = filled();
    std::fs::create_dir_all(machine.at("/usr/share")).unwrap();
    machine.file("/share/a", "one");
    machine.file("/usr/share/a", "two");
    std::fs::create_dir_all(machine.at("/share")).unwrap();
    machine.pass();
    // Now the two are one: each has a record, and the declaration still names both.
    std::fs::remove_dir_all(machine.at("/share")).unwrap();
    symlink("usr/share", machine.at("/share")).unwrap();
    machine.write("/usr/share/a", "one");
    let done = machine.pass();
    assert_eq!(outcome(&done, "file:/usr/share/a"), (Refused, Some("same_place".to_owned())));
    assert!(reason(&done, "file:/usr/share/a").contains("file:/share/a"));
    machine.forget("file:/share/a");
    let done = machine.pass();
    assert_eq!(reason(&done, "file:/share/a"), "left: it is declared as file:/usr/share/a");
    assert_eq!(machine.read("/usr/share/a"), "two");
}

#[test]
fn a_directory_with_more_entries_than_anybody_wants_counted_is_left_and_said_so() {
    let mut machine = filled();
    machine.directory("/srv/many", "0755");
    machine.pass();
    for number in 0..=10_000 {
        std::fs::File::create(machine.at(&format!("/srv/many/{number}"))).unwrap();
    }
    machine.forget("directory:/srv/many");
    assert_eq!(
        reason(&machine.pass(), "directory:/srv/many"),
        "left: holds more than 10000 entries not ours"
    );
}
