use std::os::unix::fs::PermissionsExt as _;

use tenure_protocol::machine::MachineState;
use tenure_protocol::secret::Secret;
use tenure_protocol::session;
use tenure_protocol::wire::CallError;

use super::*;
use crate::daemon::{Daemon, Options, start};
use crate::link::tests::fake::Fake;

async fn running() -> (tempfile::TempDir, Ground, Daemon) {
    let folder = tempfile::tempdir().unwrap();
    let ground = Ground::new(folder.path(), true);
    let daemon = start(Options::at(ground.clone())).await.unwrap();
    (folder, ground, daemon)
}

async fn connect(ground: &Ground) -> Outgoing {
    let stream = UnixStream::connect(ground.socket()).await.unwrap();
    let (outgoing, _, exchange) = exchange(Connection::new(stream, frame::MOST), IDLE);
    tokio::spawn(exchange.run());
    outgoing
}

const WITHIN: Duration = Duration::from_secs(20);

fn refused<T: std::fmt::Debug>(result: Result<T, CallError>) -> Refusal {
    match result {
        Err(CallError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_socket_is_open_to_its_owner_alone_and_goes_with_the_host() {
    let (_folder, ground, daemon) = running().await;
    assert_eq!(std::fs::metadata(ground.socket()).unwrap().permissions().mode() & 0o777, 0o600);
    let status = connect(&ground).await.call("link", &Status {}, WITHIN).await.unwrap();
    assert_eq!((status.machine_state, status.identity, status.owned), (MachineState::Hosted, None, 0));
    daemon.stop().await;
    assert!(!ground.socket().exists());
}

#[tokio::test]
async fn what_somebody_else_has_at_the_sockets_place_stays_when_the_host_ends() {
    let (_folder, ground, daemon) = running().await;
    std::fs::remove_file(ground.socket()).unwrap();
    std::fs::write(ground.socket(), "theirs").unwrap();
    daemon.stop().await;
    assert_eq!(std::fs::read_to_string(ground.socket()).unwrap(), "theirs");
    // Nor is what lay in the way from the start.
    let daemon = start(Options::at(ground.clone())).await.unwrap();
    daemon.stop().await;
    assert_eq!(std::fs::read_to_string(ground.socket()).unwrap(), "theirs");
}

// rule: S-02
#[tokio::test]
async fn what_belongs_to_another_door_is_refused_unread() {
    let (_folder, ground, daemon) = running().await;
    let host = connect(&ground).await;
    assert_eq!(refused(host.call("link", &session::Renew {}, WITHIN).await).code, "wrong_door");
    let unknown = host.call_raw("link", "host.explode", Vec::new(), WITHIN).await;
    assert_eq!(refused(unknown).code, "unsupported_kind");
    daemon.stop().await;
}

// rule: H-12
#[tokio::test]
async fn a_token_through_the_socket_makes_the_running_host_join() {
    let (_folder, ground, daemon) = running().await;
    let (fake, host) = (Fake::start().await, connect(&ground).await);
    let nonsense = Enrol { token: Secret::new("hello".to_owned()) };
    assert_eq!(refused(host.call("link", &nonsense, WITHIN).await).code, "not_a_token");
    let enrol = Enrol { token: fake.token("edge-1", 1).text() };
    let enrolled = host.call("link", &enrol, WITHIN).await.unwrap();
    assert_eq!(enrolled.node.as_str(), "edge-1");
    fake.until(|book| book.hellos.len() == 1).await;
    let status = host.call("link", &Status {}, WITHIN).await.unwrap();
    assert_eq!(status.identity.unwrap().node.as_str(), "edge-1");
    daemon.stop().await;
}

#[tokio::test]
async fn a_pass_by_hand_on_a_machine_with_nothing_to_hold_says_so() {
    let (_folder, ground, daemon) = running().await;
    let host = connect(&ground).await;
    assert_eq!(refused(host.call("reconcile", &Apply {}, WITHIN).await).code, "nothing_declared");
    assert!(host.call("reconcile", &Outcomes { after: None }, WITHIN).await.unwrap().outcomes.is_empty());
    assert!(host.call("store", &Owned { after: None }, WITHIN).await.unwrap().owned.is_empty());
    daemon.stop().await;
}

#[tokio::test]
async fn a_root_with_a_very_long_path_has_its_socket_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let ground = Ground::new(folder.path().join("d".repeat(120)), true);
    let daemon = start(Options::at(ground.clone())).await.unwrap();
    let (way, _open) = reachable(&ground.socket()).unwrap();
    UnixStream::connect(way).await.unwrap();
    daemon.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_socket_that_cannot_be_bound_is_tried_until_it_can_be_and_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("run/api.sock");
    let first = bind(&place, &OnceLock::new());
    assert!(first.is_err());
    let waiting = tokio::spawn({
        let place = place.clone();
        async move { bound(first, &place, &OnceLock::new()).await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    std::fs::create_dir(place.parent().unwrap()).unwrap();
    drop(waiting.await.unwrap());
    assert!(place.exists());
}

#[tokio::test]
async fn a_part_that_is_being_started_anew_is_said_to_be_busy_and_what_was_asked_may_still_be_done() {
    let (_folder, ground, daemon) = running().await;
    // The link of another life, in which nobody listens yet.
    let behind = Behind {
        ground,
        store: daemon.store().clone(),
        link: Link::new(),
        reconcile: daemon.reconcile.clone(),
        outbox: Outbox::default(),
    };
    let (kind, body) = (Status::KIND.name.to_owned(), codec::encode(&Status {}));
    let asked = Request { to: "link".to_owned(), id: 1, kind, body };
    let refusal = dispatch(&behind, asked).await.unwrap_err();
    assert!(refusal.is("host_busy") && refusal.means.contains("may still be done"), "{refusal:?}");
    daemon.stop().await;
}
