use super::{Digesting, digest};
use crate::id::Millis;
use crate::outcome::{Outcome, ResourceOutcome};

fn line(key: &str, outcome: Outcome, since: i64) -> ResourceOutcome {
    ResourceOutcome {
        key: key.to_owned(),
        module: "web".to_owned(),
        outcome,
        since: Millis(since),
        count: 1,
        code: None,
        reason: None,
    }
}

#[test]
fn the_digest_of_outcomes_does_not_depend_on_their_order_and_depends_on_each_of_them() {
    let [a, b] = [line("file:/a", Outcome::Unchanged, 1), line("file:/b", Outcome::Held, 2)];
    assert_eq!(digest([&a, &b]), digest([&b, &a]));
    assert_ne!(digest([&a, &b]), digest([&a]));
    assert_ne!(digest([&a, &b]), digest([&a, &line("file:/b", Outcome::Held, 3)]));
    assert_eq!(
        digest([&a]),
        digest([&ResourceOutcome { count: 9, ..a.clone() }]),
        "what only counts up stays out"
    );
}

#[test]
fn an_outcome_takes_the_place_of_another_in_a_digest_without_the_rest_being_read() {
    let [a, b] = [line("file:/a", Outcome::Unchanged, 1), line("file:/b", Outcome::Held, 2)];
    let repaired = line("file:/a", Outcome::Applied, 5);
    let mut digesting = Digesting::from(digest([&a, &b]));
    digesting.outcome(&a);
    digesting.outcome(&repaired);
    assert_eq!(digesting.end(), digest([&repaired, &b]));
}
