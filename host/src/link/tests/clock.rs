//! The machine's clock, wrong by minutes and by years, in both directions.

use tenure_actors::clock::{Clock as _, ManualClock, Moment};

use super::*;

/// 2026-01-01.
const START: Moment = Moment::from_millis(1_767_225_600_000);
const MINUTES: Duration = Duration::from_secs(7 * 60);
const YEARS: Duration = Duration::from_secs(5 * 366 * 24 * 3600);

/// A machine whose clock shows this, with the hand that sets it.
fn machine_at(moment: Moment) -> (Machine, ManualClock) {
    let clock = ManualClock::at(moment);
    (Machine { clock: clock.shared(), ..Machine::new() }, clock)
}

// case: O-53
// rule: N-06
#[tokio::test]
async fn a_clock_that_jumps_moves_no_renewal_and_ends_no_session() {
    let fake = Fake::start().await;
    let (machine, clock) = machine_at(START);
    fake.change(|ways| ways.token_lives_ms = 3_000);
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    linked(&daemon, is_up).await;
    for (renewals, moment) in (1_u32..).zip([START.plus(YEARS), START.minus(MINUTES), Moment::from_millis(0)])
    {
        let began = tokio::time::Instant::now();
        clock.set(moment);
        fake.until(|book| book.renewals >= renewals).await;
        assert!(began.elapsed() < Duration::from_secs(10), "by the told duration, whatever the clock shows");
        daemon.reconcile.ask(Duration::from_secs(20)).await.unwrap().unwrap();
    }
    assert!(is_up(&daemon.link.view().await.unwrap()));
    let book = fake.book.borrow();
    assert_eq!((book.hellos.len(), book.ended, book.renewals <= 5), (1, 1, true), "no renewal in a rush");
    drop(book);
    daemon.stop().await;
}

// case: O-53
// rule: S-18
#[tokio::test]
async fn a_machine_that_boots_in_the_wrong_year_joins_comes_back_and_keeps_who_it_is() {
    for wrong in [Moment::from_millis(0), START.plus(YEARS)] {
        let fake = Fake::start().await;
        let (machine, clock) = machine_at(wrong);
        let daemon = machine.start().await;
        daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
        linked(&daemon, is_up).await;
        clock.set(START);
        fake.end(&Ended { reason: refusal("draining"), retry_after_ms: 0 }).await;
        fake.until(|book| book.hellos.len() == 2).await;
        linked(&daemon, is_up).await;
        daemon.stop().await;
        clock.set(START.minus(YEARS));
        let daemon = machine.start().await;
        fake.until(|book| book.hellos.len() == 3).await;
        linked(&daemon, is_up).await;
        assert_eq!(clock.now(), START.minus(YEARS));
        daemon.stop().await;
        let book = fake.book.borrow();
        assert!(
            book.hellos.iter().all(|hello| hello.session_counter.0 > 0 && hello.node == book.hellos[0].node)
        );
    }
}

// case: O-53
// rule: S-18
#[test]
fn a_control_plane_that_was_decades_ahead_leaves_no_machine_that_believes_no_certificate_ever_after() {
    let years_ahead = Millis(START.plus(YEARS).millis());
    assert_eq!(no_earlier(Some(years_ahead)), years_ahead, "some years may be the truth");
    assert_eq!(no_earlier(Some(Millis(3_900_000_000_000))), built(), "the year 2093 is not");
    assert_eq!(no_earlier(Some(Millis(i64::MAX))), built());
}

// case: O-53
#[tokio::test]
async fn a_wait_until_the_next_dial_is_a_duration_that_no_clock_moves() {
    let fake = Fake::start().await;
    let (machine, clock) = machine_at(START);
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    linked(&daemon, is_up).await;
    fake.end(&Ended { reason: refusal("draining"), retry_after_ms: 1_000 }).await;
    linked(&daemon, |view| is_down_with(view, "draining")).await;
    clock.set(START.minus(YEARS));
    fake.until(|book| book.hellos.len() == 2).await;
    linked(&daemon, is_up).await;
    daemon.stop().await;
}
