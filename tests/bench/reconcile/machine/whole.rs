//! A whole machine that is as declared: 1 000 files, 20 packages, 20 units, and one `tenure-host apply` as a process,
//! from exec to exit, beside one shell that only asks and reads.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tenure_host::program::{Programs as _, System};
use tenure_tests::program::timed;
use tenure_tests::sandbox::text;
use tenure_tests::wait;

use super::super::subject::{Subject, resource};
use super::super::{ROUNDS, Rounds, milliseconds};
use super::units;
use crate::row::Rows;

const FILES: usize = 1_000;
const PACKAGES: usize = 20;
const UNITS: usize = 20;
const FLOOR: &str = "floor_host";
const IN_FULL: &str = "whole_host, units asked in full";

pub(super) fn run(rows: Rows, system: &str) {
    let (packages, names) = (installed(), units::raise(UNITS));
    let package = |name: &String| resource("package", name, json!({"name": name, "version": "present"}));
    let declared = packages.iter().map(package).chain(units::declared(&names)).collect();
    let subject = Subject::of_machine(FILES, declared);
    subject.program(&["apply", &text(&subject.at("bundle"))]).expect(0);
    let list = subject.at("list");
    subject.files.write_list(&list);
    let ours = std::env::current_exe().expect("this program");
    let shell = format!(
        "dpkg-query -W {} >/dev/null && systemctl is-active {} >/dev/null && {} floor-read {}",
        packages.join(" "),
        names.join(" "),
        ours.display(),
        list.display()
    );
    let mut rounds = Rounds::default();
    for _ in 0..ROUNDS {
        units::systemctl(&["daemon-reload"]);
        rounds.put(IN_FULL, subject.applied_by_process(&[]));
    }
    settle();
    subject.applied_by_process(&[]);
    for _ in 0..ROUNDS {
        rounds.put(FLOOR, milliseconds(timed(Path::new("sh"), &["-c", &shell])));
        rounds.put("whole_host", subject.applied_by_process(&[]));
    }
    let last = &subject.program(&["status"]).expect(0).json()["last"]["counts"];
    let all = u64::try_from(FILES + PACKAGES + UNITS).ok();
    assert!(last["applied"] == 0 && last["unchanged"].as_u64() >= all, "{last}");
    let floor = rounds.median(FLOOR);
    rows.alone(&format!("{FLOOR}, {system}"), FILES, floor, "ms");
    for row in ["whole_host", IN_FULL] {
        rows.against(&format!("{row}, {system}"), FILES, rounds.median(row), "ms", (FLOOR, floor));
    }
}

/// For a minute after unit files were read each unit is asked about in full.
fn settle() {
    wait::until_true("what units are made of is over a minute old", Duration::from_secs(120), || {
        let read = std::fs::metadata("/run/systemd/systemd-units-load").expect("systemd's mark").ctime();
        read + 61 < tenure_actors::clock::system().now().millis() / 1_000
    });
}

/// Some of what is installed here.
fn installed() -> Vec<String> {
    let asked = ["-W", "-f", "${Package} ${Essential} ${db:Status-Abbrev}\n"];
    let ran = System.run("dpkg-query", &asked, Duration::from_secs(30)).expect("dpkg");
    let names = ran.out.lines().filter_map(|line| line.strip_suffix(" no ii ")).map(str::to_owned);
    let names: Vec<String> = names.take(PACKAGES).collect();
    assert_eq!(names.len(), PACKAGES, "{ran:?}");
    names
}
