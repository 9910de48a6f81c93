use super::*;

#[test]
fn a_second_up_on_the_same_folder_is_refused_with_the_pid_of_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("up.lock");
    let held = hold(&path, dir.path()).unwrap();
    let refusal = hold(&path, dir.path()).unwrap_err();
    assert_eq!(refusal.code, "state_held");
    assert_eq!(
        refusal.happened,
        format!("`tenure up` with pid {} works in {}", std::process::id(), dir.path().display())
    );
    drop(held);
    assert!(hold(&path, dir.path()).is_ok());
}

#[test]
fn a_lock_that_is_a_link_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("up.lock");
    std::os::unix::fs::symlink(dir.path().join("elsewhere"), &path).unwrap();
    assert_eq!(hold(&path, dir.path()).unwrap_err().code, "cannot_lock");
    assert!(!dir.path().join("elsewhere").exists());
}
