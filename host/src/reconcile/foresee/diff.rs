//! What would change in a file, as a unified diff: only of text, of bounded size, and never of what is sensitive (S-19).
//! What is no text is told by its size and digest; what is sensitive by digests that nobody else can compute.

use similar::TextDiff;
use tenure_protocol::id::Digest;
use tenure_protocol::resource::{Content, FilePresent, FileSpec};
use tenure_protocol::text::{shown, shown_line};

use super::veil::veiled;
use crate::resource::{Seen, Site};
use crate::walk::read::{Stat, read_all};

/// Larger files are said to differ, without how.
pub(super) const MOST_BYTES: u64 = 256 * 1024;
const MOST_LINES: usize = 400;
const MOST_IN_A_LINE: usize = 400;
/// The most bytes of one diff: a line of a preview must fit a frame.
const MOST_OF_ONE: usize = 64 * 1024;
/// The most bytes of all diffs of one preview.
const MOST_OF_ALL: usize = 4 * 1024 * 1024;

/// How much may still be shown.
pub(super) struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Self(MOST_OF_ALL)
    }
}

/// What is there now.
enum Was {
    Nothing,
    Text(String),
    /// No text, or too much of it; its size, and its digest where it was read.
    Bytes(u64, Option<Digest>),
    Unreadable(String),
}

/// The lines of the diff between what is there and what is declared; a sentence where there is none to show.
/// Where what is there was declared to be sensitive, `was_secret`, it stays so whatever it is to become.
pub(super) fn lines(
    site: &Site<'_>,
    spec: &FileSpec,
    seen: &Seen,
    was_secret: bool,
    room: &mut Room,
) -> Vec<String> {
    let Some(present) = &spec.present else { return Vec::new() };
    let (was, closed) = match seen {
        Seen::File { sha256, .. } if *sha256 == Some(present.content.sha256) || present.create_once => {
            return Vec::new();
        }
        // What only its owner may read today is not shown either, whatever it is to become.
        Seen::File { stat, .. } => {
            let (was, opened) = existing(site, spec, stat.size);
            // It may have been exchanged since: the very file that was read decides too.
            (was, was_secret || is_closed(stat) || opened.as_ref().is_some_and(is_closed))
        }
        Seen::Nothing
        | Seen::Directory(_)
        | Seen::Link { .. }
        | Seen::Other { .. }
        | Seen::Package { .. }
        | Seen::Unit(_) => (Was::Nothing, false),
    };
    let mut lines = Vec::new();
    if matches!(was, Was::Nothing) {
        let FilePresent { mode, owner, group, content, .. } = present;
        lines.push(format!(
            "it would be made: {} bytes, mode {mode}, owner {owner}, group {group}",
            content.size
        ));
    }
    if present.is_sensitive() || closed {
        lines.push(secret(&was, present.content));
        return lines;
    }
    let becomes = declared(site, present.content);
    match (was, becomes) {
        (Was::Nothing, Ok(becomes)) => lines.extend(unified(spec, "", &becomes, room)),
        (Was::Text(was), Ok(becomes)) => lines.extend(unified(spec, &was, &becomes, room)),
        (was, becomes) => lines.push(bytes(&was, present.content, becomes.err())),
    }
    lines
}

/// Whether others may not read it.
const fn is_closed(stat: &Stat) -> bool {
    stat.mode & 0o007 == 0
}

/// By digests that can be compared with each other and with nothing else.
fn secret(was: &Was, content: Content) -> String {
    let old = match was {
        Was::Nothing => None,
        Was::Text(text) => veiled(Digest::of(text.as_bytes())),
        Was::Bytes(_, digest) => digest.and_then(veiled),
        Was::Unreadable(_) => None,
    };
    match (old, veiled(content.sha256)) {
        (Some(old), Some(new)) => {
            format!("the content is sensitive and not shown: keyed digest {old} → {new}")
        }
        (None, Some(new)) => format!("the content is sensitive and not shown: keyed digest {new}"),
        (_, None) => "the content is sensitive and not shown".to_owned(),
    }
}

/// Why what is declared is not shown.
enum Hidden {
    NoText,
    TooLarge,
    NotHere,
}

fn bytes(was: &Was, content: Content, hidden: Option<Hidden>) -> String {
    let why = match (was, &hidden) {
        (Was::Unreadable(why), _) => format!("what is there cannot be read ({why})"),
        (_, Some(Hidden::NotHere)) => "the declared content is not here yet".to_owned(),
        (Was::Bytes(size, _), _) if *size > MOST_BYTES => "what is there is too large to be shown".to_owned(),
        (_, Some(Hidden::TooLarge)) => "the declared content is too large to be shown".to_owned(),
        (_, _) => "the content is not text".to_owned(),
    };
    let new = format!("{} bytes (sha256 {})", content.size, content.sha256.short());
    let old = match was {
        Was::Nothing | Was::Unreadable(_) => None,
        Was::Text(text) => {
            Some((text.len().try_into().unwrap_or(u64::MAX), Some(Digest::of(text.as_bytes()))))
        }
        Was::Bytes(size, digest) => Some((*size, *digest)),
    };
    match old {
        None => format!("{why}: {new}"),
        Some((size, Some(digest))) => format!("{why}: {size} bytes (sha256 {}) → {new}", digest.short()),
        Some((size, None)) => format!("{why}: {size} bytes → {new}"),
    }
}

fn unified(spec: &FileSpec, was: &str, becomes: &str, room: &mut Room) -> Vec<String> {
    if room.0 == 0 {
        return vec!["enough was shown above; its diff is left out".to_owned()];
    }
    let diff = TextDiff::from_lines(was, becomes);
    let path = shown(spec.path.as_str(), MOST_IN_A_LINE);
    let (old, new) = (format!("{path} (on the machine)"), format!("{path} (declared)"));
    let text = diff.unified_diff().context_radius(3).header(&old, &new).to_string();
    let (mut lines, mut used) = (Vec::new(), 0);
    // Where a line ends otherwise, that is the change: it is shown.
    let all = || text.split_terminator('\n');
    for line in all().take(MOST_LINES).map(|line| shown_line(line, MOST_IN_A_LINE)) {
        used += line.len();
        if used > MOST_OF_ONE.min(room.0) {
            break;
        }
        lines.push(line);
    }
    let left = all().count() - lines.len();
    if left > 0 {
        lines.push(format!("… {left} more lines"));
    }
    room.0 = room.0.saturating_sub(used);
    lines
}

fn declared(site: &Site<'_>, content: Content) -> Result<String, Hidden> {
    if content.size > MOST_BYTES {
        return Err(Hidden::TooLarge);
    }
    let mut bytes = Vec::new();
    let copied = site.contents.copy(content.sha256, &mut |page| {
        bytes.extend_from_slice(page);
        if length(&bytes) > content.size {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        Ok(())
    });
    // A bundle comes from outside: what is not the content it is named by is not shown as that.
    if copied.is_err() || Digest::of(&bytes) != content.sha256 {
        return Err(Hidden::NotHere);
    }
    text(bytes).map_err(|_| Hidden::NoText)
}

/// Content that is declared and would be shown: what a preview is the better for having.
pub(super) fn is_worth_having(present: &FilePresent) -> bool {
    !present.is_sensitive() && present.content.size <= MOST_BYTES
}

/// What is there, and what the kernel says of the file that was read.
fn existing(site: &Site<'_>, spec: &FileSpec, size: u64) -> (Was, Option<Stat>) {
    let unreadable = |why: String| (Was::Unreadable(shown(&why, 200)), None);
    let (dir, name) = match site.walker.parent(&spec.path) {
        Ok(found) => found,
        Err(error) => return unreadable(error.to_string()),
    };
    if size > MOST_BYTES {
        return (Was::Bytes(size, None), None);
    }
    let mut bytes_read = Vec::new();
    let read = dir.open_file(name).map_err(|error| error.to_string()).and_then(|(mut file, stat)| {
        let all = read_all(&mut file, &mut |page| {
            bytes_read.extend_from_slice(page);
            if length(&bytes_read) > MOST_BYTES {
                return Err(std::io::ErrorKind::FileTooLarge.into());
            }
            Ok(())
        });
        all.map(|()| stat).map_err(|error| error.to_string())
    });
    match read {
        Err(why) => unreadable(why),
        Ok(stat) => {
            let bytes = |bytes: Vec<u8>| Was::Bytes(length(&bytes), Some(Digest::of(&bytes)));
            (text(bytes_read).map_or_else(bytes, Was::Text), Some(stat))
        }
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// As text, or as it was.
fn text(bytes: Vec<u8>) -> Result<String, Vec<u8>> {
    if bytes.contains(&0) {
        return Err(bytes);
    }
    String::from_utf8(bytes).map_err(std::string::FromUtf8Error::into_bytes)
}
