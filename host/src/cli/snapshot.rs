//! A copy of the store that a running host holds, to look into without asking it to stop. SQLite itself makes the copy,
//! so it is whole; it lies in the host's own closed directory and goes with this value.

use std::path::PathBuf;

use tenure_actors::clock;
use tenure_actors::database::rusqlite::{Connection, OpenFlags};
use tenure_protocol::refusal::{Explain as _, Refusal};

use crate::ground::Ground;
use crate::store::Store;

/// The copy, open.
pub(super) struct Snapshot {
    store: Option<Store>,
    folder: PathBuf,
}

impl Snapshot {
    /// Copies the store of `ground`.
    pub(super) fn of(ground: &Ground) -> Result<Self, Refusal> {
        let folder = ground.state().join(format!("plan-{}", std::process::id()));
        let mut snapshot = Self { store: None, folder };
        let copy = Ground::new(&snapshot.folder, ground.is_sandbox());
        snapshot.clear();
        copy.create().map_err(|error| failed(&error))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(ground.store(), flags).map_err(|error| failed(&error))?;
        let target = copy.store();
        connection.execute("VACUUM INTO ?1", [target.to_string_lossy()]).map_err(|error| failed(&error))?;
        let opened = Store::open(&copy, false, clock::system().now()).map_err(|error| error.refusal())?;
        snapshot.store = Some(opened.store);
        Ok(snapshot)
    }

    /// The store that was copied.
    pub(super) const fn store(&self) -> Option<&Store> {
        self.store.as_ref()
    }

    fn clear(&self) {
        // What cannot be removed now lies in a directory of ours and is removed by the next look of this process id.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if let Some(store) = self.store.take() {
            store.close();
        }
        self.clear();
    }
}

fn failed(error: &dyn std::error::Error) -> Refusal {
    Refusal::new(
        "no_snapshot",
        format!("the store of the running host could not be copied: {error}"),
        "nothing was changed; only the preview is missing",
        "run the command as root, with room on the disk of /var/lib/tenure-host",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_cannot_be_copied_costs_the_preview_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let ground = Ground::new(folder.path(), true);
        let refusal = Snapshot::of(&ground).err().unwrap();
        assert_eq!(refusal.code, "no_snapshot");
        assert!(!ground.store().exists());
    }
}
