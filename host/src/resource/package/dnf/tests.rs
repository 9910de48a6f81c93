//! By what dnf 4.14 really says, captured from it as it is asked here.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::*;
use crate::ground::Ground;
use crate::program::ProgramError;
use crate::resource::Kind;
use crate::resource::Seen;
use crate::resource::Stands;
use crate::resource::package::apt::{LOCK_HELD, UNMET};
use crate::resource::package::dpkg::Package;
use crate::resource::package::observe;
use tenure_protocol::resource::{PackageName, PackageSpec};

fn ran(status: i32, text: &str) -> Ran {
    Ran { status: Some(status), out: text.into(), err: String::new() }
}

fn installed(all: &[(&str, &str)]) -> Packages {
    let one = |(name, version): &(&str, &str)| {
        ((*name).to_owned(), Package::installed((*version).to_owned(), "noarch".to_owned()))
    };
    all.iter().map(one).collect()
}

fn would(status: i32, text: &str, now: &[(&str, &str)]) -> Simulated {
    said::simulation(&ran(status, text), &installed(now)).unwrap()
}

fn touched(names: &[&str]) -> Begun {
    names.iter().map(|name| ((*name).to_owned(), Some("1.0-1".to_owned()))).collect()
}

// rule: H-25
#[test]
fn what_dnf_would_do_is_read_package_by_package() {
    let fresh = would(1, include_str!("golden/would_install.txt"), &[]);
    let new = |version: &str| (None, version.to_owned());
    assert_eq!(fresh.install["hello"], new("1.0-1"));
    assert_eq!(fresh.install["epo"], new("2:1.0-1"));
    let old = |old: &str, new: &str| (Some(old.to_owned()), new.to_owned());
    let raised = would(1, include_str!("golden/would_upgrade.txt"), &[("hello", "1.0-1")]);
    assert_eq!(raised.install["hello"], old("1.0-1", "1.22.9-1"));
    let lowered = would(1, include_str!("golden/would_downgrade.txt"), &[("hello", "2.0-1")]);
    assert_eq!(lowered.install["hello"], old("2.0-1", "1.22.1-1"));
    let gone = would(1, include_str!("golden/would_remove.txt"), &[("hello", "1.0-1"), ("dep", "1.0-1")]);
    assert!(gone.remove.contains("hello") && gone.remove.contains("dep") && gone.install.is_empty());
    let room = would(1, include_str!("golden/would_make_room.txt"), &[("hello", "1.0-1")]);
    assert!(room.remove.contains("hello") && room.install.contains_key("rival"));
    assert_eq!(would(0, include_str!("golden/would_do_nothing.txt"), &[]), Simulated::default());
}

/// What dnf says of packages whose architectures are named, in the words of a real answer.
fn resolved(lines: &[&str]) -> String {
    let whole = include_str!("golden/would_install.txt");
    let (before, rest) = whole.split_once("---> Package").unwrap();
    let (_, after) = rest.split_once("--> Finished").unwrap();
    let lines: String = lines.iter().map(|line| format!("---> Package {line}\n")).collect();
    format!("{before}{lines}--> Finished{after}")
}

// rule: H-25
#[test]
fn what_goes_beside_the_one_that_a_name_means_is_named_with_its_architecture() {
    let one = |architecture: &str| {
        ("libz".to_owned(), Package::installed("1.0-1".to_owned(), architecture.to_owned()))
    };
    let now: Packages = [one("x86_64"), one("i686")].into_iter().collect();
    let text = resolved(&["libz.x86_64 1.0-1 will be erased", "libz.i686 1.0-1 will be erased"]);
    let gone = said::simulation(&ran(1, &text), &now).unwrap().remove;
    assert_eq!(gone.into_iter().collect::<Vec<_>>(), ["libz", "libz.i686"]);
    let called: Vec<_> = now.here("libz").map(|(called, _)| called).collect();
    assert_eq!(called, ["libz", "libz.i686"], "what is to go of it is called so too");
    assert_eq!(now.installed("libz.i686"), Some("1.0-1"));
    // Another architecture of what is brought is not what it replaces.
    let text = resolved(&["libz.x86_64 2.0-1 will be an upgrade", "libz.i686 1.0-1 will be erased"]);
    assert!(said::simulation(&ran(1, &text), &now).unwrap().remove.contains("libz.i686"));
    // What is new in one architecture does not hide what it replaces in another.
    let text = resolved(&["libz.x86_64 2.0-1 will be an upgrade", "libz.noarch 2.0-1 will be installed"]);
    let raised = said::simulation(&ran(1, &text), &now).unwrap();
    assert_eq!(raised.install["libz"], (Some("1.0-1".to_owned()), "2.0-1".to_owned()));
}

#[test]
fn the_oldest_of_several_that_makes_room_for_a_new_one_is_what_that_replaces() {
    let one =
        |version: &str| ("kernel".to_owned(), Package::installed(version.to_owned(), "x86_64".to_owned()));
    let now: Packages = [one("6.2-1"), one("6.1-1")].into_iter().collect();
    let text = resolved(&["kernel.x86_64 6.3-1 will be installed", "kernel.x86_64 6.1-1 will be erased"]);
    let simulated = said::simulation(&ran(1, &text), &now).unwrap();
    assert_eq!(simulated.install["kernel"], (Some("6.1-1".to_owned()), "6.3-1".to_owned()));
    assert!(simulated.remove.is_empty());
}

// rule: S-14
#[test]
fn what_is_no_answer_of_dnf_is_no_simulation() {
    let whole = include_str!("golden/would_install.txt");
    let cut = whole.split_once("--> Finished").unwrap().0;
    let strange = whole.replace("will be installed", "will be transmogrified");
    let error = include_str!("golden/in_conflict.txt");
    for text in [cut, strange.as_str(), error, "", "Operation aborted."] {
        assert_eq!(said::simulation(&ran(1, text), &installed(&[])), None, "{text}");
    }
}

#[test]
fn each_failure_of_dnf_has_its_own_code() {
    for (status, text, stands, code, named) in [
        (1, include_str!("golden/unknown.txt"), Stands::Failed, "unknown_package", "nosuch"),
        (1, include_str!("golden/in_conflict.txt"), Stands::Failed, UNMET, "conflicts with hello"),
        (1, include_str!("golden/locked.txt"), Stands::Refused, "package_on_hold", "hello-2.0-1"),
        (
            2,
            "Unknown argument \"--debuglevel=3\" for command \"dnf5\".\n",
            Stands::Refused,
            "dnf5_not_spoken",
            "--debuglevel=3",
        ),
        (
            1,
            "Error: Cache-only enabled but no cache for 'lab'\n",
            Stands::Unknown,
            "sources_not_read",
            "'lab'",
        ),
        (200, include_str!("golden/in_use.txt"), Stands::Outstanding, LOCK_HELD, "(dnf)"),
        (1, include_str!("golden/not_fetched.txt"), Stands::Failed, "package_not_fetched", "epo"),
        (
            1,
            include_str!("golden/unsigned.txt"),
            Stands::Refused,
            "unsigned_package",
            "epo-1.0-1.noarch.rpm is not signed",
        ),
        (1, include_str!("golden/stranger.txt"), Stands::Refused, "unsigned_package", "[lab]"),
        (
            1,
            include_str!("golden/other_key.txt"),
            Stands::Refused,
            "unsigned_package",
            "r-signed-1.0-1.noarch is signed by a key that nobody gave to rpm",
        ),
        (
            1,
            include_str!("golden/list_by_a_stranger.txt"),
            Stands::Refused,
            "unsigned_source",
            "repo 'signed'",
        ),
        (
            1,
            include_str!("golden/script_before_failed.txt"),
            Stands::Failed,
            "package_manager_failed",
            "badpre",
        ),
    ] {
        let trouble = said::failed(DNF, &ran(status, text));
        assert_eq!((trouble.stands, trouble.code), (stands, code), "{}", trouble.reason);
        assert!(trouble.reason.contains(named), "{}", trouble.reason);
    }
    assert!(said::needs_room(&ran(1, include_str!("golden/in_conflict.txt"))));
    assert!(!said::needs_room(&ran(1, include_str!("golden/unknown.txt"))));
}

// case: O-13
#[test]
fn a_script_that_failed_is_told_of_its_package_with_what_it_said() {
    let remarks = said::remarks(
        &ran(0, include_str!("golden/script_failed.txt")),
        &touched(&["badpost", "shell", "bad"]),
    );
    let remark = &remarks["badpost"];
    assert_eq!((remarks.len(), remark.kind), (1, Kind::ScriptFailed));
    assert!(remark.reason.contains("exit status 3") && remark.reason.contains("I am broken"), "{remark:?}");
}

// case: O-12
#[test]
fn a_configuration_file_that_lies_beside_another_is_told_of_its_package() {
    let kept = said::remarks(&ran(0, include_str!("golden/kept.txt")), &touched(&["hello"]));
    assert_eq!(kept["hello"].kind, Kind::ConfigurationKept);
    assert!(kept["hello"].reason.contains("/etc/hello.conf.rpmnew"), "{kept:?}");
    let saved = said::remarks(&ran(0, include_str!("golden/saved.txt")), &touched(&["hello", "dep"]));
    assert!(saved["hello"].reason.contains("/etc/hello.conf.rpmsave"), "{saved:?}");
}

#[test]
fn who_provides_a_name_is_read_and_nobody_is_where_a_package_has_it_for_its_own() {
    assert_eq!(said::providers("r-virtual", include_str!("golden/providers.txt")), ["r-prov-a", "r-prov-b"]);
    assert!(said::providers("r-prov-a", include_str!("golden/providers.txt")).is_empty());
    assert!(said::providers("r-virtual", "").is_empty());
}

#[test]
fn a_transaction_that_says_it_is_complete_is() {
    assert!(said::is_complete(&ran(0, include_str!("golden/kept.txt"))));
    assert!(said::is_complete(&ran(0, include_str!("golden/would_do_nothing.txt"))));
    assert!(!said::is_complete(&ran(0, include_str!("golden/in_use.txt"))));
}

#[test]
fn the_versions_it_offers_are_read_with_their_epoch() {
    let of = |name, text: &str| {
        let offers = text.lines().filter_map(|line| said::offered(name, line));
        offers.map(|(_, version)| version).collect::<Vec<_>>()
    };
    let hello = of("hello", include_str!("golden/offered.txt"));
    assert_eq!(hello, ["1.0-1", "1.22.1-1", "1.22.9-1", "2.0-1"]);
    assert_eq!(of("epo", include_str!("golden/offered_epoch.txt")), ["2:1.0-1"]);
    assert_eq!(of("hell", include_str!("golden/offered.txt")), Vec::<String>::new());
}

fn wanted(install: &[(&str, Option<&str>)], remove: &[&str]) -> Wanted {
    Wanted {
        install: install.iter().map(|(name, version)| ((*name).into(), version.map(str::to_owned))).collect(),
        remove: remove.iter().map(|name| (*name).into()).collect(),
        ..Wanted::default()
    }
}

// rule: S-14
#[test]
fn names_stand_behind_the_two_dashes() {
    let words = |wanted: &Wanted, erasing| {
        let spelled = several::spell(wanted, &installed(&[]), |_, _| Ok(BTreeSet::new())).unwrap();
        transaction(wanted, &spelled.names, erasing)
    };
    let two = wanted(&[("a", Some("2:1.0-1")), ("b", None)], &[]);
    assert_eq!(words(&two, false), ["install", "--", "a-2:1.0-1", "b"]);
    assert_eq!(words(&wanted(&[], &["c"]), true), ["remove", "--", "c"]);
}

// rule: S-13
#[test]
fn no_key_is_taken_that_a_source_names_and_the_host_is_taken_by_one_that_rpm_has() {
    let (folder, never) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
    let ground = Ground::new(folder.path(), false);
    let tools = Tools::new(&ground, Some(&Nothing), None, &never);
    let dnf = Dnf::of(&tools).unwrap();
    let command = |name: &str| dnf.command(&wanted(&[(name, None)], &[]), &touched(&[name]), None);
    let says = |name: &str, word: &str| command(name).iter().any(|said| said == word);
    for word in ["--setopt=gpgcheck=1", "--setopt=*.gpgcheck=1"] {
        assert!(says(OWN_PACKAGE, word) && !says("hello", word), "{word}");
    }
    for name in [OWN_PACKAGE, "hello"] {
        assert!(says(name, NO_NEW_KEY), "{name}");
    }
}

#[test]
fn a_transaction_says_its_end_whatever_the_operator_has_dnf_say() {
    let (folder, never) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
    let ground = Ground::new(folder.path(), false);
    let tools = Tools::new(&ground, Some(&Nothing), None, &never);
    let dnf = Dnf::of(&tools).unwrap();
    let command = dnf.command(&wanted(&[("hello", None)], &[]), &touched(&["hello"]), None);
    assert!(command.iter().any(|word| word == "--debuglevel=2"), "{command:?}");
}

/// dnf as it is called, which answers nothing.
struct Heard(Mutex<Vec<String>>);

impl Programs for Heard {
    fn run(&self, _: &str, words: &[&str], _: Duration) -> Result<Ran, ProgramError> {
        let logs = words.iter().find_map(|word| word.strip_prefix("--setopt=logdir="));
        assert!(logs.is_none_or(|logs| std::path::Path::new(logs).is_dir()), "{logs:?}");
        *self.0.lock().unwrap() = words.iter().map(|word| (*word).to_owned()).collect();
        Ok(ran(0, ""))
    }

    fn attend(&self, p: &str, a: &[&str], within: Duration, _: &AtomicBool) -> Result<Ran, ProgramError> {
        self.run(p, a, within)
    }

    fn rest(&self, _: Duration) {}
}

// rule: S-13
#[test]
fn whatever_dnf_is_asked_it_takes_no_key_that_a_source_names() {
    let (folder, never) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
    std::fs::create_dir(folder.path().join("run")).unwrap();
    let ground = Ground::new(folder.path(), false);
    let heard = Heard(Mutex::default());
    let tools = Tools::new(&ground, Some(&heard), None, &never);
    let dnf = Dnf::of(&tools).unwrap();
    let asks: [&dyn Fn(); 4] = [
        &|| drop(dnf.simulate(&wanted(&[("hello", None)], &[]), &installed(&[]), None)),
        &|| drop(dnf.versions("hello")),
        &|| drop(dnf.providers("hello")),
        &|| drop(dnf.update()),
    ];
    for ask in asks {
        heard.0.lock().unwrap().clear();
        ask();
        let words = heard.0.lock().unwrap();
        assert!(words.iter().any(|word| word == NO_NEW_KEY), "{words:?}");
    }
}

// rule: H-25
#[test]
fn what_only_looks_reads_no_source_and_leaves_no_log() {
    let (folder, never) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
    std::fs::create_dir(folder.path().join("run")).unwrap();
    let ground = Ground::new(folder.path(), false);
    let heard = Heard(Mutex::default());
    let tools = Tools::new(&ground, Some(&heard), None, &never);
    let dnf = Dnf::of(&tools).unwrap();
    let looks = |words: &[String]| {
        assert!(words.iter().any(|word| word == "--cacheonly"), "{words:?}");
        assert!(words.iter().any(|word| word.starts_with("--setopt=logdir=")), "{words:?}");
    };
    let _ = dnf.simulate(&wanted(&[("hello", None)], &[]), &installed(&[]), None);
    looks(&heard.0.lock().unwrap());
    assert!(dnf.providers("hello").is_empty());
    looks(&heard.0.lock().unwrap());
    dnf.versions("hello").unwrap();
    looks(&heard.0.lock().unwrap());
    assert_eq!(std::fs::read_dir(folder.path().join("run")).unwrap().count(), 0);
}

/// No program is there.
struct Nothing;

impl Programs for Nothing {
    fn run(&self, program: &str, _: &[&str], _: Duration) -> Result<Ran, ProgramError> {
        Err(ProgramError::NotThere(program.to_owned()))
    }

    fn attend(&self, p: &str, a: &[&str], within: Duration, _: &AtomicBool) -> Result<Ran, ProgramError> {
        self.run(p, a, within)
    }

    fn rest(&self, _: Duration) {}
}

/// rpm as it lists what an update in the middle of its work has left so far.
struct Twice;

impl Programs for Twice {
    fn run(&self, program: &str, words: &[&str], _: Duration) -> Result<Ran, ProgramError> {
        match (program, words.first()) {
            ("rpm", Some(&"-qa")) => Ok(ran(0, "hello\t0\t1.0\t1\tnoarch\t1\nhello\t0\t2.0\t1\tnoarch\t2\n")),
            ("rpm", _) => Ok(ran(0, "")),
            _ => Err(ProgramError::NotThere(program.to_owned())),
        }
    }

    fn attend(&self, p: &str, a: &[&str], within: Duration, _: &AtomicBool) -> Result<Ran, ProgramError> {
        self.run(p, a, within)
    }

    fn rest(&self, _: Duration) {}
}

// case: O-10
#[test]
fn what_another_dnf_is_half_way_with_is_outstanding_and_once_it_is_gone_it_is_unfinished() {
    let (folder, never) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
    for (file, text) in [
        ("etc/tenure/host.toml", "packages = \"dnf\"\n".to_owned()),
        ("var/lib/dnf/rpmdb_lock.pid", std::process::id().to_string()),
    ] {
        let file = folder.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let ground = Ground::new(folder.path(), false);
    let name = PackageName::new("hello").unwrap();
    let spec = PackageSpec { name, wanted: PackageWanted::Present };
    let tools = Tools::new(&ground, Some(&Twice), None, &never);
    let trouble = observe(&tools, &spec).unwrap_err();
    assert_eq!((trouble.stands, trouble.code), (Stands::Outstanding, LOCK_HELD));
    std::fs::remove_file(folder.path().join("var/lib/dnf/rpmdb_lock.pid")).unwrap();
    let seen = observe(&tools, &spec).unwrap();
    let Seen::Package { unfinished: Some(word), .. } = seen else { panic!("{seen:?}") };
    assert_eq!(word, "there twice, at 2.0-1 and at 1.0-1");
}

#[test]
fn on_a_system_that_comes_as_an_image_nothing_is_installed_in_place() {
    let (folder, never) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
    std::fs::create_dir(folder.path().join("run")).unwrap();
    let ground = Ground::new(folder.path(), false);
    let tools = Tools::new(&ground, Some(&Nothing), None, &never);
    let dnf = Dnf::of(&tools).unwrap();
    assert_eq!(dnf.free(), Ok(()));
    std::fs::write(folder.path().join("run/ostree-booted"), "").unwrap();
    let trouble = dnf.free().unwrap_err();
    assert_eq!((trouble.stands, trouble.code), (Stands::Refused, "image_based"));
}
