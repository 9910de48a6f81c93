//! Passes over the part of a declaration that moved.

use tenure_protocol::outcome::ResourceOutcome;
use tenure_protocol::report::{Counts, digest};

use super::*;

const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

impl Machine {
    fn holds_eight(&mut self) {
        for name in NAMES {
            self.file(&format!("/srv/{name}"), &format!("what is declared of {name}\n"), false);
        }
    }
}

/// Eight plain files below one directory, held, and nothing to be done.
fn eight() -> Machine {
    let mut machine = Machine::new();
    machine.holds_eight();
    machine.declare(1);
    machine.settle();
    machine
}

/// The outcomes that the store has; the summary is of just these.
fn lines(machine: &Machine, summary: &Summary) -> Vec<ResourceOutcome> {
    let lines = machine.setting.store.outcomes_page(None, 1_000).unwrap();
    assert_eq!(digest(&lines), summary.digest);
    assert_eq!(Counts::of(lines.iter().map(|line| line.outcome)), summary.counts);
    lines
}

/// How many resources the next pass decides anew; none where it is an ordinary one.
fn decided(machine: &Machine) -> Option<usize> {
    let Setting { ground, store, clock, memory, .. } = &machine.setting;
    machine.clock.advance(Duration::from_secs(1));
    let mut input = PassInput {
        ground,
        store,
        programs: None,
        clock: clock.as_ref(),
        declaration: None,
        trigger: Trigger::Timer,
        refused: None,
        looked: &|_| {},
        progress: &|_| {},
        cancelled: &AtomicBool::new(false),
    };
    let mut memory = memory.lock().unwrap();
    let how = (memory.begin(Millis(machine.clock.now().millis()), false), HOUR);
    let (_, held) = store.declaration_held().unwrap().unwrap();
    match pass(&mut input, &mut memory, how, held, None)? {
        Stood::All(_) => Some(0),
        Stood::Part(done) => Some(done.outcomes.len()),
    }
}

#[test]
fn a_pass_decides_anew_what_moved_and_what_was_just_put_right_and_nothing_else() {
    let machine = eight();
    assert_eq!(decided(&machine), Some(0));
    std::fs::write(machine.at("/srv/c"), "somebody else's\n").unwrap();
    assert_eq!(decided(&machine), Some(1));
    assert_eq!(decided(&machine), Some(1), "it is looked at once more after its repair");
    assert_eq!(decided(&machine), Some(0));
}

#[test]
fn a_repair_touches_what_moved_alone_and_what_stood_is_still_remembered() {
    let machine = eight();
    std::fs::write(machine.at("/srv/c"), "somebody else's\n").unwrap();
    let summary = machine.look();
    assert_eq!((summary.counts.applied, summary.counts.unchanged, summary.owned), (1, 7, 8));
    assert_eq!(std::fs::read_to_string(machine.at("/srv/c")).unwrap(), "what is declared of c\n");
    let repaired = |line: &&ResourceOutcome| line.code.as_deref() == Some("drift");
    assert_eq!(lines(&machine, &summary).iter().filter(repaired).count(), 1);
    assert!(machine.is_still(), "the rest was not looked at anew");
    let after = machine.look();
    assert_eq!((after.counts.unchanged, after.counts.applied), (8, 0));
    assert!(lines(&machine, &after).iter().all(|line| line.outcome == Outcome::Unchanged));
    assert!(machine.is_still());
    assert_eq!(machine.look().digest, after.digest);
}

#[test]
fn what_cannot_be_done_is_tried_and_counted_in_each_pass_while_the_rest_is_remembered() {
    let machine = eight();
    std::fs::remove_file(machine.at("/srv/d")).unwrap();
    std::fs::create_dir(machine.at("/srv/d")).unwrap();
    let refused = machine.look();
    assert_eq!((refused.counts.refused, refused.counts.unchanged), (1, 7));
    for times in 2..4 {
        let again = machine.look();
        let lines = lines(&machine, &again);
        let line = lines.iter().find(|line| line.key == "file:/srv/d").unwrap();
        assert_eq!((line.outcome, line.count), (Outcome::Refused, times));
        assert!(machine.is_still());
    }
    std::fs::remove_dir(machine.at("/srv/d")).unwrap();
    assert_eq!(machine.look().counts.applied, 1);
    assert_eq!(machine.look().counts.unchanged, 8);
}

#[test]
fn more_than_a_quarter_that_moved_and_a_directory_that_is_another_are_decided_with_all_the_rest() {
    let machine = eight();
    for name in ["a", "b", "c"] {
        std::fs::write(machine.at(&format!("/srv/{name}")), "somebody else's\n").unwrap();
    }
    assert_eq!(machine.look().counts.applied, 3);
    machine.settle();
    std::fs::rename(machine.at("/srv"), machine.at("/old")).unwrap();
    std::fs::create_dir(machine.at("/srv")).unwrap();
    std::fs::rename(machine.at("/old/a"), machine.at("/srv/a")).unwrap();
    assert_eq!(machine.look().counts.applied, 7);
}

#[test]
fn what_needs_something_kept_as_found_stays_barred_in_a_part_too() {
    let mut machine = Machine::new();
    machine.holds_eight();
    machine.declare(1);
    machine.settle();
    std::fs::write(machine.at("/srv/found"), "what was there\n").unwrap();
    machine.file("/srv/found", "what is declared\n", false);
    machine.resources[7]["needs"] = serde_json::json!(["file:/srv/found"]);
    machine.declare_as("adopted", 2);
    machine.settle();
    std::fs::write(machine.at("/srv/h"), "somebody else's\n").unwrap();
    let summary = machine.look();
    assert_eq!((summary.counts.outstanding, summary.counts.held), (1, 1));
    assert_eq!(std::fs::read_to_string(machine.at("/srv/h")).unwrap(), "somebody else's\n");
    lines(&machine, &summary);
    assert!(machine.is_still());
}

// rule: H-10
#[test]
fn what_needs_something_this_version_does_not_understand_stays_barred_in_every_pass() {
    let mut machine = Machine::new();
    machine.holds_eight();
    machine.resources[0]["spec"]["from_tomorrow"] = serde_json::json!(true);
    machine.resources[7]["needs"] = serde_json::json!(["file:/srv/a"]);
    machine.declare(1);
    for _ in 0..4 {
        let summary = machine.look();
        assert_eq!((summary.counts.refused, summary.counts.outstanding), (1, 1));
        assert!(!machine.at("/srv/h").exists());
    }
    std::fs::write(machine.at("/srv/c"), "somebody else's\n").unwrap();
    assert_eq!(machine.look().counts.applied, 1, "the rest is held");
}

#[test]
fn a_declaration_that_came_meanwhile_is_never_read_by_the_places_of_the_one_before() {
    let mut machine = eight();
    machine.file("/srv/0", "one more\n", false);
    machine.declare(2);
    std::fs::write(machine.at("/srv/c"), "somebody else's\n").unwrap();
    let summary = machine.look();
    assert_eq!((summary.counts.applied, summary.counts.unchanged), (2, 7));
}

#[test]
fn while_the_store_is_away_nothing_that_moved_is_put_right_and_all_of_it_is_spoken_of() {
    let machine = eight();
    std::fs::write(machine.at("/srv/c"), "somebody else's\n").unwrap();
    let place = machine.setting.ground.store();
    std::fs::rename(&place, place.with_extension("away")).unwrap();
    machine.clock.advance(Duration::from_secs(1));
    let (summary, trouble) = by_hand(&machine.setting, Reading::WhatMayHaveChanged).unwrap();
    assert!(trouble.is_some());
    assert_eq!(summary.counts.total(), 8);
    assert_eq!(std::fs::read_to_string(machine.at("/srv/c")).unwrap(), "somebody else's\n");
}
