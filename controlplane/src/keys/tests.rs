use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn ground() -> (tempfile::TempDir, Ground) {
    let folder = tempfile::tempdir().unwrap();
    let ground = Ground::new(folder.path());
    ground.create().unwrap();
    (folder, ground)
}

#[test]
fn keys_are_made_once_closed_to_others_and_are_the_same_at_the_next_start() {
    let (_folder, ground) = ground();
    assert!(found(&ground).is_empty());
    make(&ground).unwrap();
    for path in files(&ground) {
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{path:?}");
    }
    let (one, other) = (load(&ground).unwrap(), load(&ground).unwrap());
    assert_eq!(one.ca(), other.ca());
    assert_eq!(one.root.number, 1);
}

#[test]
fn a_missing_and_a_damaged_authority_are_refused_each_by_its_own_name_and_not_replaced() {
    let (_folder, ground) = ground();
    make(&ground).unwrap();
    std::fs::write(ground.ca_certificate(), b"short").unwrap();
    assert!(matches!(load(&ground), Err(KeyError::Damaged { path }) if path == ground.ca_certificate()));
    std::fs::remove_file(ground.ca_key()).unwrap();
    assert!(matches!(load(&ground), Err(KeyError::Missing { path }) if path == ground.ca_key()));
    assert!(!ground.ca_key().exists());
}

// rule: N-04
#[test]
fn without_a_usable_master_key_the_signer_has_none_and_why_is_said() {
    let (_folder, ground) = ground();
    make(&ground).unwrap();
    let why = || {
        let keys = load(&ground).unwrap();
        assert_eq!(format!("{:?}", keys.signer) == "Signer(no master key)", keys.no_master_key.is_some());
        keys.no_master_key.map(|error| error.to_string()).unwrap_or_default()
    };
    let path = ground.master_key();
    assert_eq!(why(), "");
    for bytes in [&b""[..], b"short", &[0; 32], &[1; 33]] {
        std::fs::write(&path, bytes).unwrap();
        assert!(why().ends_with("master.key cannot be read as a key of ours"), "{}", why());
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "it is left as it is");
    }
    std::fs::remove_file(&path).unwrap();
    assert!(why().ends_with("master.key is missing beside it"), "{}", why());
    std::fs::create_dir(&path).unwrap();
    assert!(why().ends_with("master.key is a folder, not a file"), "{}", why());
}

// case: O-62
#[test]
fn a_key_file_that_is_open_to_others_is_closed_and_used() {
    let (_folder, ground) = ground();
    make(&ground).unwrap();
    for path in [ground.ca_key(), ground.master_key()] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(load(&ground).unwrap().no_master_key.is_none());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{path:?}");
    }
}

/// Needs root: nobody else can give a file away.
#[test]
fn a_key_that_belongs_to_somebody_else_is_not_used_and_not_tightened() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let (_folder, ground) = ground();
    make(&ground).unwrap();
    let path = ground.master_key();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
    let keys = load(&ground).unwrap();
    assert!(matches!(keys.no_master_key, Some(KeyError::Foreign { owner: 65534, .. })));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
    std::os::unix::fs::chown(ground.ca_key(), Some(65534), None).unwrap();
    assert!(matches!(load(&ground), Err(KeyError::Foreign { .. })));
}
