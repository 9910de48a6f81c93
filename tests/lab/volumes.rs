//! Real file systems under a real machine: those that know no owners (the FAT of a boot partition, exFAT, NTFS) and those
//! of Linux (ext4, XFS, Btrfs) with their flags, access lists and quotas, full and read-only. What one cannot keep fails by
//! name before anything is replaced; what it can is as declared, and the next pass is quiet.

use tenure_tests::lab::{Base, Pair, Volume};

const ACCESS: &str = "system.posix_acl_access";

/// Nothing is executable there and everything of root's, whatever is set.
const WITHOUT_OWNERS: [(Volume, &str, &str); 3] = [
    (Volume::Fat, "/boot/fat", "0700"),
    (Volume::Exfat, "/boot/exfat", "0777"),
    (Volume::Ntfs, "/boot/ntfs", "0777"),
];

const OF_LINUX: [(Volume, &str); 3] =
    [(Volume::Ext4, "/srv/ext4"), (Volume::Xfs, "/srv/xfs"), (Volume::Btrfs, "/srv/btrfs")];

fn file(path: &str, content: &str, more: &str) -> String {
    format!("[[file]]\npath = \"{path}\"\ncontent = \"{content}\\n\"\n{more}\n")
}

/// A node with each of these mounted.
fn raised(name: &str, volumes: &[(Volume, &str)]) -> Pair {
    let pair = Pair::raised_on(name, Base::Bookworm);
    pair.b.kill();
    volumes.iter().for_each(|(volume, at)| pair.b.mount_new(*volume, at));
    pair.b.boot();
    pair.wait_for_both_ends();
    pair
}

fn standing(pair: &Pair, path: &str) -> String {
    pair.b.must(&["stat", "-c", "%04a %u:%g", path])
}

/// A pass that tries again may just be at it.
fn nothing_is_left_beside(pair: &Pair, at: &str) {
    pair.wait(&format!("nothing is left beside in {at}"), |pair| {
        pair.b.must(&["find", at, "-name", ".tenure-*"]).is_empty()
    });
}

/// Two passes by hand, of which the second has nothing to do.
fn is_quiet(pair: &Pair, unchanged: u64) {
    let _ = pair.b.run(&["tenure-host", "apply", "--json"]);
    let said = pair.b.run(&["tenure-host", "apply", "--json"]).json();
    let counts = &said["summary"]["counts"];
    assert_eq!((&counts["unchanged"], &counts["applied"]), (&unchanged.into(), &0.into()), "{said}");
}

// case: O-21
// case: O-22
// rule: S-12
#[test]
fn volumes_without_owners_hold_what_they_can_and_the_rest_fails_before_anything_is_replaced() {
    let volumes = WITHOUT_OWNERS.map(|(volume, at, _)| (volume, at));
    let pair = raised("volumes-boot", &volumes);
    let mut module = String::new();
    for (_, at, mode) in WITHOUT_OWNERS {
        pair.b.must(&["sh", "-c", &format!("printf 'old\\n' >{at}/old && printf 'old\\n' >{at}/kept")]);
        assert_eq!(standing(&pair, &format!("{at}/old")), format!("{mode} 0:0"));
        let as_shown = format!("mode = \"{mode}\"");
        module += &file(&format!("{at}/old"), "new", &as_shown);
        module += &file(&format!("{at}/made/new"), "new", &as_shown);
        module += &format!("[[directory]]\npath = \"{at}/made\"\nmode = \"{mode}\"\n");
        module += &file(&format!("{at}/kept"), "secret", "mode = \"0600\"");
        module += &file(&format!("{at}/theirs"), "new", &format!("{as_shown}\nowner = \"1234\""));
        module += &format!("[[directory]]\npath = \"{at}/closed\"\nmode = \"0750\"\n");
    }
    pair.module(&module);
    let _ = pair.declare(&[]).must();
    for (_, at, mode) in WITHOUT_OWNERS {
        for key in [format!("file:{at}/kept"), format!("file:{at}/theirs"), format!("directory:{at}/closed")]
        {
            let why = pair.wait_for_code(&key, "failed", "standing_not_kept");
            assert!(why.contains(&format!("as mode {mode} of 0:0, whatever is set")), "{key}: {why}");
        }
        for key in [format!("file:{at}/old"), format!("file:{at}/made/new"), format!("directory:{at}/made")] {
            pair.wait_for_resource(&key);
        }
        assert_eq!(pair.b.read(&format!("{at}/old")), b"new\n");
        assert_eq!(pair.b.read(&format!("{at}/kept")), b"old\n", "nothing was replaced");
        assert!(!pair.b.has(&format!("{at}/theirs")) && !pair.b.has(&format!("{at}/closed")));
        nothing_is_left_beside(&pair, at);
    }
    is_quiet(&pair, 9);
    // What we made there goes with the declaration.
    pair.module(&file("/srv/rest", "rest", ""));
    let _ = pair.declare(&["--wait=50s", "--allow-removals", "20"]).expect(0);
    for (_, at, _) in WITHOUT_OWNERS {
        pair.wait("what was made is gone", |pair| !pair.b.has(&format!("{at}/made")));
        assert_eq!(pair.b.read(&format!("{at}/old")), b"new\n", "it existed before us");
    }
}

// case: O-03
// case: O-21
#[test]
fn volumes_with_access_lists_of_their_own_kind_keep_each_file_that_has_one_until_it_is_removed() {
    let pair = raised("volumes-listed", &[(Volume::Listed, "/srv/served")]);
    let _ = pair.b.sh("cd /srv/served && echo old >other && echo same >same && echo old >gone").must();
    assert!(pair.b.attribute("/srv/served/other", "system.nfs4_acl").is_some());
    let gone = "[[file]]\npath = \"/srv/served/gone\"\nabsent = true\n".to_owned();
    let [other, same, new] = ["other", "same", "new"].map(|name| {
        let content = if name == "same" { "same" } else { "new" };
        file(&format!("/srv/served/{name}"), content, "")
    });
    pair.module(&[gone, other, same, new].concat());
    let planned = pair.declare(&["--plan", "--json"]).expect(0).json();
    let lines = planned["foreseen"][0]["lines"].as_array().cloned().unwrap_or_default();
    let other =
        lines.iter().find(|line| line["key"] == "file:/srv/served/other").cloned().unwrap_or_default();
    assert_eq!((&other["what"], &other["code"]), (&"refuse".into(), &"cannot_carry".into()), "{planned}");
    let _ = pair.declare(&[]).must();
    let why = pair.wait_for_code("file:/srv/served/other", "refused", "cannot_carry");
    assert!(why.contains("system.nfs4_acl") && why.contains("rm /srv/served/other"), "{why}");
    assert_eq!(pair.b.read("/srv/served/other"), b"old\n");
    for name in ["same", "new", "gone"] {
        pair.wait_for_resource(&format!("file:/srv/served/{name}"));
    }
    nothing_is_left_beside(&pair, "/srv/served");
    pair.b.must(&["rm", "/srv/served/other"]);
    pair.wait_for_resource("file:/srv/served/other");
    assert_eq!(pair.b.read("/srv/served/other"), b"new\n");
    is_quiet(&pair, 4);
}

/// By it the user 1234 may read what the mode 0640 closes to him.
fn readable_by_one_more() -> Vec<u8> {
    let nobody = [255_u8; 4];
    let entries = [
        (0x01, 6, nobody),
        (0x02, 4, [210, 4, 0, 0]),
        (0x04, 4, nobody),
        (0x10, 4, nobody),
        (0x20, 0, nobody),
    ];
    let entry = |(tag, gives, who): (u8, u8, [u8; 4])| [&[tag, 0, gives, 0][..], &who].concat();
    [vec![2, 0, 0, 0], entries.into_iter().flat_map(entry).collect()].concat()
}

// case: O-02
// case: O-03
// case: O-05
// case: O-07
// case: O-21
#[test]
fn volumes_of_linux_keep_what_nobody_declared_and_say_what_is_in_the_way_each_by_its_name() {
    let pair = raised("volumes-linux", &OF_LINUX);
    let mut module = String::new();
    for (_, at) in OF_LINUX {
        let line = format!(
            "set -e; mkdir {at}/stiff; cd {at}; for name in frozen grown listed twin full stiff/a; do echo old >$name; done; \
             chmod 0640 listed; ln twin other; chattr +i frozen stiff; chattr +a grown"
        );
        let _ = pair.b.sh(&line).must();
        pair.b.give_attribute(&format!("{at}/listed"), ACCESS, &readable_by_one_more());
        pair.b.give_attribute(&format!("{at}/listed"), "user.note", b"mine");
        for name in ["frozen", "grown", "stiff/a", "twin"] {
            module += &file(&format!("{at}/{name}"), "new", "");
        }
        module += &file(&format!("{at}/listed"), "new", "mode = \"0640\"");
    }
    pair.module(&module);
    let _ = pair.declare(&[]).must();
    for (_, at) in OF_LINUX {
        for (name, code) in
            [("frozen", "immutable_flag"), ("grown", "append_only_flag"), ("stiff/a", "immutable_flag")]
        {
            let _ = pair.wait_for_code(&format!("file:{at}/{name}"), "failed", code);
            assert_eq!(pair.b.read(&format!("{at}/{name}")), b"old\n", "{at}/{name}");
        }
        let listed = format!("{at}/listed");
        pair.wait_for_resource(&format!("file:{listed}"));
        pair.wait_for_resource(&format!("file:{at}/twin"));
        assert_eq!(pair.b.read(&listed), b"new\n");
        assert_eq!(pair.b.attribute(&listed, ACCESS), Some(readable_by_one_more()), "{at}");
        assert_eq!(pair.b.attribute(&listed, "user.note"), Some(b"mine".to_vec()), "{at}");
        assert_eq!(pair.b.read(&format!("{at}/other")), b"old\n");
        let _ = pair.b.sh(&format!("cd {at} && chattr -i frozen stiff && chattr -a grown")).must();
        nothing_is_left_beside(&pair, at);
    }
    is_quiet(&pair, 15);
    when_they_are_full_and_when_they_take_no_writes(&pair);
}

fn when_they_are_full_and_when_they_take_no_writes(pair: &Pair) {
    let limited = "/srv/btrfs/limited/big";
    let page = "x".repeat(1000);
    let lines = |count: usize| format!("{page}\\n").repeat(count);
    let fill = "cd /srv/btrfs/limited && echo old >big && head -c 900000 /dev/urandom >fill && sync";
    let _ = pair.b.sh(fill).must();
    pair.module(&file(limited, &lines(300), ""));
    let _ = pair.declare(&["--allow-removals", "20"]).must();
    let _ = pair.wait_for_code(&format!("file:{limited}"), "failed", "over_quota");
    assert_eq!(pair.b.read(limited), b"old\n");
    nothing_is_left_beside(pair, "/srv/btrfs/limited");
    pair.b.must(&["rm", "/srv/btrfs/limited/fill"]);
    pair.wait_for_resource(&format!("file:{limited}"));

    let mut module = String::new();
    for (_, at) in OF_LINUX {
        // The kernel keeps some room of each for itself, and gives it back bit by bit.
        let line = format!(
            "cd {at}; for i in 1 2 3; do head -c 400000000 /dev/zero >fill$i; sync; done 2>/dev/null; :"
        );
        let _ = pair.b.sh(&line).must();
        module += &file(&format!("{at}/full"), &lines(200), "");
    }
    pair.module(&module);
    let _ = pair.declare(&["--allow-removals", "20"]).must();
    for (_, at) in OF_LINUX {
        let _ = pair.wait_for_code(&format!("file:{at}/full"), "failed", "no_space");
        assert_eq!(pair.b.read(&format!("{at}/full")), b"old\n", "{at}");
        nothing_is_left_beside(pair, at);
        // A mount with a file open for writing is busy, and the host tries again and again: as
        // long as the volume is full it comes to nothing, and between two tries it can be closed.
        pair.wait(&format!("{at} takes no more writes"), |pair| {
            pair.b.run(&["mount", "-o", "remount,bind,ro", at]).success()
        });
    }
    for (_, at) in OF_LINUX {
        let _ = pair.wait_for_code(&format!("file:{at}/full"), "failed", "read_only");
        let _ = pair.b.sh(&format!("mount -o remount,bind,rw {at} && rm {at}/fill*")).must();
        pair.wait_for_resource(&format!("file:{at}/full"));
    }
}
