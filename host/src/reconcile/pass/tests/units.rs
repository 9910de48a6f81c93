//! Units: enabled, running, restarted on what they follow, and back to how they were.

use std::time::Duration;

use serde_json::json;

use super::scripted::{Lie, Unit, offer, unit};
use super::*;

const NGINX: &str = "unit:nginx.service";

fn up() -> serde_json::Value {
    json!({ "enabled": true, "running": true })
}

fn follows(spec: serde_json::Value, on: &[&str]) -> serde_json::Value {
    let mut spec = spec;
    spec["restart_on"] = json!(on);
    spec
}

#[test]
fn a_unit_is_enabled_and_started_and_the_next_pass_is_quiet() {
    let mut machine = Machine::with_programs();
    machine.has_unit("nginx.service", unit("inactive", "disabled"));
    machine.unit("nginx.service", up(), &[]);
    assert_eq!(line(&machine.pass(), NGINX).outcome, Applied);
    assert_eq!(machine.acts(), ["enable nginx.service", "daemon-reload", "start nginx.service"]);
    assert_eq!(machine.is("nginx.service"), ("active", "enabled"));
    let quiet = machine.pass();
    assert_eq!((line(&quiet, NGINX).outcome, quiet.events.len()), (Unchanged, 0));
    assert_eq!(machine.state().calls, ["show nginx.service"], "one question a pass");
}

// rule: H-09
#[test]
fn what_a_unit_does_counts_and_not_what_was_said_of_it() {
    for (lie, outcome_then) in
        [(Lie::SaysYes, Failed), (Lie::SaysNo, Applied), (Lie::Fails("Job failed."), Failed)]
    {
        let mut machine = Machine::with_programs();
        machine.has_unit("nginx.service", unit("inactive", "enabled"));
        machine.unit("nginx.service", up(), &[]);
        machine.lies("start", lie);
        assert_eq!(line(&machine.pass(), NGINX).outcome, outcome_then);
    }
}

#[test]
fn a_unit_that_does_not_stay_up_has_died_by_name() {
    for becomes in ["failed", "again"] {
        let mut machine = Machine::with_programs();
        let mut falls = unit("inactive", "enabled");
        falls.becomes = becomes;
        machine.has_unit("nginx.service", falls);
        machine.unit("nginx.service", up(), &[]);
        let done = machine.pass();
        assert_eq!(outcome(&done, NGINX), (Failed, Some("unit_died".to_owned())), "{becomes}");
        assert!(reason(&done, NGINX).contains("journalctl -u nginx.service"), "{}", reason(&done, NGINX));
        assert_eq!(machine.state().rests, 1, "one rest for all");
    }
}

#[test]
fn what_is_on_its_way_up_is_waited_for() {
    let mut machine = Machine::with_programs();
    machine.has_unit("nginx.service", unit("activating", "enabled"));
    machine.lies("start", Lie::SaysYes);
    machine.unit("nginx.service", up(), &[]);
    assert_eq!(line(&machine.pass(), NGINX).outcome, Applied);
}

#[test]
fn a_unit_is_restarted_once_when_what_it_follows_was_changed() {
    let mut machine = Machine::with_programs();
    machine.has_unit("nginx.service", unit("active", "enabled"));
    machine.file("/etc/nginx/nginx.conf", "one");
    machine.unit("nginx.service", follows(up(), &["file:/etc/nginx/nginx.conf"]), &[]);
    let done = machine.pass();
    assert_eq!(outcome(&done, NGINX), (Applied, Some("restarted".to_owned())));
    assert!(reason(&done, NGINX).contains("file:/etc/nginx/nginx.conf"));
    assert_eq!(machine.acts(), ["restart nginx.service"]);
    assert_eq!(machine.pass().summary.counts.in_words(), "2 unchanged");
    machine.file("/etc/nginx/nginx.conf", "two");
    machine.pass();
    assert_eq!(machine.acts(), ["restart nginx.service"]);
    // Put right after somebody else has changed it, it is begun anew too.
    machine.write("/etc/nginx/nginx.conf", "theirs");
    machine.pass();
    assert_eq!(machine.acts(), ["restart nginx.service"]);
    // A unit that is to stand still is not begun.
    machine.file("/etc/nginx/nginx.conf", "three");
    machine.unit("nginx.service", follows(json!({ "running": false }), &["file:/etc/nginx/nginx.conf"]), &[]);
    machine.pass();
    assert_eq!(machine.acts(), ["stop nginx.service"]);
}

// rule: H-09
#[test]
fn a_restart_that_did_not_come_to_be_is_tried_again_and_one_that_was_not_done_is_not_said() {
    let mut machine = Machine::with_programs();
    machine.has_unit("nginx.service", unit("active", "enabled"));
    machine.file("/etc/nginx/nginx.conf", "one");
    machine.unit("nginx.service", follows(up(), &["file:/etc/nginx/nginx.conf"]), &[]);
    machine.pass();
    machine.acts();
    machine.lies("restart", Lie::SaysYes);
    machine.file("/etc/nginx/nginx.conf", "two");
    assert_eq!(outcome(&machine.pass(), NGINX), (Failed, Some("not_as_written".to_owned())));
    machine.set(|state| state.lies.clear());
    machine.acts();
    // Nothing changes in this pass: the record knows that it still runs with what was there before.
    assert_eq!(outcome(&machine.pass(), NGINX), (Applied, Some("restarted".to_owned())));
    assert_eq!(machine.acts(), ["restart nginx.service"]);
    assert_eq!(machine.pass().summary.counts.in_words(), "2 unchanged");
}

#[test]
fn a_new_unit_file_is_read_by_the_service_manager_before_its_unit_is_started() {
    let mut machine = Machine::with_programs();
    machine.file("/etc/systemd/system/app.service", "[Service]\n");
    machine.unit("app.service", up(), &[]);
    assert_eq!(machine.pass().summary.counts.in_words(), "2 applied");
    assert_eq!(machine.acts(), ["daemon-reload", "enable app.service", "daemon-reload", "start app.service"]);
    // What was changed behind its back is read too.
    machine.set(|state| state.units.get_mut("app.service").unwrap().stale = true);
    machine.pass();
    assert_eq!(machine.acts(), ["daemon-reload"]);
}

#[test]
fn a_unit_that_is_nowhere_fails_by_name_and_comes_with_its_package() {
    let mut machine = Machine::with_programs();
    machine.unit("nginx.service", up(), &[]);
    assert_eq!(outcome(&machine.pass(), NGINX), (Failed, Some("unit_missing".to_owned())));
    machine.offers("nginx", &[offer("1.0")]);
    machine.set(|state| {
        state.brings.insert("nginx".to_owned(), ("nginx.service".to_owned(), unit("inactive", "disabled")));
    });
    machine.package("nginx", "present", &[]);
    assert_eq!(machine.pass().summary.counts.in_words(), "2 applied");
}

// case: O-15
// case: O-16
#[test]
fn a_masked_unit_and_one_that_cannot_be_enabled_are_refused_and_left() {
    let mut machine = Machine::with_programs();
    let mut masked = unit("inactive", "masked");
    masked.load = "masked";
    machine.has_unit("legacy.service", masked);
    machine.has_unit("fixed.service", unit("active", "static"));
    machine.unit("legacy.service", up(), &[]);
    machine.unit("fixed.service", up(), &[]);
    let done = machine.pass();
    assert_eq!(outcome(&done, "unit:legacy.service"), (Refused, Some("unit_masked".to_owned())));
    assert_eq!(outcome(&done, "unit:fixed.service"), (Refused, Some("unit_not_enableable".to_owned())));
    assert_eq!(machine.acts(), Vec::<String>::new());
}

// rule: H-02
#[test]
fn the_hosts_own_unit_is_refused_by_every_name() {
    let mut machine = Machine::with_programs();
    let mut alias = unit("active", "enabled");
    alias.id = "tenure-host.service".to_owned();
    machine.has_unit("agent.service", alias);
    machine.has_unit("nginx.service", unit("active", "enabled"));
    for name in ["tenure-host.service", "agent.service", "tenure-host-packages-1.service"] {
        machine.unit(name, json!({ "running": false }), &[]);
    }
    machine.unit("nginx.service", up(), &[]);
    let done = machine.pass();
    for name in ["tenure-host.service", "agent.service", "tenure-host-packages-1.service"] {
        assert_eq!(outcome(&done, &format!("unit:{name}")), (Refused, Some("own_unit".to_owned())), "{name}");
    }
    assert_eq!(line(&done, NGINX).outcome, Unchanged);
    assert_eq!(machine.acts(), Vec::<String>::new());
}

// case: O-16
#[test]
fn two_names_of_one_unit_are_one_unit() {
    let mut machine = Machine::with_programs();
    let mut alias = unit("active", "enabled");
    alias.id = "ssh.service".to_owned();
    machine.has_unit("ssh.service", unit("active", "enabled"));
    machine.has_unit("sshd.service", alias);
    machine.unit("ssh.service", up(), &[]);
    machine.unit("sshd.service", json!({ "running": false }), &[]);
    let done = machine.pass();
    assert_eq!(line(&done, "unit:ssh.service").outcome, Unchanged);
    assert_eq!(outcome(&done, "unit:sshd.service"), (Refused, Some("unit_twice".to_owned())));
}

// rule: H-24
#[test]
fn a_unit_that_leaves_is_again_as_it_was_before_us() {
    let mut machine = Machine::with_programs();
    machine.has_unit("nginx.service", unit("inactive", "disabled"));
    machine.has_unit("before.service", unit("active", "enabled"));
    machine.has_unit("moved.service", unit("inactive", "disabled"));
    for name in ["nginx.service", "before.service", "moved.service"] {
        machine.unit(name, up(), &[]);
    }
    machine.file("/srv/a", "a");
    machine.pass();
    // Somebody else has stopped and disabled it since: it stays as they left it.
    machine.has_unit("moved.service", unit("inactive", "disabled"));
    machine.acts();
    for name in ["nginx.service", "before.service", "moved.service"] {
        machine.forget(&format!("unit:{name}"));
    }
    let done = machine.pass();
    for name in ["nginx.service", "before.service", "moved.service"] {
        assert_eq!(line(&done, &format!("unit:{name}")).outcome, Released, "{name}");
    }
    assert_eq!(machine.acts(), ["disable nginx.service", "daemon-reload", "stop nginx.service"]);
    assert_eq!(machine.is("nginx.service"), ("inactive", "disabled"));
    assert_eq!(machine.is("before.service"), ("active", "enabled"));
    assert_eq!(machine.store.owned_count().unwrap(), 1);
}

// rule: H-24
#[test]
fn units_leave_before_the_files_and_packages_they_are_of() {
    let mut machine = Machine::with_programs();
    machine.file("/etc/systemd/system/app.service", "[Service]\n");
    machine.offers("lib", &[offer("1.0")]);
    machine.package("lib", "present", &[]);
    machine.unit("app.service", up(), &[]);
    machine.pass();
    machine.acts();
    for key in ["file:/etc/systemd/system/app.service", "package:lib", "unit:app.service"] {
        machine.forget(key);
    }
    machine.file("/srv/a", "a");
    let done = machine.pass();
    assert_eq!(done.summary.counts.in_words(), "1 applied, 2 removed, 1 released");
    assert_eq!(
        machine.acts(),
        ["disable app.service", "daemon-reload", "stop app.service", "install lib-", "daemon-reload"]
    );
}

// rule: A-03
#[test]
fn a_found_unit_is_held_and_one_whose_file_we_made_is_not() {
    let mut machine = Machine::adopted_with_programs();
    machine.has_unit("nginx.service", unit("inactive", "disabled"));
    machine.file("/etc/systemd/system/app.service", "[Service]\n");
    machine.unit("nginx.service", up(), &[]);
    let done = machine.pass();
    assert_eq!(outcome(&done, NGINX), (Held, Some("found".to_owned())));
    machine.unit("app.service", up(), &[]);
    machine.set(|state| {
        let mut ours = unit("inactive", "disabled");
        ours.fragment = "/etc/systemd/system/app.service".to_owned();
        state.units.insert("app.service".to_owned(), ours);
    });
    let done = machine.pass();
    assert_eq!(line(&done, "unit:app.service").outcome, Applied);
    assert_eq!(machine.is("nginx.service"), ("inactive", "disabled"));
}

// rule: H-10
#[test]
fn a_unit_whose_need_failed_is_left_as_it_is_and_others_go_on() {
    let mut machine = Machine::with_programs();
    machine.has_unit("a.service", unit("inactive", "enabled"));
    machine.has_unit("b.service", unit("inactive", "enabled"));
    machine.unit("missing.service", up(), &[]);
    machine.unit("a.service", up(), &["unit:missing.service"]);
    machine.unit("b.service", up(), &[]);
    let done = machine.pass();
    assert_eq!(outcome(&done, "unit:a.service"), (Outstanding, Some("needs_failed".to_owned())));
    assert_eq!(line(&done, "unit:b.service").outcome, Applied);
    assert_eq!(machine.is("a.service").0, "inactive");
}

// rule: H-09
// rule: H-24
#[test]
fn a_pass_that_was_cut_short_after_it_acted_still_knows_how_a_unit_was_before() {
    let mut machine = Machine::with_programs();
    machine.has_unit("nginx.service", unit("active", "enabled"));
    machine.unit("nginx.service", up(), &[]);
    let declaration = machine.declaration();
    let resource = declaration.resources().next().unwrap();
    let earlier = crate::store::State::Unit {
        enabled: Some(false),
        running: Some(false),
        masked: false,
        mask: None,
        on: Default::default(),
    };
    let intent = crate::store::Intent {
        key: NGINX.to_owned(),
        module: "base".to_owned(),
        origin: tenure_protocol::outcome::Origin::Changed,
        earlier,
        wanted: (&resource.spec).into(),
        temporary: String::new(),
        drift: None,
    };
    machine.store.intend(vec![intent], &Default::default()).unwrap();
    assert_eq!(line(&machine.pass(), NGINX).outcome, Unchanged);
    machine.forget(NGINX);
    machine.file("/srv/a", "a");
    machine.pass();
    assert_eq!(machine.is("nginx.service"), ("inactive", "disabled"));
}

#[test]
fn a_unit_that_does_its_work_and_ends_is_begun_once_though_systemd_forgets_it() {
    let mut machine = Machine::with_programs();
    let mut once = unit("inactive", "static");
    (once.passes, once.becomes) = (true, "success");
    machine.has_unit("once.service", once.clone());
    machine.file("/etc/nginx/once.conf", "one");
    machine.unit("once.service", follows(json!({ "running": true }), &["file:/etc/nginx/once.conf"]), &[]);
    assert_eq!(line(&machine.pass(), "unit:once.service").outcome, Applied);
    assert_eq!(machine.acts(), ["start once.service"]);
    assert_eq!(machine.pass().summary.counts.in_words(), "2 unchanged");
    machine.file("/etc/nginx/once.conf", "two");
    machine.pass();
    assert_eq!(machine.acts(), ["restart once.service"]);
    // One that ended badly is not forgotten.
    once.result = "exit-code";
    once.active = "failed";
    once.becomes = "exit-code";
    machine.has_unit("once.service", once);
    assert_eq!(outcome(&machine.pass(), "unit:once.service"), (Failed, Some("unit_died".to_owned())));
}

#[test]
fn a_unit_is_reloaded_when_what_it_reads_anew_was_changed() {
    let mut machine = Machine::with_programs();
    machine.has_unit("nginx.service", unit("active", "enabled"));
    machine.file("/etc/nginx/nginx.conf", "one");
    let mut spec = up();
    spec["reload_on"] = json!(["file:/etc/nginx/nginx.conf"]);
    machine.unit("nginx.service", spec, &[]);
    let done = machine.pass();
    assert_eq!(outcome(&done, NGINX), (Applied, Some("reloaded".to_owned())));
    assert_eq!(machine.acts(), ["reload nginx.service"]);
}

#[test]
fn a_unit_that_runs_with_an_older_file_is_restarted_however_long_the_machine_slept_since() {
    let mut machine = Machine::with_programs();
    machine.has_unit("nginx.service", Unit { began: 10_000_000, ..unit("active", "enabled") });
    machine.set(|state| state.up = 100);
    machine.clock.advance(Duration::from_secs(100));
    machine.file("/etc/nginx/nginx.conf", "one");
    machine.pass();
    machine.clock.advance(Duration::from_secs(6_000));
    machine.set(|state| (state.up, state.slept) = (1_100, 5_000));
    let follows = json!({ "running": true, "restart_on": ["file:/etc/nginx/nginx.conf"] });
    machine.unit("nginx.service", follows, &[]);
    machine.acts();
    machine.pass();
    assert_eq!(machine.acts(), ["restart nginx.service"]);
    machine.pass();
    assert!(machine.acts().is_empty(), "once");
}
