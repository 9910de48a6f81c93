//! A host in adopted mode keeps what it finds.

use tenure_tests::sandbox::Sandbox;

// rule: A-01
// rule: A-03
#[test]
fn what_is_found_on_an_adopted_node_is_held_and_not_touched_while_the_rest_applies() {
    let sandbox = Sandbox::enrolled(&["--adopted"]);
    sandbox.write("machine/srv/found.txt", "theirs\n");
    sandbox.module(
        "[[directory]]\npath = \"/srv\"\nmode = \"0700\"\n[[file]]\npath = \"/srv/found.txt\"\ncontent = \"ours\\n\"\n[[file]]\npath = \"/srv/new.txt\"\ncontent = \"new\\n\"\n",
    );
    sandbox.declare(&[]).expect(0);
    sandbox.wait("what was not there is made", |s| s.read("/srv/new.txt").is_some());
    assert_eq!(sandbox.read("/srv/found.txt").unwrap(), "theirs\n");
    assert_eq!(sandbox.resource("file:/srv/found.txt")["outcome"], "held");
    assert_eq!(sandbox.resource("directory:/srv")["outcome"], "held");
    assert_ne!(sandbox.resource("file:/srv/new.txt")["outcome"], "held");

    let node = sandbox.node();
    assert_eq!(node["mode"], "adopted");
    assert_eq!(sandbox.tenure(&["nodes", "--json"]).json()[0]["held"], 2);
    let manifest: serde_json::Value =
        serde_json::from_str(&sandbox.read("/etc/tenure/node.json").unwrap()).unwrap();
    assert_eq!(manifest["mode"], "adopted");
    let owned = sandbox.host(&["owned", "--json"]).expect(0).json();
    assert_eq!(owned.as_array().map(Vec::len), Some(1), "{owned}");
}
