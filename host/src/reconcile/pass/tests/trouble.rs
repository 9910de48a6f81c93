//! Disks that are full, mounts, other names, secrets, a store that cannot be written.

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::*;

struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        umount2(&self.0, MntFlags::MNT_DETACH).unwrap();
    }
}

/// A small file system of its own; none where mounting is not possible here.
fn tmpfs(at: &Path, size: &str) -> Option<Mounted> {
    let options = format!("size={size}");
    let mounted = mount(Some("tmpfs"), at, Some("tmpfs"), MsFlags::empty(), Some(options.as_str()));
    match mounted {
        Ok(()) => Some(Mounted(at.to_owned())),
        Err(errno) => {
            eprintln!("skipped: mounting needs root ({errno})");
            None
        }
    }
}

fn bind(from: &Path, at: &Path) -> Option<Mounted> {
    match mount(Some(from), at, None::<&str>, MsFlags::MS_BIND, None::<&str>) {
        Ok(()) => Some(Mounted(at.to_owned())),
        Err(errno) => {
            eprintln!("skipped: mounting needs root ({errno})");
            None
        }
    }
}

// case: O-04
#[test]
fn a_file_over_which_another_is_mounted_is_refused_by_name_and_the_mount_stays() {
    let mut machine = Machine::new();
    machine.write("/srv/file", "below");
    machine.write("/srv/other", "mounted");
    machine.file("/srv/file", "ours");
    let Some(mounted) = bind(&machine.at("/srv/other"), &machine.at("/srv/file")) else { return };
    let done = machine.pass();
    assert_eq!(outcome(&done, "file:/srv/file"), (Refused, Some("mount_point".to_owned())));
    assert!(reason(&done, "file:/srv/file").contains("this path is a mount point of /"));
    assert_eq!(machine.read("/srv/file"), "mounted");
    assert!(machine.is_clean());
    drop(mounted);
    assert_eq!(machine.read("/srv/file"), "below");
    assert_eq!(line(&machine.pass(), "file:/srv/file").outcome, Applied);
}

// case: O-04
#[test]
fn a_file_that_is_mounted_over_a_declared_one_keeps_its_mode_too() {
    let mut machine = Machine::new();
    machine.write("/srv/file", "below");
    machine.write("/srv/other", "same");
    machine.file_with("/srv/file", "same", serde_json::json!({ "mode": "0600" }));
    let Some(_mounted) = bind(&machine.at("/srv/other"), &machine.at("/srv/file")) else { return };
    assert_eq!(outcome(&machine.pass(), "file:/srv/file"), (Refused, Some("mount_point".to_owned())));
    assert_eq!(machine.mode("/srv/other"), 0o644);
}

// rule: S-12
#[test]
fn a_file_of_roots_in_a_users_directory_is_not_given_to_him_by_a_file_written_once() {
    if !is_root() {
        eprintln!("skipped: giving files away needs root");
        return;
    }
    let mut machine = Machine::new();
    std::fs::create_dir(machine.at("/srv/user")).unwrap();
    std::os::unix::fs::chown(machine.at("/srv/user"), Some(1234), Some(1234)).unwrap();
    let once = serde_json::json!({ "create_once": true, "owner": "1234", "group": "1234" });
    for path in ["/srv/user/kept", "/srv/user/own", "/srv/user/new"] {
        machine.file_with(path, "first", once.clone());
    }
    machine.write("/srv/user/kept", "secret of root");
    machine.write("/srv/user/own", "his");
    std::os::unix::fs::chown(machine.at("/srv/user/own"), Some(1234), Some(1234)).unwrap();
    std::fs::set_permissions(machine.at("/srv/user/own"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let done = machine.pass();
    assert_eq!(outcome(&done, "file:/srv/user/kept"), (Refused, Some("not_given_away".to_owned())));
    assert_eq!(machine.at("/srv/user/kept").metadata().unwrap().uid(), 0);
    assert_eq!(line(&done, "file:/srv/user/own").outcome, Applied);
    assert_eq!(machine.read("/srv/user/own"), "his");
    assert_eq!(line(&done, "file:/srv/user/new").outcome, Applied);
}

// case: O-04
#[test]
fn a_directory_on_which_something_is_mounted_is_not_removed() {
    let mut machine = Machine::new();
    std::fs::create_dir(machine.at("/srv/mnt")).unwrap();
    let Some(_mounted) = tmpfs(&machine.at("/srv/mnt"), "64k") else { return };
    machine.absent("directory", "/srv/mnt");
    assert_eq!(outcome(&machine.pass(), "directory:/srv/mnt"), (Refused, Some("mount_point".to_owned())));
}

// case: O-05
#[test]
fn a_full_disk_keeps_the_old_content_and_leaves_nothing_beside_it() {
    let mut machine = Machine::new();
    std::fs::create_dir(machine.at("/srv/small")).unwrap();
    let Some(_mounted) = tmpfs(&machine.at("/srv/small"), "64k") else { return };
    machine.file("/srv/small/a", "old");
    machine.pass();
    machine.file("/srv/small/a", &"new ".repeat(64 * 1024));
    machine.file("/srv/elsewhere", "fine");
    let done = machine.pass();
    assert_eq!(outcome(&done, "file:/srv/small/a"), (Failed, Some("no_space".to_owned())));
    assert_eq!(line(&done, "file:/srv/elsewhere").outcome, Applied);
    assert_eq!(machine.read("/srv/small/a"), "old");
    assert!(machine.is_clean());
    machine.file("/srv/small/a", "small again");
    assert_eq!(line(&machine.pass(), "file:/srv/small/a").outcome, Applied);
}

// case: O-05
#[test]
fn a_store_that_cannot_be_written_stops_changes_but_not_looking_and_room_mends_it() {
    let folder = tempfile::tempdir().unwrap();
    let ground = Ground::new(folder.path().join("root"), !is_root());
    std::fs::create_dir_all(ground.state()).unwrap();
    let Some(_mounted) = tmpfs(&ground.state(), "8m") else { return };
    let mut machine = Machine::on(folder, ground);
    machine.file("/srv/a", "a");
    machine.pass();
    machine.file("/srv/b", "b");
    machine.write("/srv/a", "drifted");
    let ballast = machine.ground.state().join("ballast");
    let mut fill = std::fs::File::create(&ballast).unwrap();
    while std::io::Write::write(&mut fill, &[0; 4096]).is_ok_and(|wrote| wrote > 0) {}
    drop(fill);
    let declaration = machine.declaration();
    let done = machine.pass_of(Some(declaration.clone()));
    let trouble = done.store_trouble.as_ref().unwrap();
    assert_eq!(trouble.code, "store_unwritable");
    assert!(trouble.happened.contains("full"), "{trouble:?}");
    assert_eq!(outcome(&done, "file:/srv/a"), (Outstanding, Some("store_unwritable".to_owned())));
    assert_eq!((machine.read("/srv/a").as_str(), machine.at("/srv/b").exists()), ("drifted", false));
    std::fs::remove_file(ballast).unwrap();
    let mended = machine.pass_of(Some(declaration));
    assert_eq!(mended.summary.counts.in_words(), "2 applied", "{mended:#?}");
}

/// Far more than could be read while anybody waits, and taking no room.
fn endless(machine: &Machine, path: &str) {
    let file = std::fs::File::create(machine.at(path)).unwrap();
    file.set_len(1 << 42).unwrap();
    file.set_permissions(std::fs::Permissions::from_mode(0o644)).unwrap();
}

// rule: S-12
#[test]
fn a_file_without_end_at_a_declared_path_is_replaced_held_or_released_without_being_read() {
    let mut machine = Machine::new();
    machine.file("/srv/ours", "ours");
    machine.file("/srv/leaves", "ours");
    machine.file_with("/srv/once", "first", serde_json::json!({ "create_once": true }));
    machine.file("/srv/stays", "x");
    endless(&machine, "/srv/once");
    assert_eq!(line(&machine.pass(), "file:/srv/once").outcome, Unchanged);
    for path in ["/srv/ours", "/srv/leaves"] {
        endless(&machine, path);
    }
    machine.forget("file:/srv/leaves");
    let done = machine.pass();
    assert!(reason(&done, "file:/srv/ours").contains("its content was changed"));
    assert_eq!(reason(&done, "file:/srv/leaves"), "left: its content was changed since");
    assert_eq!(machine.read("/srv/ours"), "ours");
    machine.head.mode = "adopted";
    machine.file("/srv/found", "ours");
    endless(&machine, "/srv/found");
    assert_eq!(line(&machine.pass(), "file:/srv/found").outcome, Held);
    machine.head.mode = "converged";
    assert_eq!(line(&machine.pass(), "file:/srv/found").outcome, Applied);
    assert_eq!(machine.at("/srv/once").metadata().unwrap().len(), 1 << 42);
}

// case: O-07
// rule: S-12
#[test]
fn a_file_with_other_names_is_replaced_and_the_others_keep_what_they_had() {
    let mut machine = Machine::new();
    machine.write("/srv/shared", "shared");
    std::fs::hard_link(machine.at("/srv/shared"), machine.at("/srv/a")).unwrap();
    std::fs::hard_link(machine.at("/srv/shared"), machine.at("/srv/same")).unwrap();
    machine.file("/srv/a", "ours");
    machine.file_with("/srv/same", "shared", serde_json::json!({ "mode": "0600" }));
    let done = machine.pass();
    assert_eq!(outcome(&done, "file:/srv/a"), (Applied, Some("other_names".to_owned())));
    assert!(reason(&done, "file:/srv/a").contains("one of 3 names"));
    assert_eq!((machine.read("/srv/a").as_str(), machine.read("/srv/shared").as_str()), ("ours", "shared"));
    assert_eq!((machine.mode("/srv/same"), machine.mode("/srv/shared")), (0o600, 0o644));
}

// case: O-22
#[test]
fn what_is_written_beside_is_never_more_readable_than_what_it_becomes() {
    use crate::ground::own::Own;
    use crate::walk::change::{Fresh, temporary};
    let machine = Machine::new();
    let own = Own::look(&machine.ground);
    let walker = Walker::new(&machine.ground, &own).unwrap();
    let path = tenure_protocol::path::DeclaredPath::new("/srv/secret").unwrap();
    let (dir, _) = walker.parent(&path).unwrap();
    let (name, other) = (temporary().unwrap(), temporary().unwrap());
    assert_ne!(name, other);
    let beside = machine.at("/srv").join(&name);
    let fresh = Fresh::file(&dir, &name, 0o640, None, &mut |file| {
        let open = beside.metadata()?;
        assert_eq!(open.mode() & 0o7777, 0o600);
        assert_eq!(open.uid(), nix::unistd::geteuid().as_raw());
        std::io::Write::write_all(file, b"secret")
    })
    .unwrap();
    assert_eq!(beside.metadata().unwrap().mode() & 0o7777, 0o640);
    drop(fresh);
    assert!(!beside.exists());
    // A name that is taken, by a link for instance, is not written through.
    symlink(machine.at("/srv/elsewhere"), &beside).unwrap();
    assert!(Fresh::file(&dir, &name, 0o600, None, &mut |_| Ok(())).is_err());
    assert!(!machine.at("/srv/elsewhere").exists());
}

#[test]
fn a_store_that_cannot_be_read_makes_everything_unknown_and_nothing_ours_less() {
    let mut machine = Machine::new();
    machine.file("/srv/a", "a");
    machine.pass();
    let declaration = machine.declaration();
    machine.store.clone().close();
    machine.write("/srv/a", "drifted");
    let done = machine.pass_of(Some(declaration));
    assert_eq!(outcome(&done, "file:/srv/a"), (Unknown, Some("store_unreadable".to_owned())));
    assert!(done.store_trouble.is_some());
    assert_eq!(machine.read("/srv/a"), "drifted");
}

#[test]
fn content_that_is_not_in_the_store_fails_its_resource_by_name() {
    let mut machine = Machine::new();
    machine.file("/srv/a", "a");
    machine.store.forget_contents_except(&[]).unwrap();
    assert_eq!(outcome(&machine.pass(), "file:/srv/a"), (Failed, Some("content_missing".to_owned())));
    assert!(machine.is_clean() && !machine.at("/srv/a").exists());
}
