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
    for not in ["old", "half", "waiting", "damaged", "never-heard-of"] {
        assert_eq!(packages.installed(not), None, "{not}");
    }
    assert_eq!(packages.get("old").unwrap().state, PackageState::Gone);
    for broken in ["half", "waiting", "damaged"] {
        assert_eq!(packages.get(broken).unwrap().state, PackageState::Broken, "{broken}");
    }
}

#[test]
fn of_two_architectures_the_installed_one_counts_and_a_hold_is_seen() {
    let packages = Packages::parse(STATUS).unwrap();
    let libc = packages.get("libc6").unwrap();
    assert_eq!((libc.architecture.as_str(), libc.hold), ("amd64", true));
}

#[test]
fn a_database_that_is_cut_or_garbled_is_unreadable_and_not_empty() {
    assert!(Packages::parse("Package: x\n").is_err());
    assert!(Packages::parse("Package: x\nStatus: install\nVersion: 1\n").is_err());
    assert!(Packages::parse("\0\0\0\0").is_err());
    assert_eq!(Packages::parse("").unwrap(), Packages::default());
}
