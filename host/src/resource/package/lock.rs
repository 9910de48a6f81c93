//! Who else is at work with packages. Nothing is locked, waited for or signalled here: it is only asked.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use tenure_protocol::text::shown;

use super::apt::LOCK_HELD;
use super::database::{UPDATES, journal};
use super::dpkg::bare;
use super::{Packages, Terms, Tools, Trouble};

/// Held by whoever works with packages, apt and dpkg alike.
const LOCKS: [&str; 2] = ["/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock"];

/// The code of a database that dpkg left half-way.
pub(super) const INTERRUPTED: &str = "dpkg_interrupted";

/// Nobody else works with packages now.
pub(super) fn free(tools: &Tools<'_>) -> Result<(), Trouble> {
    match LOCKS.iter().find_map(|lock| holder(tools, lock).map(|pid| (lock, pid))) {
        None => Ok(()),
        Some((lock, pid)) => Err(held(lock, pid)),
    }
}

/// Somebody else is at work.
pub(super) fn held(lock: &str, pid: i32) -> Trouble {
    let reason = format!("{lock} is held by {}; it is tried again soon", program(pid));
    Trouble::outstanding(LOCK_HELD, reason)
}

/// The process whose number somebody noted in a file, where it lives.
pub(super) fn noted(tools: &Tools<'_>, note: &str) -> Option<i32> {
    let text = std::fs::read_to_string(tools.at(note)).ok()?;
    let pid = text.trim().parse::<i32>().ok().filter(|pid| *pid > 0)?;
    Path::new("/proc").join(pid.to_string()).exists().then_some(pid)
}

/// The process that holds a lock; none too where it cannot be asked, since apt asks again.
pub(super) fn holder(tools: &Tools<'_>, lock: &str) -> Option<i32> {
    let file = File::open(tools.at(lock)).ok()?;
    let whole = |number: i32| libc::c_short::try_from(number).unwrap_or_default();
    let mut asked = libc::flock {
        l_type: whole(libc::F_WRLCK),
        l_whence: whole(libc::SEEK_SET),
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    fcntl(&file, FcntlArg::F_GETLK(&mut asked)).ok()?;
    (asked.l_type != whole(libc::F_UNLCK)).then_some(asked.l_pid)
}

/// A process that has this file open; none too where nobody has.
pub(super) fn opened(file: &Path) -> Option<i32> {
    let (it, place) = (file.metadata().ok()?, file.canonicalize().ok()?);
    let pids = std::fs::read_dir("/proc").ok()?.flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.into_iter().find(|pid| {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        // What is open elsewhere is not touched: a mount that hangs would hang whoever asks.
        open.filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|open| open == place))
            .filter_map(|entry| entry.path().metadata().ok())
            .any(|other| (other.dev(), other.ino()) == (it.dev(), it.ino()))
    })
}

fn program(pid: i32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    match (pid, name.trim()) {
        (..=0, _) => "another program".to_owned(),
        (_, "") => format!("process {pid}"),
        (_, name) => format!("process {pid} ({})", shown(name, 40)),
    }
}

/// The database is whole; of what is declared itself and unfinished it is said alone, and what we brought and is to go
/// is gone soon.
pub(super) fn whole(tools: &Tools<'_>, packages: &Packages, terms: Terms<'_>) -> Result<(), Trouble> {
    let known = |name: &str| terms.declared.contains_key(name) || terms.may_go.contains(name);
    let mut others: Vec<_> = packages.unfinished().filter(|(name, _)| !known(bare(name))).collect();
    others.sort_by(|(a, _), (b, _)| a.cmp(b));
    let (mut begun, mut half) = (Vec::new(), Vec::new());
    for (name, package) in others {
        begun.push(format!("{name} is {}", package.word));
        half.extend(package.is_half_unpacked().then_some(name));
    }
    // Nobody else is at work, so these are of a dpkg that was cut short.
    let journal = journal(tools)?.len();
    if journal > 0 {
        begun.push(format!("{UPDATES} has {journal} entries"));
    }
    if begun.is_empty() {
        return Ok(());
    }
    // What was being unpacked cannot be configured.
    let anew = if half.is_empty() {
        String::new()
    } else {
        format!(", then `apt-get install --reinstall {}`,", shown(&half.join(" "), 300))
    };
    let reason = format!(
        "the package database needs repair: {}; run `dpkg --configure -a`{anew} on the machine and look at what it says",
        shown(&begun.join(", "), 300)
    );
    Err(Trouble::failed(INTERRUPTED, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_a_file_open_is_found_by_its_name_also_where_a_link_leads_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("db.lck"), folder.path().join("led-to"));
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(opened(&file), None);
        let open = File::open(&file).unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!((opened(&file), opened(&link)), (Some(own), Some(own)));
        drop(open);
    }
}
