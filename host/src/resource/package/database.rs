//! Reading dpkg's database off the disk. dpkg notes each step in a journal beside its status, and puts it into the
//! status only now and then: both together say what is. The status is read only when it is another one than before.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};

use tenure_actors::clock::Moment;
use tenure_protocol::refusal::chain;

use super::dpkg::{Packages, Unreadable};
use super::{Tools, Trouble, meaning};

const STATUS: &str = "/var/lib/dpkg/status";
/// dpkg's journal: entries have numbers for names.
pub(super) const UPDATES: &str = "/var/lib/dpkg/updates";
/// Seconds that are far above a tick of the clock by which files are stamped.
const SETTLED: i64 = 2;
/// More than once the two belong to two moments only where package after package is brought.
const MOST_LOOKS: usize = 5;

/// What is installed, by status and journal.
pub(super) fn read(tools: &Tools<'_>) -> Result<Arc<Packages>, Trouble> {
    for _ in 0..MOST_LOOKS {
        let status = status(tools)?;
        let journal = journal(tools)?;
        // The journal is put into a new status, which takes the old one's name.
        if which(tools) != Some(status.which) {
            continue;
        }
        if journal.is_empty() {
            return some(status.packages);
        }
        let mut packages = Packages::clone(&status.packages);
        for entry in journal {
            packages.overlay(Packages::parse(&entry).map_err(unreadable)?);
        }
        return some(Arc::new(packages));
    }
    Err(Trouble::unknown("could_not_look", "dpkg's database was changed each time it was read"))
}

/// dpkg lists at least itself.
fn some(packages: Arc<Packages>) -> Result<Arc<Packages>, Trouble> {
    if packages.are_none() { Err(meaning::holds_none(STATUS, "dpkg -l")) } else { Ok(packages) }
}

/// Whether it has packages.
pub(super) fn holds_packages(tools: &Tools<'_>) -> Result<bool, Trouble> {
    match tools.at(STATUS).metadata() {
        Ok(status) => Ok(status.len() > 0),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(unread(STATUS, &error)),
    }
}

/// Which status this is: each that dpkg writes is a new file, whose change time no program can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Which {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl Which {
    fn of(file: &std::fs::Metadata) -> Self {
        let changed = (file.ctime(), file.ctime_nsec());
        Self { device: file.dev(), inode: file.ino(), size: file.size(), changed }
    }

    /// Whether whatever is written from now on has another change time: the kernel's clock for these ticks slowly, and
    /// may have been set back.
    fn is_settled(&self, now: Moment) -> bool {
        self.changed.0.saturating_add(SETTLED).saturating_mul(1000) < now.millis()
    }
}

/// One status as it was read.
#[derive(Clone)]
struct Status {
    which: Which,
    packages: Arc<Packages>,
}

/// The last one that was read.
static LAST: Mutex<Option<Status>> = Mutex::new(None);

fn which(tools: &Tools<'_>) -> Option<Which> {
    tools.at(STATUS).metadata().ok().map(|file| Which::of(&file))
}

fn status(tools: &Tools<'_>) -> Result<Status, Trouble> {
    let missing_or = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            let reason = format!(
                "neither dpkg's database ({STATUS}) nor rpm's or pacman's holds packages here; where one is elsewhere, \
                 name its manager in /etc/tenure/host.toml (`packages = \"dnf\"`)"
            );
            Trouble::refused("no_package_manager", reason)
        }
        _ => unread(STATUS, &error),
    };
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let now = which(tools);
    if let Some(known) = last.as_ref().filter(|known| Some(known.which) == now) {
        return Ok(known.clone());
    }
    let mut file = File::open(tools.at(STATUS)).map_err(missing_or)?;
    // Before it is read: what is written meanwhile makes it another one.
    let which = Which::of(&file.metadata().map_err(|error| unread(STATUS, &error))?);
    let mut bytes = Vec::with_capacity(usize::try_from(which.size).unwrap_or_default());
    file.read_to_end(&mut bytes).map_err(|error| unread(STATUS, &error))?;
    let packages = Packages::parse(&String::from_utf8_lossy(&bytes)).map_err(unreadable)?;
    let status = Status { which, packages: Arc::new(packages) };
    *last = which.is_settled(tenure_actors::clock::system().now()).then(|| status.clone());
    Ok(status)
}

fn unreadable(error: Unreadable) -> Trouble {
    Trouble::unknown("could_not_look", chain(&error))
}

/// The journal's entries, oldest first. One that goes while it is read was put into the status.
pub(super) fn journal(tools: &Tools<'_>) -> Result<Vec<String>, Trouble> {
    let mut names = Vec::new();
    match std::fs::read_dir(tools.at(UPDATES)) {
        Ok(entries) => {
            for entry in entries {
                let name = entry.map_err(|error| unread(UPDATES, &error))?.file_name();
                names.extend(
                    name.to_str().and_then(|name| name.parse::<u32>().ok().map(|at| (at, name.to_owned()))),
                );
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(unread(UPDATES, &error)),
    }
    names.sort();
    let mut entries = Vec::with_capacity(names.len());
    for (_, name) in names {
        match std::fs::read(tools.at(UPDATES).join(name)) {
            Ok(bytes) => entries.push(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(unread(UPDATES, &error)),
        }
    }
    Ok(entries)
}

fn unread(what: &str, error: &std::io::Error) -> Trouble {
    Trouble::unknown("could_not_look", format!("{what} cannot be read: {error}"))
}

#[cfg(test)]
mod tests;
