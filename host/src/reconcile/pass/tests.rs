//! Whole passes over a real directory tree, with a real store.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use tenure_actors::clock::{ManualClock, Moment};
use tenure_protocol::content::Piece;
use tenure_protocol::event;
use tenure_protocol::id::Digest;
use tenure_protocol::outcome::Origin;
use tenure_protocol::outcome::Outcome::{self, *};

use super::*;

mod adopted;
mod carried;
mod cut_short;
mod dying;
mod foresight;
mod judged;
mod leaving;
mod named;
mod own;
mod owners;
mod packages;
mod quiet;
mod raced;
mod recovery;
mod refused;
mod remarks;
mod scripted;
mod secret;
mod speed;
mod told;
mod tricks;
mod trouble;
mod unit_states;
mod units;

/// A machine of its own: a root, a store, a clock. It is a sandbox when the tests do not run as root.
struct Machine {
    _folder: tempfile::TempDir,
    ground: Ground,
    store: Store,
    clock: ManualClock,
    head: Head,
    resources: Vec<serde_json::Value>,
    /// The machine's own programs; none: it is a folder.
    scripted: Option<scripted::Scripted>,
}

struct Head {
    revision: u64,
    mode: &'static str,
    taken: Vec<&'static str>,
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ground = Ground::new(folder.path().join("root"), !is_root());
        std::fs::create_dir(ground.root()).unwrap();
        Self::on(folder, ground)
    }

    fn on(folder: tempfile::TempDir, ground: Ground) -> Self {
        ground.create().unwrap();
        let store = Store::open(&ground, true, Moment::from_millis(1)).unwrap().store;
        let clock = ManualClock::at(Moment::from_millis(1_000));
        let head = Head { revision: 1, mode: "converged", taken: Vec::new() };
        let machine =
            Self { _folder: folder, ground, store, clock, head, resources: Vec::new(), scripted: None };
        std::fs::create_dir_all(machine.at("/srv")).unwrap();
        machine
    }

    fn adopted() -> Self {
        let mut machine = Self::new();
        machine.head.mode = "adopted";
        machine
    }

    fn at(&self, path: &str) -> PathBuf {
        self.ground.at(path)
    }

    fn content(&self, bytes: &[u8]) -> serde_json::Value {
        let sha256 = Digest::of(bytes);
        let size = u64::try_from(bytes.len()).unwrap();
        let mut offset = 0;
        for part in bytes.chunks(128 * 1024).chain(bytes.is_empty().then_some(&[][..])) {
            self.store.put_piece(Piece { sha256, size, offset, bytes: part.to_vec() }).unwrap();
            offset += u64::try_from(part.len()).unwrap();
        }
        serde_json::json!({ "sha256": sha256.to_string(), "size": size })
    }

    fn entry(&mut self, kind: &str, spec: serde_json::Value, needs: &[&str]) -> &mut serde_json::Value {
        let key = format!("{kind}:{}", spec["path"].as_str().unwrap());
        self.resources.retain(|entry| entry["key"] != *key);
        self.resources.push(serde_json::json!({
            "key": key, "module": "base", "needs": needs, "spec": spec
        }));
        self.resources.last_mut().unwrap()
    }

    fn file_with(&mut self, path: &str, bytes: &str, more: serde_json::Value) -> &mut serde_json::Value {
        let mut spec = serde_json::json!({
            "path": path, "content": self.content(bytes.as_bytes()),
            "mode": "0644", "owner": "root", "group": "root"
        });
        for (name, value) in more.as_object().unwrap() {
            spec[name] = value.clone();
        }
        self.entry("file", spec, &[])
    }

    fn file(&mut self, path: &str, bytes: &str) {
        self.file_with(path, bytes, serde_json::json!({}));
    }

    fn directory(&mut self, path: &str, mode: &str) {
        let spec = serde_json::json!({ "path": path, "mode": mode, "owner": "root", "group": "root" });
        self.entry("directory", spec, &[]);
    }

    fn absent(&mut self, kind: &str, path: &str) {
        self.entry(kind, serde_json::json!({ "path": path, "absent": true }), &[]);
    }

    fn forget(&mut self, key: &str) {
        self.resources.retain(|entry| entry["key"] != key);
    }

    fn declaration(&self) -> Declaration {
        Declaration::parse(&self.declared()).unwrap()
    }

    fn declared(&self) -> Vec<u8> {
        let json = serde_json::json!({
            "control_plane_id": "6f1c1b3e-8d2f-4c55-9d0e-2b7a4c8f9e10",
            "node": "edge-1", "generation": 1,
            "epoch": { "number": 1, "id": "6f1c1b3e-8d2f-4c55-9d0e-2b7a4c8f9e11" },
            "revision": self.head.revision, "mode": self.head.mode, "taken": self.head.taken,
            "allowed_removals": null, "is_final": false, "resources": self.resources,
        });
        serde_json::to_vec(&json).unwrap()
    }

    fn pass(&self) -> PassDone {
        self.pass_of(Some(self.declaration()))
    }

    fn pass_of(&self, declaration: Option<Declaration>) -> PassDone {
        self.pass_with(declaration, &|_| {})
    }

    /// A pass in which this happens after so many were looked at.
    fn pass_looking(&self, meanwhile: &(dyn Fn(usize) + Sync)) -> PassDone {
        self.pass_with(Some(self.declaration()), meanwhile)
    }

    fn pass_with(&self, declaration: Option<Declaration>, meanwhile: &(dyn Fn(usize) + Sync)) -> PassDone {
        self.clock.advance(std::time::Duration::from_secs(1));
        let before = self.before(declaration.as_ref());
        let done = self.run(declaration, meanwhile);
        foresight::came(&before, &done);
        done
    }

    /// A pass that is not compared with what was foreseen of it.
    fn pass_unforeseen(&self) -> PassDone {
        self.clock.advance(std::time::Duration::from_secs(1));
        self.run(Some(self.declaration()), &|_| {})
    }

    fn run(&self, declaration: Option<Declaration>, meanwhile: &(dyn Fn(usize) + Sync)) -> PassDone {
        self.run_told(declaration, meanwhile, &|_| {}, &AtomicBool::new(false))
    }

    /// A pass in which this happens after so many were looked at, and that after each that is done.
    fn run_told(
        &self,
        declaration: Option<Declaration>,
        looked: &(dyn Fn(usize) + Sync),
        progress: &(dyn Fn(Progress<'_>) + Sync),
        cancelled: &AtomicBool,
    ) -> PassDone {
        run(&PassInput {
            ground: &self.ground,
            programs: self.scripted.as_ref().map(|scripted| -> &dyn Programs { scripted }),
            store: &self.store,
            clock: &self.clock,
            declaration: declaration.map(Arc::new),
            trigger: Trigger::Timer,
            refused: None,
            looked,
            progress,
            cancelled,
        })
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.at(path)).unwrap()
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::write(self.at(path), text).unwrap();
        std::fs::set_permissions(self.at(path), std::fs::Permissions::from_mode(0o644)).unwrap();
    }

    fn mode(&self, path: &str) -> u32 {
        self.at(path).symlink_metadata().unwrap().mode() & 0o7777
    }

    /// No temporary was left anywhere.
    fn is_clean(&self) -> bool {
        fn clean(folder: &Path) -> bool {
            std::fs::read_dir(folder).unwrap().map(Result::unwrap).all(|entry| {
                let name = entry.file_name().into_string().unwrap();
                !name.starts_with(".tenure-")
                    && (!entry.file_type().unwrap().is_dir() || clean(&entry.path()))
            })
        }
        clean(self.ground.root())
    }
}

fn line<'a>(done: &'a PassDone, key: &str) -> &'a ResourceOutcome {
    done.outcomes.iter().find(|line| line.key == key).unwrap_or_else(|| panic!("{key} is not in {done:#?}"))
}

fn outcome(done: &PassDone, key: &str) -> (Outcome, Option<String>) {
    let line = line(done, key);
    (line.outcome, line.code.clone())
}

fn reason<'a>(done: &'a PassDone, key: &str) -> &'a str {
    line(done, key).reason.as_deref().unwrap_or("")
}

fn kinds(done: &PassDone) -> Vec<&str> {
    done.events.iter().map(|event| event.kind.as_str()).collect()
}

#[test]
fn what_is_declared_is_made_and_the_next_pass_is_quiet() {
    // rule: H-10
    let mut machine = Machine::new();
    machine.directory("/srv/app", "0750");
    machine.file("/srv/app/a.conf", "hello\n");
    machine.file("/srv/empty", "");
    let done = machine.pass();
    assert_eq!(line(&done, "directory:/srv/app").outcome, Applied);
    assert_eq!(line(&done, "file:/srv/app/a.conf").outcome, Applied);
    assert_eq!(machine.read("/srv/app/a.conf"), "hello\n");
    assert_eq!(machine.read("/srv/empty"), "");
    assert_eq!(machine.mode("/srv/app"), 0o750);
    assert_eq!(machine.mode("/srv/app/a.conf"), 0o644);
    assert!(machine.is_clean());
    let quiet = machine.pass();
    assert_eq!(quiet.summary.counts.in_words(), "3 unchanged");
    assert_eq!(quiet.summary.owned, 3);
    let quieter = machine.pass();
    assert_eq!((quieter.changed, quieter.events, quieter.forgotten), (vec![], vec![], vec![]));
    assert_eq!(quieter.summary.digest, quiet.summary.digest);
    assert_eq!(line(&quiet, "file:/srv/empty").count, 1);
    assert_eq!(machine.store.outcomes_page(None, 10).unwrap()[0].count, 2);
}

#[test]
fn drift_is_put_right_and_told_by_what_it_was() {
    let mut machine = Machine::new();
    machine.file("/srv/a", "ours");
    machine.directory("/srv/d", "0755");
    machine.pass();
    machine.write("/srv/a", "theirs");
    std::fs::set_permissions(machine.at("/srv/d"), std::fs::Permissions::from_mode(0o700)).unwrap();
    let done = machine.pass();
    assert_eq!(outcome(&done, "file:/srv/a"), (Applied, Some("drift".to_owned())));
    assert!(reason(&done, "file:/srv/a").contains("its content was changed"));
    assert!(reason(&done, "directory:/srv/d").contains("its mode was changed from 0755 to 0700"));
    assert_eq!(kinds(&done), [event::DRIFT_REPAIRED, event::DRIFT_REPAIRED]);
    assert_eq!(machine.store.spooled(10).unwrap().len(), 2);
    assert_eq!(machine.read("/srv/a"), "ours");
    assert_eq!(machine.mode("/srv/d"), 0o755);
    // A new wish is no drift.
    machine.file("/srv/a", "newer");
    let done = machine.pass();
    assert_ne!(line(&done, "file:/srv/a").code.as_deref(), Some("drift"));
    assert_eq!((line(&done, "file:/srv/a").outcome, kinds(&done).len()), (Applied, 0));
}

#[test]
fn a_file_written_once_stays_the_machines_own_and_keeps_its_content_when_its_mode_is_put_right() {
    let mut machine = Machine::new();
    machine.file_with("/srv/once", "first", serde_json::json!({ "create_once": true }));
    machine.pass();
    machine.write("/srv/once", "edited by the machine");
    assert_eq!(line(&machine.pass(), "file:/srv/once").outcome, Unchanged);
    std::fs::set_permissions(machine.at("/srv/once"), std::fs::Permissions::from_mode(0o666)).unwrap();
    let done = machine.pass();
    assert_eq!(line(&done, "file:/srv/once").outcome, Applied);
    assert_eq!(
        (machine.read("/srv/once").as_str(), machine.mode("/srv/once")),
        ("edited by the machine", 0o644)
    );
    // It is not what we wrote any more: leaving does not remove it.
    machine.forget("file:/srv/once");
    machine.file("/srv/other", "x");
    let done = machine.pass();
    assert_eq!(line(&done, "file:/srv/once").outcome, Released);
    assert_eq!(machine.read("/srv/once"), "edited by the machine");
}

#[test]
fn what_needs_a_thing_that_failed_waits_and_the_rest_goes_on() {
    // rule: H-10
    let mut machine = Machine::new();
    machine.file_with("/srv/a", "a", serde_json::json!({ "owner": "nobody-knows-me" }));
    machine.file("/srv/b", "b");
    machine.resources.last_mut().unwrap()["needs"] = serde_json::json!(["file:/srv/a"]);
    machine.file("/srv/c", "c");
    machine.resources.last_mut().unwrap()["needs"] = serde_json::json!(["file:/srv/d"]);
    machine.file("/srv/d", "d");
    let done = machine.pass();
    if is_root() {
        assert_eq!(outcome(&done, "file:/srv/a"), (Failed, Some("unknown_owner".to_owned())));
        assert_eq!(outcome(&done, "file:/srv/b"), (Outstanding, Some("needs_failed".to_owned())));
        assert!(reason(&done, "file:/srv/b").contains("file:/srv/a"));
        assert!(!machine.at("/srv/b").exists());
        let again = machine.pass();
        let failed = line(&again, "file:/srv/a");
        assert_eq!((failed.count, failed.since), (2, line(&done, "file:/srv/a").since));
        assert!(again.changed.iter().any(|line| line.key == "file:/srv/a"));
        assert_eq!((kinds(&done), kinds(&again).len()), (vec![event::FAILURE_BEGAN], 0));
        machine.file("/srv/a", "a");
        let mended = machine.pass();
        assert_eq!(kinds(&mended), [event::FAILURE_ENDED]);
        assert_eq!(line(&mended, "file:/srv/a").outcome, Applied);
    } else {
        eprintln!("owners are not set without root: only the order is tested");
    }
    assert_eq!(line(&done, "file:/srv/c").outcome, Applied);
}

#[test]
fn parents_come_before_children_and_removals_of_directories_last() {
    let mut machine = Machine::new();
    machine.directory("/srv/x/y/z", "0755");
    machine.directory("/srv/x/y", "0755");
    machine.directory("/srv/x", "0755");
    machine.file("/srv/x/y/z/f", "f");
    assert_eq!(machine.pass().summary.counts.in_words(), "4 applied");
    machine.absent("directory", "/srv/x/y/z");
    machine.absent("file", "/srv/x/y/z/f");
    let done = machine.pass();
    assert_eq!(line(&done, "file:/srv/x/y/z/f").outcome, Removed);
    assert_eq!(line(&done, "directory:/srv/x/y/z").outcome, Removed);
    assert!(!machine.at("/srv/x/y/z").exists());
    assert_eq!(line(&machine.pass(), "directory:/srv/x/y/z").outcome, Unchanged);
}

#[test]
fn a_pass_without_a_declaration_is_empty_and_touches_nothing_that_is_ours() {
    let mut machine = Machine::new();
    machine.file("/srv/a", "a");
    machine.pass();
    let done = machine.pass_of(None);
    assert_eq!((done.summary.counts.total(), done.summary.owned), (0, 1));
    assert_eq!(machine.read("/srv/a"), "a");
    assert_eq!(done.forgotten, ["file:/srv/a"]);
}

#[test]
fn a_pass_that_is_told_to_end_while_it_looks_reads_no_further() {
    let mut machine = Machine::new();
    for number in 0..4 {
        machine.file(&format!("/srv/{number}"), "x");
    }
    machine.pass();
    let cancelled = AtomicBool::new(false);
    let done = machine.run_told(
        Some(machine.declaration()),
        &|looked| cancelled.store(looked > 0, Ordering::Relaxed),
        &|_| {},
        &cancelled,
    );
    assert_eq!(done.summary.counts.in_words(), "1 unchanged, 3 outstanding");
    assert_eq!(outcome(&done, "file:/srv/3"), (Outstanding, Some("cancelled".to_owned())));
}

// rule: H-09
// case: O-05
#[test]
fn a_store_that_goes_while_files_are_written_leaves_none_unknown_and_says_of_none_what_is_not_recorded() {
    let mut machine = Machine::new();
    for number in 0..300 {
        machine.file(&format!("/srv/{number:03}"), "x");
    }
    let (store, away) = (machine.ground.store(), machine.at("/store-away"));
    let went = std::sync::Once::new();
    let done = machine.run_told(
        Some(machine.declaration()),
        &|_| {},
        &|_| went.call_once(|| std::fs::rename(&store, &away).unwrap()),
        &AtomicBool::new(false),
    );
    assert_eq!(done.summary.counts.in_words(), "64 applied, 236 outstanding");
    assert_eq!(outcome(&done, "file:/srv/064"), (Outstanding, Some("store_unwritable".to_owned())));
    let written = || std::fs::read_dir(machine.at("/srv")).unwrap().count();
    assert!((65..300).contains(&written()), "the group after the first was in place by then: {}", written());
    let names = std::fs::read_dir(machine.at("/srv")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.filter(|name| name.to_string_lossy().starts_with('.')).count(), 0);
    std::fs::rename(&away, machine.ground.store()).unwrap();
    let mended = machine.pass_unforeseen();
    assert_eq!(
        mended.summary.counts.get(Outcome::Applied) + mended.summary.counts.get(Outcome::Unchanged),
        300
    );
    let origins: Vec<_> =
        machine.store.records().unwrap().into_values().map(|record| record.origin).collect();
    assert_eq!(origins.len(), 300);
    assert!(
        origins.iter().all(|origin| *origin == Origin::Created),
        "every one is known to be ours to remove"
    );
}

#[test]
fn progress_is_told_of_every_resource_and_a_cancelled_pass_leaves_the_rest_outstanding() {
    let mut machine = Machine::new();
    for number in 0..140 {
        machine.file(&format!("/srv/{number:03}"), "x");
    }
    let (cancelled, told) = (AtomicBool::new(false), std::sync::atomic::AtomicUsize::new(0));
    let done = machine.run_told(
        Some(machine.declaration()),
        &|_| {},
        &|at| {
            assert_eq!((at.total, at.done), (140, told.fetch_add(1, Ordering::Relaxed) + 1));
            cancelled.store(true, Ordering::Relaxed);
        },
        &cancelled,
    );
    assert_eq!(told.into_inner(), 140);
    assert_eq!(
        done.summary.counts.in_words(),
        "128 applied, 12 outstanding",
        "the group is done that was put in place while the first was recorded"
    );
    assert_eq!(outcome(&done, "file:/srv/139"), (Outstanding, Some("cancelled".to_owned())));
    assert_eq!(machine.pass().summary.counts.in_words(), "128 unchanged, 12 applied");
}
