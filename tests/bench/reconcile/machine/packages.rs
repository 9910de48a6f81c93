//! 500 declared packages in a database that lists them beside the machine's own: what a pass costs that has nothing to
//! bring, beside `dpkg-query -W`, which reads the same database. Nothing is installed: the paragraphs are those of the
//! machine's own packages under other names, so that they are as long as real ones.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tenure_host::resource::Reading;
use tenure_tests::{program::timed, wait};

use super::super::subject::{Subject, resource};
use super::super::{ROUNDS, Rounds, milliseconds};
use crate::row::Rows;

const PACKAGES: usize = 500;
const STATUS: &str = "/var/lib/dpkg/status";
const QUERY: &str = "dpkg-query -W";

pub(super) fn run(rows: Rows, system: &str) {
    let listed = list_more();
    let each = |at: usize| resource("package", &name(at), json!({"name": name(at), "version": "present"}));
    let subject = Subject::of_machine(0, (0..PACKAGES).map(each).collect());
    let held = subject.declare();
    held.pass(Reading::Whole);
    let mut rounds = Rounds::default();
    for _ in 0..ROUNDS {
        settle();
        // The first looks anew and remembers; what follows has the database as it was.
        held.pass(Reading::WhatMayHaveChanged);
        held.unchanged(Reading::WhatMayHaveChanged);
        rounds.put(QUERY, milliseconds(timed(Path::new("dpkg-query"), &["-W"])));
        rounds.put("packages_500", held.unchanged(Reading::WhatMayHaveChanged));
        write_anew();
        rounds.put("packages_500, database anew", held.unchanged(Reading::WhatMayHaveChanged));
    }
    held.close();
    for _ in 0..ROUNDS {
        settle();
        let started = subject.start();
        rounds.put("packages_500, first pass of a start", started.unchanged(Reading::WhatMayHaveChanged));
        started.close();
        rounds.put("packages_500, process", subject.applied_by_process(&[]));
    }
    let query = rounds.median(QUERY);
    rows.alone(&format!("{QUERY}, {system}"), listed, query, "ms");
    for row in [
        "packages_500",
        "packages_500, database anew",
        "packages_500, first pass of a start",
        "packages_500, process",
    ] {
        rows.against(&format!("{row}, {system}"), PACKAGES, rounds.median(row), "ms", (QUERY, query));
    }
}

fn name(at: usize) -> String {
    format!("bench{at:03}")
}

/// Writes them into the database; gives back how many are listed now.
fn list_more() -> usize {
    let status = std::fs::read_to_string(STATUS).expect("dpkg's database");
    let own: Vec<&str> =
        status.split("\n\n").filter(|one| one.contains("Status: install ok installed")).collect();
    let another = |at: usize| {
        let renamed = |line: &&str| !line.starts_with("Package: ") && !line.starts_with("Essential: ");
        let lines: Vec<&str> = own[at % own.len()].lines().filter(renamed).collect();
        format!("Package: {}\n{}", name(at), lines.join("\n"))
    };
    let all: Vec<String> = own.iter().map(ToString::to_string).chain((0..PACKAGES).map(another)).collect();
    replace(&(all.join("\n\n") + "\n"));
    all.len()
}

/// As dpkg does after each of its runs, whatever came of them.
fn write_anew() {
    replace(&std::fs::read_to_string(STATUS).expect("dpkg's database"));
}

fn replace(text: &str) {
    let beside = format!("{STATUS}-new");
    std::fs::write(&beside, text).expect("the machine's own disk");
    std::fs::rename(&beside, STATUS).expect("the machine's own disk");
}

/// What was written a moment ago could be written once more without its times telling; that is not what is measured.
fn settle() {
    wait::until_true("dpkg's database is a few seconds old", Duration::from_secs(30), || {
        let written = std::fs::metadata(STATUS).expect("dpkg's database").ctime();
        written + 4 < tenure_actors::clock::system().now().millis() / 1_000
    });
}
