//! What would be changed, before it is: on the machine and for the fleet. A preview changes nothing, and what it said is
//! what is done.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tenure_tests::sandbox::{Sandbox, text};

const FIRST: &str = r#"
[[directory]]
path = "/srv/web"
[[file]]
path = "/srv/web/site.conf"
content = "port = 80\nhost = one\n"
[[file]]
path = "/srv/web/old.conf"
content = "old\n"
[[file]]
path = "/srv/web/key"
mode = "0600"
content = "hunter2\n"
"#;

const SECOND: &str = r#"
[[directory]]
path = "/srv/web"
[[file]]
path = "/srv/web/site.conf"
content = "port = 81\nhost = one\n"
[[file]]
path = "/srv/web/key"
mode = "0600"
content = "hunter3\n"
[[file]]
path = "/srv/web/new.conf"
content = "new\n"
"#;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::enrolled(&[]);
    std::fs::create_dir_all(sandbox.machine("/srv")).unwrap();
    sandbox
}

/// All of a tree but for when it was last read, and for the times of directories in which a copy lay for a moment.
fn snapshot(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(at) = left.pop() {
        let stat = at.symlink_metadata().unwrap();
        let standing = (stat.ino(), stat.mode(), stat.uid(), stat.gid());
        if stat.is_dir() {
            found.insert(at.clone(), format!("{standing:?}"));
            left.extend(std::fs::read_dir(&at).unwrap().map(|entry| entry.unwrap().path()));
        } else if stat.is_file() {
            let bytes = std::fs::read(&at).unwrap();
            found.insert(at, format!("{standing:?} {} {} {bytes:?}", stat.mtime(), stat.mtime_nsec()));
        } else {
            found.insert(at, format!("{standing:?}"));
        }
    }
    found
}

fn whats(lines: &Value) -> BTreeMap<String, String> {
    let lines = lines.as_array().unwrap();
    let words =
        |line: &Value| (line["key"].as_str().unwrap().to_owned(), line["what"].as_str().unwrap().to_owned());
    lines.iter().map(words).collect()
}

fn plan(sandbox: &Sandbox, more: &[&str]) -> tenure_tests::program::Ran {
    let folder = text(&sandbox.at("fleet"));
    let words: Vec<&str> = ["declare", &folder, "--plan"].into_iter().chain(more.iter().copied()).collect();
    sandbox.tenure(&words)
}

// rule: A-18
// rule: S-19
#[test]
fn a_plan_asks_the_node_what_it_would_do_and_that_is_what_it_does() {
    let sandbox = sandbox();
    sandbox.module(FIRST);
    sandbox.declare(&[]).expect(0);
    sandbox.module(SECOND);
    // Drift that the control plane cannot know of.
    sandbox.write("machine/srv/web/site.conf", "port = 80\nhost = drifted\n");
    let planned = plan(&sandbox, &["--json"]).expect(0);
    let json = planned.json();
    assert_eq!((&json["written"], &json["foreseen"][0]["node"]), (&Value::Bool(false), &"edge-1".into()));
    let foreseen = whats(&json["foreseen"][0]["lines"]);
    let expected = [
        ("directory:/srv/web", "keep"),
        ("file:/srv/web/key", "change"),
        ("file:/srv/web/new.conf", "change"),
        ("file:/srv/web/old.conf", "remove"),
    ];
    for (key, what) in expected {
        assert_eq!(foreseen.get(key).map(String::as_str), Some(what), "{planned:?}");
    }
    let words = plan(&sandbox, &[]).expect(0).out;
    assert!(words.contains("on edge-1, as it is now: "), "{words}");
    assert!(words.contains("+port = 81") && words.contains("keyed digest"), "{words}");
    assert!(!words.contains("hunter") && !planned.out.contains("hunter"), "{words}");
    assert_eq!(sandbox.node()["revision"]["declared"], 1, "nothing was declared");
    sandbox.declare(&[]).expect(0);
    let done = whats_came(&sandbox);
    assert_eq!(done["file:/srv/web/new.conf"], "applied");
    assert_eq!(sandbox.read("/srv/web/old.conf"), None);
    assert_eq!(sandbox.read("/srv/web/site.conf").unwrap(), "port = 81\nhost = one\n");
}

/// Every outcome that the node reported in the pass of the declaration, or since.
fn whats_came(sandbox: &Sandbox) -> BTreeMap<String, String> {
    let resources = sandbox.node()["resources"].as_array().cloned().unwrap_or_default();
    let word = |line: &Value| match line["outcome"].as_str().unwrap() {
        "unchanged" => "applied".to_owned(),
        other => other.to_owned(),
    };
    resources.iter().map(|line| (line["key"].as_str().unwrap().to_owned(), word(line))).collect()
}

#[test]
fn of_a_node_that_is_not_there_a_plan_says_that_nobody_can_know_and_since_when() {
    let mut sandbox = sandbox();
    sandbox.module(FIRST);
    sandbox.declare(&[]).expect(0);
    sandbox.kill_host();
    sandbox.wait("the session has ended", |sandbox| sandbox.node()["session"].is_null());
    sandbox.module(SECOND);
    let planned = plan(&sandbox, &["--json"]).expect(0).json();
    let why = &planned["foreseen"][0]["cannot_know"];
    assert_eq!(why["code"], "not_connected");
    assert!(why["happened"].as_str().unwrap().contains("was last heard at 20"), "{why}");
    let words = plan(&sandbox, &[]).expect(0).out;
    assert!(words.contains("on edge-1: cannot know: node edge-1 is not connected"), "{words}");
}

// rule: A-18
#[test]
fn a_preview_by_hand_changes_nothing_of_the_machine_nor_of_the_hosts_store() {
    let sandbox = Sandbox::empty();
    std::fs::create_dir_all(sandbox.machine("/srv/web")).unwrap();
    sandbox.write("machine/srv/web/site.conf", "port = 80\n");
    std::os::unix::fs::symlink("nowhere", sandbox.machine("/srv/web/link")).unwrap();
    let bundle = bundle(&sandbox, FIRST);
    let before = snapshot(&sandbox.at("machine"));
    let foreseen = sandbox.host(&["plan", &bundle, "--json"]).expect(0).json();
    assert_eq!(snapshot(&sandbox.at("machine")), before, "where no host has run yet");
    assert_eq!(whats(&foreseen["lines"])["file:/srv/web/site.conf"], "change");
    let done = sandbox.host(&["apply", &bundle, "--json"]).expect(0).json();
    assert_eq!(done["summary"]["counts"]["applied"], 3, "{done}");
    sandbox.write("machine/srv/web/site.conf", "drifted\n");
    let before = snapshot(&sandbox.at("machine"));
    let words = sandbox.host(&["plan"]).expect(0).out;
    assert_eq!(snapshot(&sandbox.at("machine")), before, "where it has a store");
    assert!(words.contains("-drifted") && words.contains("+port = 80"), "{words}");
    assert!(words.ends_with("1 change, 3 keep, 0 cannot know; nothing was changed\n"), "{words}");
}

// rule: H-23
#[test]
fn a_bundle_that_would_drop_too_much_is_foreseen_as_refused_whole() {
    let sandbox = Sandbox::empty();
    std::fs::create_dir_all(sandbox.machine("/srv")).unwrap();
    let first = bundle(&sandbox, FIRST);
    sandbox.host(&["apply", &first]).expect(0);
    let declaration = sandbox.at("bundle/declaration.json");
    let mut json: Value = serde_json::from_slice(&std::fs::read(&declaration).unwrap()).unwrap();
    json["revision"] = 2.into();
    json["resources"] = Value::Array(json["resources"].as_array().unwrap()[..1].to_vec());
    std::fs::write(&declaration, serde_json::to_vec(&json).unwrap()).unwrap();
    let foreseen = sandbox.host(&["plan", &first, "--json"]).expect(0).json();
    assert_eq!(foreseen["refused"]["code"], "too_many_removals", "{foreseen}");
    assert!(whats(&foreseen["lines"]).values().any(|what| what == "remove"), "{foreseen}");
    let words = sandbox.host(&["plan", &first]).expect(0).out;
    assert!(words.contains("refused whole") && words.contains("--allow-removals"), "{words}");
    sandbox.host(&["apply", &first]).expect(3);
}

/// A bundle of these resources for `edge-1`, rendered by a control plane that then goes.
fn bundle(sandbox: &Sandbox, module: &str) -> String {
    let mut other = Sandbox::empty();
    other.start_control();
    other.invite("edge-1", &[]);
    other.module(module);
    let (folder, out) = (text(&other.at("fleet")), text(&sandbox.at("bundle")));
    other.tenure(&["render", &folder, "--node", "edge-1", "--out", &out]).expect(0);
    out
}

const FAILS: &str = r#"
[[directory]]
path = "/srv"
[[file]]
path = "/srv/good"
content = "good\n"
[[file]]
path = "/srv/nowhere/bad"
content = "bad\n"
[[file]]
path = "/srv/follows"
content = "follows\n"
needs = ["file:/srv/nowhere/bad"]
"#;

// rule: H-10
#[test]
fn a_failure_stops_only_what_needs_it_and_is_shown_with_since_when_and_how_often_while_the_log_says_it_once()
{
    let sandbox = Sandbox::enrolled(&[]);
    std::fs::create_dir_all(sandbox.machine("/srv")).unwrap();
    sandbox.module(FAILS);
    sandbox.declare(&[]).expect(4);
    assert_eq!(sandbox.read("/srv/good").unwrap(), "good\n");
    assert_eq!(sandbox.read("/srv/follows"), None);
    let bad = || sandbox.resource("file:/srv/nowhere/bad");
    let first = bad();
    assert_eq!((&first["outcome"], &first["code"]), (&"failed".into(), &"parent_missing".into()));
    assert_eq!(sandbox.resource("file:/srv/follows")["code"], "needs_failed");
    sandbox.wait("it failed in four passes", |_| bad()["count"].as_u64() >= Some(4));
    assert_eq!(bad()["since"], first["since"], "since the first failure");
    let words = sandbox.tenure(&["node", "edge-1"]).expect(0).out;
    assert!(words.contains(" passes") && words.contains("/srv/nowhere does not exist"), "{words}");
    let status = sandbox.host(&["status", "--json"]).expect(0).json();
    let named = status["not_as_declared"].as_array().unwrap();
    assert_eq!(named.len(), 2, "{status}");
    assert!(named.iter().all(|line| line["since"] == first["since"]), "{status}");
    let words = sandbox.host(&["status"]).expect(0).out;
    assert!(words.contains("not as declared") && words.contains("/srv/nowhere does not exist"), "{words}");
    let log = std::fs::read_to_string(sandbox.at("host.log")).unwrap();
    assert_eq!(log.matches("failure began").count(), 1, "{log}");
    assert_one_line_a_pass(&log);
    // The same with nothing wrong.
    sandbox.write("machine/srv/nowhere/other", "");
    sandbox.wait("it was made", |_| bad()["outcome"] == "unchanged");
    let before = std::fs::read_to_string(sandbox.at("host.log")).unwrap().lines().count();
    sandbox.wait("three more passes", |sandbox| {
        let log = std::fs::read_to_string(sandbox.at("host.log")).unwrap();
        log.lines().skip(before).filter(|line| line.contains("reconciled")).count() >= 3
    });
    let log = std::fs::read_to_string(sandbox.at("host.log")).unwrap();
    let quiet: Vec<&str> = log.lines().skip(before).collect();
    assert!(
        quiet.iter().all(|line| line.contains("reconciled") && line.contains("unchanged=4")),
        "{quiet:#?}"
    );
}

/// From the third pass of the timer on there is one line a pass, and nothing beside it.
fn assert_one_line_a_pass(log: &str) {
    let is_timer = |line: &&str| line.contains("reconciled") && line.contains("timer");
    let timers = log.lines().filter(is_timer).count();
    let after_the_first = log.lines().skip_while(|line| !is_timer(line)).skip(1);
    let lines: Vec<&str> = after_the_first.collect();
    assert!(timers >= 3 && lines.iter().all(|line| line.contains("reconciled")), "{log}");
}
