//! The control plane of many nodes is killed and comes back (O-61).

use std::time::{Duration, Instant};

use tenure_tests::herd::{Herd, densest};
use tenure_tests::sandbox::Sandbox;
use tenure_tests::wait;

const NODES: usize = 500;
/// The lease of a control plane that nobody configured.
const LEASE: Duration = Duration::from_secs(90);
/// The window of the first redial.
const WINDOW: Duration = Duration::from_secs(2);
/// A fifth of the window and no more than twice its even share.
const STRETCH: Duration = Duration::from_millis(400);
const SHARE: usize = 2 * NODES / 5;

// rule: N-08
// case: O-61
// case: O-56
#[test]
fn five_hundred_nodes_whose_control_plane_was_killed_come_back_spread_within_their_lease_and_none_is_lost() {
    let mut sandbox = Sandbox::empty();
    sandbox.start_control();
    let socket = sandbox.at("control/run/tenure-control/api.sock");
    let herd = Herd::raise(NODES, &socket, &sandbox.address());

    let killed = Instant::now();
    sandbox.kill_control();
    herd.wait_until_none_is_connected(Duration::from_secs(20));
    wait::until_true("each dialled again", Duration::from_secs(20), || {
        killed.elapsed() > WINDOW + Duration::from_secs(2) && herd.dials_after(killed).len() >= NODES
    });
    let mut first = herd.dials_after(killed);
    first.sort_unstable();
    first.truncate(NODES);
    let most = densest(&first, STRETCH);
    assert!(most <= SHARE, "{most} of {NODES} dialled within {STRETCH:?}");

    let dialled = herd.dials_after(killed).len();
    let (busy, _) = herd.turned_away();
    let started = Instant::now();
    sandbox.start_control();
    herd.wait_until_all_are_connected(LEASE);
    let took = started.elapsed();
    let (busy_now, _) = herd.turned_away();
    let dials = herd.dials_after(killed).len() - dialled;
    println!(
        "{NODES} nodes: first redials at most {most} within {STRETCH:?}; all connected {took:?} after the start, with \
         {dials} dials, {} turned away; at most {} sessions opened within a second",
        busy_now - busy,
        densest(&herd.welcomes_after(started), Duration::from_secs(1)),
    );
    assert!(dials <= 6 * NODES, "{dials} dials");
    let nodes = sandbox.tenure(&["nodes", "--json"]).expect(0).json();
    let nodes = nodes.as_array().unwrap();
    assert_eq!(nodes.len(), NODES);
    assert!(nodes.iter().all(|node| node["state"] == "ready"));
    assert!(sandbox.events().iter().all(|event| event["kind"] != "lost"));
    assert_eq!(herd.connected(), NODES, "whoever came back stayed");
}
