//! What stands beside the tree of files: the package manager's database and the service manager, for one pass. Each is
//! looked at when it is first asked for, once for everybody, and again when somebody has changed it or just might have.
//! Where only a directory tree is held there is neither.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::Trouble;
use super::package::{self, Journal, Noted};
use super::remark::{Remark, Remarks};
use super::unit::{Memory, Shown};
use crate::config::PackageManager;
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
    manager: OnceLock<Result<PackageManager, Trouble>>,
    packages: Mutex<Option<package::Reading>>,
    /// What the journal says was begun, where it was asked and nothing was noted since.
    begun: Mutex<Option<Noted>>,
    remarks: Mutex<Remarks>,
    has_service_manager: OnceLock<bool>,
    units: Mutex<HashMap<String, Result<Shown, Trouble>>>,
    /// What is remembered of units from pass to pass; none: nothing.
    pub(super) memory: Option<&'a Mutex<Memory>>,
    /// The bus gave no answer: in this pass it is not asked again.
    pub(super) without_bus: AtomicBool,
    /// Of these units what was seen last was only remembered.
    recalled: Mutex<HashSet<String>>,
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
            manager: OnceLock::new(),
            packages: Mutex::default(),
            begun: Mutex::default(),
            remarks: Mutex::default(),
            has_service_manager: OnceLock::new(),
            units: Mutex::default(),
            memory: None,
            without_bus: AtomicBool::new(false),
            recalled: Mutex::default(),
            updated: OnceLock::new(),
        }
    }

    /// The same, remembering units from pass to pass.
    pub(crate) const fn remembering(mut self, memory: &'a Mutex<Memory>) -> Self {
        self.memory = Some(memory);
        self
    }

    /// Whether the pass was told to end.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Whether it only looks: where nothing could be noted, nothing is changed.
    pub(super) fn only_looks(&self) -> bool {
        self.journal.is_none()
    }

    /// Whether what only looks was told to stop. What changes the machine asks for itself, where it may stop.
    pub(crate) fn is_called_off(&self) -> bool {
        self.only_looks() && self.cancelled.load(Ordering::Relaxed)
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
        *self.has_service_manager.get_or_init(|| self.at("/run/systemd/system").is_dir())
    }

    /// The configuration of the host.
    pub(super) fn config(&self) -> PathBuf {
        self.ground.config()
    }

    /// Which package manager is this machine's.
    pub(super) const fn manager_chosen(&self) -> &OnceLock<Result<PackageManager, Trouble>> {
        &self.manager
    }

    /// Keeps what is to be told of packages that were brought all the same.
    pub(super) fn remark(&self, remarks: Remarks) {
        self.remarks.lock().unwrap_or_else(PoisonError::into_inner).extend(remarks);
    }

    /// What is to be told of this package, once.
    pub(crate) fn remark_of(&self, name: &str) -> Option<Remark> {
        self.remarks.lock().unwrap_or_else(PoisonError::into_inner).remove(name)
    }

    /// What is to be told of all others, once.
    pub(crate) fn other_remarks(&self) -> Remarks {
        std::mem::take(&mut *self.remarks.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn packages_seen(&self) -> MutexGuard<'_, Option<package::Reading>> {
        self.packages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begun_noted(&self) -> MutexGuard<'_, Option<Noted>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn units_recalled(&self) -> MutexGuard<'_, HashSet<String>> {
        self.recalled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn units_seen(&self) -> MutexGuard<'_, HashMap<String, Result<Shown, Trouble>>> {
        self.units.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
