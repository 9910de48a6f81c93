//! Running what changes packages: in a transient unit of its own, so that neither our end nor our restart ends it, and
//! the next host finds it by its name (O-41). Where there is no service manager, as a child of ours.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use tenure_protocol::id::EventId;

use super::apt::{LOCK_HELD, TRANSACTION, not_begun, not_run};
use super::hand::Hand;
use super::{Begun, Tools, Trouble};
use crate::ground::own::TRANSACTION_UNIT;
use crate::program::{ProgramError, Ran};

/// Runs this to its end, of which `touched` says what it may leave behind. Where nobody waits for it any longer and it
/// goes on, or somebody ended it, what is said [`is_open`].
pub(super) fn run(
    tools: &Tools<'_>,
    manager: &dyn Hand,
    command: &[String],
    touched: &Begun,
) -> Result<(), Trouble> {
    let (ran, by) = if tools.has_service_manager() {
        in_a_unit(tools, command)?
    } else {
        (here(tools, command)?, "a child of it".to_owned())
    };
    tools.packages_moved();
    let program = command.first().map_or("", String::as_str);
    let failed = (!ran.succeeded()).then(|| manager.failed(program, &ran));
    // Whoever holds the lock has a journal of its own there.
    if let Some(trouble) = failed.as_ref().filter(|trouble| trouble.code == LOCK_HELD) {
        return Err(trouble.clone());
    }
    // Where nobody can look it may have been.
    let cut_short = manager.is_cut_short(command, touched, &ran).unwrap_or(true);
    tools.remark(manager.remarks(&ran, touched));
    match (cut_short, failed) {
        (true, _) => Err(ended_before(&by)),
        (false, None) => Ok(()),
        (false, Some(trouble)) => Err(trouble),
    }
}

fn here(tools: &Tools<'_>, command: &[String]) -> Result<Ran, Trouble> {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let (program, arguments) = words.split_first().map_or(("", &[][..]), |(program, rest)| (*program, rest));
    tools.programs()?.run(program, arguments, TRANSACTION).map_err(not_run)
}

/// How it ended, and the unit in which it ran. What it says goes to a file, for the reason why it has a unit.
fn in_a_unit(tools: &Tools<'_>, command: &[String]) -> Result<(Ran, String), Trouble> {
    let id = EventId::random().to_string();
    let unit = format!("{TRANSACTION_UNIT}{id}");
    let log = tools.run().join(format!("package-{id}.log"));
    let words = words(&unit, &log, command);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ran = match tools.programs()?.attend("systemd-run", &words, TRANSACTION, tools.cancelled) {
        Ok(Ran { status, out, err }) => Ok(Ran { status, out: out + &said(&log), err }),
        Err(ProgramError::TooLong { .. } | ProgramError::NotAwaited(_)) => Err(still_running(&unit)),
        Err(error) => Err(not_run(error)),
    };
    // It is made as the unit begins.
    let has_begun = log.exists();
    // It lies in a directory of ours that goes with the host's run; a transaction that runs on keeps its own.
    let _ = std::fs::remove_file(log);
    let ran = ran?;
    if ran.succeeded() {
        return Ok((ran, unit));
    }
    // Whoever waited for it may have been cut off while it goes on.
    match tools.at_work() {
        Ok(Some(trouble)) => Err(trouble),
        Err(trouble) => Err(perhaps_running(&unit, &trouble)),
        Ok(None) if !has_begun => Err(not_begun(&ran)),
        Ok(None) => Ok((ran, unit)),
    }
}

fn words(unit: &str, log: &Path, command: &[String]) -> Vec<String> {
    let mut words: Vec<String> = [
        "--wait",
        "--collect",
        "--quiet",
        "--no-ask-password",
        "--setenv=DEBIAN_FRONTEND=noninteractive",
        "--setenv=LC_ALL=C",
    ]
    .map(str::to_owned)
    .to_vec();
    words.push(format!("--unit={unit}"));
    for stream in ["StandardOutput", "StandardError"] {
        words.push(format!("--property={stream}=append:{}", log.display()));
    }
    words.push("--".to_owned());
    words.extend(command.iter().cloned());
    words
}

fn said(log: &Path) -> String {
    let last = || {
        let mut file = File::open(log)?;
        let from = file.metadata()?.len().saturating_sub(MOST_SAID);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(MOST_SAID).read_to_end(&mut bytes)?;
        Ok::<_, io::Error>(bytes)
    };
    String::from_utf8_lossy(&last().unwrap_or_default()).into_owned()
}

/// More than the last words of a transaction.
const MOST_SAID: u64 = 64 * 1024;

pub(super) fn still_running(unit: &str) -> Trouble {
    let reason = format!(
        "a package transaction of the host still runs as {unit}; it is waited for by the next pass, \
         `systemctl status {unit}` shows it"
    );
    Trouble::outstanding(STILL_RUNNING, reason)
}

fn perhaps_running(unit: &str, why: &Trouble) -> Trouble {
    let reason = format!(
        "a package transaction of the host may still run as {unit}, and nobody could look ({}); the next pass asks \
         again, `systemctl status {unit}` shows it",
        why.reason
    );
    Trouble::outstanding(STILL_RUNNING, reason)
}

fn ended_before(unit: &str) -> Trouble {
    let reason = format!(
        "a package transaction of the host ({unit}) was ended before it was done; the next pass goes on from there, and \
         `journalctl -u {unit}` on the machine says who ended it"
    );
    Trouble::outstanding(CUT_SHORT, reason)
}

/// Whether what is outstanding under this code waits for somebody's work with packages to end, or to be finished.
pub(crate) fn passes(code: &str) -> bool {
    [LOCK_HELD, STILL_RUNNING, CUT_SHORT].contains(&code)
}

/// Whether what a transaction brings is still ours to record, though nobody can do so yet.
pub(crate) fn is_open(trouble: &Trouble) -> bool {
    matches!(trouble.code, STILL_RUNNING | CUT_SHORT)
}

/// The code of what a transaction was to bring that somebody ended.
pub(crate) const CUT_SHORT: &str = "package_transaction_cut_short";

/// The code of it: what is outstanding for this reason is still ours to record.
pub(crate) const STILL_RUNNING: &str = "package_transaction_running";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_a_transaction_says_the_last_is_read_however_much_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("package.log");
        std::fs::write(&log, format!("{}the end\n", "a line\n".repeat(50_000))).unwrap();
        let said = said(&log);
        assert_eq!(said.len(), 64 * 1024);
        assert!(said.ends_with("a line\nthe end\n"));
        assert_eq!(super::said(&folder.path().join("none")), "");
    }
}
