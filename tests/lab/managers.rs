//! The other two package managers on a real machine, which has apt as well: each is performed once the machine's owner
//! says so, and what holds for apt holds for it.

use serde_json::Value;
use tenure_tests::lab::{Base, Machine, Pair};

mod states;

/// What differs between the two as an operator types it.
struct Manager {
    word: &'static str,
    /// What its packages' names begin with here.
    prefix: &'static str,
    install: &'static [&'static str],
    /// Brings the first one by hand, for a shell; no source was read yet.
    first: &'static str,
    anew: &'static [&'static str],
    query: &'static [&'static str],
}

const DNF: Manager = Manager {
    word: "dnf",
    prefix: "r",
    install: &["dnf", "-y", "-q", "install"],
    first: "dnf -y -q install r-found",
    anew: &["dnf", "-y", "-q", "reinstall"],
    query: &["rpm", "-q", "--queryformat", "%{VERSION}-%{RELEASE}"],
};
const PACMAN: Manager = Manager {
    word: "pacman",
    prefix: "p",
    install: &["pacman", "-S", "--noconfirm"],
    first: "pacman -U --noconfirm /srv/pac/p-found-*",
    anew: &["pacman", "-S", "--noconfirm"],
    query: &["pacman", "-Q"],
};

/// A pair whose node has the package manager that is meant.
struct World {
    pair: Pair,
    manager: Manager,
}

impl World {
    fn new(manager: Manager) -> Self {
        let pair = Pair::raised_on("managers", Base::Managers);
        let word = manager.word;
        pair.b.write("/etc/tenure/host.toml", format!("timer = \"1s\"\npackages = \"{word}\"\n"));
        // As on every machine of theirs; a database without any package is not believed.
        let _ = pair.b.sh(manager.first).must();
        Self { pair, manager }
    }

    fn node(&self) -> &Machine {
        &self.pair.b
    }

    /// The operator brings this package anew, in a later second than the host did: their databases count in seconds.
    fn bring_anew(&self, name: &str) {
        let lines = self.node().run(&["tenure-host", "owned", "--json"]).expect(0).json();
        let ours = lines.as_array().into_iter().flatten().find(|line| line["key"] == self.key(name).as_str());
        let recorded = ours.and_then(|line| line["recorded_at"].as_u64()).expect("it is the host's");
        self.pair.wait("the second in which it was recorded is over", |pair| {
            let now: u64 = pair.b.run(&["date", "+%s"]).expect(0).stdout.trim().parse().expect("a number");
            now > recorded / 1_000
        });
        self.node().must(&[self.manager.anew, &[&self.name(name)]].concat());
    }

    fn name(&self, name: &str) -> String {
        format!("{}-{name}", self.manager.prefix)
    }

    fn key(&self, name: &str) -> String {
        format!("package:{}", self.name(name))
    }

    /// Declares these packages, each at a version.
    #[track_caller]
    fn declare(&self, packages: &[(&str, &str)]) {
        let one = |(name, version): &(&str, &str)| {
            let how = if *version == "absent" {
                "absent = true".to_owned()
            } else {
                format!("version = \"{version}\"")
            };
            format!("[[package]]\nname = \"{}\"\n{how}\n", self.name(name))
        };
        self.pair.module(&packages.iter().map(one).collect::<String>());
        let _ = self.pair.declare(&["--allow-removals", "9"]).must();
    }

    /// By hand.
    #[track_caller]
    fn installs(&self, name: &str) {
        self.node().must(&[self.manager.install, &[&self.name(name)]].concat());
    }

    /// What the machine's own tool says of it; none where it is not installed.
    fn version(&self, name: &str) -> Option<String> {
        let said = self.node().run(&[self.manager.query, &[&self.name(name)]].concat());
        let version = said.stdout.split_whitespace().last().unwrap_or_default().to_owned();
        said.success().then_some(version)
    }

    /// Waits until the host has brought it to this version, and the machine's own tool says so.
    #[track_caller]
    fn wait_for(&self, name: &str, version: Option<&str>) {
        let key = self.key(name);
        self.pair.wait(&format!("{name} is at {version:?}"), |_| self.version(name).as_deref() == version);
        self.pair.wait_for_resource(&key);
    }

    #[track_caller]
    fn wait_for_code(&self, name: &str, outcome: &str, code: &str) -> String {
        self.pair.wait_for_code(&self.key(name), outcome, code)
    }

    /// A pass by hand that finds everything as declared.
    #[track_caller]
    fn assert_nothing_to_do(&self, resources: u64) {
        self.pair.wait("everything is as declared", |pair| {
            let said = pair.b.run(&["tenure-host", "apply", "--json"]);
            said.success() && said.json()["summary"]["counts"]["unchanged"] == resources
        });
    }
}

fn versions_are_as_declared(world: &World) {
    world.declare(&[("hello", "1.0-1"), ("other", "present")]);
    world.wait_for("hello", Some("1.0-1"));
    world.wait_for("other", Some("1.0-1"));
    world.assert_nothing_to_do(2);
    assert_eq!(world.pair.owned()[&world.key("hello")], "created");
    // What the operator changed stays.
    let conf = format!("/etc/{}.conf", world.name("hello"));
    world.node().write(&conf, "ours\n");
    if world.manager.word == "pacman" {
        let line = "cd /srv/pac && repo-add -q lab.db.tar.gz p-hello-1.22.9-* p-new-* 2>&1";
        let _ = world.node().sh(line).must();
        // The rest of the machine is not raised behind its operator's back.
        world.declare(&[("hello", "present"), ("other", "present"), ("new", "present")]);
        let why = world.wait_for_code("new", "refused", "transaction_refused");
        assert!(why.contains("p-hello") && why.contains("upgrade"), "{why}");
        assert_eq!(world.version("hello").as_deref(), Some("1.0-1"));
    }
    world.declare(&[("hello", "1.22.*"), ("other", "present")]);
    world.wait_for("hello", Some("1.22.9-1"));
    assert_eq!(world.node().must(&["cat", &conf]), "ours");
    world.pair.wait("the new configuration beside it is told", |pair| {
        pair.told("package_remark", Some(&world.key("hello"))) == 1
    });
    world.assert_nothing_to_do(2);
}

fn what_we_brought_goes_and_what_was_found_stays(world: &World) {
    world.declare(&[("hello", "present"), ("other", "present"), ("found", "present")]);
    world.wait_for("found", Some("1.0-1"));
    assert_eq!(world.pair.owned()[&world.key("found")], "already_there");
    world.declare(&[("hello", "present")]);
    world.pair.wait("what was brought is gone", |_| world.version("other").is_none());
    world.assert_nothing_to_do(1);
    assert_eq!(world.version("found").as_deref(), Some("1.0-1"));
}

fn nothing_else_is_removed(world: &World) {
    world.installs("dep");
    world.declare(&[("hello", "absent")]);
    let why = world.wait_for_code("hello", "refused", "transaction_refused");
    assert!(why.contains(&world.name("dep")), "{why}");
    world.declare(&[("hello", "present"), ("rival", "present")]);
    let why = world.wait_for_code("rival", "refused", "transaction_refused");
    assert!(why.contains(&world.name("hello")), "{why}");
    assert!(world.version("hello").is_some() && world.version("dep").is_some());
    // Declared absent, both make room in one pass.
    world.declare(&[("hello", "absent"), ("dep", "absent"), ("rival", "present")]);
    world.wait_for("rival", Some("1.0-1"));
    world.wait_for("hello", None);
    world.declare(&[("hello", "present"), ("rival", "absent")]);
    world.wait_for("hello", world.manager.newest());
}

impl Manager {
    fn newest(&self) -> Option<&'static str> {
        Some(if self.word == "dnf" { "2.0-1" } else { "1.22.9-1" })
    }
}

fn a_restart_waits_for_the_transaction(world: &World) {
    let go = format!("/srv/{}", world.name("slow"));
    world.declare(&[("hello", "present"), ("slow", "present")]);
    world.pair.wait("the script runs", |pair| pair.b.run(&["pgrep", "-x", "sleep"]).success());
    world.node().must(&["systemctl", "restart", "tenure-host"]);
    let why = world.wait_for_code("slow", "outstanding", "package_transaction_running");
    assert!(why.contains("systemctl status"), "{why}");
    world.node().write(&go, "");
    world.wait_for("slow", Some("1.0-1"));
    assert_eq!(world.pair.owned()[&world.key("slow")], "created");
    world.node().must(&["rm", &go]);
    world.declare(&[("hello", "present")]);
    world.pair.wait("it is gone", |_| world.version("slow").is_none());
}

fn whoever_is_at_work_is_waited_for(world: &World) {
    world.node().start("operator", &[world.manager.install, &[&world.name("slow")]].concat());
    let pid = world.node().must(&["systemctl", "show", "--value", "--property=MainPID", "operator"]);
    world.pair.wait("the script runs", |pair| pair.b.run(&["pgrep", "-x", "sleep"]).success());
    world.declare(&[("hello", "present"), ("other", "present")]);
    let why = world.wait_for_code("other", "outstanding", "package_lock_held");
    assert!(why.contains(&pid) && why.contains(world.manager.word), "{why}");
    assert_eq!(world.version("other"), None);
    world.node().write(&format!("/srv/{}", world.name("slow")), "");
    world.wait_for("other", Some("1.0-1"));
    assert_eq!(
        world.node().must(&["systemctl", "show", "--value", "--property=Result", "operator"]),
        "success"
    );
}

fn a_script_that_fails_is_told(world: &World) {
    world.declare(&[("hello", "present"), ("other", "present"), ("badpost", "present")]);
    world.wait_for("badpost", Some("1.0-1"));
    world.pair.wait("it is told, once", |pair| pair.told("package_remark", Some(&world.key("badpost"))) == 1);
    let said = world.pair.tenure(&["events", "--json"]).must();
    assert!(said.contains("I am broken"), "{said}");
    // No database knows of it; it is told until its operator has seen to it.
    let why = world.wait_for_code("badpost", "unchanged", "package_script_failed");
    assert!(why.contains("I am broken") && why.contains(world.manager.anew[0]), "{why}");
    world.bring_anew("badpost");
    world.pair.wait("it is told no longer", |pair| {
        let badpost = pair.resource(&world.key("badpost"));
        badpost["outcome"] == "unchanged" && badpost["code"] == Value::Null
    });
}

fn what_cannot_be_had_is_said(world: &World) {
    world.declare(&[("hello", "9.*"), ("other", "present")]);
    let why = world.wait_for_code("hello", "failed", "unknown_package");
    assert!(why.contains("9."), "{why}");
}

/// The machine's configuration would take it unsigned.
fn the_host_is_never_taken_unsigned(world: &World) {
    world.pair.module("[[package]]\nname = \"tenure-host\"\nversion = \"present\"\n");
    let _ = world.pair.declare(&["--allow-removals", "9"]).must();
    world.pair.wait_for_code("package:tenure-host", "refused", "unsigned_package");
}

// rule: H-09
// rule: H-25
// rule: S-13
// case: O-10
// case: O-12
// case: O-13
// case: O-41
#[test]
fn packages_of_dnf_are_as_declared_and_nothing_else_is_touched() {
    let world = World::new(DNF);
    versions_are_as_declared(&world);
    let lock = world.node().sh("dnf -q versionlock add r-hello").must();
    world.declare(&[("hello", "2.0-1"), ("other", "present")]);
    let why = world.wait_for_code("hello", "refused", "package_on_hold");
    assert!(why.contains("versionlock"), "{lock} {why}");
    let _ = world.node().sh("dnf -q versionlock delete r-hello").must();
    world.wait_for("hello", Some("2.0-1"));
    world.declare(&[("hello", "1.22.1-1"), ("other", "present"), ("epoch", "1.0-1")]);
    world.wait_for("hello", Some("1.22.1-1"));
    world.wait_for("epoch", Some("1.0-1"));
    what_we_brought_goes_and_what_was_found_stays(&world);
    nothing_else_is_removed(&world);
    a_restart_waits_for_the_transaction(&world);
    whoever_is_at_work_is_waited_for(&world);
    a_script_that_fails_is_told(&world);
    what_cannot_be_had_is_said(&world);
    the_host_is_never_taken_unsigned(&world);
}

fn a_lock_that_nobody_holds_is_left(world: &World) {
    world.node().write("/var/lib/pacman/db.lck", "");
    world.declare(&[("hello", "present"), ("other", "present"), ("found", "present"), ("dep", "present")]);
    let why = world.wait_for_code("dep", "outstanding", "package_lock_held");
    assert!(why.contains("no process has it open") && why.contains("pacman -Dk"), "{why}");
    world.node().must(&["rm", "/var/lib/pacman/db.lck"]);
    world.wait_for("dep", Some("1.0-1"));
}

// rule: H-09
// rule: H-25
// rule: S-13
// case: O-10
// case: O-12
// case: O-13
// case: O-41
#[test]
fn packages_of_pacman_are_as_declared_and_nothing_else_is_touched() {
    let world = World::new(PACMAN);
    world.node().must(&["pacman", "-Sy"]);
    versions_are_as_declared(&world);
    world.node().must(&["sed", "-i", "/^\\[options\\]/a IgnorePkg = p-hello", "/etc/pacman.conf"]);
    world.declare(&[("hello", "2.*"), ("other", "present")]);
    let why = world.wait_for_code("hello", "refused", "package_on_hold");
    assert!(why.contains("IgnorePkg"), "{why}");
    world.node().must(&["sed", "-i", "/^IgnorePkg/d", "/etc/pacman.conf"]);
    what_we_brought_goes_and_what_was_found_stays(&world);
    nothing_else_is_removed(&world);
    a_restart_waits_for_the_transaction(&world);
    whoever_is_at_work_is_waited_for(&world);
    a_script_that_fails_is_told(&world);
    what_cannot_be_had_is_said(&world);
    the_host_is_never_taken_unsigned(&world);
    a_lock_that_nobody_holds_is_left(&world);
    // Without its owner's word nobody guesses which of the two that hold packages is the machine's.
    world.node().write("/etc/tenure/host.toml", "timer = \"1s\"\n");
    let why = world.wait_for_code("dep", "refused", "package_managers");
    assert!(why.contains("apt and pacman") && why.contains("/etc/tenure/host.toml"), "{why}");
}
