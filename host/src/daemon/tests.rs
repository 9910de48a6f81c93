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
