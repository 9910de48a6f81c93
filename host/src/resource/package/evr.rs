//! Which of two versions is the newer one, as rpm and as pacman say it: both have `[EPOCH:]VERSION[-RELEASE]` and compare
//! piece by piece, but differ in what a piece that only one of them has means. Pure.

use std::cmp::Ordering;

/// Whose rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rules {
    /// rpm's: a tilde comes before everything, a caret behind the end only; whoever has more is newer.
    Rpm,
    /// pacman's: letters that only one of them has are a sign of something before it, as in `1.0rc1`.
    Pacman,
}

/// Compares two versions. Where only one of them names a release, it is newer for rpm and nothing for pacman.
pub(super) fn compare(a: &str, b: &str, rules: Rules) -> Ordering {
    let (a, b) = (parts(a), parts(b));
    let release = match (a.2, b.2) {
        (Some(a), Some(b)) => pieces(a, b, rules),
        (a, b) if rules == Rules::Rpm => a.is_some().cmp(&b.is_some()),
        (_, _) => Ordering::Equal,
    };
    number(a.0, b.0).then_with(|| pieces(a.1, b.1, rules)).then(release)
}

/// Epoch, version and release. An epoch that is not written is 0.
pub(super) fn parts(version: &str) -> (&str, &str, Option<&str>) {
    let (epoch, rest) = match version.split_once(':') {
        Some((epoch, rest)) if epoch.bytes().all(|byte| byte.is_ascii_digit()) => (epoch, rest),
        Some(_) | None => ("0", version),
    };
    rest.rsplit_once('-').map_or((epoch, rest, None), |(version, release)| (epoch, version, Some(release)))
}

fn pieces(a: &str, b: &str, rules: Rules) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    loop {
        // Of what one has behind the other's end, pacman looks at the very next character.
        if rules == Rules::Pacman && (a.is_empty() || b.is_empty()) {
            return left(a, b, rules);
        }
        let (between_a, rest_a) = between(a, rules);
        let (between_b, rest_b) = between(b, rules);
        (a, b) = (rest_a, rest_b);
        if rules == Rules::Rpm {
            match marked(&mut a, &mut b) {
                Some(Ordering::Equal) => continue,
                Some(order) => return order,
                None => {}
            }
        }
        let (Some(first_a), Some(first_b)) = (a.first(), b.first()) else { return left(a, b, rules) };
        if rules == Rules::Pacman && between_a != between_b {
            return between_a.cmp(&between_b);
        }
        let numeric = first_a.is_ascii_digit();
        if numeric != first_b.is_ascii_digit() {
            // A number is newer than letters.
            return if numeric { Ordering::Greater } else { Ordering::Less };
        }
        let of = |byte: &u8| if numeric { byte.is_ascii_digit() } else { byte.is_ascii_alphabetic() };
        let (piece_a, rest_a) = split(a, of);
        let (piece_b, rest_b) = split(b, of);
        let order = if numeric { digits(piece_a, piece_b) } else { piece_a.cmp(piece_b) };
        if order != Ordering::Equal {
            return order;
        }
        (a, b) = (rest_a, rest_b);
    }
}

/// What stands between two pieces, and how much of it.
fn between(bytes: &[u8], rules: Rules) -> (usize, &[u8]) {
    let marks: &[u8] = if rules == Rules::Rpm { b"~^" } else { b"" };
    let (between, rest) = split(bytes, |byte| !byte.is_ascii_alphanumeric() && !marks.contains(byte));
    (between.len(), rest)
}

/// What rpm's two marks decide; equal: both have it, and it is taken off both.
fn marked(a: &mut &[u8], b: &mut &[u8]) -> Option<Ordering> {
    let order = match (a.first(), b.first()) {
        (Some(b'~'), Some(b'~')) | (Some(b'^'), Some(b'^')) => Ordering::Equal,
        (Some(b'~'), _) => Ordering::Less,
        (_, Some(b'~')) => Ordering::Greater,
        (Some(b'^'), None) => Ordering::Greater,
        (None, Some(b'^')) => Ordering::Less,
        (Some(b'^'), Some(_)) => Ordering::Less,
        (Some(_), Some(b'^')) => Ordering::Greater,
        (_, _) => return None,
    };
    if order == Ordering::Equal {
        (*a, *b) = (a.get(1..).unwrap_or_default(), b.get(1..).unwrap_or_default());
    }
    Some(order)
}

/// One of them has ended, or both have.
fn left(a: &[u8], b: &[u8], rules: Rules) -> Ordering {
    let letters = |rest: &[u8]| rest.first().is_some_and(u8::is_ascii_alphabetic);
    match (a.is_empty(), b.is_empty(), rules) {
        (true, true, _) => Ordering::Equal,
        (_, true, Rules::Pacman) if letters(a) => Ordering::Less,
        (true, _, Rules::Pacman) if letters(b) => Ordering::Greater,
        (_, true, _) => Ordering::Greater,
        (_, false, _) => Ordering::Less,
    }
}

fn split(bytes: &[u8], of: impl Fn(&u8) -> bool) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| !of(byte)).unwrap_or(bytes.len());
    bytes.split_at(end)
}

fn number(a: &str, b: &str) -> Ordering {
    digits(a.as_bytes(), b.as_bytes())
}

/// Numbers of any length.
fn digits(a: &[u8], b: &[u8]) -> Ordering {
    let (_, a) = split(a, |byte| *byte == b'0');
    let (_, b) = split(b, |byte| *byte == b'0');
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests;
