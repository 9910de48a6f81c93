use super::*;
use tenure_protocol::machine::MachineState;

fn ground() -> (tempfile::TempDir, Ground) {
    let folder = tempfile::tempdir().unwrap();
    let ground = Ground::new(folder.path(), true);
    (folder, ground)
}

#[tokio::test]
async fn a_host_without_a_control_plane_is_up_idle_and_answers() {
    let (_folder, ground) = ground();
    let daemon = start(Options::at(ground)).await.unwrap();
    assert_eq!(daemon.link.view().await.unwrap().machine, MachineState::Hosted);
    assert_eq!(daemon.store().last_pass().unwrap(), None, "there is nothing to hold");
    daemon.stop().await;
}

#[tokio::test]
async fn a_second_host_on_the_same_store_is_refused_with_the_holders_pid() {
    let (_folder, ground) = ground();
    let daemon = start(Options::at(ground.clone())).await.unwrap();
    let refusal = start(Options::at(ground)).await.unwrap_err().refusal();
    assert_eq!(refusal.code, "store_locked");
    assert!(refusal.remedy.contains(&std::process::id().to_string()), "{}", refusal.remedy);
    daemon.stop().await;
}

#[tokio::test]
async fn a_configuration_that_cannot_be_read_stops_the_start_before_the_store_is_made() {
    let (_folder, ground) = ground();
    ground.create().unwrap();
    std::fs::write(ground.config(), "colour = \"blue\"\n").unwrap();
    assert_eq!(start(Options::at(ground.clone())).await.unwrap_err().refusal().code, "config_unusable");
    assert!(!ground.store().exists());
}

#[tokio::test]
async fn a_stopped_host_leaves_the_store_free_for_the_next() {
    let (_folder, ground) = ground();
    for _ in 0..3 {
        start(Options::at(ground.clone())).await.unwrap().stop().await;
    }
}

const SOON: Duration = Duration::from_secs(20);

// case: O-05
#[tokio::test]
async fn a_store_that_is_removed_under_a_running_host_is_put_back_whole_and_opened_anew() {
    let (_folder, ground) = ground();
    let daemon = start(Options::at(ground.clone())).await.unwrap();
    let nothing = daemon.reconcile.ask(SOON).await.unwrap().unwrap_err();
    assert_eq!(nothing.code, "nothing_declared", "and the pass of the start is over");
    daemon.store().set_note("life", b"whole").unwrap();
    let id = daemon.store().store_id();
    for name in ["store.db", "store.db-wal", "store.db-shm"] {
        std::fs::remove_file(ground.state().join(name)).unwrap();
    }
    let refused = daemon.reconcile.ask(SOON).await.unwrap().unwrap_err();
    assert_eq!(refused.code, "store_removed");
    tokio::time::timeout(SOON, daemon.store_lost()).await.unwrap();
    daemon.stop().await;
    let daemon = start(Options::at(ground)).await.unwrap();
    assert_eq!(daemon.store().store_id(), id);
    assert_eq!(daemon.store().note("life").unwrap().as_deref(), Some(&b"whole"[..]));
    daemon.stop().await;
}

struct Mounted(std::path::PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        nix::mount::umount2(&self.0, nix::mount::MntFlags::MNT_DETACH).unwrap();
    }
}

// case: O-05
#[tokio::test]
async fn a_log_that_is_removed_on_a_full_disk_is_not_closed_over_and_room_mends_it() {
    use nix::mount::{MsFlags, mount};
    let (_folder, ground) = ground();
    ground.create().unwrap();
    let state = ground.state();
    if mount(Some("tmpfs"), &state, Some("tmpfs"), MsFlags::empty(), Some("size=4m")).is_err() {
        eprintln!("skipped: mounting needs root");
        return;
    }
    let _mounted = Mounted(state.clone());
    let daemon = start(Options::at(ground.clone())).await.unwrap();
    daemon.reconcile.ask(SOON).await.unwrap().unwrap_err();
    daemon.store().set_note("life", &[7; 256 * 1024]).unwrap();
    let mut file = std::fs::File::create(state.join("ballast")).unwrap();
    while std::io::Write::write(&mut file, &[0; 4096]).is_ok_and(|wrote| wrote > 0) {}
    drop(file);
    std::fs::remove_file(state.join("store.db-wal")).unwrap();
    let refused = daemon.reconcile.ask(SOON).await.unwrap().unwrap_err();
    assert_eq!(refused.code, "store_full");
    assert!(tokio::time::timeout(Duration::ZERO, daemon.store_lost()).await.is_err(), "it stays open");
    std::fs::remove_file(state.join("ballast")).unwrap();
    assert_eq!(daemon.reconcile.ask(SOON).await.unwrap().unwrap_err().code, "store_log_removed");
    tokio::time::timeout(SOON, daemon.store_lost()).await.unwrap();
    daemon.stop().await;
    let daemon = start(Options::at(ground)).await.unwrap();
    assert_eq!(daemon.store().note("life").unwrap().as_deref(), Some(&[7; 256 * 1024][..]));
    daemon.stop().await;
}

// case: O-06
#[tokio::test]
async fn a_lost_store_beside_a_credential_that_cannot_be_read_makes_no_new_identity_and_asks_for_a_reinvite()
{
    for (name, text) in
        [("node.key", ""), ("node.key", "garbage"), ("node.identity", ""), ("node.identity", "?")]
    {
        let (_folder, ground) = ground();
        ground.create().unwrap();
        std::fs::write(ground.node_key(), "garbage").unwrap();
        std::fs::write(ground.state().join(name), text).unwrap();
        let daemon = start(Options::at(ground.clone())).await.unwrap();
        let status = crate::status::read(daemon.store(), &ground, None, None).unwrap();
        assert_eq!((status.machine_state, status.identity), (MachineState::Hosted, None));
        let credential = status.credential.unwrap();
        assert_eq!(credential.code, "credential_unreadable", "{credential:?}");
        assert!(credential.remedy.contains("tenure reinvite"), "{credential:?}");
        daemon.stop().await;
        assert_eq!(std::fs::read_to_string(ground.state().join(name)).unwrap(), text);
    }
}

// rule: I-03
#[tokio::test]
async fn a_manifest_and_a_copied_identity_that_were_damaged_or_removed_are_written_again_at_the_start() {
    use crate::manifest::{Finding, look};
    let (_folder, ground) = ground();
    start(Options::at(ground.clone())).await.unwrap().stop().await;
    let store = Store::open(&ground, false, Moment::from_millis(1)).unwrap().store;
    store.set_identity(&crate::manifest::tests::identity("edge-1")).unwrap();
    store.close();
    let copy = ground.state().join("node.identity");
    for damage in [Some(""), Some("{"), Some("\0\0\0\0"), None] {
        for path in [ground.manifest(), copy.clone()] {
            match damage {
                Some(text) => std::fs::write(path, text).unwrap(),
                None => std::fs::remove_file(path).unwrap(),
            }
        }
        start(Options::at(ground.clone())).await.unwrap().stop().await;
        assert!(matches!(look(&ground.manifest()), Finding::Found(_)), "{damage:?}");
        assert!(std::fs::read(&copy).unwrap().len() > 100, "{damage:?}");
    }
    // What cannot be replaced is said and costs nothing.
    std::fs::remove_file(ground.manifest()).unwrap();
    std::fs::create_dir(ground.manifest()).unwrap();
    start(Options::at(ground.clone())).await.unwrap().stop().await;
    assert!(ground.manifest().is_dir());
}
