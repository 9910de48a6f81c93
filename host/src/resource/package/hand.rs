//! The package managers that are performed, and which of them is this machine's: the one whose database holds packages,
//! whatever os-release calls the system. What all of them share is said once, in [`super::transact`] and
//! [`super::apart`]; what each does in its own way it says here.

use std::sync::Arc;

use tenure_protocol::refusal::chain;
use tenure_protocol::resource::PackageWanted;

use super::debian::Debian;
use super::dnf::Dnf;
use super::pacman::Pacman;
use super::proven::Proven;
use super::transaction::{Simulated, Wanted};
use super::{Begun, Packages, Remarks, Terms, Tools, Trouble, pacman, rpm};
use crate::config::{Config, PackageManager as Which};
use crate::program::Ran;

/// One package manager at work on this machine. Looking changes nothing; what it would do is asked before, and what it
/// did is read from its database.
pub(super) trait Hand {
    /// What is installed.
    fn database(&self) -> Result<Arc<Packages>, Trouble>;

    /// Nobody else works with packages now.
    fn free(&self) -> Result<(), Trouble>;

    /// Nobody has left anything half done that would stand in the way of a transaction.
    fn whole(&self, packages: &Packages, terms: Terms<'_>) -> Result<(), Trouble>;

    /// What has to be done one after the other, since it takes no more into one transaction.
    fn parts(&self, wanted: Wanted) -> Vec<Wanted>;

    /// What this transaction would do to what is there now; with these sources alone where some are named.
    fn simulate(
        &self,
        wanted: &Wanted,
        now: &Packages,
        sources: Option<&Proven>,
    ) -> Result<Simulated, Trouble>;

    /// Reads the sources anew.
    fn update(&self) -> Result<(), Trouble>;

    /// The versions of a package that the sources have, newest first.
    fn versions(&self, name: &str) -> Result<Vec<String>, Trouble>;

    /// Whether it is asked for a declared version in the words of the declaration; else in those of [`Self::versions`].
    fn takes_versions_as_declared(&self) -> bool;

    /// The words of this transaction, which does what `touched` says; from these sources alone where some are named.
    fn command(&self, wanted: &Wanted, touched: &Begun, sources: Option<&Proven>) -> Vec<String>;

    /// The sources that prove what they hand out, where the host is to be brought from them alone; none: whoever
    /// simulates or runs sees to it that it is (S-13).
    fn proven(&self) -> Result<Option<Proven>, Trouble> {
        Ok(None)
    }

    /// Whether its simulation refuses a host that nothing proves (S-13); else the transaction itself does.
    fn proves_when_asked(&self) -> bool {
        false
    }

    /// Where the sources have this version of a package, in their manager's own words; empty where it does not say.
    fn places(&self, _name: &str, _version: &str) -> Vec<String> {
        Vec::new()
    }

    /// Who only provides this name, which no package has for its own.
    fn providers(&self, _name: &str) -> Vec<String> {
        Vec::new()
    }

    /// What the words of `program`, which failed, mean.
    fn failed(&self, program: &str, ran: &Ran) -> Trouble;

    /// Whether a transaction that ended so did not come to its end by itself.
    fn is_cut_short(&self, command: &[String], touched: &Begun, ran: &Ran) -> Result<bool, Trouble>;

    /// What is to be told of packages that were brought all the same.
    fn remarks(&self, ran: &Ran, touched: &Begun) -> Remarks;

    /// The first file of the host's own that one of these packages has brought, in words; the error: why nobody could look.
    fn of_the_hosts_files(&self, names: &[&str]) -> Result<Option<String>, String>;

    /// Whether the first version is older than the second.
    fn is_older(&self, a: &str, b: &str) -> bool;

    /// Whether an installed version is one that is wanted.
    fn takes(&self, wanted: &PackageWanted, version: &str) -> bool;

    /// Whether what is needed may be brought to a newer version though nobody declared it.
    fn may_raise(&self) -> bool;

    /// Whether it notes on the disk what it has begun, so that it can be told to finish that.
    fn keeps_a_journal(&self) -> bool;

    /// What an operator does with it, in words.
    fn words(&self) -> Words;

    /// What it means that a package is begun and not finished, with what to do.
    fn unfinished(&self, name: &str, word: &str) -> String;
}

/// Commands of a package manager, as an operator types them.
pub(super) struct Words {
    /// Lets this package be changed.
    pub(super) unhold: fn(&str) -> String,
    /// Shows what a transaction would do.
    pub(super) simulate: &'static str,
    /// Says whose a file is.
    pub(super) whose: &'static str,
    /// Where its database lies.
    pub(super) place: &'static str,
    /// Brings an installed package anew, and runs its scripts again.
    pub(super) again: fn(&str) -> String,
}

impl Tools<'_> {
    /// The package manager of this machine.
    pub(super) fn package_manager(&self) -> Result<Box<dyn Hand + '_>, Trouble> {
        self.programs()?;
        Ok(match self.manager_chosen().get_or_init(|| which(self)).clone()? {
            Which::Apt => Box::new(Debian::of(self)?),
            Which::Dnf => Box::new(Dnf::of(self)?),
            Which::Pacman => Box::new(Pacman::of(self)?),
        })
    }
}

/// The owner's word decides; else the database that holds packages. Where none does it is apt's, which says so.
fn which(tools: &Tools<'_>) -> Result<Which, Trouble> {
    let config = Config::read(&tools.config());
    let config = config.map_err(|error| Trouble::refused("config_unusable", chain(&error)))?;
    if let Some(which) = config.packages {
        return Ok(which);
    }
    let mut found = Vec::new();
    if super::database::holds_packages(tools)? {
        found.push(Which::Apt);
    }
    if rpm::holds_packages(tools)? {
        found.push(Which::Dnf);
    }
    if pacman::holds_packages(tools)? {
        found.push(Which::Pacman);
    }
    match found[..] {
        [] => Ok(Which::Apt),
        [one] => Ok(one),
        [..] => {
            let names: Vec<&str> = found.iter().map(|which| which.as_str()).collect();
            let reason = format!(
                "the databases of {} all hold packages on this machine, and the host does not guess whose it is; write \
                 `packages = \"{}\"`, or another of them, in /etc/tenure/host.toml",
                names.join(" and "),
                names.first().copied().unwrap_or_default()
            );
            Err(Trouble::refused("package_managers", reason))
        }
    }
}

#[cfg(test)]
mod tests;
