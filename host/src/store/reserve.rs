//! A little room kept for a full disk: SQLite needs some tens of kilobytes beside the store before it lets anybody read
//! it, and a host that is started on a full disk has to say so and to go on looking (O-05).

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// SQLite's shared memory begins with 32 KiB; the rest is for the number of the session in which the host says so.
const SIZE: usize = 128 * 1024;

/// After an opening: keeps the room, or gives it up where no other is left.
pub(super) fn settle(store: &Path, left: Option<u64>) {
    match left.and_then(|left| usize::try_from(left).ok()) {
        Some(left) if left < SIZE => drop(give_up(store)),
        Some(_) | None => keep(store),
    }
}

/// Keeps the room, unless it is kept already. A disk that has none to keep is no trouble yet.
pub(super) fn keep(store: &Path) {
    let path = place(store);
    let is_whole = |kept: Metadata| usize::try_from(kept.len()) == Ok(SIZE);
    if path.symlink_metadata().is_ok_and(is_whole) {
        return;
    }
    // Beside it, and only whole under its name: what a crash cuts short is no room kept.
    let beside = store.with_extension("reserve.new");
    drop(std::fs::remove_file(&beside));
    if let Err(error) = write(&beside).and_then(|()| std::fs::rename(&beside, &path)) {
        tracing::debug!(%error, path = %path.display(), "no room kept for a full disk");
        drop(std::fs::remove_file(&beside));
    }
}

/// Gives the room up; answers whether there was any.
pub(super) fn give_up(store: &Path) -> bool {
    let beside = std::fs::remove_file(store.with_extension("reserve.new")).is_ok();
    std::fs::remove_file(place(store)).is_ok() || beside
}

/// Written and synced: on some file systems only then is the room really taken.
fn write(path: &Path) -> io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(&vec![0; SIZE])?;
    file.sync_all()
}

fn place(store: &Path) -> PathBuf {
    store.with_extension("reserve")
}

#[cfg(test)]
mod tests {
    use super::*;

    // case: O-05
    #[test]
    fn a_reserve_that_was_cut_short_is_filled_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store.db");
        std::fs::write(place(&store), [0; 7]).unwrap();
        std::fs::write(store.with_extension("reserve.new"), [0; 9]).unwrap();
        keep(&store);
        assert_eq!(std::fs::read(place(&store)).unwrap().len(), SIZE);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(give_up(&store) && !give_up(&store));
    }
}
