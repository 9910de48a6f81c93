//! A host that is killed in the middle of an apply, and a machine that is switched off or rebooted there (H-09): the
//! next start goes on from where the last one was ended, nothing is left over, nothing is done twice that can be seen,
//! and what was made is still known as made by us.

use std::time::Duration;

use tenure_tests::lab::{AptRepository, Base, Deb, Pair, Trust};
use tenure_tests::wait;

const FILES: usize = 600;
const MANY: &str = "/srv/many";
const SERVICE: &str = "/etc/systemd/system/site.service";
/// What a slow script waits for.
const GATE: &str = "/srv/gate";

/// A script that writes a line when it begins, waits for the gate, and writes a line when it is done.
fn slow(name: &str, script: &str) -> Deb {
    let lines = format!(
        "case \"$1\" in configure|install|upgrade) ;; *) exit 0 ;; esac\n\
         echo begun >>/var/log/{name}.begun\nwhile [ ! -e {GATE} ]; do sleep 0.1; done\necho done >>/var/log/{name}.done"
    );
    Deb::new(name, "1.0").file(&format!("/usr/share/{name}/it"), "it\n", 0o644).script(script, &lines)
}

fn repository(pair: &Pair, packages: &[Deb]) {
    let repository = AptRepository::new(&pair.lab, Trust::Signed);
    packages.iter().for_each(|package| repository.add(package));
    pair.b.use_apt(&repository);
}

fn package(name: &str) -> String {
    format!("[[package]]\nname = \"{name}\"\nversion = \"present\"\n")
}

fn many_files() -> String {
    let files = (0..FILES).map(|at| format!("[[file]]\npath = \"{MANY}/{at:04}\"\ncontent = \"{at}\\n\"\n"));
    format!("[[directory]]\npath = \"{MANY}\"\n{}", files.collect::<String>())
}

/// A service that writes a line each time it starts.
fn service(needs: &str) -> String {
    let unit = "[Unit]\\nDescription=site\\n[Service]\\nExecStart=/bin/sh -c 'echo start >>/var/log/site.starts; exec sleep infinity'\\n[Install]\\nWantedBy=multi-user.target\\n";
    format!(
        "[[file]]\npath = \"{SERVICE}\"\ncontent = \"{unit}\"\n\
         [[unit]]\nname = \"site.service\"\nenabled = true\nrunning = true\nneeds = [\"file:{SERVICE}\", {needs}]\n"
    )
}

fn lines(pair: &Pair, log: &str) -> usize {
    pair.read(&format!("/var/log/{log}")).unwrap_or_default().lines().count()
}

fn wait_for_line(pair: &Pair, log: &str, count: usize) {
    wait::until_true(&format!("{log} has {count} lines"), Duration::from_secs(60), || {
        lines(pair, log) == count
    });
}

fn declare(pair: &Pair, module: &str) {
    pair.module(module);
    let _ = pair.declare(&[]).must();
}

/// Kills the host and waits for the next one.
fn kill_host(pair: &Pair) {
    let pid = pair.host_pid();
    pair.b.must(&["kill", "-KILL", &pid.to_string()]);
    pair.wait("systemd has started another host", |pair| {
        let now = pair.host_pid();
        now != 0 && now != pid && pair.b.run(&["systemctl", "is-active", "tenure-host"]).success()
    });
}

/// Nothing of an apply that was cut short is left, and dpkg is whole.
fn assert_nothing_is_left_over(pair: &Pair) {
    let left = pair.b.must(&[
        "find",
        "/srv",
        "/etc",
        "/usr/share",
        "/run/tenure-host",
        "-name",
        "*.tenure-*",
        "-o",
        "-name",
        "package-*.log",
    ]);
    assert_eq!(left, "", "left over");
    let units = ["systemctl", "list-units", "--all", "--plain", "--no-legend", "tenure-host-packages-*"];
    assert_eq!(pair.b.must(&units), "", "transient units");
    assert_eq!(pair.b.must(&["dpkg", "--audit"]), "");
    assert_eq!(pair.b.must(&["ls", "-A", "/var/lib/dpkg/updates"]), "");
}

/// All of it is applied, reported, and known for what it is.
fn assert_converged(pair: &Pair, revision: u64, created: &[&str]) {
    pair.wait("all of it is applied, and reported", |pair| {
        let node = pair.node();
        let open = ["failed", "outstanding"].map(|word| node[word].clone());
        node["revision"]["applied"] == revision && open == [0, 0] && !pair.session().is_null()
    });
    pair.wait("nothing waits to be told", |pair| pair.status()["spooled"] == 0);
    let owned = pair.owned();
    for key in created {
        assert_eq!(owned.get(*key).map(String::as_str), Some("created"), "{key}");
    }
    assert_nothing_is_left_over(pair);
}

fn all_of_it_leaves(pair: &Pair, packages: &[&str]) {
    pair.module("[[file]]\npath = \"/srv/stays\"\ncontent = \"stays\\n\"\n");
    let _ = pair.declare(&["--wait=50s", "--allow-removals", "1000"]).expect(0);
    assert!(!pair.b.has(MANY) && !pair.b.has(SERVICE), "what was made is gone");
    for name in packages {
        assert!(!pair.b.has(&format!("/usr/share/{name}/it")), "{name} is gone");
    }
    assert_ne!(pair.b.run(&["systemctl", "is-active", "site.service"]).stdout.trim(), "active");
    assert_eq!(pair.owned().into_keys().collect::<Vec<_>>(), ["file:/srv/stays"]);
    assert_nothing_is_left_over(pair);
}

// rule: H-09
// rule: H-24
// case: O-41
#[test]
fn a_host_killed_in_an_apply_goes_on_beside_its_transaction_and_does_nothing_twice() {
    let pair = Pair::raised_on("killed_host", Base::Bookworm);
    repository(&pair, &[slow("slow", "postinst")]);
    declare(&pair, &format!("{}{}{}", package("slow"), many_files(), service("\"package:slow\"")));

    // In the middle of a maintainer script, which goes on; the next host does meanwhile what does not need it.
    wait_for_line(&pair, "slow.begun", 1);
    kill_host(&pair);
    // In the middle of the files.
    pair.wait("some files are there", |pair| pair.b.has(&format!("{MANY}/0100")));
    kill_host(&pair);
    pair.wait("all files are there", |pair| pair.b.has(&format!("{MANY}/{:04}", FILES - 1)));
    let running = pair.wait_for_code("package:slow", "outstanding", "package_transaction_running");
    assert!(running.contains("tenure-host-packages-"), "{running}");
    pair.wait_for_code("unit:site.service", "outstanding", "needs_failed");
    assert_eq!(
        (lines(&pair, "slow.begun"), lines(&pair, "slow.done"), lines(&pair, "site.starts")),
        (1, 0, 0)
    );

    // Right after it has started a unit and before it can know whether that stays up.
    pair.b.write(GATE, "");
    wait_for_line(&pair, "site.starts", 1);
    kill_host(&pair);
    let created = ["package:slow", "directory:/srv/many", "file:/srv/many/0000", "file:/srv/many/0599"];
    assert_converged(&pair, 1, &created);
    assert_eq!(
        (lines(&pair, "slow.begun"), lines(&pair, "slow.done"), lines(&pair, "site.starts")),
        (1, 1, 1)
    );
    assert_eq!(pair.owned()["unit:site.service"], "changed");
    all_of_it_leaves(&pair, &["slow"]);
}

/// How a machine ends in the middle of an apply.
#[derive(Clone, Copy)]
enum End {
    PowerCut,
    Reboot,
}

fn end(pair: &Pair, end: End) {
    match end {
        End::PowerCut => {
            pair.b.kill();
            pair.b.boot();
        }
        End::Reboot => {
            let before = pair.b.boot_id();
            // apt asks not to be disturbed, and logind of systemd 257 refuses `systemctl reboot` meanwhile: this is what it
            // would ask for, and what a power button comes to.
            let _ = pair.b.run(&[
                "systemctl",
                "start",
                "--no-block",
                "--job-mode=replace-irreversibly",
                "reboot.target",
            ]);
            pair.b.wait_until_rebooted(&before);
        }
    }
}

/// Declares a package whose script is cut short by the machine's end. The next start finishes it: its script was begun
/// twice, and done once.
fn cut_short(pair: &Pair, module: &str, name: &str, how: End) {
    let [begun, done] = ["begun", "done"].map(|word| format!("{name}.{word}"));
    pair.b.must(&["rm", "-f", GATE]);
    declare(pair, module);
    wait_for_line(pair, &begun, 1);
    end(pair, how);
    // The machine is up while the script still waits.
    wait_for_line(pair, &begun, 2);
    pair.b.write(GATE, "");
    pair.wait_for_resource(&format!("package:{name}"));
    assert_eq!((lines(pair, &begun), lines(pair, &done)), (2, 1), "{name}");
}

fn machine_ends(base: Base) {
    let pair = Pair::raised_on("killed_machine", base);
    repository(&pair, &[slow("power", "postinst"), slow("reboot", "postinst"), slow("unpack", "preinst")]);
    let mut module = package("power") + &service("\"package:power\"");
    cut_short(&pair, &module, "power", End::PowerCut);
    assert_converged(&pair, 1, &["package:power", &format!("file:{SERVICE}")]);
    assert_eq!(lines(&pair, "site.starts"), 1);
    module += &package("reboot");
    cut_short(&pair, &module, "reboot", End::Reboot);
    module += &package("unpack");
    cut_short(&pair, &module, "unpack", End::PowerCut);

    module += &many_files();
    declare(&pair, &module);
    pair.wait("some files are there", |pair| pair.b.has(&format!("{MANY}/0100")));
    end(&pair, End::PowerCut);
    let last = format!("file:{MANY}/{:04}", FILES - 1);
    assert_converged(&pair, 4, &["package:power", "package:reboot", "package:unpack", &last]);
    // Once by us, and once at each boot since.
    assert_eq!(lines(&pair, "site.starts"), 4);
    all_of_it_leaves(&pair, &["power", "reboot", "unpack"]);
}

// rule: H-09
// rule: H-24
// case: O-11
#[test]
fn a_machine_switched_off_or_rebooted_in_an_apply_converges_and_does_nothing_twice_on_debian_12() {
    machine_ends(Base::Bookworm);
}

// rule: H-09
// rule: H-24
// case: O-11
#[test]
fn a_machine_switched_off_or_rebooted_in_an_apply_converges_and_does_nothing_twice_on_debian_13() {
    machine_ends(Base::Trixie);
}
