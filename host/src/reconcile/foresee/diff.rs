//! What would change in a file, as a unified diff: only of text, of bounded size, and never of what is sensitive (S-19).

use similar::TextDiff;
use tenure_protocol::id::Digest;
use tenure_protocol::resource::FileSpec;
use tenure_protocol::text::shown;

use crate::resource::{Seen, Site};
use crate::walk::read::read_all;

/// Larger files are said to differ, without how.
const MOST_BYTES: u64 = 256 * 1024;
const MOST_LINES: usize = 400;
const MOST_IN_A_LINE: usize = 400;

/// The lines of the diff between what is there and what is declared; a sentence where there is none to show.
pub(super) fn lines(site: &Site<'_>, spec: &FileSpec, seen: &Seen) -> Vec<String> {
    let Some(present) = &spec.present else { return Vec::new() };
    let (was, closed) = match seen {
        Seen::File { sha256, .. } if *sha256 == Some(present.content.sha256) || present.create_once => {
            return Vec::new();
        }
        Seen::File { stat, .. } if stat.size > MOST_BYTES => return vec![large()],
        // What only its owner may read today is not shown either, whatever it is to become.
        Seen::File { stat, .. } => (existing(site, spec), stat.mode & 0o007 == 0),
        Seen::Nothing
        | Seen::Directory(_)
        | Seen::Link { .. }
        | Seen::Other { .. }
        | Seen::Package { .. }
        | Seen::Unit(_) => (Some(String::new()), false),
    };
    if present.is_sensitive() || closed {
        return vec!["the content is sensitive and not shown".to_owned()];
    }
    if present.content.size > MOST_BYTES {
        return vec![large()];
    }
    match (was, declared(site, spec)) {
        (Some(was), Some(becomes)) => unified(&was, &becomes),
        (None, _) | (_, None) => {
            vec!["the content is not text, or is not here yet, and is not shown".to_owned()]
        }
    }
}

fn large() -> String {
    "the content is too large to be shown".to_owned()
}

fn unified(was: &str, becomes: &str) -> Vec<String> {
    let diff = TextDiff::from_lines(was, becomes);
    let text = diff.unified_diff().context_radius(3).to_string();
    let mut lines: Vec<String> =
        text.lines().take(MOST_LINES).map(|line| shown(line, MOST_IN_A_LINE)).collect();
    let left = text.lines().count().saturating_sub(MOST_LINES);
    if left > 0 {
        lines.push(format!("… and {left} more lines"));
    }
    lines
}

fn declared(site: &Site<'_>, spec: &FileSpec) -> Option<String> {
    let mut bytes = Vec::new();
    let content = spec.present.as_ref()?.content;
    site.contents
        .copy(content.sha256, &mut |page| {
            bytes.extend_from_slice(page);
            if u64::try_from(bytes.len()).is_ok_and(|len| len > content.size) {
                return Err(std::io::ErrorKind::FileTooLarge.into());
            }
            Ok(())
        })
        .ok()?;
    // A bundle comes from outside: what is not the content it is named by is not shown as that.
    (Digest::of(&bytes) == content.sha256).then(|| text(bytes)).flatten()
}

fn existing(site: &Site<'_>, spec: &FileSpec) -> Option<String> {
    let (dir, name) = site.walker.parent(&spec.path).ok()?;
    let (mut file, _) = dir.open_file(name).ok()?;
    let mut bytes = Vec::new();
    read_all(&mut file, &mut |page| {
        bytes.extend_from_slice(page);
        if u64::try_from(bytes.len()).is_ok_and(|len| len > MOST_BYTES) {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        Ok(())
    })
    .ok()?;
    text(bytes)
}

fn text(bytes: Vec<u8>) -> Option<String> {
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}
