//! Whether a package has brought files of the host itself: removing it would take them away, whatever its name (H-02).

use std::collections::BTreeSet;
use std::io;

use super::Tools;
use super::dpkg::bare;
use crate::ground::own::is_part_of_the_host;

const INFO: &str = "/var/lib/dpkg/info";

/// What packages have brought cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{place} cannot be read")]
pub(super) struct Unread {
    place: String,
    source: io::Error,
}

/// The first of these packages that owns a file of the host's, and the file, in words; none where none does. One without a
/// list has no files for dpkg either.
pub(super) fn of_the_hosts_files(tools: &Tools<'_>, names: &[&str]) -> Result<Option<String>, Unread> {
    if names.is_empty() {
        return Ok(None);
    }
    let names: BTreeSet<&str> = names.iter().map(|name| bare(name)).collect();
    let unread = |place: &str| {
        let place = place.to_owned();
        move |source| Unread { place, source }
    };
    for entry in std::fs::read_dir(tools.at(INFO)).map_err(unread(INFO))? {
        let entry = entry.map_err(unread(INFO))?;
        let file = entry.file_name();
        let Some(of) = file.to_str().and_then(|file| file.strip_suffix(".list")) else { continue };
        if !names.contains(bare(of)) {
            continue;
        }
        let list = std::fs::read(entry.path()).map_err(unread(&format!("{INFO}/{of}.list")))?;
        // A name that is no text is none of ours.
        let mut paths = list.split(|byte| *byte == b'\n').filter_map(|path| std::str::from_utf8(path).ok());
        if let Some(path) = paths.find(|path| is_part_of_the_host(path)) {
            return Ok(Some(format!("{of} has brought {path}")));
        }
    }
    Ok(None)
}
