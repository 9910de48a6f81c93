//! How long the daemon as it is shipped takes from exec until it says READY, with a store of 10 000 owned files, and
//! until its first pass is done; beside nats-server, from exec until it accepts.

use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use tenure_tests::program::Running;
use tenure_tests::sandbox::{SOON, free_port, text};
use tenure_tests::wait;

use super::subject::Subject;
use super::{ROUNDS, Rounds, milliseconds};
use crate::row::Rows;

const NATS: &str = "nats-server";
/// Far below anything that is measured here, where looking costs next to nothing.
const OFTEN: Duration = Duration::from_micros(50);
/// How often the log is read: whoever reads it more often takes the time from the pass that is measured.
const READ: Duration = Duration::from_millis(1);
/// What is asked of the first pass over 1 000 files, in milliseconds.
const FIRST_PASS: (&str, f64) = ("the goal", 25.0);

pub(super) fn run(rows: Rows) {
    let mut rounds = Rounds::default();
    let (many, some) = (held(10_000), held(1_000));
    let has_nats = super::peers::place_of(NATS);
    for _ in 0..ROUNDS {
        rounds.put("ready", until_ready(&many));
        rounds.put("first pass", until_first_pass(&some));
        rounds.put("first pass of 10k", until_first_pass(&many));
        if let Some(nats) = &has_nats {
            rounds.put(NATS, until_accepting(&text(nats), &many));
        }
    }
    match has_nats {
        Some(_) => {
            let nats = rounds.median(NATS);
            rows.alone("nats-server, exec to accepting", 0, nats, "ms");
            rows.against("ready", 10_000, rounds.median("ready"), "ms", (NATS, nats));
        }
        None => {
            rows.skipped(NATS, "not installed");
            rows.alone("ready", 10_000, rounds.median("ready"), "ms");
        }
    }
    rows.against("exec to first pass done", 1_000, rounds.median("first pass"), "ms", FIRST_PASS);
    rows.alone("exec to first pass done", 10_000, rounds.median("first pass of 10k"), "ms");
}

/// Files that are as declared, on a machine that belongs to a control plane nobody answers for.
fn held(n: usize) -> Subject {
    let subject = Subject::of(n);
    subject.apply();
    subject.belong();
    subject
}

fn until_ready(subject: &Subject) -> f64 {
    let path = subject.at("notify");
    let _ = std::fs::remove_file(&path);
    let socket = UnixDatagram::bind(&path).expect("a socket of the benchmark");
    socket.set_read_timeout(Some(SOON)).expect("a socket of the benchmark");
    let (began, host) = (Instant::now(), start(subject, &[("NOTIFY_SOCKET", &text(&path))]));
    let mut said = [0; 1024];
    loop {
        let length = socket.recv(&mut said).expect("the daemon says that it is ready");
        if said[..length].split(|byte| *byte == b'\n').any(|line| line == b"READY=1") {
            break;
        }
    }
    let took = milliseconds(began.elapsed());
    host.stop();
    took
}

fn until_first_pass(subject: &Subject) -> f64 {
    let _ = std::fs::remove_file(subject.at("host.log"));
    let (began, host) = (Instant::now(), start(subject, &[]));
    wait::until_each(READ, "the first pass is done", SOON, || {
        let said = host.said();
        let line = said.lines().find(|line| line.contains("reconciled"))?;
        assert!(line.contains("unchanged=") && !line.contains("applied="), "{line}");
        Some(())
    });
    let took = milliseconds(began.elapsed());
    host.stop();
    took
}

fn start(subject: &Subject, environment: &[(&str, &str)]) -> Running {
    let root = text(&subject.at("root"));
    let arguments = ["run", "--root", &root, "--sandbox"];
    Running::start("tenure-host", &arguments, environment, subject.at("host.log"))
}

fn until_accepting(program: &str, subject: &Subject) -> f64 {
    let port = free_port();
    let arguments = ["--addr", "127.0.0.1", "--port", &port.to_string()];
    let log = subject.at("nats.log");
    let (began, nats) = (Instant::now(), Running::start(program, &arguments, &[], log));
    wait::until_each(OFTEN, "nats-server accepts", SOON, || TcpStream::connect(("127.0.0.1", port)).ok());
    let took = milliseconds(began.elapsed());
    nats.kill();
    took
}
