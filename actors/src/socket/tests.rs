use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::process::Stdio;

use super::*;

fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("api.sock");
    (folder, path)
}

#[test]
fn a_place_with_nothing_or_with_a_socket_of_nobody_is_vacant() {
    let (_folder, path) = place();
    vacant(&path, &path).unwrap();
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "what an earlier life left");
    vacant(&path, &path).unwrap();
}

#[test]
fn an_earlier_life_of_this_very_process_is_not_in_the_way() {
    let (_folder, path) = place();
    let _before = UnixListener::bind(&path).unwrap();
    vacant(&path, &path).unwrap();
}

#[test]
fn what_is_no_socket_is_named_and_left_as_it_is() {
    let (folder, path) = place();
    std::fs::write(&path, "theirs").unwrap();
    assert_eq!(
        vacant(&path, &path).unwrap_err().to_string(),
        format!("a file lies at {}, where the socket belongs", path.display())
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "theirs");
    std::fs::remove_file(&path).unwrap();
    symlink(folder.path().join("elsewhere"), &path).unwrap();
    assert!(matches!(vacant(&path, &path), Err(InTheWay::NotASocket { what: "a link", .. })));
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(matches!(vacant(&path, &path), Err(InTheWay::NotASocket { what: "a folder", .. })));
}

#[test]
fn a_socket_of_another_kind_that_somebody_has_is_theirs() {
    let (_folder, path) = place();
    let _theirs = UnixDatagram::bind(&path).unwrap();
    assert!(matches!(vacant(&path, &path), Err(InTheWay::InUse { pid: None, .. })));
}

/// Another process that listens at the path until it is killed; it is this very test program, started for one test.
#[test]
fn a_socket_that_another_process_listens_on_is_refused_with_its_name_and_stays_theirs() {
    const PLACE: &str = "TENURE_TEST_LISTEN_AT";
    if let Some(path) = std::env::var_os(PLACE) {
        let _listener = UnixListener::bind(path).unwrap();
        println!("listening");
        std::thread::park();
        return;
    }
    let (_folder, path) = place();
    #[expect(clippy::disallowed_methods, reason = "another process is what this is about")]
    let mut other = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "socket::tests::a_socket_that_another_process_listens_on_is_refused_with_its_name_and_stays_theirs"])
        .env(PLACE, &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(other.stdout.take().unwrap()));
    assert!(lines.any(|line| line.is_ok_and(|line| line.contains("listening"))));
    let refused = vacant(&path, &path).unwrap_err();
    let text = refused.to_string();
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(text.contains("in use by ") && text.contains(&format!("(process {})", other.id())), "{text}");
    vacant(&path, &path).unwrap();
}
