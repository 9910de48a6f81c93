//! Numbers and moments in words. Pure: *now* is an argument.

use std::time::Duration;

use jiff::Timestamp;
use tenure_protocol::id::Millis;

/// What stands where nothing is known.
pub(crate) const NONE: &str = "—";

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// How long ago `then` was, without judging it (H-22).
pub(crate) fn ago(then: Millis, now: Millis) -> String {
    format!("{} ago", span(now.since(then)))
}

/// How long until `then`, or that it is over.
pub(crate) fn until(then: Millis, now: Millis) -> String {
    if then > now { format!("in {}", span(then.since(now))) } else { ago(then, now) }
}

/// A span in its largest unit.
pub(crate) fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..MINUTE => format!("{seconds} s"),
        MINUTE..HOUR => format!("{} min", seconds / MINUTE),
        HOUR..DAY => format!("{} h", seconds / HOUR),
        _ => counted(seconds / DAY, "day"),
    }
}

/// A moment as it is written in lists, UTC.
pub(crate) fn moment(at: Millis) -> String {
    Timestamp::from_millisecond(at.0)
        .map_or_else(|_| format!("{} ms", at.0), |time| time.strftime("%Y-%m-%d %H:%M:%SZ").to_string())
}

/// `1 node`, `2 nodes`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// A size with one digit behind the point where that says something.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let Some((unit, shift)) = UNITS.into_iter().find(|(_, shift)| bytes >> shift > 0) else {
        return counted(bytes, "byte");
    };
    let whole = bytes >> shift;
    let tenth = ((bytes - (whole << shift)) >> (shift - 10)) * 10 / 1024;
    if whole < 10 && tenth > 0 { format!("{whole}.{tenth} {unit}") } else { format!("{whole} {unit}") }
}

/// `text` as a shell takes it for one word.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%=,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests;
