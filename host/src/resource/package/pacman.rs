//! The hand that works pacman: simulating, reading the sources anew, asking which versions there are, the words of a
//! transaction. What is installed is read from its own directory of packages, in [`local`]; what its words mean is in
//! [`said`]. The sources are read anew only where a wanted version is unknown or no longer to be had: on a machine of
//! this kind that alone makes every later installation a partial upgrade, so nothing is brought that would need another
//! installed package to be raised with it.

use std::collections::BTreeSet;
use std::sync::Arc;

use tenure_protocol::resource::PackageWanted;

use super::apt::{QUESTION, TRANSACTION, not_run};
use super::evr::{self, Rules};
use super::hand::{Hand, Words};
use super::proven::Proven;
use super::transaction::{Simulated, Wanted};
use super::{Begun, Packages, Remarks, Terms, Tools, Trouble, lock};
use crate::ground::own::OWN_PACKAGE;
use crate::program::{Programs, Ran};

mod local;
mod said;

pub(super) use local::holds_packages;

/// pacman on this machine.
pub(super) struct Pacman<'a> {
    tools: &'a Tools<'a>,
    programs: &'a dyn Programs,
}

const PACMAN: &str = "pacman";
/// Made by whoever begins a transaction, and held open until it ends.
const LOCK: &str = "/var/lib/pacman/db.lck";
/// Of a simulation: the source, the name and the version, told apart from whatever else it says.
const FORMAT: &str = "--print-format=would|%r|%n|%v";

impl<'a> Pacman<'a> {
    pub(super) fn of(tools: &'a Tools<'a>) -> Result<Self, Trouble> {
        Ok(Self { tools, programs: tools.programs()? })
    }

    /// What is set for this word of its configuration, one value a line.
    fn set(&self, words: &[&str]) -> Result<Vec<String>, Trouble> {
        let ran = self.programs.run("pacman-conf", words, QUESTION).map_err(not_run)?;
        if !ran.succeeded() {
            let reason = format!(
                "pacman's configuration cannot be read: {}; run `pacman-conf` on the machine and look at what it says",
                ran.last_words()
            );
            return Err(Trouble::unknown("could_not_look", reason));
        }
        Ok(ran.out.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect())
    }

    /// The host comes from a source that proves itself, whatever the machine's configuration allows (S-13).
    fn host_is_signed(&self, source: &str) -> Result<(), Trouble> {
        let levels = self.set(&["--repo", source, "SigLevel"])?;
        let has = |level: &str| levels.iter().any(|set| set == level);
        if has("PackageRequired") && has("PackageTrustedOnly") {
            return Ok(());
        }
        let reason = format!(
            "tenure-host would come from {source}, which need not be signed by a trusted key; set `SigLevel = Required` \
             for it in /etc/pacman.conf, and have its packages signed"
        );
        Err(Trouble::refused("unsigned_package", reason))
    }
}

/// The words of a transaction, names after `--`.
fn transaction(wanted: &Wanted) -> Vec<String> {
    let removes = wanted.install.is_empty();
    let mut words = vec![if removes { "-R" } else { "-S" }.to_owned()];
    if !removes {
        words.push("--needed".to_owned());
    }
    words.extend(["--noconfirm", "--noprogressbar", "--"].map(str::to_owned));
    words.extend(wanted.install.iter().map(|(name, version)| match version {
        Some(version) => format!("{name}={version}"),
        None => name.clone(),
    }));
    if removes {
        words.extend(wanted.remove.iter().cloned());
    }
    words
}

impl Hand for Pacman<'_> {
    fn database(&self) -> Result<Arc<Packages>, Trouble> {
        let (held, groups) = (self.set(&["IgnorePkg"])?, self.set(&["IgnoreGroup"])?);
        let packages = local::read(self.tools, &held, &groups);
        match packages {
            // Somebody is just making it.
            Ok(packages) if packages.unfinished().next().is_some() => self.free().map(|()| packages),
            packages => packages,
        }
    }

    fn free(&self) -> Result<(), Trouble> {
        if !self.tools.at(LOCK).exists() {
            return Ok(());
        }
        match lock::opened(&self.tools.at(LOCK)) {
            Some(pid) => Err(lock::held(LOCK, pid)),
            // Between the two looks it may have ended.
            None if !self.tools.at(LOCK).exists() => Ok(()),
            None => {
                let reason = format!(
                    "{LOCK} is there and no process has it open: a pacman was cut short; look in /var/log/pacman.log what \
                     was being done, remove the file, which the host never does, and run `pacman -Dk`"
                );
                Err(Trouble::outstanding(super::apt::LOCK_HELD, reason))
            }
        }
    }

    /// What an earlier transaction left half done does not stop another, and each package says it itself.
    fn whole(&self, _: &Packages, _: Terms<'_>) -> Result<(), Trouble> {
        Ok(())
    }

    /// pacman removes or installs: what is to go makes room for what is to come.
    fn parts(&self, wanted: Wanted) -> Vec<Wanted> {
        let remove = Wanted { remove: wanted.remove.clone(), ..Wanted::default() };
        let install = Wanted { remove: BTreeSet::new(), ..wanted };
        [remove, install].into_iter().filter(|part| !part.is_empty()).collect()
    }

    fn simulate(&self, wanted: &Wanted, now: &Packages, _: Option<&Proven>) -> Result<Simulated, Trouble> {
        let words = transaction(wanted);
        let arguments: Vec<&str> =
            ["--print", FORMAT].into_iter().chain(words.iter().map(String::as_str)).collect();
        let ran = self.programs.run(PACMAN, &arguments, QUESTION).map_err(not_run)?;
        if !ran.succeeded() {
            return Err(said::failed(PACMAN, &ran));
        }
        let mut simulated = Simulated::default();
        for said::Would { source, name, version } in said::would(&ran.out) {
            if wanted.install.is_empty() {
                simulated.remove.insert(name.to_owned());
                continue;
            }
            if name == OWN_PACKAGE {
                self.host_is_signed(source)?;
            }
            let old = now.get(name).map(|package| package.version.to_string());
            simulated.install.insert(name.to_owned(), (old, version.to_owned()));
        }
        Ok(simulated)
    }

    fn update(&self) -> Result<(), Trouble> {
        let arguments = ["-Sy", "--noconfirm", "--noprogressbar"];
        let ran = self.programs.run(PACMAN, &arguments, TRANSACTION).map_err(not_run)?;
        if ran.succeeded() { Ok(()) } else { Err(said::failed(PACMAN, &ran)) }
    }

    fn versions(&self, name: &str) -> Result<Vec<String>, Trouble> {
        let ran = self.programs.run(PACMAN, &["-Si", "--", name], QUESTION).map_err(not_run)?;
        // A name that no source has is a failure to it.
        let mut versions = said::offered(name, &ran.out);
        versions.sort_by(|a, b| evr::compare(b, a, Rules::Pacman));
        versions.dedup();
        Ok(versions)
    }

    /// It looks for a pattern in what packages are called, are, and provide.
    fn providers(&self, name: &str) -> Vec<String> {
        let pattern = format!("^{}$", name.replace('.', "\\.").replace('+', "\\+"));
        let ran = self.programs.run(PACMAN, &["-Ssq", "--", &pattern], QUESTION).ok();
        let found = ran.map_or_else(String::new, |ran| ran.out);
        let is_own = found.lines().any(|line| line.trim() == name);
        found.lines().filter(|_| !is_own).map(|line| line.trim().to_owned()).collect()
    }

    fn takes_versions_as_declared(&self) -> bool {
        false
    }

    fn command(&self, wanted: &Wanted, _: &Begun, _: Option<&Proven>) -> Vec<String> {
        [PACMAN.to_owned()].into_iter().chain(transaction(wanted)).collect()
    }

    fn proves_when_asked(&self) -> bool {
        true
    }

    fn failed(&self, program: &str, ran: &Ran) -> Trouble {
        said::failed(program, ran)
    }

    /// It ends with 0 or 1 by itself, and takes its lock with it.
    fn is_cut_short(&self, _: &[String], _: &Begun, ran: &Ran) -> Result<bool, Trouble> {
        Ok(!matches!(ran.status, Some(0 | 1)))
    }

    fn remarks(&self, ran: &Ran, touched: &Begun) -> Remarks {
        said::remarks(ran, touched)
    }

    fn of_the_hosts_files(&self, names: &[&str]) -> Result<Option<String>, String> {
        local::of_the_hosts_files(self.tools, names)
    }

    fn is_older(&self, a: &str, b: &str) -> bool {
        evr::compare(a, b, Rules::Pacman).is_lt()
    }

    fn takes(&self, wanted: &PackageWanted, version: &str) -> bool {
        wanted.takes(version)
    }

    fn may_raise(&self) -> bool {
        false
    }

    fn keeps_a_journal(&self) -> bool {
        false
    }

    fn words(&self) -> Words {
        Words {
            unhold: |name| format!("taking {name} out of `IgnorePkg` in /etc/pacman.conf"),
            simulate: "`pacman -Sp`",
            whose: "`pacman -Qo`",
            place: "/var/lib/pacman",
            again: said::again,
        }
    }

    fn unfinished(&self, name: &str, word: &str) -> String {
        format!(
            "pacman began with {name} and did not finish: it is {word}; run `pacman -Dk` on the machine, look at what it \
             says, and bring it anew with `pacman -S {name}`"
        )
    }
}

#[cfg(test)]
mod tests;
