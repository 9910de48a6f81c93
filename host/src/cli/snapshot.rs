//! A copy of the host's store, to look into without asking a running host to stop, and without writing a byte to the
//! store of one that does not run. Of a running one SQLite itself makes the copy, so it is whole; it lies in the host's own closed directory and goes with this value.

use std::path::PathBuf;

use tenure_actors::clock;
use tenure_actors::database;
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

    /// Copies the store of a host that does not run, byte for byte: opening it in its place would write to it. Nobody can
    /// open it while it is copied. None where somebody has it open, where its log is gone, and where the copy is none
    /// that can be opened: whoever opens the store itself says why.
    pub(super) fn of_stopped(ground: &Ground) -> Option<Self> {
        let _unopened = database::keep_unopened(&ground.store()).ok()??;
        if crate::store::lacks_its_log(&ground.store()) {
            return None;
        }
        let folder = ground.state().join(format!("plan-{}", std::process::id()));
        let mut snapshot = Self { store: None, folder };
        let copy = Ground::new(&snapshot.folder, ground.is_sandbox());
        snapshot.clear();
        copy.create().ok()?;
        std::fs::copy(ground.store(), copy.store()).ok()?;
        let log = |ground: &Ground| {
            let mut path = ground.store().into_os_string();
            path.push("-wal");
            path
        };
        match std::fs::copy(log(ground), log(&copy)) {
            Ok(_) => {}
            // It was closed in order.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(_) => return None,
        }
        snapshot.store = Some(Store::open(&copy, false, clock::system().now()).ok()?.store);
        Some(snapshot)
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

    // case: O-05
    // case: O-64
    #[test]
    fn a_store_is_copied_as_it_lies_only_while_nobody_has_it_open_and_its_log_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let ground = Ground::new(folder.path(), true);
        ground.create().unwrap();
        let store = Store::open(&ground, true, clock::system().now()).unwrap().store;
        // No daemon answers here, and yet it is open.
        assert!(Snapshot::of_stopped(&ground).is_none());
        store.close();
        let lock = ground.store().with_extension("db.lock");
        let signed = std::fs::read(&lock).unwrap();
        assert!(Snapshot::of_stopped(&ground).unwrap().store().is_some());
        assert_eq!(std::fs::read(&lock).unwrap(), signed, "nothing is written");
        std::fs::write(ground.state().join("store.log-gone"), "").unwrap();
        assert!(Snapshot::of_stopped(&ground).is_none(), "it lacks what its log held");
    }
}
