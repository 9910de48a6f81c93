//! Joining: one token, one machine, and every wrong token its own answer.

use tenure_actors::clock::system;
use tenure_tests::sandbox::Sandbox;
use tenure_tests::secrets::Secrets;

fn raised() -> Sandbox {
    let mut sandbox = Sandbox::empty();
    sandbox.start_control();
    sandbox.start_host();
    sandbox
}

fn refused(sandbox: &Sandbox, token: &str, code: &str) {
    let ran = sandbox.redeem(token);
    assert_eq!(ran.code, 3, "{code}: {ran:?}");
    assert!(ran.err.contains(code), "{code}: {}", ran.err);
    let status = sandbox.host(&["status", "--json"]).expect(0).json();
    assert_eq!(status["machine_state"], "hosted", "{code}");
    assert_eq!(sandbox.read("/etc/tenure/node.json"), None, "{code}: a manifest was written");
}

// rule: N-01
// rule: N-02
// rule: I-01
#[test]
fn an_invitation_is_redeemed_and_the_machine_says_who_it_is() {
    let sandbox = raised();
    assert_eq!(sandbox.host(&["status", "--json"]).expect(0).json()["machine_state"], "hosted");
    sandbox.enrol("edge-1", &[]);
    sandbox.wait_for_state("edge-1", "ready");
    let manifest: serde_json::Value =
        serde_json::from_str(&sandbox.read("/etc/tenure/node.json").unwrap()).unwrap();
    assert_eq!(manifest["node"], "edge-1");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &sandbox.machine("/etc/tenure/node.json").metadata().unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o644);
    sandbox.wait("the machine says enrolled", |s| {
        s.host(&["status", "--json"]).json()["machine_state"] == "enrolled"
    });
    let twice = sandbox.tenure(&["invite", "edge-1"]).expect(3);
    assert!(twice.err.contains("node_exists"), "{}", twice.err);
}

// rule: N-03
// rule: S-03
#[test]
fn a_garbled_an_expired_and_a_foreign_token_are_three_answers_and_cost_nothing() {
    let sandbox = raised();
    let token = sandbox.invite("edge-1", &[]);
    refused(&sandbox, "nonsense", "not_a_token");
    refused(&sandbox, &token[..token.len() - 1], "token_damaged");

    let short = sandbox.invite("edge-2", &["--valid", "1s"]);
    sandbox.wait("a second has passed", |s| {
        let node = s.tenure(&["node", "edge-2", "--json"]).expect(0).json();
        node["invited_until"].as_i64().is_some_and(|until| until < now()) || node["invited_until"].is_null()
    });
    refused(&sandbox, &short, "not_valid");

    let mut other = Sandbox::empty();
    // Our address, another control plane's token: what the CA digest in it is there to tell.
    other.start_control_advertising(&sandbox.address());
    let foreign = other.invite("edge-1", &[]);
    refused(&sandbox, &foreign, "wrong_certificate");
    sandbox.redeem(&token).expect(0);
}

fn now() -> i64 {
    system().now().millis()
}

// rule: N-03
#[test]
fn a_token_is_spent_by_its_first_machine() {
    let sandbox = raised();
    let token = sandbox.invite("edge-1", &[]);
    sandbox.redeem(&token).expect(0);
    sandbox.redeem(&token).expect(0);
    assert_eq!(sandbox.node()["fencing_token"], 1, "a repeat of the same machine moves nothing");

    let mut second = Sandbox::empty();
    second.start_host();
    refused(&second, &token, "spent");
    sandbox.wait("the operator is told", |s| {
        s.events().iter().any(|event| event["kind"] == "second_redemption")
    });
    assert_eq!(sandbox.node()["fencing_token"], 1);
}

// rule: I-04
// rule: I-11
#[test]
fn a_machine_that_says_it_is_somebody_elses_is_refused_before_the_token_is_spent() {
    let sandbox = raised();
    let token = sandbox.invite("edge-1", &[]);
    let manifest = serde_json::json!({
        "manifest": 1, "node": "their-node", "node_uuid": "00000000-0000-4000-8000-000000000001", "provider_uuid": null,
        "control_plane_id": "00000000-0000-4000-8000-000000000002", "control_plane_url": "elsewhere:7443", "generation": 1,
        "mode": "adopted", "stack_version": null, "host_version": "0.1.0", "components": {}, "enrolled_at": 1, "bootstrapped_at": null
    });
    for (text, code) in [
        (manifest.to_string(), "refuse_foreign_control_plane"),
        ("{}".to_owned(), "refuse_unreadable_manifest"),
        (String::new(), "refuse_unreadable_manifest"),
    ] {
        sandbox.write("machine/etc/tenure/node.json", &text);
        let ran = sandbox.redeem(&token).expect(3);
        assert!(ran.err.contains(code), "{code}: {}", ran.err);
        assert_eq!(sandbox.read("/etc/tenure/node.json").unwrap(), text, "the manifest stays as it is");
        assert!(!sandbox.machine("/var/lib/tenure-host/node.key").exists(), "no key was made");
    }
    std::fs::remove_file(sandbox.machine("/etc/tenure/node.json")).unwrap();
    sandbox.redeem(&token).expect(0);
}

// rule: X-11
// case: O-64
#[test]
fn what_was_answered_is_still_true_after_the_control_plane_was_killed_at_once() {
    let mut sandbox = raised();
    let token = sandbox.invite("edge-1", &[]);
    sandbox.redeem(&token).expect(0);
    sandbox.kill_control();
    sandbox.start_control();
    assert_eq!(sandbox.node()["fencing_token"], 1);
    let mut second = Sandbox::empty();
    second.start_host();
    refused(&second, &token, "spent");
}

// rule: N-04
// rule: N-22
// case: O-62
#[test]
fn the_token_stands_in_no_log_no_store_and_no_argument() {
    let sandbox = raised();
    let token = sandbox.invite("edge-1", &[]);
    sandbox.redeem(&token).expect(0);
    sandbox.wait_for_state("edge-1", "ready");
    let argument = sandbox.host(&["enrol", "--token", &token]);
    assert_eq!(argument.code, 3, "{argument:?}");
    assert!(!argument.err.contains(&token));
    // A second machine is told apart by the same token, and the identity is withdrawn: each is written down.
    let mut second = Sandbox::empty();
    second.start_host();
    refused(&second, &token, "spent");
    sandbox.tenure(&["retire", "edge-1"]).expect(0);
    let master = std::fs::read(sandbox.at("control/var/lib/tenure-control/master.key")).unwrap();
    let secrets = Secrets::default().token(&token).key("the master key", &master);
    let looked = [&sandbox, &second].map(|machine| {
        std::fs::remove_file(machine.at("token")).unwrap();
        secrets.assert_nowhere_below(&machine.at(""), "master.key")
    });
    assert!(looked[0] >= 8 && looked[1] >= 3, "looked at {looked:?} files only");
}

// rule: N-14
#[test]
fn a_retired_node_keeps_its_machine_as_it_was_and_loses_its_standing() {
    let sandbox = Sandbox::enrolled(&[]);
    sandbox.module("[[file]]\npath = \"/a.txt\"\ncontent = \"a\\n\"\n");
    sandbox.declare(&[]).expect(0);
    sandbox.tenure(&["retire", "edge-1"]).expect(0);
    sandbox.tenure(&["retire", "edge-1"]).expect(0);
    sandbox.wait_for_state("edge-1", "retired");
    sandbox.wait("the session has ended", |s| s.node()["session"].is_null());
    assert_eq!(sandbox.read("/a.txt").unwrap(), "a\n");
    let declared = sandbox.declare(&[]);
    assert_eq!(declared.code, 3, "{declared:?}");
    let again = sandbox.tenure(&["reinvite", "edge-1"]).expect(3);
    assert!(again.err.contains("retired"), "{}", again.err);
}
