//! What the comparison says, without a machine.

use super::system::without_counters;
use super::{Facts, Snapshot};

fn snapshot(things: &[(&str, &'static str, &str)]) -> Snapshot {
    let mut facts = Facts::new();
    for (name, field, value) in things {
        facts.entry((*name).to_owned()).or_default().insert(field, (*value).to_owned());
    }
    Snapshot { facts }
}

#[test]
fn a_machine_that_did_not_change_has_no_difference() {
    let one = snapshot(&[("file /a", "mode", "0644")]);
    one.assert_unchanged_since(&one.clone());
}

#[test]
fn what_is_gone_new_and_changed_is_named() {
    let before = snapshot(&[("file /a", "mode", "0644"), ("unit b", "state", "active")]);
    let after = snapshot(&[("file /a", "mode", "0600"), ("package c", "version", "1")]);
    let difference = after.since(&before);
    assert_eq!(difference.lines(), ["changed: file /a: mode 0644 → 0600", "gone: unit b", "new: package c"]);
}

#[test]
fn rules_are_compared_line_by_line() {
    let before = snapshot(&[("rules nft", "rules", "one\ntwo\n")]);
    let after = snapshot(&[("rules nft", "rules", "one\nthree\n")]);
    let text = after.since(&before).to_string();
    assert!(text.contains("-two\n") && text.contains("+three\n"), "{text}");
}

#[test]
fn things_left_out_by_the_beginning_of_their_name_do_not_differ() {
    let before = snapshot(&[("file /a", "mode", "0644")]);
    let after = snapshot(&[("file /a", "mode", "0644"), ("file /var/lib/tenure-host/store", "mode", "0600")]);
    after.without(&["file /var/lib/tenure-host"]).assert_unchanged_since(&before);
}

#[test]
fn what_comes_and_goes_beside_what_stays_is_seen_by_the_folders_time_unless_it_is_left_out() {
    let [before, after] =
        ["1.0", "2.0"].map(|time| snapshot(&[("file /a", "time", time), ("file /a/b", "time", "1.0")]));
    assert_eq!(after.since(&before).lines(), ["changed: file /a: time 1.0 → 2.0"]);
    let left_out = after.clone().without(&["file /a/new"]);
    left_out.assert_unchanged_since(&before.without(&["file /a/new"]));
    // Left out of one of them it is left out of both.
    let folder = |time| match time {
        Some(time) => snapshot(&[("file /a", "kind", "directory"), ("file /a", "time", time)]),
        None => snapshot(&[("file /a", "kind", "directory")]),
    };
    let with_new =
        snapshot(&[("file /a", "kind", "directory"), ("file /a", "time", "2.0"), ("file /a/b", "mode", "1")]);
    assert_eq!(with_new.since(&folder(Some("1.0"))).lines(), ["new: file /a/b"]);
    folder(None).assert_unchanged_since(&folder(Some("1.0")));
    assert!(!folder(Some("1.0")).since(&snapshot(&[("file /a", "kind", "file")])).is_empty());
}

// rule: A-18
#[test]
fn of_a_file_its_attributes_its_access_list_and_that_it_was_touched_and_put_back_are_known() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    symlink("file", folder.path().join("link")).unwrap();
    let look = || {
        let mut facts = Facts::new();
        super::tree::read(folder.path(), &mut facts);
        Snapshot { facts }
    };
    let differs = |change: &dyn Fn()| {
        let (before, was) = (look(), file.metadata().unwrap().ctime_nsec());
        // The clock of files goes on in steps.
        crate::wait::until_true("the time is another", std::time::Duration::from_secs(5), || {
            change();
            file.metadata().unwrap().ctime_nsec() != was
        });
        look().since(&before).to_string()
    };
    let set = |name: &str, value: &[u8]| {
        rustix::fs::setxattr(&file, name, value, rustix::fs::XattrFlags::empty()).unwrap();
    };
    assert!(differs(&|| set("user.note", b"mine")).contains("attributes none → user.note=mine"));
    let list = [
        &[2, 0, 0, 0][..],
        &[1, 0, 6, 0],
        &[255; 4],
        &[2, 0, 4, 0],
        &[210, 4, 0, 0],
        &[4, 0, 4, 0],
        &[255; 4],
        &[16, 0, 4, 0],
        &[255; 4],
        &[32, 0, 4, 0],
        &[255; 4],
    ];
    let said = differs(&|| set("system.posix_acl_access", &list.concat()));
    assert!(said.contains("system.posix_acl_access="), "{said}");
    let mode = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    let said = differs(&|| {
        mode(0o600);
        mode(0o644);
    });
    assert!(said.contains("touched ") && !said.contains("mode "), "{said}");
    let before = look();
    std::fs::remove_file(folder.path().join("link")).unwrap();
    symlink("elsewhere", folder.path().join("link")).unwrap();
    assert!(look().since(&before).to_string().contains("target file → elsewhere"));
}

#[test]
fn packets_that_pass_are_no_change_of_rules() {
    let one = "table ip t {\n\tcounter packets 1 bytes 60 drop\n}\n:INPUT ACCEPT [1:60]\n# Generated at noon";
    let two =
        "table ip t {\n\tcounter packets 9 bytes 540 drop\n}\n:INPUT ACCEPT [9:540]\n# Generated at one";
    assert_eq!(without_counters(one), without_counters(two));
    assert_ne!(
        without_counters(one),
        without_counters("table ip t {\n\tcounter packets 1 bytes 60 accept\n}")
    );
}
