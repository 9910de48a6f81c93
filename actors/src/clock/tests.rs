use std::time::Duration;

use super::{ManualClock, Moment, system};

#[test]
fn a_manual_clock_stands_still_until_it_is_moved_and_its_clones_move_along() {
    let clock = ManualClock::at(Moment::from_millis(1_000));
    let shared = clock.shared();
    assert_eq!(shared.now().millis(), 1_000);
    clock.advance(Duration::from_secs(2));
    assert_eq!(shared.now().millis(), 3_000);
    clock.set(Moment::from_millis(-5));
    assert_eq!(shared.now().millis(), -5);
}

#[test]
fn the_system_clock_shows_a_time_after_this_was_written() {
    assert!(system().now() > Moment::from_millis(1_735_689_600_000));
}

#[test]
fn moments_saturate_instead_of_wrapping() {
    let end = Moment::from_millis(i64::MAX);
    assert_eq!(end.plus(Duration::MAX), end);
    assert_eq!(Moment::from_millis(i64::MIN).minus(Duration::MAX), Moment::from_millis(i64::MIN));
}

#[test]
fn the_span_since_a_later_moment_is_nothing() {
    let (early, late) = (Moment::from_millis(10), Moment::from_millis(25));
    assert_eq!(late.since(early), Duration::from_millis(15));
    assert_eq!(early.since(late), Duration::ZERO);
}

#[test]
fn the_time_of_day_is_right_before_and_after_the_epoch() {
    assert_eq!(Moment::from_millis(0).time_of_day(), (0, 0, 0));
    assert_eq!(Moment::from_millis(86_399_999).time_of_day(), (23, 59, 59));
    assert_eq!(Moment::from_millis(-1).time_of_day(), (23, 59, 59));
    assert_eq!(Moment::from_millis(1_000 * (3_600 * 5 + 60 * 6 + 7)).time_of_day(), (5, 6, 7));
}
