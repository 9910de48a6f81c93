//! What a person types at a shell, of each of the three programs: a line that is none, and the key that completes it.

use std::path::Path;

use tenure_tests::program::{Ran, run, run_as};
use tenure_tests::tree;

const PROGRAMS: [&str; 3] = ["tenure", "tenure-host", "tenure-control"];

// case: O-68
#[test]
fn a_line_that_is_none_ends_with_two_and_says_what_happened_what_it_means_and_what_to_do() {
    for name in PROGRAMS {
        for (arguments, code) in [
            (&[][..], "missing_command"),
            (&["no-such-word"], "unknown_command"),
            (&["completions"], "missing_argument"),
            (&["completions", "csh"], "bad_argument"),
            (&["completions", "bash", "--no-such"], "unknown_argument"),
        ] {
            let ran = run(name, arguments, Path::new("/")).expect(2);
            let parts = [code, "means", "what to do", "--help`"];
            assert!(parts.iter().all(|part| ran.err.contains(part)) && ran.out.is_empty(), "{ran:?}");
        }
    }
    for name in ["tenure", "tenure-host"] {
        let ran = run(name, &["no-such-word", "--json"], Path::new("/")).expect(2);
        assert_eq!(ran.json()["refusal"]["code"], "unknown_command");
    }
}

/// What somebody may mistype, with a bar between the words.
const MISTYPED: [&str; 40] = [
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
    "tenure-host",
    "tenure-host|stats",
    "tenure-host|enrol",
    "tenure-host|enrol|--token-file",
    "tenure-host|status|--jsn",
    "tenure-host|plan|a|b",
    "tenure-host|completions",
    "tenure-host|completions|csh",
    "tenure-host|status|--root",
    "tenure-host|run|now",
    "tenure-control",
    "tenure-control|runn",
    "tenure-control|run|--listen|7443",
    "tenure-control|run|--listen",
    "tenure-control|run|--advertize|a:1",
    "tenure-control|run|--root|/a|--root|/b",
    "tenure-control|run|now",
    "tenure-control|completions|csh",
];

// case: O-68
#[test]
fn what_is_said_of_a_mistyped_line_is_the_golden_text() {
    for name in PROGRAMS {
        let mut text = String::new();
        for line in MISTYPED {
            let words: Vec<&str> = line.split('|').collect();
            if words[0] == name {
                let ran = run(name, &words[1..], Path::new("/")).expect(2);
                text.push_str(&format!("$ {}\n{}\n", words.join(" "), ran.err));
            }
        }
        let path = tree::root().join(format!("tests/golden/mistakes/{name}.txt"));
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(golden == text, "run `BLESS=1 tests/run journeys mistyped` and read what changed:\n{text}");
    }
}

// rule: N-02
#[test]
fn a_token_at_the_wrong_place_is_not_said_again_by_any_program() {
    for name in PROGRAMS {
        for arguments in
            [&["tenure_e1_secret"][..], &["run", "--root=tenure_e1_secret"], &["x", "tenure_e1_secret"]]
        {
            let ran = run(name, arguments, Path::new("/")).expect(3);
            assert!(ran.err.contains("token_in_arguments"), "{ran:?}");
            assert!(!format!("{}{}", ran.out, ran.err).contains("secret"), "{ran:?}");
        }
    }
}

#[test]
fn help_and_version_are_printed_and_are_no_mistakes() {
    for name in PROGRAMS {
        for asked in ["--help", "--version"] {
            let ran = run(name, &[asked], Path::new("/")).expect(0);
            assert!(ran.out.contains(name) && ran.err.is_empty(), "{ran:?}");
        }
    }
}

/// What a real bash does with this script and these words.
fn bash(script: &str, words: &[&str]) -> Ran {
    let shell = ["--norc", "-c", script];
    let arguments: Vec<&str> = shell.into_iter().chain(words.iter().copied()).collect();
    run_as(nix::unistd::geteuid().as_raw(), Path::new("/bin/bash"), &arguments, Path::new("/"))
}

/// What bash offers for the last of these words once it has read the program's script.
fn offered(words: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script");
    std::fs::write(&path, run(words[0], &["completions", "bash"], Path::new("/")).expect(0).out).unwrap();
    let path = path.to_str().unwrap();
    bash("bash -n \"$0\"", &[path]).expect(0);
    let ask = "source \"$0\" && f=$(complete -p $1) && f=${f#*-F } && f=${f%% *} && COMP_WORDS=(\"$@\") && \
               COMP_CWORD=$(($# - 1)) && \"$f\" $1 \"${@: -1}\" \"${@: -2:1}\" && printf '%s\\n' \"${COMPREPLY[@]}\"";
    let asked: Vec<&str> = [path].into_iter().chain(words.iter().copied()).collect();
    bash(ask, &asked).expect(0).out.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn a_real_bash_completes_commands_and_flags_of_each_program_by_its_script() {
    let commands = offered(&["tenure", "re"]);
    assert!(["reinvite", "render", "retire"].iter().all(|name| commands.iter().any(|c| c == name)));
    assert!(!commands.iter().any(|command| command == "nodes"), "{commands:?}");
    assert_eq!(offered(&["tenure", "declare", "--al"]), ["--allow-removals"]);
    assert_eq!(offered(&["tenure", "completions", "f"]), ["fish"]);
    assert_eq!(offered(&["tenure-host", "st"]), ["status"]);
    // Never the token as an argument, which is taken only to be refused.
    assert_eq!(offered(&["tenure-host", "enrol", "--token"]), ["--token-file"]);
    assert_eq!(offered(&["tenure-control", "ru"]), ["run"]);
    assert_eq!(offered(&["tenure-control", "run", "--adv"]), ["--advertise"]);
    assert!(
        offered(&["tenure-control", "run", "--die"]).is_empty(),
        "what is for our own use is not offered"
    );
}

#[test]
fn the_scripts_for_the_other_shells_know_every_command() {
    for (name, command) in [("tenure", "reinvite"), ("tenure-host", "enrol"), ("tenure-control", "run")] {
        for shell in ["zsh", "fish"] {
            let script = run(name, &["completions", shell], Path::new("/")).expect(0).out;
            assert!(script.contains(command) && script.contains("completions"), "{name}: {shell}");
        }
    }
}
