//! Each refusal of the control plane, brought about by what brings it about.

use std::path::Path;

use tenure_actors::StartError;
use tenure_actors::clock::ManualClock;
use tenure_actors::database::{Create, OpenError, rusqlite};
use tenure_protocol::content::{Piece, Put, Wanted};
use tenure_protocol::id::{Digest, Generation};
use tenure_protocol::operator::{Declare, Folder, FolderFile, Get, Invite};
use tenure_protocol::refusal::{Explain as _, Refusal};
use tenure_protocol::token::NoMasterKey;
use tenure_protocol::wire::Connection;
use tenure_protocol::wire::exchange::exchange;
use tenure_protocol::wire::frame::MOST;
use tokio::net::UnixStream;

use super::scripted::{SOON, START, Up, invitation, options, refusal, up, up_with};
use crate::daemon::{Options, StartRefusal, start};
use crate::ground::Ground;
use crate::node::recognise::SessionRefusal;
use crate::node::refusals::NodeRefusal;
use crate::store::StoreError;

/// Why a control plane below `root` does not start.
async fn not_started(root: &Path, change: impl FnOnce(Options) -> Options) -> Refusal {
    match start(change(options(root, &ManualClock::at(START)))).await {
        Ok(_) => panic!("it started"),
        Err(refusal) => refusal.refusal(),
    }
}

// case: O-70
#[tokio::test]
async fn a_start_that_the_machine_does_not_allow_names_what_is_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let root = |name: &str| folder.path().join(name);
    std::fs::write(root("file"), "").unwrap();
    assert_eq!(not_started(&root("file"), |as_is| as_is).await.code, "directories_not_made");

    let ground = Ground::new(root("configured"));
    std::fs::create_dir_all(ground.config().parent().unwrap()).unwrap();
    std::fs::write(ground.config(), "listen = [\n").unwrap();
    let refusal = not_started(&root("configured"), |as_is| as_is).await;
    assert_eq!(refusal.code, "config_unusable");
    assert!(refusal.happened.contains("control.toml"), "{refusal:?}");

    let foreign = "192.0.2.1:7443".parse().unwrap();
    let refusal = not_started(&root("foreign"), |as_is| Options { listen: Some(foreign), ..as_is }).await;
    assert_eq!(refusal.code, "cannot_listen");

    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap();
    let refusal = not_started(&root("taken"), |as_is| Options { listen: Some(taken), ..as_is }).await;
    assert_eq!(refusal.code, "address_in_use");

    let refusal = not_started(&root(&"long".repeat(40)), |as_is| as_is).await;
    assert_eq!(refusal.code, "socket_not_made");
}

// case: O-70
#[tokio::test]
async fn keys_that_cannot_be_used_are_told_apart_and_never_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let ground = Ground::new(folder.path());
    ground.create().unwrap();
    std::fs::create_dir(ground.master_key()).unwrap();
    crate::store::sqlite::Sqlite::open(&ground, Create::WhenAbsent).unwrap().close();
    assert_eq!(not_started(folder.path(), |as_is| as_is).await.code, "keys_not_made");
    std::fs::remove_dir(ground.master_key()).unwrap();

    start(options(folder.path(), &ManualClock::at(START))).await.unwrap().stop().await;
    let key = std::fs::read(ground.ca_key()).unwrap();
    std::fs::write(ground.ca_key(), "half").unwrap();
    let refusal = not_started(folder.path(), |as_is| as_is).await;
    assert_eq!(refusal.code, "key_unreadable");
    assert!(refusal.happened.contains("ca.key"), "{refusal:?}");
    std::fs::remove_file(ground.ca_key()).unwrap();
    assert_eq!(not_started(folder.path(), |as_is| as_is).await.code, "key_missing");
    std::fs::write(ground.ca_key(), key).unwrap();
    std::fs::remove_file(ground.store()).unwrap();
    assert_eq!(not_started(folder.path(), |as_is| as_is).await.code, "store_gone");
}

// case: O-70
#[tokio::test]
async fn a_store_that_cannot_be_opened_is_refused_by_what_is_wrong_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let ground = Ground::new(folder.path());
    let control = start(options(folder.path(), &ManualClock::at(START))).await.unwrap();
    assert_eq!(not_started(folder.path(), |as_is| as_is).await.code, "store_locked");
    control.stop().await;
    let good = std::fs::read(ground.store()).unwrap();
    for (pragma, code) in
        [("PRAGMA user_version = 9999", "store_newer"), ("PRAGMA application_id = 7", "store_not_ours")]
    {
        rusqlite::Connection::open(ground.store()).unwrap().execute_batch(pragma).unwrap();
        assert_eq!(not_started(folder.path(), |as_is| as_is).await.code, code);
        std::fs::write(ground.store(), &good).unwrap();
    }
    for (bytes, code) in
        [(b"".as_slice(), "store_empty"), (b"no database at all, but text", "store_not_a_database")]
    {
        std::fs::write(ground.store(), bytes).unwrap();
        assert_eq!(not_started(folder.path(), |as_is| as_is).await.code, code);
    }
}

// case: O-70
#[test]
fn what_no_test_machine_has_is_told_in_its_own_words_all_the_same() {
    let path = || "/net/tenure.db".into();
    let network = OpenError::OnNetwork { path: path(), kind: "nfs" };
    let migration = OpenError::Migration {
        path: path(),
        number: 3,
        source: std::sync::Arc::new(rusqlite::Error::InvalidQuery),
    };
    let part = StartError::Failed { child: "fleet".to_owned(), why: "it broke".to_owned() };
    let nodes = Refusal::new("store_busy", "the control plane's store is busy", "", "");
    let cases: [(StartRefusal, &str, &str); 4] = [
        (network.into(), "store_on_network", "move the state directory"),
        (migration.into(), "store_migration", "/net/tenure.db"),
        (part.into(), "not_started", "look at the lines"),
        (StartRefusal::Nodes(nodes), "not_started", "look at the lines"),
    ];
    for (refusal, code, remedy) in cases {
        let refusal = refusal.refusal();
        assert_eq!(refusal.code, code);
        assert!(refusal.remedy.contains(remedy), "{refusal:?}");
    }
    assert_eq!(StoreError::Fault("no such table".to_owned()).code(), "store_fault");
    assert_eq!(NodeRefusal::from(NoMasterKey).code(), "no_master_key");
    assert_eq!(SessionRefusal::from(NoMasterKey).code(), "no_master_key");
}

#[tokio::test]
async fn an_invitation_that_could_not_be_used_is_refused_by_name() {
    let up = up().await;
    let short = Invite { valid_ms: Some(1), ..invitation("edge-1") };
    assert!(refusal(up.ask("fleet", &short).await).is("validity"));

    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(START);
    let host = |number: u32| format!("{number}{}:7443", ".long".repeat(38));
    let advertise = (0..8).map(host).collect();
    let up = up_with(Options { advertise, ..options(folder.path(), &clock) }, folder, clock).await;
    assert!(refusal(up.ask("fleet", &invitation("edge-1")).await).is("addresses_too_long"));
}

#[tokio::test]
async fn a_node_that_proves_another_generation_is_told_which_is_enrolled() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    host.enrolled.generation = Generation(9);
    let refused = host.session_as(&up, |hello| hello).await.err().unwrap();
    assert!(refused.is("wrong_generation"), "{refused:?}");
}

async fn put(up: &Up, piece: Piece) -> Refusal {
    refusal(up.ask("catalogue", &Put { pieces: vec![piece] }).await)
}

#[tokio::test]
async fn content_that_is_not_what_it_is_called_is_refused_by_what_is_wrong_with_it() {
    let up = up().await;
    let sha256 = Digest::of(b"four");
    let piece = |size, offset, bytes: &[u8]| Piece { sha256, size, offset, bytes: bytes.to_vec() };
    assert!(put(&up, piece(4, 9, b"four")).await.is("malformed_piece"));
    assert!(put(&up, piece(4, 2, b"ur")).await.is("out_of_order"));
    assert!(put(&up, piece(4, 0, b"five")).await.is("wrong_digest"));
    assert!(refusal(up.ask("catalogue", &Get { wanted: vec![] }).await).is("nothing_wanted"));
    let wanted = vec![Wanted { sha256, offset: 0 }];
    assert!(refusal(up.ask("catalogue", &Get { wanted }).await).is("no_content"));
}

#[tokio::test]
async fn a_listing_that_does_not_say_what_was_uploaded_is_refused_and_nothing_is_declared() {
    let up = up().await;
    let declare = |folder| Declare { folder, plan: false, allow_removals: None };
    let listing = up.upload(b"no JSON").await;
    assert!(refusal(up.ask("catalogue", &declare(listing)).await).is("listing_unreadable"));
    let sha256 = up.upload(b"[node]").await;
    let files = vec![FolderFile { path: "fleet.toml".to_owned(), sha256, size: 3 }];
    let listing = up.upload(&serde_json::to_vec(&Folder { files }).unwrap()).await;
    let refused = refusal(up.ask("catalogue", &declare(listing)).await);
    assert!(refused.is("wrong_size") && refused.happened.contains("fleet.toml"), "{refused:?}");
}

// rule: S-22
#[tokio::test]
async fn the_sixty_fifth_who_speaks_to_the_socket_at_once_is_told_so() {
    let up = up().await;
    let mut held = Vec::new();
    loop {
        let stream = UnixStream::connect(&up.control.socket).await.unwrap();
        let (outgoing, incoming, frames) = exchange(Connection::new(stream, MOST), SOON);
        tokio::spawn(frames.run());
        let asked = outgoing.call("fleet", &tenure_protocol::operator::Status {}, SOON).await;
        if asked.is_err() {
            let refused = refusal(asked);
            assert!(refused.is("too_many_connections"), "{refused:?}");
            break;
        }
        held.push((outgoing, incoming));
        assert!(held.len() < 70, "nobody is ever refused");
    }
    assert_eq!(held.len(), 64, "whoever has asked keeps its place, and the operator of this test has not");
}
