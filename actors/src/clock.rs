//! The wall clock, injected: whoever needs the time of day holds a [`SharedClock`] and passes moments on as arguments.
//! It never measures how long something took; that is tokio's `Instant`, which the paused clock of a test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[cfg(test)]
mod tests;

/// A moment on the wall clock: milliseconds since 1970-01-01 00:00 UTC, negative before it. Wall clocks jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(i64);

/// Something that knows the time of day.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Moment;
}

/// The clock as everybody holds it.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's own clock.
#[must_use]
pub fn system() -> SharedClock {
    Arc::new(SystemClock)
}

impl Moment {
    /// The moment that many milliseconds after the epoch.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// This moment and `later` on top; it saturates.
    #[must_use]
    pub fn plus(self, later: Duration) -> Self {
        Self(self.0.saturating_add(whole_millis(later)))
    }

    /// This moment less `earlier`; it saturates.
    #[must_use]
    pub fn minus(self, earlier: Duration) -> Self {
        Self(self.0.saturating_sub(whole_millis(earlier)))
    }

    /// How long after `earlier` this is; nothing if it is not after it.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Hour, minute and second of the day, UTC.
    pub(crate) fn time_of_day(self) -> (i64, i64, i64) {
        let seconds = self.0.div_euclid(1000).rem_euclid(86_400);
        (seconds / 3600, seconds / 60 % 60, seconds % 60)
    }
}

struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place where the time of day comes from")]
    fn now(&self) -> Moment {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => Moment(whole_millis(after)),
            Err(before) => Moment(whole_millis(before.duration()).saturating_neg()),
        }
    }
}

/// A clock that stands still until it is told otherwise. For tests: keep one clone, hand out another.
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    /// A clock that shows `moment`.
    #[must_use]
    pub fn at(moment: Moment) -> Self {
        Self(Arc::new(AtomicI64::new(moment.0)))
    }

    /// Show another moment, earlier or later.
    pub fn set(&self, moment: Moment) {
        self.0.store(moment.0, Ordering::SeqCst);
    }

    /// Move forward.
    pub fn advance(&self, by: Duration) {
        self.set(self.now().plus(by));
    }

    /// This clock as everybody holds it; both show the same time.
    #[must_use]
    pub fn shared(&self) -> SharedClock {
        Arc::new(self.clone())
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Moment {
        Moment(self.0.load(Ordering::SeqCst))
    }
}

fn whole_millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
