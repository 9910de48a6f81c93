//! The first node, as a newcomer meets it: a control plane on one machine, a host from the tarball on another that
//! knows nothing, and a fleet folder that is declared, applied, reported, held against changes by hand, held with no
//! link over a reboot, and left again.

use std::time::Duration;

use serde_json::Value;
use tenure_tests::lab::{AptRepository, Base, Deb, Pair, Trust};
use tenure_tests::wait;

const PAGE: &str = "/srv/site/index.html";
const CONF: &str = "/etc/site.conf";

fn file(path: &str, text: &str) -> String {
    format!("[[file]]\npath = \"{path}\"\ncontent = '''{text}'''\n")
}

/// Files and directories: some are made, one was there and differs, one was there as declared.
fn files(page: &str) -> String {
    format!(
        "[[directory]]\npath = \"/srv/site\"\nmode = \"0750\"\n{}mode = \"0640\"\ngroup = \"www-data\"\n{}{}",
        file(PAGE, page),
        file("/srv/differs.txt", "wanted\n"),
        file("/srv/same.txt", "same\n"),
    )
}

/// Everything from the tarball, nothing else: what README says, step by step.
fn raise(name: &str, base: Base) -> Pair {
    let pair = Pair::boot(name, base);
    pair.start_control(&pair.direct().to_string(), "");
    assert_eq!(pair.a.must(&["systemctl", "is-active", "tenure-control"]), "active");
    pair.install_host();
    pair.b.write("/srv/differs.txt", "theirs\n");
    pair.b.write("/srv/same.txt", "same\n");
    pair.enrol();
    pair.start_host();
    pair.wait_for_state("ready");
    let manifest: Value = serde_json::from_slice(&pair.b.read("/etc/tenure/node.json")).unwrap();
    assert_eq!((&manifest["node"], &manifest["mode"]), (&"edge-1".into(), &"converged".into()));
    // The control plane may know of the session before the host says so.
    wait::until_true("the journal is the host's log", Duration::from_secs(30), || {
        pair.b.journal("tenure-host").contains("link up address=")
    });
    assert!(pair.a.journal("tenure-control").contains("listening"), "the journal is its log");
    pair
}

fn declare(pair: &Pair, module: &str, more: &[&str]) {
    pair.module(module);
    let _ = pair.declare(&[&["--wait=50s"], more].concat()).expect(0);
}

fn files_are_applied_and_reported(pair: &Pair, page: &str) {
    assert_eq!(pair.read(PAGE).as_deref(), Some(page));
    assert_eq!(pair.b.must(&["stat", "-c", "%a %U:%G", PAGE]), "640 root:www-data");
    assert_eq!(pair.b.must(&["stat", "-c", "%a %U:%G", "/srv/site"]), "750 root:root");
    assert_eq!(pair.read("/srv/differs.txt").as_deref(), Some("wanted\n"));
    let node = pair.node();
    assert_eq!(node["revision"]["applied"], node["revision"]["declared"], "{node}");
    assert_eq!((&node["failed"], &node["outstanding"], &node["held"]), (&0.into(), &0.into(), &0.into()));
    let outcome = pair.resource(&format!("file:{PAGE}"))["outcome"].clone();
    assert!(outcome == "applied" || outcome == "unchanged", "{outcome}");
}

fn drift_is_repaired_and_reported(pair: &Pair, page: &str) {
    let key = format!("file:{PAGE}");
    let told = pair.told("drift_repaired", Some(&key));
    pair.b.write(PAGE, "by hand");
    pair.wait("the file is repaired", |pair| pair.read(PAGE).as_deref() == Some(page));
    pair.wait("the control plane hears of the drift", |pair| pair.told("drift_repaired", Some(&key)) > told);
    assert_eq!(pair.b.must(&["stat", "-c", "%a %U:%G", PAGE]), "640 root:www-data");
}

fn a_reboot_with_no_control_plane_repairs_and_is_told_later(pair: &Pair, page: &str) {
    let key = format!("file:{PAGE}");
    let told = pair.told("drift_repaired", Some(&key));
    pair.a.must(&["systemctl", "stop", "tenure-control"]);
    // The change is one that only the rebooted host can find.
    pair.b.must(&["systemctl", "stop", "tenure-host"]);
    pair.b.write(PAGE, "while nobody looked");
    pair.b.reboot();
    assert_eq!(pair.a.run(&["systemctl", "is-active", "tenure-control"]).stdout.trim(), "inactive");
    pair.wait("the file is repaired with no link", |pair| pair.read(PAGE).as_deref() == Some(page));
    let status = pair.status();
    assert_eq!(status["machine_state"], "disconnected", "{status}");
    assert!(status["spooled"].as_u64().unwrap() >= 1, "{status}");
    pair.a.must(&["systemctl", "start", "tenure-control"]);
    pair.wait("the control plane hears of it", |pair| pair.told("drift_repaired", Some(&key)) > told);
    pair.wait_for_link();
    pair.wait("nothing waits to be told", |pair| pair.status()["spooled"] == 0);
    assert_eq!((pair.node()["state"].clone(), pair.told("lost", None)), ("ready".into(), 0));
}

fn files_leave_by_their_origin(pair: &Pair) {
    let gone = ["file:/srv/site/index.html", "directory:/srv/site"];
    pair.wait("what was made is gone, and told", |pair| {
        gone.iter().all(|key| pair.told("removed", Some(key)) == 1)
    });
    assert!(!pair.b.has("/srv/site"));
    for (path, text) in [("/srv/differs.txt", "wanted\n"), ("/srv/same.txt", "same\n")] {
        assert_eq!(pair.read(path).as_deref(), Some(text), "{path} was there before");
        assert_eq!(pair.told("released", Some(&format!("file:{path}"))), 1, "{path}");
    }
}

fn files_and_directories(base: Base) {
    let pair = raise("first_files", base);
    let before = pair.b.snapshot().without(OURS);
    let page = "<p>hello\n";
    declare(&pair, &files(page), &[]);
    files_are_applied_and_reported(&pair, page);
    drift_is_repaired_and_reported(&pair, page);
    a_reboot_with_no_control_plane_repairs_and_is_told_later(&pair, page);
    declare(&pair, &file("/srv/stays.txt", "stays\n"), &["--allow-removals", "9"]);
    files_leave_by_their_origin(&pair);
    pair.b.snapshot().without(OURS).assert_unchanged_since(&before);
    let owned = pair.b.run(&["tenure-host", "owned", "--json"]).expect(0).json();
    assert_eq!(owned.as_array().map(Vec::len), Some(1), "{owned}");
}

/// What Tenure keeps for itself, what the journey leaves on purpose, and what a reboot changes.
const OURS: &[&str] = &["file /var/lib/tenure-host", "file /srv/differs.txt", "file /srv/stays.txt", "unit "];

// rule: H-08
// rule: H-09
// rule: H-24
#[test]
fn files_and_directories_of_a_first_node_are_held_over_a_reboot_with_no_link_and_left_on_debian_12() {
    files_and_directories(Base::Bookworm);
}

// rule: H-08
// rule: H-09
// rule: H-24
#[test]
fn files_and_directories_of_a_first_node_are_held_over_a_reboot_with_no_link_and_left_on_debian_13() {
    files_and_directories(Base::Trixie);
}

/// A service that writes a line each time it starts.
fn service(name: &str) -> String {
    format!(
        "[Unit]\nDescription={name}\n[Service]\nExecStart=/bin/sh -c 'echo start >>/var/log/{name}.starts; exec sleep infinity'\n[Install]\nWantedBy=multi-user.target\n"
    )
}

/// Packages that the machines' only source has.
fn packages(pair: &Pair) {
    let repository = AptRepository::new(&pair.lab, Trust::Signed);
    for (name, version) in [("site-tool", "1.0"), ("found-tool", "2.0")] {
        let program = format!("#!/bin/sh\necho {version}\n");
        let package = Deb::new(name, version).file(&format!("/usr/bin/{name}"), program, 0o755);
        repository.add(&package.unit(&format!("{name}.service"), &service(name)));
    }
    pair.b.use_apt(&repository);
}

/// What the machine's operator had before: a package, and its unit enabled and running.
fn found_before(pair: &Pair) {
    pair.b.must(&["apt-get", "install", "-y", "-q", "found-tool"]);
    pair.b.must(&["systemctl", "enable", "--now", "--quiet", "found-tool"]);
}

/// Packages and units beside the files: a unit that depends on a file and a directory, a package that is made, and a
/// package with its unit that were there before.
fn everything(page: &str, conf: &str) -> String {
    let unit = service("site").replace('\n', "\\n");
    format!(
        "{}{}{}{}",
        files(page),
        file(CONF, conf),
        format_args!("[[file]]\npath = \"/etc/systemd/system/site.service\"\ncontent = \"{unit}\"\n"),
        r#"
[[package]]
name = "site-tool"
version = "1.*"
[[package]]
name = "found-tool"
version = "present"
[[unit]]
name = "site.service"
enabled = true
running = true
needs = ["file:/etc/systemd/system/site.service", "directory:/srv/site", "package:site-tool"]
restart_on = ["file:/etc/site.conf", "file:/etc/systemd/system/site.service"]
[[unit]]
name = "found-tool.service"
enabled = true
running = true
"#
    )
}

fn starts(pair: &Pair, service: &str) -> usize {
    pair.read(&format!("/var/log/{service}.starts")).unwrap_or_default().lines().count()
}

fn unit(pair: &Pair, name: &str) -> (String, String) {
    let asked = |what: &str| pair.b.run(&["systemctl", what, name]).stdout.trim().to_owned();
    (asked("is-enabled"), asked("is-active"))
}

fn on() -> (String, String) {
    ("enabled".to_owned(), "active".to_owned())
}

fn packages_and_units_are_applied(pair: &Pair) {
    assert_eq!(pair.b.must(&["site-tool"]), "1.0");
    assert_eq!(pair.b.must(&["found-tool"]), "2.0");
    assert_eq!((unit(pair, "site.service"), starts(pair, "site")), (on(), 1));
    assert_eq!((unit(pair, "found-tool.service"), starts(pair, "found-tool")), (on(), 1));
    for key in ["package:site-tool", "package:found-tool", "unit:site.service", "unit:found-tool.service"] {
        let outcome = pair.resource(key)["outcome"].clone();
        assert!(outcome == "applied" || outcome == "unchanged", "{key}: {outcome}");
    }
}

fn a_changed_file_restarts_its_unit_once(pair: &Pair, page: &str) {
    let before = starts(pair, "site");
    let found = starts(pair, "found-tool");
    declare(pair, &everything(page, "port = 2\n"), &[]);
    assert_eq!(pair.read(CONF).as_deref(), Some("port = 2\n"));
    pair.wait("the unit is restarted", |pair| starts(pair, "site") > before);
    // Two more passes do it no second time: each pass is told in the host's own account of its last one.
    for _ in 0..2 {
        let _ = pair.b.run(&["tenure-host", "apply"]).expect(0);
    }
    assert_eq!((starts(pair, "site"), starts(pair, "found-tool")), (before + 1, found));
}

fn a_stopped_unit_and_a_removed_package_come_back(pair: &Pair) {
    pair.b.must(&["systemctl", "disable", "--now", "--quiet", "site"]);
    pair.wait("the unit is back", |pair| unit(pair, "site.service") == on());
    pair.b.must(&["apt-get", "-o", "DPkg::Lock::Timeout=30", "remove", "-y", "-q", "site-tool"]);
    pair.wait("the package is back", |pair| pair.b.run(&["site-tool"]).success());
}

fn packages_and_units_leave_by_their_origin(pair: &Pair) {
    pair.wait("what was made is gone", |pair| {
        !pair.b.has("/usr/bin/site-tool") && !pair.b.has("/etc/systemd/system/site.service")
    });
    assert_ne!(unit(pair, "site.service").1, "active");
    assert_eq!(pair.b.must(&["found-tool"]), "2.0");
    assert_eq!(unit(pair, "found-tool.service"), on());
    for key in ["package:found-tool", "unit:found-tool.service"] {
        pair.wait(&format!("{key} is released, and told"), |pair| pair.told("released", Some(key)) == 1);
    }
}

fn first_node(base: Base) {
    let pair = raise("first_node", base);
    packages(&pair);
    found_before(&pair);
    let page = "<p>hello\n";
    declare(&pair, &everything(page, "port = 1\n"), &[]);
    files_are_applied_and_reported(&pair, page);
    packages_and_units_are_applied(&pair);
    drift_is_repaired_and_reported(&pair, page);
    a_changed_file_restarts_its_unit_once(&pair, page);
    a_stopped_unit_and_a_removed_package_come_back(&pair);
    a_reboot_with_no_control_plane_repairs_and_is_told_later(&pair, page);
    assert_eq!((unit(&pair, "site.service"), unit(&pair, "found-tool.service")), (on(), on()));
    let found = starts(&pair, "found-tool");
    declare(&pair, &file("/srv/stays.txt", "stays\n"), &["--allow-removals", "20"]);
    files_leave_by_their_origin(&pair);
    packages_and_units_leave_by_their_origin(&pair);
    assert_eq!(starts(&pair, "found-tool"), found, "what was there before was not touched");
}

// rule: H-08
// rule: H-24
#[test]
fn a_first_node_holds_packages_files_and_units_over_a_reboot_with_no_link_and_is_left_on_debian_12() {
    first_node(Base::Bookworm);
}

// rule: H-08
// rule: H-24
#[test]
fn a_first_node_holds_packages_files_and_units_over_a_reboot_with_no_link_and_is_left_on_debian_13() {
    first_node(Base::Trixie);
}
