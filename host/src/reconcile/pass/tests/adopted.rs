//! On an adopted node what is found stays as found.

use super::*;

// rule: A-01
// rule: A-03
#[test]
fn what_is_found_is_held_byte_for_byte_until_its_module_is_taken() {
    let mut machine = Machine::adopted();
    machine.write("/srv/found", "theirs");
    std::fs::create_dir(machine.at("/srv/dir")).unwrap();
    let before = machine.at("/srv/found").metadata().unwrap();
    machine.file("/srv/found", "ours");
    machine.file("/srv/new", "new");
    machine.directory("/srv/dir", "0711");
    let done = machine.pass();
    assert_eq!(outcome(&done, "file:/srv/found"), (Held, Some("found".to_owned())));
    assert_eq!(line(&done, "directory:/srv/dir").outcome, Held);
    assert_eq!(line(&done, "file:/srv/new").outcome, Applied);
    let after = machine.at("/srv/found").metadata().unwrap();
    assert_eq!((before.ino(), before.ctime_nsec()), (after.ino(), after.ctime_nsec()));
    assert_eq!(machine.store.owned_keys().unwrap(), ["file:/srv/new"]);
    // What we made ourselves is not found by the next pass.
    assert_eq!(line(&machine.pass(), "file:/srv/new").outcome, Unchanged);
    machine.head.taken = vec!["base"];
    let taken = machine.pass();
    assert_eq!(line(&taken, "file:/srv/found").outcome, Applied);
    assert_eq!(machine.read("/srv/found"), "ours");
    assert_eq!(
        machine.store.owned_page(None, 1).unwrap()[0].origin,
        tenure_protocol::outcome::Origin::Changed
    );
}

// rule: A-03
#[test]
fn a_found_thing_that_already_is_as_declared_is_found_all_the_same_and_one_to_be_gone_stays() {
    let mut machine = Machine::adopted();
    machine.write("/srv/same", "same");
    machine.write("/srv/unwanted", "x");
    machine.file("/srv/same", "same");
    machine.absent("file", "/srv/unwanted");
    let done = machine.pass();
    assert_eq!(line(&done, "file:/srv/same").outcome, Held);
    assert_eq!(line(&done, "file:/srv/unwanted").outcome, Held);
    assert!(machine.at("/srv/unwanted").exists());
    assert_eq!(machine.store.owned_count().unwrap(), 0);
}

// case: O-01
#[test]
fn a_link_that_was_found_is_held_and_neither_it_nor_its_target_is_touched() {
    let mut machine = Machine::adopted();
    machine.write("/srv/target", "target");
    symlink("/srv/target", machine.at("/srv/link")).unwrap();
    symlink("/nowhere", machine.at("/srv/dangling")).unwrap();
    machine.file("/srv/link", "ours");
    machine.file("/srv/dangling", "ours");
    let done = machine.pass();
    for key in ["file:/srv/link", "file:/srv/dangling"] {
        assert_eq!(line(&done, key).outcome, Held);
        assert!(reason(&done, key).contains("a link to"));
    }
    assert_eq!(machine.read("/srv/target"), "target");
    assert_eq!(std::fs::read_link(machine.at("/srv/dangling")).unwrap(), Path::new("/nowhere"));
}

#[test]
fn what_was_there_on_a_converged_node_becomes_ours_as_already_there() {
    let mut machine = Machine::new();
    machine.write("/srv/same", "same");
    machine.file("/srv/same", "same");
    let done = machine.pass();
    if is_root() {
        assert_eq!(line(&done, "file:/srv/same").outcome, Unchanged);
    }
    let owned = machine.store.owned_page(None, 9).unwrap();
    assert_eq!(owned[0].origin, tenure_protocol::outcome::Origin::AlreadyThere);
}
