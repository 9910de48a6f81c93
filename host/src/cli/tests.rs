use std::path::Path;

use super::*;

#[test]
fn the_commands_are_put_together_without_contradiction() {
    Cli::command().debug_assert();
}

// case: O-62
#[test]
fn a_token_among_the_arguments_is_taken_only_to_be_refused() {
    for arguments in [
        ["tenure-host", "enrol", "tenure_e1_abc"].as_slice(),
        &["tenure-host", "enrol", "--token", "tenure_e1_abc"],
        &["tenure-host", "enrol", "--token-file", "f", "tenure_e1_abc"],
    ] {
        let Command::Enrol { token, argument, .. } = Cli::try_parse_from(arguments).unwrap().command else {
            panic!()
        };
        assert!(token.is_some() || argument.is_some());
    }
    let refusal = token_as_an_argument();
    assert_eq!(refusal.code, "token_in_arguments");
    assert!(refusal.remedy.contains("--token-file") && !refusal.happened.contains("tenure_e1_"));
}

#[test]
fn an_enrolment_without_a_token_is_a_question_of_usage() {
    assert!(Cli::try_parse_from(["tenure-host", "enrol"]).is_err());
}

#[test]
fn root_and_json_may_stand_behind_the_command() {
    let cli = Cli::try_parse_from(["tenure-host", "status", "--root", "/x", "--sandbox", "--json"]).unwrap();
    assert_eq!((cli.root, cli.sandbox, cli.json), (PathBuf::from("/x"), true, true));
}

/// The help of the program and of each of its commands, as they are printed.
fn help() -> String {
    let mut host = Cli::command();
    host.build();
    let mut text = format!("## tenure-host\n\n{}", host.render_long_help());
    for command in host.get_subcommands_mut().filter(|command| command.get_name() != "help") {
        let help = command.render_long_help();
        text.push_str(&format!("\n## tenure-host {}\n\n{help}", command.get_name()));
    }
    text
}

#[test]
fn the_help_is_the_golden_text() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/help/tenure-host.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, help()).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == help(), "the help changed: run `tests/run bless` and read what changed");
}
