//! The pure half: what one more failure means.

use std::time::Duration;

use proptest::prelude::*;
use tokio::time::Instant;

use super::super::restart::{Record, Verdict};
use super::Limits;

fn limits(restarts: u32) -> Limits {
    Limits {
        restarts,
        window: Duration::from_secs(10),
        first_backoff: Duration::from_millis(20),
        longest_backoff: Duration::from_secs(1),
        stable_after: Duration::from_secs(5),
    }
}

#[test]
fn no_restart_allowed_means_the_first_failure_is_the_last() {
    assert_eq!(Record::default().failed(&limits(0), Instant::now(), None), Verdict::GiveUp);
}

#[test]
fn five_failures_at_once_double_the_wait_and_the_sixth_is_too_many() {
    let (mut record, now) = (Record::default(), Instant::now());
    let waits = [20, 40, 80, 160, 320].map(|millis| Verdict::Again(Duration::from_millis(millis)));
    for wait in waits {
        assert_eq!(record.failed(&limits(5), now, None), wait);
    }
    assert_eq!(record.failed(&limits(5), now, None), Verdict::GiveUp);
}

#[test]
fn without_a_limit_it_neither_gives_up_nor_remembers_for_ever() {
    let (mut record, now) = (Record::default(), Instant::now());
    let last = (0..10_000).map(|_| record.failed(&limits(u32::MAX), now, None)).last();
    assert_eq!(last, Some(Verdict::Again(Duration::from_secs(1))));
}

proptest! {
    #[test]
    fn within_any_window_it_never_restarts_more_often_than_allowed(
        restarts in 0_u32..6,
        gaps in prop::collection::vec(0_u64..4_000, 1..60),
    ) {
        let (limits, mut record, mut now, mut again) = (limits(restarts), Record::default(), Instant::now(), Vec::new());
        for gap in gaps {
            now += Duration::from_millis(gap);
            match record.failed(&limits, now, Some(Duration::from_millis(gap))) {
                Verdict::Again(wait) => {
                    prop_assert!(wait >= limits.first_backoff && wait <= limits.longest_backoff);
                    again.push(now);
                }
                Verdict::GiveUp => break,
            }
        }
        for last in &again {
            let within = again.iter().filter(|then| *then <= last && *last - **then <= limits.window).count();
            prop_assert!(within <= usize::try_from(restarts).unwrap());
        }
    }
}
