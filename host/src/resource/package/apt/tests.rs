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
    let err = "dpkg: error processing package hello (--configure):\n";
    let reason = refused("dpkg", &ran(1, "", err)).reason;
    assert!(reason.starts_with("dpkg ended with status 1: "), "{reason}");
}

// rule: S-13
#[test]
fn an_unauthenticated_package_is_refused_by_name() {
    let out = "WARNING: The following packages cannot be authenticated!\n  hello\n";
    let trouble = refused(
        APT_GET,
        &ran(
            100,
            out,
            "E: There were unauthenticated packages and -y was used without --allow-unauthenticated\n",
        ),
    );
    assert_eq!((trouble.code, trouble.stands), ("unsigned_package", crate::resource::Stands::Refused));
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
fn versions_are_read_newest_first_each_once() {
    let text = " hello | 2.10-3 | http://deb.example bookworm/main amd64 Packages\n hello | 2.10-3 | http://deb.example bookworm/main Sources\n hello | 2.9-1 | http://deb.example old/main amd64 Packages\n hello-traditional | 1 | x\n";
    assert_eq!(madison("hello", text), ["2.10-3", "2.9-1"]);
}
