use tenure_actors::clock::Moment;
use tenure_protocol::content::Piece;
use tenure_protocol::id::{ControlPlaneId, Epoch, EpochId, Generation, NodeId, RevisionNumber};
use tenure_protocol::machine::Mode;
use tenure_protocol::resource::{FilePresent, FileSpec, Resource, Spec};

use super::*;
use crate::ground::Ground;

fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let ground = Ground::new(folder.path(), true);
    ground.create().unwrap();
    let store = Store::open(&ground, true, Moment::from_millis(1)).unwrap().store;
    (folder, store)
}

fn header(control_plane: u8, generation: u64, revision: u64) -> Header {
    Header {
        control_plane_id: ControlPlaneId::from_bytes([control_plane; 16]),
        node: NodeId::new("edge-1").unwrap(),
        generation: Generation(generation),
        epoch: Epoch { number: u64::from(control_plane), id: EpochId::from_bytes([control_plane; 16]) },
        revision: RevisionNumber(revision),
        mode: Mode::Converged,
        taken: Vec::new(),
        allowed_removals: None,
        is_final: false,
    }
}

fn file(content: &[u8]) -> Resource {
    let content = tenure_protocol::resource::Content {
        sha256: Digest::of(content),
        size: u64::try_from(content.len()).unwrap(),
    };
    let spec = Spec::File(FileSpec {
        path: "/srv/a".parse().unwrap(),
        present: Some(FilePresent {
            content,
            mode: "0644".parse().unwrap(),
            owner: "root".parse().unwrap(),
            group: "root".parse().unwrap(),
            create_once: false,
            replace_link: false,
            sensitive: false,
        }),
    });
    Resource { key: spec.key(), module: "base".parse().unwrap(), needs: Vec::new(), spec }
}

fn declared(header: &Header, resources: &[Resource]) -> (Declaration, Digest, Arc<[u8]>) {
    let bytes: Arc<[u8]> = Declaration::encode(header, resources).unwrap().into();
    (Declaration::parse(&bytes).unwrap(), Digest::of_declaration(&bytes), bytes)
}

fn put(store: &Store, bytes: &[u8]) {
    let size = u64::try_from(bytes.len()).unwrap();
    store.put_piece(Piece { sha256: Digest::of(bytes), size, offset: 0, bytes: bytes.to_vec() }).unwrap();
}

// rule: X-6
#[test]
fn what_was_held_for_another_control_plane_or_life_does_not_bar_the_way() {
    let (_folder, store) = store();
    let (by_hand, sha256, bytes) = declared(&header(9, 1, 40), &[]);
    keep(&store, &by_hand, sha256, &bytes).unwrap();
    for other in [header(7, 1, 1), header(9, 2, 1)] {
        let (declaration, sha256, _) = declared(&other, &[]);
        assert_eq!(admit(&store, None, &declaration, sha256).unwrap(), Admitted::New);
        let identity = crate::identity::StoredIdentity {
            control_plane_id: other.control_plane_id,
            generation: other.generation,
            ..crate::manifest::tests::identity("edge-1")
        };
        assert_eq!(held_whole(&store, &identity).unwrap(), None);
    }
    let (older, sha256, _) = declared(&header(9, 1, 39), &[]);
    assert!(matches!(admit(&store, None, &older, sha256), Err(IntakeError::Refused(_))));
}

#[test]
fn content_is_dropped_after_the_pass_that_no_longer_needs_it_and_a_declaration_without_all_is_not_had() {
    let (_folder, store) = store();
    let identity = crate::identity::StoredIdentity {
        control_plane_id: ControlPlaneId::from_bytes([9; 16]),
        generation: Generation(1),
        ..crate::manifest::tests::identity("edge-1")
    };
    let (old, old_sha, old_bytes) = declared(&header(9, 1, 1), &[file(b"old")]);
    let (new, new_sha, new_bytes) = declared(&header(9, 1, 2), &[file(b"new")]);
    put(&store, b"old");
    keep(&store, &old, old_sha, &old_bytes).unwrap();
    put(&store, b"new");
    keep(&store, &new, new_sha, &new_bytes).unwrap();
    // The pass of the old one is still under way.
    tidy(&store, &old).unwrap();
    assert!(store.reader(Digest::of(b"old")).unwrap().is_some());
    tidy(&store, &new).unwrap();
    assert!(store.reader(Digest::of(b"old")).unwrap().is_none());
    assert_eq!(held_whole(&store, &identity).unwrap().map(|held| held.sha256), Some(new_sha));
    store.forget_contents_except(&[]).unwrap();
    assert_eq!(held_whole(&store, &identity).unwrap(), None);
}

// rule: H-09
#[test]
fn a_declaration_is_never_kept_without_the_word_that_what_the_one_before_needed_is_to_go() {
    let (_folder, store) = store();
    let (new, sha256, bytes) = declared(&header(9, 1, 2), &[file(b"new")]);
    put(&store, b"old");
    put(&store, b"new");
    assert!(!store.is_untidy().unwrap());
    let revision = new.header.revision();
    store.put_declaration(StoredDeclaration { revision, sha256, bytes }).unwrap();
    assert!(store.is_untidy().unwrap());
    tidy(&store, &new).unwrap();
    assert!(store.reader(Digest::of(b"old")).unwrap().is_none());
    assert!(store.reader(Digest::of(b"new")).unwrap().is_some());
    assert!(!store.is_untidy().unwrap());
}
