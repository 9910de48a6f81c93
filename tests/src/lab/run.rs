//! One run: who it belongs to, its names and its folders. Its name carries the pid of the process that owns it; the file
//! `owner` in its folder carries that process's start time too, so that a pid used again is not taken for the owner.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::cache;

/// The names and folders of one run.
pub(super) struct Run {
    /// Unique on this machine: the network namespace, and the beginning of every cgroup's name.
    pub(super) name: String,
    /// Everything this run keeps on disk but its logs.
    pub(super) folder: PathBuf,
    /// Console, commands and journals.
    pub(super) logs: PathBuf,
    /// Tells the address ranges of runs apart when logs are read; namespaces already keep them apart.
    pub(super) number: u8,
}

impl Run {
    /// Makes the folders of a new run of the test `test`.
    pub(super) fn make(test: &str) -> Self {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let pid = std::process::id();
        let name = format!("{PREFIX}{pid}-{count}");
        let folder = cache::subfolder("runs").join(&name);
        let logs = cache::subfolder("logs").join(format!("{name}-{test}"));
        fs::create_dir_all(&logs).expect("the folder for logs");
        fs::create_dir(&folder).expect("a folder of this run's own");
        let started = started(pid).expect("this process is alive");
        fs::write(folder.join(OWNER), format!("{pid} {started}")).expect("the run's folder");
        let number = u8::try_from((pid + count) % 250 + 1).expect("at most 250");
        Self { name, folder, logs, number }
    }
}

/// Whether the run in this folder belongs to a process that lives. A folder without a readable owner is being made by
/// one that holds the sweep's lock, or was left by one that died doing it.
pub(super) fn owned_by_a_living_process(folder: &Path) -> bool {
    let Ok(owner) = fs::read_to_string(folder.join(OWNER)) else { return false };
    let Some((pid, recorded)) = owner.split_once(' ') else { return false };
    let Ok(pid) = pid.parse() else { return false };
    started(pid).is_some_and(|now| now == recorded)
}

/// When a process started, in the kernel's ticks; `None` for one that is gone. The command's name, in brackets, may
/// contain anything, so fields are counted after its last bracket.
fn started(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(START_TIME_AFTER_NAME).map(ToOwned::to_owned)
}

/// What every run's name begins with.
pub(super) const PREFIX: &str = "tenure-lab-";
const OWNER: &str = "owner";
/// `starttime` is field 22; the state, field 3, is the first one after the name.
const START_TIME_AFTER_NAME: usize = 19;
static COUNT: AtomicU32 = AtomicU32::new(0);
