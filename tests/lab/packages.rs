//! Package transactions beside whom they meet: an operator who restarts the host in the middle of one (O-41), and one
//! who works with packages himself (O-10). Nobody is signalled, nothing is begun twice, and what waits is outstanding.

use tenure_tests::lab::{AptRepository, Base, Deb, Machine, Pair, Trust};

mod mishaps;
mod states;

/// A package whose script waits for a file of its name below /srv, with a line in a log before and after.
fn slow(name: &str) -> Deb {
    let lines = format!(
        "echo begun >>/var/log/{name}.begun\nwhile [ ! -e /srv/{name} ]; do sleep 0.1; done\necho done >>/var/log/{name}.done"
    );
    quick(name).script("postinst", &lines)
}

fn quick(name: &str) -> Deb {
    Deb::new(name, "1.0").file(&format!("/usr/share/{name}/it"), "it\n", 0o644)
}

fn lines(machine: &Machine, log: &str) -> usize {
    machine.sh(&format!("cat /var/log/{log} 2>/dev/null")).stdout.lines().count()
}

/// Declares these packages with a file for each, and a unit.
fn declare(pair: &Pair, names: &[&str]) {
    let unit = "[[unit]]\nname = \"cron-like.service\"\nenabled = true\nrunning = true\n";
    let one = |name: &&str| {
        format!(
            "[[package]]\nname = \"{name}\"\nversion = \"present\"\n[[file]]\npath = \"/srv/{name}.txt\"\ncontent = \"it\\n\"\n"
        )
    };
    pair.module(&names.iter().map(one).chain([unit.to_owned()]).collect::<String>());
    let _ = pair.declare(&[]).must();
}

/// The transaction of the host's that runs: its unit, and the process in it.
fn transaction(machine: &Machine) -> (String, String) {
    let units =
        machine.must(&["systemctl", "list-units", "--plain", "--no-legend", "tenure-host-packages-*"]);
    assert_eq!(units.lines().count(), 1, "one transaction: {units}");
    let unit = units.split_whitespace().next().unwrap_or_default().to_owned();
    let pid = machine.must(&["systemctl", "show", "--value", "--property=MainPID", &unit]);
    (unit, pid)
}

fn assert_dpkg_is_whole(machine: &Machine) {
    assert_eq!(machine.must(&["dpkg", "--audit"]), "");
    assert_eq!(machine.must(&["ls", "-A", "/var/lib/dpkg/updates"]), "");
}

fn a_restart_waits_for_the_transaction(pair: &Pair) {
    declare(pair, &["slow"]);
    pair.wait("the script has begun", |pair| lines(&pair.b, "slow.begun") == 1);
    let (before, pid) = (transaction(&pair.b), pair.host_pid());
    pair.b.must(&["systemctl", "restart", "tenure-host"]);
    assert_ne!(pair.host_pid(), pid);
    let why = pair.wait_for_code("package:slow", "outstanding", "package_transaction_running");
    assert!(why.contains(&before.0) && why.contains("systemctl status"), "{why}");
    pair.wait("a file that does not need it is there", |pair| pair.b.has("/srv/slow.txt"));
    // Passes of two kinds later it is the same one.
    let _ = pair.b.run(&["tenure-host", "apply"]).expect(5);
    assert_eq!(transaction(&pair.b), before);
    pair.b.write("/srv/slow", "");
    pair.wait_for_resource("package:slow");
    assert_eq!((lines(&pair.b, "slow.begun"), lines(&pair.b, "slow.done")), (1, 1));
    assert_eq!(pair.owned()["package:slow"], "created");
    let gone = ["systemctl", "list-units", "--all", "--plain", "--no-legend", "tenure-host-packages-*"];
    assert_eq!(pair.b.must(&gone), "");
    assert_dpkg_is_whole(&pair.b);
}

fn whoever_holds_the_lock_is_waited_for(pair: &Pair) {
    pair.b.start("operator", &["apt-get", "install", "-y", "theirs"]);
    pair.wait("the operator is at work", |pair| lines(&pair.b, "theirs.begun") == 1);
    let pid = pair.b.must(&["systemctl", "show", "--value", "--property=MainPID", "operator"]);
    let lock = pair.b.must(&["stat", "-c", "%i", "/var/lib/dpkg/lock-frontend"]);
    pair.b.must(&["systemctl", "stop", "cron-like"]);
    declare(pair, &["slow", "ours"]);
    let why = pair.wait_for_code("package:ours", "outstanding", "package_lock_held");
    assert!(why.contains("lock-frontend") && why.contains(&pid) && why.contains("apt-get"), "{why}");
    // A lock that is held is no failure, and stops nothing that does not need it.
    pair.wait_for_resource("file:/srv/ours.txt");
    pair.wait_for_resource("unit:cron-like.service");
    assert!(pair.b.run(&["systemctl", "is-active", "cron-like"]).success());
    let node = pair.node();
    assert_eq!((&node["failed"], &node["outstanding"]), (&0.into(), &1.into()), "{node}");
    // Nobody was signalled, and the lock is the same.
    assert_eq!(pair.b.must(&["cat", &format!("/proc/{pid}/comm")]), "apt-get");
    assert_eq!(pair.b.must(&["stat", "-c", "%i", "/var/lib/dpkg/lock-frontend"]), lock);
    assert!(!pair.b.has("/usr/share/ours/it"));
    pair.b.write("/srv/theirs", "");
    pair.wait_for_resource("package:ours");
    assert_eq!((lines(&pair.b, "theirs.begun"), lines(&pair.b, "theirs.done")), (1, 1));
    assert!(pair.b.has("/usr/share/theirs/it") && pair.b.has("/usr/share/ours/it"));
    assert_eq!(pair.b.must(&["systemctl", "show", "--value", "--property=Result", "operator"]), "success");
    assert_dpkg_is_whole(&pair.b);
}

fn at_work(base: Base) {
    let pair = Pair::raised_on("packages", base);
    let repository = AptRepository::new(&pair.lab, Trust::Signed);
    [slow("slow"), slow("theirs"), quick("ours")].iter().for_each(|package| repository.add(package));
    pair.b.use_apt(&repository);
    let unit = "[Service]\nExecStart=sleep infinity\n[Install]\nWantedBy=multi-user.target\n";
    pair.b.write("/etc/systemd/system/cron-like.service", unit);
    a_restart_waits_for_the_transaction(&pair);
    whoever_holds_the_lock_is_waited_for(&pair);
}

// case: O-10
// case: O-41
#[test]
fn a_transaction_outlives_a_restarted_host_and_a_held_lock_is_waited_for_on_debian_12() {
    at_work(Base::Bookworm);
}

// case: O-10
// case: O-41
#[test]
fn a_transaction_outlives_a_restarted_host_and_a_held_lock_is_waited_for_on_debian_13() {
    at_work(Base::Trixie);
}
