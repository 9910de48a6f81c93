//! File systems with owners and modes of their own, as a boot partition has them (O-21), and directories with more
//! than the plain bits of a mode.

use std::os::unix::fs::chown;
use std::process::Command;

use super::trouble::{Mounted, tmpfs};
use super::*;
use crate::walk::carry::Attributes;
use crate::walk::change::{ChangeError, Fresh, temporary};

/// Whatever lies in `at` is shown as root's with the mode 0755: another owner is refused, another mode taken without a
/// word and not kept. None where it cannot be mounted.
#[expect(
    clippy::disallowed_methods,
    reason = "a real file system of this kind stands in for that of a boot partition"
)]
fn shown_as_roots(machine: &Machine, at: &str) -> Option<Mounted> {
    let (under, at) = (machine.at("/under"), machine.at(at));
    std::fs::create_dir(&under).unwrap();
    std::fs::create_dir(&at).unwrap();
    let how = ["--force-user=root", "--force-group=root", "--perms=0755", "--chown-deny", "--chmod-ignore"];
    let ran = Command::new("bindfs").args(how).arg("--xattr-none").args([&under, &at]).output();
    match ran {
        Ok(ran) if ran.status.success() => Some(Mounted(at)),
        Ok(ran) => {
            eprintln!("skipped: mounting needs root ({})", String::from_utf8_lossy(&ran.stderr));
            None
        }
        Err(error) => {
            eprintln!("skipped: needs the Debian package bindfs ({error})");
            None
        }
    }
}

// case: O-21
#[test]
fn where_owner_and_mode_are_not_kept_a_file_fails_before_it_is_replaced_unless_they_are_as_declared() {
    let mut machine = Machine::new();
    let Some(_mounted) = shown_as_roots(&machine, "/srv/boot") else { return };
    machine.write("/srv/boot/mode", "old");
    machine.write("/srv/boot/owner", "old");
    let with = |mode: &str, owner: &str| serde_json::json!({ "mode": mode, "owner": owner });
    machine.file_with("/srv/boot/mode", "new", with("0644", "root"));
    machine.file_with("/srv/boot/owner", "new", with("0755", "1234"));
    machine.file_with("/srv/boot/fine", "fine", with("0755", "root"));
    machine.directory("/srv/boot/closed", "0700");
    machine.directory("/srv/boot/open", "0755");
    machine.file("/srv/elsewhere", "fine");
    let done = machine.pass();
    for key in ["file:/srv/boot/mode", "file:/srv/boot/owner", "directory:/srv/boot/closed"] {
        assert_eq!(outcome(&done, key), (Failed, Some("standing_not_kept".to_owned())), "{key}");
        let said = reason(&done, key);
        assert!(said.contains("(fuse") && said.contains("as mode 0755 of 0:0, whatever is set"), "{said}");
    }
    assert_eq!(
        (machine.read("/srv/boot/mode"), machine.read("/srv/boot/owner")),
        ("old".into(), "old".into())
    );
    assert!(!machine.at("/srv/boot/closed").exists() && machine.is_clean());
    for key in ["file:/srv/boot/fine", "directory:/srv/boot/open", "file:/srv/elsewhere"] {
        assert_eq!(line(&done, key).outcome, Applied, "{key}");
    }
    assert_eq!(machine.pass().summary.counts.in_words(), "3 unchanged, 3 failed");
}

// case: O-21
// case: O-22
#[test]
fn where_a_mode_is_not_kept_not_a_byte_of_a_closed_file_is_written() {
    let machine = Machine::new();
    let Some(_mounted) = shown_as_roots(&machine, "/srv/boot") else { return };
    let own = Own::look(&machine.ground);
    let walker = Walker::new(&machine.ground, &own).unwrap();
    let path = tenure_protocol::path::DeclaredPath::new("/srv/boot/key").unwrap();
    let (dir, _) = walker.parent(&path).unwrap();
    let mut asked = false;
    let fresh = Fresh::file(&dir, &temporary().unwrap(), 0o600, None, &Attributes::default(), &mut |_| {
        asked = true;
        Ok(())
    });
    assert!(matches!(fresh, Err(ChangeError::NotKept { .. })), "{fresh:?}");
    assert!(!asked && machine.is_clean());
}

#[test]
fn a_directory_has_the_very_bits_that_are_declared_also_in_one_that_hands_down_its_group() {
    if !is_root() {
        eprintln!("skipped: giving away needs root");
        return;
    }
    let mut machine = Machine::new();
    std::fs::create_dir(machine.at("/srv/shared")).unwrap();
    chown(machine.at("/srv/shared"), None, Some(1234)).unwrap();
    std::fs::set_permissions(machine.at("/srv/shared"), std::fs::Permissions::from_mode(0o2755)).unwrap();
    let modes = [("/srv/shared/plain", "0755"), ("/srv/shared/group", "2750"), ("/srv/shared/drop", "1777")];
    for (path, mode) in modes {
        machine.directory(path, mode);
    }
    machine.file("/srv/shared/file", "f");
    assert_eq!(machine.pass().summary.counts.in_words(), "4 applied");
    let is = |machine: &Machine, path: &str| {
        let stat = machine.at(path).metadata().unwrap();
        (format!("{:04o}", stat.mode() & 0o7777), stat.uid(), stat.gid())
    };
    for (path, mode) in modes {
        assert_eq!(is(&machine, path), (mode.to_owned(), 0, 0), "{path}");
        // Whoever gives it away and back takes no bit with him.
        chown(machine.at(path), Some(1234), Some(1234)).unwrap();
        std::fs::set_permissions(machine.at(path), std::fs::Permissions::from_mode(0o700)).unwrap();
    }
    assert_eq!(is(&machine, "/srv/shared/file"), ("0644".to_owned(), 0, 0));
    assert_eq!(machine.pass().summary.counts.in_words(), "1 unchanged, 3 applied");
    for (path, mode) in modes {
        assert_eq!(is(&machine, path), (mode.to_owned(), 0, 0), "{path}");
    }
    assert_eq!(machine.pass().summary.counts.in_words(), "4 unchanged");
}

// case: O-04
#[test]
fn a_declared_directory_on_which_something_is_mounted_is_what_is_mounted_there_and_stays_mounted() {
    let mut machine = Machine::new();
    std::fs::create_dir(machine.at("/srv/data")).unwrap();
    std::fs::set_permissions(machine.at("/srv/data"), std::fs::Permissions::from_mode(0o700)).unwrap();
    let Some(mounted) = tmpfs(&machine.at("/srv/data"), "64k") else { return };
    machine.directory("/srv/data", "0750");
    machine.file("/srv/data/file", "on it");
    assert_eq!(machine.pass().summary.counts.in_words(), "2 applied");
    assert_eq!((machine.mode("/srv/data"), machine.read("/srv/data/file").as_str()), (0o750, "on it"));
    drop(mounted);
    assert_eq!(machine.mode("/srv/data"), 0o700, "what lies below was not touched");
    // What it hides is looked at when it is seen: drift like any other.
    let done = machine.pass();
    assert_eq!(outcome(&done, "directory:/srv/data"), (Applied, Some("drift".to_owned())));
    assert_eq!(machine.read("/srv/data/file"), "on it");
}
