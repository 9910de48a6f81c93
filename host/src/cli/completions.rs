//! `tenure-host completions SHELL`: a script for the shell, made from the same description that the command line is
//! parsed by. It asks no daemon and reads no store.

use clap::{CommandFactory as _, ValueEnum};
use clap_complete::aot;

use super::{Cli, Done, say};

pub(super) const SOURCED: &str = "\
bash: source <(tenure-host completions bash), in ~/.bashrc
zsh:  tenure-host completions zsh > a file `_tenure-host` in a folder of $fpath
fish: tenure-host completions fish > ~/.config/fish/completions/tenure-host.fish";

/// The shells a script is made for.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Shell {
    /// The Bourne again shell.
    Bash,
    /// The Z shell.
    Zsh,
    /// The friendly interactive shell.
    Fish,
}

pub(super) fn print(shell: Shell) -> Done {
    say(std::io::stdout(), script(shell).trim_end());
    Done::Well
}

fn script(shell: Shell) -> String {
    let shell = match shell {
        Shell::Bash => aot::Shell::Bash,
        Shell::Zsh => aot::Shell::Zsh,
        Shell::Fish => aot::Shell::Fish,
    };
    let mut command = Cli::command();
    let hidden = hidden(&command);
    let mut bytes = Vec::new();
    aot::generate(shell, &mut command, "tenure-host", &mut bytes);
    let script = String::from_utf8_lossy(&bytes);
    let lines = script.lines().filter(|line| !hidden.iter().any(|name| offers(line, name)));
    let script: String = lines.map(|line| format!("{line}\n")).collect();
    let script = hidden.iter().fold(script, |script, name| script.replace(&format!(" --{name} "), " "));
    // The generator spells a program with a hyphen in two ways, and bash then finds no command below it.
    script.replace("tenure__subcmd__host__subcmd__", "tenure__host__subcmd__")
}

/// What is taken only to be refused, or for our own use: the generator would offer it (O-62).
fn hidden(command: &clap::Command) -> Vec<String> {
    let below = command.get_subcommands().flat_map(hidden);
    let own = command.get_arguments().filter(|argument| argument.is_hide_set());
    own.map(|argument| argument.get_long().unwrap_or(argument.get_id().as_str()).to_owned())
        .chain(below)
        .collect()
}

/// Whether a line of a script for zsh or fish is there to offer this and nothing else.
fn offers(line: &str, name: &str) -> bool {
    let zsh = [format!("'--{name}="), format!("'--{name}["), format!("'::{name} -- ")];
    zsh.iter().any(|start| line.starts_with(start)) || line.contains(&format!(" -l {name} "))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a real shell reads the script")]
    fn bash(arguments: &[&str]) -> String {
        let ran = Command::new("bash").arg("--norc").args(arguments).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    }

    #[test]
    fn bash_parses_the_script_and_completes_by_it_without_offering_the_token_as_an_argument() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenure-host.bash");
        std::fs::write(&path, script(Shell::Bash)).unwrap();
        let path = path.to_str().unwrap();
        bash(&["-n", path]);
        let ask = "source \"$0\" && f=$(complete -p tenure-host) && f=${f#*-F } && f=${f%% *} && COMP_WORDS=(\"$@\") && COMP_CWORD=$(($# - 1)) && \
                   \"$f\" tenure-host \"${@: -1}\" \"${@: -2:1}\" && printf '%s\\n' \"${COMPREPLY[@]}\"";
        assert_eq!(bash(&["-c", ask, path, "tenure-host", "st"]), "status\n");
        assert_eq!(bash(&["-c", ask, path, "tenure-host", "enrol", "--token"]), "--token-file\n");
    }

    #[test]
    fn each_shell_has_a_script_that_knows_every_command() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell);
            for command in Cli::command().get_subcommands() {
                assert!(
                    script.contains(command.get_name()),
                    "{shell:?} does not know {}",
                    command.get_name()
                );
            }
        }
    }
}
