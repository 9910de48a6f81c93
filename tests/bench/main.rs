//! Benchmarks: `tests/run bench NAME [--json]`. Each row is one line: what, how much, in which unit, against what.

use std::time::Instant;

use tenure_tests::sandbox::{SOON, Sandbox};
use tenure_tests::wait;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let json = arguments.iter().any(|argument| argument == "--json");
    match arguments.first().map(String::as_str) {
        Some("declare") => declare(json),
        other => {
            eprintln!("bench: unknown benchmark {other:?}; known: declare");
            std::process::exit(2);
        }
    }
}

/// One number, as a table row or as one object a line.
fn row(json: bool, bench: &str, row: &str, n: usize, value: f64, unit: &str) {
    if json {
        let line = serde_json::json!({"bench": bench, "row": row, "n": n, "value": value, "unit": unit, "against": null, "ratio": null});
        println!("{line}");
    } else {
        println!("{bench:<10} {row:<34} n={n:<7} {value:>10.2} {unit}");
    }
}

/// From `tenure declare` of N files of 1 KiB to all of them applied and reported, and what both daemons then hold.
fn declare(json: bool) {
    for n in [1_000, 10_000] {
        let sandbox = Sandbox::enrolled(&[]);
        let mut module = String::from("[[directory]]\npath = \"/srv\"\n");
        for folder in 0..n / 100 {
            module.push_str(&format!(
                "[[directory]]\npath = \"/srv/{folder}\"\nneeds = [\"directory:/srv\"]\n"
            ));
        }
        for at in 0..n {
            let text = format!("{at:064}").repeat(16);
            module.push_str(&format!("[[file]]\npath = \"/srv/{}/{at}\"\ncontent = \"{text}\"\n", at / 100));
        }
        sandbox.module(&module);
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

/// Resident memory of a process, now and at its highest, in MiB.
fn memory(pid: u32) -> (f64, f64) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap_or(-1024.0) / 1024.0
    };
    (field("VmRSS:"), field("VmHWM:"))
}
