//! Previews on machines with a real package manager and service manager: every line is what the pass then does, the
//! transaction is the one that runs, and looking leaves the machine as it was.

use std::collections::BTreeMap;

use serde_json::Value;
use tenure_tests::lab::{AptRepository, Base, Deb, Pair, Trust};

/// What the host writes by living, beside what it is told: its beats, and the copy it looks into.
const BY_LIVING: &[&str] = &["file /var/lib/tenure-host", "file /run"];

fn module(port: u16) -> String {
    format!(
        r#"
[[package]]
name = "app"
version = "present"
[[package]]
name = "clash"
version = "present"
[[package]]
name = "nowhere"
version = "present"
[[file]]
path = "/etc/app.conf"
content = "port = {port}\n"
[[file]]
path = "/etc/app.key"
mode = "0600"
content = "hunter2\n"
[[file]]
path = "/usr/share/app/extra"
content = "extra\n"
[[file]]
path = "/etc/systemd/system/own.service"
content = """
[Service]
ExecStart=sleep infinity
[Install]
WantedBy=multi-user.target
"""
[[unit]]
name = "own.service"
enabled = true
running = true
restart_on = ["file:/etc/app.conf"]
[[unit]]
name = "app.service"
enabled = true
running = true
"#
    )
}

fn lines(foreseen: &Value) -> BTreeMap<String, Value> {
    let lines = foreseen["lines"].as_array().unwrap_or_else(|| panic!("{foreseen}"));
    lines.iter().map(|line| (line["key"].as_str().unwrap_or_default().to_owned(), line.clone())).collect()
}

fn planned(pair: &Pair) -> Value {
    let json = pair.declare(&["--plan", "--json"]).expect(0).json();
    json["foreseen"][0].clone()
}

fn previewed(base: Base) {
    let pair = Pair::raised_on("resources", base);
    let repository = AptRepository::new(&pair.lab, Trust::Signed);
    let unit = "[Service]\nExecStart=sleep infinity\n[Install]\nWantedBy=multi-user.target\n";
    repository.add(&Deb::new("app", "1.0").field("Depends", "app-data").unit("app.service", unit));
    repository.add(&Deb::new("app-data", "2.0").file("/usr/share/app/data", "data\n", 0o644));
    repository.add(&Deb::new("theirs", "1.0").file("/usr/share/theirs/it", "it\n", 0o644));
    repository.add(&Deb::new("clash", "1.0").field("Conflicts", "theirs"));
    pair.b.use_apt(&repository);
    pair.b.must(&["apt-get", "install", "-y", "theirs"]);
    pair.module(&module(80));
    let before = pair.b.snapshot().without(BY_LIVING);
    let foreseen = lines(&planned(&pair));
    pair.b.snapshot().without(BY_LIVING).assert_unchanged_since(&before);
    let what = |key: &str| foreseen[key]["what"].as_str().unwrap_or_default().to_owned();
    assert_eq!(what("package:app"), "change", "{foreseen:#?}");
    assert_eq!(what("package:clash"), "refuse", "{foreseen:#?}");
    assert!(foreseen["package:clash"]["detail"].to_string().contains("it would also remove theirs"));
    assert_eq!(what("package:nowhere"), "cannot_know", "{foreseen:#?}");
    let moves = foreseen["package:app"]["packages"].to_string();
    assert!(moves.contains(r#""name":"app-data""#) && moves.contains(r#""to":"2.0""#), "{moves}");
    assert_eq!(what("file:/usr/share/app/extra"), "cannot_know", "its directory comes with the package");
    assert_eq!(what("unit:app.service"), "cannot_know", "the unit comes with the package");
    assert_eq!(what("unit:own.service"), "change", "the unit comes with its file");
    assert!(!format!("{foreseen:?}").contains("hunter2"));
    let _ = pair.declare(&["--wait=60s"]);
    pair.wait_for_resource("unit:app.service");
    for (key, line) in &foreseen {
        let came = pair.resource(key);
        let as_foreseen = match line["what"].as_str().unwrap_or_default() {
            "change" => ["applied", "unchanged"].contains(&came["outcome"].as_str().unwrap_or_default()),
            "refuse" => came["outcome"] == "refused",
            "keep" => came["outcome"] == "unchanged",
            _ => true,
        };
        assert!(as_foreseen || came["reason"].is_string(), "{line:#} became {came:#}");
    }
    assert_eq!(pair.resource("package:nowhere")["outcome"], "failed");
    by_hand(&pair);
}

/// What somebody changed is foreseen on the machine too, with the restart that follows.
fn by_hand(pair: &Pair) {
    pair.module(&module(81));
    let foreseen = lines(&planned(pair));
    let detail = foreseen["unit:own.service"]["detail"].to_string();
    assert!(detail.contains("it would be restarted, since file:/etc/app.conf would be changed"), "{detail}");
    assert!(foreseen["file:/etc/app.conf"]["detail"].to_string().contains("+port = 81"), "{foreseen:#?}");
    // Whatever changes from here on was changed by looking; the host's own store is among it.
    pair.b.must(&["systemctl", "stop", "tenure-host", "app.service"]);
    // It looks into a copy, which comes and goes in its own folder.
    let look = || pair.b.snapshot().without(&["file /var/lib/tenure-host/plan-"]);
    let before = look();
    let said = pair.b.must(&["tenure-host", "plan", "--json"]);
    look().assert_unchanged_since(&before);
    let foreseen = lines(&serde_json::from_str(&said).unwrap_or_default());
    let detail = foreseen["unit:app.service"]["detail"].to_string();
    assert!(detail.contains("it does not run") && detail.contains("it would be started"), "{detail}");
}

// rule: A-18
// rule: H-25
// rule: S-19
#[test]
fn resources_are_foreseen_on_debian_12_as_they_then_come_and_looking_changes_nothing() {
    previewed(Base::Bookworm);
}

// rule: A-18
// rule: H-25
#[test]
fn resources_are_foreseen_on_debian_13_as_they_then_come_and_looking_changes_nothing() {
    previewed(Base::Trixie);
}
