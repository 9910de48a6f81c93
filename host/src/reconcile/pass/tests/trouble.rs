//! Disks that are full, mounts, other names, secrets, a store that cannot be written.

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::*;
use crate::walk::carry::Attributes;

pub(super) struct Mounted(pub(super) PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        umount2(&self.0, MntFlags::MNT_DETACH).unwrap();
    }
}

/// A small file system of its own; none where mounting is not possible here.
pub(super) fn tmpfs(at: &Path, size: &str) -> Option<Mounted> {
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

pub(super) fn bind(from: &Path, at: &Path) -> Option<Mounted> {
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
    let why = reason(&done, "file:/srv/user/kept");
    assert!(why.contains("/srv/user is of the user 1234"), "{why}");
    assert!(why.contains("`chown -h 1234:1234 /srv/user/kept` and `chmod 0644 /srv/user/kept`"), "{why}");
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
    let trouble = &done.store_trouble.as_ref().unwrap().refusal;
    assert_eq!(trouble.code, "store_full");
    assert!(trouble.happened.contains("full"), "{trouble:?}");
    assert_eq!(done.summary.refused.as_ref(), Some(trouble), "it is told upward too");
    assert_eq!(outcome(&done, "file:/srv/a"), (Outstanding, Some("store_unwritable".to_owned())));
    assert_eq!((machine.read("/srv/a").as_str(), machine.at("/srv/b").exists()), ("drifted", false));
    assert!(!done.kept);
    let again = machine.pass_of(Some(declaration.clone()));
    assert_eq!(again.summary.pass, done.summary.pass + 1, "or it would be the same one to the control plane");
    std::fs::remove_file(ballast).unwrap();
    let mended = machine.pass_of(Some(declaration));
    assert_eq!(mended.summary.counts.in_words(), "2 applied", "{mended:#?}");
    assert_eq!((mended.summary.pass, mended.summary.refused), (again.summary.pass + 1, None));
}

// case: O-05
#[test]
fn nothing_is_begun_where_there_is_hardly_room_to_record_it_and_a_quiet_pass_stays_quiet() {
    let folder = tempfile::tempdir().unwrap();
    let ground = Ground::new(folder.path().join("root"), !is_root());
    std::fs::create_dir_all(ground.state()).unwrap();
    let Some(_mounted) = tmpfs(&ground.state(), "8m") else { return };
    let mut machine = Machine::on(folder, ground);
    machine.file("/srv/a", "a");
    machine.pass();
    let room = usize::try_from(machine.store.room().unwrap()).unwrap();
    std::fs::write(machine.ground.state().join("ballast"), vec![0; room - 600 * 1024]).unwrap();
    let quiet = machine.pass();
    assert_eq!((quiet.store_trouble, quiet.summary.counts.in_words().as_str()), (None, "1 unchanged"));
    machine.file("/srv/b", "b");
    let done = machine.pass();
    assert!(done.store_trouble.as_ref().unwrap().refusal.happened.contains("nearly full"));
    assert_eq!(line(&done, "file:/srv/b").outcome, Outstanding);
    assert!(!machine.at("/srv/b").exists());
    assert_eq!(machine.store.intents().unwrap(), []);
    std::fs::remove_file(machine.ground.state().join("ballast")).unwrap();
    assert_eq!(line(&machine.pass(), "file:/srv/b").outcome, Applied);
}

// case: O-05
#[test]
fn a_removed_store_stops_changes_by_name_until_it_is_in_its_place_again() {
    let mut machine = Machine::new();
    machine.file("/srv/a", "a");
    machine.pass();
    let away = machine.ground.state().join("away.db");
    std::fs::rename(machine.ground.store(), &away).unwrap();
    machine.write("/srv/a", "drifted");
    let done = machine.pass();
    let trouble = done.store_trouble.as_ref().unwrap();
    assert_eq!((trouble.refusal.code.as_str(), trouble.cure), ("store_removed", crate::store::Cure::PutBack));
    assert_eq!(outcome(&done, "file:/srv/a"), (Unknown, Some("store_unreadable".to_owned())));
    assert_eq!(machine.read("/srv/a"), "drifted");
    std::fs::rename(&away, machine.ground.store()).unwrap();
    assert_eq!(line(&machine.pass(), "file:/srv/a").outcome, Applied);
}

// case: O-05
#[test]
fn a_file_system_without_inodes_keeps_the_old_content_and_leaves_nothing_beside_it() {
    let mut machine = Machine::new();
    std::fs::create_dir(machine.at("/srv/small")).unwrap();
    let Some(_mounted) = tmpfs(&machine.at("/srv/small"), "1m,nr_inodes=16") else { return };
    machine.file("/srv/small/a", "old");
    assert_eq!(line(&machine.pass(), "file:/srv/small/a").outcome, Applied);
    for number in 0.. {
        if std::fs::write(machine.at(&format!("/srv/small/ballast{number}")), "").is_err() {
            break;
        }
    }
    machine.file("/srv/small/a", "new");
    machine.directory("/srv/small/d", "0755");
    machine.file("/srv/elsewhere", "fine");
    let done = machine.pass();
    for key in ["file:/srv/small/a", "directory:/srv/small/d"] {
        assert_eq!(outcome(&done, key), (Failed, Some("no_space".to_owned())), "{key}");
    }
    assert!(reason(&done, "file:/srv/small/a").starts_with("no space on the file system of /srv/small/a"));
    assert_eq!(line(&done, "file:/srv/elsewhere").outcome, Applied);
    assert_eq!(machine.read("/srv/small/a"), "old");
    assert!(machine.is_clean());
    for number in 0..2 {
        std::fs::remove_file(machine.at(&format!("/srv/small/ballast{number}"))).unwrap();
    }
    let mended = machine.pass();
    for key in ["file:/srv/small/a", "directory:/srv/small/d"] {
        assert_eq!(line(&mended, key).outcome, Applied);
    }
}

fn remount(mounted: &Mounted, flags: MsFlags) {
    mount(None::<&str>, &mounted.0, None::<&str>, MsFlags::MS_REMOUNT | flags, None::<&str>).unwrap();
}

// rule: H-10
#[test]
fn a_file_system_that_takes_no_writes_fails_its_own_resources_by_name_and_no_others() {
    let mut machine = Machine::new();
    std::fs::create_dir(machine.at("/srv/small")).unwrap();
    let Some(mounted) = tmpfs(&machine.at("/srv/small"), "64k") else { return };
    machine.file("/srv/small/a", "old");
    machine.file("/srv/small/same", "same");
    machine.pass();
    remount(&mounted, MsFlags::MS_RDONLY);
    machine.file("/srv/small/a", "new");
    machine.file("/srv/elsewhere", "fine");
    let done = machine.pass();
    assert_eq!(outcome(&done, "file:/srv/small/a"), (Failed, Some("read_only".to_owned())));
    assert_eq!(line(&done, "file:/srv/small/same").outcome, Unchanged);
    assert_eq!(line(&done, "file:/srv/elsewhere").outcome, Applied);
    assert_eq!(machine.read("/srv/small/a"), "old");
    remount(&mounted, MsFlags::empty());
    assert_eq!(line(&machine.pass(), "file:/srv/small/a").outcome, Applied);
}

// rule: H-10
// case: O-05
#[test]
fn a_file_system_that_stops_taking_writes_in_the_middle_of_a_pass_fails_the_rest_of_its_own_by_name() {
    let mut machine = Machine::new();
    std::fs::create_dir(machine.at("/srv/small")).unwrap();
    let Some(mounted) = tmpfs(&machine.at("/srv/small"), "64k") else { return };
    machine.file("/srv/first", "first");
    machine.file_with("/srv/small/a", "a", serde_json::json!({}))["needs"] =
        serde_json::json!(["file:/srv/first"]);
    machine.file_with("/srv/last", "last", serde_json::json!({}))["needs"] =
        serde_json::json!(["file:/srv/first"]);
    machine.clock.advance(std::time::Duration::from_secs(1));
    let done = machine.run_told(
        Some(machine.declaration()),
        &|_| {},
        &|at| {
            if at.outcome.key == "file:/srv/first" {
                remount(&mounted, MsFlags::MS_RDONLY);
            }
        },
        &AtomicBool::new(false),
    );
    assert_eq!(line(&done, "file:/srv/first").outcome, Applied);
    assert_eq!(outcome(&done, "file:/srv/small/a"), (Failed, Some("read_only".to_owned())));
    assert_eq!(line(&done, "file:/srv/last").outcome, Applied);
    remount(&mounted, MsFlags::empty());
    assert_eq!(line(&machine.pass(), "file:/srv/small/a").outcome, Applied);
    assert!(machine.is_clean());
}

// case: O-05
#[test]
fn what_was_written_beside_before_a_disk_failed_is_taken_away_and_the_old_content_stays() {
    use crate::walk::change::{ChangeError, Fresh, temporary};
    let machine = Machine::new();
    machine.write("/srv/a", "old");
    let own = Own::look(&machine.ground);
    let walker = Walker::new(&machine.ground, &own).unwrap();
    let path = tenure_protocol::path::DeclaredPath::new("/srv/a").unwrap();
    let (dir, _) = walker.parent(&path).unwrap();
    let failed = Fresh::file(&dir, &temporary().unwrap(), 0o600, None, &Attributes::default(), &mut |file| {
        std::io::Write::write_all(file, b"ne")?;
        Err(nix::errno::Errno::EIO.into())
    });
    assert!(matches!(failed, Err(ChangeError::Io { act: "written", .. })));
    assert!(machine.is_clean());
    assert_eq!(machine.read("/srv/a"), "old");
}

// rule: H-10
#[test]
fn since_when_and_how_often_it_failed_survive_a_restart_and_every_pass_tells_it() {
    let mut machine = Machine::new();
    machine.file_with("/srv/none/a", "a", serde_json::json!({}));
    let first = machine.pass();
    let since = line(&first, "file:/srv/none/a").since;
    assert_eq!(kinds(&first), [event::FAILURE_BEGAN]);
    machine.pass();
    machine.store.clone().close();
    machine.store = Store::open(&machine.ground, true, Moment::from_millis(9)).unwrap().store;
    let third = machine.pass();
    let failed = line(&third, "file:/srv/none/a");
    assert_eq!((failed.outcome, failed.since, failed.count), (Failed, since, 3));
    assert!(third.changed.iter().any(|line| line.key == "file:/srv/none/a"), "told in every pass");
    assert_eq!(kinds(&third), Vec::<&str>::new(), "and no event again");
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
    let fresh = Fresh::file(&dir, &name, 0o640, None, &Attributes::default(), &mut |file| {
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
    assert!(Fresh::file(&dir, &name, 0o600, None, &Attributes::default(), &mut |_| Ok(())).is_err());
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
    assert_eq!(done.store_trouble.unwrap().refusal.code, "store_closed");
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
