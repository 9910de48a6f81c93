//! What else keeps files as they are wanted, or only compares them, where it is installed: over the same files, beside our
//! rounds, from exec to exit, with nothing to do. What has resources is told one a file, as a declaration has it, in a
//! loop where the program has loops. Each keeps its state in the folder of the subject. Before it is timed each is shown
//! a file that was changed: a program that looks at nothing is fast.

use std::path::{Path, PathBuf};

use tenure_tests::program::ended;

use super::subject::Subject;
use super::{ROUNDS, Rounds, milliseconds};
use crate::row::Rows;

mod call;

use call::Call;

/// A program of others.
struct Peer {
    name: &'static str,
    program: &'static str,
    call: fn(&Subject) -> Call,
    /// How often it is timed; a loop of minutes once.
    rounds: usize,
    /// The most files it is run over, so that a run ends within minutes.
    most: usize,
    /// Whether it puts right what differs, or only tells.
    repairs: bool,
}

const PEERS: [Peer; 5] = [
    Peer {
        name: "sha256sum -c",
        program: "sha256sum",
        call: call::sums,
        rounds: ROUNDS,
        most: 10_000,
        repairs: false,
    },
    Peer {
        name: "rsync -c --fsync",
        program: "rsync",
        call: call::rsync,
        rounds: ROUNDS,
        most: 10_000,
        repairs: true,
    },
    Peer {
        name: "CFEngine, loop",
        program: "cf-agent",
        call: call::cfengine,
        rounds: 3,
        most: 10_000,
        repairs: true,
    },
    Peer {
        name: "Puppet, loop",
        program: "puppet",
        call: call::puppet,
        rounds: 3,
        most: 1_000,
        repairs: true,
    },
    Peer {
        name: "Ansible, loop",
        program: "ansible-playbook",
        call: call::ansible,
        rounds: 1,
        most: 1_000,
        repairs: true,
    },
];

const OURS: &str = "no_change_process";
/// Enough to see whether a program looks.
const SHOWN: usize = 10;

pub(super) fn run(rows: Rows, n: usize) {
    let (subject, mut rounds) = (made(n), Rounds::default());
    let (mut calls, mut skipped) = (Vec::new(), Vec::new());
    for peer in &PEERS {
        match place_of(peer.program) {
            _ if n > peer.most => skipped.push((peer.name, "it would take too long")),
            None => skipped.push((peer.name, "not installed")),
            Some(program) => {
                see_it_look(peer, &program);
                calls.push((peer, program, (peer.call)(&subject)));
            }
        }
    }
    for round in 0..ROUNDS {
        rounds.put(OURS, subject.applied_by_process(&[]));
        for (peer, program, call) in calls.iter().filter(|(peer, ..)| round < peer.rounds) {
            let (took, status) = ended(program, &call.arguments(), &call.environment);
            assert!(status.success(), "{} ended with {status}", peer.name);
            rounds.put(peer.name, milliseconds(took));
        }
    }
    assert_eq!(subject.files.read(), 0, "nobody changed what was as wanted");
    let ours = rounds.median(OURS);
    rows.alone("no_change_process, beside these", n, ours, "ms");
    for (peer, ..) in &calls {
        rows.against(peer.name, n, rounds.median(peer.name), "ms", (OURS, ours));
    }
    for (name, why) in skipped {
        rows.skipped(name, why);
    }
}

fn made(n: usize) -> Subject {
    let subject = Subject::of(n);
    subject.apply();
    subject
}

/// Panics where a changed file is passed over.
fn see_it_look(peer: &Peer, program: &Path) {
    let subject = made(SHOWN);
    let call = (peer.call)(&subject);
    subject.drift(1, 0);
    assert!(subject.files.read() > 0, "a file was changed");
    let (_, status) = ended(program, &call.arguments(), &call.environment);
    let saw = if peer.repairs { subject.files.read() == 0 } else { !status.success() };
    assert!(saw, "{} passed over a file that was changed; it ended with {status}", peer.name);
}

/// Where a program of others lies.
pub(super) fn place_of(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|place| place.is_file())
}
