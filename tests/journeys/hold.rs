//! A folder is declared, applied, read back, reported and held.

use std::os::unix::fs::PermissionsExt as _;

use tenure_tests::sandbox::Sandbox;

const MODULE: &str = r#"
[settings]
greeting = "hello"
[[directory]]
path = "/srv"
[[directory]]
path = "/srv/web"
mode = "0750"
[[file]]
path = "/srv/web/index.html"
template = "index.html"
[[file]]
path = "/srv/web/plain.txt"
mode = "0600"
content = "plain\n"
"#;

fn declared() -> Sandbox {
    let sandbox = Sandbox::enrolled(&[]);
    sandbox.module(MODULE);
    sandbox.write("fleet/modules/web/index.html", "<p>{{ greeting }} from {{ node }}</p>\n");
    sandbox.declare(&[]).expect(0);
    sandbox
}

#[test]
fn a_declared_folder_is_on_the_machine_and_each_resource_is_shown() {
    let sandbox = declared();
    assert_eq!(sandbox.read("/srv/web/index.html").unwrap(), "<p>hello from edge-1</p>\n");
    let mode = |path| sandbox.machine(path).metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode("/srv/web"), 0o750);
    assert_eq!(mode("/srv/web/plain.txt"), 0o600);

    let node = sandbox.node();
    let resources = node["resources"].as_array().unwrap();
    assert_eq!(resources.len(), 4, "{node}");
    assert!(resources.iter().all(|r| r["outcome"] == "applied" || r["outcome"] == "unchanged"), "{node}");
    assert_eq!(node["revision"]["declared"], 1);
    assert_eq!(node["revision"]["applied"], 1);
    assert_eq!(sandbox.standing(), "applied");
}

#[test]
fn a_setting_of_a_group_reaches_a_template_and_a_nodes_own_value_wins() {
    let sandbox = declared();
    let group = "[group.front]\nmodules = [\"web\"]\nsettings = { web = { greeting = \"group\" } }\n";
    sandbox.write("fleet/fleet.toml", format!("{group}[node.\"edge-1\"]\ngroups = [\"front\"]\n"));
    sandbox.declare(&[]).expect(0);
    assert!(sandbox.read("/srv/web/index.html").unwrap().contains("group from"));
    let own = "settings = { web = { greeting = \"own\" } }\n";
    sandbox.write("fleet/fleet.toml", format!("{group}[node.\"edge-1\"]\ngroups = [\"front\"]\n{own}"));
    sandbox.declare(&[]).expect(0);
    assert!(sandbox.read("/srv/web/index.html").unwrap().contains("own from"));
}

#[test]
fn a_plan_shows_what_would_change_and_changes_nothing() {
    let sandbox = declared();
    sandbox.module(&MODULE.replace("plain\\n", "wholly other\\n").replace("\"hello\"", "\"hi\""));
    let folder = sandbox.at("fleet").display().to_string();
    let plan = sandbox.tenure(&["declare", &folder, "--plan"]).expect(0);
    assert!(plan.out.contains("/srv/web/index.html") && plan.out.contains("+<p>hi from"), "{}", plan.out);
    assert!(
        plan.out.contains("/srv/web/plain.txt") && !plan.out.contains("wholly other"),
        "closed content is not shown: {}",
        plan.out
    );
    assert_eq!(sandbox.node()["revision"]["declared"], 1);
    assert_eq!(sandbox.read("/srv/web/plain.txt").unwrap(), "plain\n");
}

#[test]
fn declaring_the_same_folder_again_makes_no_new_revision() {
    let sandbox = declared();
    sandbox.declare(&[]).expect(0);
    assert_eq!(sandbox.node()["revision"]["declared"], 1);
}

// rule: H-07
// rule: H-21
#[test]
fn a_file_changed_by_hand_is_repaired_by_the_timer_and_reported_as_drift() {
    let sandbox = declared();
    std::fs::write(sandbox.machine("/srv/web/index.html"), "somebody was here").unwrap();
    sandbox.wait("the file is repaired", |s| s.read("/srv/web/index.html").unwrap().starts_with("<p>hello"));
    sandbox.wait("the drift is told", |s| {
        s.events().iter().any(|e| {
            e["kind"] == "drift_repaired" && e["key"] == "file:/srv/web/index.html" && e["node"] == "edge-1"
        })
    });
}

// rule: H-10
#[test]
fn a_quiet_pass_writes_one_line_and_a_quiet_fleet_no_event() {
    let sandbox = declared();
    let passes =
        |s: &Sandbox| s.host(&["status", "--json"]).expect(0).json()["last"]["pass"].as_u64().unwrap_or(0);
    let said = |s: &Sandbox| s.host.as_ref().unwrap().said();
    // Asking starts a program, and passes end meanwhile: their lines come before those that are counted.
    let before = passes(&sandbox);
    let lines = said(&sandbox).lines().count();
    let events = sandbox.events().len();
    sandbox.wait("three more passes are done", |s| passes(s) >= before + 3);
    let log = said(&sandbox);
    let passes_since = usize::try_from(passes(&sandbox) - before).unwrap();
    let since: Vec<&str> = log.lines().skip(lines).collect();
    assert!(
        since.iter().all(|line| line.contains("reconciled") && line.contains("unchanged=")),
        "{since:#?}"
    );
    // One that ended between two of these looks may be counted by one of them only.
    assert!(since.len() <= passes_since + 1, "one line a pass: {passes_since} passes, {since:#?}");
    assert_eq!(sandbox.events().len(), events);
}

#[test]
fn a_bundle_is_rendered_and_holds_the_declaration_and_its_contents() {
    let sandbox = declared();
    let (folder, out) =
        (sandbox.at("fleet").display().to_string(), sandbox.at("bundle").display().to_string());
    sandbox.tenure(&["render", &folder, "--node", "edge-1", "--out", &out]).expect(0);
    let declaration = std::fs::read(sandbox.at("bundle/declaration.json")).unwrap();
    let parsed = tenure_protocol::declaration::Declaration::parse(&declaration).unwrap();
    for content in parsed.contents() {
        let blob = std::fs::read(sandbox.at("bundle/blobs/sha256").join(content.sha256.to_string())).unwrap();
        assert_eq!(tenure_protocol::id::Digest::of(&blob), content.sha256);
    }
    let refused = sandbox.host(&["apply", &out]).expect(3);
    assert!(refused.err.contains("edge-1") || refused.err.contains("enrolled"), "{}", refused.err);
}
