//! Timers that speak to an actor through its own mailbox, and the random waits that keep many machines from doing
//! the same thing in the same second. They obey tokio's clock, paused or not, and never outlive their handle.

use std::time::Duration;

use ractor::ActorRef;
use tokio::task::AbortHandle;

#[cfg(test)]
mod tests;

/// One pending message. Dropped, it is cancelled; if it has fired already, the message may be in the mailbox, so an
/// actor that cancels must still recognise one that came too late (a number in the message does it).
#[derive(Debug)]
#[must_use = "a timer is cancelled when its handle is dropped"]
pub struct Timer {
    task: AbortHandle,
}

/// Tell `me` the message that `make` makes, once, after `wait`. Re-arm lazily: a deadline that moves needs one timer
/// that looks at the deadline when it fires, never one timer for each move.
pub fn after<M: Send + 'static>(
    me: &ActorRef<M>,
    wait: Duration,
    make: impl FnOnce() -> M + Send + 'static,
) -> Timer {
    let me = me.clone();
    // The deadline counts from now, not from the task's first poll.
    let due = tokio::time::Instant::now().checked_add(wait);
    let task = tokio::spawn(async move {
        match due {
            Some(due) => tokio::time::sleep_until(due).await,
            None => std::future::pending().await,
        }
        drop(me.send_message(make()));
    });
    Timer { task: task.abort_handle() }
}

impl Timer {
    /// Has it fired or been cancelled?
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.task.is_finished()
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// `wait` give or take up to `share` of itself (0.1 = a tenth), evenly spread. A share outside 0..=1 is clamped.
#[must_use]
pub fn jittered(wait: Duration, share: f64) -> Duration {
    jittered_by(wait, share, chance())
}

/// `chance` lies in 0..1: 0 gives the shortest wait, towards 1 the longest.
fn jittered_by(wait: Duration, share: f64, chance: f64) -> Duration {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    scaled(wait, 1.0 + share * (2.0 * chance - 1.0))
}

/// Exponential waits with full jitter: the n-th lies evenly between nothing and `first × 2ⁿ`, at most `longest`.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    tries: u32,
}

impl Backoff {
    /// Waits whose ceiling begins at `first` and doubles up to `longest`.
    #[must_use]
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, tries: 0 }
    }

    /// The next wait: anything from nothing up to the present ceiling, which then doubles.
    pub fn full_jitter(&mut self) -> Duration {
        scaled(self.climb(), chance())
    }

    /// Back to the first ceiling, after a success that lasted.
    pub fn reset(&mut self) {
        self.tries = 0;
    }

    fn climb(&mut self) -> Duration {
        let ceiling = ceiling(self.first, self.longest, self.tries);
        self.tries = self.tries.saturating_add(1);
        ceiling
    }
}

/// `first × 2^tries`, at most `longest`.
pub(crate) fn ceiling(first: Duration, longest: Duration, tries: u32) -> Duration {
    let doubled = 1_u32.checked_shl(tries).and_then(|factor| first.checked_mul(factor));
    doubled.unwrap_or(longest).min(longest)
}

/// An even draw from 0..1 out of the system's randomness. Without any (a bare chroot), the middle: a wait without
/// jitter is worse than one with, and far better than a crash.
fn chance() -> f64 {
    getrandom::u32().map_or(0.5, |drawn| f64::from(drawn) / (f64::from(u32::MAX) + 1.0))
}

fn scaled(wait: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(wait.as_secs_f64() * factor).unwrap_or(wait)
}
