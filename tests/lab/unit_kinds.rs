//! What kinds of units there are under real service managers, Debian 12's and 13's, each by its own rule (O-16); what
//! ends by itself after it was begun; and how often the service manager is had to read its unit files. In each test one
//! machine, on which the kinds come one after the other.

use serde_json::Value;
use tenure_tests::lab::{Base, Machine, Pair};

const VENDOR: &str = "/usr/lib/systemd/system";
const OURS: &str = "/etc/systemd/system";
const STAYS: &str = "[Service]\nExecStart=sleep infinity\n";
const WANTED: &str = "[Install]\nWantedBy=multi-user.target\n";
const UP: &str = "enabled = true\nrunning = true";

fn unit(name: &str, says: &str) -> String {
    format!("[[unit]]\nname = \"{name}\"\n{says}\n")
}

fn file(path: &str, content: &str) -> String {
    format!("[[file]]\npath = \"{path}\"\ncontent = '''\n{content}'''\n")
}

fn declare(pair: &Pair, parts: &[String]) {
    pair.module(&parts.concat());
    let _ = pair.declare(&["--allow-removals", "500"]).must();
}

fn is(machine: &Machine, question: &str, name: &str) -> String {
    machine.run(&["systemctl", question, name]).stdout.trim().to_owned()
}

fn property(machine: &Machine, name: &str, of: &str) -> String {
    machine.must(&["systemctl", "show", "--value", "--property", name, of])
}

fn vendor(machine: &Machine, units: &[(&str, String)]) {
    for (name, text) in units {
        machine.write(&format!("{VENDOR}/{name}"), text);
    }
    machine.must(&["systemctl", "daemon-reload"]);
}

fn wait_until_refused(pair: &Pair, name: &str, code: &str, says: &str) {
    let why = pair.wait_for_code(&format!("unit:{name}"), "refused", code);
    assert!(why.contains(says), "{name}: {why}");
}

fn a_template_instance_is_a_unit_of_its_own(pair: &Pair) {
    vendor(&pair.b, &[("queue@.service", format!("[Service]\nExecStart=sleep 9%i\n{WANTED}"))]);
    declare(pair, &[unit("queue@1.service", UP), unit("queue@2.service", "running = true")]);
    ["unit:queue@1.service", "unit:queue@2.service"].iter().for_each(|key| pair.wait_for_resource(key));
    for (name, enabled) in [("queue@1.service", "enabled"), ("queue@2.service", "disabled")] {
        assert_eq!(
            (is(&pair.b, "is-active", name), is(&pair.b, "is-enabled", name)),
            ("active".into(), enabled.into())
        );
    }
    assert_eq!(is(&pair.b, "is-active", "queue@3.service"), "inactive");
}

fn an_alias_is_acted_on_by_its_real_name_and_not_disabled_by_the_other(pair: &Pair) {
    vendor(&pair.b, &[("front.service", format!("{STAYS}{WANTED}Alias=www.service\n"))]);
    pair.b.must(&["systemctl", "--quiet", "enable", "front.service"]);
    declare(pair, &[unit("www.service", "running = true")]);
    pair.wait("it is said to be another name", |pair| pair.resource("unit:www.service")["code"] == "alias");
    let why = pair.resource("unit:www.service")["reason"].to_string();
    assert!(why.contains("another name of front.service"), "{why}");
    assert_eq!(is(&pair.b, "is-active", "front.service"), "active");
    declare(pair, &[unit("www.service", "enabled = false")]);
    wait_until_refused(pair, "www.service", "unit_goes_when_disabled", "declare front.service");
    assert_eq!(is(&pair.b, "is-enabled", "front.service"), "enabled");
}

fn a_static_unit_is_begun_and_never_enabled(pair: &Pair) {
    vendor(&pair.b, &[("fixed.service", STAYS.to_owned())]);
    declare(pair, &[unit("fixed.service", "enabled = true\nrunning = true")]);
    wait_until_refused(pair, "fixed.service", "unit_not_enableable", "static");
    assert_eq!(is(&pair.b, "is-active", "fixed.service"), "inactive");
    declare(pair, &[unit("fixed.service", "running = true")]);
    pair.wait_for_resource("unit:fixed.service");
    assert_eq!(is(&pair.b, "is-active", "fixed.service"), "active");
}

fn an_indirect_unit_is_refused_naming_the_socket_that_begins_it(pair: &Pair) {
    let socket = "[Socket]\nListenStream=127.0.0.1:7070\n[Install]\nWantedBy=sockets.target\n";
    vendor(
        &pair.b,
        &[
            ("helper.service", format!("{STAYS}[Install]\nAlso=helper.socket\n")),
            ("helper.socket", socket.to_owned()),
        ],
    );
    declare(pair, &[unit("helper.service", "enabled = true"), unit("helper.socket", UP)]);
    let _ = pair.wait_for_code("unit:helper.service", "refused", "unit_not_enableable");
    // systemd knows by what a unit is begun once that one is up: the first pass brings it up.
    pair.wait("it says which socket begins it", |pair| {
        pair.resource("unit:helper.service")["reason"]
            .as_str()
            .is_some_and(|why| why.contains("helper.socket"))
    });
}

fn a_socket_listens_for_its_service_and_a_timer_waits_for_its_own(pair: &Pair) {
    pair.wait_for_resource("unit:helper.socket");
    assert_eq!(is(&pair.b, "is-active", "helper.service"), "inactive");
    assert!(pair.b.sh("ss -Hltn sport = :7070").stdout.contains("127.0.0.1:7070"));
    let timer = "[Timer]\nOnCalendar=yearly\n[Install]\nWantedBy=timers.target\n";
    let tick = "[Service]\nType=oneshot\nExecStart=sh -c 'echo ran >>/srv/ticks'\n";
    vendor(&pair.b, &[("tick.service", tick.to_owned()), ("tick.timer", timer.to_owned())]);
    declare(pair, &[unit("tick.timer", UP)]);
    pair.wait_for_resource("unit:tick.timer");
    assert!(pair.b.must(&["systemctl", "list-timers", "--no-legend"]).contains("tick.timer"));
    assert!(!pair.b.has("/srv/ticks"), "a timer that is begun begins nothing before its time");
    assert_eq!(is(&pair.b, "is-active", "helper.socket"), "inactive", "it left, and is as it was before us");
}

fn a_generated_unit_is_begun_and_neither_enabled_nor_disabled(pair: &Pair) {
    pair.b.must(&["mkdir", "-p", "/srv/made"]);
    pair.b.write("/etc/fstab", "tmpfs /srv/made tmpfs size=1m,noauto 0 0\n");
    pair.b.must(&["systemctl", "daemon-reload"]);
    for says in ["enabled = true", "enabled = false"] {
        declare(pair, &[unit("srv-made.mount", says)]);
        wait_until_refused(pair, "srv-made.mount", "unit_not_enableable", "generated");
    }
    declare(pair, &[unit("srv-made.mount", "running = true")]);
    pair.wait_for_resource("unit:srv-made.mount");
    assert!(pair.b.run(&["mountpoint", "-q", "/srv/made"]).success());
}

fn a_linked_unit_is_not_disabled_since_it_would_be_gone(pair: &Pair) {
    pair.b.write("/opt/far.service", format!("{STAYS}{WANTED}"));
    pair.b.must(&["systemctl", "--quiet", "enable", "/opt/far.service"]);
    declare(pair, &[unit("far.service", "enabled = false")]);
    wait_until_refused(pair, "far.service", "unit_goes_when_disabled", "/etc/systemd/system/far.service");
    assert_eq!(is(&pair.b, "is-enabled", "far.service"), "enabled");
    declare(pair, &[unit("far.service", "running = true")]);
    pair.wait_for_resource("unit:far.service");
}

fn kinds(name: &str, base: Base) {
    let pair = Pair::raised_on(name, base);
    a_template_instance_is_a_unit_of_its_own(&pair);
    an_alias_is_acted_on_by_its_real_name_and_not_disabled_by_the_other(&pair);
    a_static_unit_is_begun_and_never_enabled(&pair);
    an_indirect_unit_is_refused_naming_the_socket_that_begins_it(&pair);
    a_socket_listens_for_its_service_and_a_timer_waits_for_its_own(&pair);
    a_generated_unit_is_begun_and_neither_enabled_nor_disabled(&pair);
    a_linked_unit_is_not_disabled_since_it_would_be_gone(&pair);
}

// case: O-16
#[test]
fn instances_aliases_sockets_and_timers_and_static_indirect_generated_and_linked_units_have_their_own_end_on_debian_12()
 {
    kinds("unit_kinds_12", Base::Bookworm);
}

// case: O-16
#[test]
fn instances_aliases_sockets_and_timers_and_static_indirect_generated_and_linked_units_have_their_own_end_on_debian_13()
 {
    kinds("unit_kinds_13", Base::Trixie);
}

fn one_that_ends_after_a_while_is_failed_at_the_next_look(pair: &Pair) {
    let ends = "[Service]\nExecStart=sh -c 'sleep 5; exit 3'\n";
    let again = format!("{ends}Restart=always\nRestartSec=100ms\n");
    vendor(&pair.b, &[("ends.service", ends.to_owned()), ("again.service", again)]);
    let both = [unit("ends.service", "running = true"), unit("again.service", "running = true")];
    declare(pair, &both);
    ["unit:ends.service", "unit:again.service"].iter().for_each(|key| pair.wait_for_resource(key));
    for name in ["ends.service", "again.service"] {
        let why = pair.wait_for_code(&format!("unit:{name}"), "failed", "unit_died");
        assert!(why.contains(&format!("journalctl -u {name}")), "{why}");
    }
    // They are up between two falls, and nobody takes that for well.
    for _ in 0..5 {
        let _ = pair.b.run(&["tenure-host", "apply"]).expect(4);
    }
    let said = pair.b.journal("tenure-host");
    assert!(
        said.contains("it ended with exit-code 5 s after it was last begun, and was begun anew"),
        "{said}"
    );
    // Which of the two is told depends on whether it was met while it waited.
    let fell =
        ["it was started anew by itself once and does not stay up", "and is to be started anew by itself"];
    assert!(fell.iter().any(|fell| said.contains(fell)), "{said}");
    assert!(!said.contains("failure ended"), "{said}");
    pair.b.must(&["systemctl", "stop", "ends.service", "again.service"]);
}

fn one_at_its_start_limit_is_begun_once_its_settings_are_changed(pair: &Pair) {
    let limit = "[Unit]\nStartLimitIntervalSec=600\nStartLimitBurst=3\n\
                 [Service]\nExecStart=sh /srv/limit.sh\nRestart=always\nRestartSec=100ms\n";
    vendor(&pair.b, &[("limit.service", limit.to_owned())]);
    let parts = |script: &str| {
        [
            file("/srv/limit.sh", script),
            unit("limit.service", "running = true\nrestart_on = [\"file:/srv/limit.sh\"]"),
        ]
    };
    declare(pair, &parts("exit 3\n"));
    let _ = pair.wait_for_code("unit:limit.service", "failed", "unit_died");
    pair.wait("systemd has given it up", |pair| is(&pair.b, "is-active", "limit.service") == "failed");
    let refused = pair.b.run(&["systemctl", "start", "limit.service"]);
    assert!(!refused.success(), "its limit stands");
    let _ = pair.b.run(&["tenure-host", "apply"]).expect(4);
    let why = pair.wait_for_code("unit:limit.service", "failed", "unit_died");
    assert!(why.contains("journalctl -u limit.service"), "{why}");
    declare(pair, &parts("exec sleep infinity\n"));
    pair.wait_for_resource("unit:limit.service");
    assert_eq!(is(&pair.b, "is-active", "limit.service"), "active");
    assert_eq!(
        property(&pair.b, "NRestarts", "limit.service"),
        "0",
        "systemd counts anew from a start by name"
    );
}

fn falls(name: &str, base: Base) {
    let pair = Pair::raised_on(name, base);
    one_that_ends_after_a_while_is_failed_at_the_next_look(&pair);
    one_at_its_start_limit_is_begun_once_its_settings_are_changed(&pair);
}

// rule: H-09
#[test]
fn a_service_that_ends_after_it_was_called_applied_is_failed_at_the_next_look_on_debian_12() {
    falls("unit_falls_12", Base::Bookworm);
}

// rule: H-09
#[test]
fn a_service_that_ends_after_it_was_called_applied_is_failed_at_the_next_look_on_debian_13() {
    falls("unit_falls_13", Base::Trixie);
}

const MANY: usize = 200;

/// How often the service manager has read its unit files since this boot.
fn readings(pair: &Pair) -> usize {
    pair.b.must(&["journalctl", "--sync"]);
    let told = pair.b.must(&["journalctl", "--quiet", "--output=cat", "--boot", "_PID=1"]);
    told.lines().filter(|line| matches!(*line, "Reloading." | "Reloading...")).count()
}

fn many(pair: &Pair, text: &str) {
    let one = |number: usize| {
        let path = format!("{OURS}/many{number}.service");
        let needs = format!("{UP}\nneeds = [\"file:{path}\"]");
        file(&path, &format!("{STAYS}{text}{WANTED}")) + &unit(&format!("many{number}.service"), &needs)
    };
    declare(pair, &[file("/srv/rest", "rest\n"), (0..MANY).map(one).collect()]);
}

fn wait_until_all(pair: &Pair, many: usize) {
    pair.wait(&format!("{many} are as declared"), |pair| {
        let resources = pair.node()["resources"].as_array().cloned().unwrap_or_default();
        let is_there =
            |resource: &&Value| resource["outcome"] == "applied" || resource["outcome"] == "unchanged";
        resources.iter().filter(is_there).count() == many
    });
}

fn many_are_read_together(name: &str, base: Base) {
    let pair = Pair::raised_on(name, base);
    let begin = readings(&pair);
    many(&pair, "");
    wait_until_all(&pair, 2 * MANY + 1);
    let come = readings(&pair);
    assert_eq!(come - begin, 2, "once before the first is enabled, once before the first is begun");
    let up = pair.b.sh("systemctl is-active 'many*.service' | grep -c '^active$'").stdout;
    assert_eq!(up.trim(), MANY.to_string());
    let _ = pair.b.run(&["tenure-host", "apply"]).expect(0);
    assert_eq!(readings(&pair), come, "what is as declared is read by nobody");
    many(&pair, "Nice=1\n");
    pair.wait("the last was read", |pair| property(&pair.b, "Nice", "many199.service") == "1");
    pair.wait_for_applied(2);
    assert_eq!(readings(&pair) - come, 1, "files alone were changed");
    assert_eq!(
        pair.b
            .sh("systemctl show --value --property=NeedDaemonReload 'many*.service' | grep -c yes")
            .stdout
            .trim(),
        "0"
    );
    let changed = readings(&pair);
    declare(&pair, &[file("/srv/rest", "rest\n")]);
    pair.wait_for_applied(3);
    assert_eq!(readings(&pair) - changed, 2, "once they are disabled, and once their files are gone");
    assert_eq!(pair.b.sh("systemctl list-units --all --no-legend 'many*.service'").stdout.trim(), "");
}

// rule: H-09
#[test]
fn two_hundred_unit_files_and_units_come_and_go_with_two_readings_of_the_unit_files_on_debian_12() {
    many_are_read_together("unit_reads_12", Base::Bookworm);
}

// rule: H-09
#[test]
fn two_hundred_unit_files_and_units_come_and_go_with_two_readings_of_the_unit_files_on_debian_13() {
    many_are_read_together("unit_reads_13", Base::Trixie);
}
