//! The hand that works dnf: simulating, reading the sources anew, asking which versions there are, the words of a
//! transaction. What came of it is read from rpm's database afterwards, never from here. What dnf's own words mean is
//! in [`said`], whom an operator has locked in [`versionlock`].

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use tenure_protocol::resource::PackageWanted;

use super::apt::{TRANSACTION, not_run};
use super::evr::{Rules, compare};
use super::hand::{Hand, Words};
use super::proven::Proven;
use super::transaction::{Simulated, Wanted};
use super::{Begun, Packages, Remarks, Terms, Tools, Trouble, lock, rpm};
use crate::ground::own::OWN_PACKAGE;
use crate::program::{Programs, Ran};
use aside::Aside;
use several::Spelled;

mod aside;
mod said;
mod several;
mod versionlock;

/// dnf on this machine.
pub(super) struct Dnf<'a> {
    tools: &'a Tools<'a>,
    programs: &'a dyn Programs,
    /// The last that was simulated, as it is run.
    simulated: RefCell<Option<(Wanted, Vec<String>)>>,
}

const DNF: &str = "dnf";
/// It does not wait for whoever has a lock, and says who that is.
const NO_WAITING: &str = "--setopt=exit_on_lock=1";
/// By the word for its end a transaction is known to have come there, also where the operator has it say less.
const SAYS_THE_END: &str = "--debuglevel=2";
/// A package is removed alone, never with what it once brought along (H-24).
const ALONE: &str = "--setopt=clean_requirements_on_remove=False";
/// What was simulated is what is run: nothing is read anew in between.
const AS_SIMULATED: [&str; 2] = ["--setopt=metadata_expire=-1", "--setopt=*.metadata_expire=-1"];
/// A source that could not be read is a failure, not a warning.
const EVERY_SOURCE: [&str; 2] = ["--setopt=skip_if_unavailable=0", "--setopt=*.skip_if_unavailable=0"];
/// `-y`, or `defaultyes` of the operator's, would take whatever key a source names for itself, for its packages and for
/// its list. Only those count that somebody gave to rpm, and that somebody let dnf keep for a list (S-13). Without a word
/// dnf would do nothing at all as long as rpm has no key.
const NO_NEW_KEY: &str = "--setopt=*.gpgkey=file:///dev/null";
/// The host comes from a source that proves itself, whatever the machine's configuration allows (S-13).
const SIGNED: [&str; 2] = ["--setopt=gpgcheck=1", "--setopt=*.gpgcheck=1"];
/// Where dnf notes who works with the database, with the sources, and who fetches packages.
const NOTES: [&str; 3] =
    ["/var/lib/dnf/rpmdb_lock.pid", "/var/cache/dnf/metadata_lock.pid", "/var/cache/dnf/download_lock.pid"];
/// An image-based system: what is below /usr comes with the image.
const IMAGE: &str = "/run/ostree-booted";

impl<'a> Dnf<'a> {
    pub(super) fn of(tools: &'a Tools<'a>) -> Result<Self, Trouble> {
        Ok(Self { tools, programs: tools.programs()?, simulated: RefCell::default() })
    }

    /// Asks what it would do; at this level of detail it names each package in a line of its own.
    fn ask(&self, wanted: &Wanted, names: &[String], erasing: bool) -> Result<Ran, Trouble> {
        let words = transaction(wanted, names, erasing);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.question(&["--assumeno", "--debuglevel=3", ALONE], &words)
    }

    /// What the sources have of a package, one version in one architecture a line.
    fn offered(&self, name: &str) -> Result<String, Trouble> {
        let format = "%{name}|%{arch}|%{epoch}|%{version}-%{release}\n";
        let words = ["repoquery", "--available", "--showduplicates", "--queryformat", format, "--", name];
        let ran = self.question(&["-q"], &words)?;
        if ran.succeeded() { Ok(ran.out) } else { Err(said::failed(DNF, &ran)) }
    }

    /// The architectures in which the sources have this version of it.
    fn architectures(&self, name: &str, version: &str) -> Result<BTreeSet<String>, Trouble> {
        let out = self.offered(name)?;
        let offers = out.lines().filter_map(|line| said::offered(name, line));
        Ok(offers.filter(|(_, offered)| offered == version).map(|(of, _)| of.to_owned()).collect())
    }

    /// Where nothing may be left on the machine the answer is by what was read before.
    fn question(&self, options: &[&str], words: &[&str]) -> Result<Ran, Trouble> {
        let aside = self.tools.only_looks().then(|| Aside::make(self.tools)).transpose()?;
        let leaves_nothing = aside.as_ref().map(Aside::options);
        let leaves_nothing = leaves_nothing.iter().flatten().map(String::as_str);
        let always = [NO_WAITING, NO_NEW_KEY];
        let options = always.iter().chain(options).copied().chain(leaves_nothing);
        let arguments: Vec<&str> = options.chain(words.iter().copied()).collect();
        self.programs.run(DNF, &arguments, TRANSACTION).map_err(not_run)
    }
}

/// The words of a transaction, names after `--`.
fn transaction(wanted: &Wanted, names: &[String], erasing: bool) -> Vec<String> {
    let mut words: Vec<String> = if wanted.install.is_empty() {
        vec!["remove".to_owned(), "--".to_owned()]
    } else if erasing {
        ["install", "--allowerasing", "--"].map(str::to_owned).to_vec()
    } else {
        vec!["install".to_owned(), "--".to_owned()]
    };
    words.extend(names.iter().cloned());
    words
}

fn may_erase(wanted: &Wanted) -> bool {
    !(wanted.remove.is_empty() && wanted.may_go.is_empty())
}

impl Hand for Dnf<'_> {
    fn database(&self) -> Result<Arc<Packages>, Trouble> {
        let locked = versionlock::read(self.tools)?;
        rpm::read(self.tools, &|name| locked.holds(name))
    }

    fn free(&self) -> Result<(), Trouble> {
        if self.tools.at(IMAGE).exists() {
            let reason = "this system comes as an image, and packages cannot be installed in place; have them in the image";
            return Err(Trouble::refused("image_based", reason));
        }
        if let Some((note, pid)) =
            NOTES.iter().find_map(|note| lock::noted(self.tools, note).map(|pid| (note, pid)))
        {
            return Err(lock::held(note, pid));
        }
        let place = rpm::place(self.tools).map(|place| format!("{place}/.rpm.lock"));
        match place.and_then(|place| lock::holder(self.tools, &place).map(|pid| (place, pid))) {
            Some((place, pid)) => Err(lock::held(&place, pid)),
            None => Ok(()),
        }
    }

    /// What an earlier transaction left there twice does not stop another, and each package says it itself.
    fn whole(&self, _: &Packages, _: Terms<'_>) -> Result<(), Trouble> {
        Ok(())
    }

    /// dnf installs or removes: what is to come makes room for itself, and what is still there goes afterwards.
    fn parts(&self, wanted: Wanted) -> Vec<Wanted> {
        let remove =
            Wanted { remove: wanted.remove.clone(), may_go: wanted.may_go.clone(), ..Wanted::default() };
        let may_go = wanted.may_go.union(&wanted.remove).cloned().collect();
        let install = Wanted { remove: BTreeSet::new(), may_go, ..wanted };
        [install, remove].into_iter().filter(|part| !part.is_empty()).collect()
    }

    fn simulate(&self, wanted: &Wanted, now: &Packages, _: Option<&Proven>) -> Result<Simulated, Trouble> {
        let Spelled { names, left_behind } = several::spell(wanted, now, |n, v| self.architectures(n, v))?;
        let erasing = may_erase(wanted);
        let mut ran = self.ask(wanted, &names, erasing)?;
        // What would have to go for it is named by the judge.
        if !erasing && said::needs_room(&ran) {
            ran = self.ask(wanted, &names, true)?;
        }
        let mut simulated = said::simulation(&ran, now).ok_or_else(|| said::failed(DNF, &ran))?;
        simulated.remove.extend(left_behind);
        *self.simulated.borrow_mut() = Some((wanted.clone(), names));
        Ok(simulated)
    }

    fn update(&self) -> Result<(), Trouble> {
        let options = ["-q", NO_WAITING, NO_NEW_KEY].into_iter().chain(EVERY_SOURCE);
        let arguments: Vec<&str> = options.chain(["makecache", "--refresh"]).collect();
        let ran = self.programs.run(DNF, &arguments, TRANSACTION).map_err(not_run)?;
        if ran.succeeded() { Ok(()) } else { Err(said::failed(DNF, &ran)) }
    }

    fn versions(&self, name: &str) -> Result<Vec<String>, Trouble> {
        let out = self.offered(name)?;
        let offers = out.lines().filter_map(|line| said::offered(name, line));
        let mut versions: Vec<String> = offers.map(|(_, version)| version).collect();
        versions.sort_by(|a, b| compare(b, a, Rules::Rpm));
        versions.dedup();
        Ok(versions)
    }

    fn providers(&self, name: &str) -> Vec<String> {
        let provides = format!("--whatprovides={name}");
        let words = ["repoquery", "--available", "--queryformat", "%{name}\n", &provides];
        let ran = self.question(&["-q"], &words).ok().filter(Ran::succeeded);
        ran.map_or_else(Vec::new, |ran| said::providers(name, &ran.out))
    }

    /// It takes `1.0-1` for any epoch, and which one is meant is chosen here.
    fn takes_versions_as_declared(&self) -> bool {
        false
    }

    fn command(&self, wanted: &Wanted, touched: &Begun, _: Option<&Proven>) -> Vec<String> {
        let signed = if touched.contains_key(OWN_PACKAGE) { &SIGNED[..] } else { &[] };
        let options =
            [DNF, "-y", SAYS_THE_END, NO_WAITING, ALONE, NO_NEW_KEY].into_iter().chain(AS_SIMULATED);
        let simulated = self.simulated.borrow();
        let names = simulated.as_ref().filter(|(of, _)| of == wanted).map_or(&[][..], |(_, names)| names);
        options
            .chain(signed.iter().copied())
            .map(str::to_owned)
            .chain(transaction(wanted, names, may_erase(wanted)))
            .collect()
    }

    fn failed(&self, program: &str, ran: &Ran) -> Trouble {
        said::failed(program, ran)
    }

    /// It says when it is done; a failure of its own has a status of its own. systemd calls it a success to be ended by
    /// SIGTERM.
    fn is_cut_short(&self, _: &[String], _: &Begun, ran: &Ran) -> Result<bool, Trouble> {
        Ok(match ran.status {
            Some(0) => !said::is_complete(ran),
            Some(1 | 3 | 200) => false,
            Some(_) | None => true,
        })
    }

    fn remarks(&self, ran: &Ran, touched: &Begun) -> Remarks {
        said::remarks(ran, touched)
    }

    fn of_the_hosts_files(&self, names: &[&str]) -> Result<Option<String>, String> {
        rpm::of_the_hosts_files(self.tools, names)
    }

    fn is_older(&self, a: &str, b: &str) -> bool {
        rpm::is_older(a, b)
    }

    fn takes(&self, wanted: &PackageWanted, version: &str) -> bool {
        rpm::takes(wanted, version)
    }

    fn may_raise(&self) -> bool {
        true
    }

    fn keeps_a_journal(&self) -> bool {
        false
    }

    fn words(&self) -> Words {
        Words {
            unhold: |name| format!("`dnf versionlock delete {name}`"),
            simulate: "`dnf --assumeno install`",
            whose: "`rpm -qf`",
            place: "/var/lib/rpm",
            again: said::again,
        }
    }

    fn unfinished(&self, name: &str, word: &str) -> String {
        format!(
            "rpm began with {name} and did not finish: it is {word}; run `dnf remove --duplicates` on the machine and \
             look at what it says"
        )
    }
}

#[cfg(test)]
mod tests;
