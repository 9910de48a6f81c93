//! How long to wait before a child that ended is started again: a second, then twice as long each time, half a minute
//! at most; from the beginning once it has run for a while. Pure.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);
/// Whoever ran this long did not fail at starting.
const STABLE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct Pauses {
    last: Option<Duration>,
}

impl Pauses {
    /// The pause after a child that ran for `ran`.
    pub(crate) fn after(&mut self, ran: Duration) -> Duration {
        let next = match self.last {
            Some(last) if ran < STABLE => (last * 2).min(LONGEST),
            _ => FIRST,
        };
        self.last = Some(next);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_keeps_dying_is_waited_for_longer_and_one_that_lived_is_not() {
        let mut pauses = Pauses::default();
        let mut after = |ran| pauses.after(Duration::from_secs(ran)).as_secs();
        assert_eq!([(); 7].map(|()| after(0)), [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(after(60), 1);
        assert_eq!(after(59), 2);
    }
}
