//! Waiting for a condition. There is no sleeping and hoping: what is waited for is named, and has a deadline.

use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Asks `condition` again and again until it gives a value; panics with `what` when that takes longer than `within`.
pub fn until<T>(what: &str, within: Duration, condition: impl FnMut() -> Option<T>) -> T {
    until_each(OFTEN, what, within, condition)
}

/// As [`until`], for a condition that costs something to ask: it is asked once each `pause`.
pub fn until_each<T>(
    pause: Duration,
    what: &str,
    within: Duration,
    mut condition: impl FnMut() -> Option<T>,
) -> T {
    let deadline = Instant::now() + within;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited {within:?} in vain: {what}");
        rest(pause);
    }
}

/// As [`until`], for a condition that is only true or not.
pub fn until_true(what: &str, within: Duration, mut condition: impl FnMut() -> bool) {
    until(what, within, || condition().then_some(()));
}

const OFTEN: Duration = Duration::from_millis(20);

fn rest(time: Duration) {
    let (_nobody, receiver) = mpsc::channel::<()>();
    let _ = receiver.recv_timeout(time);
}
