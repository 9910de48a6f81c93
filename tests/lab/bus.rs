//! What the bus and `systemctl` say of units of every kind, under real service managers: the host asks the one and believes
//! it, and its reader was written for the other.

use std::path::Path;
use std::time::Duration;

use tenure_host::program::{Programs as _, System};
use tenure_host::resource::unit::PROPERTIES;
use tenure_tests::lab::{Base, Lab};

const OURS: &str = "/etc/systemd/system";
const VENDOR: &str = "/usr/lib/systemd/system";
const STAYS: &str = "[Service]\nExecStart=sleep infinity\n[Install]\nWantedBy=multi-user.target\n";
const WITHIN: Duration = Duration::from_secs(60);

/// What is put among the unit files: where, under which name, and its text.
const FILES: [(&str, &str, &str); 18] = [
    (VENDOR, "runs.service", STAYS),
    (VENDOR, "stopped.service", STAYS),
    (VENDOR, "falls.service", "[Service]\nExecStart=false\n"),
    (VENDOR, "again.service", "[Service]\nExecStart=false\nRestart=always\nRestartSec=1h\n"),
    (VENDOR, "once.service", "[Service]\nType=oneshot\nExecStart=true\n"),
    (
        VENDOR,
        "stays.service",
        "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=true\nExecReload=true\n",
    ),
    (VENDOR, "fixed.service", "[Service]\nExecStart=sleep infinity\n"),
    (VENDOR, "queue@.service", STAYS),
    (
        VENDOR,
        "front.service",
        "[Service]\nExecStart=sleep infinity\n[Install]\nWantedBy=multi-user.target\nAlias=www.service\n",
    ),
    (VENDOR, "indirect.service", "[Service]\nExecStart=sleep infinity\n[Install]\nAlso=knock.socket\n"),
    (
        VENDOR,
        "knock.socket",
        "[Socket]\nListenStream=/run/knock\nService=indirect.service\n[Install]\nWantedBy=sockets.target\n",
    ),
    (
        VENDOR,
        "tick.timer",
        "[Timer]\nOnCalendar=yearly\nUnit=once.service\n[Install]\nWantedBy=timers.target\n",
    ),
    (VENDOR, "seen.path", "[Path]\nPathExists=/srv/nothing\nUnit=once.service\n"),
    (
        VENDOR,
        "bound.service",
        "[Unit]\nBindsTo=runs.service\nConflicts=stopped.service\n[Service]\nExecStart=sleep infinity\n",
    ),
    (VENDOR, "named\\x2dso.service", STAYS),
    (VENDOR, "apart.slice", "[Slice]\n"),
    (OURS, "broken.service", "[Service]\nType=simple\n"),
    (OURS, "2nd.service", STAYS),
];

const ACTS: &str = "
    systemctl daemon-reload
    systemctl --quiet enable front.service queue@1.service knock.socket tick.timer
    systemctl --quiet --runtime enable stopped.service
    systemctl start runs.service queue@1.service knock.socket tick.timer seen.path stays.service bound.service again.service || true
    systemctl start falls.service once.service || true
    systemctl --quiet mask hidden.service
    systemctl --quiet --runtime mask hidden-now.service
    mkdir -p /opt/units && printf '[Service]\\nExecStart=sleep infinity\\n' > /opt/units/led.service
    systemctl --quiet link /opt/units/led.service
    mkdir -p /etc/systemd/system/runs.service.d && printf '[Service]\\nNice=1\\n' > /etc/systemd/system/runs.service.d/a.conf
    systemd-run --quiet --unit=passing sleep infinity
";

/// All of them, each by every name that it has, and what every machine has; but for the slices that all others lie in: what
/// needs those is whatever is loaded at the moment, also by the question itself.
const NAMES: [&str; 37] = [
    "runs.service",
    "stopped.service",
    "falls.service",
    "again.service",
    "once.service",
    "stays.service",
    "fixed.service",
    "queue@1.service",
    "queue@2.service",
    "front.service",
    "www.service",
    "indirect.service",
    "knock.socket",
    "tick.timer",
    "seen.path",
    "bound.service",
    "named\\x2dso.service",
    "broken.service",
    "2nd.service",
    "hidden.service",
    "hidden-now.service",
    "led.service",
    "passing.service",
    "nosuch.service",
    "nosuch.socket",
    "nosuch.timer",
    "nosuch.mount",
    "nosuch@1.service",
    "dbus.service",
    "dbus.socket",
    "multi-user.target",
    "default.target",
    "apart.slice",
    "init.scope",
    "-.mount",
    "run-lock.mount",
    "systemd-journald.service",
];

fn said_alike(lab: &str, base: Base) {
    let lab = Lab::new(lab);
    let machine = lab.machine("a", base);
    for (folder, name, text) in FILES {
        machine.write(&format!("{folder}/{name}"), text);
    }
    let acted = machine.sh(ACTS);
    assert!(acted.success(), "{acted:?}");
    machine.wait_until("what falls has fallen", WITHIN, |machine| {
        machine.run(&["systemctl", "is-failed", "falls.service"]).success()
    });
    machine.copy_in(Path::new("/proc/self/exe"), "/opt/asks", 0o755);
    let asks = ["/opt/asks", "--exact", "bus::what_either_says_in_the_machine", "--ignored", "--nocapture"];
    let asked = machine.run_for(WITHIN, &asks);
    assert!(asked.success() && asked.stdout.contains("1 passed"), "{asked:?}");
}

#[test]
#[ignore = "this is what the tests below run in a machine"]
fn what_either_says_in_the_machine() {
    let property = format!("--property={}", PROPERTIES.join(","));
    let asked = ["show", "--no-pager", &property, "--"].into_iter().chain(NAMES);
    let shown = System.run("systemctl", &asked.collect::<Vec<_>>(), WITHIN).unwrap();
    assert!(shown.succeeded(), "{shown:?}");
    let said = System.show_units(&NAMES, &PROPERTIES, WITHIN).expect("the bus says something of each");
    let listed = System.units(&NAMES, WITHIN).expect("the bus says how each stands");
    let shown = plain(&shown.out);
    let (said, shown) = (blocks(&said), blocks(&shown));
    assert_eq!((said.len(), shown.len(), listed.len()), (NAMES.len(), NAMES.len(), NAMES.len()));
    for (((name, said), shown), listed) in NAMES.iter().zip(&said).zip(&shown).zip(&listed) {
        assert_eq!(said, shown, "{name}");
        let stands = [
            format!("ActiveState={}", listed.active),
            format!("Id={}", listed.id),
            format!("LoadState={}", listed.load),
            format!("SubState={}", listed.sub),
        ];
        assert!(stands.iter().all(|line| said.contains(line)), "{name}: {listed:?}, {said:?}");
    }
}

/// In lists systemctl quotes what has a backslash in it, and nothing else has either in these properties.
fn plain(shown: &str) -> String {
    shown.replace('"', "").replace(r"\\", r"\")
}

/// What is said of each unit, line by line and word by word, without their order: systemd keeps sets.
fn blocks(text: &str) -> Vec<Vec<String>> {
    let line = |line: &str| {
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        let mut words: Vec<&str> = value.split(' ').collect();
        words.sort_unstable();
        format!("{name}={}", words.join(" "))
    };
    let lines = |block| {
        let mut lines: Vec<String> = str::lines(block).map(line).collect();
        lines.sort_unstable();
        lines
    };
    text.split("\n\n").map(str::trim).filter(|block| !block.is_empty()).map(lines).collect()
}

// case: O-16
#[test]
fn the_bus_says_of_units_of_every_kind_what_systemctl_says_on_debian_12() {
    said_alike("bus_12", Base::Bookworm);
}

// case: O-16
#[test]
fn the_bus_says_of_units_of_every_kind_what_systemctl_says_on_debian_13() {
    said_alike("bus_13", Base::Trixie);
}
