//! Bad input has a refusal of its own; afterwards nothing is lost, and both daemons still work.

use tenure_tests::sandbox::Sandbox;

const GOOD: &str = "[[file]]\npath = \"/a.txt\"\ncontent = \"a\\n\"\n";

/// What is written into the module, the code it is refused with, and words the refusal must have.
const BAD: &[(&str, &str, &[&str])] = &[
    ("[[file]\npath = 1\n", "toml", &["module.toml:4", "[[file]"]),
    (
        "[[file]]\npath = \"/a\"\ncontnet = \"x\"\n",
        "unknown_field",
        &["module.toml:6:1", "contnet", "`content`"],
    ),
    ("[[fiel]]\npath = \"/a\"\n", "unknown", &["fiel", "`file`"]),
    (
        "[[file]]\npath = \"/a\"\ncontent = \"x\"\n[[file]]\npath = \"//a\"\ncontent = \"y\"\n",
        "declared_twice",
        &["/a"],
    ),
    (
        "[[file]]\npath = \"/a\"\ncontent = \"x\"\nneeds = [\"file:/b\"]\n[[file]]\npath = \"/b\"\ncontent = \"x\"\nneeds = [\"file:/a\"]\n",
        "circle",
        &["file:/a", "file:/b"],
    ),
    ("[[file]]\npath = \"a\"\ncontent = \"x\"\n", "path", &["relative"]),
    ("[[file]]\npath = \"/a/../b\"\ncontent = \"x\"\n", "path", &[".."]),
    ("[[file]]\npath = \"/a\\u0000b\"\ncontent = \"x\"\n", "path", &["control character"]),
    ("[[file]]\npath = \"/proc/sys/x\"\ncontent = \"x\"\n", "path", &["/proc"]),
    ("[[file]]\npath = \"/sys/x\"\ncontent = \"x\"\n", "path", &["/sys"]),
    ("[[file]]\npath = \"/a\"\ncontent = \"{{ nothing }}\"\n", "setting", &["nothing"]),
    ("[[file]]\npath = \"/etc/tenure/host.toml\"\ncontent = \"x\"\n", "own_path", &["/etc/tenure/host.toml"]),
];

// case: O-70
#[test]
fn each_kind_of_bad_folder_is_refused_by_name_and_nothing_is_lost() {
    let sandbox = Sandbox::enrolled(&[]);
    sandbox.module(GOOD);
    sandbox.declare(&[]).expect(0);
    let folder = sandbox.at("fleet").display().to_string();
    for (text, code, words) in BAD {
        sandbox.module(text);
        let refused = sandbox.tenure(&["declare", &folder, "--json"]);
        assert_eq!(refused.code, 3, "{text}\n{refused:?}");
        let said: serde_json::Value = serde_json::from_str(refused.out.trim())
            .or_else(|_| serde_json::from_str(refused.err.trim()))
            .unwrap();
        let refusal = &said["refusal"];
        assert!(refusal["code"].as_str().unwrap().contains(code), "{text}\n{refusal}");
        for word in *words {
            assert!(refusal["happened"].as_str().unwrap().contains(word), "{word} is not in {refusal}");
        }
        for part in ["means", "do"] {
            assert!(!refusal[part].as_str().unwrap().is_empty(), "{refusal}");
        }
    }
    assert_eq!(sandbox.node()["revision"]["declared"], 1);
    assert_eq!(sandbox.read("/a.txt").unwrap(), "a\n");
    sandbox.module(&GOOD.replace("a\\n", "b\\n"));
    sandbox.declare(&[]).expect(0);
    assert_eq!(sandbox.read("/a.txt").unwrap(), "b\n");
}

// case: O-68
#[test]
fn a_name_that_is_not_known_does_nothing_for_anybody_and_says_what_was_meant() {
    let sandbox = Sandbox::enrolled(&[]);
    sandbox.module(GOOD);
    sandbox.write(
        "fleet/fleet.toml",
        "[node.\"edge-1\"]\nmodules = [\"web\"]\n[node.\"egde-1\"]\nmodules = [\"web\"]\n",
    );
    let refused = sandbox.declare(&[]).expect(3);
    assert!(refused.err.contains("egde-1") && refused.err.contains("edge-1"), "{}", refused.err);
    assert_eq!(sandbox.node()["revision"]["declared"], serde_json::Value::Null);

    sandbox.write("fleet/fleet.toml", "[node.\"edge-1\"]\nmodules = [\"wbe\"]\n");
    let refused = sandbox.declare(&[]).expect(3);
    assert!(refused.err.contains("wbe") && refused.err.contains("web"), "{}", refused.err);

    for command in ["node", "retire"] {
        let ran = sandbox.tenure(&[command, "nobody"]);
        assert_eq!(ran.code, 3, "{ran:?}");
        assert!(ran.err.contains("unknown_node"), "{}", ran.err);
    }
    assert_eq!(sandbox.tenure(&["no-such-command"]).code, 2);
}

#[test]
fn a_control_plane_that_does_not_run_is_said_to_not_run() {
    let sandbox = Sandbox::empty();
    let ran = sandbox.tenure(&["nodes"]);
    assert_ne!(ran.code, 0);
    assert!(ran.err.contains("api.sock"), "{}", ran.err);
}
