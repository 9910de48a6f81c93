use tenure_actors::clock::Moment;

use super::*;
use crate::ground::Ground;

struct Made {
    folder: tempfile::TempDir,
    store: Store,
}

fn made(content: &[u8], revision: u64) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let ground = Ground::new(folder.path().join("root"), true);
    ground.create().unwrap();
    let store = Store::open(&ground, true, Moment::from_millis(1)).unwrap().store;
    write(&folder.path().join("bundle"), content, revision);
    Made { folder, store }
}

fn write(bundle: &std::path::Path, content: &[u8], revision: u64) {
    let sha256 = Digest::of(content);
    let json = serde_json::json!({
        "control_plane_id": "6f1c1b3e-8d2f-4c55-9d0e-2b7a4c8f9e10",
        "node": "edge-1", "generation": 1,
        "epoch": { "number": 1, "id": "6f1c1b3e-8d2f-4c55-9d0e-2b7a4c8f9e11" },
        "revision": revision, "mode": "converged", "taken": [], "allowed_removals": null, "is_final": false,
        "resources": [{ "key": "file:/srv/a", "module": "base", "needs": [], "spec": {
            "path": "/srv/a", "content": { "sha256": sha256.to_string(), "size": content.len() },
            "mode": "0644", "owner": "root", "group": "root" } }]
    });
    std::fs::create_dir_all(bundle.join("blobs/sha256")).unwrap();
    std::fs::write(bundle.join("declaration.json"), serde_json::to_vec(&json).unwrap()).unwrap();
    std::fs::write(bundle.join("blobs/sha256").join(sha256.to_string()), content).unwrap();
}

impl Made {
    fn bundle(&self) -> Bundle {
        Bundle::open(self.folder.path().join("bundle")).unwrap()
    }

    fn blob(&self, content: &[u8]) -> PathBuf {
        self.folder.path().join("bundle/blobs/sha256").join(Digest::of(content).to_string())
    }
}

#[test]
fn a_bundle_is_taken_whole_small_and_large_content_alike_and_again_is_the_same() {
    for content in [&b"small"[..], &[7; 300_000], b""] {
        let made = made(content, 1);
        let bundle = made.bundle();
        assert_eq!(bundle.keep(&made.store, None).unwrap(), Admitted::New);
        let kept = made.store.reader(Digest::of(content)).unwrap().unwrap().read_all().unwrap();
        assert_eq!(kept, content);
        assert_eq!(made.store.declaration().unwrap().unwrap().sha256, bundle.sha256());
        assert_eq!(bundle.keep(&made.store, None).unwrap(), Admitted::Same);
    }
}

// rule: S-11
#[test]
fn content_that_is_not_what_it_is_named_by_makes_the_bundle_refused_whole() {
    let content = b"what it says";
    let made = made(content, 1);
    std::fs::write(made.blob(content), b"what it sayz").unwrap();
    assert_eq!(made.bundle().keep(&made.store, None).unwrap_err().code(), "bundle_content");
    std::fs::write(made.blob(content), b"short").unwrap();
    assert_eq!(made.bundle().keep(&made.store, None).unwrap_err().code(), "bundle_content");
    std::fs::remove_file(made.blob(content)).unwrap();
    assert_eq!(made.bundle().keep(&made.store, None).unwrap_err().code(), "bundle_unreadable");
    assert_eq!(made.store.declaration().unwrap(), None);
}

// case: O-65
#[test]
fn a_truncated_or_older_bundle_is_refused_and_the_last_good_one_stays() {
    let made = made(b"x", 5);
    made.bundle().keep(&made.store, None).unwrap();
    let held = made.store.declaration().unwrap();
    let older = made.folder.path().join("older");
    write(&older, b"y", 4);
    let refusal = Bundle::open(&older).unwrap().keep(&made.store, None).unwrap_err();
    assert_eq!(refusal.code(), "older_revision");
    let path = older.join("declaration.json");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert_eq!(Bundle::open(&older).unwrap_err().code(), "bundle_declaration");
    assert_eq!(made.store.declaration().unwrap(), held);
}
