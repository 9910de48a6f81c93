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

    /// Takes a turn by hand, in a process that has what the one before left, and tells whether it was a quiet one.
    fn by_hand(&mut self) -> bool {
        let Machine { store, ground, .. } = &self.machine;
        *store.units().lock().unwrap() = crate::resource::unit::Memory::default();
        self.memory = Memory::kept(store, ground);
        let is_quiet = self.turn(true);
        self.memory.keep_in(&self.machine.store, &self.machine.ground);
        is_quiet
    }

    /// What a pass by hand asks that is a quiet one.
    fn asked_by_hand(&mut self) -> Vec<String> {
        assert!(self.by_hand());
        self.calls()
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

/// How units stand, in one call.
const STAND: [&str; 1] = ["list-units by name"];
/// All there is to say of one.
const IN_FULL: [&str; 1] = ["show nginx.service"];

/// A machine on which passes by hand have nothing to do, two minutes after anything of a unit was changed.
fn settled_by_hand() -> Turns {
    let machine = with_nginx();
    std::fs::create_dir_all(machine.at("/etc/systemd/system")).unwrap();
    machine.write("/run/systemd/systemd-units-load", "");
    machine.clock.set(tenure_actors::clock::system().now().plus(Duration::from_secs(120)));
    let mut turns = Turns::of(machine);
    assert!((0..3).any(|_| turns.by_hand()));
    turns.calls();
    turns
}

// rule: H-10
#[test]
fn a_pass_by_hand_asks_how_units_stand_in_one_call_and_once_an_hour_all_of_it() {
    let mut turns = settled_by_hand();
    for _ in 0..3 {
        for _ in 0..3 {
            assert_eq!(turns.asked_by_hand(), STAND);
        }
        turns.machine.clock.advance(HOUR - Duration::from_secs(10));
        assert_eq!(turns.asked_by_hand(), STAND);
        turns.machine.clock.advance(Duration::from_secs(10));
        assert_eq!(turns.asked_by_hand(), IN_FULL);
    }
    // What nothing else tells.
    turns.alters("nginx.service", |unit| unit.enabled = "disabled");
    assert_eq!(turns.asked_by_hand(), STAND);
    turns.machine.clock.advance(HOUR);
    assert!(!turns.by_hand());
    assert_eq!(turns.machine.is("nginx.service"), ("active", "enabled"));
}

#[test]
fn a_pass_by_hand_looks_at_a_unit_in_full_where_anything_may_be_another() {
    type Deed = fn(&Turns);
    let deeds: [(&str, Deed); 4] = [
        ("a unit file", |turns| turns.machine.write("/etc/systemd/system/nginx.service", "")),
        ("unit files were read", |turns| turns.machine.write("/run/systemd/systemd-units-load", "anew")),
        ("another run of it", |turns| {
            let runs = turns.machine.at("/run/systemd/units");
            std::fs::create_dir_all(&runs).unwrap();
            std::os::unix::fs::symlink("77aa", runs.join("invocation:nginx.service")).unwrap();
        }),
        ("the clock", |turns| {
            let clock = &turns.machine.clock;
            clock.set(Moment::from_millis(clock.now().millis() - 30_000));
        }),
    ];
    for (what, deed) in deeds {
        let mut turns = settled_by_hand();
        assert_eq!(turns.asked_by_hand(), STAND);
        deed(&turns);
        turns.by_hand();
        let calls = turns.calls();
        assert!(calls.contains(&IN_FULL[0].to_owned()), "{what}: {calls:?}");
        if what != "another run of it" {
            turns.machine.clock.advance(Duration::from_secs(240));
            turns.by_hand();
            turns.calls();
            assert_eq!(turns.asked_by_hand(), STAND, "{what}: and the next one goes by that");
        }
    }
    let mut turns = settled_by_hand();
    turns.alters("nginx.service", |unit| unit.active = "inactive");
    assert!(!turns.by_hand());
    let calls = turns.calls();
    let at = |call: &str| calls.iter().position(|one| one == call).unwrap();
    assert!(at("show nginx.service") < at("start nginx.service"), "{calls:?}");
}

#[test]
fn what_was_changed_of_units_just_now_or_in_a_boot_that_nobody_can_tell_is_left_to_no_other_process() {
    let mut turns = settled_by_hand();
    turns.machine.write("/etc/systemd/system/other.service", "");
    turns.machine.clock.set(tenure_actors::clock::system().now());
    assert!((0..3).any(|_| turns.by_hand()));
    turns.calls();
    assert_eq!(turns.asked_by_hand(), IN_FULL, "it may be changed once more, and its time be the same");
    turns.machine.clock.advance(Duration::from_secs(61));
    assert_eq!(turns.asked_by_hand(), IN_FULL);
    assert_eq!(turns.asked_by_hand(), STAND);
    std::fs::remove_file(turns.machine.at("/run/systemd/systemd-units-load")).unwrap();
    turns.machine.clock.advance(Duration::from_secs(61));
    for _ in 0..3 {
        assert_eq!(turns.asked_by_hand(), IN_FULL);
    }
}
