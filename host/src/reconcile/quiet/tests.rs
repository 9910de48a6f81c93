//! Passes of a loop that remembers, over a real directory tree and a real store.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use tenure_actors::clock::{Clock as _, ManualClock, Moment};
use tenure_actors::watchdog::Progress;
use tenure_protocol::content::Piece;
use tenure_protocol::declaration::Declaration;
use tenure_protocol::foresight::What;
use tenure_protocol::id::Millis;
use tenure_protocol::outcome::Outcome;
use tenure_protocol::report::Trigger;

use super::*;
use crate::ground::Ground;
use crate::outbox::Outbox;
use crate::reconcile::foresee::{PreviewInput, preview};
use crate::reconcile::{Setting, SharedMemory, by_hand, turn};
use crate::store::{Store, StoredDeclaration};

mod by_hand;
mod part;

const HOUR: Duration = Duration::from_secs(3_600);

struct Machine {
    _folder: tempfile::TempDir,
    setting: Setting,
    clock: ManualClock,
    resources: Vec<serde_json::Value>,
}

fn setting_of(ground: Ground, clock: &ManualClock) -> Setting {
    Setting {
        store: Store::open(&ground, true, clock.now()).unwrap().store,
        ground,
        clock: Arc::new(clock.clone()),
        outbox: Outbox::default(),
        every: HOUR,
        full_look: HOUR,
        memory: SharedMemory::default(),
        progress: Progress::new(),
        anew: Arc::default(),
    }
}

impl Machine {
    /// One whose clock is an hour ahead of the kernel's: what was changed just now counts as changed long ago.
    fn new() -> Self {
        Self::with_clock(tenure_actors::clock::system().now().plus(HOUR))
    }

    fn with_clock(now: Moment) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ground = Ground::new(folder.path().join("root"), !nix::unistd::geteuid().is_root());
        std::fs::create_dir(ground.root()).unwrap();
        ground.create().unwrap();
        std::fs::create_dir(ground.at("/srv")).unwrap();
        let clock = ManualClock::at(now);
        let setting = setting_of(ground, &clock);
        Self { _folder: folder, setting, clock, resources: Vec::new() }
    }

    /// The same, its store closed and opened by another process.
    fn opened_anew(self) -> Self {
        let Self { _folder, setting, clock, resources } = self;
        let Setting { ground, store, .. } = setting;
        store.close();
        let setting = setting_of(ground, &clock);
        Self { _folder, setting, clock, resources }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.setting.ground.at(path)
    }

    fn file(&mut self, path: &str, text: &str, create_once: bool) {
        let sha256 = Digest::of(text.as_bytes());
        let size = u64::try_from(text.len()).unwrap();
        self.setting.store.put_piece(Piece { sha256, size, offset: 0, bytes: text.into() }).unwrap();
        self.resource(
            "file",
            serde_json::json!({
                "path": path, "content": { "sha256": sha256.to_string(), "size": size },
                "mode": "0644", "owner": "root", "group": "root", "create_once": create_once
            }),
        );
    }

    fn resource(&mut self, kind: &str, spec: serde_json::Value) {
        let key = format!("{kind}:{}", spec["path"].as_str().unwrap());
        self.resources.retain(|entry| entry["key"] != *key);
        self.resources.push(serde_json::json!({ "key": key, "module": "base", "needs": [], "spec": spec }));
    }

    fn declare(&self, revision: u64) -> Declaration {
        self.declare_as("converged", revision)
    }

    fn declare_as(&self, mode: &str, revision: u64) -> Declaration {
        let bytes = serde_json::to_vec(&serde_json::json!({
            "control_plane_id": "6f1c1b3e-8d2f-4c55-9d0e-2b7a4c8f9e10", "node": "edge-1", "generation": 1,
            "epoch": { "number": 1, "id": "6f1c1b3e-8d2f-4c55-9d0e-2b7a4c8f9e11" }, "revision": revision,
            "mode": mode, "taken": [], "allowed_removals": null, "is_final": false,
            "resources": self.resources,
        }))
        .unwrap();
        let declaration = Declaration::parse(&bytes).unwrap();
        let (revision, sha256) = (declaration.header.revision(), Digest::of_declaration(&bytes));
        self.setting
            .store
            .put_declaration(StoredDeclaration { revision, sha256, bytes: bytes.into() })
            .unwrap();
        declaration
    }

    fn pass(&self, reading: Reading) -> Summary {
        self.clock.advance(Duration::from_secs(1));
        let (summary, trouble) = by_hand(&self.setting, reading).unwrap();
        assert_eq!(trouble, None);
        summary
    }

    /// A pass as the timer makes it.
    fn look(&self) -> Summary {
        self.pass(Reading::WhatMayHaveChanged)
    }

    /// Whether the next pass may be a quiet one.
    fn is_still(&self) -> bool {
        self.setting.memory.lock().unwrap().still.is_some()
    }

    /// Passes until one has found nothing new.
    fn settle(&self) {
        (0..3).for_each(|_| drop(self.look()));
        assert!(self.is_still());
    }

    /// What a pass that reads everything would change.
    fn drifted(&self, declaration: &Declaration) -> Vec<String> {
        let store = &self.setting.store;
        let input = PreviewInput {
            ground: &self.setting.ground,
            store: Some(store),
            declaration,
            programs: None,
            contents: store,
            now: Millis(0),
            called_off: &std::sync::atomic::AtomicBool::new(false),
        };
        let lines = preview(&input).unwrap().into_iter().filter(|line| line.what != What::Keep);
        let mut keys: Vec<String> = lines.map(|line| line.key).collect();
        keys.sort();
        keys
    }

    /// What the last pass did not find as declared.
    fn found(&self) -> Vec<String> {
        let lines = self.setting.store.outcomes_page(None, 1_000).unwrap();
        let lines = lines.into_iter().filter(|line| line.outcome != Outcome::Unchanged);
        lines.map(|line| line.key).collect()
    }
}

/// What somebody else does to a file that is declared.
#[derive(Debug, Clone)]
enum Deed {
    /// Other content of the same size.
    Write,
    /// The same, and the time of writing set back to what it was.
    WriteUnseen,
    /// The same content, written anew.
    WriteSame,
    /// Content of another size.
    Append,
    Truncate,
    /// Another file in its place, with other content of the same size, mode and time of writing.
    Exchange,
    /// Another file in its place that is just the same.
    ExchangeSame,
    /// Its mode, and its mode back.
    Mode(u32),
    Remove,
    Link,
    Hardlink,
    /// The directory it lies in, moved away and back, or exchanged by a copy.
    MoveDirectory,
    CopyDirectory,
    DirectoryMode(u32),
    Nothing,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        Just(Deed::Write),
        Just(Deed::WriteUnseen),
        Just(Deed::WriteSame),
        Just(Deed::Append),
        Just(Deed::Truncate),
        Just(Deed::Exchange),
        Just(Deed::ExchangeSame),
        prop_oneof![Just(0o644), Just(0o600), Just(0o4755)].prop_map(Deed::Mode),
        Just(Deed::Remove),
        Just(Deed::Link),
        Just(Deed::Hardlink),
        Just(Deed::MoveDirectory),
        Just(Deed::CopyDirectory),
        prop_oneof![Just(0o755), Just(0o700)].prop_map(Deed::DirectoryMode),
        Just(Deed::Nothing),
    ]
}

/// The kernel's clock has ticked since: what happens from now on has a change time of its own, on every kernel.
fn tick(machine: &Machine) {
    let probe = machine.at("/probe");
    let stamp = || {
        std::fs::write(&probe, "").unwrap();
        let seen = probe.metadata().unwrap();
        (seen.ctime(), seen.ctime_nsec())
    };
    let before = stamp();
    while stamp() == before {}
}

fn write_at(path: &PathBuf, text: &str, like: Option<std::time::SystemTime>) {
    std::fs::write(path, text).unwrap();
    if let Some(time) = like {
        std::fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    }
}

fn commit(machine: &Machine, path: &str, deed: &Deed) {
    let place = machine.at(path);
    let directory = place.parent().unwrap().to_owned();
    let is_file = place.symlink_metadata().is_ok_and(|seen| seen.is_file());
    let ours = std::fs::read_to_string(&place).unwrap_or_default();
    let other = "x".repeat(ours.len());
    let time = place.metadata().and_then(|seen| seen.modified()).ok();
    let beside = machine.at("/beside");
    match deed {
        Deed::Write if is_file => write_at(&place, &other, None),
        Deed::WriteUnseen if is_file => write_at(&place, &other, time),
        Deed::WriteSame if is_file => write_at(&place, &ours, None),
        Deed::Append if is_file => write_at(&place, &format!("{ours}and more"), None),
        Deed::Truncate if is_file => write_at(&place, "", None),
        Deed::Exchange | Deed::ExchangeSame if is_file => {
            let text = if matches!(deed, Deed::Exchange) { &other } else { &ours };
            write_at(&beside, text, time);
            let mode = place.metadata().unwrap().permissions();
            std::fs::set_permissions(&beside, mode).unwrap();
            std::fs::rename(&beside, &place).unwrap();
        }
        Deed::Mode(mode) if is_file => {
            std::fs::set_permissions(&place, std::fs::Permissions::from_mode(*mode)).unwrap();
        }
        Deed::Remove if is_file => std::fs::remove_file(&place).unwrap(),
        Deed::Link if is_file => {
            std::fs::rename(&place, machine.at("/linked")).unwrap();
            symlink("../../linked", &place).unwrap();
        }
        Deed::Hardlink if is_file => {
            let _ = std::fs::remove_file(machine.at("/other-name"));
            std::fs::hard_link(&place, machine.at("/other-name")).unwrap();
        }
        Deed::MoveDirectory => {
            std::fs::rename(&directory, &beside).unwrap();
            std::fs::rename(&beside, &directory).unwrap();
        }
        Deed::CopyDirectory => {
            std::fs::create_dir(machine.at("/copy")).unwrap();
            for entry in std::fs::read_dir(&directory).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_file() {
                    std::fs::copy(entry.path(), machine.at("/copy").join(entry.file_name())).unwrap();
                }
            }
            std::fs::remove_dir_all(&directory).unwrap();
            std::fs::rename(machine.at("/copy"), &directory).unwrap();
        }
        Deed::DirectoryMode(mode) => {
            std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(*mode)).unwrap();
        }
        _ => {}
    }
}

const PATHS: [&str; 4] = ["/srv/a/one", "/srv/a/two", "/srv/b/one", "/srv/b/once"];

fn declared() -> (Machine, Declaration) {
    let mut machine = Machine::new();
    for directory in ["/srv/a", "/srv/b"] {
        let spec = serde_json::json!({ "path": directory, "mode": "0755", "owner": "root", "group": "root" });
        machine.resource("directory", spec);
    }
    for path in PATHS {
        machine.file(path, &format!("what is declared of {path}\n"), path.ends_with("once"));
    }
    machine.resource("file", serde_json::json!({ "path": "/srv/a/gone", "absent": true }));
    machine.resource("file", serde_json::json!({ "path": "/srv/nowhere/gone", "absent": true }));
    let declaration = machine.declare(1);
    (machine, declaration)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    // rule: H-10
    #[test]
    fn a_pass_that_goes_by_what_it_remembers_finds_what_one_that_reads_everything_would(
        rounds in prop::collection::vec(prop::collection::vec((0..PATHS.len(), deed()), 0..3), 1..6)
    ) {
        let (machine, declaration) = declared();
        machine.settle();
        for deeds in rounds {
            for (path, deed) in &deeds {
                tick(&machine);
                commit(&machine, PATHS[*path], deed);
            }
            let drifted = machine.drifted(&declaration);
            let summary = machine.look();
            let found = machine.found();
            prop_assert_eq!(&found, &drifted, "{:?}", deeds);
            prop_assert_eq!(summary.counts.total(), 8);
            // What lay in the way of a file is no business of the next round.
            if PATHS.iter().any(|path| machine.at(path).is_symlink()) {
                break;
            }
        }
    }
}

#[test]
fn a_quiet_pass_says_what_the_one_before_said_under_a_number_of_its_own() {
    let (machine, _) = declared();
    machine.settle();
    let (before, after) = (machine.look(), machine.look());
    assert!(after.pass > before.pass && after.started > before.started);
    assert_eq!((after.counts, after.digest, after.owned), (before.counts, before.digest, before.owned));
    assert_eq!(machine.setting.store.last_pass().unwrap(), Some(after.clone()));
    let whole = machine.pass(Reading::Whole);
    assert_eq!((whole.counts, whole.digest), (after.counts, after.digest));
}

#[test]
fn what_appears_on_the_way_to_what_is_declared_absent_is_seen() {
    let (machine, declaration) = declared();
    machine.settle();
    std::fs::create_dir(machine.at("/srv/nowhere")).unwrap();
    machine.look();
    assert_eq!(machine.found(), Vec::<String>::new());
    machine.settle();
    std::fs::write(machine.at("/srv/nowhere/gone"), "back").unwrap();
    assert_eq!(machine.drifted(&declaration), ["file:/srv/nowhere/gone"]);
    machine.look();
    assert_eq!(machine.found(), ["file:/srv/nowhere/gone"]);
}

#[test]
fn a_new_declaration_is_never_answered_from_what_was_seen_under_the_old_one() {
    let (mut machine, _) = declared();
    machine.settle();
    machine.file("/srv/a/one", "what is declared now\n", false);
    machine.declare(2);
    assert_eq!(machine.look().counts.applied, 1);
    assert_eq!(std::fs::read_to_string(machine.at("/srv/a/one")).unwrap(), "what is declared now\n");
}

#[test]
fn an_owner_that_another_number_was_given_is_seen_though_no_file_was_touched() {
    let (machine, _) = declared();
    machine.settle();
    std::fs::create_dir_all(machine.at("/etc")).unwrap();
    std::fs::write(machine.at("/etc/passwd"), "root:x:7:7::/:/bin/sh\n").unwrap();
    machine.look();
    // In a sandbox owners are not set, and there is nothing to see.
    let is_root = nix::unistd::geteuid().is_root();
    assert_eq!(machine.found().len(), if is_root { 6 } else { 0 });
}

/// A change that the kernel does not tell of: by what is remembered the file is untouched.
fn change_unseen(machine: &Machine, path: &str) {
    let place = machine.at(path);
    let length = place.metadata().unwrap().len();
    std::fs::write(&place, "x".repeat(usize::try_from(length).unwrap())).unwrap();
    let path = tenure_protocol::path::DeclaredPath::new(path).unwrap();
    let own = Own::default();
    let walker = Walker::new(&machine.setting.ground, &own).unwrap();
    let (dir, name) = walker.parent(&path).unwrap();
    let crate::walk::read::Found::File(stat) = dir.look(name).unwrap() else { panic!("no file") };
    machine.setting.memory.lock().unwrap().recall.believe(&path, stat);
}

#[test]
fn what_hides_from_change_times_is_found_when_everything_is_read() {
    let (machine, _) = declared();
    machine.settle();
    change_unseen(&machine, "/srv/a/one");
    machine.look();
    assert_eq!(machine.found(), Vec::<String>::new(), "this is what a quiet pass cannot see");
    machine.pass(Reading::Whole);
    assert_eq!(machine.found(), ["file:/srv/a/one"]);
}

#[test]
fn everything_is_read_at_the_stated_interval_and_that_is_remembered() {
    let (mut machine, _) = declared();
    machine.settle();
    let read = |machine: &Machine| machine.setting.memory.lock().unwrap().read_whole();
    let first = read(&machine);
    assert!(first.is_some(), "nothing was known yet");
    machine.look();
    assert_eq!(read(&machine), first);
    machine.setting.full_look = Duration::ZERO;
    let whole = machine.pass(Reading::Whole);
    assert_eq!(read(&machine), Some(whole.started));
    change_unseen(&machine, "/srv/a/two");
    let due = machine.look();
    assert_eq!(machine.found(), ["file:/srv/a/two"]);
    assert_eq!(read(&machine), Some(due.started));
}

#[test]
fn where_something_could_not_be_looked_at_the_rest_is_not_read_whole_each_time_and_nobody_is_told_that_all_was()
 {
    let (mut machine, _) = declared();
    std::fs::write(machine.at("/srv/plain"), "no directory").unwrap();
    machine.file("/srv/plain/file", "x", false);
    machine.declare(2);
    machine.pass(Reading::Whole);
    let mut memory = machine.setting.memory.lock().unwrap();
    assert_eq!(memory.read_whole(), None);
    let now = memory.looked;
    assert_eq!(memory.begin(now, false), Reading::WhatMayHaveChanged);
}

#[test]
fn a_loop_that_ends_begins_no_other_pass_after_a_quiet_one_that_was_cut_short() {
    let (machine, _) = declared();
    machine.settle();
    let last = |machine: &Machine| machine.setting.store.last_pass().unwrap().map(|summary| summary.pass);
    let before = last(&machine);
    let how = (Trigger::Asked, Reading::WhatMayHaveChanged);
    let turn = turn::run(&machine.setting, how, None, &AtomicBool::new(true));
    assert!(matches!(turn, Ok(turn::Turn::Idle)));
    assert_eq!(last(&machine), before);
}

#[test]
fn a_clock_that_went_back_ends_all_trust_in_change_times() {
    let (machine, _) = declared();
    machine.settle();
    change_unseen(&machine, "/srv/b/one");
    machine.clock.set(machine.clock.now().minus(HOUR * 2));
    machine.look();
    assert_eq!(machine.found(), ["file:/srv/b/one"]);
}

#[test]
fn what_was_changed_within_the_last_minute_is_read_again() {
    let mut machine = Machine::with_clock(tenure_actors::clock::system().now());
    machine.file("/srv/young", "what is declared\n", false);
    machine.declare(1);
    machine.settle();
    change_unseen(&machine, "/srv/young");
    machine.look();
    assert_eq!(machine.found(), ["file:/srv/young"]);
}
