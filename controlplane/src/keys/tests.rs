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
fn a_missing_and_a_damaged_key_are_refused_each_by_its_own_name_and_not_replaced() {
    let (_folder, ground) = ground();
    make(&ground).unwrap();
    std::fs::write(ground.master_key(), b"short").unwrap();
    assert!(matches!(load(&ground), Err(KeyError::Damaged { path }) if path == ground.master_key()));
    std::fs::remove_file(ground.ca_key()).unwrap();
    assert!(matches!(load(&ground), Err(KeyError::Missing { path }) if path == ground.ca_key()));
    assert!(!ground.ca_key().exists());
}
