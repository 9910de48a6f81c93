//! The lab's own proof: every feature that a journey leans on is shown on machines with nothing of Tenure on them.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tenure_tests::lab::{AptRepository, Base, Deb, Direction, Lab, Machine, Proxy, Trust};
use tenure_tests::wait::{until, until_true};

const SOON: Duration = Duration::from_secs(20);

fn reaches(from: &Machine, to: &Machine) -> bool {
    from.run(&["ping", "-c1", "-W1", &to.address().to_string()]).success()
}

#[test]
fn both_bases_boot_and_reach_each_other() {
    let lab = Lab::new("both_bases");
    let a = lab.machine("a", Base::Bookworm);
    let b = lab.machine("b", Base::Trixie);
    assert!(a.must(&["systemctl", "--version"]).starts_with("systemd 252"));
    assert!(b.must(&["systemctl", "--version"]).starts_with("systemd 257"));
    assert_ne!(a.read("/etc/machine-id"), b.read("/etc/machine-id"));
    assert_ne!(a.read("/etc/ssh/ssh_host_ed25519_key.pub"), b.read("/etc/ssh/ssh_host_ed25519_key.pub"));
    assert!(reaches(&a, &b) && reaches(&b, &a));
    for machine in [&a, &b] {
        let mut banner = [0; 4];
        lab.inside(|| TcpStream::connect((machine.address(), 22)).unwrap().read_exact(&mut banner).unwrap());
        assert_eq!(&banner, b"SSH-");
        assert_eq!(
            machine.must(&["systemctl", "--failed", "--plain", "--no-legend"]),
            "",
            "{}",
            machine.name()
        );
    }
}

#[test]
fn a_cut_link_stays_cut_over_a_reboot_and_joins_again() {
    let lab = Lab::new("cut");
    let [a, b] = ["a", "b"].map(|name| lab.machine(name, Base::Bookworm));
    a.cut();
    assert!(!reaches(&a, &b) && !reaches(&b, &a));
    a.wait_until("sees that it has no carrier", SOON, |a| {
        a.read("/sys/class/net/host0/operstate") != b"up\n"
    });
    a.reboot();
    assert!(!reaches(&b, &a));
    a.join();
    a.wait_until("reaches b", SOON, |a| reaches(a, &b));

    a.silence();
    assert!(!reaches(&b, &a));
    assert_eq!(a.read("/sys/class/net/host0/carrier"), b"1\n");
    a.join();
    a.wait_until("reaches b", SOON, |a| reaches(a, &b));
}

#[test]
fn a_machine_keeps_its_files_and_its_journal_over_reboots_and_pulled_plugs() {
    let lab = Lab::new("reboot");
    let a = lab.machine("a", Base::Bookworm);
    let first = a.boot_id();
    a.write("/srv/kept", "kept");
    a.start("says", &["echo", "said before the reboot"]);
    a.wait_until("has the line in its journal", SOON, |a| {
        a.journal("says").contains("said before the reboot")
    });

    a.reboot();
    let second = a.boot_id();
    assert_ne!(first, second);
    assert_eq!(a.read("/srv/kept"), b"kept");
    assert!(a.journal("says").contains("said before the reboot"));

    a.kill();
    assert_eq!(a.read("/srv/kept"), b"kept");
    assert!(a.journal("says").contains("said before the reboot"));
    a.write("/srv/while_off", "written while it was off");
    a.boot();
    assert_ne!(second, a.boot_id());
    assert_eq!(a.must(&["cat", "/srv/while_off"]), "written while it was off");

    let third = a.boot_id();
    a.start("later", &["systemctl", "reboot"]);
    a.wait_until_rebooted(&third);
}

#[test]
fn commands_have_a_deadline_and_links_do_not_lead_out_of_the_machine() {
    let lab = Lab::new("commands");
    let a = lab.machine("a", Base::Bookworm);
    let output = a.sh("echo out; echo err >&2; exit 7");
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (Some(7), "out\n", "err\n"));
    let started = Instant::now();
    assert!(!a.run_for(Duration::from_secs(1), &["sleep", "300"]).success());
    assert!(started.elapsed() < SOON);
    assert_eq!(a.run(&["pgrep", "sleep"]).code, Some(1), "the program goes on inside");
    assert_eq!(a.run_with(SOON, b"given", &["cat"]).must(), "given");

    a.must(&["ln", "-s", "/run", "/srv/link"]);
    a.write_mode("/srv/link/deep/secret", b"mine", 0o600);
    assert_eq!(a.must(&["stat", "-c", "%a %U", "/run/deep/secret"]), "600 root");
    assert!(!Path::new("/run/deep").exists());
    let there = lab.folder().join("copied");
    std::fs::write(&there, "#!/bin/sh\necho copied\n").unwrap();
    a.copy_in(&there, "/usr/local/bin/copied", 0o755);
    assert_eq!(a.must(&["copied"]), "copied");
}

#[test]
fn a_snapshot_is_equal_until_something_changes_and_then_names_it() {
    let lab = Lab::new("snapshot");
    let a = lab.machine("a", Base::Bookworm);
    a.must(&["nft", "add table inet found; add chain inet found c { type filter hook input priority 0; }; add rule inet found c counter accept"]);
    a.write("/etc/found.conf", "found");
    a.write("/etc/noted.conf", "noted");
    let before = a.snapshot();
    let _ = reaches(&a, &a);
    a.snapshot().assert_unchanged_since(&before);

    a.write_mode("/etc/found.conf", b"changed", 0o600);
    a.write("/etc/new.conf", "new");
    a.give_attribute("/etc/noted.conf", "user.note", b"mine");
    a.must(&["rm", "/etc/issue"]);
    a.must(&["systemctl", "restart", "ssh"]);
    a.must(&["systemctl", "disable", "ssh"]);
    a.must(&["nft", "add rule inet found c tcp dport 8080 drop"]);
    a.must(&["iptables-legacy", "-A", "INPUT", "-s", "192.0.2.1", "-j", "DROP"]);
    a.must(&["dpkg", "--purge", "--force-depends", "iputils-ping"]);
    a.start("listens", &["systemd-socket-activate", "-l", "4711", "/bin/cat"]);
    a.wait_until("listens", SOON, |a| a.sh("ss -Htln").stdout.contains(":4711"));
    let difference = a.snapshot().since(&before);
    let text = difference.to_string();
    for expected in [
        "changed: file /etc/found.conf: content ",
        "mode 0644 → 0600",
        "new: file /etc/new.conf",
        "changed: file /etc/noted.conf: attributes none → user.note=mine",
        "gone: file /etc/issue",
        "changed: unit ssh.service: at boot enabled → disabled, invocation ",
        "+\t\ttcp dport 8080 drop",
        "+-A INPUT -s 192.0.2.1/32 -j DROP",
        "gone: package iputils-ping",
        "new: listener tcp *:4711",
    ] {
        assert!(text.contains(expected), "`{expected}` is missing in:\n{text}");
    }
    a.snapshot()
        .without(&["file /", "unit ", "package ", "rules ", "listener "])
        .assert_unchanged_since(&before.without(&["file /", "unit ", "package ", "rules ", "listener "]));
}

fn install_and_upgrade(base: Base) {
    let lab = Lab::new("apt");
    let a = lab.machine("a", base);
    let repository = AptRepository::new(&lab, Trust::Signed);
    let unit = "[Service]\nExecStart=/usr/bin/sleep infinity\n";
    let package = |version: &str| {
        Deb::new("found-tool", version).file(
            "/usr/bin/found-tool",
            format!("#!/bin/sh\necho {version}\n"),
            0o755,
        )
    };
    repository.add(
        &package("1.0")
            .unit("found-tool.service", unit)
            .script("postinst", "systemctl daemon-reload\nsystemctl start found-tool"),
    );
    repository.add(
        &Deb::new("needy", "1")
            .field("Depends", "found-tool (>= 1.0)")
            .conffile("/etc/needy.conf", "shipped\n"),
    );
    a.use_apt(&repository);
    a.cut();
    a.must(&["apt-get", "install", "-y", "-q", "needy"]);
    assert_eq!(a.must(&["found-tool"]), "1.0");
    assert_eq!(a.must(&["systemctl", "is-active", "found-tool"]), "active");

    repository.add(&package("2.0"));
    a.use_apt(&repository);
    a.must(&["apt-get", "install", "-y", "-q", "found-tool"]);
    assert_eq!(a.must(&["found-tool"]), "2.0");

    let nobodys = AptRepository::new(&lab, Trust::Unsigned);
    nobodys.add(&package("3.0"));
    a.use_apt(&nobodys);
    let _ = a.run(&["apt-get", "install", "-y", "-q", "found-tool"]);
    assert_eq!(a.must(&["found-tool"]), "2.0", "what nobody signed was not even offered");
    let allowed = "Acquire::AllowInsecureRepositories \"true\";\nAcquire::AllowDowngradeToInsecureRepositories \"true\";\n";
    a.write("/etc/apt/apt.conf.d/50insecure", allowed);
    a.must(&["apt-get", "update"]);
    let refused = a.run(&["apt-get", "install", "-y", "-q", "found-tool"]);
    assert!(refused.stderr.contains("unauthenticated packages"), "{refused}");
    assert_eq!(a.must(&["found-tool"]), "2.0");
}

#[test]
fn packages_of_the_labs_own_repository_install_and_upgrade_with_the_link_cut_on_debian_12() {
    install_and_upgrade(Base::Bookworm);
}

#[test]
fn packages_of_the_labs_own_repository_install_and_upgrade_with_the_link_cut_on_debian_13() {
    install_and_upgrade(Base::Trixie);
}

#[test]
fn a_proxy_between_two_machines_delays_holds_back_cuts_and_moves() {
    let lab = Lab::new("proxy");
    let [a, b] = ["a", "b"].map(|name| lab.machine(name, Base::Bookworm));
    let proxy = Proxy::start(&lab, SocketAddr::from((a.address(), 22)));
    let dial =
        format!("exec 3<>/dev/tcp/{}/{} && head -c4 <&3", proxy.address().ip(), proxy.address().port());
    assert_eq!(b.must(&["bash", "-c", &dial]), "SSH-");
    proxy.delay(Duration::from_millis(300));
    let started = Instant::now();
    assert_eq!(b.must(&["bash", "-c", &dial]), "SSH-");
    assert!(started.elapsed() >= Duration::from_millis(300));
    proxy.delay(Duration::ZERO);

    proxy.hold(Direction::Down);
    let mut stream = lab.inside(|| TcpStream::connect(proxy.address()).unwrap());
    stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    stream.write_all(b"SSH-2.0-lab\r\n").unwrap();
    let nothing = stream.read(&mut [0; 4]).unwrap_err();
    assert!(matches!(nothing.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{nothing}");
    proxy.release(Direction::Down);
    stream.set_read_timeout(Some(SOON)).unwrap();
    let mut banner = [0; 4];
    stream.read_exact(&mut banner).unwrap();
    assert_eq!(&banner, b"SSH-");

    proxy.cut_idle_after(Some(Duration::from_millis(500)));
    until_true("the idle connection is cut", SOON, || proxy.open() == 0);
    proxy.cut_idle_after(None);

    a.kill();
    proxy.point_at(SocketAddr::from((b.address(), 22)));
    assert_eq!(b.must(&["bash", "-c", &dial]), "SSH-");
}

// A killed run: this very test program, told by the variable to boot a machine and wait to be killed.
const LEAVE_BEHIND: &str = "TENURE_LAB_LEAVES_BEHIND";

#[test]
fn what_a_killed_run_left_is_swept_by_the_next() {
    if let Some(path) = std::env::var_os(LEAVE_BEHIND) {
        return leave_behind(&PathBuf::from(path));
    }
    let told = tempfile::NamedTempFile::new().unwrap();
    let mut killed = rerun(told.path());
    let name = until("the other run has booted a machine", Duration::from_secs(120), || {
        let name = std::fs::read_to_string(told.path()).unwrap();
        (!name.is_empty()).then_some(name)
    });
    assert!(!traces_of(&name).is_empty());
    let living = Lab::new("sweeps_not_the_living");
    assert!(!traces_of(&name).is_empty(), "a run whose owner lives was swept");
    drop(living);

    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(!traces_of(&name).is_empty());
    let lab = Lab::new("sweeps");
    assert_eq!(traces_of(&name), Vec::<String>::new());
    std::fs::remove_dir_all(lab.logs().with_file_name(format!("{name}-killed"))).unwrap();
    let own = lab.folder().file_name().unwrap().to_str().unwrap().to_owned();
    drop(lab);
    assert_eq!(traces_of(&own), Vec::<String>::new());
}

fn leave_behind(path: &Path) {
    let lab = Lab::new("killed");
    let _machine = lab.machine("a", Base::Bookworm);
    std::fs::write(path, lab.folder().file_name().unwrap().to_str().unwrap()).unwrap();
    until_true("this run is killed", Duration::from_secs(300), || false);
}

#[expect(clippy::disallowed_methods, reason = "the test starts itself again, to be killed")]
fn rerun(told: &Path) -> std::process::Child {
    let this = std::env::current_exe().unwrap();
    let test = "machines::what_a_killed_run_left_is_swept_by_the_next";
    std::process::Command::new(this).args(["--exact", test]).env(LEAVE_BEHIND, told).spawn().unwrap()
}

/// Whatever on this machine has the name of a run: mounts, namespaces, control groups, folders.
fn traces_of(run: &str) -> Vec<String> {
    let runs =
        std::env::var("TENURE_LAB_CACHE").unwrap_or_else(|_| "/var/cache/tenure-lab".to_owned()) + "/runs";
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut found: Vec<String> =
        mounts.lines().filter(|line| line.contains(run)).map(|line| format!("mount {line}")).collect();
    for folder in [
        "/run/netns",
        "/run/systemd/nspawn/propagate",
        "/sys/fs/cgroup",
        "/sys/fs/cgroup/unified",
        "/sys/fs/cgroup/systemd",
        &runs,
    ] {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        let names = entries.flatten().map(|entry| entry.path().display().to_string());
        found.extend(names.filter(|path| path.contains(run)));
    }
    found
}
