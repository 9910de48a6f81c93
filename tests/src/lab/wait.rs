//! Waiting for a condition without failing when it does not come, for cleaning up and for boots; tests wait with
//! [`crate::wait`], which does.

use std::time::{Duration, Instant};

/// The answer of `probe`, or `None` after `deadline`. The last look is after the deadline, so that a slow probe is
/// asked at least twice.
pub(super) fn try_for<T>(deadline: Duration, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + deadline;
    let mut pause = SHORTEST;
    loop {
        let late = Instant::now() >= end;
        if let Some(answer) = probe() {
            return Some(answer);
        }
        if late {
            return None;
        }
        rest(pause);
        pause = (pause * 2).min(LONGEST);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "between two looks at a condition outside this process there is nothing to wait on"
)]
fn rest(pause: Duration) {
    std::thread::sleep(pause);
}

const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(50);
