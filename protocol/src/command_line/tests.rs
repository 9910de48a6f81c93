use clap::{Arg, ArgAction, Command, value_parser};

use super::*;

fn tool() -> Command {
    let node = Arg::new("node").required(true);
    let hours = Arg::new("hours").long("hours").value_name("N").value_parser(value_parser!(u8));
    let plan = Arg::new("plan").long("plan").action(ArgAction::SetTrue).conflicts_with("hours");
    let shell = Arg::new("shell").long("shell").value_parser(["bash", "zsh"]);
    let secret = Arg::new("secret").long("secret").hide(true);
    let look = Command::new("look").args([node, hours, plan, shell, secret]);
    Command::new("our-tool").subcommand_required(true).arg_required_else_help(true).subcommand(look)
}

fn said_of(words: &[&str]) -> Refusal {
    let error = tool().try_get_matches_from(words).unwrap_err();
    mistake(&error, tool(), words.iter().map(OsString::from)).unwrap_or_else(|| panic!("{words:?}: {error}"))
}

// case: O-68
#[test]
fn each_kind_of_mistake_has_its_own_code_and_names_what_was_typed_and_how_it_is_typed() {
    for (words, code, happened) in [
        (&["our-tool"][..], "missing_command", "`our-tool` was given no command"),
        (&["our-tool", "lok"], "unknown_command", "there is no command `lok` here; did you mean `look`"),
        (
            &["our-tool", "look", "a", "--huors"],
            "unknown_argument",
            "there is no argument `--huors` here; did you mean `--hours`",
        ),
        (&["our-tool", "look", "a", "b"], "unknown_argument", "there is no argument `b` here"),
        (&["our-tool", "look"], "missing_argument", "`<node>` is missing"),
        (&["our-tool", "look", "--plan"], "missing_argument", "`<node>` is missing"),
        (
            &["our-tool", "look", "a", "--hours", "1000"],
            "bad_argument",
            "`1000` is no value for `--hours <N>`: 1000 is not in 0..=255",
        ),
        (&["our-tool", "look", "a", "--hours"], "bad_argument", "`--hours <N>` needs a value"),
        (
            &["our-tool", "look", "a", "--shell", "csh"],
            "bad_argument",
            "`csh` is no value for `--shell <shell>`; it is one of `bash`, `zsh`",
        ),
        (
            &["our-tool", "look", "a", "--plan", "--hours", "1"],
            "arguments_conflict",
            "`--plan` and `--hours <N>` contradict each other",
        ),
        (
            &["our-tool", "look", "a", "--hours", "1", "--hours", "2"],
            "arguments_conflict",
            "`--hours <N>` was given more than once",
        ),
    ] {
        let refusal = said_of(words);
        assert_eq!((refusal.code.as_str(), refusal.happened.as_str()), (code, happened), "{words:?}");
        assert!(refusal.remedy.contains("--help`"), "{refusal:?}");
    }
    let refusal = said_of(&["our-tool", "look", "--plan"]);
    let usage = "type it as `our-tool look --plan <node>`; `our-tool look --help` says what each is";
    assert_eq!(refusal.remedy, usage);
}

#[test]
fn help_and_version_are_no_mistakes() {
    let error = tool().try_get_matches_from(["our-tool", "look", "--help"]).unwrap_err();
    assert_eq!(mistake(&error, tool(), []), None);
}

// rule: S-20
#[test]
fn what_was_typed_is_quoted_without_moving_the_cursor_and_not_without_end() {
    let refusal = said_of(&["our-tool", &format!("\u{1b}[2J\n\u{202e}{}", "x".repeat(5000))]);
    assert!(refusal.is("unknown_command"), "{refusal:?}");
    assert!(!refusal.happened.contains(['\u{1b}', '\n', '\u{202e}']), "{refusal:?}");
    assert!(refusal.happened.len() < 400, "{refusal:?}");
}

#[test]
fn each_shell_has_a_script_that_knows_every_command_and_nothing_hidden() {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let script = shell.script(tool());
        assert!(script.contains("look") && script.contains("hours"), "{shell:?}");
        let offers = [" --secret ", "'--secret=", "'--secret[", " -l secret "];
        assert!(!offers.iter().any(|offer| script.contains(offer)), "{shell:?}: {script}");
    }
}

// case: O-62
#[test]
fn a_token_among_the_words_is_refused_before_they_are_read_and_not_said_again() {
    let words = |words: &[&str]| without_tokens(words.iter().map(OsString::from));
    assert!(words(&["tenure", "node", "edge-1"]).is_ok());
    for given in [["tenure", "node", "tenure_e1_abc"], ["tenure", "--socket=tenure_e1_abc", "nodes"]] {
        let refusal = words(&given).unwrap_err();
        assert!(refusal.is("token_in_arguments") && refusal.remedy.contains("--token-file"));
        assert!(!refusal.in_words("tenure").contains("tenure_e1_"));
    }
}
