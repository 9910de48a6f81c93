use std::sync::{Arc, Mutex};

use super::*;

/// The lines that were said, and a way to wait for one of them.
#[derive(Clone)]
struct Heard {
    lines: Arc<Mutex<Vec<String>>>,
    more: Arc<tokio::sync::Notify>,
}

impl Heard {
    fn new() -> (Self, Lines) {
        let heard = Self { lines: Arc::default(), more: Arc::default() };
        let to = heard.clone();
        let lines = Lines::to(move |line| {
            to.lines.lock().unwrap().push(line.trim_end().to_owned());
            to.more.notify_one();
        });
        (heard, lines)
    }

    async fn until(&self, wanted: &str) {
        let heard = async {
            while !self.lines.lock().unwrap().iter().any(|line| line.contains(wanted)) {
                self.more.notified().await;
            }
        };
        timeout(Duration::from_secs(20), heard)
            .await
            .unwrap_or_else(|_| panic!("{wanted}: {:?}", self.lines));
    }

    fn count(&self, wanted: &str) -> usize {
        self.lines.lock().unwrap().iter().filter(|line| line.contains(wanted)).count()
    }
}

fn shell(script: &str) -> Program {
    Program {
        who: Who::Control,
        path: "/bin/sh".into(),
        name: "sh",
        arguments: vec!["-c".into(), script.into()],
    }
}

#[tokio::test]
async fn a_childs_lines_are_passed_on_and_it_stops_when_asked() {
    let (heard, lines) = Heard::new();
    let script = "trap 'echo going >&2; exit 0' TERM; echo ready >&2; while :; do sleep 0.05; done";
    let kept = Kept::start(shell(script), lines).unwrap();
    heard.until("control │ ready").await;
    kept.stop().await;
    heard.until("control │ going").await;
    heard.until("up      │ the control plane has stopped (exit status 0)").await;
}

#[tokio::test]
async fn a_child_that_dies_is_started_again_after_a_pause_and_both_are_said() {
    let (heard, lines) = Heard::new();
    let kept = Kept::start(shell("echo here >&2; exit 7"), lines).unwrap();
    heard.until("the control plane ended by itself (exit status 7)").await;
    heard.until("the control plane is started again after 1 s").await;
    kept.stop().await;
    assert!(heard.count("control │ here") >= 1);
}

#[tokio::test]
async fn a_child_that_ends_before_it_answers_ends_the_start_with_its_own_exit_status() {
    let dir = tempfile::tempdir().unwrap();
    for (script, exit) in [
        ("echo held by x >&2; exit 3", Exit::Refused),
        ("exit 1", Exit::Failed),
        ("kill -9 $$", Exit::Failed),
    ] {
        let (_, lines) = Heard::new();
        let mut kept = Kept::start(shell(script), lines).unwrap();
        let trouble = kept.until_answering(&dir.path().join("none")).await.unwrap_err();
        assert_eq!((trouble.exit, trouble.refusal.code.as_str()), (exit, "did_not_start"));
        assert_eq!(trouble.refusal.happened.ends_with(": held by x"), exit == Exit::Refused);
        kept.stop().await;
    }
}

#[tokio::test]
async fn a_child_is_in_a_process_group_of_its_own() {
    let (heard, lines) = Heard::new();
    let script = "echo pgid $(ps -o pgid= -p $$) pid $$ >&2; while :; do sleep 0.05; done";
    let kept = Kept::start(shell(script), lines).unwrap();
    heard.until("pid").await;
    let line = heard.lines.lock().unwrap().iter().find(|line| line.contains("pgid")).unwrap().clone();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[3], words[5], "{line}");
    kept.stop().await;
}

#[tokio::test]
async fn somebody_else_who_answers_at_the_socket_is_not_taken_for_the_child() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let _somebody = tokio::net::UnixListener::bind(&socket).unwrap();
    let (_, lines) = Heard::new();
    let mut kept = Kept::start(shell("sleep 0.3; exit 3"), lines).unwrap();
    let trouble = kept.until_answering(&socket).await.unwrap_err();
    assert_eq!((trouble.exit, trouble.refusal.code.as_str()), (Exit::Refused, "did_not_start"));
    kept.stop().await;
}
