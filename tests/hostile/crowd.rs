//! Ten thousand connections that say nothing.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tenure_controlplane::listener::{MOST_PER_SOURCE, MOST_STRANGERS};
use tenure_tests::sandbox::Sandbox;
use tokio::net::TcpStream;

use crate::link::{Node, connect};
use crate::memory::{STRANGER, WORK, open_files};
use crate::witness::Witness;

const CROWD: usize = 10_000;
/// Descriptors of this program that are not the crowd's.
const OURS: usize = 500;

/// As many silent connections as asked for, or as this machine lets one program open.
fn crowd() -> usize {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
    CROWD.min(usize::try_from(most).unwrap_or(CROWD).saturating_sub(OURS))
}

/// Connections from this many addresses, in turn; from 127.0.0.100 on.
async fn silent(witness: &Witness, many: usize, sources: usize) -> Vec<TcpStream> {
    let mut held = Vec::with_capacity(many);
    for number in 0..many {
        held.push(connect(&witness.sandbox, u8::try_from(100 + number % sources).unwrap()).await);
    }
    held
}

async fn newcomers_get_in(witness: &Witness, name: &str) {
    let mut node = Node::enrolled(&witness.sandbox, &format!("{name}-1")).await;
    node.session(&witness.sandbox).await;
    let mut machine = Sandbox::empty();
    machine.start_host();
    machine.redeem(&witness.sandbox.invite(&format!("{name}-2"), &[])).expect(0);
}

// rule: S-22
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_silent_connections_from_many_sources_cost_a_bounded_number_and_newcomers_get_in() {
    let witness = Witness::new();
    let (before, memory) = (open_files(witness.control()), witness.memory());
    let many = crowd();
    let held = silent(&witness, many, 50).await;
    newcomers_get_in(&witness, "many").await;
    witness.works();
    let open = open_files(witness.control());
    println!("{} silent connections: {before} files open before, {open} while they last", held.len());
    // What has arrived and is not accepted yet is the kernel's; a few are the newcomers'.
    assert!(open <= before + MOST_STRANGERS + 20, "{open} files");
    memory.assert_grew_at_most(MOST_STRANGERS * STRANGER + WORK, "ten thousand silent connections");
    drop(held);
    witness.works();
}

// rule: S-22
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_silent_connections_from_one_source_cost_that_source_alone() {
    let witness = Witness::new();
    let (before, memory) = (open_files(witness.control()), witness.memory());
    let many = crowd();
    let held = silent(&witness, many, 1).await;
    newcomers_get_in(&witness, "one").await;
    let open = open_files(witness.control());
    println!("{} silent connections of one source: {before} files open before, {open} now", held.len());
    assert!(open <= before + MOST_PER_SOURCE + 20, "{open} files");
    memory.assert_grew_at_most(MOST_PER_SOURCE * STRANGER + WORK, "a crowd of one source");
    witness.works();
}
