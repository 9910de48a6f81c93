//! Package transactions that are judged before they are run: what they would remove or lower, where they come from, and
//! what is on hold, kept as found, or the host's own.

use super::packages::key;
use super::scripted::{Lie, Offer, offer};
use super::*;

// rule: H-25
#[test]
fn a_transaction_that_would_remove_or_lower_what_is_not_declared_is_refused_by_name() {
    let mut machine = Machine::with_programs();
    machine.installs("apache2", "2.4");
    machine.installs("library", "2.0");
    machine.offers("nginx", &[Offer { removes: vec!["apache2"], ..offer("1.0") }]);
    machine.offers("old-thing", &[Offer { lowers: vec![("library", "1.0")], ..offer("1.0") }]);
    machine.package("nginx", "present", &[]);
    machine.package("old-thing", "present", &[]);
    let done = machine.pass();
    for (name, named) in [("nginx", "apache2"), ("old-thing", "library")] {
        assert_eq!(outcome(&done, &key(name)), (Refused, Some("transaction_refused".to_owned())));
        assert!(reason(&done, &key(name)).contains(named), "{}", reason(&done, &key(name)));
    }
    assert_eq!(machine.acts(), Vec::<String>::new());
    // Declared absent, it may go.
    machine.package("apache2", "absent", &[]);
    let done = machine.pass();
    assert_eq!(
        (line(&done, &key("nginx")).outcome, line(&done, &key("apache2")).outcome),
        (Applied, Removed)
    );
}

// rule: S-13
#[test]
fn what_needs_sources_that_cannot_be_read_anew_is_not_installed_on_an_older_look() {
    let mut machine = Machine::with_programs();
    machine.offers("known", &[offer("1.0")]);
    machine.package("known", "present", &[]);
    machine.package("wanted", "present", &[]);
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("wanted")), (Refused, Some("unsigned_source".to_owned())));
    assert!(reason(&done, &key("wanted")).contains("is not signed"), "{}", reason(&done, &key("wanted")));
    assert_eq!(line(&done, &key("known")).outcome, Applied);
    machine.lies("update", Lie::Fails("E: Failed to fetch copy:/repo/./Release  File not found\n"));
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("wanted")), (Failed, Some("sources_unreadable".to_owned())));
    machine.set(|state| state.lies.clear());
    // What apt would say now does not matter: the sources were not read.
    assert!(!machine.acts().iter().any(|call| call == "install wanted"));
    machine.set(|state| {
        state.newer = Some(std::iter::once(("wanted".to_owned(), vec![offer("1.0")])).collect());
    });
    assert_eq!(line(&machine.pass(), &key("wanted")).outcome, Applied);
}

// rule: S-13
#[test]
fn an_unsigned_package_is_refused_by_name() {
    let mut machine = Machine::with_programs();
    machine.offers("hello", &[offer("1.0")]);
    machine.package("hello", "present", &[]);
    let words = "E: There were unauthenticated packages and -y was used without --allow-unauthenticated\n";
    machine.lies("install", Lie::Fails(words));
    assert_eq!(outcome(&machine.pass(), &key("hello")), (Refused, Some("unsigned_package".to_owned())));
}

// rule: S-13
#[test]
fn the_host_is_not_taken_from_a_source_that_is_only_trusted_and_what_comes_with_it_is() {
    let mut machine = Machine::with_programs();
    machine.installs("tenure-host", "1.0");
    machine.set(|state| state.unproven = vec!["tenure-host", "theirs"]);
    for name in ["tenure-host", "theirs"] {
        machine.offers(name, &[offer("9.9")]);
    }
    machine.package("tenure-host", "9.*", &[]);
    machine.package("theirs", "present", &[]);
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("tenure-host")), (Refused, Some("unsigned_package".to_owned())));
    let why = reason(&done, &key("tenure-host"));
    assert!(why.starts_with("tenure-host 9.9 of http://x stable/main is not taken"), "{why}");
    assert!(why.contains("`signed-by=`"), "{why}");
    assert_eq!(
        line(&done, &key("theirs")).outcome,
        Applied,
        "of what else it trusts the operator is the judge"
    );
    assert_eq!(machine.version("tenure-host").as_deref(), Some("1.0"));
    machine.set(|state| state.unproven.clear());
    assert_eq!(line(&machine.pass(), &key("tenure-host")).outcome, Applied);
    assert_eq!(std::fs::read_dir(machine.ground.run()).unwrap().count(), 0, "nothing is left behind");
}

// rule: H-02
#[test]
fn the_host_is_raised_and_never_removed() {
    let mut machine = Machine::with_programs();
    machine.installs("tenure-host", "1.0");
    machine.offers("tenure-host", &[offer("1.1")]);
    machine.package("tenure-host", "absent", &[]);
    machine.file("/srv/a", "a");
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("tenure-host")), (Refused, Some("own_package".to_owned())));
    assert_eq!(line(&done, "file:/srv/a").outcome, Applied);
    machine.package("tenure-host", "1.1", &[]);
    assert_eq!(line(&machine.pass(), &key("tenure-host")).outcome, Applied);
    // A prefix that only an older version has does not lower it, and a conflict does not remove it.
    machine.offers("tenure-host", &[offer("0.9")]);
    machine.package("tenure-host", "0.*", &[]);
    assert_eq!(
        outcome(&machine.pass(), &key("tenure-host")),
        (Refused, Some("transaction_refused".to_owned()))
    );
    machine.package("tenure-host", "present", &[]);
    machine.offers("conflict", &[Offer { removes: vec!["tenure-host"], ..offer("1") }]);
    machine.package("conflict", "present", &[]);
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("conflict")), (Refused, Some("transaction_refused".to_owned())));
    machine.forget(&key("tenure-host"));
    assert_eq!(line(&machine.pass(), &key("tenure-host")).outcome, Released);
    assert_eq!(machine.version("tenure-host").as_deref(), Some("1.1"));
}

// rule: H-02
#[test]
fn a_package_that_brought_files_of_the_host_is_not_removed_whatever_its_name() {
    let mut machine = Machine::with_programs();
    for (name, list) in [
        ("acme", "/.\n/usr\n/usr/bin\n/usr/bin/acme\n/usr/bin/tenure-host\n"),
        ("harmless", "/.\n/etc\n/etc/tenure\n/usr/bin/harmless\n"),
    ] {
        machine.installs(name, "1.0");
        machine.write(&format!("/var/lib/dpkg/info/{name}.list"), list);
        machine.package(name, "absent", &[]);
    }
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("acme")), (Refused, Some("transaction_refused".to_owned())));
    let why = reason(&done, &key("acme"));
    assert!(why.contains("acme has brought /usr/bin/tenure-host"), "{why}");
    assert_eq!(line(&done, &key("harmless")).outcome, Removed);
    assert_eq!(machine.acts(), ["install harmless-"]);
}

// rule: H-02
#[test]
fn a_package_of_which_nobody_can_see_what_it_brought_is_not_removed() {
    let mut machine = Machine::with_programs();
    for name in ["acme", "other"] {
        machine.installs(name, "1.0");
        machine.package(name, "absent", &[]);
    }
    // Names are bytes; one that is no text hides no other.
    std::fs::write(machine.at("/var/lib/dpkg/info/acme.list"), b"/usr/share/\xff\n/usr/bin/tenure-host\n")
        .unwrap();
    std::fs::create_dir(machine.at("/var/lib/dpkg/info/other:amd64.list")).unwrap();
    let done = machine.pass();
    for (name, said) in
        [("acme", "acme has brought /usr/bin/tenure-host"), ("other", "other:amd64.list cannot be read")]
    {
        assert_eq!(outcome(&done, &key(name)), (Refused, Some("transaction_refused".to_owned())));
        assert!(reason(&done, &key(name)).contains(said), "{}", reason(&done, &key(name)));
    }
    std::fs::remove_dir_all(machine.at("/var/lib/dpkg/info")).unwrap();
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("acme")), (Refused, Some("transaction_refused".to_owned())));
    assert_eq!(machine.acts(), Vec::<String>::new());
}

// rule: H-25
#[test]
fn what_needs_another_version_of_a_package_on_hold_is_refused_naming_it() {
    let mut machine = Machine::with_programs();
    let held = ("1.0".to_owned(), "hold ok installed".to_owned());
    machine.set(|state| drop(state.installed.insert("routerd".to_owned(), held)));
    machine.offers("wants", &[offer("1.0")]);
    machine.package("wants", "present", &[]);
    machine.lies("install", Lie::SaysBefore(
        "The following packages have unmet dependencies:\n wants : Depends: routerd (>= 2.0) but 1.0 is to be installed\n",
    ));
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("wants")), (Refused, Some("transaction_refused".to_owned())));
    let why = reason(&done, &key("wants"));
    assert!(why.contains("another version of routerd") && why.contains("apt-mark unhold"), "{why}");
    // Nobody holds it: it cannot be had, and what is missing is said.
    machine.installs("routerd", "1.0");
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("wants")), (Failed, Some("unmet_dependencies".to_owned())));
    assert!(
        reason(&done, &key("wants")).contains("routerd (>= 2.0) but 1.0"),
        "{}",
        reason(&done, &key("wants"))
    );
    assert_eq!(machine.acts(), Vec::<String>::new());
}

// case: O-09
#[test]
fn a_package_on_hold_is_left_and_said_and_the_rest_goes_on() {
    let mut machine = Machine::with_programs();
    machine.set(|state| {
        state.installed.insert("kept".to_owned(), ("1.0".to_owned(), "hold ok installed".to_owned()));
    });
    machine.offers("kept", &[offer("2.0")]);
    machine.package("kept", "2.0", &[]);
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("kept")), (Refused, Some("package_on_hold".to_owned())));
    let why = reason(&done, &key("kept"));
    assert!(why.starts_with("held by the operator at 1.0: its version is 1.0, declared 2.0"), "{why}");
    assert!(why.contains("apt-mark unhold kept"), "{why}");
    assert_eq!(machine.acts(), Vec::<String>::new());
    // The version that is held, or any, is what is there; to have it gone is to change it.
    for (wanted, is) in [("present", Unchanged), ("1.0", Unchanged), ("1.*", Unchanged), ("absent", Refused)]
    {
        machine.package("kept", wanted, &[]);
        machine.offers("beside", &[offer("1.0")]);
        machine.package("beside", "present", &[]);
        let done = machine.pass();
        assert_eq!(line(&done, &key("kept")).outcome, is, "{wanted}");
        assert!(line(&done, &key("beside")).outcome.is_as_declared(), "{wanted}");
    }
    assert_eq!(machine.acts(), ["install beside"]);
}

// rule: A-03
#[test]
fn what_is_kept_as_found_keeps_its_version_when_something_else_is_brought() {
    let mut machine = Machine::adopted_with_programs();
    machine.installs("found", "1.0");
    machine.offers("fresh", &[Offer { lowers: vec![("found", "1.1")], ..offer("1.0") }]);
    machine.package("found", "present", &[]);
    machine.package("fresh", "present", &[]);
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("fresh")), (Refused, Some("transaction_refused".to_owned())));
    assert!(reason(&done, &key("fresh")).contains("found"));
}
