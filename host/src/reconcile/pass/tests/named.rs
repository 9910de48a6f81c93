//! Outcomes that have a code of their own, brought about by what brings them about.

use super::*;

#[test]
fn a_pipe_where_a_directory_is_declared_is_refused_and_a_file_below_nothing_fails() {
    let mut machine = Machine::new();
    nix::unistd::mkfifo(&machine.at("/srv/pipe"), nix::sys::stat::Mode::from_bits_truncate(0o644)).unwrap();
    machine.directory("/srv/pipe", "0755");
    machine.file("/srv/nowhere/a", "x");
    let done = machine.pass();
    assert_eq!(outcome(&done, "directory:/srv/pipe"), (Refused, Some("not_a_directory".to_owned())));
    assert_eq!(outcome(&done, "file:/srv/nowhere/a"), (Failed, Some("parent_missing".to_owned())));
}

// rule: H-24
#[test]
fn what_existed_before_us_and_leaves_has_the_code_left() {
    let mut machine = Machine::new();
    machine.write("/srv/theirs", "theirs");
    machine.file("/srv/theirs", "ours");
    machine.file("/srv/stays", "x");
    machine.pass();
    machine.forget("file:/srv/theirs");
    let done = machine.pass();
    assert_eq!(outcome(&done, "file:/srv/theirs"), (Released, Some("left".to_owned())));
}

/// What a program would take for an option, a pattern, a path, a wish to remove, or another command.
const HOSTILE: [&str; 22] = [
    "",
    " ",
    "-y",
    "--force-yes",
    "--allow-unauthenticated",
    "hello-",
    "hello=1.0",
    "hello/unstable",
    "hel*o",
    "^task",
    "~nhello",
    "?true",
    "./evil.deb",
    "/srv/evil.deb",
    "@group",
    "hello evil",
    "hello;reboot",
    "$(reboot)",
    "`reboot`",
    "hello\u{202e}",
    "hello\n-y",
    "hello\0",
];

// rule: S-14
#[test]
fn a_name_that_a_program_would_take_for_something_else_is_refused_and_reaches_none_whoever_declares_it() {
    let mut machine = Machine::with_programs();
    machine.installs("hello", "1.0");
    machine.has_unit("hello.service", scripted::unit("active", "enabled"));
    for name in HOSTILE {
        machine.package(name, "present", &[]);
        machine.package(&format!("{name}:amd64 "), "absent", &[]);
        // systemd knows such a name, and nothing but a name by it.
        if name != "hello-" {
            machine.unit(&format!("{name}.service"), serde_json::json!({ "running": false }), &[]);
        }
        machine.unit(name, serde_json::json!({ "enabled": false }), &[]);
    }
    for version in ["--reinstall", "1.0 -y", "1.0;reboot", "*", "$(reboot)"] {
        machine.package(&format!("v{}", version.len()), version, &[]);
    }
    machine.file_with("/srv/his", "x", serde_json::json!({ "owner": "-root" }));
    machine.file_with("/srv/ours", "x", serde_json::json!({ "group": "root:root" }));
    machine.file("/srv/fine", "fine");
    let declared = machine.resources.len();
    let done = machine.pass_unforeseen();
    assert_eq!(done.outcomes.len(), declared);
    for line in done.outcomes.iter().filter(|line| line.key != "file:/srv/fine") {
        assert_eq!(line.outcome, Refused, "{line:?}");
    }
    assert_eq!(line(&done, "file:/srv/fine").outcome, Applied);
    // Not even asked about.
    let calls = std::mem::take(&mut machine.state().calls);
    assert_eq!(calls, Vec::<String>::new());
    assert_eq!(
        (machine.version("hello").as_deref(), machine.is("hello.service")),
        (Some("1.0"), ("active", "enabled"))
    );
}
