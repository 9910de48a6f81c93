//! What else compares files with what is wanted of them, where it is installed.

use std::path::Path;

use tenure_tests::program::timed;
use tenure_tests::sandbox::text;

use super::subject::Subject;
use super::{ROUNDS, milliseconds};
use crate::row::{Rows, median};

/// The programs of others that would be run, and what of them is not installed.
const OTHERS: [&str; 3] = ["cf-agent", "ansible-playbook", "puppet"];

pub(super) fn run(rows: Rows, subject: &Subject, n: usize, ours: f64) {
    sums(rows, subject, n, ours);
    rsync(rows, subject, n, ours);
    for program in OTHERS.into_iter().filter(|program| !is_installed(program)) {
        rows.skipped(program, "not installed");
    }
}

fn sums(rows: Rows, subject: &Subject, n: usize, ours: f64) {
    let list = subject.at("sums");
    let lines: String = subject
        .files
        .wanted
        .iter()
        .map(|file| {
            let path = subject.files.directories[file.directory].join(&file.name);
            format!("{}  {}\n", tenure_protocol::id::Digest::of(&file.bytes), path.display())
        })
        .collect();
    std::fs::write(&list, lines).expect("a file of the benchmark");
    peer(rows, "sha256sum -c", "sha256sum", &["--check", "--quiet", &text(&list)], n, ours);
}

fn rsync(rows: Rows, subject: &Subject, n: usize, ours: f64) {
    let source = subject.at("source");
    let copy = subject.files.moved(&subject.at("root"), &source);
    copy.write_together();
    let (from, to) = (text(&source) + "/srv/", text(&subject.at("root")) + "/srv/");
    peer(rows, "rsync -c --fsync", "rsync", &["-rc", "--fsync", &from, &to], n, ours);
}

fn peer(rows: Rows, name: &str, program: &str, arguments: &[&str], n: usize, ours: f64) {
    if !is_installed(program) {
        return rows.skipped(name, "not installed");
    }
    let rounds = (0..ROUNDS).map(|_| milliseconds(timed(Path::new(program), arguments)));
    rows.against(name, n, median(rounds.collect()), "ms", ("no_change_process", ours));
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
