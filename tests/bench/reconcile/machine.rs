//! Parts that need a machine of their own: real packages and units, or the programs of others, none of which the machine
//! that runs the benchmark is asked for. This program is carried into a machine of the lab and measures there, in one
//! process, so that nothing but the work itself is timed; what it prints is printed here.

use std::path::Path;
use std::time::Duration;

use tenure_tests::lab::{Base, Lab, Machine};
use tenure_tests::program;

use crate::row::Rows;

mod packages;
mod units;
mod whole;

/// A loop of Ansible's over a thousand files, with all beside it.
const WITHIN: Duration = Duration::from_secs(45 * 60);
const PROGRAMS: &str = "/opt/bench";

/// Debian 12 and Debian 13: systemd 252 and 257.
const SYSTEMS: [(&str, Base); 2] = [("debian 12", Base::Bookworm), ("debian 13", Base::Trixie)];

/// The parts about what is not a file, on both systems; for root, who alone may have machines.
pub(super) fn run(rows: Rows, part: &'static str) {
    if !is_root() {
        return rows.skipped(part, "a machine of the lab needs root");
    }
    for (system, base) in SYSTEMS {
        carried(rows, base, &[part, system]);
    }
}

/// What is measured beside programs of others: on a machine that has them all, and where there can be none beside those
/// that are installed here.
pub(super) fn beside_peers(rows: Rows, words: &[&str]) {
    if is_root() { carried(rows, Base::Peers, words) } else { here(rows, words) }
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Runs this program with these words on a machine of its own.
fn carried(rows: Rows, base: Base, words: &[&str]) {
    let lab = Lab::new("bench");
    let machine = lab.machine("bench", base);
    print!("{}", inside(&machine, rows.json, words));
}

fn inside(machine: &Machine, json: bool, words: &[&str]) -> String {
    // This very program, also where it was built anew since.
    let ours = Path::new("/proc/self/exe");
    machine.copy_in(ours, &format!("{PROGRAMS}/bench"), 0o755);
    machine.copy_in(&program::folder().join("tenure-host"), &format!("{PROGRAMS}/tenure-host"), 0o755);
    let ours = format!("{PROGRAMS}/bench");
    let programs = format!("TENURE_PROGRAMS={PROGRAMS}");
    // A machine's /tmp lies in memory; its files are to lie where files lie.
    let mut command = vec!["env", &programs, "TMPDIR=/var/tmp", &ours, "here"];
    command.extend(words);
    if json {
        command.push("--json");
    }
    machine.run_for(WITHIN, &command).expect(0).stdout
}

/// What is measured inside such a machine, or on this one.
pub(crate) fn here(rows: Rows, words: &[&str]) {
    match *words {
        ["packages", system] => packages::run(rows, system),
        ["units", system] => units::run(rows, system),
        ["host", system] => whole::run(rows, system),
        ["ready"] => super::ready::run(rows),
        ["peers", n] => super::peers::run(rows, n.parse().expect("a number of files")),
        _ => panic!("nothing is measured for {words:?} on a machine"),
    }
}
