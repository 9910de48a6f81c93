//! Transactions that the end of the host or of the machine cut short.

use std::collections::BTreeMap;

use tenure_protocol::outcome::Origin;

use super::packages::key;
use super::remarks::with_pacman;
use super::scripted::{Lie, offer};
use super::trouble::tmpfs;
use super::*;
use crate::resource::package::Journal;
use crate::store::{Intent, State, Wanted};

/// A machine whose host began to bring `hello` when it was switched off, and found it there as these three words say.
fn switched_off(words: &str) -> Machine {
    let machine = Machine::with_programs();
    left_by(machine, words)
}

fn half_configured(machine: Machine) -> Machine {
    left_by(machine, "install ok half-configured")
}

fn left_by(mut machine: Machine, words: &str) -> Machine {
    machine.offers("hello", &[offer("1.0")]);
    machine.package("hello", "present", &[]);
    begun(&machine, &["hello", "its-need"]);
    left(&machine, "hello", words);
    machine
}

fn begun(machine: &Machine, names: &[&str]) {
    let noted: BTreeMap<_, _> =
        names.iter().map(|name| ((*name).to_owned(), Some("1.0".to_owned()))).collect();
    machine.store.begin(&noted, false).unwrap();
    let declaration = machine.declaration();
    let declared = declaration
        .resources()
        .filter(|resource| names.iter().any(|name| resource.key.to_string() == key(name)));
    let intents = declared.map(|resource| Intent {
        key: resource.key.to_string(),
        module: "base".to_owned(),
        origin: Origin::Created,
        earlier: State::Package { version: None },
        wanted: Wanted::from(&resource.spec),
        temporary: String::new(),
        drift: None,
    });
    machine.store.intend(intents.collect(), &Default::default()).unwrap();
}

fn left(machine: &Machine, name: &str, words: &str) {
    let state = ("1.0".to_owned(), words.to_owned());
    machine.set(|all| drop(all.installed.insert(name.to_owned(), state)));
}

fn origins(machine: &Machine) -> Vec<(String, Origin)> {
    let owned = machine.store.owned_page(None, 9).unwrap();
    owned.into_iter().map(|line| (line.key, line.origin)).collect()
}

// case: O-11
#[test]
fn what_was_cut_short_when_only_triggers_were_left_is_finished_too() {
    let machine = switched_off("install ok installed");
    left(&machine, "man-db", "install ok triggers-pending");
    assert_eq!(line(&machine.pass(), &key("hello")).outcome, Unchanged);
    assert_eq!(machine.acts(), ["configure"]);
    assert_eq!(machine.store.begun_transaction().unwrap(), None);
    machine.pass();
    assert_eq!(machine.acts(), Vec::<String>::new(), "triggers that somebody else left are not ours to run");
}

// rule: H-09
// case: O-11
#[test]
fn what_the_machines_end_cut_short_is_finished_once_and_is_ours() {
    let machine = switched_off("install ok unpacked");
    left(&machine, "its-need", "install ok half-configured");
    machine.write(
        "/var/lib/dpkg/updates/0001",
        "Package: hello\nStatus: install ok half-configured\nArchitecture: amd64\nVersion: 1.0\n",
    );
    let done = machine.pass();
    assert_eq!(line(&done, &key("hello")).outcome, Unchanged);
    assert_eq!(machine.acts(), ["configure"]);
    assert_eq!(origins(&machine), [(key("hello"), Origin::Created)]);
    assert_eq!(machine.store.begun_transaction().unwrap(), None);
    machine.pass();
    assert_eq!(machine.acts(), Vec::<String>::new());
}

// rule: H-09
// case: O-11
#[test]
fn what_was_cut_short_while_it_was_unpacked_is_unpacked_anew_in_the_version_that_was_meant() {
    let mut machine = switched_off("install reinstreq half-installed");
    machine.offers("hello", &[offer("2.0"), offer("1.0")]);
    assert_eq!(line(&machine.pass(), &key("hello")).outcome, Unchanged);
    assert_eq!(machine.acts(), ["configure", "install hello=1.0"]);
    assert_eq!(origins(&machine), [(key("hello"), Origin::Created)]);
    // Also what nobody declares and only came along.
    machine.package("other", "present", &[]);
    machine.offers("other", &[offer("1.0")]);
    begun(&machine, &["its-need"]);
    machine.offers("its-need", &[offer("1.0")]);
    left(&machine, "its-need", "install reinstreq half-installed");
    assert_eq!(line(&machine.pass(), &key("other")).outcome, Applied);
    assert_eq!(machine.acts(), ["configure", "install its-need=1.0", "install other"]);
}

// rule: H-09
// case: O-11
#[test]
fn finishing_that_is_cut_short_itself_is_finished_by_the_next_pass() {
    let machine = switched_off("install reinstreq half-installed");
    machine.lies("install", Lie::IsKilled(255));
    machine.pass();
    assert_eq!(machine.acts()[..2], ["configure", "install hello=1.0"]);
    assert!(machine.store.begun_transaction().unwrap().is_some());
    machine.set(|state| state.lies.clear());
    assert_eq!(line(&machine.pass(), &key("hello")).outcome, Unchanged);
    assert_eq!(machine.acts(), ["configure"]);
    assert_eq!(origins(&machine), [(key("hello"), Origin::Created)]);
}

// case: O-11
#[test]
fn what_somebody_else_left_half_done_is_the_operators_also_beside_ours() {
    let machine = switched_off("install ok half-configured");
    left(&machine, "theirs", "install ok half-configured");
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("hello")), (Failed, Some("package_unfinished".to_owned())));
    assert_eq!(machine.acts(), Vec::<String>::new());
    // Once they have seen to theirs, ours is finished.
    machine.set(|state| drop(state.installed.remove("theirs")));
    assert_eq!(line(&machine.pass(), &key("hello")).outcome, Unchanged);
    assert_eq!(machine.acts(), ["configure"]);
}

// case: O-11
#[test]
fn what_cannot_be_finished_is_tried_once_and_then_says_itself_that_it_is_not_whole() {
    let machine = switched_off("install ok half-configured");
    machine.lies("configure", Lie::Fails("dpkg: error processing package hello (--configure)\n"));
    for acts in [&["configure"][..], &[]] {
        let done = machine.pass();
        assert_eq!(outcome(&done, &key("hello")), (Failed, Some("package_unfinished".to_owned())));
        assert_eq!(machine.acts(), acts);
    }
}

// case: O-05
#[test]
fn finishing_whose_end_could_not_be_noted_is_not_begun_and_is_tried_once_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let ground = Ground::new(folder.path().join("root"), !is_root());
    ground.create().unwrap();
    let Some(_mounted) = tmpfs(&ground.state(), "8m") else { return };
    let machine = half_configured(Machine::on(folder, ground).given_programs());
    machine.lies("configure", Lie::Fails("dpkg: error processing package hello (--configure)\n"));
    let room = usize::try_from(machine.store.room().unwrap()).unwrap();
    let ballast = machine.ground.state().join("ballast");
    std::fs::write(&ballast, vec![0; room - 600 * 1024]).unwrap();
    for _ in 0..3 {
        machine.pass();
        assert_eq!(machine.acts(), Vec::<String>::new());
    }
    std::fs::remove_file(ballast).unwrap();
    for acts in [&["configure"][..], &[]] {
        machine.pass();
        assert_eq!(machine.acts(), acts);
    }
}

// case: O-05
// case: O-11
#[test]
fn finishing_that_was_tried_is_not_tried_again_unless_dpkg_itself_was_cut_short() {
    let machine = half_configured(Machine::with_programs());
    let noted = machine.store.begun_transaction().unwrap().unwrap();
    machine.store.begin(&noted, true).unwrap();
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("hello")), (Failed, Some("package_unfinished".to_owned())));
    assert_eq!(machine.acts(), Vec::<String>::new());
    assert_eq!(machine.store.begun_transaction().unwrap(), None);
    machine.store.begin(&noted, true).unwrap();
    machine.write(
        "/var/lib/dpkg/updates/0001",
        "Package: hello\nStatus: install ok half-configured\nArchitecture: amd64\nVersion: 1.0\n",
    );
    assert_eq!(line(&machine.pass(), &key("hello")).outcome, Unchanged);
    assert_eq!(machine.acts(), ["configure"]);
}

// case: O-10
// case: O-11
#[test]
fn finishing_that_somebodys_lock_stops_is_tried_again_by_the_next_pass() {
    let machine = half_configured(Machine::with_programs());
    machine.lies("configure", Lie::IsLocked);
    for _ in 0..2 {
        machine.pass();
        assert_eq!(machine.acts(), ["configure"]);
        assert!(machine.store.begun_transaction().unwrap().is_some());
    }
    machine.set(|state| state.lies.clear());
    assert_eq!(line(&machine.pass(), &key("hello")).outcome, Unchanged);
    assert_eq!(machine.acts(), ["configure"]);
    assert_eq!(origins(&machine), [(key("hello"), Origin::Created)]);
}

// case: O-11
#[test]
fn finishing_that_systemd_does_not_begin_is_tried_again_by_the_next_pass() {
    let machine = half_configured(Machine::with_programs());
    machine.lies("systemd-run", Lie::Fails(NO_BUS));
    machine.pass();
    assert_eq!(machine.acts(), Vec::<String>::new());
    machine.set(|state| state.lies.clear());
    assert_eq!(line(&machine.pass(), &key("hello")).outcome, Unchanged);
    assert_eq!(machine.acts(), ["configure"]);
}

const NO_BUS: &str = "Failed to connect to bus: No such file or directory\n";

#[test]
fn a_failure_of_systemd_run_is_not_taken_for_the_package_managers() {
    let mut machine = Machine::with_programs();
    for name in ["hello", "other"] {
        machine.offers(name, &[offer("1.0")]);
        machine.package(name, "present", &[]);
    }
    machine.lies("systemd-run", Lie::Fails(NO_BUS));
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("hello")), (Outstanding, Some("package_manager_failed".to_owned())));
    let why = reason(&done, &key("hello"));
    assert!(why.contains("systemd-run ended with status 1: Failed to connect to bus"), "{why}");
    assert_eq!(machine.acts(), Vec::<String>::new());
    machine.set(|state| state.lies.clear());
    assert_eq!(line(&machine.pass(), &key("hello")).outcome, Applied);
}

// rule: H-09
// case: O-41
#[test]
fn a_transaction_of_which_nobody_can_ask_whether_it_still_runs_stays_noted_and_is_ours() {
    let mut machine = Machine::with_programs();
    machine.offers("hello", &[offer("1.0")]);
    machine.package("hello", "present", &[]);
    machine.lies("install", Lie::Fails("E: the way to it was lost\n"));
    machine.lies("list-units after", Lie::SaysNo);
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("hello")), (Outstanding, Some("package_transaction_running".to_owned())));
    assert!(machine.store.begun_transaction().unwrap().is_some());
    // It comes to its end meanwhile.
    machine.set(|state| state.lies.clear());
    machine.installs("hello", "1.0");
    assert_eq!(line(&machine.pass(), &key("hello")).outcome, Unchanged);
    assert_eq!(origins(&machine), [(key("hello"), Origin::Created)]);
    // One that succeeded is over, whoever may be asked.
    machine.offers("other", &[offer("1.0")]);
    machine.package("other", "present", &[]);
    machine.acts();
    machine.lies("list-units after", Lie::SaysNo);
    assert_eq!(line(&machine.pass(), &key("other")).outcome, Applied);
}

// rule: H-09
#[test]
fn a_transaction_is_noted_before_it_is_run_and_its_end_after() {
    let mut machine = Machine::with_programs();
    machine.offers("hello", &[offer("1.0")]);
    machine.package("hello", "present", &[]);
    machine.lies("install", Lie::TakesLong);
    machine.pass();
    let noted = machine.store.begun_transaction().unwrap().unwrap();
    assert_eq!(noted, std::iter::once(("hello".to_owned(), Some("1.0".to_owned()))).collect());
    machine.set(|state| state.lies.clear());
    machine.pass();
    assert_eq!(machine.store.begun_transaction().unwrap(), None);
}

// rule: H-09
// case: O-11
#[test]
fn a_transaction_that_somebody_ends_under_a_living_host_is_finished_by_its_next_pass() {
    // systemd calls it a success to be ended by SIGTERM, and 255 is what it says of other signals.
    for status in [0, 255] {
        let mut machine = Machine::with_programs();
        machine.offers("hello", &[offer("1.0")]);
        machine.package("hello", "present", &[]);
        machine.lies("install", Lie::IsKilled(status));
        let done = machine.pass();
        let cut_short = Some("package_transaction_cut_short".to_owned());
        assert_eq!(outcome(&done, &key("hello")), (Outstanding, cut_short), "{status}");
        assert_eq!(machine.acts(), ["install hello"]);
        assert_eq!(line(&machine.pass(), &key("hello")).outcome, Unchanged);
        assert_eq!(machine.acts(), ["configure"]);
        assert_eq!(origins(&machine), [(key("hello"), Origin::Created)]);
    }
}

// rule: H-09
// case: O-11
#[test]
fn what_one_transaction_of_a_pass_left_open_stays_noted_though_the_next_one_comes_to_its_end() {
    let mut machine = Machine::with_programs();
    for name in ["a-one", "b-two", "c-after"] {
        machine.offers(name, &[offer("1.0")]);
    }
    machine.package("a-one", "present", &[]);
    machine.package("b-two", "present", &[]);
    machine.package("c-after", "present", &["package:b-two"]);
    machine.lies("install once", Lie::IsKilled(255));
    let done = machine.pass();
    let cut_short = Some("package_transaction_cut_short".to_owned());
    assert_eq!(outcome(&done, &key("a-one")), (Outstanding, cut_short));
    assert_eq!(line(&done, &key("c-after")).outcome, Applied);
    assert_eq!(machine.acts(), ["install a-one b-two", "install c-after"]);
    let open = machine.store.begun_transaction().unwrap().unwrap();
    assert_eq!(open.into_keys().collect::<Vec<_>>(), ["a-one", "b-two"]);
    let done = machine.pass();
    assert_eq!(line(&done, &key("a-one")).outcome, Unchanged);
    assert_eq!(machine.acts(), ["configure"]);
    assert_eq!(machine.store.begun_transaction().unwrap(), None);
    assert_eq!(origins(&machine)[0], (key("a-one"), Origin::Created));
}

// rule: H-24
// case: O-41
#[test]
fn what_leaves_while_its_transaction_goes_on_is_ours_when_it_comes_and_goes() {
    let mut machine = switched_off("deinstall ok config-files");
    machine
        .set(|state| state.running = Some("tenure-host-packages-1.service loaded active running".to_owned()));
    machine.forget(&key("hello"));
    machine.file("/srv/a", "a");
    machine.pass();
    assert_eq!(machine.acts(), Vec::<String>::new());
    machine.set(|state| state.running = None);
    machine.installs("hello", "1.0");
    assert_eq!(line(&machine.pass(), &key("hello")).outcome, Removed);
    assert_eq!(machine.version("hello"), None);
}

/// A machine of dpkg whose host began to bring both, with dpkg half-way through the second and not yet at the first.
fn half_way() -> Machine {
    let mut machine = half_configured(Machine::with_programs());
    machine.offers("awk", &[offer("1.0")]);
    machine.package("awk", "present", &[]);
    begun(&machine, &["awk", "hello"]);
    machine
}

/// One of pacman, which lists what it brings before its script has run.
fn listed() -> Machine {
    let mut machine = with_pacman();
    machine.package("hello", "present", &[]);
    begun(&machine, &["hello"]);
    let entry = machine.at("/var/lib/pacman/local/hello-1.0-1");
    std::fs::create_dir_all(&entry).unwrap();
    std::fs::write(entry.join("desc"), "%NAME%\nhello\n\n%VERSION%\n1.0-1\n").unwrap();
    machine
}

// rule: H-09
// case: O-41
#[test]
fn a_transaction_that_ends_between_two_looks_of_one_pass_brought_what_is_ours() {
    for is_dpkg in [true, false] {
        let brought: &[&str] = if is_dpkg { &["awk", "hello"] } else { &["hello"] };
        for looks in 0..8 {
            let machine = if is_dpkg { half_way() } else { listed() };
            machine.set(|state| {
                state.running = Some("tenure-host-packages-1.service loaded active running".to_owned());
                state.ends_after = Some(looks);
            });
            for _ in 0..4 {
                let done = machine.pass();
                for name in brought {
                    let came = outcome(&done, &key(name));
                    let still = (Outstanding, Some("package_transaction_running".to_owned()));
                    assert!([still, (Unchanged, None)].contains(&came), "{looks}: {name} {came:?}");
                }
            }
            assert_eq!(machine.state().running, None, "{looks}");
            assert_eq!(machine.acts(), Vec::<String>::new(), "{looks}");
            let created: Vec<_> = brought.iter().map(|name| (key(name), Origin::Created)).collect();
            assert_eq!(origins(&machine), created, "{looks}");
        }
    }
}

#[test]
fn whether_a_transaction_still_runs_is_not_asked_anew_for_each_package_that_it_brings() {
    let machine = half_way();
    machine
        .set(|state| state.running = Some("tenure-host-packages-1.service loaded active running".to_owned()));
    let done = machine.pass();
    for name in ["awk", "hello"] {
        let still = Some("package_transaction_running".to_owned());
        assert_eq!(outcome(&done, &key(name)), (Outstanding, still));
    }
    let asked = machine.state().calls.iter().filter(|call| *call == "list-units").count();
    assert_eq!(asked, 2, "before all that is looked at, and for all of it");
}

#[test]
fn what_was_begun_and_can_never_be_looked_at_does_not_hold_back_what_is_wanted_now() {
    let mut machine = Machine::with_programs();
    machine.package("tenure-host", "absent", &[]);
    begun(&machine, &["tenure-host"]);
    machine.store.end().unwrap();
    machine.installs("tenure-host", "1.0");
    assert_eq!(outcome(&machine.pass(), &key("tenure-host")), (Refused, Some("own_package".to_owned())));
    machine.package("tenure-host", "present", &[]);
    assert_eq!(outcome(&machine.pass(), &key("tenure-host")), (Unchanged, None));
    assert!(machine.store.intents().unwrap().is_empty());
}
