//! Passes by hand, each of them a process that remembers nothing but what the one before has left it.

use std::collections::HashSet;

use tenure_protocol::outcome::Origin;

use super::*;
use crate::reconcile::{Memory, kept};
use crate::resource::package::Journal;
use crate::store::{Intent, Record, State, Wanted};

impl Machine {
    /// What the process before has left.
    fn left(&self) -> Memory {
        Memory::kept(&self.setting.store, &self.setting.ground)
    }

    /// One pass by hand. Also answers whether it found what stands.
    fn process(&self) -> (Summary, bool) {
        let left = self.left();
        let stood = left.still.is_some();
        *self.setting.memory.lock().unwrap() = left;
        let summary = self.pass(Reading::Whole);
        let memory = self.setting.memory.lock().unwrap();
        memory.keep_in(&self.setting.store, &self.setting.ground);
        (summary, stood && !memory.is_new)
    }

    /// Passes by hand until one left what it saw.
    fn settle_by_hand(&self) {
        (0..3).for_each(|_| drop(self.process()));
        assert!(self.left().still.is_some());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    // rule: H-10
    #[test]
    fn a_pass_by_hand_finds_what_one_that_was_left_nothing_would(
        rounds in prop::collection::vec(prop::collection::vec((0..PATHS.len(), deed()), 0..3), 1..6)
    ) {
        let (machine, declaration) = declared();
        machine.settle_by_hand();
        for deeds in rounds {
            for (path, deed) in &deeds {
                tick(&machine);
                commit(&machine, PATHS[*path], deed);
            }
            let drifted = machine.drifted(&declaration);
            let (summary, _) = machine.process();
            prop_assert_eq!(&machine.found(), &drifted, "{:?}", deeds);
            prop_assert_eq!(summary.counts.total(), 8);
            if PATHS.iter().any(|path| machine.at(path).is_symlink()) {
                break;
            }
        }
    }
}

#[test]
fn a_pass_by_hand_over_what_stands_decides_nothing_and_leaves_as_much_to_the_next() {
    let (machine, _) = declared();
    assert!(!machine.process().1);
    let (first, stood) = machine.process();
    assert!(!stood, "of what was recorded just now nothing is left");
    for _ in 0..3 {
        let (summary, stood) = machine.process();
        assert!(stood);
        assert_eq!(
            (summary.counts, summary.digest, summary.owned),
            (first.counts, first.digest, first.owned)
        );
        assert_eq!(machine.setting.store.last_pass().unwrap(), Some(summary));
    }
}

#[test]
fn a_change_that_no_change_time_shows_is_found_by_a_pass_by_hand() {
    let (machine, _) = declared();
    machine.settle_by_hand();
    *machine.setting.memory.lock().unwrap() = machine.left();
    change_unseen(&machine, "/srv/a/one");
    machine.pass(Reading::Whole);
    assert_eq!(machine.found(), ["file:/srv/a/one"]);
}

/// What can be done to a store that a pass which is cut short may have done.
#[test]
fn nothing_is_left_standing_once_anything_is_done_that_it_does_not_know_of() {
    let intent = || Intent {
        key: "file:/srv/a/one".to_owned(),
        module: "base".to_owned(),
        origin: Origin::Created,
        earlier: State::Absent,
        wanted: Wanted::Gone,
        temporary: ".tenure-aaaaaaaa".to_owned(),
        drift: None,
    };
    let record = || Record {
        key: "file:/srv/other".to_owned(),
        module: "base".to_owned(),
        origin: Origin::Created,
        earlier: State::Absent,
        applied: State::Absent,
        recorded_at: Millis(1),
    };
    type Deed<'d> = (&'static str, &'d dyn Fn(&Machine));
    let begin = |m: &Machine| {
        Journal::begin(&m.setting.store, &std::iter::empty().collect(), false).unwrap();
    };
    let deeds: [Deed<'_>; 11] = [
        ("intended", &|m| m.setting.store.intend(vec![intent()], &HashSet::new()).unwrap()),
        ("intended, and given up", &|m| {
            m.setting.store.intend(vec![intent()], &HashSet::new()).unwrap();
            m.setting.store.record(Vec::new(), vec![intent().key], Vec::new()).unwrap();
        }),
        ("intended also", &|m| m.setting.store.intend_also(vec![intent()]).unwrap()),
        ("recorded", &|m| m.setting.store.record(vec![record()], Vec::new(), Vec::new()).unwrap()),
        ("left", &|m| m.setting.store.record(Vec::new(), vec![record().key], Vec::new()).unwrap()),
        ("unit files are to be changed", &|m| m.setting.store.note_unread_units().unwrap()),
        ("unit files were changed", &|m| {
            m.setting.store.note_unread_units().unwrap();
            m.setting.store.forget_unread_units().unwrap();
        }),
        ("packages are to be changed", &begin),
        ("packages were changed", &|m| {
            begin(m);
            Journal::end(&m.setting.store).unwrap();
        }),
        ("declared", &|m| drop(m.declare(2))),
        ("a daemon's pass", &|m| {
            *m.setting.memory.lock().unwrap() = Memory::default();
            m.look();
        }),
    ];
    for (what, deed) in deeds {
        let (machine, _) = declared();
        machine.settle_by_hand();
        deed(&machine);
        assert!(machine.left().still.is_none(), "{what}");
        let before = machine.setting.store.last_pass().unwrap();
        let (summary, stood) = machine.process();
        assert!(!stood && Some(summary) != before, "{what}");
    }
}

#[test]
fn what_another_program_or_another_ground_left_is_not_gone_by() {
    let (machine, _) = declared();
    machine.settle_by_hand();
    let Setting { store, ground, .. } = &machine.setting;
    let other = Ground::new(ground.root().to_owned(), !ground.is_sandbox());
    assert!(Memory::kept(store, &other).still.is_none(), "owners are set on the one and not on the other");
    assert!(store.kept_look(Digest::of(b"another program")).is_none());
}

#[test]
fn what_was_left_and_cannot_be_read_makes_it_an_ordinary_pass() {
    let (machine, _) = declared();
    machine.settle_by_hand();
    let Setting { store, ground, .. } = &machine.setting;
    let (by, pass) = (kept::program(store, ground).unwrap(), store.last_pass().unwrap().unwrap().pass);
    let look = store.kept_look(by).unwrap();
    let spoilt = [&[][..], &look[..7], &look[..look.len() - 1], &[0xFF; 64], &[&look[..], &[0]].concat()];
    for spoilt in spoilt {
        store.keep_look(by, pass, spoilt);
        assert!(machine.left().still.is_none());
    }
    store.keep_look(by, pass, &look);
    assert!(machine.left().still.is_some());
    let file = machine.setting.ground.store().with_extension("db.look");
    let bytes = std::fs::read(&file).unwrap();
    for at in (0..bytes.len()).step_by(97) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        std::fs::write(&file, flipped).unwrap();
        assert!(machine.left().still.is_none(), "one bit is another at {at}");
    }
    std::fs::remove_file(&file).unwrap();
    assert!(machine.left().still.is_none());
    let (summary, stood) = machine.process();
    assert!(!stood);
    assert_eq!(summary.counts.get(Outcome::Unchanged), summary.counts.total());
    assert!(machine.process().1, "and it leaves what can be read");
}

#[test]
fn what_was_left_by_a_pass_that_is_not_the_last_one_is_not_gone_by() {
    let (machine, _) = declared();
    machine.settle_by_hand();
    let Setting { store, ground, .. } = &machine.setting;
    let (by, pass) = (kept::program(store, ground).unwrap(), store.last_pass().unwrap().unwrap().pass);
    let look = store.kept_look(by).unwrap();
    machine.process();
    assert!(machine.left().still.is_some());
    store.keep_look(by, pass, &look);
    assert!(machine.left().still.is_none());
}

#[test]
fn a_pass_by_hand_over_a_store_that_was_opened_anew_goes_by_what_the_one_before_left() {
    let (machine, _) = declared();
    machine.settle_by_hand();
    let machine = machine.opened_anew();
    assert!(machine.process().1);
    let machine = machine.opened_anew();
    std::fs::write(machine.at("/srv/a/one"), "drift").unwrap();
    let (summary, stood) = machine.process();
    assert_eq!((stood, summary.counts.applied), (false, 1));
}

#[test]
fn what_has_become_the_hosts_own_is_refused_though_nothing_about_it_moved() {
    // rule: H-02
    for is_by_hand in [true, false] {
        let (mut machine, _) = declared();
        let units = "/etc/systemd/system";
        for place in [units.to_owned(), format!("{units}/web.service.d")] {
            let spec = serde_json::json!({ "path": place, "mode": "0755", "owner": "root", "group": "root" });
            std::fs::create_dir_all(machine.at(&place)).unwrap();
            machine.resource("directory", spec);
        }
        machine.file(&format!("{units}/web.service.d/x.conf"), "[Service]\n", false);
        machine.declare(2);
        let pass = |machine: &Machine| if is_by_hand { machine.process().0 } else { machine.look() };
        (0..3).for_each(|_| drop(pass(&machine)));
        let refused = pass(&machine).counts.refused;
        symlink(machine.at("/srv/a/one"), machine.at("/etc/tenure/host.toml")).unwrap();
        assert_eq!(pass(&machine).counts.refused, refused + 1, "by hand: {is_by_hand}: it is read as ours");
        symlink("tenure-host.service", machine.at("/etc/systemd/system/web.service")).unwrap();
        let counts = pass(&machine).counts;
        assert!(counts.refused > refused + 1, "by hand: {is_by_hand}: {counts:?}");
    }
}

#[test]
fn what_lies_in_the_place_of_what_was_left_is_neither_waited_for_nor_followed() {
    for what in ["pipe", "link", "directory"] {
        let (machine, _) = declared();
        machine.settle_by_hand();
        let file = machine.setting.ground.store().with_extension("db.look");
        let elsewhere = machine.at("/elsewhere");
        std::fs::rename(&file, &elsewhere).unwrap();
        match what {
            "pipe" => nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRUSR).unwrap(),
            "link" => symlink(&elsewhere, &file).unwrap(),
            _ => std::fs::create_dir(&file).unwrap(),
        }
        let before = std::fs::read(&elsewhere).unwrap();
        let (summary, stood) = machine.process();
        assert!(!stood, "{what}");
        assert_eq!(summary.counts.get(Outcome::Unchanged), summary.counts.total(), "{what}");
        assert_eq!(std::fs::read(&elsewhere).unwrap(), before, "{what}");
        assert_eq!(machine.process().1, what != "directory", "{what}: it is written over where it can be");
    }
}

#[test]
fn a_pass_that_can_leave_nothing_leaves_no_file_either() {
    let (mut machine, _) = declared();
    machine.settle_by_hand();
    let file = machine.setting.ground.store().with_extension("db.look");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    machine.resource("file", serde_json::json!({ "path": "/etc/tenure/x", "absent": true }));
    machine.declare(2);
    std::fs::write(file.with_extension("look.new"), "half").unwrap();
    assert!(!machine.process().1);
    let names =
        std::fs::read_dir(machine.setting.ground.state()).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().contains(".look")).collect();
    assert!(left.is_empty(), "what is refused is looked at anew each time: {left:?}");
}

#[test]
fn something_refused_as_the_hosts_own_makes_no_other_look_anew() {
    let (mut machine, _) = declared();
    machine.resource("file", serde_json::json!({ "path": "/etc/tenure/x", "absent": true }));
    machine.declare(2);
    machine.settle();
    machine.setting.memory.lock().unwrap().is_new = false;
    assert_eq!(machine.look().counts.refused, 1);
    assert!(!machine.setting.memory.lock().unwrap().is_new, "the rest was not decided anew");
}
