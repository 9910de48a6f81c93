//! Which pass runs next: pure. One pass at a time; whatever asks for one meanwhile gets one pass after it, together
//! (H-07).

use tenure_protocol::report::Trigger;

/// The pass that runs and the one that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Queue {
    running: Option<Trigger>,
    waiting: Option<Trigger>,
}

impl Queue {
    /// Somebody wants a pass. Answers the trigger of the one to start now, if none runs.
    pub(super) fn wanted(&mut self, trigger: Trigger) -> Option<Trigger> {
        if self.running.is_none() {
            self.running = Some(trigger);
            return Some(trigger);
        }
        self.waiting = Some(self.waiting.map_or(trigger, |waiting| telling(waiting, trigger)));
        None
    }

    /// The pass that ran is over. Answers the trigger of the one to start now, if one waits.
    pub(super) fn done(&mut self) -> Option<Trigger> {
        self.running = self.waiting.take();
        self.running
    }
}

/// Of two reasons for one pass, the one that tells more to whoever reads the report.
fn telling(a: Trigger, b: Trigger) -> Trigger {
    const fn rank(trigger: Trigger) -> u8 {
        match trigger {
            Trigger::Declaration => 4,
            Trigger::Asked => 3,
            Trigger::Start => 2,
            Trigger::Reconnect => 1,
            Trigger::Timer => 0,
        }
    }
    if rank(b) > rank(a) { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: H-07
    #[test]
    fn whatever_asks_while_a_pass_runs_gets_one_pass_after_it_together() {
        let mut queue = Queue::default();
        assert_eq!(queue.wanted(Trigger::Start), Some(Trigger::Start));
        assert_eq!(queue.wanted(Trigger::Timer), None);
        assert_eq!(queue.wanted(Trigger::Reconnect), None);
        assert_eq!(queue.wanted(Trigger::Declaration), None);
        assert_eq!(queue.wanted(Trigger::Timer), None);
        assert_eq!(queue.done(), Some(Trigger::Declaration));
        assert_eq!(queue.done(), None);
        assert_eq!(queue.wanted(Trigger::Timer), Some(Trigger::Timer));
    }
}
