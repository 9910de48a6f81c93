//! `reconcile`: what a pass over N declared files costs, in the daemon and as a process, against programs that do only
//! what nobody could leave out and against what else compares files; what packages, units and a whole machine cost; how
//! soon the daemon is ready, and what it holds. Medians of five rounds, all in one run.

use std::time::{Duration, Instant};

use tenure_host::program::{Programs as _, System};
use tenure_host::resource::Reading;
use tenure_protocol::outcome::Outcome;
use tenure_tests::program::timed;
use tenure_tests::sandbox::text;

use crate::row::{Rows, median};

pub(crate) mod floor;
pub(crate) mod machine;
mod peers;
mod ready;
mod resident;
mod subject;
mod wanted;

use subject::Subject;
use wanted::Wanted;

const ROUNDS: usize = 5;

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

/// `words`: how many files, and which parts; all where none is named.
pub(crate) fn run(rows: Rows, words: &[&str]) {
    let wanted = Wanted::of(words).unwrap_or_else(|why| {
        eprintln!("bench: {why}");
        std::process::exit(2);
    });
    let mut before: Option<(usize, Rounds)> = None;
    // What was written is removed when all is measured: for minutes ext4 gives no inode out again that was given free, and
    // looks for others past them, one by one.
    let mut written = Vec::new();
    for n in wanted.sizes.iter().copied() {
        let tenth = before.as_ref().filter(|(smaller, _)| n == 10 * smaller);
        let rounds = of_files(rows, &wanted, n, tenth.map(|(_, rounds)| rounds), &mut written);
        before = Some((n, rounds));
    }
    if wanted.has("ready") {
        machine::beside_peers(rows, &["ready"]);
    }
    for part in ["packages", "units", "host"].into_iter().filter(|part| wanted.has(part)) {
        machine::run(rows, part);
    }
}

/// The parts that go by a number of files, for this one; and what they cost for a tenth of it, where that was measured.
fn of_files(
    rows: Rows,
    wanted: &Wanted,
    n: usize,
    tenth: Option<&Rounds>,
    written: &mut Vec<Subject>,
) -> Rounds {
    let mut rounds = Rounds::default();
    if PARTS.iter().any(|part| wanted.has(part.name)) || wanted.has("resident") {
        let subject = Subject::of(n);
        if !wanted.has("first") {
            subject.apply();
        }
        for part in PARTS.iter().filter(|part| wanted.has(part.name)) {
            (part.act)(&subject, &mut rounds, n);
            tell(rows, part, &rounds, n, tenth);
        }
        if wanted.has("resident") {
            resident::run(rows, &subject, n);
        }
        written.push(subject);
    }
    if wanted.has("allocations") {
        counted(rows, n);
    }
    if wanted.has("peers") {
        machine::beside_peers(rows, &["peers", &n.to_string()]);
    }
    rounds
}

fn tell(rows: Rows, part: &Part, rounds: &Rounds, n: usize, tenth: Option<&Rounds>) {
    for floor in part.floors {
        rows.alone(floor, n, rounds.median(floor), "ms");
    }
    for (row, floor) in part.rows {
        rows.against(row, n, rounds.median(row), "ms", (floor, rounds.median(floor)));
        if let Some(tenth) = tenth {
            let before = ("that of a tenth", tenth.median(row));
            rows.against(&format!("growth of {row}"), n, rounds.median(row), "ms", before);
        }
    }
}

/// The program beside this one, which counts what it allocates.
fn counted(rows: Rows, n: usize) {
    let program = text(&std::env::current_exe().expect("this program").with_file_name("bench-allocations"));
    let n = n.to_string();
    let words: &[&str] = if rows.json { &[&n, "--json"] } else { &[&n] };
    let ran = System
        .run(&program, words, COUNTING)
        .expect("the program that counts, which is built beside this one");
    assert!(ran.succeeded(), "{}", ran.last_words());
    print!("{}", ran.out);
}

const COUNTING: Duration = Duration::from_secs(300);

/// The first apply, against writing the same files.
fn first(subject: &Subject, rounds: &mut Rounds, n: usize) {
    for _ in 0..ROUNDS {
        let held = subject.fresh();
        let (took, summary) = held.pass(Reading::WhatMayHaveChanged);
        rounds.put("first_apply", took);
        assert!(summary.counts.get(Outcome::Applied) > u64::try_from(n).unwrap_or(0), "{summary:?}");
        held.close();
        write_floor(subject, rounds);
        let files = empty(subject);
        rounds.time("floor_write_together", || files.write_together());
    }
}

/// What anybody who writes these files has to do, on this disk and in these minutes.
fn write_floor(subject: &Subject, rounds: &mut Rounds) {
    let files = empty(subject);
    rounds.time("floor_write", || files.write_each());
}

/// The same files in a place of their own, where none of them is.
fn empty(subject: &Subject) -> floor::Files {
    let place = subject.at("floor");
    subject.clear(&place);
    subject.files.moved(&subject.at("root"), &place)
}

/// Passes of a daemon that holds what was applied.
fn held(subject: &Subject, rounds: &mut Rounds, _: usize) {
    let held = subject.start();
    held.pass(Reading::WhatMayHaveChanged);
    held.pass(Reading::WhatMayHaveChanged);
    let remembered = subject.files.remember();
    for _ in 0..ROUNDS {
        assert_eq!(rounds.time("floor_stat", || subject.files.stat(&remembered)), 0);
        rounds.put("no_change_pass", held.unchanged(Reading::WhatMayHaveChanged));
        assert_eq!(rounds.time("floor_read", || subject.files.read()), 0);
        rounds.put("full_pass", held.unchanged(Reading::Whole));
    }
    held.close();
    for _ in 0..ROUNDS {
        // A daemon that was just started knows nothing: it reads what is declared, and every file.
        let started = subject.start();
        rounds.put("first_pass_of_a_start", started.unchanged(Reading::Whole));
        started.close();
    }
}

/// Passes that find one file in a hundred changed.
fn repair(subject: &Subject, rounds: &mut Rounds, n: usize) {
    let held = subject.start();
    held.pass(Reading::WhatMayHaveChanged);
    held.pass(Reading::WhatMayHaveChanged);
    for round in 0..ROUNDS {
        subject.drift(n / 100, round);
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
    let [list, bundle] = ["list", "bundle"].map(|place| text(&subject.at(place)));
    for _ in 0..ROUNDS {
        rounds.put("floor_read_process", milliseconds(timed(&floor, &["floor-read", &list])));
        rounds.put("no_change_process", subject.applied_by_process(&[]));
        rounds.put("no_change_process_bundle", subject.applied_by_process(&[&bundle]));
    }
    let last = &subject.program(&["status"]).expect(0).json()["last"]["counts"];
    assert!(last["applied"] == 0 && last["unchanged"].as_u64() > u64::try_from(n).ok(), "{last}");
    for _ in 0..ROUNDS {
        subject.empty();
        // Here as well: nobody may have asked for the part that measures it otherwise.
        write_floor(subject, rounds);
        rounds.put("first_apply_process", subject.applied_by_process(&[&bundle]));
    }
}

pub(crate) fn milliseconds(took: Duration) -> f64 {
    took.as_secs_f64() * 1_000.0
}
