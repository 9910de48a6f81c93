//! Packages of the machine's package manager. What is installed is read from its database; what came of a transaction
//! is read there again, whatever the program that ran it said. Called by [`super::Site`] and the package lane of a pass.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tenure_protocol::resource::{PackageSpec, PackageWanted};
use tenure_protocol::text::shown;

use super::remark::Remarks;
use super::{Seen, Tools, Trouble};
use crate::ground::own::OWN_PACKAGE;

mod apart;
mod apt;
mod beside;
mod database;
mod debian;
mod dnf;
mod dpkg;
mod evr;
mod failing;
mod finish;
mod foresee;
mod hand;
mod journal;
mod lock;
mod meaning;
mod owner;
mod pacman;
mod proven;
mod rpm;
mod transact;
mod transaction;
mod version;

pub(crate) use apart::{CUT_SHORT, STILL_RUNNING, is_open, passes};
pub(super) use dpkg::Packages;
pub(crate) use failing::{fails_still, was_cut_short};
pub(crate) use foresee::{Moves, foresee};
pub(crate) use journal::{Begun, Journal, Noted, Unwritten};
pub(crate) use transact::{Request, Terms, transact};

use apt::Apt;
use dpkg::{Package, PackageState};
use hand::Hand;

/// What is declared of packages, by name.
pub(crate) type Declared<'a> = HashMap<&'a str, &'a PackageWanted>;
/// Names of packages.
pub(crate) type Names<'a> = BTreeSet<&'a str>;

/// The code of a package that dpkg began with and did not finish.
pub(crate) const UNFINISHED: &str = "package_unfinished";

/// Whether it says that dpkg is half-way, with this package or with another.
pub(crate) fn is_unfinished(code: &str) -> bool {
    code == UNFINISHED || code == lock::INTERRUPTED
}

/// What was read of the packages of this machine.
pub(super) struct Reading {
    packages: Result<Arc<Packages>, Trouble>,
    /// Who was known to be at work with none before it was read.
    at_rest: AtRest,
    /// The transaction of ours that was found to run since: it is taken to run for as long as this reading counts.
    at_work: Option<Trouble>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum AtRest {
    /// Nobody was asked after.
    Nobody,
    /// The host, in a transaction of an earlier life.
    Ours,
    /// Whoever could be.
    Everybody,
}

impl Tools<'_> {
    /// What is installed, as it was when it was first asked for.
    fn packages(&self) -> Result<Arc<Packages>, Trouble> {
        self.programs()?;
        let read = || Reading {
            packages: self.package_manager().and_then(|manager| manager.database()),
            at_rest: AtRest::Nobody,
            at_work: None,
        };
        self.packages_seen().get_or_insert_with(read).packages.clone()
    }

    /// The same, read after these were at rest; the error says who is at work. What was read before may be what they were
    /// half-way with.
    fn packages_at_rest(&self, who: AtRest) -> Result<Arc<Packages>, Trouble> {
        let mut seen = self.packages_seen();
        match seen.as_mut() {
            Some(reading) if reading.at_rest >= who => return reading.packages.clone(),
            Some(Reading { at_work: Some(trouble), .. }) => return Err(trouble.clone()),
            Some(reading) => {
                reading.at_work = self.at_work()?;
                reading.at_work.clone().map_or(Ok(()), Err)?;
            }
            None => self.at_work()?.map_or(Ok(()), Err)?,
        }
        let manager = self.package_manager()?;
        if who == AtRest::Everybody {
            manager.free()?;
        }
        seen.insert(Reading { packages: manager.database(), at_rest: who, at_work: None }).packages.clone()
    }

    /// Whether the packages of this machine are dpkg's.
    fn is_dpkg(&self) -> Result<bool, Trouble> {
        Ok(self.package_manager()?.keeps_a_journal())
    }

    fn apt(&self) -> Result<Apt<'_>, Trouble> {
        Ok(Apt { programs: self.programs()?, keeps_cache: !self.only_looks() })
    }

    /// A transaction of an earlier life of the host that still runs, as what it makes of packages.
    fn at_work(&self) -> Result<Option<Trouble>, Trouble> {
        if !self.has_service_manager() {
            return Ok(None);
        }
        let running = self.apt()?.running()?;
        Ok(running.map(|unit| apart::still_running(&unit)))
    }

    /// Somebody may have installed or removed something: the next look reads anew.
    pub(crate) fn packages_moved(&self) {
        *self.packages_seen() = None;
    }
}

/// What is there of a package.
pub(super) fn observe(tools: &Tools<'_>, spec: &PackageSpec) -> Result<Seen, Trouble> {
    let mut packages = tools.packages()?;
    if spec.name.as_str() == OWN_PACKAGE && spec.wanted == PackageWanted::Absent {
        let reason = "this is the package of the host itself, which it raises and never removes; stop declaring it, \
            and remove it by hand when the machine is no node any more";
        return Err(Trouble::refused("own_package", reason));
    }
    let manager = tools.package_manager()?;
    // One that is not there may be brought just now, and one that is there may wait for its script.
    let is_begun =
        || Ok::<_, Trouble>(tools.begun()?.is_some_and(|begun| begun.contains_key(spec.name.as_str())));
    if pick(&packages, manager.as_ref(), spec).is_some_and(is_broken) {
        // Whoever is at work now may just be half-way with it.
        packages = tools.packages_at_rest(AtRest::Everybody)?;
    } else if is_begun()? {
        packages = tools.packages_at_rest(AtRest::Ours)?;
    }
    let package = pick(&packages, manager.as_ref(), spec);
    let unfinished = package.filter(|package| is_broken(package));
    Ok(Seen::Package {
        version: package.filter(|one| one.state != PackageState::Gone).map(|one| one.version.to_string()),
        unfinished: unfinished.map(|package| package.word.to_string()),
        hold: package.is_some_and(|package| package.hold),
        brought: package.and_then(|package| package.brought),
    })
}

/// The one that is meant.
fn pick<'p>(packages: &'p Packages, manager: &dyn Hand, spec: &'p PackageSpec) -> Option<&'p Package> {
    let named = spec.name.as_str();
    // What is to be gone is to be gone in every architecture.
    let elsewhere = || packages.here(named).next().map(|(_, package)| package);
    match &spec.wanted {
        PackageWanted::Absent => {
            packages.get(named).filter(|one| one.state != PackageState::Gone).or_else(elsewhere)
        }
        wanted => packages.pick(named, |version| manager.takes(wanted, version)),
    }
}

fn is_broken(package: &Package) -> bool {
    package.state == PackageState::Broken
}

/// What lies beside the configuration of a package that was kept, in words, where its manager leaves it to be looked for.
pub(crate) fn note(tools: &Tools<'_>, name: &str) -> Option<String> {
    if !tools.is_dpkg().is_ok_and(|is| is) {
        return None;
    }
    let beside = beside::new_versions(tools, name);
    (!beside.is_empty()).then(|| {
        format!(
            "its configuration was kept as it was; what the new version brings lies beside it: {}",
            shown(&beside.join(", "), 300)
        )
    })
}

/// In what a package differs from what is declared.
pub(super) fn differences(
    tools: &Tools<'_>,
    spec: &PackageSpec,
    seen: &Seen,
) -> Result<Vec<String>, Trouble> {
    let Seen::Package { version, unfinished, hold, .. } = seen else {
        return Err(Trouble::failed("changed_meanwhile", "there is nothing of this kind to look at"));
    };
    let PackageSpec { name, wanted } = spec;
    let manager = tools.package_manager()?;
    if let Some(word) = unfinished {
        return Err(Trouble::failed(UNFINISHED, manager.unfinished(name.as_str(), word)));
    }
    let differs = match (version, wanted) {
        (None, PackageWanted::Absent) => return Ok(Vec::new()),
        (Some(version), PackageWanted::Absent) => format!("it is installed, at {version}"),
        (None, PackageWanted::Present) => "it is not installed".to_owned(),
        (None, wanted) => format!("it is not installed, declared {wanted}"),
        (Some(version), wanted) if manager.takes(wanted, version) => return Ok(Vec::new()),
        (Some(version), wanted) => format!("its version is {version}, declared {wanted}"),
    };
    if let Some(version) = version.as_deref().filter(|_| *hold) {
        let unhold = (manager.words().unhold)(name.as_str());
        let reason = format!(
            "held by the operator at {version}: {differs}; it stays so, and {unhold} on the machine lets it be changed"
        );
        return Err(Trouble::refused("package_on_hold", reason));
    }
    Ok(vec![differs])
}
