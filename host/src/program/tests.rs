use super::*;

const SOON: Duration = Duration::from_secs(20);

#[test]
fn a_program_is_run_without_a_shell_with_a_fixed_environment_and_no_input() {
    let ran = System
        .run("sh", &["-c", "read x; echo \"$LC_ALL:$x:$NOTIFY_SOCKET\"; echo no >&2; exit 3"], SOON)
        .unwrap();
    assert_eq!(ran, Ran { status: Some(3), out: "C::\n".into(), err: "no\n".into() });
    let ran = System.run("echo", &["a;b", "$HOME"], SOON).unwrap();
    assert_eq!(ran.out, "a;b $HOME\n");
}

#[test]
fn a_program_that_is_not_there_is_said_to_be_not_there() {
    assert!(matches!(System.run("no-such-program", &[], SOON), Err(ProgramError::NotThere(_))));
}

#[test]
fn a_program_that_takes_too_long_is_ended() {
    let short = Duration::from_millis(50);
    assert!(matches!(System.run("sleep", &["600"], short), Err(ProgramError::TooLong { .. })));
}

#[test]
fn output_is_bounded_and_its_end_is_kept() {
    let ran = System.run("sh", &["-c", "head -c 6000000 /dev/zero | tr '\\0' x; echo end"], SOON).unwrap();
    assert_eq!(ran.out.len(), MOST);
    assert!(ran.out.ends_with("xend\n"));
}

#[test]
fn last_words_are_the_end_of_what_was_said_escaped() {
    let ran = Ran { status: Some(1), out: "fine".into(), err: "a\nb\n\nE: c\u{1b}[2J\nd\n".into() };
    assert_eq!(ran.last_words(), "b / E: c\\u{1b}[2J / d");
}
