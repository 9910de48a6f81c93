//! The hand that works apt: simulating, reading the sources anew, asking which versions there are, the words of a
//! transaction, and what apt's own words mean. What came of it is read from dpkg's database afterwards, never from here.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use tenure_protocol::refusal::chain;

use super::dpkg::bare;
use super::proven::{FORMAT, Proven};
use super::transaction::{Simulated, Wanted, read_simulation};
use crate::ground::own::TRANSACTION_UNIT;
use crate::program::{ProgramError, Programs, Ran};
use crate::resource::Trouble;

/// How long a transaction may take: a slow mirror and a slow disk together.
pub(super) const TRANSACTION: Duration = Duration::from_secs(30 * 60);
/// How long reading and simulating may take.
pub(super) const QUESTION: Duration = Duration::from_secs(120);

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

/// Else apt writes wherever it is asked anything, also where it only simulates: its caches (apt.conf: an empty name turns
/// one off), and what it told its planner and its solver.
const LEAVES_NOTHING: [&str; 8] = [
    "-o",
    "Dir::Cache::pkgcache=",
    "-o",
    "Dir::Cache::srcpkgcache=",
    "-o",
    "Dir::Log::Planner=",
    "-o",
    "Dir::Log::Solver=",
];

mod words;

pub(super) use words::{LOCK_HELD, UNKNOWN, UNMET, UNSIGNED, refused, virtual_name};

/// apt on this machine.
pub(super) struct Apt<'a> {
    pub(super) programs: &'a dyn Programs,
    /// Whether it may keep what it worked out of its lists beside them; not where nothing is to be changed.
    pub(super) keeps_cache: bool,
}

impl Apt<'_> {
    /// What this transaction would do, with these sources where some are named.
    pub(super) fn simulate(&self, wanted: &Wanted, sources: Option<&Proven>) -> Result<Simulated, Trouble> {
        // What would be removed is named by the judge, not by apt, which would only say that something would.
        let words = transaction(wanted).into_iter().filter(|word| word != "--no-remove");
        let words = ["-s".to_owned()].into_iter().chain(options(sources)).chain(words);
        let ran = self.get(words, QUESTION)?;
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
        let ran = self.ask("madison", name)?;
        let mut versions: Vec<String> = Vec::new();
        for Line { version, .. } in madison(name, &ran.out) {
            if !versions.iter().any(|known| known == version) {
                versions.push(version.to_owned());
            }
        }
        Ok(versions)
    }

    /// The machine's sources, without the words that let them go unsigned; written into `folder`.
    pub(super) fn proven(&self, folder: &Path) -> Result<Proven, Trouble> {
        let arguments = ["indextargets", "--format", FORMAT, "Created-By: Packages", "Target-Of: deb"];
        let ran = self.programs.run(APT_GET, &arguments, QUESTION).map_err(not_run)?;
        if ran.succeeded() { Proven::write(&ran.out, folder) } else { Err(refused(APT_GET, &ran)) }
    }

    /// Where the sources have this version of a package, in apt's own words for them.
    pub(super) fn places(&self, name: &str, version: &str) -> Result<Vec<String>, Trouble> {
        let ran = self.ask("madison", name)?;
        Ok(madison(name, &ran.out)
            .filter(|line| line.version == version)
            .map(|line| line.place.to_owned())
            .collect())
    }

    /// Who only provides this name, which no package has for its own.
    pub(super) fn providers(&self, name: &str) -> Result<Vec<String>, Trouble> {
        let ran = self.ask("showpkg", name)?;
        Ok(providers(name, &ran.out))
    }

    fn ask(&self, word: &str, name: &str) -> Result<Ran, Trouble> {
        let words: Vec<&str> = self.cache().iter().copied().chain([word, "--", name]).collect();
        self.programs.run("apt-cache", &words, QUESTION).map_err(not_run)
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

    const fn cache(&self) -> &'static [&'static str] {
        if self.keeps_cache { &[] } else { &LEAVES_NOTHING }
    }

    fn get(&self, words: impl Iterator<Item = String>, within: Duration) -> Result<Ran, Trouble> {
        let words: Vec<String> = words.collect();
        let options = OPTIONS.into_iter().chain(self.cache().iter().copied());
        let arguments: Vec<&str> = options.chain(words.iter().map(String::as_str)).collect();
        self.programs.run(APT_GET, &arguments, within).map_err(not_run)
    }
}

const APT_GET: &str = "apt-get";
/// What apt says when it could not read a source anew.
const OLD_ONES: &str = "old ones used instead";
/// The command that runs a transaction, with these sources where some are named.
pub(super) fn command(wanted: &Wanted, sources: Option<&Proven>) -> Vec<String> {
    let always = [APT_GET].into_iter().chain(OPTIONS).map(str::to_owned);
    always.chain(options(sources)).chain(transaction(wanted)).collect()
}

fn options(sources: Option<&Proven>) -> Vec<String> {
    sources.map(Proven::options).unwrap_or_default()
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

/// Reads what `apt-cache showpkg` prints of a name; nobody, where a package has it for its own.
fn providers(name: &str, text: &str) -> Vec<String> {
    // It takes a name for a pattern too.
    let meant = text.strip_prefix("Package: ").and_then(|text| text.strip_prefix(name)).unwrap_or_default();
    let between = |from: &str, to: &str| Some(meant.split_once(from)?.1.split_once(to)?.0);
    if between("\nVersions:", "\nReverse Depends:").is_none_or(|versions| !versions.trim().is_empty()) {
        return Vec::new();
    }
    let list = meant.split_once("\nReverse Provides:").map_or("", |(_, list)| list);
    let names = list.lines().filter_map(|line| line.split_ascii_whitespace().next()).map(str::to_owned);
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

/// A version of a package, and where it is to be had.
struct Line<'t> {
    version: &'t str,
    place: &'t str,
}

/// Reads what `apt-cache madison` prints of a package, newest first.
fn madison<'t>(name: &str, text: &'t str) -> impl Iterator<Item = Line<'t>> {
    text.lines().filter_map(move |line| {
        let mut columns = line.splitn(3, '|').map(str::trim);
        let (package, version, place) = (columns.next()?, columns.next()?, columns.next()?);
        (bare(package) == name).then_some(Line { version, place })
    })
}

/// What failed is systemd-run, before there was a unit: whatever it was to run did nothing.
pub(super) fn not_begun(ran: &Ran) -> Trouble {
    let reason = format!(
        "nothing was run: systemd-run ended with status {}: {}; `systemctl status` shows what is wrong with the service \
         manager, and it is tried again by the next pass",
        words::status(ran),
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
