//! The lease as a pure machine. Time is how long the keeper has run, on a clock that never goes back.

use std::time::Duration;

/// What the store holds of the node, as far as the keeper knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is ready.
    Held,
    /// It was marked lost.
    Lost,
    /// Nobody knows; the next mark finds out.
    Unknown,
}

/// One lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lease {
    window: Duration,
    until: Duration,
    standing: Standing,
}

/// What a look at the deadline finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Look again after that long.
    Later(Duration),
    /// It ended: the node is to be marked lost.
    Expired,
    /// It ended before, and the node is lost already.
    Lost,
}

impl Lease {
    /// A full window from `now`: what came before is not known.
    pub(super) fn new(standing: Standing, window: Duration, now: Duration) -> Self {
        Self { window, until: now + window, standing }
    }

    /// The node was heard. True: it was not known as ready, and is to be marked so.
    pub(super) fn heard(&mut self, now: Duration) -> bool {
        self.until = now + self.window;
        self.standing != Standing::Held
    }

    /// How long it still runs.
    pub(super) fn left(&self, now: Duration) -> Duration {
        self.until.saturating_sub(now)
    }

    /// What the deadline says. One timer looks at it, however often it moved.
    pub(super) fn due(&self, now: Duration) -> Due {
        match (self.left(now), self.standing) {
            (Duration::ZERO, Standing::Lost) => Due::Lost,
            (Duration::ZERO, Standing::Held | Standing::Unknown) => Due::Expired,
            (left, _) => Due::Later(left),
        }
    }

    /// The store says so now.
    pub(super) fn stands(&mut self, standing: Standing) {
        self.standing = standing;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(90);
    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    // rule: N-08
    #[test]
    fn a_beat_moves_the_end_and_the_timer_only_looks_again() {
        let mut lease = Lease::new(Standing::Held, WINDOW, at(0));
        assert!(!lease.heard(at(30)));
        assert_eq!(lease.due(at(90)), Due::Later(at(30)));
        assert_eq!(lease.due(at(120)), Due::Expired);
    }

    // rule: N-08
    #[test]
    fn a_lost_node_expires_no_second_time_and_a_beat_calls_for_its_return() {
        let mut lease = Lease::new(Standing::Held, WINDOW, at(0));
        assert_eq!(lease.due(at(91)), Due::Expired);
        lease.stands(Standing::Lost);
        assert_eq!(lease.due(at(500)), Due::Lost);
        assert!(lease.heard(at(600)));
        lease.stands(Standing::Held);
        assert!(!lease.heard(at(610)));
    }

    // rule: N-08
    #[test]
    fn after_a_restart_a_node_has_a_full_window_whatever_it_was() {
        for standing in [Standing::Held, Standing::Unknown, Standing::Lost] {
            assert_eq!(Lease::new(standing, WINDOW, at(7)).left(at(7)), WINDOW);
        }
    }
}
