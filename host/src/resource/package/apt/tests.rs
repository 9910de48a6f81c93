use super::*;

fn ran(status: i32, out: &str, err: &str) -> Ran {
    Ran { status: Some(status), out: out.into(), err: err.into() }
}

// rule: S-14
#[test]
fn names_stand_behind_the_two_dashes_and_nothing_is_removed_that_was_not_asked_for() {
    let mut wanted = Wanted::default();
    wanted.install.insert("a".into(), Some("1.0".into()));
    wanted.install.insert("b".into(), None);
    let words = transaction(&wanted);
    let dashes = words.iter().position(|word| word == "--").unwrap();
    assert_eq!(words[dashes + 1..], ["a=1.0", "b"]);
    assert!(words[..dashes].contains(&"--no-remove".to_owned()));
    wanted.remove.insert("c".into());
    assert!(transaction(&wanted).ends_with(&["c-".to_owned()]));
    assert!(!transaction(&wanted).contains(&"--no-remove".to_owned()));
}

// case: O-10
#[test]
fn a_held_lock_is_outstanding_and_names_its_holder() {
    let err = "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 4242 (unattended-upgr)\nN: Be aware that removing the lock file is not a solution and may break your system.\nE: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?\n";
    let trouble = refused(APT_GET, &ran(100, "", err));
    assert_eq!(trouble.code, "package_lock_held");
    assert_eq!(trouble.stands, crate::resource::Stands::Outstanding);
    assert!(trouble.reason.contains("4242 (unattended-upgr)"), "{}", trouble.reason);
}

// case: O-10
#[test]
fn a_lock_that_dpkg_finds_taken_is_outstanding_and_names_its_holder() {
    for lock in ["frontend", "database"] {
        let err = format!(
            "dpkg: error: dpkg {lock} lock was locked by another process with pid 4242\nNote: removing the lock file is always wrong, can damage the locked area\nand the entire system. See <https://wiki.debian.org/Teams/Dpkg/FAQ#db-lock>.\n"
        );
        let trouble = refused("dpkg", &ran(2, "", &err));
        assert_eq!((trouble.code, trouble.stands), (LOCK_HELD, crate::resource::Stands::Outstanding));
        assert!(trouble.reason.contains("another process with pid 4242"), "{}", trouble.reason);
    }
}

#[test]
fn a_failure_names_the_program_that_ran() {
    let err = "dpkg: unrecoverable fatal error, aborting:\n unknown system user\n";
    let reason = refused("dpkg", &ran(1, "", err)).reason;
    assert!(reason.starts_with("dpkg ended with status 1: "), "{reason}");
}

// rule: S-13
#[test]
fn an_unauthenticated_package_is_refused_by_name() {
    let out = "WARNING: The following packages cannot be authenticated!\n  hello other\n";
    let trouble = refused(
        APT_GET,
        &ran(
            100,
            out,
            "E: There were unauthenticated packages and -y was used without --allow-unauthenticated\n",
        ),
    );
    assert_eq!((trouble.code, trouble.stands), ("unsigned_package", crate::resource::Stands::Refused));
    assert!(trouble.reason.starts_with("hello, other: from a source"), "{}", trouble.reason);
    // Either of the two, set by the machine, would let it pass.
    assert!(OPTIONS.contains(&"APT::Get::AllowUnauthenticated=false"));
    assert!(OPTIONS.contains(&"APT::Get::Force-Yes=false"));
}

// rule: S-13
#[test]
fn a_source_that_is_unsigned_or_signed_by_a_stranger_is_refused_by_name() {
    for err in [
        "E: The repository 'copy:/srv/a ./ Release' is not signed.\n",
        "E: The repository 'copy:/srv/a ./ Release' is no longer signed.\n",
        "W: An error occurred during the signature verification. The repository is not updated and the previous index files will be used. GPG error: copy:/srv/a ./ InRelease: The following signatures couldn't be verified because the public key is not available: NO_PUBKEY 05306C68615A6309\nE: Failed to fetch copy:/srv/a/./InRelease\n",
        "W: GPG error: copy:/srv/a ./ InRelease: The following signatures couldn't be verified because the public key is not available: NO_PUBKEY 7CDC88906377366A\nE: The repository 'copy:/srv/a ./ InRelease' is not signed.\n",
        "W: OpenPGP signature verification failed: copy:/srv/a ./ InRelease: Missing key 72E5, which is needed to verify signature.\nE: The repository 'copy:/srv/a ./ InRelease' is not signed.\n",
    ] {
        let trouble = refused(APT_GET, &ran(100, "", err));
        assert_eq!((trouble.code, trouble.stands), ("unsigned_source", crate::resource::Stands::Refused));
        assert!(trouble.reason.contains("copy:/srv/a"), "{}", trouble.reason);
    }
}

#[test]
fn what_cannot_be_had_together_is_said_in_apts_own_list() {
    let out = "Some packages could not be installed.\n\nThe following packages have unmet dependencies:\n wants : Depends: held (>= 2.0) but 1.0 is to be installed\n         Depends: other but it is not installable\nE: more\n";
    let trouble =
        refused(APT_GET, &ran(100, out, "E: Unable to correct problems, you have held broken packages.\n"));
    assert_eq!(trouble.code, UNMET);
    let list =
        "wants : Depends: held (>= 2.0) but 1.0 is to be installed, Depends: other but it is not installable";
    assert!(trouble.reason.contains(list), "{}", trouble.reason);
}

// rule: S-13
#[test]
fn no_option_of_ours_weakens_the_authentication_of_packages() {
    let words = OPTIONS.map(str::to_owned).into_iter().chain(transaction(&Wanted::default()));
    for word in words {
        for weak in [
            "allow-unauthenticated",
            "Force-Yes=true",
            "force-yes",
            "allow-insecure",
            "AllowInsecure",
            "force-all",
            "trusted=yes",
        ] {
            assert!(!word.contains(weak), "{word}");
        }
    }
}

#[test]
fn what_apt_says_of_an_unknown_package_or_version_is_told_apart_from_a_failure() {
    for err in [
        "E: Unable to locate package hallo\n",
        "E: Version '9' for 'hello' was not found\n",
        "E: Package 'hello' has no installation candidate\n",
    ] {
        assert_eq!(refused(APT_GET, &ran(100, "", err)).code, "unknown_package", "{err}");
    }
    assert_eq!(
        refused(
            APT_GET,
            &ran(100, "", "E: dpkg was interrupted, you must manually run 'dpkg --configure -a'\n")
        )
        .code,
        "dpkg_interrupted"
    );
    let other = refused(APT_GET, &ran(100, "", "E: Sub-process /usr/bin/dpkg returned an error code (1)\n"));
    assert_eq!(other.code, "package_manager_failed");
    assert!(other.reason.contains("status 100"), "{}", other.reason);
}

#[test]
fn versions_are_read_with_where_they_are_to_be_had() {
    let text = " hello | 2.10-3 | http://deb.example bookworm/main amd64 Packages\n hello | 2.10-3 | http://deb.example bookworm/main Sources\n hello | 2.9-1 | http://deb.example old/main amd64 Packages\n hello-traditional | 1 | x\n";
    let read: Vec<_> = madison("hello", text).map(|Line { version, place }| (version, place)).collect();
    let expected = [
        ("2.10-3", "http://deb.example bookworm/main amd64 Packages"),
        ("2.10-3", "http://deb.example bookworm/main Sources"),
        ("2.9-1", "http://deb.example old/main amd64 Packages"),
    ];
    assert_eq!(read, expected);
}

// case: O-13
#[test]
fn a_script_that_failed_is_told_in_its_own_last_words() {
    let trouble = refused(APT_GET, &ran(100, include_str!("said/script.txt"), ""));
    assert_eq!(trouble.code, "dpkg_gave_up");
    let words = "dpkg gave up over package broken (--configure): installed broken package post-installation script subprocess \
                 returned error exit status 7; before that: first line / cannot reach the database / giving up";
    assert_eq!(trouble.reason, words);
    let clash = "Unpacking b (1) ...\ndpkg: error processing archive /var/cache/apt/archives/b_1_all.deb (--unpack):\n trying to overwrite '/srv/it', which is also in package a 1\nErrors were encountered while processing:\n";
    let said = refused(APT_GET, &ran(100, clash, "")).reason;
    assert!(
        said.ends_with("(--unpack): trying to overwrite '/srv/it', which is also in package a 1"),
        "{said}"
    );
    // However much it says.
    let long = include_str!("said/script.txt").replace("giving up", &"giving up ".repeat(1000));
    assert!(refused(APT_GET, &ran(100, &long, "")).reason.len() <= 400);
}

#[test]
fn a_name_that_is_only_provided_is_told_with_who_provides_it() {
    let trouble = refused(
        APT_GET,
        &ran(100, include_str!("said/virtual.txt"), "E: Package 'virt-two' has no installation candidate\n"),
    );
    assert_eq!(trouble.code, "virtual_package");
    assert!(trouble.reason.starts_with("virt-two is not a package"), "{}", trouble.reason);
    assert!(trouble.reason.ends_with("prov-b, prov-a"), "{}", trouble.reason);
    // Of one provider apt says nothing, and takes it.
    assert_eq!(providers("virt-one", include_str!("said/showpkg_virtual.txt")), ["prov-a"]);
    let own = include_str!("said/showpkg_own.txt");
    assert_eq!(providers("prov-a", own), Vec::<String>::new());
    // A name is a pattern too: this is what it says of `prov.a`.
    assert_eq!(providers("prov.a", own), Vec::<String>::new());
    assert_eq!(providers("virt-one", ""), Vec::<String>::new());
}

#[test]
fn what_the_system_calls_essential_is_not_removed() {
    let err = "E: Essential packages were removed and -y was used without --allow-remove-essential.\n";
    let trouble = refused(APT_GET, &ran(100, include_str!("said/essential.txt"), err));
    assert_eq!((trouble.code, trouble.stands), ("essential_package", crate::resource::Stands::Refused));
    assert!(trouble.reason.starts_with("ess would be removed"), "{}", trouble.reason);
}

#[test]
fn a_file_system_that_is_full_or_read_only_is_told_as_that() {
    for (said, code, shows) in [
        (
            "dpkg: error processing archive /var/cache/apt/archives/a_1_all.deb (--unpack):\n cannot copy extracted data for './usr/a' to '/usr/a.dpkg-new': failed to write (No space left on device)\n",
            "no_space",
            "df -h",
        ),
        ("E: You don't have enough free space in /var/cache/apt/archives/.\n", "no_space", "df -h"),
        (
            "W: Not using locking for read only lock file /var/lib/dpkg/lock-frontend\nE: Unable to write to /var/cache/apt/\ndpkg: unrecoverable fatal error, aborting:\n unable to create new file '/var/lib/dpkg/status-new': Read-only file system\n",
            "read_only",
            "findmnt",
        ),
    ] {
        let trouble = refused(APT_GET, &ran(100, "", said));
        assert_eq!(trouble.code, code, "{said}");
        assert!(trouble.reason.contains(shows), "{}", trouble.reason);
    }
}
