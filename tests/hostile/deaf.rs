//! Many nodes that proved who they are, ask for all they may, and never read an answer.

use tenure_protocol::content::{Fetch, PIECE, Wanted};
use tenure_protocol::id::Digest;
use tenure_protocol::wire::codec;
use tenure_protocol::wire::exchange::MOST_QUEUED;
use tenure_protocol::wire::frame::MOST;

use crate::bytes::request;
use crate::link::{Link, Node, SOON};
use crate::witness::Witness;

const DEAF: usize = 200;
/// The longest question of theirs.
const QUESTION: usize = 16 * 1024;
/// What one of them may cost: the questions that wait, the answers that wait for it, and those that are being made and
/// written. As many answers as may wait by their number alone would be three times as much.
const OF_A_DEAF_SESSION: usize = 32 * QUESTION + MOST_QUEUED + 4 * MOST;
/// A content of as many pieces as answers that may wait.
const CONTENT: u32 = 1 << 20;

fn name(number: usize) -> String {
    format!("deaf-{number:03}")
}

/// Declares for each of them something whose content is large.
fn declare(witness: &Witness, content: &[u8]) {
    let nodes = (0..DEAF).map(|number| format!("[node.\"{}\"]\nmodules = [\"large\"]\n", name(number)));
    let sandbox = &witness.sandbox;
    sandbox.write("large/fleet.toml", nodes.collect::<String>());
    let module = "[module]\nname = \"large\"\n[[file]]\npath = \"/large\"\nsource = \"large\"\n";
    sandbox.write("large/modules/large/module.toml", module);
    sandbox.write("large/modules/large/large", content);
    let folder = tenure_tests::sandbox::text(&sandbox.at("large"));
    sandbox.tenure(&["declare", &folder]).expect(0);
}

/// Asks for content and reads none of it, until nothing more is taken. What is returned holds the connection open: it is
/// the other side that is to end it.
async fn ask_and_never_read(link: Link, name: String, sha256: Digest) -> impl Sized {
    let (unread, mut writer) = link.connection.split();
    // As long as a question may be; the first piece fills the answer.
    let wanted = (0..256).map(|piece| Wanted { sha256, offset: piece * u64::from(PIECE) }).collect();
    let fetch = codec::encode(&Fetch { wanted });
    assert!(fetch.len() <= QUESTION, "{} bytes", fetch.len());
    let asked = request(99, &format!("reconcile/{name}"), "content.fetch", fetch);
    while writer.send(&asked).await.is_ok() {}
    (unread, writer)
}

// rule: S-22
#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_sessions_that_never_read_cost_a_bound_each_are_given_up_by_name_and_disturb_nobody() {
    let witness = Witness::new();
    let sandbox = &witness.sandbox;
    let mut nodes = Vec::new();
    for number in 0..DEAF {
        nodes.push(Node::enrolled(sandbox, &name(number)).await);
    }
    let content: Vec<u8> = (0..CONTENT).map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    declare(&witness, &content);
    let (sha256, memory) = (Digest::of(&content), witness.memory());
    let mut asking = tokio::task::JoinSet::new();
    for (number, node) in nodes.iter_mut().enumerate() {
        let (link, _) = node.deaf_session(sandbox).await;
        asking.spawn(ask_and_never_read(link, name(number), sha256));
    }
    println!("{} of {DEAF} still asked when the last began", asking.len());
    witness.works();
    let held = tokio::time::timeout(SOON * 4, asking.join_all()).await.expect("nothing more is taken of any");
    sandbox.wait("their sessions are gone", |sandbox| {
        let nodes = sandbox.tenure(&["nodes", "--json"]).expect(0).json();
        let said = witness.control().said();
        let ended = (0..DEAF).filter(|number| said.lines().any(|line| is_given_up(line, &name(*number))));
        nodes.as_array().is_some_and(|nodes| nodes.len() > DEAF) && ended.count() == DEAF
    });
    drop(held);
    memory.assert_each_grew_at_most(DEAF, OF_A_DEAF_SESSION, "two hundred sessions that never read");
    witness.works();
}

/// Whether a line of the log says that this node's session ended since nothing was taken on it.
fn is_given_up(line: &str, name: &str) -> bool {
    ["session ended", "silent", name].iter().all(|word| line.contains(word))
}
