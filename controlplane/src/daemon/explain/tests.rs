use std::io::{Error, ErrorKind};

use super::*;

fn refused(kind: ErrorKind) -> [(String, String); 2] {
    let error = || GroundError::Io { path: "/state/control".into(), source: Error::from(kind) };
    [StartRefusal::Ground(error()), StartRefusal::Keys(KeyError::Ground(error()))].map(|refusal| {
        let refusal = refusal.refusal();
        (refusal.code, refusal.remedy)
    })
}

// case: O-70
#[test]
fn a_state_directory_without_room_or_without_writes_is_told_as_that_whoever_met_it() {
    for (kind, code, command) in [
        (ErrorKind::StorageFull, "state_full", "make room on the disk that holds / (`df /`)"),
        (ErrorKind::ReadOnlyFilesystem, "state_read_only", "`findmnt -T /`"),
    ] {
        for (is, remedy) in refused(kind) {
            assert_eq!(is, code);
            assert!(remedy.contains(command), "{remedy}");
        }
    }
    let [(directories, _), (keys, remedy)] = refused(ErrorKind::PermissionDenied);
    assert_eq!((directories.as_str(), keys.as_str()), ("directories_not_made", "keys_not_made"));
    assert!(remedy.contains("give /state/control back"), "{remedy}");
}

#[test]
fn a_key_file_that_went_while_it_was_read_is_put_back() {
    let gone = KeyError::Unreadable(FileError::Absent { path: "/state/ca.key".into() });
    let refusal = StartRefusal::Keys(gone).refusal();
    assert!(
        refusal.is("key_unreadable") && refusal.remedy.starts_with("put the key files back"),
        "{refusal:?}"
    );
}
