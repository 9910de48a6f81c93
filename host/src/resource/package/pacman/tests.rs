//! By what pacman 6.0.2 really says, captured from it as it is asked here.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::*;
use crate::ground::Ground;
use crate::program::ProgramError;
use crate::resource::Kind;
use crate::resource::Stands;
use crate::resource::package::apt::{LOCK_HELD, UNMET};
use crate::resource::package::meaning::NOT_FETCHED;

fn ran(status: i32, text: &str) -> Ran {
    Ran { status: Some(status), out: text.into(), err: String::new() }
}

fn touched(names: &[&str]) -> Begun {
    names.iter().map(|name| ((*name).to_owned(), Some("1.0-1".to_owned()))).collect()
}

// rule: H-25
#[test]
fn what_pacman_would_do_is_read_package_by_package() {
    let would = |text: &'static str| -> Vec<_> {
        said::would(text).map(|would| (would.source, would.name, would.version)).collect()
    };
    let install = would(include_str!("golden/would_install.txt"));
    assert_eq!(install, [("lab", "hello", "1.0-1"), ("lab", "dep", "1.0-1")]);
    assert_eq!(would(include_str!("golden/would_remove.txt")), [("local", "dep", "1.0-1")]);
    let raise = would(include_str!("golden/would_raise.txt"));
    assert_eq!(raise, [("lab", "hello", "1.22.9-1"), ("lab", "depnew", "1.0-1")]);
    assert_eq!(would(include_str!("golden/conflict.txt")), []);
}

/// pacman as it answers who is called so or provides that.
struct Provided;

impl Programs for Provided {
    fn run(&self, _: &str, words: &[&str], _: Duration) -> Result<Ran, ProgramError> {
        assert_eq!(words, ["-Ssq", "--", "^lib\\.so\\+$"], "what a pattern would read otherwise is plain");
        Ok(ran(0, include_str!("golden/providers.txt")))
    }

    fn attend(&self, p: &str, a: &[&str], within: Duration, _: &AtomicBool) -> Result<Ran, ProgramError> {
        self.run(p, a, within)
    }

    fn rest(&self, _: Duration) {}
}

#[test]
fn who_provides_a_name_is_asked_by_exactly_that_name() {
    let (folder, never) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
    let ground = Ground::new(folder.path(), false);
    let tools = Tools::new(&ground, Some(&Provided), None, &never);
    assert_eq!(Pacman::of(&tools).unwrap().providers("lib.so+"), ["p-prov-a", "p-prov-b"]);
}

#[test]
fn each_failure_of_pacman_has_its_own_code() {
    for (text, stands, code, named) in [
        (include_str!("golden/unknown.txt"), Stands::Failed, "unknown_package", "hello=9-1"),
        (include_str!("golden/would_unsatisfied.txt"), Stands::Failed, UNMET, "hello>=1.22.9"),
        (
            include_str!("golden/conflict.txt"),
            Stands::Refused,
            "transaction_refused",
            "rival conflicts with hello",
        ),
        (include_str!("golden/breaks.txt"), Stands::Refused, "transaction_refused", "which dep needs"),
        (include_str!("golden/in_use.txt"), Stands::Outstanding, LOCK_HELD, "unable to lock database"),
        (include_str!("golden/not_fetched.txt"), Stands::Failed, NOT_FETCHED, "dep-1.0-1-any.pkg.tar.gz"),
        (
            include_str!("golden/unsigned.txt"),
            Stands::Refused,
            "unsigned_package",
            "dep-1.0-1-any.pkg.tar.gz.sig",
        ),
        (
            include_str!("golden/files_conflict.txt"),
            Stands::Failed,
            "package_manager_failed",
            "/usr/share/hello/it",
        ),
    ] {
        let trouble = said::failed(PACMAN, &ran(1, text));
        assert_eq!((trouble.stands, trouble.code), (stands, code), "{}", trouble.reason);
        assert!(trouble.reason.contains(named), "{}", trouble.reason);
    }
}

// case: O-13
#[test]
fn a_script_that_failed_is_told_of_its_package_with_what_it_said() {
    let remarks = said::remarks(&ran(0, include_str!("golden/script_failed.txt")), &touched(&["badpost"]));
    assert_eq!(remarks["badpost"].kind, Kind::ScriptFailed);
    assert!(remarks["badpost"].reason.contains("I am broken"), "{remarks:?}");
}

// case: O-12
#[test]
fn a_configuration_file_that_lies_beside_another_is_told_of_its_package() {
    let kept = said::remarks(&ran(0, include_str!("golden/kept.txt")), &touched(&["hello"]));
    assert_eq!(kept["hello"].kind, Kind::ConfigurationKept);
    assert!(kept["hello"].reason.contains("/etc/hello.conf.pacnew"), "{kept:?}");
    let saved = said::remarks(&ran(0, include_str!("golden/saved.txt")), &touched(&["hello", "dep"]));
    assert!(saved["hello"].reason.contains("/etc/hello.conf.pacsave"), "{saved:?}");
}

#[test]
fn the_versions_it_offers_are_those_of_the_very_name() {
    let text = include_str!("golden/offered.txt");
    assert_eq!(said::offered("hello", text), ["1.0-1"]);
    assert_eq!(said::offered("hell", text), Vec::<String>::new());
    assert_eq!(said::offered("nosuch", include_str!("golden/offered_none.txt")), Vec::<String>::new());
}

// rule: S-14
#[test]
fn names_stand_behind_the_two_dashes_and_nobody_is_asked() {
    let mut wanted = Wanted::default();
    wanted.remove.insert("c".into());
    assert_eq!(transaction(&wanted), ["-R", "--noconfirm", "--noprogressbar", "--", "c"]);
    wanted.install.insert("a".into(), Some("1:2.0-1".into()));
    let words = ["-S", "--needed", "--noconfirm", "--noprogressbar", "--", "a=1:2.0-1"];
    assert_eq!(transaction(&wanted), words);
}
