//! Which of two versions is the newer one, by the rules of Debian policy 5.6.12. Pure.

use std::cmp::Ordering;

/// Compares two versions: epoch, then upstream version, then revision.
pub(super) fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (parts(a), parts(b));
    a.0.cmp(&b.0).then_with(|| part(a.1, b.1)).then_with(|| part(a.2, b.2))
}

/// Whether the first is older than the second.
pub(super) fn is_older(a: &str, b: &str) -> bool {
    compare(a, b) == Ordering::Less
}

fn parts(version: &str) -> (u64, &str, &str) {
    let (epoch, rest) = match version.split_once(':') {
        Some((epoch, rest)) => (epoch.parse().unwrap_or(0), rest),
        None => (0, version),
    };
    let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, "0"));
    (epoch, upstream, revision)
}

/// Text and numbers in turn: text by [`rank`] of each character, numbers by value.
fn part(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    while !a.is_empty() || !b.is_empty() {
        let (text_a, rest_a) = split(a, |byte| !byte.is_ascii_digit());
        let (text_b, rest_b) = split(b, |byte| !byte.is_ascii_digit());
        let longest = text_a.len().max(text_b.len());
        let text = (0..longest).map(|at| rank(text_a.get(at)).cmp(&rank(text_b.get(at))));
        let (number_a, after_a) = split(rest_a, u8::is_ascii_digit);
        let (number_b, after_b) = split(rest_b, u8::is_ascii_digit);
        let order = text.fold(Ordering::Equal, Ordering::then).then_with(|| number(number_a, number_b));
        if order != Ordering::Equal {
            return order;
        }
        (a, b) = (after_a, after_b);
    }
    Ordering::Equal
}

fn split(bytes: &[u8], of: impl Fn(&u8) -> bool) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| !of(byte)).unwrap_or(bytes.len());
    bytes.split_at(end)
}

/// A tilde comes before the end, the end before letters, letters before everything else.
fn rank(byte: Option<&u8>) -> u16 {
    match byte {
        Some(b'~') => 0,
        None => 1,
        Some(letter) if letter.is_ascii_alphabetic() => 2 + u16::from(*letter),
        Some(other) => 300 + u16::from(*other),
    }
}

/// Numbers of any length.
fn number(a: &[u8], b: &[u8]) -> Ordering {
    let (_, a) = split(a, |byte| *byte == b'0');
    let (_, b) = split(b, |byte| *byte == b'0');
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests;
