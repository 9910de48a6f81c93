//! The file system below the host's store: it turns read-only, it is taken away, it loses what was written last. Looking
//! at the store changes nothing of it.

use serde_json::Value;
use tenure_tests::disk::Disk;
use tenure_tests::sandbox::Sandbox;

use crate::host_store::{STATE, declared, drift, is_repaired, pid, status, stop_host};

fn says(sandbox: &Sandbox, code: &str) {
    sandbox.wait("it is said here", |s| status(s)["last"]["refused"]["code"] == code);
    sandbox.wait("and upward", |s| s.node()["report"]["refused"]["code"] == code);
    assert!(!is_repaired(sandbox), "nothing is changed that could not be recorded");
}

fn events(sandbox: &Sandbox, kind: &str) -> usize {
    sandbox.events().iter().filter(|event| event["kind"] == kind).count()
}

/// What lies in the host's store as a file.
fn bytes(sandbox: &Sandbox) -> Vec<u8> {
    std::fs::read(sandbox.machine(STATE).join("store.db")).unwrap()
}

// rule: H-10
// case: O-05
#[test]
fn a_file_system_that_a_fault_turns_read_only_under_a_running_host_is_said_and_the_host_stays_and_beats() {
    let sandbox = Sandbox::empty();
    let image = sandbox.at("disk.img");
    let Some(disk) = Disk::in_a_file(&image, &sandbox.machine(STATE)) else { return };
    let mut sandbox = declared(sandbox);
    let started = pid(&sandbox);
    // The kernel refuses `mount -o remount,ro` while the store is open: it is a fault that does this.
    disk.fail();
    drift(&sandbox);
    says(&sandbox, "store_read_only");
    let heard = |sandbox: &Sandbox| -> Value { sandbox.node()["last_contact"].clone() };
    let before = heard(&sandbox);
    sandbox.wait("it goes on beating", |s| heard(s) != before);
    assert!(!is_repaired(&sandbox) && pid(&sandbox) == started && !sandbox.node()["session"].is_null());
    stop_host(&mut sandbox);
    disk.mend(&image);
    sandbox.start_host();
    sandbox.wait("it holds on", is_repaired);
    assert_eq!(events(&sandbox, "store_lost"), 0);
    assert_eq!(sandbox.host(&["owned", "--json"]).expect(0).json()[0]["origin"], "created");
}

// case: O-05
// case: O-70
#[test]
fn a_store_whose_file_system_is_taken_from_its_place_is_said_and_nothing_is_written_to_the_disk_below() {
    let sandbox = Sandbox::empty();
    let Some(disk) = Disk::in_memory(&sandbox.machine(STATE), 16 << 10) else { return };
    let mut sandbox = declared(sandbox);
    let (started, kept) = (pid(&sandbox), disk.also_at(&sandbox.at("kept")));
    disk.detach();
    drift(&sandbox);
    says(&sandbox, "store_unmounted");
    let below = || std::fs::read_dir(sandbox.machine(STATE)).unwrap().count();
    assert_eq!((below(), pid(&sandbox)), (0, started));
    let again = kept.also_at(&sandbox.machine(STATE));
    sandbox.wait("the same host goes on where it is mounted again", is_repaired);
    assert_eq!((pid(&sandbox), events(&sandbox, "store_lost")), (started, 0));
    again.detach();
    drift(&sandbox);
    says(&sandbox, "store_unmounted");
    stop_host(&mut sandbox);
    assert_eq!(std::fs::read_dir(sandbox.machine(STATE)).unwrap().count(), 0, "nor at its end");
}

// rule: H-11
// case: O-64
#[test]
fn a_log_that_was_emptied_after_a_kill_is_missed_and_what_is_found_is_kept() {
    let mut sandbox = declared(Sandbox::empty());
    let before = status(&sandbox);
    sandbox.kill_host();
    std::fs::write(sandbox.machine(STATE).join("store.db-wal"), "").unwrap();
    sandbox.start_host();
    let after = status(&sandbox);
    assert_ne!(after["store_id"], before["store_id"]);
    sandbox.wait("the loss is told", |s| events(s, "store_lost") == 1);
    assert!(is_repaired(&sandbox), "and costs the machine nothing");
}

// case: O-05
#[test]
fn looking_with_the_host_stopped_leaves_the_bytes_of_its_store_as_they_were() {
    let mut sandbox = declared(Sandbox::empty());
    stop_host(&mut sandbox);
    let before = bytes(&sandbox);
    for look in ["status", "owned", "held", "plan"] {
        sandbox.host(&[look]).expect(0);
        assert!(bytes(&sandbox) == before, "{look} has written into the store");
    }
}
