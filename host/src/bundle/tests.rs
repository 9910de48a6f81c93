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

/// Takes both ways a bundle is read, and says with which code.
fn codes(made: &Made) -> (String, String) {
    let open = || Bundle::open(made.folder.path().join("bundle"));
    let code =
        |result: Result<(), BundleError>| result.map_or_else(|e| e.code().to_owned(), |()| String::new());
    (
        code(open().and_then(|bundle| bundle.check())),
        code(open().and_then(|bundle| bundle.keep(&made.store, None).map(drop))),
    )
}

// rule: S-11
#[test]
fn what_stands_in_for_a_file_of_a_bundle_is_refused_and_neither_waited_for_nor_read_without_end() {
    use std::os::unix::fs::symlink;
    let content = b"what it says";
    for name in ["declaration.json".to_owned(), format!("blobs/sha256/{}", Digest::of(content))] {
        let places: [fn(&std::path::Path); 5] = [
            |path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap(),
            |path| symlink("/dev/zero", path).unwrap(),
            |path| {
                let real = path.with_extension("real");
                std::fs::write(&real, b"what it says").unwrap();
                symlink(real, path).unwrap();
            },
            |path| std::fs::create_dir(path).unwrap(),
            |path| File::create(path).unwrap().set_len(1 << 40).unwrap(),
        ];
        for put in places {
            let made = made(content, 1);
            let path = made.folder.path().join("bundle").join(&name);
            std::fs::remove_file(&path).unwrap();
            put(&path);
            let (check, keep) = codes(&made);
            assert!(["bundle_unreadable", "bundle_content"].contains(&check.as_str()), "{name}: {check}");
            assert_eq!(check, keep);
            assert_eq!(made.store.declaration().unwrap(), None);
        }
    }
}

#[test]
fn a_bundle_is_checked_whole_before_it_is_shown_and_what_it_does_not_name_is_not_looked_at() {
    let content = b"what it says";
    let made = made(content, 1);
    std::fs::write(made.folder.path().join("bundle/README"), "theirs").unwrap();
    nix::unistd::mkfifo(&made.blob(b"other"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    made.bundle().check().unwrap();
    std::fs::write(made.blob(content), b"what it sayz").unwrap();
    assert_eq!(made.bundle().check().unwrap_err().code(), "bundle_content");
    std::fs::remove_file(made.blob(content)).unwrap();
    assert_eq!(made.bundle().check().unwrap_err().code(), "bundle_unreadable");
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
