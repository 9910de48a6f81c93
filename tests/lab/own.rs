//! The host never manages itself (H-02): whatever way a declaration takes to its unit, binary, state or package on a real
//! machine, that resource is refused by name, the rest applies, and the host runs on as the same process.

use tenure_tests::lab::{AptRepository, Base, Deb, Pair, Trust};

const UNIT: &str = "/usr/lib/systemd/system/tenure-host.service";
const PLACES: [&str; 3] = [UNIT, "/usr/bin/tenure-host", "/etc/tenure/host.toml"];

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
    repository.add(&Deb::new("brought-it", "1.0").unit("tenure-host.service", &unit));
    pair.b.use_apt(&repository);
    pair.b.must(&["apt-get", "install", "-y", "-q", "tenure-host", "brought-it"]);
    let _ = pair
        .b
        .sh(
            "ln -s /usr/lib/systemd/system/tenure-host.service /etc/systemd/system/guard.service && \
             mkdir /etc/systemd/system/tenure-host.service.d && \
             ln -s /etc/systemd/system/tenure-host.service.d /srv/more && ln -s /var/lib/tenure-host /srv/state && \
             ln -s /usr/bin /srv/programs && ln /usr/bin/tenure-host /srv/second-name && systemctl daemon-reload",
        )
        .must();
}

fn fingerprint(pair: &Pair) -> String {
    let mut command = vec!["sha256sum"];
    command.extend(PLACES);
    command.push("/srv/second-name");
    pair.b.must(&command)
}

// rule: H-02
#[test]
fn whatever_way_a_declaration_takes_to_the_host_it_is_refused_and_the_host_runs_on() {
    let pair = Pair::raised_on("own", Base::Bookworm);
    lay_ways(&pair);
    let (pid, before) = (pair.host_pid(), fingerprint(&pair));

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

    let ways = [
        (
            "unit:guard.service",
            "own_unit",
            "[[unit]]\nname = \"guard.service\"\nenabled = false\nrunning = false\n".to_owned(),
        ),
        ("file:/srv/more/10-more.conf", "own_file", file("/srv/more/10-more.conf")),
        ("file:/srv/state/store.db", "own_file", gone("file", "/srv/state/store.db")),
        (
            "directory:/srv/state/content",
            "own_file",
            "[[directory]]\npath = \"/srv/state/content\"\n".to_owned(),
        ),
        ("file:/srv/programs/tenure-host", "own_file", file("/srv/programs/tenure-host")),
        ("file:/srv/second-name", "own_file", file("/srv/second-name")),
        ("directory:/usr/lib/systemd", "own_file", gone("directory", "/usr/lib/systemd")),
        ("package:brought-it", "transaction_refused", package("brought-it", "absent = true")),
        ("package:usurper", "transaction_refused", package("usurper", PRESENT)),
    ];
    let rest = format!("{}{}", file("/srv/rest.txt"), package("tenure-host", PRESENT));
    pair.module(
        &ways.iter().map(|(_, _, module)| module.as_str()).chain([rest.as_str()]).collect::<String>(),
    );
    let _ = pair.declare(&[]).must();
    for (key, code, _) in &ways {
        let why = pair.wait_for_code(key, "refused", code);
        assert!(!why.is_empty(), "{key}");
    }
    assert!(pair.resource("package:usurper")["reason"].as_str().unwrap().contains("remove the host itself"));
    assert!(pair.resource("package:brought-it")["reason"].as_str().unwrap().contains(UNIT));
    assert!(pair.resource("unit:guard.service")["reason"].as_str().unwrap().contains("tenure-host.service"));
    pair.wait_for_resource("file:/srv/rest.txt");
    pair.wait_for_resource("package:tenure-host");
    assert_eq!(pair.host_pid(), pid);
    assert_eq!(fingerprint(&pair), before);

    // Leaving the declaration takes nothing of the host with it either.
    pair.module(&file("/srv/rest.txt"));
    let _ = pair.declare(&["--wait=50s", "--allow-removals", "20"]).expect(0);
    assert_eq!(pair.b.must(&["dpkg-query", "-W", "-f", "${db:Status-Status}", "tenure-host"]), "installed");
    assert_eq!((pair.host_pid(), fingerprint(&pair)), (pid, before));
    assert_eq!(pair.b.must(&["systemctl", "is-enabled", "tenure-host"]), "enabled");
}
