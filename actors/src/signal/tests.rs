use std::io::{BufRead, BufReader};
use std::pin::pin;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::shutdown_asked;

/// The stop request has to be listened for before the signal comes: one poll does that.
async fn is_listening(asked: &mut (impl Future<Output = &'static str> + Unpin)) {
    let early = tokio::time::timeout(Duration::ZERO, asked).await;
    assert!(early.is_err(), "nobody has asked yet");
}

#[tokio::test]
async fn a_first_signal_is_told_by_its_name() {
    let mut asked = pin!(shutdown_asked());
    is_listening(&mut asked).await;
    kill(Pid::this(), Signal::SIGTERM).unwrap();
    assert_eq!(asked.await, "SIGTERM");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the other process is this test program itself")]
fn a_second_signal_ends_a_process_that_does_not_stop() {
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "signal::tests::a_process_that_does_not_stop"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = Pid::from_raw(i32::try_from(other.id()).unwrap());
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("listening")));
    kill(pid, Signal::SIGTERM).unwrap();
    assert!(lines.any(|line| line.contains("asked by SIGTERM")));
    kill(pid, Signal::SIGINT).unwrap();
    assert_eq!(other.wait().unwrap().code(), Some(128 + 2));
}

#[tokio::test]
#[ignore = "this is the other process of the test above"]
async fn a_process_that_does_not_stop() {
    let mut asked = pin!(shutdown_asked());
    is_listening(&mut asked).await;
    println!("listening");
    println!("asked by {}", asked.await);
    std::future::pending::<()>().await;
}
