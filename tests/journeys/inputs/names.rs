//! Names that are not known, are mistyped among good ones, or are not there any more: nothing is done for any node, and
//! scripts can tell what it was (O-68).

use serde_json::Value;
use tenure_tests::sandbox::{Sandbox, text};

use super::assert_refused;

const MODULE: &str = "[[file]]\npath = \"/a.txt\"\ncontent = \"a\\n\"\n";

// case: O-68
#[test]
fn one_typo_among_good_names_does_nothing_for_any_of_them_and_each_is_named_with_what_was_meant() {
    let sandbox = Sandbox::enrolled(&[]);
    sandbox.invite("edge-2", &[]);
    sandbox.module(MODULE);
    let node = |name: &str| format!("[node.\"{name}\"]\nmodules = [\"web\"]\n");
    let fleet = text(&sandbox.at("fleet"));
    sandbox.write("fleet/fleet.toml", ["edge-1", "egde-2", "nothing-like-it"].map(node).concat());
    for more in [&["--json"][..], &["--json", "--plan"], &["--json", "--wait=1s"]] {
        let arguments: Vec<&str> = ["declare", &fleet].into_iter().chain(more.iter().copied()).collect();
        let ran = sandbox.tenure(&arguments);
        let words = ["fleet.toml:3:", "`egde-2` (did you mean `edge-2`?)", "`nothing-like-it`"];
        assert_refused(&ran, "unknown_node", &words);
    }
    assert_eq!(sandbox.node()["revision"]["declared"], Value::Null);
    assert_eq!(sandbox.read("/a.txt"), None);

    // A list of modules, and of groups, with one that is not there.
    sandbox.write("fleet/fleet.toml", "[node.\"edge-1\"]\nmodules = [\"web\", \"wbe\"]\n");
    assert_refused(
        &sandbox.tenure(&["declare", &fleet, "--json"]),
        "unknown_module",
        &["there is no module `wbe`; did you mean `web`"],
    );
    sandbox.write(
        "fleet/fleet.toml",
        "[group.front]\nmodules = [\"web\"]\n[node.\"edge-1\"]\ngroups = [\"front\", \"fornt\"]\n",
    );
    assert_refused(
        &sandbox.tenure(&["declare", &fleet, "--json"]),
        "unknown_group",
        &["there is no group `fornt`; did you mean `front`"],
    );
    assert_eq!(sandbox.node()["revision"]["declared"], Value::Null);
}

// case: O-68
#[test]
fn every_command_that_takes_a_name_refuses_one_that_nobody_has_and_says_which_was_meant() {
    let sandbox = Sandbox::enrolled(&[]);
    sandbox.module(MODULE);
    let fleet = text(&sandbox.at("fleet"));
    let out = text(&sandbox.at("out"));
    for command in [
        &["node", "egde-1"][..],
        &["retire", "egde-1"],
        &["reinvite", "egde-1"],
        &["reinvite", "egde-1", "--out", &out],
        &["events", "--node", "egde-1"],
    ] {
        let arguments: Vec<&str> = command.iter().copied().chain(["--json"]).collect();
        let words = ["there is no node egde-1", "did you mean edge-1"];
        assert_refused(&sandbox.tenure(&arguments), "unknown_node", &words);
    }
    assert!(!sandbox.at("out").exists(), "no file is left for a token that was not made");
    let render = sandbox.tenure(&["render", &fleet, "--node", "egde-1", "--out", &out, "--json"]);
    assert_refused(&render, "unknown_node", &["egde-1", "edge-1"]);
    sandbox.invite("edge-2", &[]);
    let render = sandbox.tenure(&["render", &fleet, "--node", "edge-2", "--out", &out, "--json"]);
    assert_refused(&render, "node_not_in_folder", &["edge-2", "did you mean `edge-1`"]);
    assert!(!sandbox.at("out").exists());
    // What is no name at all is a question of usage, and is said as that.
    for wrong in ["Edge 1", "-", "a/b", "a\nb", "", &"n".repeat(300)] {
        let ran = sandbox.tenure(&["node", "--", wrong]);
        assert_eq!(ran.code, 2, "{wrong}: {ran:?}");
        assert!(!ran.err.contains('\u{1b}') || wrong.is_empty(), "{ran:?}");
    }
}

// case: O-68
#[test]
fn a_folder_for_nobody_and_one_for_a_node_that_is_retired_are_two_exit_statuses() {
    let sandbox = Sandbox::enrolled(&[]);
    sandbox.module(MODULE);
    sandbox.invite("gone-1", &[]);
    sandbox.tenure(&["retire", "gone-1"]).expect(0);
    let fleet = text(&sandbox.at("fleet"));
    let node = |name: &str| format!("[node.\"{name}\"]\nmodules = [\"web\"]\n");
    sandbox.write("fleet/fleet.toml", ["edge-1", "gone-1"].map(node).concat());
    let ran = sandbox.tenure(&["declare", &fleet, "--json"]);
    assert_refused(&ran, "retired", &["the folder names node gone-1, which is retired"]);
    assert_eq!(sandbox.node()["revision"]["declared"], Value::Null, "nor for the good one");

    sandbox.write("fleet/fleet.toml", "[group.front]\nmodules = [\"web\"]\n");
    let ran = sandbox.tenure(&["declare", &fleet, "--json"]).expect(6);
    assert_eq!(ran.json()["refusal"]["code"], "no_nodes");
    for command in [&["reinvite", "gone-1"][..], &["invite", "gone-1"]] {
        assert_eq!(sandbox.tenure(command).code, 3, "{command:?}");
    }
    assert!(sandbox.tenure(&["retire", "gone-1"]).expect(0).out.contains("was retired before"));
}
