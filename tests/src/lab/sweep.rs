//! Removing what a run left: its own at the end, a killed one's at the next start. Everything is found by the run's
//! name alone, never by what happens to be running.

use std::fs;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, umount2};

use super::tool::Tool;
use super::{cache, cgroup, run};

/// Removes what runs left whose owner is gone. Runs that are being made wait meanwhile.
pub(super) fn sweep() {
    let runs = cache::subfolder("runs");
    for entry in fs::read_dir(&runs).expect("the folder of runs").flatten() {
        if !run::owned_by_a_living_process(&entry.path()) {
            eprintln!("lab: removing what a killed run left: {}", entry.path().display());
            remove(&entry.path());
        }
    }
    forget_old_logs();
}

/// Removes everything of the run in this folder: processes, groups, mounts, the namespace and the folder itself. Safe to
/// repeat after it was interrupted; the folder goes last, so that it is found again.
pub(super) fn remove(folder: &Path) {
    let name = folder
        .file_name()
        .and_then(|name| name.to_str())
        .expect("a run's folder has the run's name")
        .to_owned();
    for group in cgroup::of_run(&name) {
        if !group.end_members() {
            eprintln!("lab: some processes of {name} did not end");
        }
        group.remove();
    }
    for target in mounts_below(folder) {
        if let Err(error) = umount2(&target, MntFlags::MNT_DETACH) {
            eprintln!("lab: {} cannot be unmounted: {error}", target.display());
        }
    }
    if Path::new("/run/netns").join(&name).exists() {
        let deleted = Tool::new(&["ip", "netns", "delete", &name]).run();
        if !deleted.success() {
            eprintln!("lab: {deleted}");
        }
    }
    forget_what_nspawn_keeps(&name);
    if let Err(error) = fs::remove_dir_all(folder) {
        eprintln!("lab: {} cannot be removed: {error}", folder.display());
    }
}

/// nspawn keeps an empty folder for each machine it ever ran.
fn forget_what_nspawn_keeps(run: &str) {
    let Ok(kept) = fs::read_dir("/run/systemd/nspawn/propagate") else { return };
    for entry in
        kept.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(&format!("{run}-")))
    {
        let _ = fs::remove_dir(entry.path());
    }
}

/// Mount points below a folder, the innermost first.
pub(super) fn mounts_below(folder: &Path) -> Vec<PathBuf> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut found: Vec<PathBuf> = table
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .map(PathBuf::from)
        .filter(|path| path.starts_with(folder))
        .collect();
    found.reverse();
    found
}

/// Logs of failed runs are kept, the newest ones only.
fn forget_old_logs() {
    let mut kept: Vec<_> = fs::read_dir(cache::subfolder("logs"))
        .expect("the folder of logs")
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    kept.sort();
    let surplus = kept.len().saturating_sub(KEPT_LOGS);
    for (_, path) in kept.drain(..surplus) {
        let _ = fs::remove_dir_all(path);
    }
}

/// Enough for a long day of failures; older ones nobody reads.
const KEPT_LOGS: usize = 40;
