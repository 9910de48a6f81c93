//! What passes of the daemon's loop ask of the memory allocator, over N declared files: how often and how much, where
//! nothing changed, where one file in a hundred did, and where one did. `bench reconcile allocations` starts it; counting costs time, so
//! nothing is timed here.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, Stats, StatsAlloc};
use tenure_host::resource::Reading;
use tenure_protocol::outcome::Outcome;

#[expect(dead_code, reason = "the floors that are timed have no part here")]
#[path = "reconcile/floor.rs"]
mod floor;
#[expect(dead_code, reason = "no median is printed here")]
#[path = "row.rs"]
mod row;
#[expect(dead_code, reason = "what is timed has no part here")]
#[path = "reconcile/subject.rs"]
mod subject;

use row::Rows;
use subject::{Held, Subject};

#[global_allocator]
static COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let json = arguments.iter().any(|argument| argument == "--json");
    let number = arguments.iter().find_map(|argument| argument.parse().ok());
    let Some(n) = number.filter(|n: &usize| *n > 0) else {
        eprintln!("bench-allocations: how many files?");
        std::process::exit(2);
    };
    let rows = Rows { bench: "reconcile", json };
    let subject = Subject::of(n);
    subject.apply();
    let held = subject.start();
    held.pass(Reading::WhatMayHaveChanged);
    held.pass(Reading::WhatMayHaveChanged);
    let (quiet, repaired) = counted(&held, Reading::WhatMayHaveChanged);
    assert_eq!(repaired, 0, "nothing was changed");
    tell(rows, "no change", n, quiet, 0);
    let (whole, _) = counted(&held, Reading::Whole);
    tell(rows, "no change, all read", n, whole, 0);
    // One in a hundred grows with what is declared, one file does not.
    for (pass, many) in [("1 % drift", n / 100), ("one changed", 1)] {
        subject.drift(many.max(1), 0);
        let (drift, repaired) = counted(&held, Reading::WhatMayHaveChanged);
        assert!(repaired > 0, "what was changed is found");
        tell(rows, pass, n, drift, repaired);
        held.pass(Reading::WhatMayHaveChanged);
        held.pass(Reading::WhatMayHaveChanged);
    }
    held.close();
}

/// One pass, and how many it has repaired.
fn counted(held: &Held, reading: Reading) -> (Stats, u64) {
    let region = Region::new(COUNTED);
    let (_, summary) = held.pass(reading);
    (region.change(), summary.counts.get(Outcome::Applied))
}

/// `changes`: what was repaired in it, if anything was.
fn tell(rows: Rows, pass: &str, n: usize, asked: Stats, changes: u64) {
    let number = |count: usize| u32::try_from(count).map_or(f64::NAN, f64::from);
    let times = number(asked.allocations + asked.reallocations);
    let changed = u32::try_from(changes).map_or(f64::NAN, f64::from);
    for (row, value, unit) in [
        (format!("allocations, {pass}"), times, "times"),
        (format!("allocated, {pass}"), number(asked.bytes_allocated) / 1024.0, "KiB"),
    ] {
        match changes {
            0 => rows.alone(&row, n, value, unit),
            _ => rows.against(&row, n, value, unit, ("changed file", changed)),
        }
    }
}
