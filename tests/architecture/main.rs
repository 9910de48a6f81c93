//! Holds the directions between the crates, and the "never" lines of the architecture, by reading the sources.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tenure_tests::tree;

/// Files that decide. They know no runtime, no clock, no disk, no database: *now* is an argument.
const PURE: [&str; 8] = ["state", "plan", "hold", "admit", "redeem", "recognise", "render", "preview"];
const IMPURE: [&str; 12] = [
    "tokio::",
    "ractor",
    "rusqlite",
    "std::fs",
    "std::net",
    "std::process",
    "SystemTime",
    "Instant::now",
    "std::thread",
    "SharedClock",
    "Database",
    "nix::",
];

fn manifest(of: &str) -> toml::Table {
    std::fs::read_to_string(tree::root().join(of)).unwrap().parse().unwrap()
}

fn dependencies(manifest: &toml::Table) -> BTreeSet<String> {
    manifest["dependencies"].as_table().unwrap().keys().cloned().collect()
}

/// Every line of code of a file, without comments and without its tests.
fn code(file: &Path) -> Vec<(usize, String)> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines()
        .enumerate()
        .take_while(|(_, line)| !line.starts_with("#[cfg(test)]"))
        .map(|(at, line)| (at + 1, line.split("//").next().unwrap_or_default().to_owned()))
        .collect()
}

fn assert_names_none(files: &[PathBuf], words: &[&str], why: &str) {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| !file.ends_with("tests.rs")) {
        for (at, line) in code(file) {
            if let Some(word) = words.iter().find(|word| line.contains(**word)) {
                found.push(format!("{}:{at}: `{word}`", file.display()));
            }
        }
    }
    assert!(found.is_empty(), "{why}:\n{}", found.join("\n"));
}

#[test]
fn protocol_and_actors_know_nothing_of_each_other_and_nothing_above_them() {
    let protocol = dependencies(&manifest("protocol/Cargo.toml"));
    for never in
        ["tenure-actors", "tenure-host", "tenure-controlplane", "ractor", "rusqlite", "nix", "tempfile"]
    {
        assert!(!protocol.contains(never), "protocol must not depend on {never}");
    }
    // Whoever only speaks the wire is not made to build what reads a command line.
    let protocol = manifest("protocol/Cargo.toml");
    for only in ["clap", "clap_complete"] {
        let is_optional = protocol["dependencies"][only].get("optional").and_then(toml::Value::as_bool);
        assert_eq!(is_optional, Some(true), "protocol must not bring {only} to everybody");
    }
    assert!(protocol["features"].get("default").is_none());
    let actors = dependencies(&manifest("actors/Cargo.toml"));
    for never in ["tenure-protocol", "tenure-host", "tenure-controlplane", "rmp-serde", "rustls"] {
        assert!(!actors.contains(never), "actors must not depend on {never}");
    }
}

#[test]
fn host_and_control_plane_know_each_other_only_through_the_protocol() {
    assert!(!dependencies(&manifest("host/Cargo.toml")).contains("tenure-controlplane"));
    assert!(!dependencies(&manifest("controlplane/Cargo.toml")).contains("tenure-host"));
}

#[test]
fn nothing_imports_the_tests() {
    for of in [
        "Cargo.toml",
        "protocol/Cargo.toml",
        "actors/Cargo.toml",
        "host/Cargo.toml",
        "controlplane/Cargo.toml",
    ] {
        assert!(!dependencies(&manifest(of)).contains("tenure-tests"), "{of}");
    }
}

#[test]
fn a_file_that_decides_names_no_runtime_no_clock_and_no_disk() {
    let files: Vec<PathBuf> = tree::sources(&["host/src", "controlplane/src", "protocol/src"])
        .into_iter()
        .filter(|file| PURE.iter().any(|name| file.file_stem().is_some_and(|stem| stem == *name)))
        .collect();
    assert!(files.len() >= 5, "the pure files were not found: {files:?}");
    assert_names_none(&files, &IMPURE, "a pure file reaches outside");
}

// rule: H-15
// case: O-53
#[test]
fn what_measures_how_long_something_takes_names_no_clock_that_somebody_can_set() {
    let measured =
        ["actors/src/watchdog.rs", "actors/src/timer.rs", "actors/src/work.rs", "actors/src/address.rs"];
    let folders = ["actors/src/supervisor", "controlplane/src/lease", "protocol/src/wire"];
    let mut files: Vec<PathBuf> = measured.iter().map(|file| tree::root().join(file)).collect();
    files.extend(tree::sources(&folders).into_iter().filter(|file| !file.ends_with("lease/actor.rs")));
    files.extend(
        ["state", "redial", "session", "greeting"]
            .map(|name| tree::root().join(format!("host/src/link/{name}.rs"))),
    );
    assert!(files.iter().all(|file| file.exists()), "{files:?}");
    assert_names_none(
        &files,
        &["SystemTime", "SharedClock", "clock::", "clock.now"],
        "a duration by a wall clock",
    );
}

#[test]
fn an_adapter_names_neither_the_store_nor_the_link() {
    let files = tree::sources(&["host/src/resource"]);
    assert!(files.len() >= 2);
    assert_names_none(
        &files,
        &["crate::store", "crate::link", "rusqlite", "Database"],
        "an adapter reaches outside its kind",
    );
}

// rule: N-21
#[test]
fn a_store_looks_at_no_clock_and_makes_no_identity() {
    let files: Vec<PathBuf> = tree::sources(&["controlplane/src/store"])
        .into_iter()
        .filter(|file| !file.components().any(|part| part.as_os_str() == "tests"))
        .collect();
    assert!(files.iter().any(|file| file.ends_with("memory.rs")) && files.len() >= 15, "{files:?}");
    let words = ["SystemTime", "SharedClock", "clock::", "random()", "getrandom"];
    assert_names_none(&files, &words, "moments and identities come with what is asked");
}

#[test]
fn the_command_line_speaks_the_message_api_and_names_no_store_and_no_actor() {
    // `up` starts both daemons; the one file where both sides meet names them, by their own front doors.
    let files: Vec<PathBuf> = tree::sources(&["controlplane/cli"])
        .into_iter()
        .filter(|file| !file.ends_with("daemons.rs"))
        .collect();
    let words = [
        "ractor",
        "rusqlite",
        "tenure_controlplane",
        "tenure_host",
        "tenure_actors::supervisor",
        "tenure_actors::database",
    ];
    assert_names_none(&files, &words, "the command line reaches behind the API");
}

#[test]
fn programs_are_thin() {
    let most = [
        ("host/bin/tenure-host.rs", 10),
        ("controlplane/bin/tenure-control.rs", 10),
        ("controlplane/cli/main.rs", 80),
    ];
    for (file, most) in most {
        let lines =
            code(&tree::root().join(file)).into_iter().filter(|(_, line)| !line.trim().is_empty()).count();
        assert!(lines <= most, "{file} has {lines} lines of code: logic belongs in the library");
    }
}

#[test]
fn protocol_is_the_only_crate_that_writes_what_crosses_a_wire() {
    let files = tree::sources(&["host/src", "controlplane/src", "controlplane/cli", "actors/src"]);
    assert_names_none(
        &files,
        &["rmp_serde", "rustls::ClientConfig::builder", "rustls::ServerConfig::builder"],
        "a second codec",
    );
}

#[test]
fn the_visible_top_level_stays_as_it_is() {
    let allowed = [
        "Cargo.toml",
        "Cargo.lock",
        "README.md",
        "LICENSE",
        "actors",
        "protocol",
        "host",
        "controlplane",
        "packaging",
        "tests",
        "target",
    ];
    for entry in std::fs::read_dir(tree::root()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name.starts_with('.') || allowed.contains(&name.as_str()), "{name} at the top level");
    }
}

#[test]
fn names_say_what_is_in_a_file() {
    let never = [
        "mod.rs",
        "utils.rs",
        "util.rs",
        "common.rs",
        "helpers.rs",
        "types.rs",
        "manager.rs",
        "service.rs",
        "misc.rs",
    ];
    for file in tree::sources(&["actors", "protocol", "host", "controlplane", "tests"]) {
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(!never.contains(&name), "{}", file.display());
    }
}

#[test]
fn no_source_file_holds_two_concepts_worth_of_lines() {
    let long: Vec<String> = tree::sources(&["actors", "protocol", "host", "controlplane"])
        .into_iter()
        .filter(|file| {
            !file.ends_with("tests.rs") && !file.components().any(|part| part.as_os_str() == "tests")
        })
        .map(|file| (std::fs::read_to_string(&file).unwrap().lines().count(), file))
        .filter(|(lines, _)| *lines > 500)
        .map(|(lines, file)| format!("{} ({lines})", file.display()))
        .collect();
    assert!(long.is_empty(), "past 500 lines:\n{}", long.join("\n"));
}

#[test]
fn every_source_file_begins_with_what_it_is() {
    let without: Vec<String> =
        tree::sources(&["actors/src", "protocol/src", "host/src", "controlplane/src", "controlplane/cli"])
            .into_iter()
            .filter(|file| {
                !file.ends_with("tests.rs") && !file.components().any(|part| part.as_os_str() == "tests")
            })
            .filter(|file| !std::fs::read_to_string(file).unwrap().starts_with("//!"))
            .map(|file| file.display().to_string())
            .collect();
    assert!(without.is_empty(), "no `//!` at the top:\n{}", without.join("\n"));
}
