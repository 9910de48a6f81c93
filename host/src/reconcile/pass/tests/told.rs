//! What the way to a path, the system and the store say, each by its own code.

use nix::mount::MsFlags;
use tenure_actors::database::rusqlite::Connection;

use super::scripted::{Lie, unit};
use super::trouble::Mounted;
use super::*;

/// A file system of this kind; none where mounting is not possible here.
fn mounted(machine: &Machine, kind: &str, path: &str) -> Option<Mounted> {
    let at = machine.at(path);
    std::fs::create_dir_all(&at).unwrap();
    match nix::mount::mount(Some(kind), &at, Some(kind), MsFlags::empty(), None::<&str>) {
        Ok(()) => Some(Mounted(at)),
        Err(errno) => {
            eprintln!("skipped: mounting {kind} needs root ({errno})");
            None
        }
    }
}

// rule: S-12
#[test]
fn below_a_folder_of_a_user_no_link_is_followed_and_the_resource_is_refused_by_name() {
    if !is_root() {
        return;
    }
    let mut machine = Machine::new();
    std::fs::create_dir_all(machine.at("/srv/user")).unwrap();
    std::os::unix::fs::chown(machine.at("/srv/user"), Some(1000), Some(1000)).unwrap();
    std::fs::create_dir_all(machine.at("/srv/secret")).unwrap();
    symlink("/srv/secret", machine.at("/srv/user/way")).unwrap();
    machine.file("/srv/user/way/file", "ours");
    let done = machine.pass();
    assert_eq!(outcome(&done, "file:/srv/user/way/file"), (Refused, Some("link_not_followed".to_owned())));
    assert!(!machine.at("/srv/secret/file").exists());
}

// case: O-70
#[test]
fn what_the_system_does_not_permit_fails_by_name() {
    let mut machine = Machine::new();
    // Nobody makes a file in it, whoever he is.
    let Some(_mounted) = mounted(&machine, "sysfs", "/srv/p") else { return };
    machine.file("/srv/p/file", "ours");
    machine.file("/srv/fine", "fine");
    let done = machine.pass();
    assert_eq!(outcome(&done, "file:/srv/p/file"), (Failed, Some("not_permitted".to_owned())));
    assert_eq!(line(&done, "file:/srv/fine").outcome, Applied);
}

// case: O-70
#[test]
fn what_the_system_lets_fail_for_a_reason_without_a_name_fails_with_its_words() {
    let mut machine = Machine::new();
    // It has files, and none of them can be written.
    let Some(_mounted) = mounted(&machine, "hugetlbfs", "/srv/h") else { return };
    machine.file("/srv/h/file", "ours");
    let done = machine.pass();
    assert_eq!(outcome(&done, "file:/srv/h/file"), (Failed, Some("io_error".to_owned())));
    assert!(reason(&done, "file:/srv/h/file").contains("Invalid argument"), "{done:?}");
}

// rule: S-11
#[test]
fn content_that_was_altered_in_the_store_is_not_written_and_fails_by_name() {
    let mut machine = Machine::new();
    machine.file("/srv/file", "as declared");
    let store = Connection::open(machine.ground.store()).unwrap();
    let altered = "PRAGMA busy_timeout = 5000; UPDATE piece SET bytes = CAST('as ALTERED' || ' ' AS BLOB)";
    store.execute_batch(altered).unwrap();
    let done = machine.pass();
    assert_eq!(outcome(&done, "file:/srv/file"), (Failed, Some("content_unreadable".to_owned())));
    assert!(!machine.at("/srv/file").exists() && machine.is_clean());
}

// rule: H-09
#[test]
fn a_start_that_systemd_refuses_fails_with_systemds_words() {
    let mut machine = Machine::with_programs();
    machine.has_unit("nginx.service", unit("inactive", "enabled"));
    machine.unit("nginx.service", serde_json::json!({ "enabled": true, "running": true }), &[]);
    machine.lies("start", Lie::Fails("Job failed."));
    let done = machine.pass();
    assert_eq!(outcome(&done, "unit:nginx.service"), (Failed, Some("unit_failed".to_owned())));
    assert!(reason(&done, "unit:nginx.service").contains("Job failed."), "{done:?}");
}
