//! What apt's and dpkg's own words mean: which of them is a refusal, a failure, or somebody else at work. Pure; what came
//! of a transaction is never read here.

use tenure_protocol::text::shown;

use crate::program::Ran;
use crate::resource::Trouble;

/// What the words of `program`, which is apt's or dpkg's, mean.
pub(in super::super) fn refused(program: &str, ran: &Ran) -> Trouble {
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
    if says(UNPROVEN_PACKAGES) || says("unauthenticated packages") {
        let which = listed(&text, UNPROVEN_PACKAGES).unwrap_or_else(|| "a package".to_owned());
        return Trouble::refused(
            UNSIGNED,
            format!(
                "{which}: from a source that is not authenticated, or no longer is; have the source signed, or declare \
                 another: {words}"
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
    if says(ESSENTIAL) {
        let which = listed(&text, ESSENTIAL).unwrap_or_else(|| "a package".to_owned());
        return Trouble::refused(
            "essential_package",
            format!(
                "{which} would be removed, and the system calls it essential: without it the machine may not start; stop \
                 declaring it absent, or what is in conflict with it"
            ),
        );
    }
    if let Some((name, list)) = says("is a virtual package provided by:").then(|| provided(&text)).flatten() {
        return virtual_name(name, &list);
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
    if let Some(what) = FULL.into_iter().find(|what| says(what)) {
        return Trouble::failed(
            "no_space",
            format!(
                "the package manager could not write (`{what}`); make room where `df -h /var /usr /boot` shows none: {words}"
            ),
        );
    }
    if says(READ_ONLY) {
        return Trouble::failed(
            "read_only",
            format!(
                "the package manager could not write (`{READ_ONLY}`); `findmnt` shows which file system is not to be written: \
                 {words}"
            ),
        );
    }
    if let Some(said) = gave_up(&text) {
        return Trouble::failed(GAVE_UP, said);
    }
    if says("Unable to locate package")
        || says("has no installation candidate")
        || (says("Version '") && says("was not found"))
    {
        return Trouble::failed(
            UNKNOWN,
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

/// What apt says before it lists what the system cannot do without.
const ESSENTIAL: &str = "The following essential packages will be removed.";

/// What is said of a file system that is full.
const FULL: [&str; 2] = ["No space left on device", "You don't have enough free space"];

/// What the system says of a file system that is not to be written.
const READ_ONLY: &str = "Read-only file system";

/// The code of a package that dpkg could not unpack or configure.
const GAVE_UP: &str = "dpkg_gave_up";

/// Each package over which dpkg gave up: what it says of it, and the last words of its script before that. What apt says
/// at the end is only that there was something.
fn gave_up(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let given_up = lines.iter().enumerate().filter(|(_, line)| line.starts_with(GIVEN_UP));
    let each = given_up.map(|(at, line)| {
        let why = lines.get(at + 1).map_or("", |why| why.trim());
        let is_dpkgs = |line: &&&str| DPKGS_OWN.iter().any(|own| line.starts_with(own));
        let before = lines.iter().take(at).rev().take_while(|line| !is_dpkgs(line)).take(MOST_LINES);
        let mut said: Vec<&str> = before.map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
        said.reverse();
        let what = line.trim_start_matches(GIVEN_UP).trim_end_matches(':');
        let before =
            if said.is_empty() { String::new() } else { format!("; before that: {}", said.join(" / ")) };
        shown(&format!("dpkg gave up over {what}: {why}{before}"), 280)
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| shown(&each.join("; "), 400))
}

const GIVEN_UP: &str = "dpkg: error processing ";
/// What dpkg says itself as it begins with a package.
const DPKGS_OWN: [&str; 7] = [
    "Setting up ",
    "Unpacking ",
    "Preparing to unpack ",
    "Removing ",
    "Purging ",
    "Processing triggers for ",
    "dpkg: ",
];
/// The last lines of a script that are told.
const MOST_LINES: usize = 4;

/// A name that apt knows only as provided by others, and who provides it.
fn provided(text: &str) -> Option<(&str, Vec<String>)> {
    let (before, after) = text.split_once(" is a virtual package provided by:")?;
    let name = before.rsplit(['\n', ' ']).next()?;
    let lines = after.lines().skip(1).take_while(|line| line.starts_with("  "));
    Some((name, lines.filter_map(|line| line.split_ascii_whitespace().next()).map(str::to_owned).collect()))
}

/// No package has this name for its own.
pub(in super::super) fn virtual_name(name: &str, providers: &[String]) -> Trouble {
    let reason = format!(
        "{name} is not a package but a name that others provide, and the host does not choose between them; declare the one \
         that is meant: {}",
        shown(&providers.join(", "), 200)
    );
    Trouble::failed("virtual_package", reason)
}

/// What apt says before it lists packages that nothing proves.
const UNPROVEN_PACKAGES: &str = "The following packages cannot be authenticated!";

/// The code of a package that nothing proves.
pub(in super::super) const UNSIGNED: &str = "unsigned_package";

/// The code of a package, or a version of one, that no source has.
pub(in super::super) const UNKNOWN: &str = "unknown_package";

/// The code of a lock that somebody else holds.
pub(in super::super) const LOCK_HELD: &str = "package_lock_held";

/// The code of a package that needs what cannot be had.
pub(in super::super) const UNMET: &str = "unmet_dependencies";

/// The names that apt lists under a headline of its own.
fn listed(text: &str, headline: &str) -> Option<String> {
    let (_, list) = text.split_once(headline)?;
    let names = list
        .lines()
        .skip(1)
        .skip_while(|line| !line.is_empty() && !line.starts_with("  "))
        .take_while(|line| line.starts_with("  "))
        .flat_map(str::split_ascii_whitespace);
    let names = names.collect::<Vec<_>>().join(", ");
    (!names.is_empty()).then(|| shown(&names, 200))
}

/// What apt lists as needed and not to be had, one clause a line of it.
fn unmet(out: &str) -> Option<String> {
    let (_, list) = out.split_once("have unmet dependencies:")?;
    let lines = list.lines().skip(1).take_while(|line| line.starts_with(' ')).map(str::trim);
    Some(shown(&lines.collect::<Vec<_>>().join(", "), 300))
}

pub(super) fn status(ran: &Ran) -> String {
    ran.status.map_or_else(|| "a signal".to_owned(), |status| status.to_string())
}

/// Who holds the lock, in apt's or dpkg's own words, which name pid and program.
fn lock_line(text: &str) -> String {
    let line = text
        .lines()
        .find(|line| line.contains("held by process") || line.contains(LOCKED))
        .or_else(|| text.lines().find(|line| line.contains("lock")));
    shown(line.unwrap_or_default().trim_start_matches(['E', 'W', ':', ' ']), 200)
}
