//! Benchmarks: `tests/run bench NAME [--json]`. Each row is one line: what, how much, in which unit, against what.

use std::time::{Duration, Instant};

use tenure_tests::herd::{Herd, densest};
use tenure_tests::sandbox::{SOON, Sandbox};
use tenure_tests::wait;

mod reconcile;
mod row;

use row::Rows;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let json = arguments.iter().any(|argument| argument == "--json");
    let words: Vec<&str> = arguments.iter().map(String::as_str).filter(|word| *word != "--json").collect();
    match *words {
        ["declare"] => declare(json),
        ["herd"] => herd(json),
        ["reconcile", ref more @ ..] => reconcile::run(Rows { bench: "reconcile", json }, more),
        // The same program inside a machine of the lab.
        ["here", ref more @ ..] => reconcile::machine::here(Rows { bench: "reconcile", json }, more),
        // The floor as a program of its own, which `reconcile` starts.
        ["floor-read", list] => {
            assert_eq!(reconcile::floor::process(list.as_ref()), 0, "what was applied is there")
        }
        _ => {
            eprintln!(
                "bench: unknown benchmark {words:?}; known: declare, herd, reconcile [FILES] [PART ...]"
            );
            std::process::exit(2);
        }
    }
}

/// One number, as a table row or as one object a line.
fn row(json: bool, bench: &'static str, row: &str, n: usize, value: f64, unit: &str) {
    Rows { bench, json }.alone(row, n, value, unit);
}

/// From `tenure declare` of N files of 1 KiB to all of them applied and reported, and what both daemons then hold.
fn declare(json: bool) {
    for n in [1_000, 10_000] {
        let sandbox = Sandbox::enrolled(&[]);
        sandbox.module(&module_of(n));
        let began = Instant::now();
        let folder = sandbox.at("fleet").display().to_string();
        sandbox.tenure(&["declare", &folder]).expect(0);
        let written = began.elapsed();
        wait::until_true("all are applied", SOON * 10, || {
            sandbox.tenure(&["nodes", "--json"]).json()[0]["revision"]["applied"] == 1
        });
        let applied = began.elapsed();
        row(json, "declare", "declaration written", n, written.as_secs_f64(), "s");
        row(json, "declare", "all applied and reported", n, applied.as_secs_f64(), "s");
        for (name, running) in [("control plane", &sandbox.control), ("host", &sandbox.host)] {
            let pid = running.as_ref().map_or(0, tenure_tests::program::Running::pid);
            let (now, peak) = memory(pid);
            row(json, "declare", &format!("{name} resident"), n, now, "MiB");
            row(json, "declare", &format!("{name} resident, peak"), n, peak, "MiB");
        }
        let last = sandbox.host(&["status", "--json"]).json()["last"]["took_ms"].as_f64().unwrap_or(-1.0);
        row(json, "declare", "last pass", n, last, "ms");
    }
}

/// A module that declares N files of 1 KiB, a hundred in a directory.
pub(crate) fn module_of(n: usize) -> String {
    let mut module = String::from("[[directory]]\npath = \"/srv\"\n");
    for folder in 0..n.div_ceil(100) {
        module.push_str(&format!("[[directory]]\npath = \"/srv/{folder}\"\nneeds = [\"directory:/srv\"]\n"));
    }
    for at in 0..n {
        let text = format!("{at:064}").repeat(16);
        module.push_str(&format!("[[file]]\npath = \"/srv/{}/{at}\"\ncontent = \"{text}\"\n", at / 100));
    }
    module
}

/// A control plane of N nodes is killed and started again: how spread they come, and when the last of them is back.
fn herd(json: bool) {
    for n in [500, 2_000] {
        let mut sandbox = Sandbox::empty();
        sandbox.start_control();
        let began = Instant::now();
        let herd = Herd::raise(n, &sandbox.at("control/run/tenure-control/api.sock"), &sandbox.address());
        row(json, "herd", "joined and connected", n, began.elapsed().as_secs_f64(), "s");
        let killed = Instant::now();
        sandbox.kill_control();
        herd.wait_until_none_is_connected(SOON);
        wait::until_true("each dialled again", SOON, || herd.dials_after(killed).len() >= n);
        let mut first = herd.dials_after(killed);
        first.sort_unstable();
        first.truncate(n);
        let most = densest(&first, Duration::from_millis(100));
        row(json, "herd", "first redials, most in 100 ms", n, count(most), "dials");
        let (before, (busy, _)) = (herd.dials_after(killed).len(), herd.turned_away());
        let started = Instant::now();
        sandbox.start_control();
        herd.wait_until_all_are_connected(Duration::from_secs(90));
        row(json, "herd", "all connected after the start", n, started.elapsed().as_secs_f64(), "s");
        let dials = herd.dials_after(killed).len() - before;
        row(json, "herd", "dials a node", n, count(dials) / count(n), "dials");
        row(json, "herd", "told to come back later", n, count(herd.turned_away().0 - busy), "nodes");
        let opened = densest(&herd.welcomes_after(started), Duration::from_secs(1));
        row(json, "herd", "sessions opened, most in 1 s", n, count(opened), "sessions");
        let lost = sandbox.events().iter().filter(|event| event["kind"] == "lost").count();
        row(json, "herd", "called lost", n, count(lost), "nodes");
        let (now, peak) = memory(sandbox.control.as_ref().map_or(0, tenure_tests::program::Running::pid));
        row(json, "herd", "control plane resident", n, now, "MiB");
        row(json, "herd", "control plane resident, peak", n, peak, "MiB");
    }
}

fn count(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::NAN, f64::from)
}

/// Resident memory of a process, now and at its highest, in MiB.
pub(crate) fn memory(pid: u32) -> (f64, f64) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap_or(-1024.0) / 1024.0
    };
    (field("VmRSS:"), field("VmHWM:"))
}
