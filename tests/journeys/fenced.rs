//! A machine is cut off, its identity is given to another one, and then it comes back (O-57).

use tenure_tests::sandbox::Sandbox;

fn module(text: &str) -> String {
    format!("[[file]]\npath = \"/a.txt\"\ncontent = \"{text}\\n\"\n")
}

fn spoil_and_wait(sandbox: &Sandbox, what: &str) {
    std::fs::write(sandbox.machine("/a.txt"), "spoilt").unwrap();
    sandbox.wait(what, |s| s.read("/a.txt").as_deref() == Some("one\n"));
}

fn told(sandbox: &Sandbox) -> Vec<String> {
    let repaired = sandbox.events().into_iter().filter(|event| event["kind"] == "drift_repaired");
    repaired.filter_map(|event| event["text"].as_str().map(str::to_owned)).collect()
}

// rule: N-05
// rule: H-08
// case: O-57
#[test]
fn a_machine_whose_identity_moved_while_it_was_cut_off_says_so_tells_what_it_did_and_goes_on_holding() {
    let mut first = Sandbox::enrolled(&[]);
    first.module(&module("one"));
    first.declare(&[]).expect(0);

    first.kill_control();
    spoil_and_wait(&first, "it repairs while it is cut off");
    first.wait("what it did waits to be told", |s| {
        s.host(&["status", "--json"]).json()["spooled"].as_u64().is_some_and(|spooled| spooled > 0)
    });
    first.kill_host();

    first.start_control();
    let token = first.tenure(&["reinvite", "edge-1", "--revoke-now"]).expect(0).out.trim().to_owned();
    let mut second = Sandbox::empty();
    second.start_host();
    second.redeem(&token).expect(0);
    first.wait_for_state("edge-1", "ready");
    assert_eq!(first.node()["fencing_token"], 2);
    first.module(&module("two"));
    first.declare(&[]).expect(0);
    assert_eq!(second.read("/a.txt").as_deref(), Some("two\n"));

    first.start_host();
    first.wait("it says that it is fenced", |s| {
        s.host(&["status", "--json"]).json()["link"]["down"]["reason"]["code"] == "fenced"
    });
    let status = first.host(&["status"]).expect(0).out;
    for part in ["enrolment 1", "2 holds", "goes on holding", "tenure reinvite edge-1"] {
        assert!(status.contains(part), "{part}: {status}");
    }
    first.wait("what it did is stored as what it is", |s| {
        told(s).iter().any(|text| text.starts_with("by enrolment 1 (fenced): "))
    });
    spoil_and_wait(&first, "it goes on holding its last declaration");
    let status = first.host(&["status", "--json"]).json();
    assert_eq!(status["machine_state"], "disconnected");
    assert_eq!(status["revision"]["number"], 1, "nothing newer was given to it: {status}");
    let node = first.node();
    assert_eq!((&node["fencing_token"], &node["revision"]["applied"]), (&2.into(), &2.into()));
    assert!(!node["session"].is_null(), "the session of the one that holds is not disturbed");
    let refused = first.control.as_ref().unwrap().said().matches("session refused").count();
    assert_eq!(refused, 1, "it does not knock in a tight loop");
}
