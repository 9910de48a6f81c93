use std::os::unix::fs::PermissionsExt as _;

use tenure_actors::clock::ManualClock;
use tenure_actors::database::OpenError;
use tenure_protocol::refusal::Explain as _;

use super::scripted::{START, options, up};
use crate::daemon::{Options, StartRefusal, start};
use crate::ground::Ground;
use crate::keys::KeyError;
use crate::listener::ListenError;

async fn refused(options: Options) -> StartRefusal {
    match start(options).await {
        Ok(_) => panic!("it started"),
        Err(refusal) => refusal,
    }
}

#[tokio::test]
async fn a_first_start_makes_everything_closed_to_others_and_the_next_one_is_the_same_control_plane() {
    let up = up().await;
    let ground = Ground::new(up.folder.path());
    let mode = |path: std::path::PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(ground.state()), mode(ground.store()), mode(ground.socket())), (0o700, 0o600, 0o660));
    let (id, ca) = (up.control.plane().founding.control_plane_id, up.control.plane().keys.ca());
    let up = up.restart().await;
    assert_eq!((up.control.plane().founding.control_plane_id, up.control.plane().keys.ca()), (id, ca));
    assert_eq!(up.control.plane().founding.epoch.number, 1);
}

#[tokio::test]
async fn a_missing_key_or_store_is_refused_by_name_and_nothing_is_made_in_its_place() {
    let up = up().await;
    let ground = Ground::new(up.folder.path());
    let (folder, clock) = (up.folder, up.clock);
    up.control.stop().await;
    let key = std::fs::read(ground.ca_key()).unwrap();
    std::fs::remove_file(ground.ca_key()).unwrap();
    let refusal = refused(options(folder.path(), &clock)).await;
    assert!(matches!(&refusal, StartRefusal::Keys(KeyError::Missing { .. })), "{refusal}");
    assert!(!ground.ca_key().exists());
    std::fs::write(ground.ca_key(), key).unwrap();
    for ending in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{ending}", ground.store().display()));
    }
    let refusal = refused(options(folder.path(), &clock)).await;
    assert!(matches!(&refusal, StartRefusal::StoreGone(_)), "{refusal}");
    assert!(!ground.store().exists());
}

#[tokio::test]
async fn a_second_one_on_the_same_store_is_refused_with_the_pid_of_the_first() {
    let up = up().await;
    let refusal = refused(options(up.folder.path(), &up.clock)).await;
    let own = std::process::id();
    assert!(
        matches!(&refusal, StartRefusal::Open(OpenError::Locked { pid: Some(pid), .. }) if *pid == own),
        "{refusal}"
    );
    assert!(refusal.refusal().remedy.contains(&own.to_string()));
}

#[tokio::test]
async fn a_port_in_use_is_refused_naming_its_holder_and_leaves_the_store_free() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(START);
    let taken = Options { listen: Some(holder.local_addr().unwrap()), ..options(folder.path(), &clock) };
    let refusal = refused(taken).await;
    let named = |text: &String| text.contains(&std::process::id().to_string());
    assert!(
        matches!(&refusal, StartRefusal::Listen(ListenError::InUse { holder: Some(text), .. }) if named(text)),
        "{refusal}"
    );
    start(options(folder.path(), &clock)).await.unwrap().stop().await;
}

#[tokio::test]
async fn a_first_start_that_was_cut_short_before_it_promised_anything_is_begun_again() {
    let folder = tempfile::tempdir().unwrap();
    let ground = Ground::new(folder.path());
    ground.create().unwrap();
    let store =
        crate::store::sqlite::Sqlite::open(&ground, tenure_actors::database::Create::WhenAbsent).unwrap();
    store.close();
    std::fs::write(ground.ca_key(), b"half").unwrap();
    let clock = ManualClock::at(START);
    start(options(folder.path(), &clock)).await.unwrap().stop().await;
}
