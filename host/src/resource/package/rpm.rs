//! What rpm's database says is installed. Its form has changed from release to release, so rpm itself reads it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenure_protocol::refusal::chain;
use tenure_protocol::resource::PackageWanted;

use super::apt::QUESTION;
use super::dpkg::{Package, PackageState};
use super::evr::{self, Rules, compare};
use super::{Packages, Tools, Trouble, meaning};
use crate::ground::own::is_part_of_the_host;
use crate::program::{ProgramError, Ran};

/// Where distributions of rpm keep its database, in each of its forms.
const DATABASES: [&str; 6] = [
    "/var/lib/rpm/rpmdb.sqlite",
    "/var/lib/rpm/Packages",
    "/var/lib/rpm/Packages.db",
    "/usr/lib/sysimage/rpm/rpmdb.sqlite",
    "/usr/lib/sysimage/rpm/Packages",
    "/usr/lib/sysimage/rpm/Packages.db",
];

/// Whether it has packages. rpm is not asked where there is none: a machine of dpkg's may have its programs.
pub(super) fn holds_packages(tools: &Tools<'_>) -> Result<bool, Trouble> {
    if !DATABASES.iter().any(|database| tools.at(database).exists()) {
        return Ok(false);
    }
    match tools.programs()?.run("rpm", &QUERY, QUESTION) {
        Ok(ran) if ran.succeeded() => Ok(installed(&ran.out).next().is_some()),
        Ok(ran) => Err(unread(&ran)),
        Err(ProgramError::NotThere(_)) => Ok(false),
        Err(error) => Err(Trouble::unknown("could_not_look", chain(&error))),
    }
}

/// What is installed. `locked`: whether somebody has locked the version of a package.
pub(super) fn read(tools: &Tools<'_>, locked: &dyn Fn(&str) -> bool) -> Result<Arc<Packages>, Trouble> {
    let ran = rpm(tools, &QUERY)?;
    let mut by_name: BTreeMap<String, Vec<Package>> = BTreeMap::new();
    for (name, package) in installed(&ran.out) {
        by_name.entry(name).or_default().push(package);
    }
    if by_name.is_empty() {
        return Err(meaning::holds_none("rpm's database", "rpm -qa"));
    }
    for (name, packages) in &mut by_name {
        // The same comes first whenever it is read: a name alone means that one.
        packages.sort_by(|a, b| {
            let newest = compare(&b.version, &a.version, Rules::Rpm);
            newest.then_with(|| b.architecture.cmp(&a.architecture))
        });
        packages.iter_mut().for_each(|package| package.hold = locked(name));
        if let Some(word) = twice(packages).filter(|_| !may_be_there_twice(tools, name)) {
            packages.iter_mut().for_each(|package| {
                (package.state, package.word) = (PackageState::Broken, word.as_str().into());
            });
        }
    }
    let all = by_name.into_iter().flat_map(|(name, all)| all.into_iter().map(move |one| (name.clone(), one)));
    Ok(Arc::new(all.collect()))
}

const QUERY: [&str; 3] =
    ["-qa", "--queryformat", "%{NAME}\\t%{EPOCHNUM}\\t%{VERSION}\\t%{RELEASE}\\t%{ARCH}\\t%{INSTALLTIME}\\n"];

/// Keys that were imported are listed too, and are no packages.
fn installed(text: &str) -> impl Iterator<Item = (String, Package)> {
    text.lines().filter_map(package).filter(|(name, _)| name != "gpg-pubkey")
}

fn package(line: &str) -> Option<(String, Package)> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [name, epoch, version, release, architecture, brought] = fields[..] else { return None };
    let version = spelled(epoch, &format!("{version}-{release}"));
    let whole = Package::installed(version, architecture.to_owned());
    Some((name.to_owned(), Package { brought: brought.parse().ok(), ..whole }))
}

/// As dnf spells it: an epoch of 0 is not written.
pub(super) fn spelled(epoch: &str, rest: &str) -> String {
    if matches!(epoch, "" | "0" | "(none)") { rest.to_owned() } else { format!("{epoch}:{rest}") }
}

/// The two versions of one architecture that an update which was cut short leaves behind.
fn twice(packages: &[Package]) -> Option<String> {
    packages.iter().enumerate().find_map(|(at, one)| {
        let other = packages.iter().skip(at + 1).find(|other| other.architecture == one.architecture)?;
        Some(format!("there twice, at {} and at {}", one.version, other.version))
    })
}

/// Kernels are: whoever brings a new one keeps the old.
fn may_be_there_twice(tools: &Tools<'_>, name: &str) -> bool {
    let provides = || rpm(tools, &["-q", "--provides", "--", name]);
    name.starts_with("kernel")
        || provides().is_ok_and(|ran| {
            ran.out
                .lines()
                .any(|line| line.starts_with("installonlypkg(") || line.starts_with("multiversion("))
        })
}

/// Whether a version is one that is wanted: where the declaration names no epoch, any is meant.
pub(super) fn takes(wanted: &PackageWanted, version: &str) -> bool {
    let (epoch, bare) = version.split_once(':').unwrap_or(("0", version));
    match wanted {
        PackageWanted::Present => true,
        PackageWanted::Absent => false,
        PackageWanted::Exact(exact) => match exact.as_str().split_once(':') {
            None => exact.as_str() == bare,
            Some((declared, rest)) => rest == bare && declared == epoch,
        },
        PackageWanted::Prefix(prefix) => match prefix.as_str().split_once(':') {
            None => bare.starts_with(prefix.as_str()),
            Some((declared, rest)) => bare.starts_with(rest) && declared == epoch,
        },
    }
}

/// Whether the first version is older than the second.
pub(super) fn is_older(a: &str, b: &str) -> bool {
    evr::compare(a, b, Rules::Rpm).is_lt()
}

/// The first of these packages that owns a file of the host's, and the file, in words. One is asked for at a time: the
/// lists of many together would be longer than what is kept of the words of a program.
pub(super) fn of_the_hosts_files(tools: &Tools<'_>, names: &[&str]) -> Result<Option<String>, String> {
    for name in names {
        let ran = rpm(tools, &["-ql", "--", name]).map_err(|trouble| trouble.reason)?;
        if let Some(path) = ran.out.lines().find(|path| is_part_of_the_host(path)) {
            return Ok(Some(format!("{name} has brought {path}")));
        }
    }
    Ok(None)
}

/// The directory of its database, which each distribution sets.
pub(super) fn place(tools: &Tools<'_>) -> Option<String> {
    let ran = rpm(tools, &["--eval", "%_dbpath"]).ok()?;
    let place = ran.out.trim();
    place.starts_with('/').then(|| place.to_owned())
}

fn rpm(tools: &Tools<'_>, arguments: &[&str]) -> Result<Ran, Trouble> {
    match tools.programs()?.run("rpm", arguments, QUESTION) {
        Ok(ran) if ran.succeeded() => Ok(ran),
        Ok(ran) => Err(unread(&ran)),
        Err(error @ ProgramError::NotThere(_)) => {
            let reason = format!("{}, and this machine's packages are rpm's; install it", chain(&error));
            Err(Trouble::refused("no_package_manager", reason))
        }
        Err(error) => Err(Trouble::unknown("could_not_look", chain(&error))),
    }
}

fn unread(ran: &Ran) -> Trouble {
    let reason = format!(
        "rpm's database cannot be read: {}; run `rpm -qa` on the machine and look at what it says, or \
         write `packages = \"apt\"` in /etc/tenure/host.toml where this machine's packages are dpkg's",
        ran.last_words()
    );
    Trouble::unknown("could_not_look", reason)
}

#[cfg(test)]
mod tests;
