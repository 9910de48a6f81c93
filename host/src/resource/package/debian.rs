//! apt over dpkg, as one of the package managers: which of its parts does what.

use std::sync::Arc;

use tenure_protocol::refusal::chain;
use tenure_protocol::resource::PackageWanted;

use super::apt::{self, Apt};
use super::hand::{Hand, Words};
use super::proven::Proven;
use super::transaction::{Simulated, Wanted};
use super::{Begun, Packages, Remarks, Terms, Tools, Trouble, database, lock, note, owner, version};
use crate::program::Ran;
use crate::resource::remark::{self, Kind};

/// apt on this machine.
pub(super) struct Debian<'a> {
    tools: &'a Tools<'a>,
    apt: Apt<'a>,
}

impl<'a> Debian<'a> {
    pub(super) fn of(tools: &'a Tools<'a>) -> Result<Self, Trouble> {
        Ok(Self { tools, apt: tools.apt()? })
    }
}

impl Hand for Debian<'_> {
    fn database(&self) -> Result<Arc<Packages>, Trouble> {
        database::read(self.tools)
    }

    fn free(&self) -> Result<(), Trouble> {
        lock::free(self.tools)
    }

    fn whole(&self, packages: &Packages, terms: Terms<'_>) -> Result<(), Trouble> {
        lock::whole(self.tools, packages, terms)
    }

    fn parts(&self, wanted: Wanted) -> Vec<Wanted> {
        vec![wanted]
    }

    fn simulate(
        &self,
        wanted: &Wanted,
        _: &Packages,
        sources: Option<&Proven>,
    ) -> Result<Simulated, Trouble> {
        self.apt.simulate(wanted, sources)
    }

    fn update(&self) -> Result<(), Trouble> {
        self.apt.update()
    }

    fn versions(&self, name: &str) -> Result<Vec<String>, Trouble> {
        self.apt.versions(name)
    }

    fn takes_versions_as_declared(&self) -> bool {
        true
    }

    fn command(&self, wanted: &Wanted, _: &Begun, sources: Option<&Proven>) -> Vec<String> {
        apt::command(wanted, sources)
    }

    fn proven(&self) -> Result<Option<Proven>, Trouble> {
        self.apt.proven(&self.tools.run()).map(Some)
    }

    fn places(&self, name: &str, version: &str) -> Vec<String> {
        self.apt.places(name, version).unwrap_or_default()
    }

    fn providers(&self, name: &str) -> Vec<String> {
        self.apt.providers(name).unwrap_or_default()
    }

    fn failed(&self, program: &str, ran: &Ran) -> Trouble {
        apt::refused(program, ran)
    }

    /// A dpkg that comes to its end leaves no journal, a program that did all it was to do leaves nothing unfinished
    /// (systemd calls it a success to be ended by SIGTERM), and each has its own statuses for a failure of its own.
    fn is_cut_short(&self, command: &[String], touched: &Begun, ran: &Ran) -> Result<bool, Trouble> {
        if !database::journal(self.tools)?.is_empty() {
            return Ok(true);
        }
        Ok(match (ran.status, command.first().map(String::as_str)) {
            (Some(0), program) => self.tools.packages()?.unfinished().any(|(name, package)| {
                let beyond_it = program == Some("dpkg") && package.is_half_unpacked();
                touched.contains_key(&name) && !beyond_it
            }),
            (Some(100), Some("apt-get")) | (Some(1 | 2), Some("dpkg")) => false,
            (Some(_) | None, _) => true,
        })
    }

    fn remarks(&self, _: &Ran, touched: &Begun) -> Remarks {
        let mut remarks = Remarks::new();
        let Ok(now) = self.tools.packages() else { return remarks };
        let brought = touched.keys().filter(|name| now.installed(name).is_some());
        for (name, beside) in brought.filter_map(|name| Some((name, note(self.tools, name)?))) {
            remark::add(&mut remarks, name, Kind::ConfigurationKept, &beside);
        }
        remarks
    }

    fn of_the_hosts_files(&self, names: &[&str]) -> Result<Option<String>, String> {
        owner::of_the_hosts_files(self.tools, names).map_err(|unread| chain(&unread))
    }

    fn is_older(&self, a: &str, b: &str) -> bool {
        version::is_older(a, b)
    }

    fn takes(&self, wanted: &PackageWanted, version: &str) -> bool {
        wanted.takes(version)
    }

    fn may_raise(&self) -> bool {
        true
    }

    fn keeps_a_journal(&self) -> bool {
        true
    }

    fn words(&self) -> Words {
        Words {
            unhold: |name| format!("`apt-mark unhold {name}`"),
            simulate: "`apt-get -s install`",
            whose: "`dpkg -S`",
            place: "/var/lib/dpkg",
            again: |name| format!("`apt-get install --reinstall {name}`"),
        }
    }

    fn unfinished(&self, name: &str, word: &str) -> String {
        // What was being unpacked cannot be configured.
        let anew = format!("apt-get install --reinstall {name}");
        let (what, command) = match word {
            "half-installed" => ("dpkg began with it and did not finish", anew.as_str()),
            "triggers-awaited" => {
                ("it waits for what another package has to do for it", "dpkg --configure -a")
            }
            _ => ("dpkg began with it and did not finish", "dpkg --configure -a"),
        };
        format!("{what}: {name} is {word}; run `{command}` on the machine and look at what it says")
    }
}
