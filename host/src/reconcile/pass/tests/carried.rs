//! What no declaration names and a file has: access list, capability, attributes (O-03); and flags that forbid changes
//! (O-02).

use std::ffi::CStr;
use std::fs::File;
use std::os::unix::fs::chown;

use rustix::fs::{IFlags, XattrFlags, ioctl_getflags, ioctl_setflags, lgetxattr, lsetxattr};

use super::*;

const ACCESS: &CStr = c"system.posix_acl_access";
const HANDED_DOWN: &CStr = c"system.posix_acl_default";
const CAPABILITY: &CStr = c"security.capability";

/// `cap_net_bind_service=ep`.
const MAY_BIND: [u8; 20] = [1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// An access list: root, the user 1234, the group, the bound of both, all others.
fn list(owner: u8, user: u8, group: u8, mask: u8, other: u8) -> Vec<u8> {
    let nobody = u32::MAX.to_le_bytes();
    let entry = |tag: u8, gives: u8, who: [u8; 4]| [&[tag, 0, gives, 0][..], &who].concat();
    [
        vec![2, 0, 0, 0],
        entry(0x01, owner, nobody),
        entry(0x02, user, 1234_u32.to_le_bytes()),
        entry(0x04, group, nobody),
        entry(0x10, mask, nobody),
        entry(0x20, other, nobody),
    ]
    .concat()
}

impl Machine {
    fn give(&self, path: &str, name: &CStr, value: &[u8]) {
        lsetxattr(self.at(path), name, value, XattrFlags::empty()).unwrap();
    }

    fn has(&self, path: &str, name: &CStr) -> Option<Vec<u8>> {
        let mut value = vec![0; 4096];
        let length = lgetxattr(self.at(path), name, value.as_mut_slice()).ok()?;
        Some(value[..length].to_vec())
    }
}

/// A machine whose files can have all of it. None: the test says why and ends.
fn machine() -> Option<Machine> {
    if !is_root() {
        eprintln!("skipped: capabilities and other people's files need root");
        return None;
    }
    let machine = Machine::new();
    machine.write("/srv/.probe", "");
    let probe = lsetxattr(machine.at("/srv/.probe"), c"user.probe", b"x", XattrFlags::empty());
    if let Err(errno) = probe {
        eprintln!("skipped: the file system of the temporary folder has no attributes ({errno})");
        return None;
    }
    Some(machine)
}

// case: O-03
#[test]
fn what_nobody_declares_of_a_file_goes_over_to_the_one_that_takes_its_place_and_is_said() {
    let Some(mut machine) = machine() else { return };
    machine.write("/srv/tool", "old");
    machine.write("/srv/plain", "old");
    for (name, value) in [
        (ACCESS, list(6, 4, 4, 4, 4).as_slice()),
        (CAPABILITY, &MAY_BIND),
        (c"user.note", b"mine"),
        (c"user.empty", b""),
        (c"trusted.note", b"root's"),
        (c"security.label_of_some_kind", b"system_u"),
    ] {
        machine.give("/srv/tool", name, value);
    }
    machine.file("/srv/tool", "new");
    machine.file("/srv/plain", "new");
    let done = machine.pass();
    assert_eq!(outcome(&done, "file:/srv/tool"), (Applied, Some("carried_over".to_owned())));
    assert_eq!(
        reason(&done, "file:/srv/tool"),
        "kept of the file that was there: security.capability, security.label_of_some_kind, \
         system.posix_acl_access, trusted.note, user.empty, user.note"
    );
    assert_eq!(line(&done, "file:/srv/plain").reason, None, "of nothing nothing is said");
    assert_eq!((machine.read("/srv/tool").as_str(), machine.mode("/srv/tool")), ("new", 0o644));
    assert_eq!(machine.has("/srv/tool", ACCESS), Some(list(6, 4, 4, 4, 4)));
    assert_eq!(machine.has("/srv/tool", CAPABILITY), Some(MAY_BIND.to_vec()));
    assert_eq!(machine.has("/srv/tool", c"user.note"), Some(b"mine".to_vec()));
    assert_eq!(machine.has("/srv/tool", c"user.empty"), Some(Vec::new()));
    assert_eq!(machine.has("/srv/tool", c"trusted.note"), Some(b"root's".to_vec()));
    assert_eq!(machine.has("/srv/tool", c"security.label_of_some_kind"), Some(b"system_u".to_vec()));
    assert_eq!(machine.pass().summary.counts.in_words(), "2 unchanged");
    assert!(machine.is_clean());
}

// case: O-03
#[test]
fn an_access_list_is_kept_and_gives_nobody_more_than_the_declared_mode() {
    let Some(mut machine) = machine() else { return };
    machine.write("/srv/a", "old");
    machine.give("/srv/a", ACCESS, &list(7, 7, 7, 7, 7));
    machine.file_with("/srv/a", "new", serde_json::json!({ "mode": "0640" }));
    machine.pass();
    assert_eq!(machine.mode("/srv/a"), 0o640);
    assert_eq!(machine.has("/srv/a", ACCESS), Some(list(6, 7, 4, 4, 0)));
    // Also where only the mode is put right, in place.
    machine.file_with("/srv/a", "new", serde_json::json!({ "mode": "0600" }));
    machine.pass();
    assert_eq!(machine.has("/srv/a", ACCESS), Some(list(6, 7, 0, 0, 0)));
    // Whoever widens it in the list has widened the mode: drift.
    machine.give("/srv/a", ACCESS, &list(6, 6, 6, 6, 0));
    let done = machine.pass();
    assert_eq!(outcome(&done, "file:/srv/a"), (Applied, Some("drift".to_owned())));
    assert_eq!(machine.has("/srv/a", ACCESS), Some(list(6, 6, 0, 0, 0)));
}

// rule: S-12
// case: O-03
#[test]
fn a_wider_mode_wakes_nothing_that_an_access_list_gave_nobody_and_gives_the_declared_group_what_it_says() {
    let Some(mut machine) = machine() else { return };
    for (path, there) in [("/srv/in_place", "it"), ("/srv/replaced", "old")] {
        machine.write(path, there);
        machine.give(path, ACCESS, &list(6, 4, 0, 0, 0));
        assert_eq!(machine.mode(path), 0o600);
        machine.file_with(path, "it", serde_json::json!({ "mode": "0640" }));
    }
    std::fs::create_dir(machine.at("/srv/folder")).unwrap();
    machine.give("/srv/folder", ACCESS, &list(7, 5, 0, 0, 0));
    machine.directory("/srv/folder", "0750");
    assert_eq!(machine.pass().summary.counts.in_words(), "3 applied");
    for path in ["/srv/in_place", "/srv/replaced"] {
        assert_eq!(machine.has(path, ACCESS), Some(list(6, 0, 4, 4, 0)), "{path}");
        assert_eq!(machine.mode(path), 0o640, "{path}");
    }
    assert_eq!(machine.has("/srv/folder", ACCESS), Some(list(7, 0, 5, 5, 0)));
    assert_eq!(machine.pass().summary.counts.in_words(), "3 unchanged");
}

// rule: S-12
// case: O-03
#[test]
fn a_mode_is_not_set_on_a_file_with_an_access_list_where_anybody_could_have_put_it() {
    let Some(mut machine) = machine() else { return };
    std::fs::create_dir(machine.at("/srv/user")).unwrap();
    chown(machine.at("/srv/user"), Some(1234), Some(1234)).unwrap();
    for path in ["/srv/user/listed", "/srv/user/plain"] {
        machine.write(path, "it");
        machine.file_with(path, "it", serde_json::json!({ "mode": "0640" }));
    }
    machine.give("/srv/user/listed", ACCESS, &list(6, 4, 0, 0, 0));
    let done = machine.pass();
    assert_eq!(outcome(&done, "file:/srv/user/listed"), (Refused, Some("cannot_carry".to_owned())));
    assert_eq!(machine.has("/srv/user/listed", ACCESS), Some(list(6, 4, 0, 0, 0)));
    assert_eq!(
        (line(&done, "file:/srv/user/plain").outcome, machine.mode("/srv/user/plain")),
        (Applied, 0o640)
    );
}

// case: O-03
#[test]
fn a_capability_outlives_a_mode_and_an_owner_that_are_put_right() {
    let Some(mut machine) = machine() else { return };
    machine.file_with("/srv/tool", "it", serde_json::json!({ "mode": "0755" }));
    machine.pass();
    machine.give("/srv/tool", CAPABILITY, &MAY_BIND);
    std::fs::set_permissions(machine.at("/srv/tool"), std::fs::Permissions::from_mode(0o700)).unwrap();
    machine.pass();
    assert_eq!(machine.mode("/srv/tool"), 0o755);
    assert_eq!(machine.has("/srv/tool", CAPABILITY), Some(MAY_BIND.to_vec()));
    machine.file_with("/srv/tool", "it", serde_json::json!({ "mode": "4755", "group": "1234" }));
    let done = machine.pass();
    assert_eq!(outcome(&done, "file:/srv/tool"), (Applied, Some("carried_over".to_owned())));
    let stat = machine.at("/srv/tool").metadata().unwrap();
    assert_eq!((stat.mode() & 0o7777, stat.uid(), stat.gid()), (0o4755, 0, 1234));
    assert_eq!(machine.has("/srv/tool", CAPABILITY), Some(MAY_BIND.to_vec()));
    assert_eq!(machine.pass().summary.counts.in_words(), "1 unchanged");
}

// case: O-03
#[test]
fn a_file_written_once_that_is_copied_keeps_what_it_had() {
    let Some(mut machine) = machine() else { return };
    machine.write("/srv/once", "the machine's own");
    machine.give("/srv/once", c"user.note", b"mine");
    std::fs::hard_link(machine.at("/srv/once"), machine.at("/srv/other")).unwrap();
    let once = serde_json::json!({ "create_once": true, "mode": "0600" });
    machine.file_with("/srv/once", "ours", once);
    let done = machine.pass();
    assert_eq!(outcome(&done, "file:/srv/once"), (Applied, Some("other_names".to_owned())));
    let said = reason(&done, "file:/srv/once");
    assert!(
        said.contains("one of 2 names") && said.ends_with("kept of the file that was there: user.note"),
        "{said}"
    );
    assert_eq!(machine.read("/srv/once"), "the machine's own");
    assert_eq!(machine.has("/srv/once", c"user.note"), Some(b"mine".to_vec()));
}

// case: O-03
// case: O-22
#[test]
fn what_a_directory_hands_down_makes_nothing_new_in_it_wider_than_declared() {
    let Some(mut machine) = machine() else { return };
    machine.give("/srv", HANDED_DOWN, &list(7, 7, 7, 7, 7));
    machine.file_with("/srv/secret", "s", serde_json::json!({ "mode": "0640" }));
    machine.directory("/srv/closed", "0750");
    machine.write("/srv/had_none", "old");
    rustix::fs::lremovexattr(machine.at("/srv/had_none"), ACCESS).unwrap();
    std::fs::set_permissions(machine.at("/srv/had_none"), std::fs::Permissions::from_mode(0o640)).unwrap();
    machine.file_with("/srv/had_none", "new", serde_json::json!({ "mode": "0640" }));
    assert_eq!(machine.pass().summary.counts.in_words(), "3 applied");
    for path in ["/srv/secret", "/srv/closed", "/srv/had_none"] {
        assert_eq!((machine.has(path, ACCESS), machine.has(path, HANDED_DOWN)), (None, None), "{path}");
    }
    assert_eq!((machine.mode("/srv/secret"), machine.mode("/srv/closed")), (0o640, 0o750));
    assert_eq!(machine.pass().summary.counts.in_words(), "3 unchanged");
}

// case: O-03
#[test]
fn what_belongs_to_the_content_alone_is_not_carried_and_the_change_is_refused_by_its_name() {
    let Some(mut machine) = machine() else { return };
    machine.write("/srv/signed", "old");
    machine.give("/srv/signed", c"security.ima", &[1; 21]);
    machine.file("/srv/signed", "new");
    machine.file("/srv/other", "fine");
    let done = machine.pass();
    assert_eq!(outcome(&done, "file:/srv/signed"), (Refused, Some("cannot_carry".to_owned())));
    let said = reason(&done, "file:/srv/signed");
    assert!(
        said.contains("has security.ima") && said.contains("setfattr -x security.ima /srv/signed"),
        "{said}"
    );
    assert_eq!(machine.read("/srv/signed"), "old");
    assert!(machine.is_clean());
    assert_eq!(line(&done, "file:/srv/other").outcome, Applied);
}

// rule: S-12
// case: O-03
#[test]
fn an_access_list_that_somebody_could_have_given_himself_is_not_carried_onto_what_is_written() {
    let Some(mut machine) = machine() else { return };
    std::fs::create_dir(machine.at("/srv/user")).unwrap();
    chown(machine.at("/srv/user"), Some(1234), Some(1234)).unwrap();
    machine.write("/srv/user/a", "bait");
    machine.give("/srv/user/a", ACCESS, &list(6, 4, 4, 4, 0));
    machine.write("/srv/theirs", "bait");
    chown(machine.at("/srv/theirs"), Some(1234), None).unwrap();
    machine.give("/srv/theirs", ACCESS, &list(6, 4, 4, 4, 0));
    // What gives nobody anything goes over wherever it lies.
    machine.write("/srv/user/b", "old");
    machine.give("/srv/user/b", c"user.note", b"his");
    // And the owner it is declared to have may have given what he likes.
    machine.write("/srv/his", "old");
    chown(machine.at("/srv/his"), Some(1234), None).unwrap();
    machine.give("/srv/his", ACCESS, &list(6, 4, 4, 4, 0));
    for path in ["/srv/user/a", "/srv/theirs", "/srv/user/b"] {
        machine.file_with(path, "secret", serde_json::json!({ "mode": "0640" }));
    }
    machine.file_with("/srv/his", "secret", serde_json::json!({ "mode": "0640", "owner": "1234" }));
    let done = machine.pass();
    for (path, bait) in [("/srv/user/a", "bait"), ("/srv/theirs", "bait")] {
        let key = format!("file:{path}");
        assert_eq!(outcome(&done, &key), (Refused, Some("cannot_carry".to_owned())), "{path}");
        assert!(reason(&done, &key).contains("setfattr -x system.posix_acl_access"), "{done:?}");
        assert_eq!(machine.read(path), bait);
    }
    assert_eq!(line(&done, "file:/srv/user/b").outcome, Applied);
    assert_eq!(machine.has("/srv/user/b", c"user.note"), Some(b"his".to_vec()));
    assert_eq!(line(&done, "file:/srv/his").outcome, Applied);
    assert_eq!(machine.has("/srv/his", ACCESS), Some(list(6, 4, 4, 4, 0)));
}

/// A flag on a file or directory, cleared at the end: nothing with one can be removed.
struct Flagged(File, IFlags);

impl Flagged {
    fn set(machine: &Machine, path: &str, flag: IFlags) -> Self {
        let file = File::open(machine.at(path)).unwrap();
        let before = ioctl_getflags(&file).unwrap();
        ioctl_setflags(&file, before | flag).unwrap();
        Self(file, before)
    }
}

impl Drop for Flagged {
    fn drop(&mut self) {
        ioctl_setflags(&self.0, self.1).unwrap();
    }
}

// case: O-02
// rule: H-10
#[test]
fn a_flag_on_the_file_fails_it_by_the_flags_name_and_nothing_is_tried_or_cleared() {
    let Some(mut machine) = machine() else { return };
    for path in ["/srv/same", "/srv/other", "/srv/mode", "/srv/gone", "/srv/log"] {
        machine.write(path, "old");
    }
    std::fs::create_dir(machine.at("/srv/dir")).unwrap();
    machine.file("/srv/same", "old");
    machine.file("/srv/other", "new");
    machine.file_with("/srv/mode", "old", serde_json::json!({ "mode": "0600" }));
    machine.absent("file", "/srv/gone");
    machine.directory("/srv/dir", "0700");
    machine.file("/srv/log", "new");
    machine.file("/srv/free", "fine");
    let frozen = ["/srv/same", "/srv/other", "/srv/mode", "/srv/gone", "/srv/dir"];
    let flags = [
        frozen.map(|path| Flagged::set(&machine, path, IFlags::IMMUTABLE)).into_iter().collect::<Vec<_>>(),
        vec![Flagged::set(&machine, "/srv/log", IFlags::APPEND)],
    ];
    let done = machine.pass();
    assert_eq!(line(&done, "file:/srv/same").outcome, Unchanged);
    for key in ["file:/srv/other", "file:/srv/mode", "file:/srv/gone", "directory:/srv/dir"] {
        assert_eq!(outcome(&done, key), (Failed, Some("immutable_flag".to_owned())), "{key}");
        let path = key.split_once(':').unwrap().1;
        assert!(reason(&done, key).starts_with(&format!("the immutable flag is set on {path};")), "{done:?}");
    }
    assert_eq!(outcome(&done, "file:/srv/log"), (Failed, Some("append_only_flag".to_owned())));
    assert_eq!(line(&done, "file:/srv/free").outcome, Applied);
    assert_eq!((machine.read("/srv/other").as_str(), machine.mode("/srv/mode")), ("old", 0o644));
    assert!(machine.is_clean());
    assert!(ioctl_getflags(&flags[0][0].0).unwrap().contains(IFlags::IMMUTABLE));
    drop(flags);
    let mended = machine.pass();
    assert_eq!(mended.summary.counts.in_words(), "2 unchanged, 4 applied, 1 removed");
}

// case: O-02
#[test]
fn a_flag_on_the_directory_is_named_with_it_and_no_file_is_written_where_it_lies_instead() {
    let Some(mut machine) = machine() else { return };
    for (flag, code) in [(IFlags::IMMUTABLE, "immutable_flag"), (IFlags::APPEND, "append_only_flag")] {
        let dir = format!("/srv/{code}");
        std::fs::create_dir(machine.at(&dir)).unwrap();
        let [there, new, made] = ["there", "new", "made"].map(|name| format!("{dir}/{name}"));
        machine.write(&there, "old");
        machine.file(&there, "longer than it was");
        machine.file(&new, "new");
        machine.directory(&made, "0755");
        let flagged = Flagged::set(&machine, &dir, flag);
        let done = machine.pass();
        for key in [format!("file:{there}"), format!("file:{new}"), format!("directory:{made}")] {
            assert_eq!(outcome(&done, &key), (Failed, Some(code.to_owned())), "{key}");
            assert!(reason(&done, &key).contains(&format!("is set on its directory {dir};")), "{done:?}");
        }
        assert_eq!(machine.read(&there), "old");
        assert_eq!(
            std::fs::read_dir(machine.at(&dir)).unwrap().count(),
            1,
            "nothing beside it, also no temporary"
        );
        drop(flagged);
        assert!(machine.pass().summary.counts.in_words().contains("3 applied"));
    }
}

// case: O-02
#[test]
fn a_mode_is_put_right_in_an_immutable_directory_since_that_forbids_it_not() {
    let Some(mut machine) = machine() else { return };
    std::fs::create_dir(machine.at("/srv/dir")).unwrap();
    machine.write("/srv/dir/a", "a");
    machine.file_with("/srv/dir/a", "a", serde_json::json!({ "mode": "0600" }));
    let _flagged = Flagged::set(&machine, "/srv/dir", IFlags::IMMUTABLE);
    assert_eq!(line(&machine.pass(), "file:/srv/dir/a").outcome, Applied);
    assert_eq!(machine.mode("/srv/dir/a"), 0o600);
}
