use super::*;

#[test]
fn everything_lies_in_the_state_folder_while_the_kernel_takes_its_paths() {
    let ground = Ground::new("/home/a/.local/state/tenure".into(), Some(Path::new("/run/user/1000")));
    let socket = "/home/a/.local/state/tenure/control/run/tenure-control/api.sock";
    assert_eq!(ground.control_socket(), Path::new(socket));
    assert_eq!(
        ground.host_socket(),
        Path::new("/home/a/.local/state/tenure/machine/run/tenure-host/api.sock")
    );
}

#[test]
fn a_state_folder_with_a_long_path_is_reached_by_a_short_link() {
    let dir = tempfile::tempdir().unwrap();
    let (state, runtime) = (dir.path().join("x".repeat(100)), dir.path().join("r"));
    std::fs::create_dir(&runtime).unwrap();
    let ground = Ground::new(state.clone(), Some(&runtime));
    assert!(ground.control_socket().as_os_str().len() <= MOST);
    ground.create().unwrap();
    ground.create().unwrap();
    std::fs::create_dir_all(ground.control().join("run")).unwrap();
    assert!(state.join("control/run").is_dir());
    assert!(ground.lock().starts_with(&state));
}

#[test]
fn a_link_of_that_name_which_leads_elsewhere_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let (state, runtime) = (dir.path().join("x".repeat(100)), dir.path().join("r"));
    std::fs::create_dir(&runtime).unwrap();
    let ground = Ground::new(state, Some(&runtime));
    symlink("/tmp", ground.control().parent().unwrap()).unwrap();
    assert_eq!(ground.create().unwrap_err().code, "cannot_make_state");
}

#[test]
fn without_a_place_for_the_link_a_long_path_is_refused_before_anything_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("x".repeat(100));
    assert_eq!(Ground::new(state.clone(), None).create().unwrap_err().code, "path_too_long");
    assert!(!state.exists());
}

#[test]
fn the_state_folder_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("s");
    Ground::new(state.clone(), None).create().unwrap();
    for folder in [state.clone(), state.join("control"), state.join("machine")] {
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o7777, 0o700);
    }
}
