use super::{LONGEST_STATUS, keepalive, one_line, ready, status, stopping};

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
