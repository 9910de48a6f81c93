//! After a pass that was cut short between any two steps.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tenure_protocol::outcome::Origin;

use super::*;
use crate::reconcile::attempt::place;
use crate::store::{Intent, State, Wanted};

fn intent(machine: &Machine, key: &str, origin: Origin, temporary: &str) -> Intent {
    let declaration = machine.declaration();
    let resource = declaration.resources().find(|resource| resource.key.to_string() == key).unwrap();
    let wanted = Wanted::from(&resource.spec);
    Intent {
        key: key.to_owned(),
        module: "base".to_owned(),
        origin,
        earlier: State::Absent,
        wanted,
        temporary: temporary.to_owned(),
        drift: None,
    }
}

// rule: H-09
#[test]
fn a_change_that_was_made_and_not_recorded_is_recorded_as_ours_by_its_intent() {
    let mut machine = Machine::adopted();
    machine.file("/srv/a", "ours");
    machine.file("/srv/b", "ours");
    // Killed after the rename, before the record.
    machine
        .store
        .intend(
            vec![intent(&machine, "file:/srv/a", Origin::Created, ".tenure-abcdefgh")],
            &Default::default(),
        )
        .unwrap();
    machine.write("/srv/a", "ours");
    machine.write("/srv/b", "ours");
    let done = machine.pass();
    if is_root() {
        assert_eq!(line(&done, "file:/srv/a").outcome, Unchanged);
    }
    // Without an intent the very same thing is found.
    assert_eq!(line(&done, "file:/srv/b").outcome, Held);
    assert_eq!(machine.store.owned_page(None, 9).unwrap()[0].origin, Origin::Created);
    assert_eq!(machine.store.intents().unwrap(), []);
}

// rule: H-09
#[test]
fn a_change_that_was_not_made_is_planned_again_and_what_was_written_beside_goes() {
    let mut machine = Machine::adopted();
    machine.file("/srv/a", "ours");
    machine.directory("/srv/d", "0755");
    let intents = vec![
        intent(&machine, "file:/srv/a", Origin::Created, ".tenure-abcdefgh"),
        intent(&machine, "directory:/srv/d", Origin::Created, ".tenure-ijklmnop"),
    ];
    machine.store.intend(intents, &Default::default()).unwrap();
    // Killed while writing: half a file, and a directory not yet in its place.
    machine.write("/srv/.tenure-abcdefgh", "ou");
    std::fs::create_dir(machine.at("/srv/.tenure-ijklmnop")).unwrap();
    machine.write("/srv/.tenure-qrstuvwx", "looks like ours and has no intent");
    let done = machine.pass();
    assert_eq!(done.summary.counts.in_words(), "2 applied");
    assert_eq!(machine.read("/srv/a"), "ours");
    assert!(!machine.at("/srv/.tenure-abcdefgh").exists() && !machine.at("/srv/.tenure-ijklmnop").exists());
    assert!(machine.at("/srv/.tenure-qrstuvwx").exists());
}

// rule: H-09
#[test]
fn a_kill_after_the_second_name_was_made_leaves_one_file_of_one_name() {
    let mut machine = Machine::adopted();
    machine.file("/srv/a", "ours");
    machine
        .store
        .intend(
            vec![intent(&machine, "file:/srv/a", Origin::Created, ".tenure-abcdefgh")],
            &Default::default(),
        )
        .unwrap();
    machine.write("/srv/.tenure-abcdefgh", "ours");
    std::fs::hard_link(machine.at("/srv/.tenure-abcdefgh"), machine.at("/srv/a")).unwrap();
    machine.pass();
    assert_eq!(machine.at("/srv/a").metadata().unwrap().nlink(), 1);
    assert!(machine.is_clean());
    assert_eq!(machine.store.owned_count().unwrap(), 1);
}

#[test]
fn an_intent_never_removes_what_has_not_a_name_of_ours() {
    let mut machine = Machine::new();
    machine.file("/srv/a", "a");
    machine
        .store
        .intend(vec![intent(&machine, "file:/srv/a", Origin::Created, "passwd")], &Default::default())
        .unwrap();
    machine.write("/srv/passwd", "precious");
    machine.pass();
    assert_eq!(machine.read("/srv/passwd"), "precious");
}

// rule: H-09
#[test]
fn what_was_about_to_leave_leaves_after_a_restart_too() {
    let mut machine = Machine::new();
    machine.file("/srv/a", "a");
    machine.file("/srv/b", "b");
    machine.pass();
    machine.forget("file:/srv/a");
    let record = machine.store.records().unwrap().remove("file:/srv/a").unwrap();
    // Killed after the removal, before its record went.
    machine.store.intend(vec![release::intent(&record)], &Default::default()).unwrap();
    std::fs::remove_file(machine.at("/srv/a")).unwrap();
    assert_eq!(line(&machine.pass(), "file:/srv/a").outcome, Removed);
    assert_eq!(machine.store.owned_keys().unwrap(), ["file:/srv/b"]);
}

// rule: H-09
// rule: N-11
#[test]
fn a_repair_that_a_death_came_right_after_is_told_once_all_the_same() {
    let mut machine = Machine::new();
    machine.file("/srv/a", "ours");
    machine.directory("/srv/d", "0755");
    machine.pass();
    // Both were changed by somebody; the host was killed when it had put right the first.
    let records = machine.store.records().unwrap();
    let noted = |key: &str, temporary: &str| {
        let Record { origin, earlier, .. } = records[key].clone();
        Intent { earlier, ..intent(&machine, key, origin, temporary) }
    };
    let intents =
        vec![noted("file:/srv/a", ".tenure-abcdefgh"), noted("directory:/srv/d", ".tenure-ijklmnop")];
    machine.store.intend(intents, &Default::default()).unwrap();
    std::fs::set_permissions(machine.at("/srv/d"), std::fs::Permissions::from_mode(0o700)).unwrap();
    let done = machine.pass();
    assert_eq!(outcome(&done, "file:/srv/a"), (Unchanged, None));
    assert_eq!(outcome(&done, "directory:/srv/d"), (Applied, Some("drift".to_owned())));
    let told = machine.store.spooled(9).unwrap();
    let told: Vec<_> =
        told.iter().map(|event| (event.kind.as_str(), event.key.as_deref().unwrap())).collect();
    assert_eq!(told, [(event::DRIFT_REPAIRED, "file:/srv/a"), (event::DRIFT_REPAIRED, "directory:/srv/d")]);
    assert_eq!(machine.store.records().unwrap()["file:/srv/a"].origin, Origin::Created);
    assert_eq!(machine.pass().events, []);
}

// rule: H-09
// rule: N-11
#[test]
fn what_somebody_changed_before_a_declared_change_is_told_also_where_a_death_came_right_after_that() {
    let mut machine = Machine::new();
    machine.file("/srv/a", "one");
    machine.file("/srv/b", "one");
    machine.pass();
    machine.write("/srv/a", "theirs");
    machine.file("/srv/a", "two");
    machine.file("/srv/b", "two");
    let died = catch_unwind(AssertUnwindSafe(|| pass_with(&machine, || panic!("it dies"))));
    assert!(died.is_err());
    let done = machine.pass();
    assert_eq!(outcome(&done, "file:/srv/a"), (Unchanged, None));
    assert_eq!(outcome(&done, "file:/srv/b"), (Applied, None));
    let told = machine.store.spooled(9).unwrap();
    let told: Vec<_> =
        told.iter().map(|event| (event.key.as_deref().unwrap(), event.text.as_str())).collect();
    assert_eq!(told, [("file:/srv/a", "its content was changed")]);
    assert_eq!(machine.pass().events, []);
}

/// Puts the one change that is due in its place, lets `meanwhile` happen, and goes on from there to the pass's end.
fn pass_with(machine: &Machine, meanwhile: impl FnOnce()) -> PassDone {
    let (declaration, never) = (Arc::new(machine.declaration()), AtomicBool::new(false));
    let input = PassInput {
        ground: &machine.ground,
        programs: None,
        store: &machine.store,
        clock: &machine.clock,
        declaration: Some(Arc::clone(&declaration)),
        trigger: Trigger::Timer,
        refused: None,
        looked: &|_| {},
        progress: &|_| {},
        cancelled: &never,
    };
    let own = Own::look(&machine.ground);
    let walker = Walker::new(&machine.ground, &own).unwrap();
    let accounts = Arc::new(Accounts::read(&walker));
    let tools = Tools::new(&machine.ground, None, Some(&machine.store), &never);
    let site = Site {
        walker,
        accounts,
        contents: &machine.store,
        sets_owner: is_root(),
        tools: &tools,
        recall: None,
        together: None,
    };
    let known = Known::of(&machine.store, Rows::read(&machine.store)).unwrap();
    let book = Book::new(known.pass, Millis(7), known.previous, input.progress);
    let mut engine = Engine::new(site, &machine.store, book, &machine.clock, &never);
    let mut sights = survey::survey(
        &engine.site,
        &declaration,
        &known.records,
        &Places::of(&engine.site, &declaration),
        &|_| {},
    );
    let resource = declaration.resources().next().unwrap();
    let turn = Turn::new(resource, sights[0].take(), &declaration, &known.records, Millis(7));
    let mut turns = VecDeque::from([turn]);
    let intents = agenda::intents(&mut turns);
    engine.intend(intents);
    let item = turns.pop_front().unwrap().into_change().unwrap();
    let attempt = place(item.prepare(&engine.site.fresh()));
    meanwhile();
    engine.finish(&[item], vec![attempt]);
    conclude(&input, engine, Instant::now(), Outside::default())
}

// rule: H-09
// case: O-05
#[test]
fn what_somebody_changed_right_after_it_was_put_in_place_is_ours_and_its_change_is_drift() {
    let mut machine = Machine::adopted();
    machine.file("/srv/a", "ours");
    let done = pass_with(&machine, || machine.write("/srv/a", "theirs"));
    assert_eq!(outcome(&done, "file:/srv/a"), (Failed, Some("not_as_written".to_owned())));
    let next = machine.pass();
    assert_eq!(outcome(&next, "file:/srv/a"), (Applied, Some("drift".to_owned())));
    assert_eq!(machine.read("/srv/a"), "ours");
    assert_eq!(machine.store.records().unwrap()["file:/srv/a"].origin, Origin::Created);
}

// rule: H-09
#[test]
fn what_could_not_be_looked_at_again_keeps_its_intent_and_is_ours_once_it_can_be() {
    let mut machine = Machine::adopted();
    std::fs::create_dir(machine.at("/srv/d")).unwrap();
    machine.file("/srv/d/a", "ours");
    let done = pass_with(&machine, || {
        std::fs::rename(machine.at("/srv/d"), machine.at("/srv/away")).unwrap();
        symlink("d", machine.at("/srv/d")).unwrap();
    });
    assert_eq!(outcome(&done, "file:/srv/d/a"), (Refused, Some("too_many_links".to_owned())));
    assert_eq!(machine.store.intents().unwrap().len(), 1);
    std::fs::remove_file(machine.at("/srv/d")).unwrap();
    std::fs::rename(machine.at("/srv/away"), machine.at("/srv/d")).unwrap();
    let next = machine.pass();
    assert_eq!(line(&next, "file:/srv/d/a").outcome, Unchanged);
    let records = machine.store.records().unwrap();
    assert_eq!(records["file:/srv/d/a"].origin, Origin::Created);
    assert_eq!(machine.store.intents().unwrap(), []);
}
