//! Files and directories on a real machine, under the daemon as it is installed: what stands in the way of each is said
//! by its name, what nobody declared of a file stays, and a machine that is as declared is left in peace.

use tenure_tests::lab::{AptRepository, Base, Deb, Pair, Trust};

const ACCESS: &str = "system.posix_acl_access";
const CAPABILITY: &str = "security.capability";
/// `cap_net_bind_service=ep`.
const MAY_BIND: [u8; 20] = [1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// An access list by which the user 1234 may read what the mode 0640 closes to him.
fn readable_by_one_more() -> Vec<u8> {
    let nobody = u32::MAX.to_le_bytes();
    let entries: [(u8, u8, [u8; 4]); 5] = [
        (0x01, 6, nobody),
        (0x02, 4, 1234_u32.to_le_bytes()),
        (0x04, 4, nobody),
        (0x10, 4, nobody),
        (0x20, 0, nobody),
    ];
    let entry = |(tag, gives, who): (u8, u8, [u8; 4])| [&[tag, 0, gives, 0][..], &who].concat();
    [vec![2, 0, 0, 0], entries.into_iter().flat_map(entry).collect()].concat()
}

fn file(path: &str, content: &str, more: &str) -> String {
    format!("[[file]]\npath = \"{path}\"\ncontent = \"{content}\"\n{more}\n")
}

/// What an operator of such a machine could have left there.
const LEFT_THERE: &str = "set -e
mkdir -p /etc/app/stiff /srv/full /srv/fixed /srv/user
cd /etc/app
for name in listed same frozen grown target mounted twin stiff/a; do echo old >$name; done
chmod 0640 listed
cp /bin/true /usr/local/bin/tool
ln -s target link
ln -s target replaced
ln twin /srv/twin
echo other >/srv/other
mount --bind /srv/other mounted
mount -t tmpfs -o size=64k,mode=0755 tmpfs /srv/full
echo old >/srv/full/a
head -c 1000000 /dev/zero >/srv/full/fill 2>/dev/null || :
mount -t tmpfs -o mode=0755 tmpfs /srv/fixed
echo old >/srv/fixed/a
mount -o remount,ro /srv/fixed
chown 1234 /srv/user
ln -s /etc /srv/user/way
chattr +i same frozen stiff
chattr +a grown";

const MENDED: &str = "set -e
cd /etc/app
chattr -i same frozen stiff
chattr -a grown
rm link /srv/full/fill
umount --lazy mounted
mount -o remount,rw /srv/fixed
mkdir /srv/nowhere
rm /srv/user/way
mkdir /srv/user/way";

/// Each with what it is while something stands in its way.
const IN_THE_WAY: [(&str, &str, &str); 9] = [
    ("file:/etc/app/frozen", "failed", "immutable_flag"),
    ("file:/etc/app/grown", "failed", "append_only_flag"),
    ("file:/etc/app/stiff/a", "failed", "immutable_flag"),
    ("file:/etc/app/link", "refused", "path_is_link"),
    ("file:/etc/app/mounted", "refused", "mount_point"),
    ("file:/srv/full/a", "failed", "no_space"),
    ("file:/srv/fixed/a", "failed", "read_only"),
    ("file:/srv/nowhere/a", "failed", "parent_missing"),
    ("file:/srv/user/way/a", "refused", "link_not_followed"),
];

fn lay(pair: &Pair) {
    let _ = pair.b.sh(LEFT_THERE).must();
    pair.b.give_attribute("/etc/app/listed", ACCESS, &readable_by_one_more());
    pair.b.give_attribute("/etc/app/listed", "user.note", b"mine");
    pair.b.give_attribute("/usr/local/bin/tool", CAPABILITY, &MAY_BIND);
    let repository = AptRepository::new(&pair.lab, Trust::Signed);
    repository.add(&Deb::new("brought", "1.0").file("/usr/share/brought/it", "it\n", 0o644));
    pair.b.use_apt(&repository);
    let unit = "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n";
    pair.b.write("/etc/systemd/system/stays-up.service", unit);
}

/// One of every kind that is performed, and every file above.
fn declared() -> String {
    let mut module = [
        "[[package]]\nname = \"brought\"\nversion = \"present\"\n",
        "[[unit]]\nname = \"stays-up.service\"\nenabled = true\nrunning = true\n",
        "[[directory]]\npath = \"/srv/made\"\nmode = \"2750\"\ngroup = \"1234\"\n",
        "[[file]]\npath = \"/srv/never\"\nabsent = true\n",
    ]
    .concat();
    module += &file("/etc/app/listed", "new\\n", "mode = \"0640\"");
    module += &file("/usr/local/bin/tool", "#!/bin/true\\n", "mode = \"0755\"");
    module += &file("/etc/app/same", "old\\n", "");
    module += &file("/etc/app/replaced", "new\\n", "replace_link = true");
    module += &file("/etc/app/twin", "new\\n", "");
    module += &file("/srv/made/once", "first\\n", "create_once = true");
    for (key, _, _) in IN_THE_WAY {
        module += &file(key.trim_start_matches("file:"), "new\\n", "");
    }
    module
}

fn mode(pair: &Pair, path: &str) -> String {
    pair.b.must(&["stat", "-c", "%04a %u:%g", path])
}

fn assert_nothing_was_touched_that_is_in_the_way(pair: &Pair) {
    for path in ["/etc/app/frozen", "/etc/app/grown", "/etc/app/stiff/a", "/srv/full/a", "/srv/fixed/a"] {
        assert_eq!(pair.b.read(path), b"old\n", "{path}");
    }
    assert_eq!(pair.b.read("/srv/other"), b"other\n");
    assert_eq!(pair.b.must(&["readlink", "/etc/app/link"]), "target");
    assert!(!pair.b.has("/etc/a"), "the user's link led nowhere");
    assert_eq!(pair.b.must(&["find", "/etc/app", "/srv", "-name", ".tenure-*"]), "");
    assert!(pair.b.must(&["lsattr", "-d", "/etc/app/frozen"]).contains('i'));
}

// case: O-01
// case: O-02
// case: O-03
// case: O-04
// case: O-05
// case: O-07
// rule: H-10
// rule: S-12
#[test]
fn resources_say_what_is_in_their_way_keep_what_nobody_declared_and_are_quiet_when_nothing_is() {
    let pair = Pair::raised_on("resources", Base::Bookworm);
    lay(&pair);
    pair.module(&declared());
    let _ = pair.declare(&[]).must();
    for (key, outcome, code) in IN_THE_WAY {
        let why = pair.wait_for_code(key, outcome, code);
        assert!(!why.is_empty(), "{key}");
    }
    let rest =
        ["/etc/app/listed", "/usr/local/bin/tool", "/etc/app/same", "/etc/app/replaced", "/etc/app/twin"];
    for path in rest {
        pair.wait_for_resource(&format!("file:{path}"));
    }
    for key in ["package:brought", "unit:stays-up.service", "directory:/srv/made", "file:/srv/made/once"] {
        pair.wait_for_resource(key);
    }
    assert_nothing_was_touched_that_is_in_the_way(&pair);

    assert_eq!(
        (pair.b.read("/etc/app/listed"), mode(&pair, "/etc/app/listed")),
        (b"new\n".to_vec(), "0640 0:0".to_owned())
    );
    assert_eq!(pair.b.attribute("/etc/app/listed", ACCESS), Some(readable_by_one_more()));
    assert_eq!(pair.b.attribute("/etc/app/listed", "user.note"), Some(b"mine".to_vec()));
    assert_eq!(pair.b.attribute("/usr/local/bin/tool", CAPABILITY), Some(MAY_BIND.to_vec()));
    assert_eq!(pair.b.read("/srv/twin"), b"old\n", "the other name keeps what it had");
    assert_eq!(pair.b.must(&["readlink", "-e", "/etc/app/replaced"]), "/etc/app/replaced");
    assert_eq!(pair.b.read("/etc/app/target"), b"old\n");
    assert_eq!(mode(&pair, "/srv/made"), "2750 0:1234");

    let _ = pair.b.sh(MENDED).must();
    for (key, _, _) in IN_THE_WAY {
        pair.wait_for_resource(key);
    }
    two_passes_in_a_row_have_nothing_to_do(&pair);
}

/// The machine is the same afterwards, to the time of each file.
fn two_passes_in_a_row_have_nothing_to_do(pair: &Pair) {
    let look = || pair.b.snapshot().without(&["file /var/lib/tenure-host", "file /var/log/journal"]);
    let before = look();
    for _ in 0..2 {
        let summary = pair.b.run(&["tenure-host", "apply", "--json"]).expect(0).json();
        let counts = summary["summary"]["counts"].as_object().cloned().unwrap_or_default();
        let others: Vec<_> =
            counts.iter().filter(|(name, count)| *name != "unchanged" && **count != 0).collect();
        assert!(others.is_empty() && counts["unchanged"] == 19, "{summary}");
    }
    look().assert_unchanged_since(&before);
}

// case: O-08
#[test]
fn resources_that_leave_go_by_record_and_what_somebody_put_beside_them_stays() {
    let pair = Pair::raised_on("resources-leave", Base::Bookworm);
    let [one, two] = ["one", "two"].map(|name| file(&format!("/etc/app.d/{name}"), "ours\\n", ""));
    let directory = "[[directory]]\npath = \"/etc/app.d\"\nmode = \"0755\"\n";
    let rest = file("/srv/rest", "rest\\n", "");
    pair.module(&[directory, &one, &two, &rest].concat());
    let _ = pair.declare(&["--wait=50s"]).expect(0);
    pair.b.write("/etc/app.d/theirs", "by hand\n");

    pair.module(&[directory, &one, &rest].concat());
    let _ = pair.declare(&["--wait=50s", "--allow-removals", "20"]).expect(0);
    pair.wait("the file that left is gone", |pair| !pair.b.has("/etc/app.d/two"));
    assert!(pair.b.has("/etc/app.d/one") && pair.b.has("/etc/app.d/theirs"));

    pair.module(&rest);
    let _ = pair.declare(&["--wait=50s", "--allow-removals", "20"]).expect(0);
    pair.wait("the other is gone too", |pair| !pair.b.has("/etc/app.d/one"));
    pair.wait("the directory is told as released", |pair| {
        pair.told("released", Some("directory:/etc/app.d")) == 1
    });
    assert_eq!(pair.b.read("/etc/app.d/theirs"), b"by hand\n");
    let events = pair.tenure(&["events", "--json"]).expect(0).json();
    let released =
        events.as_array().into_iter().flatten().find(|event| event["key"] == "directory:/etc/app.d");
    let said = released.and_then(|event| event["text"].as_str()).unwrap_or_default();
    assert_eq!(said, "left: holds 1 entries not ours", "{events}");
    assert!(!pair.owned().contains_key("directory:/etc/app.d"));
}
