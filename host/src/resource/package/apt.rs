//! The hand that works apt: simulating, reading the sources anew, asking which versions there are, the words of a
//! transaction, and what apt's own words mean. What came of it is read from dpkg's database afterwards, never from here.

use std::time::Duration;

use tenure_protocol::refusal::chain;

use super::transaction::{Simulated, Wanted, read_simulation};
use crate::ground::own::TRANSACTION_UNIT;
use crate::program::{ProgramError, Programs, Ran};
use crate::resource::Trouble;

/// How long a transaction may take: a slow mirror and a slow disk together.
pub(super) const TRANSACTION: Duration = Duration::from_secs(30 * 60);
/// How long reading and simulating may take.
const QUESTION: Duration = Duration::from_secs(120);

/// What every call says: nobody answers questions, the operator's configuration files are kept, nothing
/// unauthenticated is taken whatever the machine's configuration allows (S-13). `Force-Yes` alone would allow it again.
const OPTIONS: [&str; 16] = [
    "-q",
    "-y",
    "-o",
    "Dpkg::Options::=--force-confold",
    "-o",
    "Dpkg::Options::=--force-confdef",
    "-o",
    "APT::Get::AllowUnauthenticated=false",
    "-o",
    "APT::Get::Force-Yes=false",
    "-o",
    "DPkg::Lock::Timeout=10",
    "-o",
    "Dpkg::Use-Pty=0",
    // A source that could not be read is a failure, not a warning: what an older look at it said is not trusted.
    "-o",
    "APT::Update::Error-Mode=any",
];

/// apt on this machine.
pub(super) struct Apt<'a> {
    pub(super) programs: &'a dyn Programs,
}

impl Apt<'_> {
    /// What this transaction would do.
    pub(super) fn simulate(&self, wanted: &Wanted) -> Result<Simulated, Trouble> {
        // What would be removed is named by the judge, not by apt, which would only say that something would.
        let words = transaction(wanted).into_iter().filter(|word| word != "--no-remove");
        let ran = self.get(["-s".to_owned()].into_iter().chain(words), QUESTION)?;
        if ran.succeeded() { Ok(read_simulation(&ran.out)) } else { Err(refused(APT_GET, &ran)) }
    }

    /// Reads the sources anew.
    pub(super) fn update(&self) -> Result<(), Trouble> {
        let ran = self.get(["update".to_owned()].into_iter(), TRANSACTION)?;
        // Older versions call it a warning that they went on with what they had.
        let old = ran.out.contains(OLD_ONES) || ran.err.contains(OLD_ONES);
        if ran.succeeded() && !old { Ok(()) } else { Err(refused(APT_GET, &ran)) }
    }

    /// The versions of a package that the sources have, newest first.
    pub(super) fn versions(&self, name: &str) -> Result<Vec<String>, Trouble> {
        let ran = self.programs.run("apt-cache", &["madison", "--", name], QUESTION).map_err(not_run)?;
        Ok(madison(name, &ran.out))
    }

    /// A transaction of an earlier life of the host that still runs.
    pub(super) fn running(&self) -> Result<Option<String>, Trouble> {
        let pattern = format!("{TRANSACTION_UNIT}*.service");
        let states = "--state=active,activating,deactivating,reloading";
        let arguments = ["list-units", "--plain", "--no-legend", "--no-pager", states, &pattern];
        let ran = self.programs.run("systemctl", &arguments, QUESTION).map_err(not_run)?;
        if !ran.succeeded() {
            let reason = format!("whether a package transaction still runs: {}", ran.last_words());
            return Err(Trouble::unknown("could_not_look", reason));
        }
        Ok(ran.out.split_ascii_whitespace().next().map(str::to_owned))
    }

    fn get(&self, words: impl Iterator<Item = String>, within: Duration) -> Result<Ran, Trouble> {
        let words: Vec<String> = words.collect();
        let arguments: Vec<&str> = OPTIONS.into_iter().chain(words.iter().map(String::as_str)).collect();
        self.programs.run(APT_GET, &arguments, within).map_err(not_run)
    }
}

const APT_GET: &str = "apt-get";
/// What apt says when it could not read a source anew.
const OLD_ONES: &str = "old ones used instead";
/// The command that runs a transaction.
pub(super) fn command(wanted: &Wanted) -> Vec<String> {
    [APT_GET].into_iter().chain(OPTIONS).map(str::to_owned).chain(transaction(wanted)).collect()
}

/// The words of a transaction, names after `--`.
fn transaction(wanted: &Wanted) -> Vec<String> {
    let mut words = vec!["install".to_owned()];
    if wanted.anew {
        words.push("--reinstall".to_owned());
    }
    if wanted.remove.is_empty() && wanted.may_go.is_empty() {
        words.push("--no-remove".to_owned());
    }
    // A declared version may be lower than the installed one; the judge has seen that nothing else is.
    words.push("--allow-downgrades".to_owned());
    words.push("--".to_owned());
    words.extend(wanted.install.iter().map(|(name, version)| match version {
        Some(version) => format!("{name}={version}"),
        None => name.clone(),
    }));
    words.extend(wanted.remove.iter().map(|name| format!("{name}-")));
    words
}

fn madison(name: &str, text: &str) -> Vec<String> {
    let mut versions = Vec::new();
    for line in text.lines() {
        let mut columns = line.split('|').map(str::trim);
        if let (Some(package), Some(version)) = (columns.next(), columns.next())
            && package == name
            && !versions.contains(&version.to_owned())
        {
            versions.push(version.to_owned());
        }
    }
    versions
}

/// What the words of `program`, which is apt's or dpkg's, mean.
pub(super) fn refused(program: &str, ran: &Ran) -> Trouble {
    let words = ran.last_words();
    let text = format!("{}{}", ran.out, ran.err);
    let says = |part: &str| text.contains(part);
    if says("Could not get lock")
        || says("Unable to acquire the dpkg frontend lock")
        || says("Unable to lock")
        || says(LOCKED)
    {
        return Trouble::outstanding(
            LOCK_HELD,
            format!("the package manager is in use: {}", lock_line(&text)),
        );
    }
    if says("cannot be authenticated") || says("unauthenticated packages") {
        return Trouble::refused(
            "unsigned_package",
            format!(
                "a package comes from a source that is not authenticated, or no longer is; have the source signed, or declare another: {words}"
            ),
        );
    }
    if UNPROVEN.into_iter().any(says) {
        return Trouble::refused(
            "unsigned_source",
            format!(
                "a package source of this machine is not signed, or not by a key it trusts, so nothing is taken from it; \
                 have it signed, give the machine its key, or remove the source: {words}"
            ),
        );
    }
    if let Some(unmet) = unmet(&ran.out) {
        return Trouble::failed(
            UNMET,
            format!(
                "what is needed cannot be had together: {unmet}; declare another version, or another package"
            ),
        );
    }
    if says("dpkg was interrupted") {
        return Trouble::failed(
            "dpkg_interrupted",
            "dpkg was interrupted before us; run `dpkg --configure -a` on the machine and look at what it says",
        );
    }
    if says("Unable to locate package")
        || says("has no installation candidate")
        || (says("Version '") && says("was not found"))
    {
        return Trouble::failed(
            "unknown_package",
            format!(
                "the machine's package sources do not have it; declare the source, or another version: {words}"
            ),
        );
    }
    Trouble::failed("package_manager_failed", format!("{program} ended with status {}: {words}", status(ran)))
}

/// What apt says of a source that is not signed, is no longer signed, or is signed by a key that it does not know: the
/// last where it goes on with what it read before.
const UNPROVEN: [&str; 3] = ["is not signed", "is no longer signed", "signature verification"];

/// What dpkg says of a lock that somebody has taken.
const LOCKED: &str = "locked by another process";

/// The code of a lock that somebody else holds.
pub(super) const LOCK_HELD: &str = "package_lock_held";

/// The code of a package that needs what cannot be had.
pub(super) const UNMET: &str = "unmet_dependencies";

/// What apt lists as needed and not to be had, one clause a line of it.
fn unmet(out: &str) -> Option<String> {
    let (_, list) = out.split_once("have unmet dependencies:")?;
    let lines = list.lines().skip(1).take_while(|line| line.starts_with(' ')).map(str::trim);
    Some(tenure_protocol::text::shown(&lines.collect::<Vec<_>>().join(", "), 300))
}

fn status(ran: &Ran) -> String {
    ran.status.map_or_else(|| "a signal".to_owned(), |status| status.to_string())
}

/// Who holds the lock, in apt's or dpkg's own words, which name pid and program.
fn lock_line(text: &str) -> String {
    let line = text
        .lines()
        .find(|line| line.contains("held by process") || line.contains(LOCKED))
        .or_else(|| text.lines().find(|line| line.contains("lock")));
    tenure_protocol::text::shown(line.unwrap_or_default().trim_start_matches(['E', 'W', ':', ' ']), 200)
}

/// What failed is systemd-run, before there was a unit: whatever it was to run did nothing.
pub(super) fn not_begun(ran: &Ran) -> Trouble {
    let reason = format!(
        "nothing was run: systemd-run ended with status {}: {}; `systemctl status` shows what is wrong with the service \
         manager, and it is tried again by the next pass",
        status(ran),
        ran.last_words()
    );
    Trouble::outstanding("package_manager_failed", reason)
}

pub(super) fn not_run(error: ProgramError) -> Trouble {
    match error {
        ProgramError::NotThere(_) => Trouble::refused("no_package_manager", chain(&error)),
        ProgramError::Io { .. } | ProgramError::TooLong { .. } | ProgramError::NotAwaited(_) => {
            Trouble::failed("package_manager_failed", chain(&error))
        }
    }
}

#[cfg(test)]
mod tests;
