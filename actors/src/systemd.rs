//! What the daemon tells systemd about itself: ready, status, stopping, alive. Without a notification socket every
//! call does nothing; an abstract one (`@…`) is not understood. The socket's name is inherited by what we start, so
//! whoever starts programs takes it out of their environment. It never lets a text of ours become an assignment: control characters are taken out first.
//! The daemons' mains call it, and [`watchdog`](crate::watchdog) for the keepalive.

use std::time::Duration;

use sd_notify::NotifyState;

#[cfg(test)]
mod tests;

/// The longest status systemd shows usefully; more is cut.
const LONGEST_STATUS: usize = 400;

/// The start is complete. Say it once, when the store is open and the tree is up.
pub fn ready(status: &str) {
    let status = one_line(status);
    tell(&[NotifyState::Ready, NotifyState::Status(&status)]);
}

/// The line that `systemctl status` shows.
pub fn status(text: &str) {
    tell(&[NotifyState::Status(&one_line(text))]);
}

/// The stop has begun.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// How often systemd wants to hear from us at the latest; `None` when it does not watch this process.
#[must_use]
pub fn watchdog_interval() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

/// Still well. Only [`watchdog`](crate::watchdog) decides when that is true.
pub fn keepalive() {
    tell(&[NotifyState::Watchdog]);
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        // It will take our silence for a hang, so the reason belongs into the log.
        tracing::warn!(%error, "systemd could not be told");
    }
}

/// A newline in a status would begin a new assignment (`MAINPID=…`), so control characters become spaces.
fn one_line(text: &str) -> String {
    text.chars().take(LONGEST_STATUS).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
