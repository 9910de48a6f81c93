//! The pure half of supervision: what one more failure of a child means. Time is an argument; nothing is started here.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::Limits;
use crate::timer::ceiling;

/// What a child has on its account.
#[derive(Debug, Default)]
pub(super) struct Record {
    recent: VecDeque<Instant>,
    in_a_row: u32,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Start it again after this wait (jitter comes on top).
    Again(Duration),
    GiveUp,
}

impl Record {
    /// One more failure at `now`, of a child that had been up for `ran` (`None`: it did not even start).
    pub(super) fn failed(&mut self, limits: &Limits, now: Instant, ran: Option<Duration>) -> Verdict {
        while self.recent.front().is_some_and(|then| now.duration_since(*then) > limits.window) {
            self.recent.pop_front();
        }
        if limits.restarts != u32::MAX {
            self.recent.push_back(now);
        }
        if u32::try_from(self.recent.len()).unwrap_or(u32::MAX) > limits.restarts {
            return Verdict::GiveUp;
        }
        if ran.is_some_and(|ran| ran >= limits.stable_after) {
            self.in_a_row = 0;
        }
        let wait = ceiling(limits.first_backoff, limits.longest_backoff, self.in_a_row);
        self.in_a_row = self.in_a_row.saturating_add(1);
        Verdict::Again(wait)
    }

    pub(super) fn in_a_row(&self) -> u32 {
        self.in_a_row
    }
}
