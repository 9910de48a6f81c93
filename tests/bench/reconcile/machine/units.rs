//! 200 declared units that are as declared, under a real service manager: what a pass costs, beside one `systemctl show`
//! of the same units in the same loop.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tenure_host::program::{Programs as _, System};
use tenure_host::resource::Reading;
use tenure_tests::program::timed;

use super::super::subject::{Subject, resource};
use super::super::{ROUNDS, Rounds, milliseconds};
use crate::row::Rows;

const UNITS: usize = 200;
const SHOW: &str = "systemctl show";
const SHOWN: &str = "--property=Id,LoadState,ActiveState,UnitFileState,NeedDaemonReload";
const WITHIN: Duration = Duration::from_secs(120);

pub(super) fn run(rows: Rows, system: &str) {
    let names = raise(UNITS);
    let subject = Subject::of_machine(0, declared(&names));
    let held = subject.declare();
    held.pass(Reading::Whole);
    held.pass(Reading::WhatMayHaveChanged);
    let arguments: Vec<&str> =
        ["show", SHOWN, "--"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let mut rounds = Rounds::default();
    for _ in 0..ROUNDS {
        rounds.put(SHOW, milliseconds(timed(Path::new("systemctl"), &arguments)));
        rounds.put("units_200", held.unchanged(Reading::WhatMayHaveChanged));
        rounds.put("units_200, all asked anew", held.unchanged(Reading::Whole));
    }
    held.close();
    for _ in 0..ROUNDS {
        let started = subject.start();
        rounds.put("units_200, first pass of a start", started.unchanged(Reading::WhatMayHaveChanged));
        started.close();
        rounds.put("units_200, process", subject.applied_by_process(&[]));
    }
    let show = rounds.median(SHOW);
    rows.alone(&format!("{SHOW}, {system}"), UNITS, show, "ms");
    for row in
        ["units_200", "units_200, all asked anew", "units_200, first pass of a start", "units_200, process"]
    {
        rows.against(&format!("{row}, {system}"), UNITS, rounds.median(row), "ms", (SHOW, show));
    }
}

/// Units that are enabled and run: bringing them up is not what is measured.
pub(super) fn raise(many: usize) -> Vec<String> {
    let names: Vec<String> = (0..many).map(|at| format!("bench{at:03}.service")).collect();
    for name in &names {
        let text = "[Service]\nExecStart=sleep infinity\n[Install]\nWantedBy=multi-user.target\n";
        std::fs::write(format!("/etc/systemd/system/{name}"), text).expect("the machine's own disk");
    }
    systemctl(&["daemon-reload"]);
    let enable = ["--quiet", "enable", "--now", "--"];
    systemctl(&enable.into_iter().chain(names.iter().map(String::as_str)).collect::<Vec<_>>());
    names
}

/// As resources that are as declared.
pub(super) fn declared(names: &[String]) -> Vec<Value> {
    let each =
        |name: &String| resource("unit", name, json!({"name": name, "enabled": true, "running": true}));
    names.iter().map(each).collect()
}

pub(super) fn systemctl(arguments: &[&str]) {
    let ran = System.run("systemctl", arguments, WITHIN).expect("the service manager");
    assert!(ran.succeeded(), "{ran:?}");
}
