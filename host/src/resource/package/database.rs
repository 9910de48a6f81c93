//! Reading dpkg's database off the disk. dpkg notes each step in a journal beside its status, and puts it into the
//! status only now and then: both together say what is.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use tenure_protocol::refusal::chain;

use super::dpkg::{Packages, Unreadable};
use super::{Tools, Trouble};

const STATUS: &str = "/var/lib/dpkg/status";
/// dpkg's journal: entries have numbers for names.
pub(super) const UPDATES: &str = "/var/lib/dpkg/updates";
/// More than once the two belong to two moments only where package after package is brought.
const MOST_LOOKS: usize = 5;

/// What is installed, by status and journal.
pub(super) fn read(tools: &Tools<'_>) -> Result<Arc<Packages>, Trouble> {
    let unreadable = |error: Unreadable| Trouble::unknown("could_not_look", chain(&error));
    for _ in 0..MOST_LOOKS {
        let before = which(tools);
        let status = status(tools)?;
        let journal = journal(tools)?;
        // The journal is put into a new status, which takes the old one's name.
        if which(tools) == before {
            let mut packages = Packages::parse(&status).map_err(unreadable)?;
            for entry in journal {
                packages.overlay(Packages::parse(&entry).map_err(unreadable)?);
            }
            return Ok(Arc::new(packages));
        }
    }
    Err(Trouble::unknown("could_not_look", "dpkg's database was changed each time it was read"))
}

fn which(tools: &Tools<'_>) -> Option<u64> {
    tools.at(STATUS).metadata().ok().map(|file| file.ino())
}

fn status(tools: &Tools<'_>) -> Result<String, Trouble> {
    let bytes = std::fs::read(tools.at(STATUS)).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            let reason =
                format!("this machine has no dpkg database ({STATUS}), and no other is performed yet");
            Trouble::refused("no_package_manager", reason)
        }
        _ => unread(STATUS, &error),
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
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
