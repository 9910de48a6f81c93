use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{LONGEST_STATUS, keepalive, one_line, ready, status, stopping, watchdog_interval};

#[test]
fn a_status_cannot_smuggle_an_assignment() {
    let told = one_line("failed:\nMAINPID=1\r\0\u{7f}end");
    assert_eq!(told, "failed: MAINPID=1   end");
}

#[test]
fn a_long_status_is_cut_between_characters() {
    let told = one_line(&"ü".repeat(10_000));
    assert_eq!(told.chars().count(), LONGEST_STATUS);
}

#[test]
fn without_a_notification_socket_telling_systemd_does_nothing() {
    assert!(std::env::var_os("NOTIFY_SOCKET").is_none(), "the tests do not run as a notifying unit");
    ready("up");
    status("well");
    keepalive();
    stopping();
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the notifying process is this test program itself")]
fn systemd_hears_ready_status_keepalive_and_stopping_each_as_one_message() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut unit = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "systemd::tests::a_process_that_notifies"])
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "3000000")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let heard: Vec<_> = (0..4)
        .map(|_| {
            let mut bytes = [0; 1000];
            let length = socket.recv(&mut bytes).unwrap();
            String::from_utf8(bytes[..length].to_vec()).unwrap().trim().to_owned()
        })
        .collect();
    assert_eq!(heard, ["READY=1\nSTATUS=up MAINPID=1", "STATUS=working", "WATCHDOG=1", "STOPPING=1"]);
    assert!(unit.wait().unwrap().success());
}

#[test]
#[ignore = "this is the other process of the test above"]
fn a_process_that_notifies() {
    assert_eq!(watchdog_interval(), Some(Duration::from_secs(3)));
    ready("up\nMAINPID=1");
    status("working");
    keepalive();
    stopping();
}
