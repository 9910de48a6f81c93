//! Turns of a loop that remembers, on a machine with packages and units: what is asked of them in a quiet pass, and what
//! ends the quiet.

use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use serde_json::json;
use tenure_actors::clock::Clock as _;

use super::scripted::{Lie, unit};
use super::*;
use crate::reconcile::memory::Memory;
use crate::reconcile::turn::{self, quiet_or_ordinary};
use crate::store::StoredDeclaration;

const HOUR: Duration = Duration::from_secs(3_600);

/// A loop on a machine.
struct Turns {
    machine: Machine,
    memory: Memory,
}

impl Turns {
    /// Holds what is declared on `machine`, until nothing moves.
    fn settled(machine: Machine) -> Self {
        let turns = Self::of(machine);
        turns.assert_quiet_within(3)
    }

    fn of(machine: Machine) -> Self {
        let bytes = machine.declared();
        let declaration = Declaration::parse(&bytes).unwrap();
        let (revision, sha256) = (declaration.header.revision(), Digest::of_declaration(&bytes));
        machine.store.put_declaration(StoredDeclaration { revision, sha256, bytes: bytes.into() }).unwrap();
        Self { machine, memory: Memory::default() }
    }

    fn assert_quiet_within(mut self, turns: usize) -> Self {
        assert!((0..turns).any(|_| self.is_quiet()));
        self.calls();
        self
    }

    /// Takes a turn, and tells whether it was a quiet one: of those nothing is said resource by resource.
    fn is_quiet(&mut self) -> bool {
        self.turn(false)
    }

    fn turn(&mut self, whole: bool) -> bool {
        let Self { machine, memory } = self;
        machine.clock.advance(Duration::from_secs(1));
        let decided = AtomicUsize::new(0);
        let mut input = PassInput {
            ground: &machine.ground,
            programs: machine.scripted.as_ref().map(|scripted| -> &dyn Programs { scripted }),
            store: &machine.store,
            clock: &machine.clock,
            declaration: None,
            trigger: Trigger::Timer,
            refused: None,
            looked: &|_| {},
            progress: &|_| {
                decided.fetch_add(1, Ordering::Relaxed);
            },
            cancelled: &AtomicBool::new(false),
        };
        let how = (memory.begin(Millis(machine.clock.now().millis()), whole), HOUR);
        let held = machine.store.declaration_held().unwrap().map(|(_, sha256)| sha256);
        let turn = quiet_or_ordinary(&mut input, memory, how, held, None).unwrap();
        assert!(matches!(turn, turn::Turn::Done { store_trouble: None, .. }));
        decided.into_inner() == 0
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.machine.state().calls)
    }

    fn alters(&self, name: &str, change: impl FnOnce(&mut super::scripted::Unit)) {
        self.machine.set(|state| change(state.units.get_mut(name).unwrap()));
    }
}

fn with_nginx() -> Machine {
    let mut machine = Machine::with_programs();
    machine.set(|state| state.has_bus = true);
    machine.has_unit("nginx.service", unit("active", "enabled"));
    machine.unit("nginx.service", json!({ "enabled": true, "running": true }), &[]);
    machine
}

// rule: H-10
#[test]
fn a_quiet_pass_asks_how_units_stand_in_one_call_and_all_of_it_where_everything_is_read() {
    let mut turns = Turns::settled(with_nginx());
    assert!(turns.is_quiet());
    assert_eq!(turns.calls(), ["list-units by name"]);
    assert!(turns.turn(true));
    assert_eq!(turns.calls(), ["show nginx.service"]);
    turns.alters("nginx.service", |unit| unit.active = "inactive");
    assert!(!turns.is_quiet());
    assert!(turns.calls().contains(&"start nginx.service".to_owned()));
}

#[test]
fn what_nothing_on_the_disk_tells_of_a_unit_is_found_when_everything_is_read() {
    let mut turns = Turns::settled(with_nginx());
    turns.alters("nginx.service", |unit| unit.enabled = "disabled");
    assert!(turns.is_quiet(), "it is remembered");
    assert!(!turns.turn(true));
    assert_eq!(turns.machine.is("nginx.service"), ("active", "enabled"));
}

#[test]
fn a_unit_that_did_its_work_again_in_between_leaves_passes_quiet() {
    let mut machine = with_nginx();
    machine.has_unit("backup.service", super::scripted::Unit { passes: true, ..unit("inactive", "enabled") });
    machine.unit("backup.service", json!({ "enabled": true }), &[]);
    let mut turns = Turns::settled(machine);
    for began in [1_000, 2_000, 3_000] {
        turns.alters("backup.service", |unit| unit.began = began);
        assert!(turns.is_quiet());
        assert_eq!(turns.calls(), ["list-units by name"]);
    }
}

#[test]
fn unit_files_that_could_not_be_read_anew_are_tried_again_in_each_pass_until_they_are() {
    let machine = with_nginx();
    machine.lies("daemon-reload", Lie::Fails("Failed to reload daemon: Connection timed out\n"));
    let mut turns = Turns::of(machine);
    turns.alters("nginx.service", |unit| unit.stale = true);
    for _ in 0..4 {
        assert!(!turns.is_quiet());
        assert!(turns.calls().contains(&"daemon-reload".to_owned()));
    }
    turns.machine.state().lies.clear();
    assert!(!turns.is_quiet());
    assert!(turns.calls().contains(&"daemon-reload".to_owned()));
    let mut turns = turns.assert_quiet_within(3);
    assert!(turns.is_quiet());
    assert_eq!(turns.calls(), ["list-units by name"]);
}

#[test]
fn what_is_told_of_a_configuration_ends_once_somebody_has_removed_what_lay_beside_it() {
    let mut machine = Machine::with_programs();
    machine.installs("cachebox", "1.0");
    machine.offers("cachebox", &[super::scripted::offer("2.0")]);
    machine.package("cachebox", "2.0", &[]);
    std::fs::create_dir_all(machine.at("/etc/cachebox")).unwrap();
    machine.write("/var/lib/dpkg/info/cachebox.conffiles", "/etc/cachebox/cachebox.conf\n");
    machine.write("/etc/cachebox/cachebox.conf", "mine");
    machine.write("/etc/cachebox/cachebox.conf.dpkg-dist", "theirs");
    let mut turns = Turns::of(machine);
    let code = |turns: &Turns| turns.machine.store.outcomes_page(None, 10).unwrap()[0].code.clone();
    for _ in 0..4 {
        turns.is_quiet();
        assert_eq!(code(&turns).as_deref(), Some("configuration_kept"));
    }
    std::fs::remove_file(turns.machine.at("/etc/cachebox/cachebox.conf.dpkg-dist")).unwrap();
    turns.is_quiet();
    assert_eq!(code(&turns), None);
    let mut turns = turns.assert_quiet_within(3);
    // And a package that somebody takes away is brought again.
    turns.machine.set(|state| drop(state.installed.remove("cachebox")));
    assert!(!turns.is_quiet());
    assert_eq!(turns.machine.version("cachebox").as_deref(), Some("2.0"));
}

#[test]
fn nothing_is_done_by_what_is_remembered_also_of_a_unit_that_is_done_after_others_were_looked_at() {
    let mut machine = Machine::with_programs();
    machine.set(|state| state.has_bus = true);
    machine.has_unit("a.service", unit("active", "enabled"));
    machine.has_unit("b.service", unit("active", "enabled"));
    machine.unit("a.service", json!({ "running": true }), &[]);
    machine.unit("b.service", json!({ "running": true }), &["unit:a.service"]);
    let mut turns = Turns::settled(machine);
    turns.alters("a.service", |unit| unit.active = "inactive");
    turns.alters("b.service", |unit| unit.active = "inactive");
    assert!(!turns.is_quiet());
    let calls = turns.calls();
    let at = |call: &str| calls.iter().position(|one| one.starts_with(call)).unwrap();
    assert!(at("show a.service") < at("start a.service") && at("show b.service") < at("start b.service"));
}
