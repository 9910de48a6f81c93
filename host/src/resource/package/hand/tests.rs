use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::*;
use crate::ground::Ground;
use crate::program::{ProgramError, Programs, Ran};
use crate::resource::Stands;

/// rpm as a test writes it: it lists this.
struct Rpm(&'static str);

impl Programs for Rpm {
    fn run(&self, program: &str, _: &[&str], _: Duration) -> Result<Ran, ProgramError> {
        match program {
            "rpm" => Ok(Ran { status: Some(0), out: self.0.to_owned(), err: String::new() }),
            other => Err(ProgramError::NotThere(other.to_owned())),
        }
    }

    fn attend(&self, p: &str, a: &[&str], within: Duration, _: &AtomicBool) -> Result<Ran, ProgramError> {
        self.run(p, a, within)
    }

    fn rest(&self, _: Duration) {}
}

const BASH: &str = "bash\t0\t5.2\t1.fc40\tx86_64\t1796057509\n";
const KEY: &str = "gpg-pubkey\t0\tc31b7411\t6b0d407e\t(none)\t1796057509\n";

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Which it is on a machine with these files, where rpm lists this.
fn chosen(files: &[(&str, &str)], lists: &'static str) -> Result<Which, Trouble> {
    let (folder, never) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
    files.iter().for_each(|(path, text)| write(folder.path(), path, text));
    let (ground, rpm) = (Ground::new(folder.path(), false), Rpm(lists));
    which(&Tools::new(&ground, Some(&rpm), None, &never))
}

const DPKG: (&str, &str) =
    ("var/lib/dpkg/status", "Package: bash\nStatus: install ok installed\nVersion: 5\n");
const RPM: (&str, &str) = ("usr/lib/sysimage/rpm/rpmdb.sqlite", "");
const PACMAN: (&str, &str) = ("var/lib/pacman/local/bash-5.2-1/desc", "%NAME%\nbash\n");

#[test]
fn the_database_that_holds_packages_says_whose_machine_it_is() {
    assert_eq!(chosen(&[DPKG], BASH), Ok(Which::Apt));
    assert_eq!(chosen(&[RPM], BASH), Ok(Which::Dnf));
    assert_eq!(chosen(&[PACMAN], ""), Ok(Which::Pacman));
    // Another's name in os-release changes nothing, and neither does a status that is empty.
    let fedora = ("etc/os-release", "ID=fedora\n");
    assert_eq!(chosen(&[DPKG, fedora], ""), Ok(Which::Apt));
    assert_eq!(chosen(&[RPM, ("var/lib/dpkg/status", "")], BASH), Ok(Which::Dnf));
}

// rule: H-09
#[test]
fn a_database_that_cannot_be_looked_at_is_not_one_that_is_not_there() {
    let trouble = chosen(&[("var/lib/dpkg", ""), RPM], BASH).unwrap_err();
    assert_eq!((trouble.stands, trouble.code), (Stands::Unknown, "could_not_look"));
    let trouble = chosen(&[DPKG, ("var/lib/pacman/local", "")], "").unwrap_err();
    assert_eq!((trouble.stands, trouble.code), (Stands::Unknown, "could_not_look"));
}

#[test]
fn a_machine_that_merely_has_the_tools_of_another_is_not_its() {
    assert_eq!(chosen(&[DPKG, RPM, ("var/lib/pacman/local/ALPM_DB_VERSION", "9\n")], KEY), Ok(Which::Apt));
}

#[test]
fn two_databases_that_hold_packages_are_refused_by_name_until_the_owner_says_which() {
    let trouble = chosen(&[DPKG, RPM], BASH).unwrap_err();
    assert_eq!((trouble.stands, trouble.code), (Stands::Refused, "package_managers"));
    assert!(trouble.reason.contains("apt and dnf"), "{}", trouble.reason);
    let word = ("etc/tenure/host.toml", "packages = \"dnf\"\n");
    assert_eq!(chosen(&[DPKG, RPM, word], BASH), Ok(Which::Dnf));
    let broken = ("etc/tenure/host.toml", "packages = \"zypper\"\n");
    assert_eq!(chosen(&[DPKG, broken], "").unwrap_err().code, "config_unusable");
}
