//! Packages where something goes wrong that is nobody's fault here: a dpkg that was cut short by somebody else (O-11),
//! a lock that is held for minutes while the timer is long (O-10), and a package of the host's own whose script restarts
//! the host in the middle of its transaction (O-40).

use tenure_tests::lab::{AptRepository, Base, Pair, Trust};

use super::{assert_dpkg_is_whole, declare, lines, quick, slow};

/// A real dpkg leaves one package unpacked, and is killed while it unpacks another.
fn what_somebody_else_left_half_done_is_theirs(pair: &Pair) {
    let _ = pair.b.sh("dpkg --unpack /srv/lab-apt/unpacked_1.0_all.deb && touch /srv/kill-dpkg").must();
    let killed = pair.b.sh("dpkg --unpack /srv/lab-apt/cut-short_1.0_all.deb");
    assert!(!killed.success(), "{killed}");
    pair.b.must(&["rm", "/srv/kill-dpkg"]);
    declare(pair, &["third"]);
    let why = pair.wait_for_code("package:third", "failed", "dpkg_interrupted");
    assert!(why.contains("cut-short is half-installed") && why.contains("unpacked is unpacked"), "{why}");
    assert!(
        why.contains("`dpkg --configure -a`") && why.contains("`apt-get install --reinstall cut-short`"),
        "{why}"
    );
    // Only packages fail for it, and nobody mends what is another's.
    pair.wait_for_resource("file:/srv/third.txt");
    pair.wait_for_resource("unit:cron-like.service");
    assert_eq!(pair.b.must(&["dpkg-query", "-W", "-f", "${db:Status-Status}", "unpacked"]), "unpacked");
    // As it is told, so it is mended; the rest needs nobody.
    let _ = pair.b.sh("dpkg --configure -a; apt-get install -y -q --reinstall cut-short").must();
    pair.wait_for_resource("package:third");
    assert_dpkg_is_whole(&pair.b);
}

fn a_lock_is_asked_for_again_long_before_the_timer_is_due(pair: &Pair) {
    pair.b.write("/etc/tenure/host.toml", "timer = \"10m\"\n");
    pair.b.must(&["systemctl", "restart", "tenure-host"]);
    pair.wait_for_both_ends();
    pair.b.start("operator", &["apt-get", "install", "-y", "theirs"]);
    pair.wait("the operator is at work", |pair| lines(&pair.b, "theirs.begun") == 1);
    declare(pair, &["third", "ours"]);
    pair.wait_for_code("package:ours", "outstanding", "package_lock_held");
    pair.b.write("/srv/theirs", "");
    pair.wait_for_resource("package:ours");
    pair.b.write("/etc/tenure/host.toml", "timer = \"1s\"\n");
}

fn a_script_that_restarts_the_host_breaks_nothing(pair: &Pair) {
    let pid = pair.host_pid();
    declare(pair, &["third", "ours", "tenure-host", "x-after", "y-after"]);
    for name in ["tenure-host", "x-after", "y-after"] {
        pair.wait_for_resource(&format!("package:{name}"));
        assert_eq!(lines(&pair.b, &format!("{name}.done")), 1, "{name}: its script ran once");
    }
    assert_ne!(pair.host_pid(), pid, "its script has restarted it");
    assert_dpkg_is_whole(&pair.b);
}

fn mishaps_on(base: Base) {
    let pair = Pair::raised_on("mishaps", base);
    let repository = AptRepository::new(&pair.lab, Trust::Signed);
    let once = |name: &str, more: &str| {
        quick(name).script("postinst", &format!("echo done >>/var/log/{name}.done\n{more}"))
    };
    repository.add_all(&[
        quick("unpacked"),
        quick("cut-short").script("preinst", "[ -e /srv/kill-dpkg ] || exit 0\nkill -9 $PPID"),
        quick("third"),
        quick("ours"),
        slow("theirs"),
        once("tenure-host", "systemctl restart tenure-host"),
        once("x-after", ""),
        once("y-after", ""),
    ]);
    pair.b.use_apt(&repository);
    let unit = "[Service]\nExecStart=sleep infinity\n[Install]\nWantedBy=multi-user.target\n";
    pair.b.write("/etc/systemd/system/cron-like.service", unit);
    what_somebody_else_left_half_done_is_theirs(&pair);
    a_lock_is_asked_for_again_long_before_the_timer_is_due(&pair);
    a_script_that_restarts_the_host_breaks_nothing(&pair);
}

// case: O-10
// case: O-11
// case: O-40
// case: O-41
#[test]
fn what_others_leave_half_done_hold_or_restart_stops_no_packages_for_longer_than_it_must_on_debian_12() {
    mishaps_on(Base::Bookworm);
}

// case: O-10
// case: O-11
// case: O-40
// case: O-41
#[test]
fn what_others_leave_half_done_hold_or_restart_stops_no_packages_for_longer_than_it_must_on_debian_13() {
    mishaps_on(Base::Trixie);
}
