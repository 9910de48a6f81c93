use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn files() -> (tempfile::TempDir, KeyFiles) {
    let folder = tempfile::tempdir().unwrap();
    let files = KeyFiles::at(folder.path().join("node.key"));
    (folder, files)
}

fn token(byte: u8) -> Digest {
    Digest::of(&[byte])
}

// rule: X-1
#[test]
fn a_key_is_on_disk_before_it_is_used_and_the_same_token_gets_the_same_key() {
    let (_folder, files) = files();
    let first = files.for_token(token(1)).unwrap().public();
    let mode = std::fs::metadata(&files.pending).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    assert_eq!(files.for_token(token(1)).unwrap().public(), first);
    files.promote().unwrap();
    assert_eq!(files.for_token(token(1)).unwrap().public(), first, "also after it was answered (X-11)");
}

// rule: X-1
#[test]
fn another_token_gets_another_key_and_the_standing_one_stays_until_it_is_answered() {
    let (_folder, files) = files();
    let old = files.for_token(token(1)).unwrap().public();
    files.promote().unwrap();
    let new = files.for_token(token(2)).unwrap().public();
    assert_ne!(old, new);
    assert_eq!(files.standing(&old).unwrap().public(), old, "the redemption may yet be refused");
    assert_eq!(files.for_token(token(2)).unwrap().public(), new, "a repeat uses the same key");
}

// rule: X-1
#[test]
fn a_crash_between_the_answer_and_the_renaming_is_finished_at_the_next_start() {
    let (_folder, files) = files();
    files.for_token(token(1)).unwrap();
    files.promote().unwrap();
    let new = files.for_token(token(2)).unwrap().public();
    assert_eq!(files.standing(&new).unwrap().public(), new);
    assert!(!files.pending.exists());
    assert_eq!(files.standing(&new).unwrap().public(), new);
}

#[test]
fn an_empty_or_damaged_key_file_is_unreadable_and_stays_until_a_new_token_is_answered() {
    let (_folder, files) = files();
    let key = files.for_token(token(1)).unwrap();
    files.promote().unwrap();
    let good = std::fs::read_to_string(&files.standing).unwrap();
    for damaged in ["", "tenure node key v1\n", "garbage", &good[..good.len() - 5], &format!("{good}more\n")]
    {
        std::fs::write(&files.standing, damaged).unwrap();
        let error = files.standing(&key.public()).unwrap_err();
        assert_eq!(error.code(), "credential_unreadable", "{damaged:?}");
        files.for_token(token(2)).unwrap();
        assert_eq!(std::fs::read_to_string(&files.standing).unwrap(), damaged, "it is left as it is");
    }
}

// case: O-06
#[test]
fn what_is_no_key_file_of_ours_is_unreadable_in_words_of_its_own_and_left_as_it_is() {
    use std::os::unix::fs::symlink;
    let (folder, files) = files();
    let key = files.for_token(token(1)).unwrap();
    files.promote().unwrap();
    let good = folder.path().join("good");
    std::fs::rename(&files.standing, &good).unwrap();
    let why = || match files.standing(&key.public()).unwrap_err() {
        KeyError::Unreadable { why, .. } => why,
        other => panic!("{other}"),
    };
    symlink(&good, &files.standing).unwrap();
    assert_eq!(why(), "it is a link, which is not followed");
    std::fs::remove_file(&files.standing).unwrap();
    std::fs::create_dir(&files.standing).unwrap();
    std::fs::set_permissions(&files.standing, Permissions::from_mode(0o755)).unwrap();
    assert_eq!(why(), "it is a folder, not a file");
    assert_eq!(files.standing.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    std::fs::remove_dir(&files.standing).unwrap();
    nix::unistd::mkfifo(&files.standing, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(why(), "it is a pipe, not a file", "and nobody waits on the pipe");
    std::fs::remove_file(&files.standing).unwrap();
    std::fs::write(&files.standing, [0; 160]).unwrap();
    assert_eq!(why(), "it holds nothing but zero bytes");
    std::fs::write(&files.standing, [0xff; 160]).unwrap();
    assert_eq!(why(), "it is no text");
    std::fs::copy(&good, &files.standing).unwrap();
    assert!(files.standing(&key.public()).is_ok() && files.trouble(&key.public()).is_none());
    if nix::unistd::geteuid().is_root() {
        std::os::unix::fs::chown(&files.standing, Some(1234), None).unwrap();
        assert!(why().starts_with("it belongs to user 1234"), "{}", why());
        assert!(matches!(files.trouble(&key.public()), Some(KeyError::Unreadable { .. })));
    } else {
        eprintln!("skipped: giving a file away needs root");
    }
}

// case: O-06
#[test]
fn the_way_back_is_named_with_the_node_it_is_for() {
    let error = KeyError::NotThere { path: "/k".into() };
    let refusal = error.of(&NodeId::new("edge-1").unwrap());
    assert!(refusal.remedy.contains("`tenure reinvite edge-1`"), "{}", refusal.remedy);
    assert_eq!(refusal.code, "credential_unreadable");
}

#[test]
fn a_key_that_neither_file_has_is_said_to_be_missing() {
    let (_folder, files) = files();
    let public = NodeKey::generate().unwrap().public();
    assert!(matches!(files.standing(&public), Err(KeyError::NotThere { .. })));
}

// case: O-62
#[test]
fn a_key_file_that_others_can_read_is_tightened() {
    let (_folder, files) = files();
    let public = files.for_token(token(1)).unwrap().public();
    files.promote().unwrap();
    std::fs::set_permissions(&files.standing, Permissions::from_mode(0o644)).unwrap();
    files.standing(&public).unwrap();
    assert_eq!(std::fs::metadata(&files.standing).unwrap().permissions().mode() & 0o777, 0o600);
}

// rule: X-1
#[test]
fn a_pending_key_that_the_identity_stands_on_is_not_overwritten_by_another_token() {
    let (_folder, files) = files();
    // Answered and committed, and the renaming failed.
    let bound = files.for_token(token(1)).unwrap().public();
    files.free_pending(&bound).unwrap();
    files.for_token(token(2)).unwrap();
    assert_eq!(files.standing(&bound).unwrap().public(), bound);
    // It cannot be moved out of the way: then nothing is written over it.
    let stuck = KeyFiles::at(files.standing.join("below-a-file"));
    let pending = KeyFiles { standing: stuck.standing, pending: files.standing.clone() };
    assert!(pending.free_pending(&bound).is_err());
}

/// Needs root: nobody else can give a file away.
#[test]
fn a_key_that_belongs_to_somebody_else_is_unreadable_and_stays_as_it_is() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let files = KeyFiles::at(folder.path().join("node.key"));
    let key = files.for_token(Digest::of(b"token")).unwrap();
    files.promote().unwrap();
    let path = folder.path().join("node.key");
    std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
    let refused = files.standing(&key.public()).unwrap_err().to_string();
    assert!(refused.contains("it belongs to user 65534"), "{refused}");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o644);
}

#[test]
fn what_lies_in_place_of_a_key_is_named_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node.key");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRUSR).unwrap();
    let public = NodeKey::generate().unwrap().public();
    let refused = KeyFiles::at(path).standing(&public).unwrap_err().to_string();
    assert!(refused.ends_with("it is a pipe, not a file"), "{refused}");
}

#[test]
fn a_key_that_cannot_be_written_is_not_made_and_the_token_stays_good() {
    let folder = tempfile::tempdir().unwrap();
    let files = KeyFiles::at(folder.path().join("missing/node.key"));
    let error = files.for_token(token(1)).unwrap_err();
    assert_eq!(error.code(), "credential_not_written");
    assert!(error.meaning().contains("still good"));
}
