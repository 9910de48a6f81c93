//! Units under real service managers, Debian 12's and 13's: every word of `is-enabled`, masks of an operator and of ours,
//! aliases, instances, sockets, timers, what falls and what is slow, drop-ins and generated units. What is as declared is
//! not touched again.

use tenure_tests::lab::{Base, Machine, Pair};

const VENDOR: &str = "/usr/lib/systemd/system";
const STAYS: &str = "[Service]\nExecStart=sleep infinity\n";
const WANTED: &str = "[Install]\nWantedBy=multi-user.target\n";

/// Units as packages and operators leave them on a machine.
fn lay_out(machine: &Machine) {
    let stays = format!("{STAYS}{WANTED}");
    for name in ["legacy-sync", "runmask", "runtime", "queue@", "quiet", "plain"] {
        machine.write(&format!("{VENDOR}/{name}.service"), &stays);
    }
    let front =
        format!("{STAYS}ExecReload=sh -c 'echo reloaded >>/srv/reloads'\n{WANTED}Alias=www.service\n");
    machine.write(&format!("{VENDOR}/webfront.service"), front);
    let vendor = [
        ("helper.service", format!("{STAYS}[Install]\nAlso=helper.socket\n")),
        ("helper.socket", "[Socket]\nListenStream=127.0.0.1:7070\n[Install]\nWantedBy=sockets.target\n".to_owned()),
        ("static-thing.service", "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=true\n".to_owned()),
        ("once.service", "[Service]\nType=oneshot\nExecStart=sh -c 'echo ran >>/srv/once'\n".to_owned()),
        ("tick.service", "[Service]\nType=oneshot\nExecStart=true\n".to_owned()),
        ("tick.timer", "[Timer]\nOnCalendar=yearly\n[Install]\nWantedBy=timers.target\n".to_owned()),
        ("byhand.service", format!("[Unit]\nRefuseManualStart=yes\n{STAYS}")),
        ("falls.service", "[Service]\nExecStart=sh -c 'sleep 3; exit 3'\nRestart=always\nRestartSec=1\n[Unit]\nStartLimitIntervalSec=0\n".to_owned()),
        ("slow.service", format!("{STAYS}Type=notify\nTimeoutStartSec=infinity\n")),
    ];
    for (name, text) in vendor {
        machine.write(&format!("{VENDOR}/{name}"), text);
    }
    machine.write("/opt/linked.service", &stays);
    let _ = machine
        .sh(
            "systemctl daemon-reload && systemctl --quiet mask legacy-sync.service && \
             systemctl --quiet mask --runtime runmask.service && systemctl --quiet enable --runtime runtime.service && \
             systemctl --quiet link /opt/linked.service && systemctl start plain.service quiet.service",
        )
        .must();
}

fn unit(name: &str, says: &str) -> String {
    format!("[[unit]]\nname = \"{name}\"\n{says}\n")
}

const UP: &str = "enabled = true\nrunning = true";

fn file(path: &str, content: &str) -> String {
    format!("[[file]]\npath = \"{path}\"\ncontent = '''\n{content}'''\n")
}

fn declare(pair: &Pair, parts: &[String]) {
    pair.module(&parts.concat());
    let _ = pair.declare(&["--allow-removals", "100"]).must();
}

fn is(machine: &Machine, question: &str, name: &str) -> String {
    machine.run(&["systemctl", question, name]).stdout.trim().to_owned()
}

fn property(machine: &Machine, name: &str, of: &str) -> String {
    machine.must(&["systemctl", "show", "--value", "--property", name, of])
}

/// How often something was begun, and how often the service manager read its unit files.
fn doings(machine: &Machine) -> String {
    let runs = machine
        .sh("systemctl show --value --property=InvocationID webfront queue@30 helper.socket tick.timer")
        .must();
    let reads = machine.sh("journalctl --quiet _PID=1 | grep -c Reloading").stdout;
    format!("{runs}\n{reads}\n{}", machine.sh("cat /srv/once /srv/reloads").stdout)
}

fn wait_until_refused(pair: &Pair, key: &str, code: &str, says: &str) {
    let why = pair.wait_for_code(key, "refused", code);
    assert!(why.contains(says), "{key}: {why}");
}

fn every_word_has_its_end(pair: &Pair) {
    let reload_on = "running = true\nreload_on = [\"file:/srv/front.conf\"]";
    declare(
        pair,
        &[
            file("/srv/front.conf", "one\n"),
            unit("webfront.service", &format!("{UP}\nrestart_on = [\"file:/srv/front.conf\"]")),
            unit("www.service", "running = false"),
            unit("queue@30.service", UP),
            unit("queue@31.service", reload_on),
            unit("helper.service", "enabled = true"),
            unit("helper.socket", UP),
            unit("static-thing.service", UP),
            unit("once.service", "running = true"),
            unit("tick.timer", UP),
            unit("legacy-sync.service", UP),
            unit("runmask.service", UP),
            unit("runtime.service", "enabled = false"),
            unit("linked.service", "enabled = true"),
            unit("byhand.service", "running = true"),
            unit("a@b.mount", "running = true"),
            unit("nowhere.service", "running = true"),
        ],
    );
    for key in [
        "webfront.service",
        "queue@30.service",
        "helper.socket",
        "once.service",
        "tick.timer",
        "runtime.service",
    ] {
        pair.wait_for_resource(&format!("unit:{key}"));
    }
    wait_until_refused(pair, "unit:www.service", "unit_twice", "webfront.service");
    wait_until_refused(pair, "unit:queue@31.service", "unit_not_reloadable", "restart_on");
    wait_until_refused(pair, "unit:helper.service", "unit_not_enableable", "helper.socket");
    wait_until_refused(pair, "unit:static-thing.service", "unit_not_enableable", "static");
    wait_until_refused(
        pair,
        "unit:legacy-sync.service",
        "unit_masked",
        "`systemctl unmask legacy-sync.service`",
    );
    wait_until_refused(
        pair,
        "unit:runmask.service",
        "unit_masked",
        "`systemctl unmask --runtime runmask.service`",
    );
    wait_until_refused(pair, "unit:linked.service", "unit_not_enableable", "linked");
    wait_until_refused(pair, "unit:byhand.service", "unit_by_others_only", "RefuseManualStart=");
    assert!(!pair.wait_for_code("unit:nowhere.service", "failed", "unit_missing").is_empty());
    assert!(!pair.wait_for_code("unit:a@b.mount", "unknown", "could_not_look").is_empty());
    let b = &pair.b;
    for name in ["webfront.service", "queue@30.service", "helper.socket", "tick.timer"] {
        assert_eq!(
            (is(b, "is-active", name), is(b, "is-enabled", name)),
            ("active".into(), "enabled".into()),
            "{name}"
        );
    }
    assert_eq!(is(b, "is-enabled", "legacy-sync.service"), "masked");
    assert_eq!(is(b, "is-enabled", "runmask.service"), "masked-runtime");
    assert_eq!(is(b, "is-enabled", "runtime.service"), "disabled");
    assert_eq!(is(b, "is-active", "static-thing.service"), "inactive", "what is refused is left");
    assert!(b.sh("ss -Hltn sport = :7070").stdout.contains("127.0.0.1:7070"));
    let before = doings(b);
    for _ in 0..2 {
        let _ = b.run(&["tenure-host", "apply"]).expect(4);
    }
    assert_eq!(doings(b), before, "what is as declared is not touched again");
}

fn what_is_followed_is_acted_on_once(pair: &Pair) {
    let begun = |pair: &Pair| pair.b.journal("webfront").matches("Started webfront").count();
    let before = begun(pair);
    let front = |says: &str| unit("webfront.service", &format!("{UP}\n{says} = [\"file:/srv/front.conf\"]"));
    declare(pair, &[file("/srv/front.conf", "two\n"), front("restart_on")]);
    pair.wait("it was restarted", |pair| begun(pair) == before + 1);
    declare(pair, &[file("/srv/front.conf", "three\n"), front("reload_on")]);
    pair.wait("it was reloaded", |pair| pair.read("/srv/reloads").is_some());
    pair.wait_for_resource("unit:webfront.service");
    let _ = pair.b.run(&["tenure-host", "apply"]).expect(0);
    assert_eq!((begun(pair), pair.read("/srv/reloads").unwrap().lines().count()), (before + 1, 1));
    // What left the declaration meanwhile is as it was before us.
    assert_eq!(is(&pair.b, "is-active", "queue@30.service"), "inactive");
    assert_eq!(is(&pair.b, "is-enabled", "helper.socket"), "disabled");
    assert_eq!(is(&pair.b, "is-enabled", "legacy-sync.service"), "masked");
}

fn a_mask_of_ours_comes_and_goes(pair: &Pair) {
    let b = &pair.b;
    let masked = || unit("quiet.service", "masked = true\nrunning = false");
    let rest = file("/srv/rest", "rest\n");
    declare(pair, &[rest.clone(), masked()]);
    pair.wait("it is masked", |pair| is(&pair.b, "is-enabled", "quiet.service") == "masked");
    pair.wait_for_resource("unit:quiet.service");
    assert_eq!(is(b, "is-active", "quiet.service"), "inactive");
    declare(pair, &[rest.clone(), unit("quiet.service", UP)]);
    pair.wait("it is up again", |pair| is(&pair.b, "is-active", "quiet.service") == "active");
    pair.wait_for_resource("unit:quiet.service");
    assert_eq!(is(b, "is-enabled", "quiet.service"), "enabled");
    declare(pair, &[rest.clone(), masked()]);
    pair.wait("it is masked", |pair| is(&pair.b, "is-enabled", "quiet.service") == "masked");
    pair.wait_for_resource("unit:quiet.service");
    declare(pair, &[rest]);
    pair.wait("it is as it was before us", |pair| {
        is(&pair.b, "is-active", "quiet.service") == "active"
            && is(&pair.b, "is-enabled", "quiet.service") == "disabled"
    });
}

fn unit_files_are_read_where_they_were_changed(pair: &Pair) {
    let b = &pair.b;
    b.must(&["mkdir", "/srv/d"]);
    let more = "/etc/systemd/system/plain.service.d";
    declare(
        pair,
        &[
            format!("[[directory]]\npath = \"{more}\"\n"),
            file(&format!("{more}/10-more.conf"), "[Service]\nLimitNOFILE=4321\n"),
            file("/etc/fstab", "tmpfs /srv/d tmpfs size=1m 0 0\n"),
            file("/etc/systemd/system/app.service", &format!("{STAYS}{WANTED}")),
            unit("srv-d.mount", "running = true"),
            unit("app.service", UP),
            unit("plain.service", "running = true"),
        ],
    );
    for key in ["unit:srv-d.mount", "unit:app.service", "unit:plain.service"] {
        pair.wait_for_resource(key);
    }
    assert_eq!(property(b, "NeedDaemonReload", "plain.service"), "no");
    assert_eq!(property(b, "LimitNOFILE", "plain.service"), "4321");
    assert!(b.run(&["mountpoint", "-q", "/srv/d"]).success());
    let before = doings(b);
    let _ = b.run(&["tenure-host", "apply"]).expect(0);
    assert_eq!(doings(b), before);
    // What somebody else put beside it is read too.
    b.write(&format!("{more}/20-theirs.conf"), "[Service]\nLimitNOFILE=1234\n");
    pair.wait("it was read", |pair| property(&pair.b, "LimitNOFILE", "plain.service") == "1234");
}

fn what_falls_is_failed_and_what_is_slow_is_outstanding(pair: &Pair) {
    declare(pair, &[file("/srv/rest", "rest\n"), unit("falls.service", "running = true")]);
    let why = pair.wait_for_code("unit:falls.service", "failed", "unit_died");
    assert!(why.contains("journalctl -u falls.service"), "{why}");
    pair.b.must(&["systemctl", "start", "--no-block", "slow.service"]);
    pair.b.must(&["systemctl", "stop", "falls.service"]);
    declare(pair, &[file("/srv/rest", "rest\n"), unit("slow.service", "running = true")]);
    let why = pair.wait_for_code("unit:slow.service", "outstanding", "unit_starting");
    assert!(why.contains("systemctl status slow.service"), "{why}");
    pair.b.must(&["systemctl", "stop", "slow.service"]);
}

fn it_works_without_a_bus(pair: &Pair) {
    pair.b.must(&["systemctl", "stop", "dbus.socket", "dbus.service"]);
    declare(pair, &[file("/srv/rest", "rest\n"), unit("webfront.service", UP)]);
    pair.wait_for_resource("unit:webfront.service");
    pair.wait("it runs", |pair| is(&pair.b, "is-active", "webfront.service") == "active");
    let _ = pair.b.run(&["tenure-host", "apply"]).expect(0);
}

fn units(base: Base) {
    let pair = Pair::raised_on("units", base);
    lay_out(&pair.b);
    every_word_has_its_end(&pair);
    what_is_followed_is_acted_on_once(&pair);
    a_mask_of_ours_comes_and_goes(&pair);
    unit_files_are_read_where_they_were_changed(&pair);
    what_falls_is_failed_and_what_is_slow_is_outstanding(&pair);
    it_works_without_a_bus(&pair);
}

// case: O-15
// case: O-16
// rule: H-09
// rule: H-24
#[test]
fn units_are_as_declared_once_or_refused_by_name_on_debian_12() {
    units(Base::Bookworm);
}

// case: O-15
// case: O-16
// rule: H-09
// rule: H-24
#[test]
fn units_are_as_declared_once_or_refused_by_name_on_debian_13() {
    units(Base::Trixie);
}
