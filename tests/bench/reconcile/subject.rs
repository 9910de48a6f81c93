//! What is measured: a root with N declared files of 1 KiB, as a bundle that was rendered before, held by the daemon's
//! own loop in this process, or by the program as it is shipped.

use std::path::{Path, PathBuf};
use std::time::Instant;

use tenure_actors::clock::ManualClock;
use tenure_host::bundle::Bundle;
use tenure_host::ground::Ground;
use tenure_host::reconcile::{Setting, SharedMemory, by_hand};
use tenure_host::resource::Reading;
use tenure_host::store::Store;
use tenure_protocol::id::Digest;
use tenure_protocol::report::Summary;
use tenure_tests::program::{Ran, run};
use tenure_tests::sandbox::text;

use super::floor::{Files, Wanted};

/// So many files lie in one directory.
const IN_A_DIRECTORY: usize = 100;

/// A bundle, and the files it declares below `root`.
pub(super) struct Subject {
    folder: tempfile::TempDir,
    pub(super) files: Files,
}

impl Subject {
    /// N files, declared; nothing is applied.
    pub(super) fn of(n: usize) -> Self {
        let folder = tempfile::Builder::new().prefix("tenure-bench-").tempdir().expect("a folder");
        let blobs = folder.path().join("bundle/blobs/sha256");
        std::fs::create_dir_all(&blobs).expect("a folder of the benchmark");
        let (mut directories, mut wanted, mut resources) = (Vec::new(), Vec::new(), Vec::new());
        let standing = |path: &str, mode: &str| serde_json::json!({"path": path, "mode": mode, "owner": "root", "group": "root"});
        let resource = |kind: &str, spec: serde_json::Value| {
            serde_json::json!({
                "key": format!("{kind}:{}", spec["path"].as_str().expect("a path")), "module": "web", "needs": [],
                "spec": spec
            })
        };
        resources.push(resource("directory", standing("/srv", "0755")));
        for at in 0..n {
            let directory = at / IN_A_DIRECTORY;
            let above = format!("/srv/{directory:03}");
            if at % IN_A_DIRECTORY == 0 {
                resources.push(resource("directory", standing(&above, "0755")));
                directories.push(folder.path().join("root").join(&above[1..]));
            }
            let (name, bytes) = (format!("{at:05}.conf"), format!("{at:>1023}\n").into_bytes());
            let sha256 = Digest::of(&bytes).to_string();
            std::fs::write(blobs.join(&sha256), &bytes).expect("a file of the benchmark");
            let mut spec = standing(&format!("{above}/{name}"), "0644");
            spec["content"] = serde_json::json!({"sha256": sha256, "size": bytes.len()});
            resources.push(resource("file", spec));
            wanted.push(Wanted { directory, name, bytes });
        }
        let declaration = serde_json::json!({
            "control_plane_id": "6f1c1b3e-8d2f-4c55-9d0e-2b7a4c8f9e10",
            "node": "edge-1", "generation": 1,
            "epoch": {"number": 1, "id": "6f1c1b3e-8d2f-4c55-9d0e-2b7a4c8f9e11"},
            "revision": 1, "mode": "converged", "taken": [], "allowed_removals": null, "is_final": false,
            "resources": resources,
        });
        std::fs::write(folder.path().join("bundle/declaration.json"), declaration.to_string())
            .expect("a file of the benchmark");
        Self { folder, files: Files { directories, wanted } }
    }

    /// A place in the folder of this subject.
    pub(super) fn at(&self, place: &str) -> PathBuf {
        self.folder.path().join(place)
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// An empty machine with the bundle in its store, and nothing of it applied.
    pub(super) fn fresh(&self) -> Held {
        let root = self.at("root");
        if root.exists() {
            std::fs::remove_dir_all(&root).expect("it can be removed");
        }
        std::fs::create_dir(&root).expect("it can be made");
        Held::open(&root, Some(&self.at("bundle")))
    }

    /// Runs the program on this subject's root.
    pub(super) fn program(&self, arguments: &[&str]) -> Ran {
        let root = text(&self.at("root"));
        let arguments: Vec<&str> =
            arguments.iter().copied().chain(["--root", &root, "--sandbox", "--json"]).collect();
        run("tenure-host", &arguments, self.folder())
    }
}

/// A machine whose loop lies in this process.
pub(super) struct Held {
    setting: Setting,
    clock: ManualClock,
}

impl Held {
    /// Opens the store of this root; with a bundle it is declared.
    pub(super) fn open(root: &Path, bundle: Option<&Path>) -> Self {
        let ground = Ground::new(root, true);
        ground.create().expect("the directories of the host");
        // An hour ahead: what was written just now is old enough to be trusted.
        let clock = ManualClock::at(tenure_actors::clock::system().now().plus(HOUR));
        let store = Store::open(&ground, true, clock_now(&clock)).expect("a store").store;
        if let Some(bundle) = bundle {
            Bundle::open(bundle).expect("a bundle").keep(&store, None).expect("it is kept");
        }
        let setting = Setting {
            ground,
            store,
            clock: std::sync::Arc::new(clock.clone()),
            outbox: tenure_host::outbox::Outbox::default(),
            every: HOUR,
            full_look: HOUR * 1_000,
            memory: SharedMemory::default(),
            progress: tenure_actors::watchdog::Progress::new(),
            anew: std::sync::Arc::default(),
        };
        Self { setting, clock }
    }

    /// One pass, timed, in milliseconds.
    pub(super) fn pass(&self, reading: Reading) -> (f64, Summary) {
        self.clock.advance(std::time::Duration::from_secs(600));
        let began = Instant::now();
        let (summary, trouble) = by_hand(&self.setting, reading).expect("a pass");
        let took = began.elapsed().as_secs_f64() * 1_000.0;
        assert!(trouble.is_none(), "{trouble:?}");
        (took, summary)
    }

    /// Gives the store free, for a program.
    pub(super) fn close(self) {
        let Self { setting, .. } = self;
        let store = setting.store.clone();
        drop(setting);
        store.close();
    }
}

const HOUR: std::time::Duration = std::time::Duration::from_secs(3_600);

fn clock_now(clock: &ManualClock) -> tenure_actors::clock::Moment {
    tenure_actors::clock::Clock::now(clock)
}
