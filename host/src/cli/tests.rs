use clap::CommandFactory as _;

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
    let refusal = enrol::as_an_argument();
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
