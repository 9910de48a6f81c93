//! `tenure up --sandbox`: the first thing a newcomer types.

use nix::sys::signal::Signal;
use tenure_tests::program::{Running, run};
use tenure_tests::sandbox::{SOON, free_port, text};
use tenure_tests::wait;

struct Up {
    folder: tempfile::TempDir,
    listen: String,
}

impl Up {
    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("up-").tempdir().unwrap();
        Self { folder, listen: format!("127.0.0.1:{}", free_port()) }
    }

    fn start(&self) -> Running {
        let root = text(self.folder.path());
        let arguments = ["up", "--sandbox", "--root", &root, "--listen", &self.listen];
        Running::start("tenure", &arguments, &[], self.folder.path().join(format!("up-{}.log", free_port())))
    }

    /// Starts it and waits until it has printed what to try next.
    fn ready(&self) -> (Running, Vec<String>) {
        let up = self.start();
        let commands = wait::until("three commands to try are printed", SOON, || {
            let commands = commands(&up.said());
            (commands.len() == 3).then_some(commands)
        });
        (up, commands)
    }
}

fn commands(said: &str) -> Vec<String> {
    said.lines()
        .map(str::trim)
        .filter(|line| line.starts_with('/') && line.contains("--socket"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn what_it_prints_to_try_next_works_as_printed_and_a_second_run_continues() {
    let place = Up::new();
    let (up, commands) = place.ready();
    for command in &commands {
        let words: Vec<&str> = command.split_whitespace().collect();
        assert!(words[0].ends_with("/tenure"), "{command}");
        run("tenure", &words[1..], place.folder.path()).expect(0);
    }
    let socket = commands[0].split_whitespace().skip_while(|word| *word != "--socket").nth(1).unwrap();
    let nodes =
        || run("tenure", &["nodes", "--json", "--socket", socket], place.folder.path()).expect(0).json();
    wait::until_true("the example is applied", SOON, || nodes()[0]["revision"]["applied"] == 1);
    let fencing = || {
        run("tenure", &["node", "sandbox", "--json", "--socket", socket], place.folder.path()).json()["fencing_token"].clone()
    };
    let before = fencing();
    let status = up.stop();
    assert!(status.success(), "{status:?}");

    let (up, _) = place.ready();
    wait::until_true("the node is ready again", SOON, || nodes()[0]["state"] == "ready");
    assert_eq!(nodes()[0]["revision"]["declared"], 1);
    assert_eq!(fencing(), before, "the second run enrolled anew");
    up.signal(Signal::SIGINT);
    let mut up = up;
    assert!(up.ended_within(SOON).success());
    assert!(std::net::TcpStream::connect(&place.listen).is_err(), "the control plane still runs");
}

#[test]
fn a_port_that_somebody_holds_is_refused_with_the_holders_name() {
    let place = Up::new();
    let _holder = std::net::TcpListener::bind(&place.listen).unwrap();
    let mut up = place.start();
    let status = up.ended_within(SOON);
    assert_eq!(status.code(), Some(3), "{}", up.said());
    let pid = std::process::id().to_string();
    assert!(up.said().contains(&place.listen) && up.said().contains(&pid), "{}", up.said());
}

#[test]
fn a_second_up_on_the_same_state_is_refused_with_the_first_ones_name() {
    let place = Up::new();
    let (first, _) = place.ready();
    let mut second = place.start();
    assert_eq!(second.ended_within(SOON).code(), Some(3), "{}", second.said());
    assert!(second.said().contains(&first.pid().to_string()), "{}", second.said());
}

#[test]
fn when_up_is_killed_neither_daemon_is_left_behind() {
    let place = Up::new();
    let (up, _) = place.ready();
    up.kill();
    wait::until_true("both daemons are gone", SOON, || {
        let root = text(place.folder.path());
        !processes().iter().any(|command| command.contains(&root))
    });
}

fn processes() -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .collect()
}
