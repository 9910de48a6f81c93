//! What was seen of units, remembered from one pass to the next, so that a quiet pass costs one question and not one for
//! each unit. What is on the disk decides whether a unit starts with the machine and whether its file was changed; while
//! no directory of units and nothing in one changed, and the service manager has read nothing anew, that stands. Whether a
//! unit runs is asked each time, of all in one call, and which run of it that is. It is only for deciding that nothing is to
//! be done: before anything is done to a unit it is looked at in full. Passes by hand leave it to each other (`kept`).
//!
//! Measured with 200 units that run, in one loop on a machine of two cores, systemd 252 and 257 (ratio to the first); those
//! with a star on a busy one, where the first took 290 and 435 ms:
//!
//! | question | 252 | 257 |
//! |---|---|---|
//! | `systemctl show` of all | 172 ms | 251 ms |
//! | a whole look over a connection of our own, 16 in flight | 44 ms (0.26) | 74 ms (0.30) |
//! | a quiet look over it (`ListUnitsByNames`), with what is on the disk | 6.3 ms (0.04) | 6.5 ms (0.03) |
//! | that with a process for it, `busctl call … ListUnitsByNames` | 12 ms (0.07) | 12 ms (0.04) |
//! | `GetAll` of each of all its interfaces, in place of that of all units and four by name | 79 ms (0.45) | 107 ms (0.42) |
//! | `NeedDaemonReload` of each, which has 257 read its drop-in directories* | 12 ms | 120 ms |
//!
//! So it is asked over the bus (zbus, of whose crates ten are not here for something else, on a runtime that lasts as long as the
//! question). Where the bus leaves anything unsaid, or is silent, `systemctl`, which has a way of its own to the service
//! manager, is asked for all of it.

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;

use nix::NixPath;
use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use serde::{Deserialize, Serialize};
use tenure_protocol::id::{Digest, Millis};

use super::systemctl::{Active, Load, Shown};
use crate::ground::own::{MADE_INTO_UNITS, UNIT_PLACES};
use crate::program::Listed;
use crate::resource::recall::is_settled;
use crate::walk::{kind, times};

/// What is remembered; a new process begins with nothing, or what a pass by hand left to it.
#[derive(Debug, Default)]
pub struct Memory {
    disk: Option<Disk>,
    units: HashMap<String, Shown>,
    /// How often each was started anew by itself when a pass last judged it; this is not forgotten with the rest.
    restarts: HashMap<String, u64>,
}

/// What all units of a machine are made of on its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    all: Digest,
    /// The second in which anything of it was last changed; after all others where times do not tell.
    changed: i64,
}

/// More directories and files of units than any machine has: beyond, nothing is remembered.
const MOST: usize = 50_000;
/// Written each time the service manager has read its unit files.
const READ: &str = "/run/systemd/systemd-units-load";
/// Links that name the run of each unit.
const RUNS: &str = "/run/systemd/units";

impl Memory {
    /// Remembers nothing any more: everything is to be looked at.
    pub fn forget(&mut self) {
        self.disk = None;
        self.units.clear();
    }

    /// What the disk was like that this goes by, if another process can be told by its times that it still is.
    pub(crate) fn settled(&self, now: Millis) -> Option<Disk> {
        self.disk.filter(|disk| is_settled(disk.changed, now))
    }

    /// Keeps how often this was started anew by itself; answers whether that is more often than when it was last kept.
    pub(super) fn has_fallen(&mut self, name: &str, restarts: u64) -> bool {
        self.restarts.insert(name.to_owned(), restarts).is_some_and(|before| before < restarts)
    }

    /// Keeps that of no others than `names`.
    pub(super) fn judges(&mut self, names: &[&str]) {
        if self.restarts.len() > names.len() {
            self.restarts.retain(|name, _| names.contains(&name.as_str()));
        }
    }

    /// Whether anything is remembered that could stand.
    pub(super) fn knows(&self, disk: Disk) -> bool {
        self.disk == Some(disk) && !self.units.is_empty()
    }

    /// Those of `names` of which what is remembered stands, `disk` and `running` being what is there now.
    pub(super) fn stands(
        &self,
        names: &[&str],
        disk: Disk,
        running: &[Listed],
        root: &Path,
    ) -> HashMap<String, Shown> {
        if self.disk != Some(disk) {
            return HashMap::new();
        }
        let runs = File::open(root.join(RUNS.trim_start_matches('/'))).ok();
        let run = |unit: &str| runs.as_ref().map_or_else(String::new, |runs| run(runs, unit));
        let same = |(name, running): (&&str, &Listed)| {
            let shown = self.units.get(*name)?;
            let stands = is(running, shown) && (!may_run_anew(shown) || run(&shown.id) == shown.run);
            stands.then(|| ((*name).to_owned(), shown.clone()))
        };
        names.iter().zip(running).filter_map(same).collect()
    }

    /// Remembers what was seen while the disk was so, and nothing else any more; none: nothing of it is known to stand.
    pub(crate) fn keep<'s>(&mut self, disk: Option<Disk>, seen: impl Iterator<Item = (&'s str, &'s Shown)>) {
        self.units.clear();
        self.disk = disk;
        if disk.is_some() {
            let lasts = |shown: &Shown| {
                let moves = matches!(shown.active, Active::Starting | Active::Stopping);
                !moves
                    && !shown.needs_reload
                    && !matches!(shown.load, Load::Bad(_))
                    && shown.unit_file != "transient"
                    && (shown.source.is_empty() || is_looked_at(&shown.source))
            };
            self.units
                .extend(seen.filter(|(_, s)| lasts(s)).map(|(name, shown)| (name.to_owned(), shown.clone())));
        }
    }
}

/// Whether [`disk`] tells when this file is another, of which a program made a unit.
fn is_looked_at(source: &str) -> bool {
    let source = Path::new(source);
    MADE_INTO_UNITS.map(Path::new).iter().any(|place| source == *place || source.parent() == Some(place))
}

/// Whether it may have ended and been started anew, and look the same: only services are, and only of those that run does
/// systemd leave a link that names the run.
fn may_run_anew(shown: &Shown) -> bool {
    shown.active == Active::Active && shown.id.ends_with(".service")
}

/// The run of a unit by systemd's id, as a link in `runs` names it; empty where it does not run.
fn run(runs: &File, unit: &str) -> String {
    let id = readlinkat(runs, format!("invocation:{unit}").as_str());
    id.map(|id| id.to_string_lossy().into_owned()).unwrap_or_default()
}

/// What units are made of on the disk below `root`; none where not all of it can be looked at.
pub(super) fn disk(root: &Path) -> Option<Disk> {
    let mut marks =
        Marks { all: Vec::with_capacity(128 * 1024), left: MOST, changed: i64::MIN, ..Marks::default() };
    let merged = root.join("lib").is_symlink();
    // Where each session and each transient unit leaves something nothing would ever stand.
    let is_of_use = |place: &&&str| !(place.ends_with("/transient") || merged && place.starts_with("/lib/"));
    let units = UNIT_PLACES.iter().filter(is_of_use);
    for place in units.chain(&MADE_INTO_UNITS) {
        marks.add(AT_FDCWD, &root.join(place.trim_start_matches('/')), 0)?;
    }
    // Where nothing says when they were last read, what is there may be of another boot.
    let says = marks.add(AT_FDCWD, &root.join(READ.trim_start_matches('/')), 0)?;
    if !says || !marks.files.is_subset(&marks.keep_times) {
        marks.changed = i64::MAX;
    }
    Some(Disk { all: Digest::of(&marks.all), changed: marks.changed })
}

/// What was noted of a disk.
#[derive(Default)]
struct Marks {
    all: Vec<u8>,
    /// So much more is looked at.
    left: usize,
    changed: i64,
    /// On which file systems files lie, and which of those that directories lie on give change times of their own.
    files: HashSet<u64>,
    keep_times: HashSet<u64>,
}

impl Marks {
    /// Notes what `name` is in `dir`, where its link leads, and what is in it or in the directory its link leads to: units
    /// stand one level down, links to them and drop-ins two. Answers whether it is there.
    fn add<P: ?Sized + NixPath>(&mut self, dir: BorrowedFd<'_>, name: &P, depth: u8) -> Option<bool> {
        let found = match fstatat(dir, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::ENOENT | Errno::ENOTDIR) => return Some(false),
            Err(_) => return None,
        };
        self.name(name, depth)?;
        self.note(&found);
        match kind(&found) {
            SFlag::S_IFLNK => self.follow(dir, name, depth)?,
            SFlag::S_IFDIR if depth < 2 => self.add_all(dir, name, depth + 1)?,
            _ => {}
        }
        Some(true)
    }

    fn name<P: ?Sized + NixPath>(&mut self, name: &P, depth: u8) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        self.all.push(depth);
        name.with_nix_path(|name| self.all.extend(name.to_bytes_with_nul())).ok()
    }

    /// Notes where a link leads, if anywhere.
    fn follow<P: ?Sized + NixPath>(&mut self, dir: BorrowedFd<'_>, name: &P, depth: u8) -> Option<()> {
        let Ok(reached) = fstatat(dir, name, AtFlags::empty()) else { return Some(()) };
        self.note(&reached);
        let is_open = depth < 2 && kind(&reached) == SFlag::S_IFDIR;
        if is_open { self.add_all(dir, name, depth + 1) } else { Some(()) }
    }

    fn add_all<P: ?Sized + NixPath>(&mut self, dir: BorrowedFd<'_>, name: &P, depth: u8) -> Option<()> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        let mut dir = Dir::openat(dir, name, flags, Mode::empty()).ok()?;
        let known = fstat(dir.as_fd()).ok().filter(|seen| !self.keep_times.contains(&seen.st_dev));
        if let Some(seen) = known.filter(|_| times::are_kept(dir.as_fd())) {
            self.keep_times.insert(seen.st_dev);
        }
        let mut inside: Vec<(CString, bool)> = Vec::new();
        for entry in dir.iter() {
            let entry = entry.ok()?;
            let name = entry.file_name().to_owned();
            if !matches!(name.to_bytes(), b"." | b"..") {
                inside.push((name, entry.file_type() == Some(Type::Symlink)));
            }
        }
        inside.sort_unstable();
        inside.iter().try_for_each(|(name, is_link)| {
            let (dir, name) = (dir.as_fd(), name.as_c_str());
            if !is_link {
                return self.add(dir, name, depth).map(drop);
            }
            // That it is another link now the times of the directory tell, which were noted: left is where it leads.
            self.name(name, depth)?;
            self.follow(dir, name, depth)
        })
    }

    fn note(&mut self, seen: &FileStat) {
        let numbers = [seen.st_dev, seen.st_ino].map(u64::to_le_bytes);
        let times = [seen.st_size, seen.st_ctime, seen.st_ctime_nsec, seen.st_mtime, seen.st_mtime_nsec];
        self.all.extend(numbers.iter().chain(&times.map(i64::to_le_bytes)).flatten());
        self.changed = self.changed.max(seen.st_ctime);
        if kind(seen) == SFlag::S_IFREG {
            self.files.insert(seen.st_dev);
        }
    }
}

fn is(listed: &Listed, shown: &Shown) -> bool {
    let Listed { id, load, active, sub } = listed;
    *id == shown.id && shown.stands.split(' ').eq([load, active, sub])
}

#[cfg(test)]
mod tests;
