use super::*;

const STATUS: &str = "\
Package: adduser
Status: install ok installed
Priority: important
Architecture: all
Version: 3.134
Description: add and remove users and groups
 This package includes the commands.
 .
 And: a line with a colon.

Package: libc6
Status: hold ok installed
Architecture: amd64
Multi-Arch: same
Version: 2.36-9+deb12u4

Package: libc6
Status: deinstall ok config-files
Architecture: i386
Multi-Arch: same
Version: 2.36-9+deb12u4

Package: old
Status: deinstall ok config-files
Architecture: amd64
Version: 1.0

Package: half
Status: install ok half-configured
Architecture: amd64
Version: 2.0

Package: waiting
Status: install ok triggers-pending
Architecture: amd64
Version: 2.0

Package: damaged
Status: install reinstreq half-installed
Architecture: amd64
Version: 2.0
";

// case: O-14
#[test]
fn only_ok_installed_is_installed() {
    let packages = Packages::parse(STATUS).unwrap();
    assert_eq!(packages.installed("adduser"), Some("3.134"));
    for not in ["old", "half", "damaged", "never-heard-of"] {
        assert_eq!(packages.installed(not), None, "{not}");
    }
    assert_eq!(packages.get("old").unwrap().state, PackageState::Gone);
    for broken in ["half", "damaged"] {
        assert_eq!(packages.get(broken).unwrap().state, PackageState::Broken, "{broken}");
    }
}

#[test]
fn of_two_architectures_the_installed_one_counts_and_a_hold_is_seen() {
    let packages = Packages::parse(STATUS).unwrap();
    let libc = packages.get("libc6").unwrap();
    assert_eq!((&*libc.architecture, libc.hold), ("amd64", true));
}

/// Every oddity at once, as dpkg 1.21.22 reads it.
const ODDITIES: &str = include_str!("oddities.txt");

// case: O-09
// case: O-11
// case: O-14
#[test]
fn each_oddity_is_read_as_dpkg_itself_reads_it() {
    let packages = Packages::parse(ODDITIES).unwrap();
    let read: Vec<_> = [
        "cachebox",
        "routerd",
        "oldproxy",
        "metricsd",
        "bootfiles",
        "libshared1",
        "mailer-base",
        "http-server",
        "nosuch",
    ]
    .into_iter()
    .map(|name| (name, packages.installed(name), packages.get(name).is_some_and(|package| package.hold)))
    .collect();
    let expected = [
        ("cachebox", Some("2:1.4.2-3+b1"), false),
        ("routerd", Some("5.0~rc2-1"), true),
        ("oldproxy", None, false),
        ("metricsd", None, false),
        ("bootfiles", None, false),
        ("libshared1", Some("1.1-2"), false),
        ("mailer-base", Some("4.96-15"), false),
        ("http-server", None, false),
        ("nosuch", None, false),
    ];
    assert_eq!(read, expected);
    let mut unfinished: Vec<String> = packages.unfinished().map(|(name, _)| name).collect();
    unfinished.sort();
    assert_eq!(unfinished, ["bootfiles", "metricsd"]);
    assert!(packages.get("bootfiles").unwrap().is_half_unpacked());
    assert!(packages.have_triggers_due(), "of mailer-base, which can be used all the same");
}

#[test]
fn a_name_alone_means_the_machines_own_architecture_where_there_may_be_several() {
    let dpkg = "Package: dpkg\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1\n\n";
    let one = |name: &str, architecture: &str, several: &str, words: &str| {
        format!(
            "Package: {name}\nStatus: {words}\nArchitecture: {architecture}\nMulti-Arch: {several}\nVersion: 1.0\n\n"
        )
    };
    let (here, gone) = ("install ok installed", "deinstall ok config-files");
    let text = [
        dpkg.to_owned(),
        one("libshared1", "i386", "same", here),
        one("libshared1", "amd64", "same", here),
        one("libtheirs", "i386", "same", here),
        one("libleft", "amd64", "same", gone),
        one("libleft", "i386", "same", here),
        one("only32", "i386", "foreign", here),
        one("arch-free", "all", "foreign", here),
        one("half", "i386", "same", "install ok half-configured"),
    ];
    let packages = Packages::parse(&text.concat()).unwrap();
    let called = |name: &str| packages.here(name).map(|(called, _)| called).collect::<Vec<_>>();
    assert_eq!(called("libshared1"), ["libshared1:i386", "libshared1"]);
    assert_eq!(&*packages.get("libshared1").unwrap().architecture, "amd64");
    assert_eq!(packages.installed("libtheirs"), None, "it is another one than the machine's");
    assert_eq!(packages.installed("libtheirs:i386"), Some("1.0"));
    assert_eq!(packages.installed("libleft"), None);
    assert_eq!(called("libleft"), ["libleft:i386"]);
    assert_eq!(packages.installed("only32"), Some("1.0"), "there can be only one");
    assert_eq!(called("arch-free"), ["arch-free"]);
    assert_eq!(packages.unfinished().map(|(called, _)| called).collect::<Vec<_>>(), ["half:i386"]);
}

#[test]
fn what_is_of_another_architecture_never_stands_for_the_machines_own() {
    let one = |name: &str, architecture: &str, words: &str| {
        format!(
            "Package: {name}\nStatus: {words}\nArchitecture: {architecture}\nMulti-Arch: same\nVersion: 1.0\n\n"
        )
    };
    let here = "install ok installed";
    let text = [
        one("dpkg", "amd64", here),
        one("libtheirs", "i386", here),
        one("libhalf", "i386", here),
        one("libhalf", "amd64", "install ok half-configured"),
    ];
    let packages = Packages::parse(&text.concat()).unwrap();
    assert_eq!(packages.pick("libtheirs", |_| true), None);
    let half = packages.pick("libhalf", |_| true).unwrap();
    assert_eq!((&*half.architecture, half.state), ("amd64", PackageState::Broken));
}

// case: O-11
#[test]
fn what_the_journal_says_of_a_package_replaces_what_the_status_says_of_it_alone() {
    let mut packages = Packages::parse(STATUS).unwrap();
    let entry = "Package: libc6\nStatus: install ok half-configured\nArchitecture: amd64\nMulti-Arch: same\nVersion: 2.37-1\n";
    packages.overlay(Packages::parse(entry).unwrap());
    let libc = packages.get("libc6").unwrap();
    assert_eq!((&*libc.version, libc.state, libc.hold), ("2.37-1", PackageState::Broken, false));
    assert_eq!(packages.get_called("libc6:i386").unwrap().state, PackageState::Gone);
    assert_eq!(packages.installed("adduser"), Some("3.134"));
}

// case: O-14
#[test]
fn a_package_whose_triggers_are_due_can_be_used_and_one_that_waits_for_anothers_is_not_whole() {
    let packages = Packages::parse(&STATUS.replace("half-configured", "triggers-awaited")).unwrap();
    assert_eq!(packages.installed("waiting"), Some("2.0"));
    assert_eq!(packages.get("half").unwrap().state, PackageState::Broken);
    assert_eq!(
        packages.unfinished().map(|(name, _)| name).collect::<Vec<_>>(),
        ["damaged"],
        "dpkg settles triggers itself"
    );
}

#[test]
fn a_database_that_is_cut_or_garbled_is_unreadable_and_not_empty() {
    assert!(Packages::parse("Package: x\n").is_err());
    assert!(Packages::parse("Package: x\nStatus: install\nVersion: 1\n").is_err());
    assert!(Packages::parse("\0\0\0\0").is_err());
    assert_eq!(Packages::parse("").unwrap(), Packages::default());
}
