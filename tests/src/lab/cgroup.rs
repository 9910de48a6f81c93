//! The control group of one machine: nspawn needs one of its own, and its process list is how everything of the machine
//! is found again, also by the sweep of a later run.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::wait::try_for;

/// One machine's control group, in each hierarchy it needs one in.
pub(super) struct Cgroup {
    folders: Vec<PathBuf>,
}

impl Cgroup {
    pub(super) fn make(name: &str) -> Self {
        let cgroup = Self::named(name);
        for folder in &cgroup.folders {
            fs::create_dir_all(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        }
        cgroup
    }

    fn named(name: &str) -> Self {
        Self { folders: hierarchies().iter().map(|hierarchy| hierarchy.join(name)).collect() }
    }

    /// The files a process writes its pid into to become a member.
    pub(super) fn doors(&self) -> Vec<String> {
        self.folders.iter().map(|folder| folder.join("cgroup.procs").display().to_string()).collect()
    }

    /// Whether nothing of the machine runs any more.
    pub(super) fn is_empty(&self) -> bool {
        self.members().is_empty()
    }

    /// Ends each member by its pid, until there is none; says whether that worked.
    pub(super) fn end_members(&self) -> bool {
        try_for(Duration::from_secs(20), || {
            let members = self.members();
            for pid in &members {
                // One that ended since it was listed is what we want.
                let _ = kill(*pid, Signal::SIGKILL);
            }
            members.is_empty().then_some(())
        })
        .is_some()
    }

    /// Removes the groups; nothing may run in them. The kernel may need a moment after the last process is gone.
    pub(super) fn remove(&self) {
        for folder in &self.folders {
            try_for(Duration::from_secs(5), || remove_tree(folder).then_some(()));
        }
    }

    fn members(&self) -> Vec<Pid> {
        let mut pids = Vec::new();
        for folder in &self.folders {
            collect(folder, &mut pids);
        }
        pids
    }
}

/// The groups whose machine belongs to the run of this name.
pub(super) fn of_run(run: &str) -> Vec<Cgroup> {
    let mut names: Vec<String> = hierarchies()
        .iter()
        .flat_map(|hierarchy| children(hierarchy))
        .filter_map(|path| name_of(&path))
        .collect();
    names.retain(|name| name.starts_with(&format!("{run}-")));
    names.sort();
    names.dedup();
    names.iter().map(|name| Cgroup::named(name)).collect()
}

/// The version 2 hierarchy, and beside it systemd's own where the machine has the hybrid layout.
fn hierarchies() -> Vec<PathBuf> {
    let top = Path::new("/sys/fs/cgroup");
    if top.join("cgroup.controllers").exists() {
        return vec![top.to_owned()];
    }
    ["unified", "systemd"].iter().map(|name| top.join(name)).filter(|path| path.exists()).collect()
}

fn collect(folder: &Path, pids: &mut Vec<Pid>) {
    let listed = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    pids.extend(
        listed.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 0).map(Pid::from_raw),
    );
    for child in children(folder) {
        collect(&child, pids);
    }
}

/// Children go before their parents; says whether the folder is gone.
fn remove_tree(folder: &Path) -> bool {
    for child in children(folder) {
        remove_tree(&child);
    }
    let _ = fs::remove_dir(folder);
    !folder.exists()
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

fn name_of(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.to_owned())
}
