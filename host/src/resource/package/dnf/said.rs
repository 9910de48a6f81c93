//! What dnf's words mean: what it would do, why it did not, and what went wrong beside what it did. Pure.

use std::collections::BTreeSet;

use tenure_protocol::text::shown;

use super::super::apt::{LOCK_HELD, UNMET};
use super::super::dpkg::PackageState;
use super::super::meaning;
use super::super::transaction::Simulated;
use super::super::{Begun, Packages, rpm};
use crate::program::Ran;
use crate::resource::Trouble;
use crate::resource::remark::{self, Kind, Remarks};

/// What it would do, where it came as far as to say so.
pub(super) fn simulation(ran: &Ran, now: &Packages) -> Option<Simulated> {
    let text = whole(ran);
    let resolved = text.contains(RESOLVED) && !text.lines().any(|line| line.starts_with("Error:"));
    let ended = text.contains("Operation aborted") || text.contains("Nothing to do.");
    if !(resolved && ended) {
        return None;
    }
    let mut simulated = Simulated::default();
    let (mut brought, mut erased) = (BTreeSet::new(), Vec::new());
    for line in text.lines() {
        let Some((package, what)) =
            line.strip_prefix("---> Package ").and_then(|l| l.split_once(" will be "))
        else {
            continue;
        };
        let (full, version) = package.split_once(' ')?;
        let (name, architecture) = full.rsplit_once('.')?;
        let version = version.strip_prefix("0:").unwrap_or(version).to_owned();
        match what.trim_end() {
            "installed" => {
                brought.insert((name, architecture));
                bring(&mut simulated, name, None, version);
            }
            "an upgrade" | "a downgrade" | "reinstalled" => {
                bring(&mut simulated, name, old(now, name, architecture), version);
            }
            "erased" | "obsoleted" => erased.push((name, architecture, version)),
            "upgraded" | "downgraded" => {}
            // What cannot be read is not run.
            _ => return None,
        }
    }
    for (name, architecture, version) in erased {
        match simulated.install.get_mut(name).filter(|_| brought.contains(&(name, architecture))) {
            // Of what may be there several times an old one makes room for the new, as in an upgrade.
            Some((old, _)) if old.as_deref().is_none_or(|old| rpm::is_older(old, &version)) => {
                *old = Some(version);
            }
            Some(_) => {}
            None => drop(simulated.remove.insert(now.named(name, architecture))),
        }
    }
    Some(simulated)
}

/// What comes in several architectures takes the place of whatever it has in one of them.
fn bring(simulated: &mut Simulated, name: &str, old: Option<String>, version: String) {
    let known = simulated.install.remove(name).and_then(|(old, _)| old);
    simulated.install.insert(name.to_owned(), (old.or(known), version));
}

const RESOLVED: &str = "--> Finished dependency resolution";

fn old(now: &Packages, name: &str, architecture: &str) -> Option<String> {
    let known = || now.all().filter(|(known, one)| *known == name && one.state != PackageState::Gone);
    let same = known().find(|(_, one)| &*one.architecture == architecture);
    same.or_else(|| known().next()).map(|(_, one)| one.version.to_string())
}

/// Whether it would need something else to go.
pub(super) fn needs_room(ran: &Ran) -> bool {
    whole(ran).contains("'--allowerasing'")
}

/// Whether it came to its end.
pub(super) fn is_complete(ran: &Ran) -> bool {
    let text = whole(ran);
    text.lines().any(|line| line.trim_end() == "Complete!") || text.contains("Nothing to do.")
}

/// The architecture and the version that a line of its answer offers of this package.
pub(super) fn offered<'l>(name: &str, line: &'l str) -> Option<(&'l str, String)> {
    let fields: Vec<&str> = line.trim_end().split('|').collect();
    let [package, architecture, epoch, version] = fields[..] else { return None };
    let is_it = package == name && !matches!(architecture, "src" | "nosrc");
    is_it.then(|| (architecture, rpm::spelled(epoch, version)))
}

/// Who provides a name, one a line of its answer; nobody, where a package has it for its own.
pub(super) fn providers(name: &str, text: &str) -> Vec<String> {
    let names: BTreeSet<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let is_own = names.contains(name);
    names.into_iter().filter(|_| !is_own).map(str::to_owned).collect()
}

fn whole(ran: &Ran) -> String {
    format!("{}\n{}", ran.out, ran.err)
}

/// What its words mean, which failed.
pub(super) fn failed(program: &str, ran: &Ran) -> Trouble {
    let text = whole(ran);
    if ran.status == Some(200) || LOCKED.iter().any(|locked| text.contains(locked)) {
        let reason =
            format!("the package manager is in use: {}; it is tried again by the next pass", holder(&text));
        return Trouble::outstanding(LOCK_HELD, reason);
    }
    let says = |words: &[&str]| words.iter().any(|words| text.contains(words));
    let words = words(&text, ran);
    if says(&OF_DNF_5) {
        return Trouble::refused(
            "dnf5_not_spoken",
            format!(
                "the dnf of this machine is dnf 5, which the host cannot work with, so nothing is changed; what is \
                 installed is still read, and no other package can be declared for this machine: {words}"
            ),
        );
    }
    if says(&["Cache-only enabled but no cache"]) {
        return meaning::sources_not_read("dnf makecache", &words);
    }
    if says(&UNPROVEN) {
        return meaning::unsigned_source(ASKS, &words);
    }
    if says(&UNSIGNED) {
        return meaning::unsigned_package(GIVE, &stranger(&text).unwrap_or(words));
    }
    if says(&["filtered out by exclude filtering"]) {
        return Trouble::refused(
            "package_on_hold",
            format!(
                "somebody has locked or excluded what is wanted; `dnf versionlock list`, and `exclude` in \
                 /etc/dnf/dnf.conf, say which: {words}"
            ),
        );
    }
    if says(&["protected packages"]) {
        return Trouble::refused(
            "transaction_refused",
            format!("not done: {words}; declare another package"),
        );
    }
    if says(&["Unable to find a match", "No match for argument"]) {
        return meaning::unknown_package(&words);
    }
    if let Some(problem) = problem(&text) {
        return Trouble::failed(
            UNMET,
            format!(
                "what is needed cannot be had together: {problem}; declare another version, or another package"
            ),
        );
    }
    if says(&NOT_HAD) { meaning::not_fetched(&words) } else { meaning::other(program, ran, &words) }
}

/// What it says of words that dnf 4 takes.
const OF_DNF_5: [&str; 2] = ["for command \"dnf5\"", "for command \"dnf\""];
/// How the machine is given the key of packages; the host takes none that a source names for itself.
const GIVE: &str =
    "`grep gpgkey /etc/yum.repos.d/*` shows the one its source names, and `rpm --import` takes it";
/// The key of a list is dnf's own to keep.
const ASKS: &str = "`dnf makecache` on the machine asks about it";
const UNPROVEN: [&str; 2] = ["GPG signature verification error", "repomd.xml GPG"];
const UNSIGNED: [&str; 6] = [
    "is not signed",
    "GPG check FAILED",
    "You have enabled checking of packages via GPG keys",
    "Public key for ",
    "Signature verification failed",
    "OpenPGP check for package",
];
const NOT_HAD: [&str; 4] =
    ["Error downloading packages", "Cannot download", "No more mirrors to try", "have incorrect checksum"];

/// How its list of what is in the way begins.
const PROBLEM: &str = "\n Problem";

const LOCKED: [&str; 4] = [
    "already locked by",
    "Failed to obtain the transaction lock",
    "Failed to obtain rpm transaction lock",
    "create transaction lock on",
];
/// What it says of a package for which no key is left, after none was taken.
fn stranger(text: &str) -> Option<String> {
    let (_, failing) = text.lines().find_map(|line| line.split_once("Failing package is: "))?;
    Some(format!("{} is signed by a key that nobody gave to rpm", shown(failing, 150)))
}

/// What it says is in the way, one clause a line of it.
fn problem(text: &str) -> Option<String> {
    let (_, list) = text.split_once(PROBLEM)?;
    let clauses: Vec<&str> = list
        .lines()
        .map(|line| line.trim_start_matches([' ', '-', ':']).trim())
        .take_while(|line| !line.starts_with('('))
        .filter(|line| !line.is_empty() && *line != "conflicting requests")
        .collect();
    Some(shown(&clauses.join(", "), 300))
}

/// Who has the lock, in its own words, which name pid and program.
fn holder(text: &str) -> String {
    let named = text.lines().find_map(|line| line.trim().strip_prefix("The application with PID "));
    if let Some((pid, name)) = named.and_then(|named| named.split_once(" is: ")) {
        return format!("process {} ({})", shown(pid, 20), shown(name, 40));
    }
    let line = text.lines().find(|line| LOCKED.iter().any(|locked| line.contains(locked)));
    shown(line.unwrap_or("somebody has a lock").trim(), 200)
}

/// The lines in which it says what went wrong.
fn words(text: &str, ran: &Ran) -> String {
    const TELLING: [&str; 7] =
        ["Error", "error:", "No match", "All matches", "Package ", "Public key", "Problem repository"];
    let telling = |line: &&str| TELLING.iter().any(|telling| line.starts_with(telling));
    let lines: Vec<&str> = text.lines().map(str::trim).filter(telling).take(4).collect();
    if lines.is_empty() { ran.last_words() } else { shown(&lines.join(" / "), 300) }
}

/// What is to be told of what it did. A script that fails is only a warning to it.
pub(super) fn remarks(ran: &Ran, touched: &Begun) -> Remarks {
    let mut remarks = Remarks::new();
    let (mut current, mut output) = (None, Vec::new());
    for line in ran.out.lines() {
        let text = line.trim();
        if let Some(name) = step(line).and_then(|full| name_of(full, touched)) {
            (current, output) = (Some(name), Vec::new());
        } else if let Some((full, how)) = failed_script(text) {
            if let Some(name) = name_of(full, touched) {
                let reason = format!(
                    "a script of it failed ({how}); {} runs it again, `rpm -q --scripts {name}` shows what it is to do{}",
                    again(name),
                    remark::spoken(&output)
                );
                remark::add(&mut remarks, name, Kind::ScriptFailed, &reason);
            }
            output.clear();
        } else if let (Some(reason), Some(name)) = (remark::kept(text, " created as "), current) {
            remark::add(&mut remarks, name, Kind::ConfigurationKept, &reason);
        } else if !text.is_empty() {
            output.push(text);
        }
    }
    remarks
}

/// Brings it anew, and runs its scripts again.
pub(super) fn again(name: &str) -> String {
    format!("`dnf reinstall {name}`")
}

/// `  Installing       : hello-2.0-1.noarch      1/2`: whose step begins.
fn step(line: &str) -> Option<&str> {
    let (verb, rest) = line.strip_prefix("  ")?.split_once(':')?;
    let count = rest.split_ascii_whitespace().last()?;
    let is_step = verb.starts_with(|c: char| c.is_ascii_uppercase()) && count.contains('/');
    rest.split_ascii_whitespace().next().filter(|_| is_step)
}

/// `warning: %post(hello-2.0-1.noarch) scriptlet failed, exit status 3`.
fn failed_script(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once(": %").filter(|(kind, _)| matches!(*kind, "warning" | "error"))?;
    let (_, rest) = rest.split_once('(')?;
    let (full, how) = rest.split_once(") scriptlet failed")?;
    Some((full, how.trim_start_matches([',', ' '])))
}

/// The touched package that is spelled out so, with version and architecture.
fn name_of<'t>(full: &str, touched: &'t Begun) -> Option<&'t str> {
    let is_it = |name: &&String| full.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('-'));
    touched.keys().filter(is_it).max_by_key(|name| name.len()).map(String::as_str)
}
