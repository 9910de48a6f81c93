//! What a real dpkg may say of a package and a real apt of a name, and what is made of each: holds, configuration that is
//! kept, scripts that fail, leftovers, triggers, two architectures, names that are only provided, essential ones.

use tenure_tests::lab::{AptRepository, Base, Deb, Pair, Trust};

use super::assert_dpkg_is_whole;

fn deb(name: &str, version: &str) -> Deb {
    Deb::new(name, version).file(&format!("/usr/share/{name}/version"), version, 0o644)
}

fn shared(version: &str, architecture: &str) -> Deb {
    Deb::new("libshared1", version).architecture(architecture).field("Multi-Arch", "same")
}

fn odd(version: &str, architecture: &str) -> Deb {
    Deb::new("libodd", version).architecture(architecture).field("Multi-Arch", "same")
}

/// Declares these packages, and more.
fn declare(pair: &Pair, packages: &[(&str, &str)], more: &str) {
    let one = |(name, version): &(&str, &str)| {
        let how = if *version == "absent" {
            "absent = true".to_owned()
        } else {
            format!("version = \"{version}\"")
        };
        format!("[[package]]\nname = \"{name}\"\n{how}\n")
    };
    pair.module(&packages.iter().map(one).chain([more.to_owned()]).collect::<String>());
    let _ = pair.declare(&["--allow-removals", "99"]).must();
}

/// dpkg's own words for a package: what is wanted, how it stands, its version.
fn words(pair: &Pair, name: &str) -> String {
    pair.b.must(&["dpkg-query", "-W", "-f", "${Status} ${Version}", name])
}

fn install(pair: &Pair, packages: &[&str]) {
    pair.b.must(&[&["apt-get", "install", "-y", "-q"][..], packages].concat());
}

fn what_is_held_stays_and_is_as_declared_where_it_is_what_is_declared(pair: &Pair) {
    install(pair, &["routerd=5.0"]);
    pair.b.must(&["apt-mark", "hold", "routerd"]);
    for version in ["present", "5.0", "5.*"] {
        declare(pair, &[("routerd", version), ("beside", "present")], "");
        pair.wait_for_resource("package:beside");
        pair.wait_for_resource("package:routerd");
    }
    declare(pair, &[("routerd", "5.1"), ("other", "present")], "");
    let why = pair.wait_for_code("package:routerd", "refused", "package_on_hold");
    assert!(
        why.starts_with("held by the operator at 5.0") && why.contains("apt-mark unhold routerd"),
        "{why}"
    );
    pair.wait_for_resource("package:other");
    assert_eq!(words(pair, "routerd"), "hold ok installed 5.0");
}

fn configuration_is_kept_and_what_is_declared_wins(pair: &Pair) {
    let (by_hand, declared) = ("/etc/cachebox/cachebox.conf", "/etc/tuned/tuned.conf");
    let file = format!("[[file]]\npath = \"{declared}\"\ncontent = \"as declared\\n\"\n");
    declare(pair, &[("cachebox", "1.0"), ("tuned", "1.0")], &file);
    pair.wait_for_resource("package:cachebox");
    pair.wait_for_resource(&format!("file:{declared}"));
    pair.b.write(by_hand, "by hand\n");
    declare(pair, &[("cachebox", "2.0"), ("tuned", "2.0")], &file);
    pair.wait("both are new", |pair| {
        ["cachebox", "tuned"].iter().all(|name| words(pair, name) == "install ok installed 2.0")
    });
    let why = pair.wait_for_code("package:cachebox", "unchanged", "configuration_kept");
    assert!(why.ends_with(&format!("{by_hand}.dpkg-dist")), "{why}");
    assert_eq!(pair.read(by_hand).as_deref(), Some("by hand\n"));
    assert_eq!(pair.read(&format!("{by_hand}.dpkg-dist")).as_deref(), Some("2.0\n"));
    pair.wait_for_resource(&format!("file:{declared}"));
    assert_eq!(pair.read(declared).as_deref(), Some("as declared\n"));
    assert_dpkg_is_whole(&pair.b);
}

fn a_script_that_fails_is_a_failure_in_its_own_words(pair: &Pair) {
    declare(pair, &[("broken", "present"), ("good", "present")], "");
    let why = pair.wait_for_code("package:broken", "failed", "package_unfinished");
    assert!(
        why.contains("half-configured") && why.contains("cannot reach the database / giving up"),
        "{why}"
    );
    assert!(why.contains("exit status 7"), "{why}");
    pair.wait_for_resource("package:good");
    // Mended, it is finished by its operator, and nobody has to tell the host.
    pair.b.write("/srv/database", "");
    pair.b.must(&["dpkg", "--configure", "-a"]);
    pair.wait_for_resource("package:broken");
}

fn leftovers_are_not_installed(pair: &Pair) {
    install(pair, &["oldproxy", "unwanted"]);
    pair.b.must(&["apt-get", "remove", "-y", "-q", "oldproxy", "unwanted"]);
    assert_eq!(words(pair, "oldproxy"), "deinstall ok config-files 1.0");
    declare(pair, &[("oldproxy", "present"), ("unwanted", "absent")], "");
    pair.wait_for_resource("package:oldproxy");
    pair.wait_for_resource("package:unwanted");
    assert_eq!(words(pair, "oldproxy"), "install ok installed 1.0");
    assert_eq!(words(pair, "unwanted"), "deinstall ok config-files 1.0", "nothing is purged");
}

fn triggers_that_are_due_are_no_failure(pair: &Pair) {
    install(pair, &["mailer-base"]);
    let _ = pair.b.sh("dpkg --no-triggers -i /srv/lab-apt/mailer-part_1.0_all.deb").must();
    assert_eq!(words(pair, "mailer-base"), "install ok triggers-pending 1.0");
    declare(pair, &[("mailer-base", "present")], "");
    pair.wait_for_resource("package:mailer-base");
    // The next transaction settles them.
    declare(pair, &[("mailer-base", "present"), ("settles", "present")], "");
    pair.wait_for_resource("package:settles");
    assert_dpkg_is_whole(&pair.b);
}

fn versions_are_exact_prefixes_and_ordered_as_dpkg_orders_them(pair: &Pair) {
    for (declared, is) in [
        ("2:1.0~rc1-1", "2:1.0~rc1-1"),
        ("2:1.0-1", "2:1.0-1"),
        ("10.0-1", "10.0-1"),
        ("2:1.*", "2:1.0-1+b1"),
        ("2:1.0~*", "2:1.0~rc1-1"),
    ] {
        declare(pair, &[("epochal", declared)], "");
        pair.wait(&format!("epochal is {is}"), |pair| {
            pair.read("/usr/share/epochal/version").as_deref() == Some(is)
        });
        pair.wait_for_resource("package:epochal");
    }
}

fn of_two_architectures_the_machines_own_is_meant_and_both_are_of_one_version(pair: &Pair) {
    pair.b.must(&["dpkg", "--add-architecture", "i386"]);
    pair.b.must(&["apt-get", "update", "-q"]);
    install(pair, &["libshared1:i386=1.1", "libodd=1.0", "libodd:i386=1.0"]);
    declare(pair, &[("libshared1", "1.1"), ("only32", "present"), ("libodd", "2.0")], "");
    pair.wait_for_resource("package:only32");
    pair.wait_for_resource("package:libshared1");
    assert_eq!(
        words(pair, "libshared1:amd64"),
        "install ok installed 1.1",
        "the other one is not the machine's"
    );
    // Of the new version there is one only: the other would have to go, and nobody said so.
    let why = pair.wait_for_code("package:libodd", "refused", "transaction_refused");
    assert!(why.contains("also remove libodd:i386"), "{why}");
    declare(pair, &[("libshared1", "1.2")], "");
    pair.wait("both are raised", |pair| {
        ["libshared1:amd64", "libshared1:i386"]
            .iter()
            .all(|name| words(pair, name) == "install ok installed 1.2")
    });
    declare(pair, &[("libshared1", "absent")], "");
    pair.wait("both are gone", |pair| {
        pair.b.sh("dpkg-query -W -f '${db:Status-Status} ' libshared1 2>/dev/null").stdout.trim().is_empty()
    });
    pair.wait_for_resource("package:libshared1");
}

fn a_name_that_is_only_provided_or_essential_is_told_as_that(pair: &Pair) {
    install(pair, &["vital"]);
    declare(
        pair,
        &[("virt-two", "present"), ("virt-one", "present"), ("vital", "absent"), ("good", "present")],
        "",
    );
    pair.wait_for_resource("package:good");
    for (key, who) in [("package:virt-two", "prov-a"), ("package:virt-one", "prov-a")] {
        let why = pair.wait_for_code(key, "failed", "virtual_package");
        assert!(why.contains("is not a package") && why.contains(who), "{key}: {why}");
    }
    let why = pair.wait_for_code("package:vital", "refused", "essential_package");
    assert!(why.starts_with("vital would be removed"), "{why}");
    assert!(pair.read("/usr/share/vital/version").is_some());
    assert_eq!(pair.b.sh("dpkg-query -W -f '${db:Status-Status}' prov-a 2>/dev/null").stdout.trim(), "");
}

/// A pair whose node has a source with whatever is odd of packages.
fn raised(base: Base) -> Pair {
    let pair = Pair::raised_on("states", base);
    let repository = AptRepository::new(&pair.lab, Trust::Signed);
    let conffile = |name: &str, version: &str| {
        deb(name, version).conffile(&format!("/etc/{name}/{name}.conf"), format!("{version}\n"))
    };
    let fails = "[ -e /srv/database ] && exit 0\necho first line\necho cannot reach the database >&2\necho giving up >&2\nexit 7";
    let packages = [
        deb("routerd", "5.0"),
        deb("routerd", "5.1"),
        deb("beside", "1.0"),
        deb("other", "1.0"),
        conffile("cachebox", "1.0"),
        conffile("cachebox", "2.0"),
        conffile("tuned", "1.0"),
        conffile("tuned", "2.0"),
        deb("broken", "1.0").script("postinst", fails),
        deb("good", "1.0"),
        conffile("oldproxy", "1.0"),
        conffile("unwanted", "1.0"),
        deb("mailer-base", "1.0").trigger("interest-noawait /usr/share/mailer").script("postinst", "exit 0"),
        deb("mailer-part", "1.0").file("/usr/share/mailer/part", "it\n", 0o644),
        deb("settles", "1.0"),
        deb("epochal", "2:1.0~rc1-1"),
        deb("epochal", "2:1.0-1"),
        deb("epochal", "2:1.0-1+b1"),
        deb("epochal", "10.0-1"),
        shared("1.1", "amd64"),
        shared("1.1", "i386"),
        shared("1.2", "amd64"),
        shared("1.2", "i386"),
        odd("1.0", "amd64"),
        odd("1.0", "i386"),
        odd("2.0", "amd64"),
        Deb::new("only32", "1.0").architecture("i386").field("Multi-Arch", "foreign"),
        deb("prov-a", "1.0").field("Provides", "virt-one, virt-two"),
        deb("prov-b", "1.0").field("Provides", "virt-two"),
        deb("vital", "1.0").field("Essential", "yes"),
    ];
    repository.add_all(&packages);
    pair.b.use_apt(&repository);
    pair
}

fn kept_on(base: Base) {
    let pair = raised(base);
    what_is_held_stays_and_is_as_declared_where_it_is_what_is_declared(&pair);
    configuration_is_kept_and_what_is_declared_wins(&pair);
}

fn half_done_on(base: Base) {
    let pair = raised(base);
    a_script_that_fails_is_a_failure_in_its_own_words(&pair);
    leftovers_are_not_installed(&pair);
    triggers_that_are_due_are_no_failure(&pair);
}

fn named_on(base: Base) {
    let pair = raised(base);
    versions_are_exact_prefixes_and_ordered_as_dpkg_orders_them(&pair);
    of_two_architectures_the_machines_own_is_meant_and_both_are_of_one_version(&pair);
    a_name_that_is_only_provided_or_essential_is_told_as_that(&pair);
}

// case: O-09
// case: O-12
#[test]
fn a_package_on_hold_and_what_its_operator_configured_are_kept_on_debian_12() {
    kept_on(Base::Bookworm);
}

// case: O-09
// case: O-12
#[test]
fn a_package_on_hold_and_what_its_operator_configured_are_kept_on_debian_13() {
    kept_on(Base::Trixie);
}

// case: O-13
// case: O-14
#[test]
fn what_is_half_configured_left_over_or_waits_for_its_triggers_is_told_apart_on_debian_12() {
    half_done_on(Base::Bookworm);
}

// case: O-13
// case: O-14
#[test]
fn what_is_half_configured_left_over_or_waits_for_its_triggers_is_told_apart_on_debian_13() {
    half_done_on(Base::Trixie);
}

// rule: H-25
#[test]
fn versions_architectures_and_names_that_are_only_provided_are_what_dpkg_takes_them_for_on_debian_12() {
    named_on(Base::Bookworm);
}

// rule: H-25
#[test]
fn versions_architectures_and_names_that_are_only_provided_are_what_dpkg_takes_them_for_on_debian_13() {
    named_on(Base::Trixie);
}
