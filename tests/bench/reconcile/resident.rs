//! What the daemon as it is shipped holds in memory over N declared files: idle, and at its highest in a pass.

use std::path::Path;

use tenure_host::ground::Ground;
use tenure_host::identity::StoredIdentity;
use tenure_host::store::Store;
use tenure_protocol::enrolment::Briefing;
use tenure_protocol::id::{
    ControlPlaneId, Digest, Epoch, EpochId, FencingToken, Generation, Millis, NodeId, NodeUuid, Rental,
};
use tenure_protocol::machine::Mode;
use tenure_protocol::proof::PublicKey;
use tenure_tests::program::Running;
use tenure_tests::sandbox::{SOON, text};
use tenure_tests::wait;

use super::subject::Subject;
use crate::memory;
use crate::row::Rows;

/// What is asked of the memory of a host, in MiB.
const IDLE: (&str, f64) = ("the goal", 8.0);
const IDLE_OF_10K: (&str, f64) = ("the goal", 12.0);
const PEAK: (&str, f64) = ("the goal", 20.0);

pub(super) fn run(rows: Rows, subject: &Subject, n: usize) {
    let root = subject.at("root");
    belong(&root);
    look_each_second(&root);
    let arguments = ["run", "--root", &text(&root), "--sandbox"];
    let host = Running::start("tenure-host", &arguments, &[], subject.at("host.log"));
    let passes = || subject.program(&["status"]).json()["last"]["pass"].as_u64().unwrap_or(0);
    wait::until_true("the host answers", SOON, || subject.program(&["status"]).code == 0);
    let first = passes();
    let after = |more: u64| wait::until_true("passes are done", SOON, || passes() >= first + more);
    after(3);
    let start = memory(host.pid());
    // From here on the highest is that of quiet passes, or of one that reads everything.
    forget_peak(host.pid());
    after(6);
    let quiet = memory(host.pid());
    forget_peak(host.pid());
    subject.program(&["apply"]).expect(0);
    let full = memory(host.pid());
    let goal = if n > 1_000 { IDLE_OF_10K } else { IDLE };
    rows.against("idle_memory", n, quiet.0, "MiB", goal);
    rows.against("peak, at the start's pass", n, start.1, "MiB", PEAK);
    rows.against("peak, quiet passes", n, quiet.1, "MiB", PEAK);
    rows.against("peak, full pass on demand", n, full.1, "MiB", PEAK);
    host.stop();
}

/// A host without an identity holds nothing by itself; nobody listens where this one's control plane would be.
fn belong(root: &Path) {
    let ground = Ground::new(root, true);
    let store = Store::open(&ground, true, tenure_actors::clock::system().now()).expect("a store").store;
    let node = NodeId::new("edge-1").expect("a name");
    let identity = StoredIdentity {
        control_plane_id: "6f1c1b3e-8d2f-4c55-9d0e-2b7a4c8f9e10".parse::<ControlPlaneId>().expect("an id"),
        epoch: Epoch { number: 1, id: EpochId::from_bytes([1; 16]) },
        node,
        node_uuid: NodeUuid::from_bytes([9; 16]),
        rental: Rental::new("own").expect("a name"),
        generation: Generation(1),
        fencing: FencingToken(1),
        mode: Mode::Converged,
        enrolled_at: Millis(1),
        roots: Vec::new(),
        addresses: vec!["127.0.0.1:9".to_owned()],
        key: PublicKey::from_bytes([3; 32]),
        token: Digest::of(b"token"),
        briefing: Briefing::default(),
    };
    store.set_identity(&identity).expect("it is kept");
    store.close();
}

fn look_each_second(root: &Path) {
    std::fs::create_dir_all(root.join("etc/tenure")).expect("a folder of the benchmark");
    std::fs::write(root.join("etc/tenure/host.toml"), "timer = \"1s\"\n").expect("a file of the benchmark");
}

fn forget_peak(pid: u32) {
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5").expect("our own child");
}
