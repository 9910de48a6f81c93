//! Installing without packages, on machines with no network: packaging's tarball and install script, and what the two
//! units are under a real service manager. The programs are stand-ins: they say that they are ready, and stay.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use tenure_tests::lab::{Base, Deb, Lab, Machine, Tarball};

const SOON: Duration = Duration::from_secs(20);

/// A program that does with systemd what a daemon of ours does: ready, alive, a file in its state folder, a socket for
/// its group, a port.
const STAND_IN: &str = r#"#!/usr/bin/perl
# release RELEASE
use strict; use Socket; use IO::Handle;
if (($ARGV[0] // '') eq '--version') { print "stand-in RELEASE\n"; exit 0 }
$ARGV[0] eq 'run' or die 'run it as `run`';
print STDERR "stand-in RELEASE runs\n";
open(my $state, '>', "$ENV{STATE_DIRECTORY}/store") or die "state: $!"; close($state);
socket(my $api, PF_UNIX, SOCK_STREAM, 0) or die; unlink("$ENV{RUNTIME_DIRECTORY}/api.sock");
bind($api, sockaddr_un("$ENV{RUNTIME_DIRECTORY}/api.sock")) or die "socket: $!"; listen($api, 1);
my $group = getgrnam('tenure');
if ($> != 0) { chown(-1, $group, "$ENV{RUNTIME_DIRECTORY}/api.sock") or die "group: $!"; chmod(0660, "$ENV{RUNTIME_DIRECTORY}/api.sock") }
socket(my $link, PF_INET, SOCK_STREAM, 0) or die "inet: $!"; bind($link, sockaddr_in($> ? 7443 : 0, INADDR_ANY)) or die "port: $!"; listen($link, 1);
socket(my $notify, PF_UNIX, SOCK_DGRAM, 0) or die;
send($notify, "READY=1\nSTATUS=stands in", 0, sockaddr_un($ENV{NOTIFY_SOCKET})) or die "notify: $!";
while (1) { sleep 10; send($notify, 'WATCHDOG=1', 0, sockaddr_un($ENV{NOTIFY_SOCKET})) }
"#;

fn tarball(lab: &Lab, release: &str) -> Tarball {
    let folder = lab.folder().join(format!("binaries-{release}"));
    std::fs::create_dir(&folder).unwrap();
    for name in ["tenure-host", "tenure-control", "tenure"] {
        write_program(&folder.join(name), &STAND_IN.replace("RELEASE", release));
    }
    Tarball::of(lab, &folder)
}

fn write_program(path: &PathBuf, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn property(machine: &Machine, unit: &str, name: &str) -> String {
    machine.must(&["systemctl", "show", "--value", "--property", name, unit])
}

fn mode_and_owner(machine: &Machine, path: &str) -> String {
    machine.must(&["stat", "-c", "%a %U:%G", path])
}

fn host_is_installed_and_runs(base: Base) {
    let lab = Lab::new("install_host");
    let a = lab.machine("a", base);
    a.cut();
    let first = tarball(&lab, "1");
    let before = a.snapshot().without(&["file /root/tenure"]);
    let said = a.install(&first, &["--host"]).must();
    assert!(said.contains("tenure-host enrol --token-file"), "{said}");
    let difference = a.snapshot().without(&["file /root/tenure"]).since(&before).to_string();
    for new in [
        "file /etc/needrestart",
        "file /etc/needrestart/conf.d",
        "file /etc/needrestart/conf.d/tenure-host.conf",
        "file /etc/tenure",
        "file /usr/bin/tenure-host",
        "file /usr/lib/systemd/system/tenure-host.service",
        "file /var/lib/tenure-host",
    ] {
        assert!(difference.contains(&format!("new: {new}\n")), "{new} is missing in:\n{difference}");
    }
    assert_eq!(difference.lines().count(), 7, "it changed more than it says:\n{difference}");
    assert_eq!(mode_and_owner(&a, "/usr/bin/tenure-host"), "755 root:root");
    assert_eq!(mode_and_owner(&a, "/var/lib/tenure-host"), "700 root:root");
    assert_eq!(mode_and_owner(&a, "/etc/tenure"), "755 root:root");

    a.must(&["systemctl", "enable", "--now", "tenure-host"]);
    assert_eq!(property(&a, "tenure-host", "StatusText"), "stands in");
    assert!(a.journal("tenure-host").contains("stand-in 1 runs"));
    assert!(a.has("/var/lib/tenure-host/store"));
    assert_eq!(mode_and_owner(&a, "/run/tenure-host"), "700 root:root");
    assert_eq!(property(&a, "tenure-host", "NRestarts"), "0");

    upgrade_leaves_the_running_host_alone(&lab, &a, &first);

    a.reboot();
    assert_eq!(property(&a, "tenure-host", "ActiveState"), "active");
    assert!(a.journal("tenure-host").contains("stand-in 2 runs"));
    let killed = property(&a, "tenure-host", "MainPID");
    a.must(&["kill", "-KILL", &killed]);
    a.wait_until("starts the host again", SOON, |a| {
        property(a, "tenure-host", "ActiveState") == "active"
            && property(a, "tenure-host", "MainPID") != killed
    });
}

fn upgrade_leaves_the_running_host_alone(lab: &Lab, a: &Machine, first: &Tarball) {
    let running = property(a, "tenure-host", "InvocationID");
    // Whether it can write in a folder it tries there, which moves the folder's time; the mode of what is there already
    // it sets again. Neither changes anything.
    let tried = [
        "file /root/tenure",
        "file /etc/.",
        "file /usr/bin/.",
        "file /usr/lib/systemd/system/.",
        "file /var/lib/.",
    ];
    let look = || a.snapshot().without(&tried).but_for_touches();
    let before = look();
    let said = a.install(first, &["--host"]).must();
    assert_eq!(said, "everything was already installed");
    look().assert_unchanged_since(&before);

    let said = a.install(&tarball(lab, "2"), &["--host"]).must();
    assert!(said.contains("the running host sees the new binary"), "{said}");
    assert_eq!(property(a, "tenure-host", "InvocationID"), running);
    assert_eq!(a.must(&["tenure-host", "--version"]), "stand-in 2");
}

#[test]
fn the_tarball_installs_the_host_with_no_network_and_leaves_a_running_one_alone_on_debian_12() {
    host_is_installed_and_runs(Base::Bookworm);
}

#[test]
fn the_tarball_installs_the_host_with_no_network_and_leaves_a_running_one_alone_on_debian_13() {
    host_is_installed_and_runs(Base::Trixie);
}

fn control_is_installed_and_runs(base: Base) {
    let lab = Lab::new("install_control");
    let a = lab.machine("a", base);
    a.cut();
    let said = a.install(&tarball(&lab, "1"), &["--control"]).must();
    assert!(said.contains("advertise = ["), "{said}");
    assert!(!a.has("/usr/bin/tenure-host") && a.has("/usr/bin/tenure"));
    a.must(&["systemctl", "enable", "--now", "tenure-control"]);
    assert_eq!(property(&a, "tenure-control", "StatusText"), "stands in");
    assert!(a.journal("tenure-control").contains("stand-in 1 runs"));
    let runs_as = a.must(&["ps", "-o", "user:20=", "-p", &property(&a, "tenure-control", "MainPID")]);
    assert_eq!(runs_as, "tenure-control");
    assert_eq!(mode_and_owner(&a, "/var/lib/tenure-control"), "700 tenure-control:tenure-control");
    assert_eq!(mode_and_owner(&a, "/run/tenure-control/api.sock"), "660 tenure-control:tenure");
    assert_eq!(
        a.must(&["getent", "group", "tenure"]).rsplit(':').next(),
        Some("tenure-control"),
        "only the service itself"
    );
    assert_eq!(a.install(&tarball(&lab, "1b"), &["--control"]).code, Some(0));
    assert_eq!(property(&a, "tenure-control", "NRestarts"), "0");
}

#[test]
fn the_control_plane_runs_as_its_own_user_on_debian_12() {
    control_is_installed_and_runs(Base::Bookworm);
}

#[test]
fn the_control_plane_runs_as_its_own_user_on_debian_13() {
    control_is_installed_and_runs(Base::Trixie);
}

#[test]
fn an_installation_that_cannot_work_is_refused_by_name_and_changes_nothing() {
    let lab = Lab::new("install_refused");
    let a = lab.machine("a", Base::Bookworm);
    let whole = tarball(&lab, "1");
    let only_host = lab.folder().join("only-host");
    std::fs::create_dir(&only_host).unwrap();
    write_program(&only_host.join("tenure-host"), "#!/bin/sh\nexit 1\n");
    let broken = Tarball::of(&lab, &only_host);
    let before = a.snapshot().without(&["file /root/tenure"]);
    let refused = |tarball: &Tarball, arguments: &[&str], code: &str| {
        let output = a.install(tarball, arguments);
        assert!(output.code == Some(3) && output.stderr.contains(&format!("refused ({code})")), "{output}");
    };
    refused(&broken, &["--control"], "incomplete");
    refused(&broken, &["--host"], "does_not_run");
    refused(&whole, &["--host", "--root", "/nowhere"], "no_root");
    assert_eq!(a.install(&whole, &[]).code, Some(2));
    assert_eq!(a.install(&whole, &["--node"]).code, Some(2));
    a.must(&["mount", "--bind", "/usr", "/usr"]);
    a.must(&["mount", "-o", "remount,bind,ro", "/usr"]);
    refused(&whole, &["--host"], "read_only");
    a.must(&["umount", "--lazy", "/usr"]);
    a.must(&["cp", "-r", "/root/tenure", "/tmp/tenure"]);
    let by_a_user = a.run(&[
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "/tmp/tenure/install.sh",
        "--host",
    ]);
    assert!(by_a_user.code == Some(3) && by_a_user.stderr.contains("refused (not_root)"), "{by_a_user}");
    a.snapshot().without(&["file /root/tenure"]).assert_unchanged_since(&before);

    let package = lab.folder().join("package");
    std::fs::create_dir(&package).unwrap();
    let deb =
        Deb::new("tenure-host", "1").file("/usr/bin/tenure-host", "#!/bin/sh\n", 0o755).build_into(&package);
    a.copy_in(&deb, "/root/tenure-host.deb", 0o644);
    a.must(&["dpkg", "--install", "/root/tenure-host.deb"]);
    refused(&whole, &["--host"], "packaged");
}

#[test]
fn an_image_is_filled_below_a_folder_without_touching_the_machine() {
    let lab = Lab::new("install_root");
    let a = lab.machine("a", Base::Bookworm);
    a.must(&["mkdir", "-p", "/srv/image/etc"]);
    let whole = tarball(&lab, "1");
    let before = a.snapshot().without(&["file /root/tenure", "file /srv/image"]);
    let _ = a.install(&whole, &["--host", "--control", "--root", "/srv/image"]).must();
    a.snapshot().without(&["file /root/tenure", "file /srv/image"]).assert_unchanged_since(&before);
    for path in [
        "usr/bin/tenure-host",
        "usr/bin/tenure-control",
        "usr/bin/tenure",
        "usr/lib/systemd/system/tenure-control.service",
    ] {
        assert!(a.has(&format!("/srv/image/{path}")), "{path}");
    }
    assert!(a.must(&["cat", "/srv/image/etc/group"]).contains("tenure:x:"));
}
