//! The host never manages itself (H-02): whatever way a declaration takes to its unit, binary, state or package on a real
//! machine, that resource is refused by name, the rest applies, and the host runs on as the same process.

use tenure_tests::lab::{AptRepository, Base, Deb, Pair, Snapshot, Trust};

const UNIT: &str = "/usr/lib/systemd/system/tenure-host.service";

/// All that is the host's own and does not change while it lives, its very run among it.
const OWN: [&str; 8] = [
    "file /usr/bin/tenure-host",
    "file /usr/lib/tenure-host",
    "file /usr/lib/systemd/system/tenure-host",
    "file /etc/tenure",
    "file /etc/needrestart",
    "file /etc/systemd/system/tenure-host",
    "file /etc/systemd/system/guard",
    "unit tenure-host.service",
];

fn file(path: &str) -> String {
    format!("[[file]]\npath = \"{path}\"\ncontent = \"ours\\n\"\n")
}

fn gone(kind: &str, path: &str) -> String {
    format!("[[{kind}]]\npath = \"{path}\"\nabsent = true\n")
}

fn package(name: &str, how: &str) -> String {
    format!("[[package]]\nname = \"{name}\"\n{how}\n")
}

const PRESENT: &str = "version = \"present\"";

/// Ways to the host that only the machine itself can see through.
fn lay_ways(pair: &Pair) {
    let unit = String::from_utf8(pair.b.read(UNIT)).unwrap();
    let repository = AptRepository::new(&pair.lab, Trust::Signed);
    repository.add(&Deb::new("tenure-host", "0.1"));
    repository
        .add(&Deb::new("usurper", "1.0").field("Conflicts", "tenure-host").field("Replaces", "tenure-host"));
    for version in ["1.0", "2.0"] {
        repository.add(&Deb::new("brought-it", version).unit("tenure-host.service", &unit));
    }
    pair.b.use_apt(&repository);
    pair.b.must(&["apt-get", "install", "-y", "-q", "tenure-host", "brought-it=1.0"]);
    let _ = pair
        .b
        .sh(
            "ln -s /usr/lib/systemd/system/tenure-host.service /etc/systemd/system/guard.service && \
             mkdir /etc/systemd/system/tenure-host.service.d && \
             ln -s /etc/systemd/system/tenure-host.service.d /srv/more && ln -s /var/lib/tenure-host /srv/state && \
             ln -s /usr/bin /srv/programs && ln /usr/bin/tenure-host /srv/second-name && \
             ln /etc/tenure/host.toml /srv/second-toml && ln -s /usr/bin/tenure-host /srv/way && \
             mkdir -p /var/lib/tenure-host/kept /mnt/units /mnt/inside /mnt/var && \
             mount --bind /etc/systemd/system /mnt/units && mount --bind /var/lib/tenure-host/kept /mnt/inside && \
             mount --bind /var /mnt/var && systemctl daemon-reload",
        )
        .must();
}

fn own(pair: &Pair) -> Snapshot {
    pair.b.snapshot().only(&OWN)
}

/// Each with the code it is refused with, and what is declared.
fn ways() -> Vec<(&'static str, &'static str, String)> {
    let folder = |path: &str| format!("[[directory]]\npath = \"{path}\"\n");
    let once = |path: &str, word: &str| format!("{}{word} = true\n", file(path));
    vec![
        (
            "unit:guard.service",
            "own_unit",
            "[[unit]]\nname = \"guard.service\"\nenabled = false\nrunning = false\n".to_owned(),
        ),
        (
            "unit:tenure-host-packages-1.service",
            "own_unit",
            "[[unit]]\nname = \"tenure-host-packages-1.service\"\nmasked = true\n".to_owned(),
        ),
        // What its unit cannot be without: systemd would stop it with that.
        (
            "unit:sysinit.target",
            "own_unit",
            "[[unit]]\nname = \"sysinit.target\"\nrunning = false\n".to_owned(),
        ),
        (
            "unit:shutdown.target",
            "own_unit",
            "[[unit]]\nname = \"shutdown.target\"\nrunning = true\n".to_owned(),
        ),
        ("file:/srv/more/10-more.conf", "own_file", file("/srv/more/10-more.conf")),
        ("file:/srv/state/store.db", "own_file", gone("file", "/srv/state/store.db")),
        ("directory:/srv/state/content", "own_file", folder("/srv/state/content")),
        ("file:/srv/programs/tenure-host", "own_file", file("/srv/programs/tenure-host")),
        ("file:/srv/second-name", "own_file", file("/srv/second-name")),
        ("file:/srv/second-toml", "own_file", once("/srv/second-toml", "create_once")),
        ("file:/srv/way", "own_file", once("/srv/way", "replace_link")),
        ("directory:/usr/lib/systemd", "own_file", gone("directory", "/usr/lib/systemd")),
        (
            "directory:/usr/local/lib/systemd",
            "own_file",
            format!("{}mode = \"0777\"\n", folder("/usr/local/lib/systemd")),
        ),
        // What systemd reads with the host's unit by its other name, and what that name is.
        (
            "file:/etc/systemd/system/guard.service",
            "own_file",
            once("/etc/systemd/system/guard.service", "replace_link"),
        ),
        (
            "file:/run/systemd/system/guard.service.d/x.conf",
            "own_file",
            file("/run/systemd/system/guard.service.d/x.conf"),
        ),
        (
            "file:/run/systemd/system/tenure-host-.service.d/x.conf",
            "own_file",
            file("/run/systemd/system/tenure-host-.service.d/x.conf"),
        ),
        (
            "file:/etc/systemd/system/tenure-host-packages-.service.d/x.conf",
            "own_file",
            file("/etc/systemd/system/tenure-host-packages-.service.d/x.conf"),
        ),
        // What is mounted once more: above the host's own, and inside it.
        ("file:/mnt/units/guard.service.d/x.conf", "own_file", file("/mnt/units/guard.service.d/x.conf")),
        (
            "directory:/mnt/units/tenure-host-packages-.service.d",
            "own_file",
            folder("/mnt/units/tenure-host-packages-.service.d"),
        ),
        ("file:/mnt/inside/new", "own_file", file("/mnt/inside/new")),
        ("file:/mnt/var/lib/tenure-host/new", "own_file", file("/mnt/var/lib/tenure-host/new")),
        ("package:usurper", "transaction_refused", package("usurper", PRESENT)),
    ]
}

// rule: H-02
#[test]
fn whatever_way_a_declaration_takes_to_the_host_it_is_refused_and_the_host_runs_on() {
    let pair = Pair::raised_on("own", Base::Bookworm);
    lay_ways(&pair);
    let (pid, before) = (pair.host_pid(), own(&pair));

    // Straight ways are not even declared.
    for (module, code) in [
        (file("/etc/systemd/system/tenure-host.service.d/10-more.conf"), "own_path"),
        ("[[unit]]\nname = \"tenure-host.service\"\nrunning = false\n".to_owned(), "own_unit"),
        (package("tenure-host", "absent = true"), "own_package"),
    ] {
        pair.module(&module);
        let refused = pair.declare(&[]).expect(3);
        assert!(refused.stderr.contains(code), "{refused}");
    }
    assert_eq!(pair.node()["revision"]["declared"], serde_json::Value::Null);

    let ways = ways();
    let rest = |brought: &str| {
        [file("/srv/rest.txt"), package("tenure-host", PRESENT), package("brought-it", brought)].concat()
    };
    let declared = |brought: &str| {
        let all = ways.iter().map(|(_, _, module)| module.as_str()).collect::<String>();
        format!("{all}{}", rest(brought))
    };
    pair.module(&declared("absent = true"));
    let _ = pair.declare(&[]).must();
    for (key, code, _) in &ways {
        let why = pair.wait_for_code(key, "refused", code);
        assert!(!why.is_empty(), "{key}");
    }
    assert!(pair.resource("package:usurper")["reason"].as_str().unwrap().contains("remove the host itself"));
    let why = pair.wait_for_code("package:brought-it", "refused", "transaction_refused");
    assert!(why.contains(UNIT), "{why}");
    assert!(pair.resource("unit:guard.service")["reason"].as_str().unwrap().contains("tenure-host.service"));
    pair.wait_for_resource("file:/srv/rest.txt");
    pair.wait_for_resource("package:tenure-host");
    // A newer one would put its own in the place of the host's.
    pair.module(&declared("version = \"2.0\""));
    let _ = pair.declare(&["--wait=50s"]);
    pair.wait_for_applied(2);
    let why = pair.wait_for_code("package:brought-it", "refused", "transaction_refused");
    assert!(why.contains(UNIT), "{why}");
    assert_eq!(pair.b.must(&["dpkg-query", "-W", "-f", "${Version}", "brought-it"]), "1.0");
    assert_eq!(pair.host_pid(), pid);
    own(&pair).assert_unchanged_since(&before);

    // Leaving the declaration takes nothing of the host with it either.
    pair.module(&file("/srv/rest.txt"));
    let _ = pair.declare(&["--wait=50s", "--allow-removals", "40"]).expect(0);
    assert_eq!(pair.b.must(&["dpkg-query", "-W", "-f", "${db:Status-Status}", "tenure-host"]), "installed");
    assert_eq!(pair.host_pid(), pid);
    own(&pair).assert_unchanged_since(&before);
    assert_eq!(pair.b.must(&["systemctl", "is-enabled", "tenure-host"]), "enabled");
}
