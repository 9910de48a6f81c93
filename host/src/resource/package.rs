//! Packages of the machine's package manager. What is installed is read from its database; what came of a transaction
//! is read there again, whatever the program that ran it said. Called by [`super::Site`] and the package lane of a pass.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tenure_protocol::resource::{PackageSpec, PackageWanted};

use super::{Seen, Tools, Trouble};
use crate::ground::own::OWN_PACKAGE;

mod apart;
mod apt;
mod database;
mod dpkg;
mod finish;
mod journal;
mod lock;
mod owner;
mod transact;
mod transaction;
mod version;

pub(crate) use apart::{STILL_RUNNING, is_open};
pub(super) use dpkg::Packages;
pub(crate) use journal::{Begun, Journal, Unwritten};
pub(crate) use transact::{Request, Terms, transact};

use apt::Apt;
use dpkg::PackageState;

/// What is declared of packages, by name.
pub(crate) type Declared<'a> = HashMap<&'a str, &'a PackageWanted>;
/// Names of packages.
pub(crate) type Names<'a> = BTreeSet<&'a str>;

/// The code of a package that dpkg began with and did not finish.
pub(crate) const UNFINISHED: &str = "package_unfinished";

impl Tools<'_> {
    /// What is installed, as it was when it was first asked for.
    fn packages(&self) -> Result<Arc<Packages>, Trouble> {
        self.programs()?;
        self.packages_seen().get_or_insert_with(|| database::read(self)).clone()
    }

    /// A transaction of an earlier life of the host that still runs, as what it makes of packages.
    fn at_work(&self) -> Result<Option<Trouble>, Trouble> {
        if !self.has_service_manager() {
            return Ok(None);
        }
        let running = Apt { programs: self.programs()? }.running()?;
        Ok(running.map(|unit| apart::still_running(&unit)))
    }

    /// Somebody may have installed or removed something: the next look reads anew.
    pub(crate) fn packages_moved(&self) {
        *self.packages_seen() = None;
    }
}

/// What is there of a package.
pub(super) fn observe(tools: &Tools<'_>, spec: &PackageSpec) -> Result<Seen, Trouble> {
    let packages = tools.packages()?;
    if spec.name.as_str() == OWN_PACKAGE && spec.wanted == PackageWanted::Absent {
        let reason = "this is the package of the host itself, which it raises and never removes; stop declaring it, \
            and remove it by hand when the machine is no node any more";
        return Err(Trouble::refused("own_package", reason));
    }
    let package = packages.get(spec.name.as_str());
    let unfinished = package.filter(|package| package.state == PackageState::Broken);
    if unfinished.is_some()
        && let Some(trouble) = tools.at_work()?
    {
        return Err(trouble);
    }
    Ok(Seen::Package {
        version: package.filter(|one| one.state != PackageState::Gone).map(|one| one.version.clone()),
        unfinished: unfinished.map(|package| package.word.clone()),
        hold: package.is_some_and(|package| package.hold),
    })
}

/// In what a package differs from what is declared.
pub(super) fn differences(spec: &PackageSpec, seen: &Seen) -> Result<Vec<String>, Trouble> {
    let Seen::Package { version, unfinished, hold } = seen else {
        return Err(Trouble::failed("changed_meanwhile", "there is nothing of this kind to look at"));
    };
    let PackageSpec { name, wanted } = spec;
    if let Some(word) = unfinished {
        // What was being unpacked cannot be configured.
        let half = format!("apt-get install --reinstall {name}");
        let command = if word == "half-installed" { half.as_str() } else { "dpkg --configure -a" };
        let reason = format!(
            "dpkg began with {name} and did not finish: it is {word}; run `{command}` on the machine and look at what \
             it says"
        );
        return Err(Trouble::failed(UNFINISHED, reason));
    }
    let differs = match (version, wanted) {
        (None, PackageWanted::Absent) => return Ok(Vec::new()),
        (Some(version), PackageWanted::Absent) => format!("it is installed, at {version}"),
        (None, PackageWanted::Present) => "it is not installed".to_owned(),
        (None, wanted) => format!("it is not installed, declared {wanted}"),
        (Some(version), wanted) if wanted.takes(version) => return Ok(Vec::new()),
        (Some(version), wanted) => format!("its version is {version}, declared {wanted}"),
    };
    if *hold && version.is_some() {
        let reason =
            format!("{differs}, and somebody put it on hold; `apt-mark unhold {name}` lets it be changed");
        return Err(Trouble::refused("package_on_hold", reason));
    }
    Ok(vec![differs])
}
