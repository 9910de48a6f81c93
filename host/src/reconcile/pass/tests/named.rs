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
