//! When to dial again: the growing wait with its random part, over what the end of a dial or session asks for. It
//! waits for nobody itself.

use std::time::Duration;

use tenure_actors::timer::{Backoff, jittered};

use super::state::Pause;

/// The waits of one host.
#[derive(Debug, Clone)]
pub struct Redial {
    backoff: Backoff,
}

/// The first redial comes within this, spread, and the cap is what a fleet's control plane is given to come back (O-61).
const FIRST: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(30);
/// How often a retired node asks whether it still is.
const RARELY: Duration = Duration::from_secs(60 * 60);

impl Redial {
    /// One that has not waited yet.
    pub fn new() -> Self {
        Self { backoff: Backoff::new(FIRST, LONGEST) }
    }

    /// How long to wait after an end that asks for `pause`.
    pub fn wait(&mut self, pause: Pause) -> Duration {
        match pause {
            Pause::Backoff => self.backoff.full_jitter(),
            Pause::AtLeast(least) => least.saturating_add(self.backoff.full_jitter()),
            Pause::Rarely => jittered(RARELY, 0.2),
        }
    }

    /// Back to the first wait, after a session that held.
    pub fn reset(&mut self) {
        self.backoff.reset();
    }
}

impl Default for Redial {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::super::state::held;
    use super::*;

    const BEAT: Duration = Duration::from_secs(10);

    /// The longest of the waits after sessions that each lasted so long.
    fn longest(lasting: Duration) -> Duration {
        let mut redial = Redial::new();
        let waits = (0..50).map(|_| {
            if held(lasting, BEAT) {
                redial.reset();
            }
            redial.wait(Pause::Backoff)
        });
        waits.max().unwrap()
    }

    // case: O-55
    // case: O-61
    #[test]
    fn behind_a_proxy_that_cuts_each_session_at_just_under_a_minute_the_wait_never_grows() {
        assert!(longest(Duration::from_secs(55)) <= FIRST);
        assert!(longest(Duration::from_secs(31)) <= FIRST);
    }

    // case: O-61
    #[test]
    fn a_control_plane_that_drops_each_session_at_once_is_dialled_less_and_less() {
        let longest = longest(Duration::from_secs(1));
        assert!(longest > 5 * FIRST && longest <= LONGEST, "{longest:?}");
    }

    // case: O-61
    #[test]
    fn a_wait_that_was_imposed_is_kept_to_and_still_spread() {
        let least = Duration::from_secs(7);
        let waits: Vec<Duration> = (0..20).map(|_| Redial::new().wait(Pause::AtLeast(least))).collect();
        assert!(waits.iter().all(|wait| (least..=least + FIRST).contains(wait)), "{waits:?}");
        assert!(waits.windows(2).any(|two| two[0] != two[1]), "{waits:?}");
    }
}
