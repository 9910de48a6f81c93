use std::os::unix::fs::symlink;

use tenure_protocol::enrolment::Briefing;
use tenure_protocol::id::{
    ControlPlaneId, Digest, Epoch, EpochId, FencingToken, Generation, Millis, NodeId, NodeUuid, Rental,
};
use tenure_protocol::machine::Mode;
use tenure_protocol::proof::PublicKey;

use super::*;

/// An identity as an enrolment leaves it.
pub(crate) fn identity(node: &str) -> StoredIdentity {
    StoredIdentity {
        control_plane_id: ControlPlaneId::from_bytes([7; 16]),
        epoch: Epoch { number: 1, id: EpochId::from_bytes([1; 16]) },
        node: NodeId::new(node).unwrap(),
        node_uuid: NodeUuid::from_bytes([9; 16]),
        rental: Rental::new("own").unwrap(),
        generation: Generation(1),
        fencing: FencingToken(1),
        mode: Mode::Adopted,
        enrolled_at: Millis(1),
        roots: Vec::new(),
        addresses: vec!["control.lan:7443".to_owned()],
        key: PublicKey::from_bytes([3; 32]),
        token: Digest::of(b"token"),
        briefing: Briefing::default(),
    }
}

// rule: I-03
#[test]
fn the_manifest_is_written_whole_for_everyone_to_read_and_only_when_it_differs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node.json");
    assert!(write(&path, &identity("edge-1")).unwrap());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o644);
    assert!(!write(&path, &identity("edge-1")).unwrap(), "what stands there is not written again");
    std::fs::write(&path, "").unwrap();
    assert!(write(&path, &identity("edge-1")).unwrap(), "a damaged one is put right from the store");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn what_only_a_bootstrap_knows_is_kept_for_the_same_node() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node.json");
    write(&path, &identity("edge-1")).unwrap();
    let Finding::Found(mut manifest) = look(&path) else { panic!() };
    manifest.components.insert("base".to_owned(), "3".to_owned());
    std::fs::write(&path, manifest.encode().unwrap()).unwrap();
    let moved = StoredIdentity { mode: Mode::Converged, ..identity("edge-1") };
    write(&path, &moved).unwrap();
    let Finding::Found(manifest) = look(&path) else { panic!() };
    assert_eq!((manifest.components.len(), manifest.mode), (1, Mode::Converged));
    let other = StoredIdentity { node_uuid: NodeUuid::from_bytes([8; 16]), ..identity("edge-1") };
    assert!(of(&other, &look(&path)).components.is_empty());
}

// rule: I-04
// rule: I-05
#[test]
fn absent_unreadable_and_could_not_look_are_three_answers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node.json");
    assert_eq!(look(&path), Finding::Absent);
    for other in ["", "{", "{}", "hello"] {
        std::fs::write(&path, other).unwrap();
        assert!(matches!(look(&path), Finding::Unreadable(_)), "{other:?}");
    }
    std::fs::remove_file(&path).unwrap();
    symlink("/etc/hostname", &path).unwrap();
    assert!(matches!(look(&path), Finding::Unreadable(_)));
    std::fs::remove_file(&path).unwrap();
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(matches!(look(&path), Finding::Unreadable(_)), "and nobody waits on the pipe");
    assert!(matches!(look(&folder.path().join("x".repeat(300))), Finding::CouldNotLook(_)));
    std::fs::write(folder.path().join("file"), "").unwrap();
    assert!(matches!(look(&folder.path().join("file/node.json")), Finding::CouldNotLook(_)));
}
