//! With no control plane the host goes on holding its machine, also after it was killed itself (H-08).

use tenure_tests::sandbox::Sandbox;

const MODULE: &str = "[[directory]]\npath = \"/srv\"\n[[file]]\npath = \"/srv/a.txt\"\ncontent = \"a\\n\"\n";

fn spoil_and_wait(sandbox: &Sandbox, what: &str) {
    std::fs::write(sandbox.machine("/srv/a.txt"), "spoilt").unwrap();
    sandbox.wait(what, |s| s.read("/srv/a.txt").as_deref() == Some("a\n"));
}

// rule: H-08
// rule: H-09
#[test]
fn a_host_without_its_control_plane_repairs_is_killed_repairs_from_its_store_and_reports_later() {
    let mut sandbox = Sandbox::enrolled(&[]);
    sandbox.module(MODULE);
    sandbox.declare(&[]).expect(0);

    sandbox.kill_control();
    spoil_and_wait(&sandbox, "it repairs with no link");
    sandbox.wait("it says that it is disconnected", |s| {
        s.host(&["status", "--json"]).json()["machine_state"] == "disconnected"
    });

    sandbox.kill_host();
    std::fs::write(sandbox.machine("/srv/a.txt"), "spoilt while it was down").unwrap();
    sandbox.start_host();
    sandbox.wait("it repairs from its store", |s| s.read("/srv/a.txt").as_deref() == Some("a\n"));

    sandbox.start_control();
    sandbox.wait_for_state("edge-1", "ready");
    sandbox.wait("the control plane hears of both repairs", |s| {
        s.events().iter().filter(|e| e["kind"] == "drift_repaired" && e["key"] == "file:/srv/a.txt").count()
            >= 2
    });
    sandbox.wait("the report is there", |s| s.node()["revision"]["applied"] == 1);
}

// rule: N-08
// case: O-56
#[test]
fn a_control_plane_that_comes_back_does_not_call_its_nodes_lost() {
    let mut sandbox = Sandbox::enrolled(&[]);
    sandbox.kill_control();
    sandbox.start_control();
    let state = |s: &Sandbox| s.tenure(&["nodes", "--json"]).json()[0]["state"].clone();
    assert_eq!(state(&sandbox), "ready");
    sandbox.wait("the session is back", |s| !s.node()["session"].is_null());
    assert!(!sandbox.events().iter().any(|event| event["kind"] == "lost"));
}

// rule: X-6
#[test]
fn what_is_declared_while_a_host_is_away_is_outstanding_and_applied_when_it_comes_back() {
    let mut sandbox = Sandbox::enrolled(&[]);
    sandbox.module(MODULE);
    sandbox.kill_host();
    let folder = sandbox.at("fleet").display().to_string();
    sandbox.tenure(&["declare", &folder]).expect(0);
    assert_eq!(sandbox.tenure(&["declare", &folder, "--wait=1s"]).code, 5);
    assert_eq!(sandbox.standing(), "outstanding");
    sandbox.start_host();
    sandbox.wait("it is applied", |s| s.read("/srv/a.txt").as_deref() == Some("a\n"));
    sandbox.wait("and reported", |s| s.standing() == "applied");
}
