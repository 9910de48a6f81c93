//! What leaves the declaration goes or stays by how it began, and a neighbour is not touched (H-24, H-23).

use tenure_tests::sandbox::Sandbox;

const BOTH: &str = r#"
[[directory]]
path = "/srv"
[[directory]]
path = "/srv/web"
[[file]]
path = "/srv/web/made.txt"
content = "made\n"
[[file]]
path = "/srv/web/found.txt"
content = "wanted\n"
[[file]]
path = "/srv/web/same.txt"
content = "same\n"
"#;

// rule: H-24
// case: O-08
#[test]
fn what_we_created_goes_what_was_there_stays_and_a_neighbour_is_not_touched() {
    let sandbox = Sandbox::enrolled(&[]);
    sandbox.write("machine/srv/web/found.txt", "found\n");
    sandbox.write("machine/srv/web/same.txt", "same\n");
    sandbox.write("machine/srv/web/neighbour.txt", "mine\n");
    sandbox.module(BOTH);
    sandbox.declare(&[]).expect(0);
    assert_eq!(sandbox.read("/srv/web/found.txt").unwrap(), "wanted\n");

    sandbox.module("[[directory]]\npath = \"/srv\"\n");
    sandbox.declare(&["--allow-removals", "4"]).expect(0);
    sandbox.wait("what we made is gone", |s| s.read("/srv/web/made.txt").is_none());
    assert_eq!(sandbox.read("/srv/web/found.txt").unwrap(), "wanted\n");
    assert_eq!(sandbox.read("/srv/web/same.txt").unwrap(), "same\n");
    assert_eq!(sandbox.read("/srv/web/neighbour.txt").unwrap(), "mine\n");
    sandbox.wait("each is told", |s| {
        let events = s.events();
        let told = |kind: &str, key: &str| events.iter().any(|e| e["kind"] == kind && e["key"] == key);
        told("removed", "file:/srv/web/made.txt")
            && told("released", "file:/srv/web/found.txt")
            && told("released", "file:/srv/web/same.txt")
            && told("released", "directory:/srv/web")
    });
    let owned = sandbox.host(&["owned", "--json"]).expect(0).json();
    assert_eq!(owned.as_array().map(Vec::len), Some(1), "{owned}");
}

// rule: H-23
// case: O-65
#[test]
fn a_declaration_that_loses_too_much_is_refused_with_the_word_to_type_and_nothing_is_lost() {
    let sandbox = Sandbox::enrolled(&[]);
    sandbox.module(BOTH);
    sandbox.declare(&[]).expect(0);
    sandbox.module("[[directory]]\npath = \"/srv\"\n");
    let refused = sandbox.declare(&[]).expect(3);
    assert!(refused.err.contains("--allow-removals 4"), "{}", refused.err);
    sandbox.write("fleet/fleet.toml", "[node.\"edge-1\"]\nmodules = []\n");
    sandbox.declare(&[]).expect(3);
    sandbox.declare(&["--allow-removals", "4"]).expect(3);
    assert_eq!(sandbox.node()["revision"]["declared"], 1);
    assert_eq!(sandbox.read("/srv/web/made.txt").unwrap(), "made\n");
    sandbox.declare(&["--allow-removals", "5"]).expect(0);
    assert_eq!(sandbox.read("/srv/web/made.txt"), None);
}

#[test]
fn a_file_declared_absent_is_gone_even_when_it_was_there_before_us() {
    let sandbox = Sandbox::enrolled(&[]);
    sandbox.write("machine/srv/old.conf", "old\n");
    sandbox.module("[[file]]\npath = \"/srv/old.conf\"\nabsent = true\n");
    sandbox.declare(&[]).expect(0);
    assert_eq!(sandbox.read("/srv/old.conf"), None);
}
