//! The host dies in the middle of what it does with packages and units: the next start converges, takes back no more
//! and no less than what it brought, and does nothing twice that was done.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::json;

use super::scripted::{Lie, Offer, When, offer, somebody_masks, unit};
use super::*;

const APP: &str = "unit:app.service";

impl Machine {
    /// A pass in which the host dies when it does this.
    fn pass_dying(&self, word: &'static str, when: When) {
        self.lies(word, Lie::Dies(when));
        assert!(catch_unwind(AssertUnwindSafe(|| self.pass())).is_err(), "nobody was asked to {word}");
        self.set(|state| state.lies.clear());
    }

    fn spooled(&self, kind: &str) -> usize {
        self.store.spooled(100).unwrap().iter().filter(|event| event.kind == kind).count()
    }
}

// rule: H-09
// rule: H-24
#[test]
fn a_unit_that_was_brought_half_way_when_the_host_died_returns_to_how_it_was_before_us() {
    for (word, when) in
        [("enable", When::Before), ("enable", When::After), ("start", When::Before), ("start", When::After)]
    {
        let mut machine = Machine::with_programs();
        machine.has_unit("app.service", unit("inactive", "disabled"));
        machine.unit("app.service", json!({ "enabled": true, "running": true }), &[]);
        machine.pass_dying(word, when);
        machine.pass();
        assert_eq!(machine.is("app.service"), ("active", "enabled"), "{word} {when:?}");
        machine.forget(APP);
        machine.pass();
        assert_eq!(machine.is("app.service"), ("inactive", "disabled"), "{word} {when:?}");
        assert_eq!(machine.store.owned_count().unwrap(), 0);
        assert_eq!(machine.spooled(event::RELEASED), 1, "{word} {when:?}");
        assert_eq!(machine.spooled(event::DRIFT_REPAIRED), 0, "{word} {when:?}: our own work is no drift");
    }
}

// rule: H-09
// rule: H-24
#[test]
fn a_unit_that_is_let_go_while_the_host_dies_returns_all_the_way_and_is_told_once() {
    for (word, when) in
        [("disable", When::Before), ("disable", When::After), ("stop", When::Before), ("stop", When::After)]
    {
        let mut machine = Machine::with_programs();
        machine.has_unit("app.service", unit("inactive", "disabled"));
        machine.unit("app.service", json!({ "enabled": true, "running": true }), &[]);
        machine.pass();
        machine.forget(APP);
        machine.pass_dying(word, when);
        machine.pass();
        assert_eq!(machine.is("app.service"), ("inactive", "disabled"), "{word} {when:?}");
        assert_eq!(machine.store.owned_count().unwrap(), 0);
        assert_eq!(machine.spooled(event::RELEASED), 1, "{word} {when:?}");
    }
}

// rule: H-09
#[test]
fn a_unit_whose_restart_a_death_came_before_is_restarted_and_one_it_came_after_is_not_restarted_again() {
    for when in [When::Before, When::After] {
        let mut machine = Machine::with_programs();
        machine.has_unit("app.service", unit("active", "enabled"));
        machine.file("/etc/nginx/app.conf", "one");
        let follows = json!({ "enabled": true, "running": true, "restart_on": ["file:/etc/nginx/app.conf"] });
        machine.unit("app.service", follows, &[]);
        machine.pass();
        machine.file("/etc/nginx/app.conf", "two");
        machine.acts();
        machine.pass_dying("restart", when);
        assert_eq!(machine.acts(), ["restart app.service"]);
        machine.pass();
        let again: &[&str] = if when == When::Before { &["restart app.service"] } else { &[] };
        assert_eq!(machine.acts(), again, "{when:?}");
        assert_eq!(machine.pass().summary.counts.in_words(), "2 unchanged", "{when:?}");
        assert_eq!(machine.acts(), [""; 0]);
    }
}

// rule: H-09
// rule: H-24
#[test]
fn a_unit_that_was_enabled_and_not_yet_restarted_when_the_host_died_is_disabled_again_when_it_leaves() {
    for when in [When::Before, When::After] {
        let mut machine = Machine::with_programs();
        machine.has_unit("app.service", unit("active", "disabled"));
        // It began long before the file was changed.
        machine.set(|state| state.up = 100);
        machine.file("/etc/nginx/app.conf", "one");
        let follows = json!({ "enabled": true, "running": true, "restart_on": ["file:/etc/nginx/app.conf"] });
        machine.unit("app.service", follows, &[]);
        machine.pass_dying("restart", when);
        machine.acts();
        machine.pass();
        let again: &[&str] = if when == When::Before { &["restart app.service"] } else { &[] };
        assert_eq!(machine.acts(), [&["daemon-reload"], again].concat(), "{when:?}");
        machine.forget(APP);
        machine.pass();
        assert_eq!(machine.is("app.service"), ("active", "disabled"), "{when:?}");
    }
}

// rule: H-09
#[test]
fn the_service_manager_reads_a_unit_file_also_where_the_host_died_before_it_was_asked_to() {
    for when in [When::Before, When::After] {
        let mut machine = Machine::with_programs();
        machine.file("/etc/systemd/system/app.service", "[Service]\n");
        machine.unit("app.service", json!({ "enabled": true, "running": true }), &[]);
        machine.pass_dying("daemon-reload", when);
        machine.pass();
        assert_eq!(machine.is("app.service"), ("active", "enabled"), "{when:?}");
        // Gone with what brought it, it is no more than a memory, which goes too.
        machine.forget(APP);
        machine.pass();
        machine.forget("file:/etc/systemd/system/app.service");
        machine.file("/srv/other", "x");
        machine.pass_dying("daemon-reload", when);
        machine.acts();
        machine.pass();
        assert_eq!(machine.acts(), ["daemon-reload"], "{when:?}");
        assert_eq!(machine.spooled(event::REMOVED), 1, "{when:?}");
        machine.pass();
        assert_eq!(machine.acts(), [""; 0], "{when:?}");
    }
}

// rule: H-09
// rule: H-24
#[test]
fn a_package_that_was_brought_while_the_host_died_is_ours_whether_whole_or_half() {
    for (when, breaks) in [(When::Before, false), (When::After, false), (When::After, true)] {
        let mut machine = Machine::with_programs();
        machine.offers("hello", &[Offer { breaks, ..offer("1.0") }]);
        machine.package("hello", "present", &[]);
        machine.pass_dying("install", when);
        machine.pass();
        // What is half there is put right by hand.
        machine.offers("hello", &[offer("1.0")]);
        machine.installs("hello", "1.0");
        machine.pass();
        machine.acts();
        assert_eq!(machine.pass().summary.counts.in_words(), "1 unchanged");
        assert_eq!(machine.acts(), [""; 0], "{when:?}, half: {breaks}");
        machine.forget("package:hello");
        machine.pass_dying("install", when);
        machine.pass();
        assert_eq!(machine.version("hello"), None, "{when:?}, half: {breaks}: it stays behind");
        assert_eq!(machine.store.owned_count().unwrap(), 0);
        assert_eq!(machine.spooled(event::REMOVED), 1, "{when:?}, half: {breaks}");
        assert_eq!(machine.store.intents().unwrap(), []);
    }
}

// rule: H-09
// rule: H-24
#[test]
fn a_package_that_was_there_before_us_stays_though_the_host_died_over_it() {
    let mut machine = Machine::with_programs();
    machine.installs("hello", "0.9");
    machine.offers("hello", &[Offer { breaks: true, ..offer("1.0") }]);
    machine.package("hello", "1.0", &[]);
    machine.pass_dying("install", When::After);
    machine.pass();
    machine.installs("hello", "1.0");
    machine.pass();
    assert_eq!(machine.version("hello").as_deref(), Some("1.0"));
    machine.forget("package:hello");
    machine.pass();
    assert_eq!(machine.version("hello").as_deref(), Some("1.0"));
    assert_eq!(machine.spooled(event::RELEASED), 1);
}

// case: O-15
// rule: H-09
#[test]
fn a_host_that_died_right_after_it_masked_a_unit_knows_the_mask_for_its_own() {
    for known in [false, true] {
        let mut machine = Machine::with_programs();
        machine.has_unit("app.service", unit("inactive", "disabled"));
        if known {
            machine.unit("app.service", json!({ "running": false }), &[]);
            machine.pass();
        }
        machine.unit("app.service", json!({ "running": false, "masked": true }), &[]);
        machine.pass_dying("mask", When::After);
        assert_eq!(line(&machine.pass(), APP).outcome, Unchanged, "known: {known}");
        machine.acts();
        machine.forget(APP);
        machine.file("/srv/a", "a");
        machine.pass();
        assert_eq!(machine.acts(), ["unmask app.service", "daemon-reload"], "known: {known}");
    }
}

// case: O-15
// rule: H-09
// rule: H-24
#[test]
fn a_mask_of_ours_that_was_being_taken_back_when_the_host_died_is_taken_back_and_one_of_somebody_else_is_not()
{
    for (when, leaves) in
        [(When::Before, false), (When::Before, true), (When::After, false), (When::After, true)]
    {
        let mut machine = Machine::with_programs();
        machine.has_unit("app.service", unit("active", "enabled"));
        machine.file("/srv/a", "a");
        machine.unit("app.service", json!({ "masked": true, "running": false }), &[]);
        machine.pass();
        if leaves {
            machine.forget(APP);
        } else {
            machine.unit("app.service", json!({ "enabled": true, "running": true }), &[]);
        }
        machine.pass_dying("unmask", when);
        machine.acts();
        let said = if when == When::After {
            somebody_masks(&machine, "app.service");
            let done = machine.pass();
            assert!(machine.acts().iter().all(|act| act == "daemon-reload"), "leaves: {leaves}");
            assert_eq!(machine.is("app.service").1, "masked", "leaves: {leaves}");
            line(&done, APP).outcome
        } else {
            let done = machine.pass();
            assert!(machine.acts().contains(&"unmask app.service".to_owned()), "leaves: {leaves}");
            assert_eq!(machine.is("app.service").0, "active", "leaves: {leaves}");
            line(&done, APP).outcome
        };
        let expected = match (when, leaves) {
            (_, true) => Released,
            (When::Before, false) => Applied,
            (When::After, false) => Refused,
        };
        assert_eq!(said, expected, "{when:?}, leaves: {leaves}");
    }
}

// rule: H-09
#[test]
fn links_that_were_made_when_the_host_died_are_read_by_the_service_manager_of_the_next_pass() {
    for (word, spec) in
        [("enable", json!({ "enabled": true })), ("mask", json!({ "running": false, "masked": true }))]
    {
        let mut machine = Machine::with_programs();
        machine.has_unit("app.service", unit("inactive", "disabled"));
        machine.unit("app.service", spec, &[]);
        machine.pass_dying(word, When::After);
        machine.acts();
        machine.pass();
        assert!(machine.acts().contains(&"daemon-reload".to_owned()), "{word}");
        machine.pass();
        assert_eq!(machine.acts(), [""; 0], "{word}");
    }
}
