use std::collections::HashSet;

use tenure_actors::clock;
use tenure_protocol::declaration::Header;
use tenure_protocol::id::{
    ControlPlaneId, Digest, Epoch, EpochId, Generation, ModuleName, NodeId, RevisionNumber,
};
use tenure_protocol::machine::Mode;
use tenure_protocol::outcome::Origin;
use tenure_protocol::path::DeclaredPath;
use tenure_protocol::resource::{Content, FilePresent, FileSpec, Principal, Resource, Spec};

use super::super::runtime;
use super::*;
use crate::daemon::{Options, start};
use crate::identity::keep;
use crate::reconcile::Memory;
use crate::store::{Intent, State, Wanted};

/// A sandbox with a bundle beside it that declares `/srv/a`.
fn machine() -> (tempfile::TempDir, Ground, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (root, bundle) = (folder.path().join("root"), folder.path().join("bundle"));
    std::fs::create_dir_all(root.join("srv")).unwrap();
    std::fs::create_dir_all(bundle.join("blobs/sha256")).unwrap();
    let content = Content { sha256: Digest::of(b"by hand"), size: 7 };
    std::fs::write(bundle.join("blobs/sha256").join(content.sha256.to_string()), b"by hand").unwrap();
    let spec = Spec::File(FileSpec {
        path: DeclaredPath::new("/srv/a").unwrap(),
        present: Some(FilePresent {
            content,
            mode: "0644".parse().unwrap(),
            owner: "root".parse::<Principal>().unwrap(),
            group: "root".parse::<Principal>().unwrap(),
            create_once: false,
            replace_link: false,
            sensitive: false,
        }),
    });
    let resource =
        Resource { key: spec.key(), module: ModuleName::new("base").unwrap(), needs: Vec::new(), spec };
    let header = Header {
        control_plane_id: ControlPlaneId::from_bytes([7; 16]),
        node: NodeId::new("edge-1").unwrap(),
        generation: Generation(1),
        epoch: Epoch { number: 1, id: EpochId::from_bytes([1; 16]) },
        revision: RevisionNumber(4),
        mode: Mode::Converged,
        taken: Vec::new(),
        allowed_removals: None,
        is_final: false,
    };
    let bytes = Declaration::encode(&header, &[resource]).unwrap();
    std::fs::write(bundle.join("declaration.json"), bytes).unwrap();
    (folder, Ground::new(root, true), bundle)
}

// rule: H-01
#[test]
fn a_bundle_is_previewed_and_applied_on_a_machine_without_a_control_plane() {
    let (_folder, ground, bundle) = machine();
    let file = ground.at("/srv/a");
    assert_eq!(look_ahead(&ground, Some(bundle.clone())).unwrap().lines.len(), 1);
    assert!(!file.exists() && !ground.store().exists(), "a preview leaves nothing behind");
    assert_eq!(reconcile(&ground, Some(bundle)).unwrap().0.counts.applied, 1);
    assert_eq!(std::fs::read(&file).unwrap(), b"by hand");
    std::fs::write(&file, "changed").unwrap();
    assert_eq!(reconcile(&ground, None).unwrap().0.counts.applied, 1, "what is stored is reconciled again");
    assert_eq!(std::fs::read(&file).unwrap(), b"by hand");
}

#[test]
fn a_bundle_is_refused_on_an_enrolled_machine_naming_control_plane_and_revision() {
    let (_folder, ground, bundle) = machine();
    reconcile(&ground, Some(bundle.clone())).unwrap();
    let store = look::open(&ground).unwrap().store;
    let identity = crate::manifest::tests::identity("edge-1");
    store.set_identity(&identity).unwrap();
    store.close();
    let refusal = reconcile(&ground, Some(bundle)).unwrap_err();
    assert_eq!(refusal.code, "belongs_to_control_plane");
    let names =
        [identity.control_plane_id.to_string(), "control.lan:7443".to_owned(), "revision 4".to_owned()];
    assert!(names.iter().all(|name| refusal.happened.contains(name)), "{}", refusal.happened);
}

// case: O-06
#[test]
fn a_bundle_is_refused_on_an_enrolled_machine_whose_store_was_lost() {
    let (_folder, ground, bundle) = machine();
    ground.create().unwrap();
    let token = Digest::of(b"token");
    let files = crate::identity::key::KeyFiles::at(ground.node_key());
    let key = files.for_token(token).unwrap();
    let identity = crate::identity::StoredIdentity {
        key: key.public(),
        token,
        ..crate::manifest::tests::identity("edge-1")
    };
    let store = super::super::opened(&ground).unwrap();
    keep::keep(&store, &ground, &identity).unwrap();
    store.close();
    std::fs::remove_file(ground.store()).unwrap();
    assert_eq!(reconcile(&ground, Some(bundle.clone())).unwrap_err().code, "belongs_to_control_plane");
    // And where nobody can say whose it is.
    std::fs::remove_file(ground.store()).unwrap();
    std::fs::write(ground.state().join("node.identity"), "?").unwrap();
    assert_eq!(reconcile(&ground, Some(bundle)).unwrap_err().code, "credential_unreadable");
    assert!(!ground.at("/srv/a").exists());
}

#[test]
fn a_running_host_can_be_looked_into_and_leaves_no_copy_behind() {
    let (_folder, ground, bundle) = machine();
    reconcile(&ground, Some(bundle.clone())).unwrap();
    let host = runtime().unwrap();
    let daemon = host.block_on(start(Options::at(ground.clone()))).unwrap();
    assert_eq!(look_ahead(&ground, None).unwrap().lines.len(), 1);
    let snapshot = Snapshot::of(&ground).unwrap();
    let lines = previewed(&ground, snapshot.store(), None).unwrap().lines;
    assert_eq!(lines.len(), 1);
    drop(snapshot);
    let left = std::fs::read_dir(ground.state()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with("plan-")));
    let refusal = reconcile(&ground, Some(bundle)).unwrap_err();
    assert_eq!(refusal.code, "store_locked", "a bundle needs the store that the host holds");
    assert_eq!(reconcile(&ground, None).unwrap().0.counts.unchanged, 1, "the host does it itself");
    host.block_on(daemon.stop());
}

#[test]
fn a_pass_that_could_not_look_or_did_not_come_to_an_end_does_not_end_well() {
    let (_folder, ground, bundle) = machine();
    let (summary, trouble) = reconcile(&ground, Some(bundle)).unwrap();
    assert_eq!((done(&summary, false), trouble), (Done::Well, None));
    assert_eq!(done(&summary, true), Done::Failed);
    let with = |change: fn(&mut Summary)| {
        let mut summary = summary.clone();
        change(&mut summary);
        done(&summary, false)
    };
    assert_eq!(with(|summary| summary.counts.unknown = 1), Done::Failed);
    assert_eq!(with(|summary| summary.counts.refused = 1), Done::Failed);
    assert_eq!(with(|summary| summary.counts.outstanding = 1), Done::Outstanding);
}

// rule: I-05
#[test]
fn a_store_that_cannot_be_seen_is_not_taken_for_none() {
    let (_folder, ground, bundle) = machine();
    // No file can have anything below it: the system answers neither yes nor no.
    std::fs::create_dir_all(ground.state().parent().unwrap()).unwrap();
    std::fs::write(ground.state(), "in the way").unwrap();
    let seen = has_store(&ground);
    let long = Ground::new(ground.at(&"x".repeat(300)), true);
    assert_eq!(has_store(&long).unwrap_err().code, "store_unreadable");
    assert!(seen.is_err() || look_ahead(&ground, Some(bundle)).is_ok());
}

// rule: X-6
#[test]
fn a_declaration_that_was_applied_by_hand_is_not_held_under_an_identity_that_came_later() {
    let (_folder, ground, bundle) = machine();
    reconcile(&ground, Some(bundle)).unwrap();
    let store = look::open(&ground).unwrap().store;
    let stored = store.declaration().unwrap().unwrap();
    let header = Declaration::header_of(&stored.bytes).unwrap();
    let identity = crate::identity::StoredIdentity {
        generation: Generation(header.generation.0 + 1),
        ..crate::manifest::tests::identity("edge-1")
    };
    store.set_identity(&identity).unwrap();
    store.close();
    std::fs::write(ground.at("/srv/a"), "changed since").unwrap();
    let (summary, _) = reconcile(&ground, None).unwrap();
    assert_eq!(summary.refused.as_ref().map(|refusal| refusal.code.as_str()), Some("declaration_not_ours"));
    assert_eq!((summary.counts.total(), summary.owned), (0, 1));
    assert_eq!(std::fs::read(ground.at("/srv/a")).unwrap(), b"changed since");
}

// case: O-70
#[test]
fn a_preview_over_a_store_that_cannot_be_read_is_none_and_says_so() {
    let (_folder, ground, bundle) = machine();
    reconcile(&ground, Some(bundle.clone())).unwrap();
    let store = tenure_actors::database::rusqlite::Connection::open(ground.store()).unwrap();
    store.execute_batch("UPDATE record SET applied = x'c1'").unwrap();
    drop(store);
    let refusal = look_ahead(&ground, Some(bundle)).unwrap_err();
    assert!(refusal.is("no_preview") && refusal.means.contains("no preview"), "{refusal:?}");
    assert_eq!(std::fs::read(ground.at("/srv/a")).unwrap(), b"by hand");
}

/// The time of day of a host that has a fault, once it is armed.
#[derive(Default)]
struct Faulty(std::sync::atomic::AtomicBool);

impl clock::Clock for Faulty {
    fn now(&self) -> clock::Moment {
        assert!(!self.0.load(std::sync::atomic::Ordering::Relaxed), "a fault of ours");
        clock::Moment::from_millis(1_000)
    }
}

// rule: H-09
#[test]
fn a_pass_that_breaks_off_by_a_fault_is_said_and_the_next_one_is_done() {
    let (_folder, ground, bundle) = machine();
    reconcile(&ground, Some(bundle)).unwrap();
    let host = runtime().unwrap();
    let faulty = std::sync::Arc::new(Faulty::default());
    let options = Options { clock: faulty.clone(), ..Options::at(ground.clone()) };
    let daemon = host.block_on(start(options)).unwrap();
    reconcile(&ground, None).unwrap();
    faulty.0.store(true, std::sync::atomic::Ordering::Relaxed);
    let refusal = reconcile(&ground, None).unwrap_err();
    assert!(refusal.is("pass_broke_off") && refusal.happened.contains("a fault of ours"), "{refusal:?}");
    assert!(refusal.remedy.contains("journalctl -u tenure-host"), "{refusal:?}");
    faulty.0.store(false, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(reconcile(&ground, None).unwrap().0.counts.unchanged, 1);
    host.block_on(daemon.stop());
}

/// That `/srv/a` is about to be replaced.
fn intent(temporary: &str) -> Intent {
    Intent {
        key: "file:/srv/a".to_owned(),
        module: "web".to_owned(),
        origin: Origin::Created,
        earlier: State::Absent,
        wanted: Wanted::Gone,
        temporary: temporary.to_owned(),
        drift: None,
    }
}

#[test]
fn a_damaged_store_is_what_an_apply_by_hand_says_and_nothing_is_done_by_what_is_read_from_it() {
    // case: O-06
    let (_folder, ground, bundle) = machine();
    reconcile(&ground, Some(bundle)).unwrap();
    let (declared, begun) = (ground.at("/srv/a"), ground.at("/srv/.tenure-aaaaaaaa"));
    let store = Store::open(&ground, true, clock::system().now()).unwrap().store;
    store.intend(vec![intent(".tenure-aaaaaaaa")], &HashSet::new()).unwrap();
    store.close();
    std::fs::write(&begun, "half").unwrap();
    let sound = std::fs::read(ground.store()).unwrap();
    for page in 1..sound.len() / 4096 {
        std::fs::write(&declared, "drift").unwrap();
        let mut damaged = sound.clone();
        damaged[page * 4096..(page + 1) * 4096].fill(0xAB);
        std::fs::write(ground.store(), &damaged).unwrap();
        let refusal = reconcile(&ground, None).unwrap_err();
        assert_eq!(refusal.code, "store_damaged", "page {page}: {refusal:?}");
        assert_eq!(std::fs::read(&declared).unwrap(), b"drift", "page {page}");
        assert!(begun.exists(), "page {page}: what the store says was begun may not be so");
        assert_eq!(std::fs::read(ground.store()).unwrap(), damaged, "page {page}");
    }
    std::fs::write(ground.store(), &sound).unwrap();
    let (summary, _) = reconcile(&ground, None).unwrap();
    assert_eq!(summary.counts.applied, 1, "{summary:?}");
    assert_eq!(std::fs::read(&declared).unwrap(), b"by hand");
    assert!(!begun.exists(), "what was begun is cleared away");
}

#[test]
fn a_damaged_store_is_said_too_where_the_pass_before_left_what_it_saw() {
    // case: O-06
    let (_folder, ground, bundle) = machine();
    reconcile(&ground, Some(bundle)).unwrap();
    reconcile(&ground, None).unwrap();
    let store = Store::open(&ground, true, clock::system().now()).unwrap().store;
    assert!(Memory::kept(&store, &ground).is_there(), "it is left by the pass that found nothing to do");
    store.close();
    let sound = std::fs::read(ground.store()).unwrap();
    for page in 1..sound.len() / 4096 {
        let mut damaged = sound.clone();
        damaged[page * 4096..(page + 1) * 4096].fill(0xAB);
        std::fs::write(ground.store(), &damaged).unwrap();
        let refusal = reconcile(&ground, None).unwrap_err();
        assert_eq!(refusal.code, "store_damaged", "page {page}: {refusal:?}");
        assert_eq!(std::fs::read(ground.store()).unwrap(), damaged, "page {page}");
    }
}
