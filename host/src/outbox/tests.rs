use tenure_protocol::id::Millis;
use tenure_protocol::outcome::Outcome;
use tenure_protocol::report::{Counts, Trigger, digest};
use tenure_protocol::wire::{codec, frame};

use super::*;

pub(crate) fn summary(pass: u64, outcomes: &[ResourceOutcome]) -> Summary {
    Summary {
        pass,
        trigger: Trigger::Timer,
        revision: None,
        started: Millis(0),
        took_ms: 0,
        counts: Counts::of(outcomes.iter().map(|o| o.outcome)),
        owned: 0,
        digest: digest(outcomes),
        refused: None,
        refused_revision: None,
    }
}

pub(crate) fn outcome(key: &str, reason: Option<String>) -> ResourceOutcome {
    ResourceOutcome {
        key: key.to_owned(),
        module: "base".to_owned(),
        outcome: Outcome::Applied,
        since: Millis(1),
        count: 1,
        code: None,
        reason,
    }
}

#[test]
fn only_what_changed_is_told_to_somebody_who_has_the_rest() {
    let before = summary(7, &[]);
    let after = summary(8, &[outcome("file:/a", None)]);
    assert_eq!(extent(None, &after), Extent::Everything, "nobody was told anything yet");
    assert_eq!(extent(Some((7, before.digest)), &after), Extent::Changed);
    assert_eq!(
        extent(Some((6, before.digest)), &after),
        Extent::Everything,
        "a report in between was not told"
    );
    assert_eq!(extent(Some((3, after.digest)), &after), Extent::Summary, "nothing is different from then");
    assert_eq!(extent(Some((9, before.digest)), &after), Extent::Everything, "the store began anew");
}

#[test]
fn a_report_with_nothing_to_tell_is_one_part_that_says_it_is_the_last() {
    let parts = parts(&summary(1, &[]), false, [], []);
    assert_eq!((parts.len(), parts[0].last, parts[0].outcomes.len()), (1, true, 0));
}

#[test]
fn every_part_fits_a_frame_however_long_keys_and_reasons_are() {
    let outcomes: Vec<_> = (0..450)
        .map(|n| outcome(&format!("file:/{n}/{}", "d/".repeat(1_500)), Some("ü".repeat(500))))
        .collect();
    let gone: Vec<String> = (0..300).map(|n| format!("file:/{n}/{}", "e/".repeat(1_900))).collect();
    let parts = parts(&summary(1, &outcomes), true, outcomes.clone(), gone.clone());
    assert!(parts.iter().all(|part| codec::encode(part).len() < frame::MOST - 4 * 1024));
    let told: Vec<_> = parts.iter().flat_map(|part| part.outcomes.clone()).collect();
    let forgotten: Vec<_> = parts.iter().flat_map(|part| part.forgotten.clone()).collect();
    assert_eq!((told, forgotten), (outcomes, gone));
    assert_eq!(parts.iter().filter(|part| part.last).count(), 1);
    assert!(parts.iter().enumerate().all(|(n, part)| usize::try_from(part.part).unwrap() == n));
}

#[test]
fn no_part_has_more_outcomes_than_its_list_may_have() {
    let outcomes: Vec<_> = (0..1_000).map(|n| outcome(&format!("file:/{n}"), None)).collect();
    let parts = parts(&summary(1, &outcomes), true, outcomes, []);
    assert_eq!(parts.len(), 5);
    assert!(parts.iter().all(|part| part.outcomes.len() <= MOST_IN_A_PART));
}

#[test]
fn only_the_newest_report_waits() {
    let outbox = Outbox::default();
    let mut watching = outbox.watch();
    for pass in 1..=3 {
        outbox.put(Report {
            summary: summary(pass, &[]),
            changed: Vec::new(),
            forgotten: Vec::new(),
            all: None,
            read_whole: None,
        });
    }
    assert_eq!(watching.borrow_and_update().as_ref().unwrap().summary.pass, 3);
    assert!(!watching.has_changed().unwrap());
}
