//! What the database or the sources of dnf and pacman may have of a package, and what is made of each: keys that nobody
//! gave to the machine, two architectures of one name, several versions of one, names that are only provided, packages
//! that their operator has locked, transactions that were cut short.

use tenure_tests::lab::Machine;

use super::{DNF, PACMAN, World};

/// Every version and architecture that is installed of a package of rpm's, in order.
fn installed(machine: &Machine, name: &str) -> String {
    let format = "%{VERSION}.%{ARCH}\n";
    let said = machine.run(&["rpm", "-q", "--queryformat", format, name]);
    let mut all: Vec<&str> = said.stdout.lines().filter(|_| said.success()).collect();
    all.sort_unstable();
    all.join(" ")
}

fn keys(machine: &Machine) -> String {
    machine.must(&["rpm", "-qa", "gpg-pubkey"])
}

// rule: S-13
#[test]
fn a_key_that_a_source_of_dnf_names_for_itself_is_taken_by_its_operator_and_never_by_the_host() {
    let world = World::new(DNF);
    let node = world.node();
    // Its list, too, is signed by it.
    let _ = node.sh("echo repo_gpgcheck=1 >>/etc/yum.repos.d/signed.repo; dnf -q clean all").must();
    world.declare(&[("other", "present"), ("signed", "present")]);
    let why = world.wait_for_code("signed", "refused", "unsigned_source");
    assert!(why.contains("`dnf makecache` on the machine asks about it"), "{why}");
    let _ = node.sh("yes | dnf -q makecache").must();
    world.wait_for("other", Some("1.0-1"));
    let why = world.wait_for_code("signed", "refused", "unsigned_package");
    assert!(why.contains("`rpm --import` takes it"), "{why}");
    assert_eq!((keys(node), world.version("signed")), (String::new(), None));
    node.must(&["rpm", "--import", "/srv/rpm-signed/key"]);
    world.wait_for("signed", Some("1.0-1"));
    world.assert_nothing_to_do(2);
}

fn of_two_architectures_both_are_of_one_version_and_only_what_is_meant_goes(world: &World) {
    let node = world.node();
    let by_hand = |names: &[&str]| node.must(&[DNF.install, names].concat());
    by_hand(&["r-both-1.0-1.x86_64", "r-both-1.0-1.i686"]);
    world.declare(&[("both", "2.0-1"), ("only32", "present")]);
    world.wait_for("only32", Some("1.0-1"));
    world.pair.wait("both are raised", |pair| installed(&pair.b, "r-both") == "2.0.i686 2.0.x86_64");
    world.assert_nothing_to_do(2);
    // Of the new version there is one only: the other would have to go, and nobody said so.
    world.declare(&[("both", "3.0-1"), ("only32", "present")]);
    let why = world.wait_for_code("both", "refused", "transaction_refused");
    assert!(why.contains("also remove r-both.i686"), "{why}");
    assert_eq!(installed(node, "r-both"), "2.0.i686 2.0.x86_64");
    world.declare(&[("both", "absent"), ("only32", "present")]);
    world.pair.wait("both are gone", |pair| installed(&pair.b, "r-both").is_empty());
    // What was found before us is forgotten once it has left.
    world.declare(&[("only32", "present")]);
    world.pair.wait("it has left", |pair| !pair.owned().contains_key(&world.key("both")));
    world.declare(&[("both", "2.0-1"), ("only32", "present")]);
    world.wait_for("both", Some("2.0-1"));
    assert_eq!(world.pair.owned()[&world.key("both")], "created");
    by_hand(&["r-both-2.0-1.i686"]);
    world.declare(&[("only32", "present")]);
    world.pair.wait("what we brought is gone", |pair| installed(&pair.b, "r-both") == "2.0.i686");
}

fn of_a_kernel_the_last_versions_are_there_beside_each_other(world: &World) {
    for version in ["1.0-1", "2.0-1", "3.0-1"] {
        world.declare(&[("kernel", version)]);
        world
            .pair
            .wait(version, |pair| installed(&pair.b, "r-kernel").contains(&version.replace("-1", ".noarch")));
        world.assert_nothing_to_do(1);
    }
    assert_eq!(installed(world.node(), "r-kernel"), "1.0.noarch 2.0.noarch 3.0.noarch");
    // One that is there is as declared, whichever others are; the oldest makes room for a fourth.
    world.declare(&[("kernel", "1.*")]);
    world.assert_nothing_to_do(1);
    world.declare(&[("kernel", "present")]);
    world.assert_nothing_to_do(1);
    world.declare(&[("kernel", "4.0-1")]);
    world
        .pair
        .wait("the fourth", |pair| installed(&pair.b, "r-kernel") == "2.0.noarch 3.0.noarch 4.0.noarch");
    world.assert_nothing_to_do(1);
    world.declare(&[("kernel", "absent")]);
    world.pair.wait("all are gone", |pair| installed(&pair.b, "r-kernel").is_empty());
    world.assert_nothing_to_do(1);
}

// rule: H-24
// rule: H-25
#[test]
fn several_architectures_and_several_versions_of_one_package_of_dnf_are_each_told_apart() {
    let world = World::new(DNF);
    of_two_architectures_both_are_of_one_version_and_only_what_is_meant_goes(&world);
    of_a_kernel_the_last_versions_are_there_beside_each_other(&world);
}

fn a_name_that_is_only_provided_is_told_as_that(world: &World) {
    let (a, b) = (world.name("prov-a"), world.name("prov-b"));
    world.declare(&[("virtual", "present"), ("other", "present")]);
    world.wait_for("other", Some("1.0-1"));
    // Also where one that provides it is there already.
    for by_hand in [None, Some("prov-b")] {
        by_hand.into_iter().for_each(|name| world.installs(name));
        let why = world.wait_for_code("virtual", "failed", "virtual_package");
        assert!(why.contains("is not a package") && why.contains(&a) && why.contains(&b), "{why}");
    }
    assert_eq!(world.version("prov-a"), None);
}

fn what_its_operator_has_locked_stays(world: &World, lock: &str, unlock: &str, word: &str) {
    world.declare(&[("hello", "1.0-1")]);
    world.wait_for("hello", Some("1.0-1"));
    let _ = world.node().sh(lock).must();
    for version in ["present", "1.0-1", "1.*"] {
        world.declare(&[("hello", version)]);
        world.assert_nothing_to_do(1);
    }
    world.declare(&[("hello", "absent"), ("other", "present")]);
    let why = world.wait_for_code("hello", "refused", "package_on_hold");
    assert!(why.starts_with("held by the operator at 1.0-1") && why.contains(word), "{why}");
    world.wait_for("other", Some("1.0-1"));
    assert_eq!(world.version("hello").as_deref(), Some("1.0-1"));
    let _ = world.node().sh(unlock).must();
    world.wait_for("hello", None);
}

/// Whoever is at work with packages dies in the middle of it, in the script that waits.
fn cut_short(world: &World, begin: &str) {
    world.node().start("operator", &["sh", "-c", begin]);
    world.pair.wait("the script runs", |pair| pair.b.run(&["pgrep", "-x", "sleep"]).success());
    world.node().must(&["systemctl", "kill", "--signal=KILL", "operator"]);
    world
        .pair
        .wait("nobody is at work", |pair| !pair.b.run(&["systemctl", "is-active", "operator"]).success());
}

fn an_update_that_was_cut_short_is_its_operators(world: &World) {
    world.declare(&[("late", "1.0-1"), ("other", "present")]);
    world.wait_for("late", Some("1.0-1"));
    cut_short(world, "dnf -y -q install r-late-2.0-1");
    assert_eq!(installed(world.node(), "r-late"), "1.0.noarch 2.0.noarch");
    world.declare(&[("late", "2.0-1"), ("other", "absent")]);
    let why = world.wait_for_code("late", "failed", "package_unfinished");
    assert!(
        why.contains("there twice, at 2.0-1 and at 1.0-1") && why.contains("dnf remove --duplicates"),
        "{why}"
    );
    // Only it fails for that.
    world.wait_for("other", None);
    world.node().write("/srv/r-late", "");
    let _ = world.node().sh("dnf -y -q remove --duplicates").must();
    world.wait_for("late", Some("2.0-1"));
    assert_eq!(installed(world.node(), "r-late"), "2.0.noarch");
}

/// Somebody ends a transaction of the host's: nobody knows whether the script came to its end.
fn what_a_transaction_left_that_was_cut_short_is_told(world: &World, left: &[(&str, &str)]) {
    let slow = [left, &[("slow", "present")]].concat();
    world.declare(&slow);
    world.pair.wait("the script runs", |pair| pair.b.run(&["pgrep", "-x", "sleep"]).success());
    world.node().must(&["systemctl", "kill", "--signal=KILL", "tenure-host-packages-*"]);
    let why = world.wait_for_code("slow", "unchanged", "package_script_failed");
    assert!(why.contains("cut short") && why.contains(world.manager.anew[0]), "{why}");
    assert_eq!(world.pair.owned()[&world.key("slow")], "created");
    world.node().write(&format!("/srv/{}", world.name("slow")), "");
    if world.manager.word == "pacman" {
        world.node().must(&["rm", "/var/lib/pacman/db.lck"]);
    }
    world.bring_anew("slow");
    world.assert_nothing_to_do(u64::try_from(slow.len()).unwrap());
    assert_eq!(world.pair.resource(&world.key("slow"))["code"], serde_json::Value::Null);
}

// case: O-09
// case: O-11
// case: O-13
#[test]
fn what_is_locked_only_provided_or_cut_short_is_told_as_that_on_a_machine_of_dnf() {
    let world = World::new(DNF);
    a_name_that_is_only_provided_is_told_as_that(&world);
    let lock = |word: &str| format!("dnf -q versionlock {word} r-hello");
    what_its_operator_has_locked_stays(&world, &lock("add"), &lock("delete"), "versionlock delete r-hello");
    an_update_that_was_cut_short_is_its_operators(&world);
    what_a_transaction_left_that_was_cut_short_is_told(&world, &[("late", "2.0-1")]);
}

// case: O-09
// case: O-11
// case: O-13
#[test]
fn what_is_locked_only_provided_or_cut_short_is_told_as_that_on_a_machine_of_pacman() {
    let world = World::new(PACMAN);
    world.node().must(&["pacman", "-Sy"]);
    a_name_that_is_only_provided_is_told_as_that(&world);
    let lock = "sed -i '/^.options./a IgnorePkg = p-hello' /etc/pacman.conf";
    what_its_operator_has_locked_stays(&world, lock, "sed -i /^IgnorePkg/d /etc/pacman.conf", "IgnorePkg");
    what_a_transaction_left_that_was_cut_short_is_told(&world, &[("other", "present")]);
}
