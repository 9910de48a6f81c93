//! How soon it is looked again where packages wait for somebody else: whoever holds the package manager's lock is done
//! long before the timer for drift is due (O-10). Pure.

use std::time::Duration;

use tenure_protocol::outcome::{Outcome, ResourceOutcome};

use crate::resource::package::passes;

/// Passes in a row that left something waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Patience {
    in_a_row: u32,
}

/// An installation by hand takes about so long, and a look is cheap.
const FIRST: Duration = Duration::from_secs(15);

impl Patience {
    /// When to look again after a pass, if sooner than the timer says: each time after twice as long.
    pub(super) fn after(&mut self, waits: bool, every: Duration) -> Option<Duration> {
        let sooner = FIRST.saturating_mul(1_u32.checked_shl(self.in_a_row).unwrap_or(u32::MAX));
        self.in_a_row = if waits { self.in_a_row.saturating_add(1) } else { 0 };
        (waits && sooner < every).then_some(sooner)
    }
}

/// Whether somebody else's work with packages is all that something waits for.
pub(super) fn waits(outcomes: &[ResourceOutcome]) -> bool {
    let outstanding = outcomes.iter().filter(|line| line.outcome == Outcome::Outstanding);
    outstanding.filter_map(|line| line.code.as_deref()).any(passes)
}

#[cfg(test)]
mod tests {
    use super::*;

    // case: O-10
    #[test]
    fn what_waits_is_looked_at_again_soon_then_ever_less_often_and_never_less_than_the_timer() {
        let (mut patience, every) = (Patience::default(), Duration::from_secs(600));
        let mut after = |waits| patience.after(waits, every).map(|wait| wait.as_secs());
        let rising: Vec<_> = (0..7).map(|_| after(true)).collect();
        assert_eq!(rising, [Some(15), Some(30), Some(60), Some(120), Some(240), Some(480), None]);
        assert_eq!(after(false), None);
        assert_eq!(after(true), Some(15), "whoever comes next is waited for anew");
        let mut long = Patience { in_a_row: u32::MAX };
        assert_eq!(long.after(true, every), None);
        assert_eq!(Patience::default().after(true, Duration::from_secs(1)), None);
    }
}
