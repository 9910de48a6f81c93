//! A copy of what only this process still has, once the store's file was removed under it: whoever removed it by mistake
//! finds it beside the place, and moves it there.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use tenure_actors::database::{Database, DatabaseError};
use tenure_protocol::refusal::chain;

#[derive(Debug, thiserror::Error)]
enum SaveError {
    #[error("the store could not be copied")]
    Copy(#[from] DatabaseError),
    #[error("the copy could not be put beside the store")]
    File(#[from] std::io::Error),
}

/// Saves it beside `path`, under a name that has the number of this process in it. One that this process saved before
/// gives way; no other file does. Blocks until it is on the disk.
pub(super) fn save(database: &Database, path: &Path) {
    match copy(database, path) {
        Ok(saved) => {
            let (saved, place) = (saved.display(), path.display());
            let remedy = format!(
                "stop the control plane, `mv {saved} {place}`, remove {place}-wal, and start it again"
            );
            tracing::warn!(%saved, "do" = %remedy, "everything that was acknowledged was saved");
        }
        Err(error) => {
            let remedy = "keep this process running: only it still has the store; make the folder and room in it again";
            tracing::error!(error = %chain(&error), "do" = %remedy, "what was acknowledged could not be saved");
        }
    }
}

fn copy(database: &Database, path: &Path) -> Result<PathBuf, SaveError> {
    let named = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".saved-{}{ending}", std::process::id()));
        PathBuf::from(name)
    };
    let (saved, fresh) = (named(""), named(".new"));
    // An empty file is filled, and keeps its mode: what lies in a store is nobody else's business.
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    let copied = database.copy_to(&fresh).map_err(SaveError::from);
    let placed = copied.and_then(|()| Ok(file.sync_all().and_then(|()| std::fs::rename(&fresh, &saved))?));
    if placed.is_err() {
        // What is left of it is of no use to anybody.
        drop(std::fs::remove_file(&fresh));
    }
    placed.map(|()| saved)
}
