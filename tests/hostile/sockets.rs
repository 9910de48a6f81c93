//! Both local sockets: the control plane's API and the host's own. Whoever may open them may do much, but not end them.

use std::path::PathBuf;
use std::time::Duration;

use tenure_controlplane::api::{MOST_PEERS, MOST_WAITING};
use tenure_host::api::MOST_CONNECTIONS;
use tenure_protocol::envelope::{Answer, Frame};
use tenure_protocol::kind::{Door, KINDS, Role};
use tenure_protocol::refusal::Refusal;
use tenure_protocol::wire::Connection;
use tenure_protocol::wire::exchange::MOST_HELD;
use tenure_protocol::wire::frame::MOST;
use tenure_tests::sandbox::Sandbox;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;

use crate::bytes::{no_frames, request, uncalled_for};
use crate::link::SOON;
use crate::memory::{Memory, WORK};
use crate::reader::until_closed;
use crate::witness::Witness;

fn of_control(sandbox: &Sandbox) -> PathBuf {
    sandbox.at("control/run/tenure-control/api.sock")
}

fn of_host(sandbox: &Sandbox) -> PathBuf {
    tenure_host::ground::Ground::new(sandbox.at("machine"), true).socket()
}

async fn open(path: &PathBuf) -> Connection<UnixStream> {
    Connection::new(UnixStream::connect(path).await.unwrap(), MOST)
}

async fn ask(
    connection: &mut Connection<UnixStream>,
    to: &str,
    kind: &str,
    body: Vec<u8>,
) -> Result<Vec<u8>, Refusal> {
    connection.send(&request(9, to, kind, body)).await.unwrap();
    match connection.receive(SOON).await.unwrap() {
        Frame::Answer(Answer { re: 9, result }) => result,
        other => panic!("{other:?}"),
    }
}

async fn ends_by_nonsense(path: &PathBuf) {
    for (attack, bytes) in no_frames() {
        let mut stream = UnixStream::connect(path).await.unwrap();
        stream.write_all(&bytes).await.unwrap();
        let (came, _) = until_closed(&mut stream, Duration::from_secs(20), attack).await;
        assert!(came.is_empty(), "{attack}: {came:?}");
    }
    let mut cut = UnixStream::connect(path).await.unwrap();
    cut.write_all(&[0, 0, 1, 0, 7]).await.unwrap();
    cut.shutdown().await.unwrap();
    until_closed(&mut cut, Duration::from_secs(20), "half a frame and a goodbye").await;
}

// rule: S-22
#[tokio::test(flavor = "multi_thread")]
async fn nonsense_on_either_socket_ends_its_own_connection_and_nothing_else() {
    let witness = Witness::new();
    let sandbox = &witness.sandbox;
    let (control, host) = (witness.memory(), Memory::of(witness.host()));
    for path in [of_control(sandbox), of_host(sandbox)] {
        ends_by_nonsense(&path).await;
        // What nobody asked for is nobody's, and the connection goes on.
        let mut connection = open(&path).await;
        for frame in uncalled_for() {
            connection.send(&frame).await.unwrap();
        }
        let refused = ask(&mut connection, "fleet", "no.such.kind", vec![]).await.unwrap_err();
        assert!(refused.is("unsupported_kind"), "{refused:?}");
    }
    witness.works();
    sandbox.host(&["status"]).expect(0);
    control.assert_grew_at_most(MOST_HELD + WORK, "nonsense on the control plane's socket");
    host.assert_grew_at_most(MOST_HELD + WORK, "nonsense on the host's socket");
}

// rule: S-02
#[tokio::test(flavor = "multi_thread")]
async fn every_kind_at_the_wrong_socket_is_refused_by_name_and_its_body_is_not_read() {
    let witness = Witness::new();
    let sandbox = &witness.sandbox;
    for (path, door) in
        [(of_control(sandbox), Door::Api(Role::Operate)), (of_host(sandbox), Door::HostSocket)]
    {
        let mut connection = open(&path).await;
        for kind in KINDS {
            let may = kind.doors.iter().any(|open| match (open, door) {
                (Door::Api(_), Door::Api(_)) => true,
                (open, door) => *open == door,
            });
            let to = kind.to.replace("{node}", "edge-1");
            let refused = ask(&mut connection, &to, kind.name, vec![0xc1]).await.unwrap_err();
            let unread = ["malformed", "unreadable_message"].iter().any(|code| refused.is(code));
            assert!(if may { unread } else { refused.is("wrong_door") }, "{}: {refused:?}", kind.name);
        }
    }
    witness.works();
}

// rule: S-22
#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_that_says_nothing_on_the_control_planes_socket_keeps_nobody_out() {
    let witness = Witness::new();
    let (path, memory) = (of_control(&witness.sandbox), witness.memory());
    let mut silent = Vec::new();
    for _ in 0..MOST_WAITING * 5 {
        silent.push(UnixStream::connect(&path).await.unwrap());
    }
    // One that has come half of its way to a question waits as the silent ones do.
    let _ = silent[0].write_all(&[0, 0, 0]).await;
    witness.works();
    memory
        .assert_grew_at_most(MOST_WAITING * 64 * 1024 + WORK, "a silent crowd on the control plane's socket");
}

// rule: S-22
#[tokio::test(flavor = "multi_thread")]
async fn one_peer_too_many_hears_so_by_name_on_either_socket_and_is_served_when_another_has_gone() {
    let witness = Witness::new();
    let sandbox = &witness.sandbox;
    let mut seated = Vec::new();
    for _ in 0..MOST_PEERS {
        let mut connection = open(&of_control(sandbox)).await;
        ask(&mut connection, "fleet", "no.such.kind", vec![]).await.unwrap_err();
        seated.push(connection);
    }
    let refused = sandbox.tenure(&["nodes"]).expect(3);
    assert!(refused.err.contains("too_many_connections"), "{}", refused.err);
    seated.pop();
    sandbox.wait("there is a seat again", |sandbox| sandbox.tenure(&["nodes"]).code == 0);
    drop(seated);

    let mut seated = Vec::new();
    for _ in 0..MOST_CONNECTIONS {
        seated.push(open(&of_host(sandbox)).await);
    }
    let refused = sandbox.host(&["status"]).expect(3);
    assert!(refused.err.contains("too_many_connections"), "{}", refused.err);
    seated.pop();
    sandbox.wait("there is a seat again", |sandbox| sandbox.host(&["status"]).code == 0);
    drop(seated);
    witness.works();
}

/// So many peers that ask and never read, on each socket; both have seats left.
const DEAF: usize = 8;

/// Asks with the largest frames there may be until it is cut off, and reads no answer.
async fn asks_and_never_reads(path: PathBuf) {
    let (_unread, mut writer) = open(&path).await.split();
    let asked = request(1, "fleet", "no.such.kind", vec![0; MOST - 1024]);
    while writer.send(&asked).await.is_ok() {}
}

// rule: S-22
#[tokio::test(flavor = "multi_thread")]
async fn peers_that_ask_and_never_read_are_given_up_and_hold_a_bounded_amount_meanwhile() {
    let witness = Witness::new();
    let sandbox = &witness.sandbox;
    let (control, host) = (witness.memory(), Memory::of(witness.host()));
    let (of_control, of_host) = (of_control(sandbox), of_host(sandbox));
    let mut attackers = tokio::task::JoinSet::new();
    for _ in 0..DEAF {
        attackers.spawn(asks_and_never_reads(of_control.clone()));
    }
    for _ in 0..DEAF {
        attackers.spawn(asks_and_never_reads(of_host.clone()));
    }
    witness.works();
    sandbox.host(&["status"]).expect(0);
    tokio::time::timeout(SOON * 3, attackers.join_all()).await.expect("each is given up");
    witness.works();
    control.assert_grew_at_most(DEAF * MOST_HELD + WORK, "peers of the control plane that never read");
    host.assert_grew_at_most(DEAF * MOST_HELD + WORK, "peers of the host that never read");
}

// rule: S-22
#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_a_bomb_is_refused_by_name_on_either_socket() {
    let witness = Witness::new();
    let sandbox = &witness.sandbox;
    let (control, host) = (witness.memory(), Memory::of(witness.host()));
    let many = [&[0x81, 0xa6][..], b"pieces", &[0xdd, 0, 3, 0xd0, 0x90], &[0x80; 250_000]].concat();
    let nested = vec![0x91; 250_000];
    for body in [&many, &nested] {
        let mut connection = open(&of_control(sandbox)).await;
        for kind in ["content.put", "content.missing", "declare", "render"] {
            let refused = ask(&mut connection, "catalogue", kind, body.clone()).await.unwrap_err();
            assert!(refused.is("malformed"), "{kind}: {refused:?}");
        }
        let mut connection = open(&of_host(sandbox)).await;
        let refused = ask(&mut connection, "link", "host.enrol", body.clone()).await.unwrap_err();
        assert!(refused.is("unreadable_message"), "{refused:?}");
    }
    control.assert_grew_at_most(MOST_HELD + WORK, "bombs on the control plane's socket");
    host.assert_grew_at_most(MOST_HELD + WORK, "bombs on the host's socket");
    witness.works();
}
