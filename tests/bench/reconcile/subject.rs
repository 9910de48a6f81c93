//! What is measured: N declared files of 1 KiB, as a bundle that was rendered before, held by the daemon's own loop in
//! this process, or by the program as it is shipped. They lie below a folder of the benchmark's own; on a machine of the
//! lab on the machine itself, and with more beside them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::{Value, json};
use tenure_actors::clock::ManualClock;
use tenure_host::bundle::Bundle;
use tenure_host::ground::Ground;
use tenure_host::identity::StoredIdentity;
use tenure_host::reconcile::{Setting, SharedMemory, by_hand};
use tenure_host::resource::Reading;
use tenure_host::store::Store;
use tenure_protocol::enrolment::Briefing;
use tenure_protocol::id::{
    ControlPlaneId, Digest, Epoch, EpochId, FencingToken, Generation, Millis, NodeId, NodeUuid, Rental,
};
use tenure_protocol::machine::Mode;
use tenure_protocol::outcome::Outcome;
use tenure_protocol::proof::PublicKey;
use tenure_protocol::report::Summary;
use tenure_tests::program::{self, Ran, run};
use tenure_tests::sandbox::text;

use super::floor::{Files, Wanted};

/// So many files lie in one directory.
const IN_A_DIRECTORY: usize = 100;

/// A bundle, and the files it declares.
pub(crate) struct Subject {
    folder: tempfile::TempDir,
    ground: Ground,
    pub(crate) files: Files,
    /// How often something was moved out of the way.
    moved: AtomicUsize,
}

impl Subject {
    /// N files, declared; nothing is applied.
    pub(crate) fn of(n: usize) -> Self {
        let folder = folder();
        let ground = Ground::new(folder.path().join("root"), true);
        Self::declared(folder, ground, n, Vec::new())
    }

    /// N files on the machine that this runs on, and what else is declared of it: for a machine of the lab.
    pub(crate) fn of_machine(n: usize, more: Vec<Value>) -> Self {
        Self::declared(folder(), Ground::machine(), n, more)
    }

    fn declared(folder: tempfile::TempDir, ground: Ground, n: usize, more: Vec<Value>) -> Self {
        let blobs = folder.path().join("bundle/blobs/sha256");
        std::fs::create_dir_all(&blobs).expect("a folder of the benchmark");
        let (mut directories, mut wanted, mut resources) = (Vec::new(), Vec::new(), more);
        let standing =
            |path: &str, mode: &str| json!({"path": path, "mode": mode, "owner": "root", "group": "root"});
        resources.push(resource("directory", "/srv", standing("/srv", "0755")));
        for at in 0..n {
            let directory = at / IN_A_DIRECTORY;
            let above = format!("/srv/{directory:03}");
            if at % IN_A_DIRECTORY == 0 {
                resources.push(resource("directory", &above, standing(&above, "0755")));
                directories.push(ground.at(&above));
            }
            let (name, bytes) = (format!("{at:05}.conf"), format!("{at:>1023}\n").into_bytes());
            let sha256 = Digest::of(&bytes).to_string();
            std::fs::write(blobs.join(&sha256), &bytes).expect("a file of the benchmark");
            let path = format!("{above}/{name}");
            let mut spec = standing(&path, "0644");
            spec["content"] = json!({"sha256": sha256, "size": bytes.len()});
            resources.push(resource("file", &path, spec));
            wanted.push(Wanted { directory, name, bytes });
        }
        let declaration = json!({
            "control_plane_id": "6f1c1b3e-8d2f-4c55-9d0e-2b7a4c8f9e10",
            "node": "edge-1", "generation": 1,
            "epoch": {"number": 1, "id": "6f1c1b3e-8d2f-4c55-9d0e-2b7a4c8f9e11"},
            "revision": 1, "mode": "converged", "taken": [], "allowed_removals": null, "is_final": false,
            "resources": resources,
        });
        std::fs::write(folder.path().join("bundle/declaration.json"), declaration.to_string())
            .expect("a file of the benchmark");
        Self { folder, ground, files: Files { directories, wanted }, moved: AtomicUsize::new(0) }
    }

    /// A place in the folder of this subject.
    pub(crate) fn at(&self, place: &str) -> PathBuf {
        self.folder.path().join(place)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// An empty root with the bundle in its store, and nothing of it applied.
    pub(crate) fn fresh(&self) -> Held {
        self.empty();
        self.declare()
    }

    /// Makes the root one in which nothing is.
    pub(crate) fn empty(&self) {
        let root = self.at("root");
        self.clear(&root);
        std::fs::create_dir(&root).expect("it can be made");
    }

    /// Moves what lies there out of the way, to be removed with everything else.
    pub(crate) fn clear(&self, place: &Path) {
        if place.exists() {
            let at = self.moved.fetch_add(1, Ordering::Relaxed);
            std::fs::rename(place, self.at(&format!("moved-{at}"))).expect("it can be moved");
        }
    }

    /// Opens the store of what is measured, and declares the bundle.
    pub(crate) fn declare(&self) -> Held {
        Held::open(&self.ground, Some(&self.at("bundle")))
    }

    /// Opens the store of what is measured, as a daemon that was just started: nothing is remembered.
    pub(crate) fn start(&self) -> Held {
        Held::open(&self.ground, None)
    }

    /// Applied once, where nobody measures that.
    pub(crate) fn apply(&self) {
        let held = self.fresh();
        held.pass(Reading::Whole);
        held.close();
    }

    /// Makes it a machine of a control plane nobody answers for: a host without an identity holds nothing by itself.
    pub(crate) fn belong(&self) {
        let now = tenure_actors::clock::system().now();
        let store = Store::open(&self.ground, true, now).expect("a store").store;
        store.set_identity(&identity()).expect("it is kept");
        store.close();
    }

    /// So many files, spread evenly, are changed by somebody else; other ones in each round.
    pub(crate) fn drift(&self, many: usize, round: usize) {
        let apart = self.files.wanted.len() / many;
        for file in self.files.wanted.iter().skip(round % apart).step_by(apart).take(many) {
            let path = self.files.directories[file.directory].join(&file.name);
            std::fs::write(path, format!("{:>1023}\n", "drift")).expect("it can be written");
        }
    }

    /// Runs the program on what is measured.
    pub(crate) fn program(&self, arguments: &[&str]) -> Ran {
        let root = text(self.ground.root());
        run("tenure-host", &self.command(arguments, &root), self.folder())
    }

    /// One `tenure-host apply` as a process, of what is stored or of a bundle, from exec to exit, in milliseconds. No
    /// daemon may run beside it.
    pub(crate) fn applied_by_process(&self, bundle: &[&str]) -> f64 {
        let (host, root) = (program::folder().join("tenure-host"), text(self.ground.root()));
        program::timed(&host, &self.command(&[&["apply"], bundle].concat(), &root)).as_secs_f64() * 1_000.0
    }

    fn command<'a>(&self, arguments: &[&'a str], root: &'a str) -> Vec<&'a str> {
        let place: &[&str] = if self.ground.is_sandbox() { &["--root", root, "--sandbox"] } else { &[] };
        [arguments, place, &["--json"]].concat()
    }
}

fn folder() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("tenure-bench-").tempdir().expect("a folder")
}

/// One resource of a declaration.
pub(crate) fn resource(kind: &str, name: &str, spec: Value) -> Value {
    json!({"key": format!("{kind}:{name}"), "module": "web", "needs": [], "spec": spec})
}

fn identity() -> StoredIdentity {
    StoredIdentity {
        control_plane_id: "6f1c1b3e-8d2f-4c55-9d0e-2b7a4c8f9e10".parse::<ControlPlaneId>().expect("an id"),
        epoch: Epoch { number: 1, id: EpochId::from_bytes([1; 16]) },
        node: NodeId::new("edge-1").expect("a name"),
        node_uuid: NodeUuid::from_bytes([9; 16]),
        rental: Rental::new("own").expect("a name"),
        generation: Generation(1),
        fencing: FencingToken(1),
        mode: Mode::Converged,
        enrolled_at: Millis(1),
        roots: Vec::new(),
        // Nobody listens there.
        addresses: vec!["127.0.0.1:9".to_owned()],
        key: PublicKey::from_bytes([3; 32]),
        token: Digest::of(b"token"),
        briefing: Briefing::default(),
    }
}

/// A machine whose loop lies in this process.
pub(crate) struct Held {
    setting: Setting,
    clock: ManualClock,
}

impl Held {
    fn open(ground: &Ground, bundle: Option<&Path>) -> Self {
        let ground = ground.clone();
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
    pub(crate) fn pass(&self, reading: Reading) -> (f64, Summary) {
        self.clock.advance(std::time::Duration::from_secs(600));
        let began = Instant::now();
        let (summary, trouble) = by_hand(&self.setting, reading).expect("a pass");
        let took = began.elapsed().as_secs_f64() * 1_000.0;
        assert!(trouble.is_none(), "{trouble:?}");
        (took, summary)
    }

    /// One pass that finds nothing to do.
    pub(crate) fn unchanged(&self, reading: Reading) -> f64 {
        let (took, summary) = self.pass(reading);
        assert_eq!(summary.counts.get(Outcome::Unchanged), summary.counts.total(), "{summary:?}");
        took
    }

    /// Gives the store free, for a program.
    pub(crate) fn close(self) {
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
