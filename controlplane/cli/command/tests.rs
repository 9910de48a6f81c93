use std::path::Path;

use clap::CommandFactory as _;

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
