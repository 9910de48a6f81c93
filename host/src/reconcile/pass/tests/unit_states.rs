//! What units are besides enabled and running: masked, known by several names, falling over again and again, slow to
//! come up, given up, and read anew.

use serde_json::json;
use tenure_protocol::foresight::What;

use super::scripted::{Lie, somebody_masks, unit};
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
        [
            "stop nginx.service",
            "stop quiet.service",
            "mask nginx.service",
            "mask quiet.service",
            "daemon-reload"
        ]
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
            "daemon-reload",
            "start nginx.service",
            "unmask quiet.service",
            "daemon-reload",
            "start quiet.service"
        ]
    );
    machine.forget("unit:theirs.service");
    machine.pass();
    assert_eq!(machine.is("theirs.service"), ("inactive", "masked"));
    // What was masked since is somebody else's.
    somebody_masks(&machine, "nginx.service");
    assert_eq!(line_of(&mut machine, NGINX), (Refused, Some("unit_masked".to_owned())));
}

/// A unit that we masked, and that ran before.
fn masked_by_us() -> Machine {
    let mut machine = Machine::with_programs();
    machine.has_unit("nginx.service", unit("active", "enabled"));
    machine.unit("nginx.service", json!({ "masked": true, "running": false }), &[]);
    machine.pass();
    assert_eq!(machine.acts(), ["stop nginx.service", "mask nginx.service", "daemon-reload"]);
    machine
}

// case: O-15
// rule: H-24
#[test]
fn a_mask_that_we_took_back_is_no_longer_ours_also_where_what_had_to_follow_failed() {
    let mut machine = masked_by_us();
    machine.unit("nginx.service", up(), &[]);
    machine.lies("start", Lie::Fails("Job failed.\n"));
    assert_eq!(line_of(&mut machine, NGINX).0, Failed);
    let acts = ["unmask nginx.service", "enable nginx.service", "daemon-reload", "start nginx.service"];
    assert_eq!(machine.acts(), acts);
    somebody_masks(&machine, "nginx.service");
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
    machine.lies("start", Lie::Fails("Job failed.\n"));
    assert_eq!(line_of(&mut machine, NGINX).0, Failed);
    assert_eq!(machine.acts(), ["unmask nginx.service", "daemon-reload", "start nginx.service"]);
    somebody_masks(&machine, "nginx.service");
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
        std::fs::remove_file(machine.at("/etc/systemd/system/nginx.service")).unwrap();
    });
    machine.unit("nginx.service", up(), &[]);
    assert_eq!(line_of(&mut machine, NGINX), (Refused, Some("unit_not_enableable".to_owned())));
    somebody_masks(&machine, "nginx.service");
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
    let acts = ["unmask nginx.service", "disable nginx.service", "daemon-reload", "start nginx.service"];
    assert_eq!(machine.acts(), acts);
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
    assert_eq!(machine.acts(), ["enable ssh.service", "daemon-reload"]);
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
    machine.set(|state| state.up = 100);
    assert_eq!(line_of(&mut machine, NGINX).0, Unchanged);
}

// rule: H-09
#[test]
fn a_unit_that_is_met_in_its_first_fall_is_failed_and_is_not_said_to_have_been_started_anew() {
    let mut machine = Machine::with_programs();
    let mut falls = unit("auto-restart", "enabled");
    falls.result = "exit-code";
    machine.has_unit("nginx.service", falls);
    machine.unit("nginx.service", up(), &[]);
    let done = machine.pass();
    assert_eq!(outcome(&done, NGINX), (Failed, Some("unit_died".to_owned())));
    let said = "it ended with exit-code, and is to be started anew by itself; `journalctl -u nginx.service` on the \
                machine says why";
    assert_eq!(reason(&done, NGINX), said);
    assert_eq!(machine.acts(), Vec::<String>::new(), "systemd does that");
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
    let acts = ["daemon-reload", "enable app.service", "daemon-reload", "start app.service"];
    assert_eq!(machine.acts(), acts);
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
fn what_the_bus_says_of_units_is_believed_whole_and_one_that_is_silent_is_asked_once_in_a_pass() {
    let mut machine = Machine::with_programs();
    machine.has_unit("nginx.service", unit("inactive", "enabled"));
    machine.has_unit("other.service", unit("active", "enabled"));
    machine.unit("nginx.service", up(), &[]);
    machine.unit("other.service", up(), &[]);
    let calls = |machine: &Machine| std::mem::take(&mut machine.state().calls);
    machine.set(|state| (state.has_bus, state.bus_shows_all_but) = (true, Some("")));
    assert_eq!(machine.pass().summary.counts.in_words(), "1 unchanged, 1 applied");
    let made = calls(&machine);
    assert_eq!(made[..2], ["bus: nginx.service other.service", "start nginx.service"]);
    assert!(made.iter().all(|call| !call.starts_with("show ")), "{made:?}");
    // Of one it says nothing: systemctl knows why, and is asked about both.
    machine.set(|state| state.bus_shows_all_but = Some("other.service"));
    machine.set(|state| state.units.get_mut("nginx.service").unwrap().active = "inactive");
    assert_eq!(machine.pass().summary.counts.in_words(), "1 unchanged, 1 applied");
    assert_eq!(
        calls(&machine)[..4],
        [
            "list-units by name",
            "bus: nginx.service other.service",
            "show nginx.service other.service",
            "start nginx.service"
        ]
    );
    // It gives no answer at all: it is asked once in a pass, however often units are looked at.
    machine.set(|state| state.bus_is_silent = true);
    machine.set(|state| state.units.get_mut("nginx.service").unwrap().active = "inactive");
    assert_eq!(machine.pass().summary.counts.in_words(), "1 unchanged, 1 applied");
    let made = calls(&machine);
    let many = |word: &str| made.iter().filter(|call| call.starts_with(word)).count();
    assert_eq!((many("bus: silent"), many("bus: ")), (1, 1), "{made:?}");
    assert!(many("show ") >= 2, "{made:?}");
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

/// A unit file and its unit.
fn one_of_many(machine: &mut Machine, number: usize) {
    let (path, name) = (format!("/etc/systemd/system/m{number}.service"), format!("m{number}.service"));
    machine.file(&path, "[Service]\n");
    machine.unit(&name, up(), &[&format!("file:{path}")]);
}

fn reads(machine: &Machine) -> usize {
    let acts = machine.acts();
    assert!(!acts.iter().any(|act| act == "daemon-reload unasked"), "each would be one reading more");
    acts.iter().filter(|act| *act == "daemon-reload").count()
}

// rule: H-09
#[test]
fn however_many_unit_files_and_units_come_or_go_the_service_manager_reads_them_no_more_than_twice() {
    let mut machine = Machine::with_programs();
    machine.file("/srv/a", "a");
    (0..200).for_each(|number| one_of_many(&mut machine, number));
    assert_eq!(machine.pass().summary.counts.in_words(), "401 applied");
    assert_eq!(reads(&machine), 2, "before the first is enabled, and before the first is begun");
    machine.pass();
    assert_eq!(machine.acts(), [""; 0]);
    (0..200).for_each(|number| machine.file(&format!("/etc/systemd/system/m{number}.service"), "[Unit]\n"));
    machine.pass();
    assert_eq!(reads(&machine), 1, "nothing but files was changed");
    (0..200).for_each(|number| {
        machine.forget(&format!("unit:m{number}.service"));
        machine.forget(&format!("file:/etc/systemd/system/m{number}.service"));
    });
    assert_eq!(machine.pass().summary.counts.in_words(), "1 unchanged, 200 removed, 200 released");
    assert_eq!(reads(&machine), 2, "once they are disabled, and once their files are gone");
}

// rule: H-09
#[test]
fn unit_files_that_the_service_manager_did_not_read_are_read_in_the_next_pass_though_nothing_else_is_due() {
    let mut machine = Machine::with_programs();
    machine.file("/etc/systemd/system/app.service", "[Service]\n");
    machine.lies("daemon-reload", Lie::Fails("Refusing to reload, not enough space.\n"));
    assert_eq!(machine.pass().summary.counts.in_words(), "1 applied");
    for _ in 0..2 {
        machine.acts();
        assert_eq!(machine.pass().summary.counts.in_words(), "1 unchanged");
        assert_eq!(machine.acts(), ["daemon-reload"], "once a pass");
    }
    machine.set(|state| state.lies.clear());
    machine.pass();
    assert_eq!(machine.acts(), ["daemon-reload"]);
    machine.pass();
    assert_eq!(machine.acts(), [""; 0]);
}

// rule: A-18
#[test]
fn while_unit_files_are_unread_only_what_hangs_on_none_of_them_is_foreseen_of_a_unit() {
    let mut machine = Machine::with_programs();
    machine.has_unit("nginx.service", unit("active", "enabled"));
    let mut theirs = unit("inactive", "masked");
    theirs.load = "masked";
    machine.has_unit("theirs.service", theirs);
    machine.file("/etc/systemd/system/app.service", "[Service]\n");
    machine.lies("daemon-reload", Lie::Fails("Refusing to reload, not enough space.\n"));
    machine.pass();
    machine.unit("nginx.service", up(), &[]);
    machine.unit("theirs.service", up(), &[]);
    machine.unit("tenure-host.service", json!({ "running": false }), &[]);
    machine.unit("ssh.service", up(), &["unit:tenure-host.service"]);
    let lines = machine.foresee(&machine.declaration()).unwrap();
    let of = |key: &str| lines.iter().find(|line| line.key == format!("unit:{key}")).unwrap();
    let seen = ["nginx.service", "theirs.service"].map(of);
    assert!(seen.iter().all(|line| line.code.as_deref() == Some("cut_short")), "{seen:?}");
    let unread = "systemd has not read all changed unit files yet, and a pass has it read them first";
    assert_eq!(seen[0].detail, [unread], "whether or not a pass was cut short");
    let (own, waits) = (of("tenure-host.service"), of("ssh.service"));
    assert_eq!((own.what, own.code.as_deref()), (What::Refuse, Some("own_unit")), "{own:?}");
    assert_eq!(waits.what, What::Wait, "{waits:?}");
}

// rule: H-09
#[test]
fn a_unit_that_ended_badly_soon_after_it_was_begun_is_failed_at_the_next_look_though_it_is_begun_anew() {
    let mut machine = Machine::with_programs();
    machine.has_unit("nginx.service", unit("inactive", "enabled"));
    machine.unit("nginx.service", up(), &[]);
    assert_eq!(line_of(&mut machine, NGINX).0, Applied);
    machine.set(|state| state.up = 100);
    let dies = |state: &mut super::scripted::State, after: u64| {
        let unit = state.units.get_mut("nginx.service").unwrap();
        (unit.active, unit.result, unit.ended) = ("failed", "exit-code", unit.began + after * 1_000_000);
    };
    for _ in 0..2 {
        machine.set(|state| dies(state, 5));
        machine.acts();
        let done = machine.pass();
        assert_eq!(outcome(&done, NGINX), (Failed, Some("unit_died".to_owned())));
        assert!(reason(&done, NGINX).contains("exit-code 5 s after"), "{}", reason(&done, NGINX));
        assert_eq!(machine.acts(), ["start nginx.service"]);
    }
    machine.set(|state| state.up = 1);
    // What is counted there is another time: sleep counts, and a container may see its own.
    std::fs::create_dir(machine.at("/proc")).unwrap();
    machine.write("/proc/uptime", "100000.0 1.0\n");
    assert_eq!(line_of(&mut machine, NGINX), (Failed, Some("unit_died".to_owned())), "it may end once more");
    machine.set(|state| state.up = 100);
    assert_eq!(line_of(&mut machine, NGINX).0, Unchanged, "it has been up for a minute");
    // One that ran for long is put right like anything that somebody changed, and so is one that was changed besides.
    machine.set(|state| dies(state, 3_600));
    assert_eq!(line_of(&mut machine, NGINX), (Applied, Some("drift".to_owned())));
    machine.set(|state| dies(state, 5));
    machine.file("/etc/nginx/nginx.conf", "right this time");
    assert_eq!(line_of(&mut machine, NGINX).0, Applied);
    // So is one that somebody else began, or the start of the machine.
    machine.set(|state| dies(state, 5));
    machine.set(|state| state.up = 1);
    assert_eq!(line_of(&mut machine, NGINX), (Applied, Some("drift".to_owned())));
}

// rule: H-09
#[test]
fn a_unit_that_started_anew_by_itself_since_it_was_last_looked_at_is_failed_however_slowly_it_falls() {
    let mut machine = Machine::with_programs();
    machine.has_unit("nginx.service", unit("inactive", "enabled"));
    machine.unit("nginx.service", up(), &[]);
    assert_eq!(line_of(&mut machine, NGINX).0, Applied);
    // Whoever looks finds it up for ten minutes.
    machine.set(|state| state.up = 600);
    for times in ["once", "2 times"] {
        machine.set(|state| state.units.get_mut("nginx.service").unwrap().restarts += 1);
        let done = machine.pass();
        assert_eq!(outcome(&done, NGINX), (Failed, Some("unit_died".to_owned())));
        assert!(reason(&done, NGINX).contains(times), "{}", reason(&done, NGINX));
        assert_eq!(line_of(&mut machine, NGINX).0, Unchanged, "it has not fallen since");
    }
    // systemd counts anew from a start that somebody asked for.
    machine.set(|state| state.units.get_mut("nginx.service").unwrap().restarts = 0);
    assert_eq!(line_of(&mut machine, NGINX).0, Unchanged);
    machine.set(|state| state.units.get_mut("nginx.service").unwrap().restarts = 1);
    assert_eq!(line_of(&mut machine, NGINX).0, Failed);
}
