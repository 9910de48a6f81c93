//! `tenure up` as root on a machine that somebody uses: it is raised adopted, and nothing found on it is changed.

use serde_json::Value;
use tenure_tests::lab::{Base, Lab, Machine, SOON, Snapshot, Tarball};
use tenure_tests::program;

/// What is Tenure's own, and how this test runs it.
const OURS: &[&str] = &[
    "file /etc/tenure",
    "file /var/lib/tenure-host",
    "file /var/lib/tenure-control",
    "listener tcp 127.0.0.1:7443",
    "unit up.service",
];

/// A machine with things that its operator would miss.
fn machine_in_use(lab: &Lab, base: Base) -> Machine {
    let machine = lab.machine("web-01", base);
    machine.copy_in(&program::folder().join("tenure"), "/usr/local/bin/tenure", 0o755);
    machine.write_mode("/srv/found.txt", b"theirs\n", 0o640);
    machine.write("/etc/cron.d/theirs", "# theirs\n");
    machine.must(&["nft", "add table inet theirs; add chain inet theirs c { type filter hook input priority 0; }; add rule inet theirs c tcp dport 8080 drop"]);
    machine.start("theirs", &["systemd-socket-activate", "-l", "8081", "/bin/cat"]);
    machine.wait_until("listens", SOON, |a| a.sh("ss -Htln").stdout.contains(":8081"));
    machine
}

fn raise(machine: &Machine) {
    machine.start("up", &["/usr/local/bin/tenure", "up"]);
    machine.wait_until("has joined itself and has a session", SOON, |machine| {
        let said = machine.run(&["tenure", "node", "web-01", "--json"]);
        said.success() && said.json()["session"].is_object()
    });
}

fn snapshot(machine: &Machine) -> Snapshot {
    machine.snapshot().without(OURS)
}

fn declare_what_is_there(machine: &Machine) {
    machine.write("/root/fleet/fleet.toml", "[node.\"web-01\"]\nmodules = [\"site\"]\n");
    let module = "[module]\nname = \"site\"\nversion = \"1\"\n\
        [[file]]\npath = \"/srv/found.txt\"\ncontent = \"ours\\n\"\nmode = \"0600\"\n\
        [[directory]]\npath = \"/srv\"\nmode = \"0700\"\n\
        [[file]]\npath = \"/srv/new.txt\"\ncontent = \"new\\n\"\n";
    machine.write("/root/fleet/modules/site/module.toml", module);
    let _ = machine.run(&["tenure", "declare", "/root/fleet", "--wait=30s"]);
    machine.wait_until("has what was not there", SOON, |machine| machine.has("/srv/new.txt"));
}

fn raised_adopted(base: Base) {
    let lab = Lab::new("up_root");
    let machine = machine_in_use(&lab, base);
    let before = snapshot(&machine);

    raise(&machine);
    let manifest: Value = serde_json::from_slice(&machine.read("/etc/tenure/node.json")).unwrap();
    assert_eq!((&manifest["node"], &manifest["mode"]), (&"web-01".into(), &"adopted".into()), "{manifest}");
    let status = machine.must(&["systemctl", "show", "--value", "--property=SubState", "up"]);
    assert_eq!(status, "running");
    snapshot(&machine).assert_unchanged_since(&before);

    declare_what_is_there(&machine);
    let fleet = ["file /root/fleet", "file /srv/new.txt"];
    snapshot(&machine).without(&fleet).assert_unchanged_since(&before);
    let node = machine.run(&["tenure", "node", "web-01", "--json"]).expect(0).json();
    assert_eq!((&node["mode"], &node["held"]), (&"adopted".into(), &2.into()), "{node}");

    machine.must(&["systemctl", "stop", "up"]);
    let said = machine.journal("up");
    assert!(said.contains("everything is stopped"), "{said}");
    snapshot(&machine).without(&fleet).assert_unchanged_since(&before);
    raise(&machine);
    let again = machine.run(&["tenure", "node", "web-01", "--json"]).expect(0).json();
    assert_eq!(again["fencing_token"], node["fencing_token"], "a second run continues");
    machine.must(&["systemctl", "stop", "up"]);
    goes_on_as_services(&lab, &machine);
    snapshot(&machine).without(&fleet).without(INSTALLED).assert_unchanged_since(&before.without(INSTALLED));
}

/// What installing for good puts on a machine, beside what `up` needs.
const INSTALLED: &[&str] = &[
    "file /root/tenure",
    "file /usr/bin/tenure",
    "file /usr/lib/systemd/system/tenure-",
    "file /usr/lib/sysusers.d/tenure-control.conf",
    "file /etc/needrestart",
    "file /etc/systemd/system/multi-user.target.wants/tenure-",
    "file /etc/passwd",
    "file /etc/group",
    "file /etc/shadow",
    "file /etc/gshadow",
    "unit tenure-",
    "listener tcp 0.0.0.0:7443",
];

/// What was raised by hand and then installed is the same fleet and the same node, now under the service manager.
fn goes_on_as_services(lab: &Lab, machine: &Machine) {
    let fencing = |machine: &Machine| {
        let node = machine.run(&["tenure", "node", "web-01", "--json"]);
        node.success().then(|| (node.json()["fencing_token"].clone(), node.json()["session"].is_object()))
    };
    let _ = machine.install(&Tarball::of(lab, program::folder()), &["--control", "--host"]).must();
    machine.must(&["systemctl", "enable", "--now", "--quiet", "tenure-control", "tenure-host"]);
    machine.wait_until("goes on as services", SOON, |machine| fencing(machine) == Some((1.into(), true)));
    let refused = machine.run(&["tenure", "up"]).expect(3);
    assert!(refused.stderr.contains("tenure-host.service and tenure-control.service"), "{refused}");
}

#[test]
fn what_is_configured_for_the_machine_is_where_up_listens_and_what_it_advertises() {
    let lab = Lab::new("up_configured");
    let machine = lab.machine("web-01", Base::Bookworm);
    machine.copy_in(&program::folder().join("tenure"), "/usr/local/bin/tenure", 0o755);
    machine.write("/etc/tenure/control.toml", "listen = \"0.0.0.0:7555\"\nadvertise = [\"web-01:7555\"]\n");
    raise(&machine);
    let manifest = String::from_utf8(machine.read("/etc/tenure/node.json")).unwrap();
    assert!(manifest.contains("web-01:7555"), "{manifest}");
    machine.must(&["systemctl", "stop", "up"]);
}

// rule: A-01
// rule: A-03
// rule: A-04
#[test]
fn a_machine_in_use_is_raised_adopted_and_nothing_found_is_changed_on_debian_12() {
    raised_adopted(Base::Bookworm);
}

// rule: A-01
// rule: A-03
// rule: A-04
#[test]
fn a_machine_in_use_is_raised_adopted_and_nothing_found_is_changed_on_debian_13() {
    raised_adopted(Base::Trixie);
}

#[test]
fn up_is_refused_where_a_service_of_ours_is_active_and_names_it() {
    let lab = Lab::new("up_refused");
    let machine = lab.machine("a", Base::Bookworm);
    machine.copy_in(&program::folder().join("tenure"), "/usr/local/bin/tenure", 0o755);
    for service in ["tenure-host", "tenure-control"] {
        let before = snapshot(&machine);
        machine.start(service, &["sleep", "infinity"]);
        let refused = machine.run(&["tenure", "up", "--json"]).expect(3);
        let said = if refused.stdout.trim().is_empty() { &refused.stderr } else { &refused.stdout };
        let refusal: Value = serde_json::from_str(said.trim()).unwrap();
        let refusal = &refusal["refusal"];
        assert_eq!(refusal["code"], "services_active", "{refusal}");
        assert!(refusal["happened"].as_str().unwrap().contains(&format!("{service}.service")), "{refusal}");
        assert!(refusal["do"].as_str().unwrap().contains("systemctl status"), "{refusal}");
        machine.must(&["systemctl", "stop", service]);
        machine.snapshot().assert_unchanged_since(&before);
    }
    let by_a_user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "tenure", "up"];
    let by_a_user = machine.run(&by_a_user).expect(2);
    assert!(by_a_user.stderr.contains("needs_root"), "{by_a_user}");
}
