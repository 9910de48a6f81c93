//! Keeping what is damaged: a store that cannot be used is renamed, never opened for writing and never written over.
//! Few are kept, so that a disk that damages store after store does not fill with them: the first, which holds what the
//! host once owned, and the newest.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tenure_actors::clock::Moment;

use super::back::with;
use crate::steps;

/// The first, and the newest three.
const MOST_KEPT: usize = 4;

/// What belongs to a store. The file itself goes first: if the rest is left lying by a crash, the next opening finds a
/// log beside no store, which is kept too; the other way round it would find a store without its log.
const PARTS: [&str; 3] = ["", "-wal", "-shm"];

/// Held by the one process that sets aside; the lock ends with the file.
pub(super) fn alone(path: &Path) -> io::Result<File> {
    let file =
        File::options().create(true).truncate(false).write(true).open(path.with_extension("set-aside"))?;
    file.lock()?;
    Ok(file)
}

/// Whether a log lies there that no store belongs to.
pub(super) fn is_log_alone(path: &Path) -> bool {
    !path.exists() && with(path, "-wal").metadata().is_ok_and(|log| log.len() > 0)
}

/// Renames the store and what belongs to it, under the time of the find, and answers its new name. Older ones beyond
/// the most that are kept are removed.
pub(super) fn set_aside(path: &Path, now: Moment) -> io::Result<PathBuf> {
    let kept = next_name(path, now)?;
    for part in PARTS {
        match steps::STORE_ASIDE.take(|| std::fs::rename(with(path, part), with(&kept, part))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    drop_some(path)?;
    if let Some(directory) = path.parent() {
        File::open(directory)?.sync_all()?;
    }
    Ok(kept)
}

/// The time of the find, or one later than that of the newest that is kept: a clock that was set back must not lead over
/// an earlier one, nor make it the newest.
fn next_name(path: &Path, now: Moment) -> io::Result<PathBuf> {
    let newest = times(path)?.last().map_or(i64::MIN, |newest| newest.saturating_add(1));
    Ok(with(path, &format!("{MARK}{}", now.millis().max(newest))))
}

const MARK: &str = ".damaged-";

fn drop_some(path: &Path) -> io::Result<()> {
    let kept = kept(path)?;
    for dropped in kept.iter().skip(1).take(kept.len().saturating_sub(MOST_KEPT)) {
        for part in PARTS {
            match std::fs::remove_file(with(dropped, part)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        tracing::warn!(path = %dropped.display(), "an older damaged store was removed, since newer ones are kept");
    }
    Ok(())
}

/// Those that are kept, the earliest first.
pub(super) fn kept(path: &Path) -> io::Result<Vec<PathBuf>> {
    Ok(times(path)?.into_iter().map(|millis| with(path, &format!("{MARK}{millis}"))).collect())
}

fn times(path: &Path) -> io::Result<Vec<i64>> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
    else {
        return Ok(Vec::new());
    };
    let start = format!("{name}{MARK}");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let millis = entry.file_name().to_str().and_then(|name| {
            let rest = name.strip_prefix(&start)?;
            let end = PARTS.iter().skip(1).find_map(|part| rest.strip_suffix(part));
            end.unwrap_or(rest).parse::<i64>().ok()
        });
        found.extend(millis);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}
