use std::time::Duration;

use proptest::prelude::*;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;

use super::{Backoff, after, ceiling, jittered, jittered_by, scaled};

/// Says when it was told what.
struct Bell;

impl Actor for Bell {
    type Msg = &'static str;
    type State = UnboundedSender<(&'static str, Instant)>;
    type Arguments = UnboundedSender<(&'static str, Instant)>;

    async fn pre_start(
        &self,
        _: ActorRef<Self::Msg>,
        out: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(out)
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        msg: Self::Msg,
        out: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        out.send((msg, Instant::now()))?;
        Ok(())
    }
}

async fn bell() -> (ActorRef<&'static str>, UnboundedReceiver<(&'static str, Instant)>) {
    let (sender, rung) = unbounded_channel();
    let (actor, _) = Actor::spawn(None, Bell, sender).await.unwrap();
    (actor, rung)
}

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn a_timer_obeys_the_paused_clock() {
    let (me, mut rung) = bell().await;
    let (begun, real) = (Instant::now(), std::time::Instant::now());
    let timer = after(&me, 24 * HOUR, || "day");
    let (what, when) = rung.recv().await.unwrap();
    assert_eq!(what, "day");
    assert!(when - begun >= 24 * HOUR && when - begun < 25 * HOUR);
    assert!(real.elapsed() < HOUR);
    assert!(timer.is_done());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_timer_never_fires() {
    let (me, mut rung) = bell().await;
    drop(after(&me, HOUR, || "dropped"));
    let _kept = after(&me, 2 * HOUR, || "kept");
    assert_eq!(rung.recv().await.unwrap().0, "kept");
}

#[tokio::test(start_paused = true)]
async fn a_wait_too_long_for_the_clock_is_a_wait_for_ever() {
    let (me, mut rung) = bell().await;
    let forever = after(&me, Duration::MAX, || "never");
    let _later = after(&me, 1000 * HOUR, || "later");
    assert_eq!(rung.recv().await.unwrap().0, "later");
    assert!(!forever.is_done());
}

#[test]
fn a_backoff_climbs_to_its_longest_wait_and_begins_again_when_reset() {
    let (first, longest) = (Duration::from_millis(100), Duration::from_secs(1));
    let mut backoff = Backoff::new(first, longest);
    let climbed: Vec<_> = (0..6).map(|_| backoff.climb().as_millis()).collect();
    assert_eq!(climbed, [100, 200, 400, 800, 1000, 1000]);
    backoff.reset();
    assert_eq!(backoff.climb(), first);
}

#[test]
fn full_jitter_uses_the_whole_span() {
    let mut backoff = Backoff::new(HOUR, HOUR);
    let drawn: Vec<_> = (0..200).map(|_| backoff.full_jitter()).collect();
    assert!(drawn.iter().all(|wait| *wait <= HOUR));
    // Each half is missed by 200 even draws once in 2^200 runs.
    assert!(drawn.iter().any(|wait| *wait < HOUR / 2) && drawn.iter().any(|wait| *wait > HOUR / 2));
}

#[test]
fn jitter_with_a_share_that_is_no_share_is_clamped() {
    assert_eq!(jittered(HOUR, 0.0), HOUR);
    assert_eq!(jittered(HOUR, -3.0), HOUR);
    assert_eq!(jittered(HOUR, f64::NAN), HOUR);
    assert!(jittered(HOUR, 7.0) <= 2 * HOUR);
}

proptest! {
    #[test]
    fn jitter_stays_within_its_share(millis in 1_u64..1_000_000_000, share in 0.0_f64..1.0, chance in 0.0_f64..1.0) {
        let wait = Duration::from_millis(millis);
        let drawn = jittered_by(wait, share, chance);
        let slack = Duration::from_micros(1);
        prop_assert!(drawn + slack >= scaled(wait, 1.0 - share) && drawn <= scaled(wait, 1.0 + share) + slack);
    }

    #[test]
    fn a_ceiling_never_passes_the_longest_wait_nor_falls(first in 0_u64..10_000, longest in 0_u64..10_000_000, tries in 0_u32..200) {
        let (first, longest) = (Duration::from_millis(first), Duration::from_millis(longest));
        prop_assert!(ceiling(first, longest, tries) <= longest);
        prop_assert!(ceiling(first, longest, tries) <= ceiling(first, longest, tries + 1));
    }
}
