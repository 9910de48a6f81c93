//! Who else is at work with packages. Nothing is locked, waited for or signalled here: it is only asked.

use std::fs::File;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use tenure_protocol::text::shown;

use super::apt::LOCK_HELD;
use super::database::{UPDATES, journal};
use super::{Packages, Terms, Tools, Trouble};

/// Held by whoever works with packages, apt and dpkg alike.
const LOCKS: [&str; 2] = ["/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock"];

/// Nobody else works with packages now.
pub(super) fn free(tools: &Tools<'_>) -> Result<(), Trouble> {
    match LOCKS.iter().find_map(|lock| holder(tools, lock).map(|pid| (lock, pid))) {
        None => Ok(()),
        Some((lock, pid)) => {
            let reason = format!("{lock} is held by {}; it is tried again by the next pass", program(pid));
            Err(Trouble::outstanding(LOCK_HELD, reason))
        }
    }
}

/// The process that holds a lock; none too where it cannot be asked, since apt asks again.
fn holder(tools: &Tools<'_>, lock: &str) -> Option<i32> {
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
    let others = packages.unfinished().filter(|(name, _)| !known(name));
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
    Err(Trouble::failed("dpkg_interrupted", reason))
}
