use std::path::Path;

use clap::{CommandFactory as _, Parser as _};
use tenure_protocol::command_line::mistake;

use super::*;

/// The help of the program and of each of its commands, as they are printed.
fn help() -> String {
    let mut tenure = Cli::command();
    tenure.build();
    let mut text = format!("## tenure\n\n{}", tenure.render_long_help());
    for command in tenure.get_subcommands_mut() {
        let help = command.render_long_help();
        text.push_str(&format!("\n## tenure {}\n\n{help}", command.get_name()));
    }
    text
}

#[test]
fn the_commands_are_put_together_without_contradiction() {
    Cli::command().debug_assert();
}

#[test]
fn the_help_is_the_golden_text() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/help/tenure.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, help()).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == help(), "the help changed: run `tests/run bless` and read what changed");
}

/// What somebody may mistype, with a bar between the words.
const MISTYPED: [&str; 22] = [
    "tenure",
    "tenure|nods",
    "tenure|--sokcet|/x|nodes",
    "tenure|node",
    "tenure|node|Edge 1",
    "tenure|node|edge-1|edge-2",
    "tenure|invite|edge-1|--valid|soon",
    "tenure|invite|edge-1|--valid",
    "tenure|invite|edge-1|--rejoin|never",
    "tenure|invite|edge-1|--jsn",
    "tenure|declare",
    "tenure|declare|fleet|--plan|--wait",
    "tenure|declare|fleet|--wait|60s",
    "tenure|declare|fleet|--wait=soon",
    "tenure|declare|fleet|--allow-removals|many",
    "tenure|render|fleet|--node|edge-1",
    "tenure|up|--root|/x",
    "tenure|up|--listen|7443",
    "tenure|up|--listen|127.0.0.1:0",
    "tenure|completions|csh",
    "tenure|nodes|--socket",
    "tenure|nodes|--socket|/a|--socket|/b",
];

/// What is said of each.
fn mistakes() -> String {
    let mut text = String::new();
    for line in MISTYPED {
        let words: Vec<&str> = line.split('|').collect();
        let error = Cli::try_parse_from(&words).expect_err(line);
        let refusal = mistake(&error, Cli::command(), words.iter().map(Into::into)).expect(line);
        text.push_str(&format!("$ {}\n{}\n\n", words.join(" "), refusal.in_words("tenure")));
    }
    text
}

// case: O-68
#[test]
fn what_is_said_of_a_mistyped_line_is_the_golden_text() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/mistakes/tenure.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, mistakes()).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == mistakes(), "run `tests/run bless` and read what changed:\n{}", mistakes());
}
