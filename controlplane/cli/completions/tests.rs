use std::process::Command;

use super::*;

/// What bash offers for the last of `words`, by the script.
fn offered(words: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tenure.bash");
    std::fs::write(&path, script(Shell::Bash)).unwrap();
    let ask = "source \"$0\" && f=$(complete -p tenure) && f=${f#*-F } && f=${f%% *} && COMP_WORDS=(\"$@\") && COMP_CWORD=$(($# - 1)) && \
               \"$f\" tenure \"${@: -1}\" \"${@: -2:1}\" && printf '%s\\n' \"${COMPREPLY[@]}\"";
    let said = bash(&["-c", ask, path.to_str().unwrap()], words);
    said.lines().map(str::to_owned).collect()
}

#[expect(clippy::disallowed_methods, reason = "a real shell reads the script")]
fn bash(arguments: &[&str], words: &[&str]) -> String {
    let ran = Command::new("bash").args(["--norc"]).args(arguments).args(words).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn bash_completes_a_command_and_a_flag_by_the_script() {
    let commands = offered(&["tenure", "re"]);
    assert!(["reinvite", "render", "retire"].iter().all(|name| commands.iter().any(|c| c == name)));
    assert!(!commands.iter().any(|command| command == "nodes"), "{commands:?}");
    assert_eq!(offered(&["tenure", "declare", "--al"]), ["--allow-removals"]);
    assert_eq!(offered(&["tenure", "completions", "f"]), ["fish"]);
}

#[test]
fn bash_parses_its_script() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tenure.bash");
    std::fs::write(&path, script(Shell::Bash)).unwrap();
    bash(&["-n", path.to_str().unwrap()], &[]);
}

#[test]
fn each_shell_has_a_script_that_knows_every_command() {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let script = script(shell);
        for command in Cli::command().get_subcommands() {
            assert!(script.contains(command.get_name()), "{shell:?} does not know {}", command.get_name());
        }
    }
}
