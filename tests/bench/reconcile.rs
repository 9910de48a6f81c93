//! `reconcile`: what a pass over N declared files costs, in the daemon and as a process, against programs that do only
//! what nobody could leave out and against what else compares files. Medians of five rounds, all in one run.

use std::time::{Duration, Instant};

use tenure_host::resource::Reading;
use tenure_protocol::outcome::Outcome;
use tenure_tests::program::timed;
use tenure_tests::sandbox::text;

use crate::row::{Rows, median};

pub(crate) mod floor;
mod peers;
mod resident;
mod subject;

use subject::{Held, Subject};

const ROUNDS: usize = 5;
const SIZES: [usize; 3] = [100, 1_000, 10_000];

/// What one size costs, in milliseconds; a list of rounds each.
#[derive(Default)]
struct Rounds(Vec<(&'static str, Vec<f64>)>);

impl Rounds {
    fn put(&mut self, name: &'static str, value: f64) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value),
            None => self.0.push((name, vec![value])),
        }
    }

    fn time<T>(&mut self, name: &'static str, act: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let answer = act();
        self.put(name, milliseconds(began.elapsed()));
        answer
    }

    fn median(&self, name: &str) -> f64 {
        let values = self.0.iter().find(|(known, _)| *known == name);
        median(values.map(|(_, values)| values.clone()).unwrap_or_default())
    }
}

/// A part of the benchmark: what it is called, what it measures, its floors, and our rows with their floor.
struct Part {
    name: &'static str,
    act: fn(&Subject, &mut Rounds, usize),
    floors: &'static [&'static str],
    rows: &'static [(&'static str, &'static str)],
}

const PARTS: [Part; 4] = [
    Part {
        name: "first",
        act: first,
        floors: &["floor_write", "floor_write_together"],
        rows: &[("first_apply", "floor_write")],
    },
    Part {
        name: "held",
        act: held,
        floors: &["floor_stat", "floor_read"],
        rows: &[
            ("no_change_pass", "floor_stat"),
            ("full_pass", "floor_read"),
            ("first_pass_of_a_start", "floor_read"),
        ],
    },
    Part { name: "repair", act: repair, floors: &[], rows: &[("repair", "floor_read")] },
    Part {
        name: "process",
        act: processes,
        floors: &["floor_read_process"],
        rows: &[
            ("no_change_process", "floor_read_process"),
            ("no_change_process_bundle", "floor_read_process"),
            ("first_apply_process", "floor_write"),
        ],
    },
];

/// The parts that are no rounds.
const PEERS: &str = "peers";
const RESIDENT: &str = "resident";

/// `words`: how many files, and which parts; all where none is named.
pub(crate) fn run(rows: Rows, words: &[&str]) {
    let sizes: Vec<usize> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let named: Vec<&&str> = words.iter().filter(|word| word.parse::<usize>().is_err()).collect();
    let known: Vec<&str> = PARTS.iter().map(|part| part.name).chain([PEERS, RESIDENT]).collect();
    if sizes.iter().any(|n| !SIZES.contains(n)) || named.iter().any(|word| !known.contains(*word)) {
        eprintln!(
            "bench: nothing is measured for {words:?}; the numbers of files are {SIZES:?}, the parts {}",
            known.join(", ")
        );
        std::process::exit(2);
    }
    let is_wanted = |name: &str| named.is_empty() || named.iter().any(|word| **word == name);
    let mut smaller: Option<Rounds> = None;
    for n in SIZES.into_iter().filter(|n| sizes.is_empty() || sizes.contains(n)) {
        let (subject, mut rounds) = (Subject::of(n), Rounds::default());
        if !is_wanted("first") {
            apply(&subject);
        }
        for part in PARTS.iter().filter(|part| is_wanted(part.name)) {
            (part.act)(&subject, &mut rounds, n);
            for floor in part.floors {
                rows.alone(floor, n, rounds.median(floor), "ms");
            }
            for (row, floor) in part.rows {
                rows.against(row, n, rounds.median(row), "ms", (floor, rounds.median(floor)));
                if let Some(smaller) = &smaller {
                    let before = ("that of a tenth", smaller.median(row));
                    rows.against(&format!("growth of {row}"), n, rounds.median(row), "ms", before);
                }
            }
        }
        if is_wanted(PEERS) {
            peers::run(rows, &subject, n, rounds.median("no_change_process"));
        }
        if is_wanted(RESIDENT) {
            resident::run(rows, &subject, n);
        }
        smaller = Some(rounds);
    }
}

/// Applied once, where nobody measures that.
fn apply(subject: &Subject) {
    let held = subject.fresh();
    held.pass(Reading::Whole);
    held.close();
}

/// The first apply, against writing the same files.
fn first(subject: &Subject, rounds: &mut Rounds, n: usize) {
    for _ in 0..ROUNDS {
        let held = subject.fresh();
        let (took, summary) = held.pass(Reading::WhatMayHaveChanged);
        rounds.put("first_apply", took);
        assert!(summary.counts.get(Outcome::Applied) > u64::try_from(n).unwrap_or(0), "{summary:?}");
        held.close();
        let empty = || {
            let place = subject.at("floor");
            let _ = std::fs::remove_dir_all(&place);
            subject.files.moved(&subject.at("root"), &place)
        };
        let files = empty();
        rounds.time("floor_write", || files.write_each());
        let files = empty();
        rounds.time("floor_write_together", || files.write_together());
    }
}

/// Passes of a daemon that holds what was applied.
fn held(subject: &Subject, rounds: &mut Rounds, _: usize) {
    let held = Held::open(&subject.at("root"), None);
    let unchanged = |summary: &tenure_protocol::report::Summary| {
        assert_eq!(summary.counts.get(Outcome::Unchanged), summary.counts.total(), "{summary:?}");
    };
    held.pass(Reading::WhatMayHaveChanged);
    held.pass(Reading::WhatMayHaveChanged);
    let remembered = subject.files.remember();
    for _ in 0..ROUNDS {
        assert_eq!(rounds.time("floor_stat", || subject.files.stat(&remembered)), 0);
        let (took, summary) = held.pass(Reading::WhatMayHaveChanged);
        unchanged(&summary);
        rounds.put("no_change_pass", took);
        assert_eq!(rounds.time("floor_read", || subject.files.read()), 0);
        let (took, summary) = held.pass(Reading::Whole);
        unchanged(&summary);
        rounds.put("full_pass", took);
    }
    held.close();
    for _ in 0..ROUNDS {
        // A daemon that was just started knows nothing: it reads what is declared, and every file.
        let started = Held::open(&subject.at("root"), None);
        let (took, summary) = started.pass(Reading::Whole);
        unchanged(&summary);
        rounds.put("first_pass_of_a_start", took);
        started.close();
    }
}

/// Passes that find one file in a hundred changed.
fn repair(subject: &Subject, rounds: &mut Rounds, n: usize) {
    let held = Held::open(&subject.at("root"), None);
    held.pass(Reading::WhatMayHaveChanged);
    held.pass(Reading::WhatMayHaveChanged);
    for round in 0..ROUNDS {
        for file in subject.files.wanted.iter().skip(round).step_by(100) {
            let path = subject.files.directories[file.directory].join(&file.name);
            std::fs::write(path, format!("{:>1023}\n", "drift")).expect("it can be written");
        }
        let (took, summary) = held.pass(Reading::WhatMayHaveChanged);
        let repaired = summary.counts.get(Outcome::Applied);
        assert!(repaired >= u64::try_from(n / 100).unwrap_or(0), "{summary:?}");
        rounds.put("repair", took);
        rounds.time("floor_read", || subject.files.read());
        held.pass(Reading::WhatMayHaveChanged);
        held.pass(Reading::WhatMayHaveChanged);
    }
    held.close();
}

/// Whole processes, from exec to exit. A daemon runs beside none of them.
fn processes(subject: &Subject, rounds: &mut Rounds, n: usize) {
    let list = subject.at("list");
    subject.files.write_list(&list);
    let floor = std::env::current_exe().expect("this program");
    let host = tenure_tests::program::folder().join("tenure-host");
    let [list, bundle, root] = ["list", "bundle", "root"].map(|place| text(&subject.at(place)));
    let apply = ["apply", "--json", "--sandbox", "--root", &root];
    let apply_bundle = ["apply", &bundle, "--json", "--sandbox", "--root", &root];
    for _ in 0..ROUNDS {
        rounds.put("floor_read_process", milliseconds(timed(&floor, &["floor-read", &list])));
        rounds.put("no_change_process", milliseconds(timed(&host, &apply)));
        rounds.put("no_change_process_bundle", milliseconds(timed(&host, &apply_bundle)));
    }
    let last = &subject.program(&["status"]).expect(0).json()["last"]["counts"];
    assert!(last["applied"] == 0 && last["unchanged"].as_u64() > u64::try_from(n).ok(), "{last}");
    for _ in 0..ROUNDS {
        std::fs::remove_dir_all(&root).expect("it can be removed");
        std::fs::create_dir(&root).expect("it can be made");
        rounds.put("first_apply_process", milliseconds(timed(&host, &apply_bundle)));
    }
}

pub(crate) fn milliseconds(took: Duration) -> f64 {
    took.as_secs_f64() * 1_000.0
}
