//! What stands beside the tree of files: the package manager's database and the service manager, for one pass. Each is
//! looked at when it is first asked for, once for everybody, and again when somebody has changed what it says. Where
//! only a directory tree is held there is neither.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::Trouble;
use super::package::{Journal, Packages};
use super::unit::Shown;
use crate::ground::Ground;
use crate::program::Programs;

/// The tools of a pass.
#[expect(missing_debug_implementations, reason = "it holds a trait object")]
pub struct Tools<'a> {
    programs: Option<&'a dyn Programs>,
    ground: &'a Ground,
    /// Where transactions are noted; none: none is run.
    pub(super) journal: Option<&'a dyn Journal>,
    /// Set: what only waits is not waited for any longer.
    pub(super) cancelled: &'a AtomicBool,
    packages: Mutex<Option<Result<Arc<Packages>, Trouble>>>,
    units: Mutex<HashMap<String, Result<Shown, Trouble>>>,
    /// Whether the sources were read anew in this pass, and what came of it.
    pub(super) updated: OnceLock<Result<(), Trouble>>,
}

impl<'a> Tools<'a> {
    /// The tools of the machine at `ground`; no programs: none are run there; no journal: nothing is changed.
    pub(crate) fn new(
        ground: &'a Ground,
        programs: Option<&'a dyn Programs>,
        journal: Option<&'a dyn Journal>,
        cancelled: &'a AtomicBool,
    ) -> Self {
        Self {
            programs,
            ground,
            journal,
            cancelled,
            packages: Mutex::default(),
            units: Mutex::default(),
            updated: OnceLock::new(),
        }
    }

    /// What runs programs here.
    pub(super) fn programs(&self) -> Result<&'a dyn Programs, Trouble> {
        let sandbox = || {
            let reason = "packages and units are performed on the machine itself only, and this is a sandbox or \
                a folder; run the host without --root and --sandbox";
            Trouble::refused("sandbox", reason)
        };
        self.programs.ok_or_else(sandbox)
    }

    /// A path of the machine's own, as it is found here.
    pub(super) fn at(&self, absolute: &str) -> PathBuf {
        self.ground.at(absolute)
    }

    /// The directory of what lives no longer than the machine runs.
    pub(super) fn run(&self) -> PathBuf {
        self.ground.run()
    }

    /// Whether systemd is the one who started everything else here.
    pub(super) fn has_service_manager(&self) -> bool {
        self.at("/run/systemd/system").is_dir()
    }

    pub(super) fn packages_seen(&self) -> MutexGuard<'_, Option<Result<Arc<Packages>, Trouble>>> {
        self.packages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn units_seen(&self) -> MutexGuard<'_, HashMap<String, Result<Shown, Trouble>>> {
        self.units.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
