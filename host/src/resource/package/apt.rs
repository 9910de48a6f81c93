//! The hand that works apt: simulating, running one transaction in a transient unit of its own, and asking which
//! versions there are. What came of it is read from dpkg's database afterwards, never from here.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tenure_protocol::refusal::chain;

use super::transaction::{Simulated, Wanted, read_simulation};
use crate::ground::own::TRANSACTION_UNIT;
use crate::program::{ProgramError, Programs, Ran};
use crate::resource::Trouble;

/// How long a transaction may take: a slow mirror and a slow disk together.
const TRANSACTION: Duration = Duration::from_secs(30 * 60);
/// How long reading and simulating may take.
const QUESTION: Duration = Duration::from_secs(120);

/// What every call says: nobody answers questions, the operator's configuration files are kept, nothing
/// unauthenticated is taken whatever the machine's configuration allows (S-13).
const OPTIONS: [&str; 14] = [
    "-q",
    "-y",
    "-o",
    "Dpkg::Options::=--force-confold",
    "-o",
    "Dpkg::Options::=--force-confdef",
    "-o",
    "APT::Get::AllowUnauthenticated=false",
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
        if ran.succeeded() { Ok(read_simulation(&ran.out)) } else { Err(refused(&ran)) }
    }

    /// Reads the sources anew.
    pub(super) fn update(&self) -> Result<(), Trouble> {
        let ran = self.get(["update".to_owned()].into_iter(), TRANSACTION)?;
        // Older versions call it a warning that they went on with what they had.
        let old = ran.out.contains(OLD_ONES) || ran.err.contains(OLD_ONES);
        if ran.succeeded() && !old { Ok(()) } else { Err(refused(&ran)) }
    }

    /// The versions of a package that the sources have, newest first.
    pub(super) fn versions(&self, name: &str) -> Result<Vec<String>, Trouble> {
        let ran = self.programs.run("apt-cache", &["madison", "--", name], QUESTION).map_err(not_run)?;
        Ok(madison(name, &ran.out))
    }

    /// Runs the transaction in a transient unit, so that neither our end nor our restart ends it; what it says goes to
    /// the file `log`, for the same reason. `stop`: it is not waited for any longer.
    pub(super) fn run_apart(
        &self,
        wanted: &Wanted,
        id: &str,
        log: &Path,
        stop: &AtomicBool,
    ) -> Result<(), Trouble> {
        let unit = format!("{TRANSACTION_UNIT}{id}");
        let mut arguments: Vec<String> = [
            "--wait",
            "--collect",
            "--quiet",
            "--no-ask-password",
            "--setenv=DEBIAN_FRONTEND=noninteractive",
        ]
        .map(str::to_owned)
        .to_vec();
        arguments.extend(["--setenv=LC_ALL=C".to_owned(), format!("--unit={unit}")]);
        for stream in ["StandardOutput", "StandardError"] {
            arguments.push(format!("--property={stream}=append:{}", log.display()));
        }
        arguments.extend(["--", "apt-get"].map(str::to_owned));
        arguments.extend(OPTIONS.map(str::to_owned));
        arguments.extend(transaction(wanted));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let ran = self.programs.attend("systemd-run", &arguments, TRANSACTION, stop);
        match ran {
            Ok(ran) if ran.succeeded() => Ok(()),
            Ok(Ran { status, out, err }) => {
                let out = out + &said(log);
                Err(refused(&Ran { status, out, err }))
            }
            Err(ProgramError::TooLong { .. } | ProgramError::NotAwaited(_)) => Err(still_running(&unit)),
            Err(error) => Err(not_run(error)),
        }
    }

    /// Runs the transaction as a child of ours, where there is no service manager.
    pub(super) fn run_here(&self, wanted: &Wanted) -> Result<(), Trouble> {
        let ran = self.get(transaction(wanted).into_iter(), TRANSACTION)?;
        if ran.succeeded() { Ok(()) } else { Err(refused(&ran)) }
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
        self.programs.run("apt-get", &arguments, within).map_err(not_run)
    }
}

/// What apt says when it could not read a source anew.
const OLD_ONES: &str = "old ones used instead";
/// More than the last words of a transaction.
const MOST_SAID: usize = 64 * 1024;

fn said(log: &Path) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let from = bytes.len().saturating_sub(MOST_SAID);
    String::from_utf8_lossy(bytes.get(from..).unwrap_or_default()).into_owned()
}

pub(super) fn still_running(unit: &str) -> Trouble {
    let reason = format!(
        "a package transaction of the host still runs as {unit}; it is waited for by the next pass, \
         `systemctl status {unit}` shows it"
    );
    Trouble::outstanding(STILL_RUNNING, reason)
}

/// The code of it: what is outstanding for this reason is still ours to record.
pub(crate) const STILL_RUNNING: &str = "package_transaction_running";

/// The words of a transaction, names after `--`.
fn transaction(wanted: &Wanted) -> Vec<String> {
    let mut words = vec!["install".to_owned()];
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

/// What apt's own words mean.
fn refused(ran: &Ran) -> Trouble {
    let words = ran.last_words();
    let text = format!("{}{}", ran.out, ran.err);
    let says = |part: &str| text.contains(part);
    if says("Could not get lock")
        || says("Unable to acquire the dpkg frontend lock")
        || says("Unable to lock")
    {
        return Trouble::outstanding(
            "package_lock_held",
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
    Trouble::failed("package_manager_failed", format!("apt-get ended with status {}: {words}", status(ran)))
}

fn status(ran: &Ran) -> String {
    ran.status.map_or_else(|| "a signal".to_owned(), |status| status.to_string())
}

/// Who holds the lock, in apt's own words, which name pid and program.
fn lock_line(text: &str) -> String {
    let line = text
        .lines()
        .find(|line| line.contains("held by process"))
        .or_else(|| text.lines().find(|line| line.contains("lock")));
    tenure_protocol::text::shown(line.unwrap_or_default().trim_start_matches(['E', 'W', ':', ' ']), 200)
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
