//! What units are besides enabled and running: masked, known by several names, falling over again and again, slow to
//! come up, given up, and read anew.

use serde_json::json;

use super::scripted::unit;
use super::*;

const NGINX: &str = "unit:nginx.service";

fn up() -> serde_json::Value {
    json!({ "enabled": true, "running": true })
}

fn line_of(machine: &mut Machine, key: &str) -> (tenure_protocol::outcome::Outcome, Option<String>) {
    outcome(&machine.pass(), key)
}

// case: O-15
// rule: H-24
#[test]
fn a_mask_of_ours_is_taken_back_when_it_is_no_longer_declared_and_one_of_somebody_else_never_is() {
    let mut machine = Machine::with_programs();
    machine.has_unit("nginx.service", unit("active", "enabled"));
    machine.has_unit("quiet.service", unit("active", "enabled"));
    let mut theirs = unit("inactive", "masked");
    theirs.load = "masked";
    machine.has_unit("theirs.service", theirs);
    machine.file("/srv/a", "a");
    for name in ["nginx.service", "quiet.service", "theirs.service"] {
        machine.unit(name, json!({ "masked": true, "running": false }), &[]);
    }
    assert_eq!(machine.pass().summary.counts.in_words(), "1 unchanged, 3 applied");
    assert_eq!(
        machine.acts(),
        ["stop nginx.service", "mask nginx.service", "stop quiet.service", "mask quiet.service"]
    );
    assert_eq!(machine.pass().summary.counts.in_words(), "4 unchanged");
    // Declared otherwise; no longer declared.
    machine.unit("nginx.service", up(), &[]);
    machine.unit("theirs.service", up(), &[]);
    machine.forget("unit:quiet.service");
    let done = machine.pass();
    assert_eq!(outcome(&done, "unit:theirs.service"), (Refused, Some("unit_masked".to_owned())));
    assert_eq!((line(&done, NGINX).outcome, line(&done, "unit:quiet.service").outcome), (Applied, Released));
    assert_eq!(
        machine.acts(),
        [
            "unmask nginx.service",
            "enable nginx.service",
            "start nginx.service",
            "unmask quiet.service",
            "start quiet.service"
        ]
    );
    machine.forget("unit:theirs.service");
    machine.pass();
    assert_eq!(machine.is("theirs.service"), ("inactive", "masked"));
    // What was masked since is somebody else's.
    machine.set(|state| state.units.get_mut("nginx.service").unwrap().load = "masked");
    assert_eq!(line_of(&mut machine, NGINX), (Refused, Some("unit_masked".to_owned())));
}

/// A unit that we masked, and that ran before.
fn masked_by_us() -> Machine {
    let mut machine = Machine::with_programs();
    machine.has_unit("nginx.service", unit("active", "enabled"));
    machine.unit("nginx.service", json!({ "masked": true, "running": false }), &[]);
    machine.pass();
    assert_eq!(machine.acts(), ["stop nginx.service", "mask nginx.service"]);
    machine
}

fn somebody_masks_nginx(machine: &Machine) {
    let masks = |unit: &mut super::scripted::Unit| (unit.load, unit.enabled) = ("masked", "masked");
    machine.set(|state| masks(state.units.get_mut("nginx.service").unwrap()));
}

// case: O-15
// rule: H-24
#[test]
fn a_mask_that_we_took_back_is_no_longer_ours_also_where_what_had_to_follow_failed() {
    let mut machine = masked_by_us();
    machine.unit("nginx.service", up(), &[]);
    machine.lies("start", super::scripted::Lie::Fails("Job failed.\n"));
    assert_eq!(line_of(&mut machine, NGINX).0, Failed);
    assert_eq!(machine.acts(), ["unmask nginx.service", "enable nginx.service", "start nginx.service"]);
    somebody_masks_nginx(&machine);
    assert_eq!(line_of(&mut machine, NGINX), (Refused, Some("unit_masked".to_owned())));
    assert_eq!(machine.acts(), Vec::<String>::new());
    assert_eq!(machine.is("nginx.service").1, "masked");
}

// case: O-15
// rule: H-24
#[test]
fn a_mask_that_we_took_back_of_a_unit_that_left_is_no_longer_ours_where_it_could_not_be_started() {
    let mut machine = masked_by_us();
    machine.forget(NGINX);
    machine.lies("start", super::scripted::Lie::Fails("Job failed.\n"));
    assert_eq!(line_of(&mut machine, NGINX).0, Failed);
    assert_eq!(machine.acts(), ["unmask nginx.service", "start nginx.service"]);
    somebody_masks_nginx(&machine);
    assert_eq!(line_of(&mut machine, NGINX).0, Released);
    assert_eq!(machine.acts(), Vec::<String>::new());
}

// case: O-15
// rule: H-24
#[test]
fn a_mask_of_ours_that_somebody_took_back_is_no_longer_ours_also_of_a_unit_that_can_never_be_as_declared() {
    let mut machine = masked_by_us();
    machine.set(|state| {
        let unit = state.units.get_mut("nginx.service").unwrap();
        (unit.load, unit.enabled) = ("loaded", "static");
    });
    machine.unit("nginx.service", up(), &[]);
    assert_eq!(line_of(&mut machine, NGINX), (Refused, Some("unit_not_enableable".to_owned())));
    somebody_masks_nginx(&machine);
    assert_eq!(line_of(&mut machine, NGINX), (Refused, Some("unit_masked".to_owned())));
    assert_eq!(machine.acts(), Vec::<String>::new());
}

// rule: H-24
#[test]
fn what_was_declared_of_a_unit_once_is_taken_back_when_it_leaves_also_from_behind_our_mask() {
    let mut machine = Machine::with_programs();
    machine.has_unit("nginx.service", unit("active", "disabled"));
    machine.file("/srv/a", "a");
    machine.unit("nginx.service", up(), &[]);
    machine.pass();
    machine.unit("nginx.service", json!({ "masked": true, "running": false }), &[]);
    machine.pass();
    machine.acts();
    machine.forget(NGINX);
    assert_eq!(line(&machine.pass(), NGINX).outcome, Released);
    assert_eq!(machine.acts(), ["unmask nginx.service", "disable nginx.service", "start nginx.service"]);
}

// case: O-16
#[test]
fn a_unit_declared_by_another_name_is_acted_on_by_its_own_and_this_is_said() {
    let mut machine = Machine::with_programs();
    let mut ssh = unit("inactive", "disabled");
    ssh.id = "ssh.service".to_owned();
    machine.has_unit("sshd.service", ssh);
    machine.has_unit("ssh.service", unit("inactive", "disabled"));
    machine.unit("sshd.service", json!({ "enabled": true }), &[]);
    machine.pass();
    assert_eq!(machine.acts(), ["enable ssh.service"]);
    machine.set(|state| state.units.get_mut("sshd.service").unwrap().enabled = "enabled");
    let done = machine.pass();
    assert_eq!(outcome(&done, "unit:sshd.service"), (Unchanged, Some("alias".to_owned())));
    assert_eq!(reason(&done, "unit:sshd.service"), "sshd.service is another name of ssh.service");
    assert_eq!(machine.pass().changed, [], "it is said once");
}

// case: O-16
#[test]
fn two_names_of_one_unit_are_one_unit_also_where_their_turns_are_apart() {
    let mut machine = Machine::with_programs();
    let mut alias = unit("active", "enabled");
    alias.id = "ssh.service".to_owned();
    machine.has_unit("ssh.service", unit("active", "enabled"));
    machine.has_unit("sshd.service", alias);
    machine.unit("ssh.service", up(), &[]);
    machine.file("/etc/nginx/x", "x");
    machine.unit("sshd.service", json!({ "running": false }), &["unit:ssh.service", "file:/etc/nginx/x"]);
    let done = machine.pass();
    assert_eq!(outcome(&done, "unit:sshd.service"), (Refused, Some("unit_twice".to_owned())));
    assert_eq!(machine.acts(), Vec::<String>::new());
}

// rule: H-09
#[test]
fn a_unit_that_is_found_up_between_two_of_its_falls_is_failed_and_not_begun_besides() {
    let mut machine = Machine::with_programs();
    let mut falls = unit("active", "enabled");
    falls.restarts = 7;
    machine.has_unit("nginx.service", falls.clone());
    machine.unit("nginx.service", up(), &[]);
    let done = machine.pass();
    assert_eq!(outcome(&done, NGINX), (Failed, Some("unit_died".to_owned())));
    assert!(reason(&done, NGINX).contains("7 times"), "{}", reason(&done, NGINX));
    falls.active = "auto-restart";
    machine.has_unit("nginx.service", falls.clone());
    assert_eq!(line_of(&mut machine, NGINX), (Failed, Some("unit_died".to_owned())));
    assert_eq!(machine.acts(), Vec::<String>::new());
    // One that has been up for long since is well.
    falls.active = "active";
    machine.has_unit("nginx.service", falls);
    machine.write("/proc/uptime", "100.0 1.0\n");
    assert_eq!(line_of(&mut machine, NGINX).0, Unchanged);
}

#[test]
fn what_does_not_come_up_in_time_is_outstanding_and_systemd_goes_on_with_it() {
    let mut machine = Machine::with_programs();
    let mut slow = unit("activating", "enabled");
    slow.becomes = "activating";
    machine.has_unit("nginx.service", slow);
    machine.unit("nginx.service", up(), &[]);
    let done = machine.pass();
    assert_eq!(outcome(&done, NGINX), (Outstanding, Some("unit_starting".to_owned())));
    assert!(reason(&done, NGINX).contains("systemctl status nginx.service"), "{}", reason(&done, NGINX));
    assert_eq!(machine.acts(), Vec::<String>::new(), "it is on its way already");
}

#[test]
fn a_unit_that_was_given_up_is_begun_anew_once_its_configuration_was_changed() {
    let mut machine = Machine::with_programs();
    let mut failed = unit("failed", "enabled");
    failed.result = "start-limit-hit";
    machine.has_unit("nginx.service", failed);
    machine.file("/etc/nginx/nginx.conf", "one");
    machine.unit(
        "nginx.service",
        json!({ "running": true, "restart_on": ["file:/etc/nginx/nginx.conf"] }),
        &[],
    );
    machine.pass();
    assert_eq!(machine.acts(), ["reset-failed nginx.service", "start nginx.service"]);
}

#[test]
fn many_unit_files_and_drop_ins_are_read_in_one_go_also_those_of_units_that_are_not_declared() {
    let mut machine = Machine::with_programs();
    machine.directory("/etc/systemd/system/ssh.service.d", "0755");
    machine.file("/etc/systemd/system/ssh.service.d/10-more.conf", "[Service]\n");
    machine.file("/etc/systemd/system/app.service", "[Service]\n");
    machine.file("/etc/systemd/system/other.service", "[Service]\n");
    machine.file("/etc/fstab", "");
    machine.unit("app.service", up(), &[]);
    assert_eq!(machine.pass().summary.counts.in_words(), "6 applied");
    assert_eq!(machine.acts(), ["daemon-reload", "enable app.service", "start app.service"]);
    assert_eq!(machine.pass().summary.counts.in_words(), "6 unchanged");
    assert_eq!(machine.acts(), Vec::<String>::new());
}

#[test]
fn what_is_remembered_of_units_is_asked_for_again_once_anything_of_it_may_have_changed() {
    let mut machine = Machine::with_programs();
    machine.set(|state| state.has_bus = true);
    machine.has_unit("nginx.service", unit("active", "enabled"));
    machine.unit("nginx.service", up(), &[]);
    let calls = |machine: &Machine| std::mem::take(&mut machine.state().calls);
    assert_eq!(line(&machine.pass(), NGINX).outcome, Unchanged);
    assert_eq!(calls(&machine), ["show nginx.service"], "nothing is remembered yet");
    machine.pass();
    assert_eq!(calls(&machine), ["list-units by name"]);
    // It was stopped: it is looked at in full, and started.
    machine.set(|state| state.units.get_mut("nginx.service").unwrap().active = "inactive");
    assert_eq!(line(&machine.pass(), NGINX).outcome, Applied);
    assert_eq!(calls(&machine)[..2], ["list-units by name", "show nginx.service"]);
    machine.pass();
    calls(&machine);
    // Whether it starts with the machine stands on the disk.
    machine.set(|state| state.units.get_mut("nginx.service").unwrap().enabled = "disabled");
    machine.write("/etc/systemd/system/other.conf", "");
    assert_eq!(line(&machine.pass(), NGINX).outcome, Applied);
    assert!(calls(&machine).contains(&"enable nginx.service".to_owned()));
    // The bus goes: it is done without.
    machine.set(|state| state.has_bus = false);
    machine.pass();
    calls(&machine);
    assert_eq!(line(&machine.pass(), NGINX).outcome, Unchanged);
    assert_eq!(calls(&machine), ["show nginx.service"]);
}

#[test]
fn nothing_is_done_to_a_unit_by_what_is_only_remembered_of_it() {
    let mut machine = Machine::with_programs();
    machine.set(|state| state.has_bus = true);
    machine.has_unit("nginx.service", unit("active", "enabled"));
    machine.has_unit("other.service", unit("inactive", "enabled"));
    machine.unit("nginx.service", up(), &[]);
    machine.pass();
    machine.unit("other.service", up(), &[]);
    machine.state().calls.clear();
    machine.pass();
    let calls = std::mem::take(&mut machine.state().calls);
    assert_eq!(calls[..2], ["list-units by name", "show other.service"], "the one that is not remembered");
    assert_eq!(calls[2..4], ["show nginx.service other.service", "start other.service"]);
}
