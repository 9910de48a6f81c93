//! What is told of packages that are installed all the same: pacman goes on over a script that fails.

use super::packages::key;
use super::scripted::{Scripted, said};
use super::*;
use crate::program::{ProgramError, Ran};

impl Scripted {
    /// pacman, which brings what it is told and says what it once said.
    pub(super) fn pacman(&self, words: &[&str]) -> Result<Ran, ProgramError> {
        let name = words.last().unwrap();
        if words.contains(&"--print") {
            return said(0, format!("would|lab|{name}|1.0-1\n"), "");
        }
        let entry = self.root.join(format!("var/lib/pacman/local/{name}-1.0-1"));
        std::fs::create_dir_all(&entry).unwrap();
        std::fs::write(entry.join("desc"), format!("%NAME%\n{name}\n\n%VERSION%\n1.0-1\n")).unwrap();
        let words = match *name {
            "badpost" => include_str!("../../../resource/package/pacman/golden/script_failed.txt"),
            "hello" => include_str!("../../../resource/package/pacman/golden/kept.txt"),
            _ => "",
        };
        said(0, words, "")
    }
}

/// Who brings it anew changes when it was brought.
fn brought_at(machine: &Machine, name: &str, seconds: u32) {
    let desc = machine.ground.at(&format!("/var/lib/pacman/local/{name}-1.0-1/desc"));
    let text = format!("%NAME%\n{name}\n\n%VERSION%\n1.0-1\n\n%INSTALLDATE%\n{seconds}\n");
    std::fs::write(desc, text).unwrap();
}

pub(super) fn with_pacman() -> Machine {
    let machine = Machine::with_programs();
    let (etc, local) = (machine.ground.at("/etc/tenure"), machine.ground.at("/var/lib/pacman/local"));
    [&etc, &local].into_iter().for_each(|folder| std::fs::create_dir_all(folder).unwrap());
    std::fs::write(etc.join("host.toml"), "packages = \"pacman\"\n").unwrap();
    let itself = local.join("pacman-6.0.2-6");
    std::fs::create_dir_all(&itself).unwrap();
    std::fs::write(itself.join("desc"), "%NAME%\npacman\n\n%VERSION%\n6.0.2-6\n").unwrap();
    machine
}

fn told(done: &PassDone) -> Vec<(&str, &str)> {
    done.events.iter().map(|event| (event.kind.as_str(), event.text.as_str())).collect()
}

// case: O-13
#[test]
fn a_package_whose_script_failed_is_never_plainly_applied_and_is_told_until_it_is_brought_anew() {
    let mut machine = with_pacman();
    machine.package("badpost", "present", &[]);
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("badpost")), (Applied, Some("package_script_failed".to_owned())));
    let told = told(&done);
    assert_eq!((told.len(), told[0].0), (1, event::PACKAGE_REMARK));
    assert!(told[0].1.contains("I am broken"), "{told:?}");
    brought_at(&machine, "badpost", 2);
    let failed = (Unchanged, Some("package_script_failed".to_owned()));
    for _ in 0..3 {
        let quiet = machine.pass();
        assert_eq!((quiet.summary.counts.in_words().as_str(), quiet.events.len()), ("1 unchanged", 0));
        assert_eq!(outcome(&quiet, &key("badpost")), failed);
        assert!(reason(&quiet, &key("badpost")).contains("I am broken"));
    }
    brought_at(&machine, "badpost", 9);
    assert_eq!(outcome(&machine.pass(), &key("badpost")), (Unchanged, None));
}

// case: O-12
#[test]
fn a_configuration_file_that_was_kept_is_said_of_its_package() {
    let mut machine = with_pacman();
    machine.package("hello", "present", &[]);
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("hello")), (Applied, Some("configuration_kept".to_owned())));
    assert!(reason(&done, &key("hello")).contains("/etc/hello.conf.pacnew"));
}
