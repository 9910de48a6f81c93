//! Packages: one transaction, judged before, read back after.

use super::scripted::{Lie, Offer, offer, unit};
use super::*;

pub(super) fn key(name: &str) -> String {
    format!("package:{name}")
}

#[test]
fn packages_are_brought_in_one_transaction_and_the_next_pass_is_quiet() {
    let mut machine = Machine::with_programs();
    for name in ["a-one", "b-two", "c-three"] {
        machine.offers(name, &[offer("1.0")]);
        machine.package(name, "present", &[]);
    }
    let done = machine.pass();
    assert_eq!(done.summary.counts.in_words(), "3 applied");
    assert_eq!(machine.acts(), ["install a-one b-two c-three"]);
    assert_eq!(machine.version("b-two").as_deref(), Some("1.0"));
    let quiet = machine.pass();
    assert_eq!((quiet.summary.counts.in_words().as_str(), quiet.events.len()), ("3 unchanged", 0));
    assert_eq!(machine.acts(), Vec::<String>::new());
    assert!(machine.state().calls.is_empty(), "nobody is asked while nothing differs");
}

#[test]
fn packages_wait_for_the_files_they_need_and_still_come_together() {
    let mut machine = Machine::with_programs();
    for name in ["a-one", "b-two"] {
        let source = format!("/srv/{name}.sources");
        machine.file(&source, "x");
        machine.offers(name, &[offer("1.0")]);
        machine.package(name, "present", &[&format!("file:{source}")]);
    }
    machine.offers("c-after", &[offer("1.0")]);
    machine.package("c-after", "present", &["package:a-one"]);
    assert_eq!(machine.pass().summary.counts.in_words(), "5 applied");
    assert_eq!(machine.acts(), ["install a-one b-two", "install c-after"]);
}

// rule: H-09
#[test]
fn a_tool_that_says_yes_and_changes_nothing_is_not_reported_as_applied() {
    let mut machine = Machine::with_programs();
    machine.offers("hello", &[offer("1.0")]);
    machine.package("hello", "present", &[]);
    machine.lies("install", Lie::SaysYes);
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("hello")), (Failed, Some("not_as_written".to_owned())));
    assert_eq!(done.summary.owned, 0);
}

// rule: H-09
#[test]
fn a_tool_that_says_no_and_did_it_all_the_same_is_reported_as_applied() {
    let mut machine = Machine::with_programs();
    machine.offers("hello", &[offer("1.0")]);
    machine.package("hello", "1.*", &[]);
    machine.lies("install", Lie::SaysNo);
    assert_eq!(line(&machine.pass(), &key("hello")).outcome, Applied);
}

#[test]
fn versions_are_as_declared_and_a_version_nobody_has_is_said() {
    let mut machine = Machine::with_programs();
    machine.set(|state| state.newer = Some(std::collections::BTreeMap::new()));
    machine.offers("exact", &[offer("2.0"), offer("1.0")]);
    machine.offers("prefix", &[offer("2.1"), offer("1.22.2"), offer("1.22.1")]);
    machine.package("exact", "1.0", &[]);
    machine.package("prefix", "1.22.*", &[]);
    machine.package("nobody", "3*", &[]);
    let done = machine.pass();
    assert_eq!(
        (machine.version("exact").as_deref(), machine.version("prefix").as_deref()),
        (Some("1.0"), Some("1.22.2"))
    );
    assert_eq!(outcome(&done, &key("nobody")), (Failed, Some("unknown_package".to_owned())));
    // An upgrade that is not as declared is put back, a declared downgrade is meant.
    machine.installs("exact", "2.0");
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("exact")), (Applied, Some("drift".to_owned())));
    assert!(reason(&done, &key("exact")).contains("from 1.0 to 2.0"), "{}", reason(&done, &key("exact")));
    assert_eq!(machine.version("exact").as_deref(), Some("1.0"));
}

// case: O-14
#[test]
fn what_was_removed_and_left_its_configuration_is_not_installed() {
    let mut machine = Machine::with_programs();
    let leftover = || ("1.0".to_owned(), "deinstall ok config-files".to_owned());
    machine.set(|state| {
        state.installed.insert("oldproxy".to_owned(), leftover());
        state.installed.insert("unwanted".to_owned(), leftover());
    });
    machine.offers("oldproxy", &[offer("1.1")]);
    machine.package("oldproxy", "present", &[]);
    machine.package("unwanted", "absent", &[]);
    let done = machine.pass();
    assert_eq!(
        (line(&done, &key("oldproxy")).outcome, line(&done, &key("unwanted")).outcome),
        (Applied, Unchanged)
    );
    assert_eq!(machine.acts(), ["install oldproxy"]);
}

// rule: H-10
#[test]
fn one_bad_package_does_not_stop_the_others() {
    let mut machine = Machine::with_programs();
    machine.set(|state| state.newer = Some(std::collections::BTreeMap::new()));
    machine.installs("apache2", "2.4");
    machine.offers("good", &[offer("1.0")]);
    machine.offers("greedy", &[Offer { removes: vec!["apache2"], ..offer("1.0") }]);
    machine.offers("broken", &[Offer { breaks: true, ..offer("1.0") }]);
    for name in ["good", "greedy", "broken", "unheard-of"] {
        machine.package(name, "present", &[]);
    }
    let done = machine.pass();
    assert_eq!(line(&done, &key("good")).outcome, Applied);
    assert_eq!(outcome(&done, &key("greedy")), (Refused, Some("transaction_refused".to_owned())));
    assert_eq!(outcome(&done, &key("broken")), (Failed, Some("package_unfinished".to_owned())));
    assert!(reason(&done, &key("broken")).contains("half-configured"));
    assert!(reason(&done, &key("broken")).contains("status 100"), "{}", reason(&done, &key("broken")));
    assert_eq!(outcome(&done, &key("unheard-of")), (Failed, Some("unknown_package".to_owned())));
    assert_eq!(machine.acts().iter().filter(|call| *call == "update").count(), 1);
    // The next pass tries what is missing and not what is broken, and it is the same for the good one.
    let done = machine.pass();
    assert_eq!(line(&done, &key("good")).outcome, Unchanged);
    assert_eq!(line(&done, &key("broken")).count, 2);
    assert!(reason(&done, &key("broken")).contains("status 100"), "{}", reason(&done, &key("broken")));
}

// case: O-10
#[test]
fn a_lock_that_somebody_holds_makes_packages_outstanding_and_nothing_else() {
    let mut machine = Machine::with_programs();
    machine.offers("hello", &[offer("1.0")]);
    machine.package("hello", "present", &[]);
    machine.file("/srv/a", "a");
    let lock = std::fs::File::create(machine.at("/var/lib/dpkg/lock-frontend")).unwrap();
    let whole = nix::libc::flock { l_type: 1, l_whence: 0, l_start: 0, l_len: 0, l_pid: 0 };
    nix::fcntl::fcntl(&lock, nix::fcntl::FcntlArg::F_OFD_SETLK(&whole)).unwrap();
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("hello")), (Outstanding, Some("package_lock_held".to_owned())));
    assert!(reason(&done, &key("hello")).contains("lock-frontend is held by"));
    assert_eq!(line(&done, "file:/srv/a").outcome, Applied);
    assert_eq!(machine.acts(), Vec::<String>::new());
    drop(lock);
    // Whoever takes it between our look and apt's is named by apt.
    let words =
        "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 4242 (unattended-upgr)\n";
    machine.lies("install", Lie::Fails(words));
    let done = machine.pass();
    assert_eq!(line(&done, &key("hello")).outcome, Outstanding);
    assert!(reason(&done, &key("hello")).contains("4242 (unattended-upgr)"));
    machine.set(|state| state.lies.clear());
    assert_eq!(line(&machine.pass(), &key("hello")).outcome, Applied);
}

// case: O-10
#[test]
fn what_somebody_else_is_half_way_with_is_outstanding_and_has_not_failed() {
    let mut machine = Machine::with_programs();
    let half = ("1.0".to_owned(), "install ok half-configured".to_owned());
    machine.set(|state| drop(state.installed.insert("hello".to_owned(), half)));
    machine.package("hello", "present", &[]);
    let lock = std::fs::File::create(machine.at("/var/lib/dpkg/lock-frontend")).unwrap();
    let whole = nix::libc::flock { l_type: 1, l_whence: 0, l_start: 0, l_len: 0, l_pid: 0 };
    nix::fcntl::fcntl(&lock, nix::fcntl::FcntlArg::F_OFD_SETLK(&whole)).unwrap();
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("hello")), (Outstanding, Some("package_lock_held".to_owned())));
    drop(lock);
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("hello")), (Failed, Some("package_unfinished".to_owned())));
}

// case: O-41
// rule: H-24
#[test]
fn a_transaction_that_outlives_the_host_is_waited_for_and_what_it_brings_is_ours() {
    let mut machine = Machine::with_programs();
    machine.offers("hello", &[offer("1.0")]);
    machine.package("hello", "present", &[]);
    // The host is told to end while it runs; what it does is not there yet.
    machine.set(|state| {
        state.lies.insert("install", Lie::TakesLong);
    });
    let before = std::fs::read(machine.at("/var/lib/dpkg/status")).unwrap();
    let _ = machine.pass();
    let after = std::fs::read(machine.at("/var/lib/dpkg/status")).unwrap();
    // As if it were still at it: the next host finds the unit.
    let mut machine = Machine::with_programs();
    machine.offers("hello", &[offer("1.0")]);
    machine.package("hello", "present", &[]);
    machine
        .set(|state| state.running = Some("tenure-host-packages-1.service loaded active running".to_owned()));
    std::fs::write(machine.at("/var/lib/dpkg/status"), before).unwrap();
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("hello")), (Outstanding, Some("package_transaction_running".to_owned())));
    assert!(reason(&done, &key("hello")).contains("tenure-host-packages-1.service"));
    assert_eq!(machine.acts(), Vec::<String>::new());
    // It has come further, and dpkg is not done with it.
    let halfway = String::from_utf8(after.clone()).unwrap().replace("ok installed", "ok unpacked");
    std::fs::write(machine.at("/var/lib/dpkg/status"), halfway).unwrap();
    assert_eq!(line(&machine.pass(), &key("hello")).outcome, Outstanding);
    // It has ended: what it brought is recorded as created by us.
    machine.set(|state| state.running = None);
    std::fs::write(machine.at("/var/lib/dpkg/status"), after).unwrap();
    assert_eq!(line(&machine.pass(), &key("hello")).outcome, Unchanged);
    let owned = machine.store.owned_page(None, 9).unwrap();
    assert_eq!(owned[0].origin, tenure_protocol::outcome::Origin::Created);
}

// case: O-11
#[test]
fn a_database_that_somebody_else_left_half_done_is_said_whole_and_not_touched_and_files_go_on() {
    let mut machine = Machine::with_programs();
    let half = ("1.0".to_owned(), "install ok half-configured".to_owned());
    let unpacking = ("1.0".to_owned(), "install reinstreq half-installed".to_owned());
    machine.set(|state| {
        state.installed.insert("theirs".to_owned(), half);
        state.installed.insert("bootfiles".to_owned(), unpacking);
    });
    machine.offers("hello", &[offer("1.0")]);
    machine.package("hello", "present", &[]);
    machine.file("/srv/a", "a");
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("hello")), (Failed, Some("dpkg_interrupted".to_owned())));
    let why = reason(&done, &key("hello"));
    assert!(why.contains("needs repair: bootfiles is half-installed, theirs is half-configured"), "{why}");
    assert!(why.contains("`apt-get install --reinstall bootfiles`"), "{why}");
    assert_eq!(line(&done, "file:/srv/a").outcome, Applied);
    assert_eq!(machine.acts(), Vec::<String>::new());
    // The operator has repaired it: the next pass needs nobody.
    machine.installs("theirs", "1.0");
    machine.installs("bootfiles", "1.0");
    assert_eq!(line(&machine.pass(), &key("hello")).outcome, Applied);
}

// case: O-14
#[test]
fn a_package_whose_triggers_are_due_is_as_declared() {
    let mut machine = Machine::with_programs();
    for (name, words) in
        [("mailer-base", "install ok triggers-pending"), ("waits", "install ok triggers-awaited")]
    {
        machine
            .set(|state| drop(state.installed.insert(name.to_owned(), ("1.0".to_owned(), words.to_owned()))));
        machine.package(name, "present", &[]);
    }
    let done = machine.pass();
    assert_eq!(line(&done, &key("mailer-base")).outcome, Unchanged);
    assert_eq!(outcome(&done, &key("waits")), (Failed, Some("package_unfinished".to_owned())));
    let why = reason(&done, &key("waits"));
    assert!(
        why.contains("waits for what another package has to do") && why.contains("dpkg --configure -a"),
        "{why}"
    );
}

// case: O-12
#[test]
fn what_a_new_version_puts_beside_the_configuration_that_is_kept_is_told_until_it_is_gone() {
    let mut machine = Machine::with_programs();
    machine.installs("cachebox", "1.0");
    machine.offers("cachebox", &[offer("2.0")]);
    machine.package("cachebox", "2.0", &[]);
    for folder in ["/etc/cachebox", "/var/lib/ucf"] {
        std::fs::create_dir_all(machine.at(folder)).unwrap();
    }
    for (path, text) in [
        (
            "/var/lib/dpkg/info/cachebox.conffiles",
            "/etc/cachebox/cachebox.conf\nremove-on-upgrade /etc/cachebox/old.conf\n",
        ),
        ("/var/lib/ucf/registry", "cachebox /etc/cachebox/by-script.conf\nother /etc/other.conf\n"),
        ("/etc/cachebox/cachebox.conf", "mine"),
        ("/etc/cachebox/cachebox.conf.dpkg-dist", "theirs"),
        ("/etc/cachebox/by-script.conf.ucf-dist", "theirs"),
        ("/etc/other.conf.ucf-dist", "not of this one"),
        ("/etc/cachebox/unrelated.dpkg-dist", "not of this one"),
    ] {
        machine.write(path, text);
    }
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("cachebox")), (Applied, Some("configuration_kept".to_owned())));
    let why = reason(&done, &key("cachebox"));
    assert!(
        why.ends_with("/etc/cachebox/cachebox.conf.dpkg-dist, /etc/cachebox/by-script.conf.ucf-dist"),
        "{why}"
    );
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("cachebox")), (Unchanged, Some("configuration_kept".to_owned())));
    for beside in ["cachebox.conf.dpkg-dist", "by-script.conf.ucf-dist"] {
        std::fs::remove_file(machine.at(&format!("/etc/cachebox/{beside}"))).unwrap();
    }
    assert_eq!(outcome(&machine.pass(), &key("cachebox")), (Unchanged, None));
}

#[test]
fn a_name_that_others_only_provide_is_told_with_who_does() {
    let mut machine = Machine::with_programs();
    machine.offers("mta", &[offer("1.0")]);
    machine.package("mta", "present", &[]);
    machine.lies("install", Lie::SaysBefore(
        "Package mta is a virtual package provided by:\n  postfix 3.7\n  exim4 4.96\nYou should explicitly select one to install.\n\n",
    ));
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("mta")), (Failed, Some("virtual_package".to_owned())));
    assert!(reason(&done, &key("mta")).ends_with("postfix, exim4"), "{}", reason(&done, &key("mta")));
}

// case: O-10
#[test]
fn what_was_half_done_when_it_was_looked_at_and_is_whole_since_needs_no_repair() {
    let mut machine = Machine::with_programs();
    let half = ("1.0".to_owned(), "install ok half-configured".to_owned());
    machine.set(|state| drop(state.installed.insert("theirs".to_owned(), half)));
    for name in ["hello", "other"] {
        machine.offers(name, &[offer("1.0")]);
        machine.package(name, "present", &[]);
    }
    let done = machine.pass_looking(&|at| {
        if at == 1 {
            machine.installs("theirs", "1.0");
        }
    });
    assert_eq!(done.summary.counts.in_words(), "2 applied");
}

#[test]
fn what_was_cut_short_while_it_was_unpacked_is_said_to_be_brought_anew() {
    let mut machine = Machine::with_programs();
    let half = ("1.0".to_owned(), "install reinstreq half-installed".to_owned());
    machine.set(|state| drop(state.installed.insert("theirs".to_owned(), half)));
    machine.offers("hello", &[offer("1.0")]);
    machine.package("hello", "present", &[]);
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("hello")), (Failed, Some("dpkg_interrupted".to_owned())));
    let why = reason(&done, &key("hello"));
    assert!(why.contains("then `apt-get install --reinstall theirs`"), "{why}");
}

// rule: H-24
#[test]
fn what_leaves_is_removed_only_if_we_brought_it_and_nothing_else_goes_with_it() {
    let mut machine = Machine::with_programs();
    machine.installs("theirs", "1.0");
    for name in ["ours", "theirs"] {
        machine.offers(name, &[offer("1.0")]);
        machine.package(name, "present", &[]);
    }
    machine.file("/srv/a", "a");
    machine.pass();
    machine.forget(&key("ours"));
    machine.forget(&key("theirs"));
    let done = machine.pass();
    assert_eq!((line(&done, &key("ours")).outcome, line(&done, &key("theirs")).outcome), (Removed, Released));
    assert_eq!(reason(&done, &key("theirs")), "left: existed before us");
    assert_eq!((machine.version("ours"), machine.version("theirs").as_deref()), (None, Some("1.0")));
    let words = machine.state().installed["ours"].1.clone();
    assert_eq!(words, "deinstall ok config-files", "removed, not purged");
}

// rule: A-03
#[test]
fn a_found_package_is_held_at_any_version_until_its_module_is_taken() {
    let mut machine = Machine::adopted_with_programs();
    machine.installs("found", "1.0");
    for name in ["found", "fresh"] {
        machine.offers(name, &[offer("2.0")]);
        machine.package(name, "2.0", &[]);
    }
    let done = machine.pass();
    assert_eq!(outcome(&done, &key("found")), (Held, Some("found".to_owned())));
    assert_eq!(line(&done, &key("fresh")).outcome, Applied);
    assert_eq!(machine.version("found").as_deref(), Some("1.0"));
    machine.head.taken = vec!["base"];
    assert_eq!(line(&machine.pass(), &key("found")).outcome, Applied);
}

#[test]
fn in_a_folder_packages_and_units_are_refused_and_files_are_not() {
    let mut machine = Machine::new();
    machine.package("hello", "present", &[]);
    machine.unit("a.service", serde_json::json!({ "running": true }), &[]);
    machine.file("/srv/a", "a");
    let done = machine.pass();
    for key in ["package:hello", "unit:a.service"] {
        assert_eq!(outcome(&done, key), (Refused, Some("sandbox".to_owned())));
    }
    assert_eq!(line(&done, "file:/srv/a").outcome, Applied);
}

#[test]
fn a_machine_without_dpkg_or_systemd_is_said_to_be_one() {
    let mut machine = Machine::with_programs();
    std::fs::remove_file(machine.at("/var/lib/dpkg/status")).unwrap();
    std::fs::remove_dir(machine.at("/run/systemd/system")).unwrap();
    machine.package("hello", "present", &[]);
    machine.unit("a.service", serde_json::json!({ "running": true }), &[]);
    let done = machine.pass();
    assert_eq!(outcome(&done, "package:hello"), (Refused, Some("no_package_manager".to_owned())));
    assert_eq!(outcome(&done, "unit:a.service"), (Refused, Some("no_service_manager".to_owned())));
}

// rule: H-09
#[test]
fn a_package_that_was_brought_and_not_recorded_is_recorded_as_ours_by_its_intent() {
    let mut machine = Machine::with_programs();
    machine.package("hello", "present", &[]);
    let declaration = machine.declaration();
    let resource = declaration.resources().next().unwrap();
    let absent = crate::store::State::Package { version: None };
    let intent = crate::store::Intent {
        key: key("hello"),
        module: "base".to_owned(),
        origin: tenure_protocol::outcome::Origin::Created,
        earlier: absent,
        wanted: (&resource.spec).into(),
        temporary: String::new(),
        drift: None,
    };
    machine.store.intend(vec![intent], &Default::default()).unwrap();
    machine.installs("hello", "1.0");
    assert_eq!(line(&machine.pass(), &key("hello")).outcome, Unchanged);
    machine.forget(&key("hello"));
    machine.file("/srv/a", "a");
    assert_eq!(line(&machine.pass(), &key("hello")).outcome, Removed);
}

#[test]
fn what_a_package_brings_is_looked_at_again_before_the_files_that_come_after_it() {
    let mut machine = Machine::adopted_with_programs();
    machine.offers("nginx", &[offer("1.0")]);
    machine.set(|state| {
        state.brings.insert("nginx".to_owned(), ("nginx.service".to_owned(), unit("active", "enabled")));
    });
    machine.package("nginx", "present", &[]);
    machine.file("/srv/conf", "ours");
    machine.unit("nginx.service", serde_json::json!({ "enabled": true, "running": true }), &[]);
    let done = machine.pass();
    assert_eq!(done.summary.counts.in_words(), "1 unchanged, 2 applied");
    assert_eq!(line(&done, "unit:nginx.service").outcome, Unchanged, "it was not found before us");
    assert_eq!(machine.pass().summary.counts.in_words(), "3 unchanged");
}

// rule: H-24
#[test]
fn a_package_that_broke_as_we_brought_it_is_ours_to_remove_and_in_nobodys_way() {
    let mut machine = Machine::with_programs();
    machine.offers("broken", &[Offer { breaks: true, ..offer("1.0") }]);
    machine.offers("other", &[offer("1.0")]);
    machine.package("broken", "present", &[]);
    assert_eq!(outcome(&machine.pass(), &key("broken")), (Failed, Some("package_unfinished".to_owned())));
    machine.forget(&key("broken"));
    machine.package("other", "present", &[]);
    let done = machine.pass();
    assert_eq!((line(&done, &key("broken")).outcome, line(&done, &key("other")).outcome), (Removed, Applied));
}
