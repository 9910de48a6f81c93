//! One package transaction: what a pass wants together, and whether what the package manager would do is just that
//! (H-25, S-14). Pure: the simulation's words come from the adapter.

use std::collections::{BTreeMap, BTreeSet};

use super::Begun;
use super::dpkg::bare;

/// What a pass wants of the package manager, together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// To be installed; with a version where one is chosen.
    pub(super) install: BTreeMap<String, Option<String>>,
    /// To be removed, never purged.
    pub(super) remove: BTreeSet<String>,
    /// Not asked for, and may go all the same: what we brought and is no longer declared.
    pub(super) may_go: BTreeSet<String>,
    /// What is to be installed was begun before and is unpacked anew.
    pub(super) anew: bool,
}

impl Wanted {
    /// Whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        self.install.is_empty() && self.remove.is_empty()
    }
}

/// What a simulation said would be done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Simulated {
    /// Package, with its architecture where that is not the machine's → the version it has now (none: it is new) and the
    /// one it would get.
    pub(super) install: BTreeMap<String, (Option<String>, String)>,
    /// Packages that would go.
    pub(super) remove: BTreeSet<String>,
}

/// Why a transaction is not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TransactionRefusal {
    /// It would remove what nobody declared absent.
    #[error("it would also remove {0}")]
    Removes(String),
    /// It would bring a package to an older version that nobody declared.
    #[error("it would also downgrade {0}")]
    Downgrades(String),
    /// It would change the version of a package on hold.
    #[error("it would also change {0}, which is on hold or kept as found")]
    OnHold(String),
    /// It would bring a declared package to a version that is not the declared one.
    #[error("it would also bring {0} to a version that is not the declared one")]
    Undeclared(String),
    /// It would bring what is installed to a newer version, where all of it is brought together or not at all.
    #[error(
        "it would also upgrade {0}, which nobody declared, and would leave the rest of the machine behind it"
    )]
    Raises(String),
    /// It needs another version of a package on hold.
    #[error("it needs another version of {0}, which is on hold or kept as found")]
    NeedsHeld(String),
    /// It would not do what was asked.
    #[error("it would not {0}")]
    Leaves(String),
    /// It would remove the host itself.
    #[error("it would remove the host itself ({0})")]
    Host(String),
    /// It would remove or replace files of the host itself, which a package has brought.
    #[error("it would remove or replace files of the host itself ({0})")]
    HostFiles(String),
    /// Whether it would remove or replace files of the host itself cannot be known.
    #[error("whether it would remove or replace files of the host itself cannot be seen ({0})")]
    UnreadFiles(String),
    /// It would bring the host to an older version, which nobody named exactly.
    #[error("it would bring the host to the older version {0}, which is not declared exactly")]
    OlderHost(String),
}

impl Simulated {
    /// What it would bring of a name: of the machine's architecture, or of another where apt has no such.
    pub(super) fn brought(&self, name: &str) -> Option<&(Option<String>, String)> {
        let elsewhere =
            || self.install.iter().find(|(called, _)| bare(called) == name).map(|(_, versions)| versions);
        self.install.get(name).or_else(elsewhere)
    }

    /// Every package it touches, with the version it would get; none: it would go.
    pub(super) fn touched(&self) -> Begun {
        let brought = self.install.iter().map(|(name, (_, new))| (name.clone(), Some(new.clone())));
        self.remove.iter().map(|name| (name.clone(), None)).chain(brought).collect()
    }
}

/// Reads what `apt-get -s` prints: `Inst name [old] (new …)`, `Remv name [old]`, `Purg name`, `Conf …`.
pub(super) fn read_simulation(text: &str) -> Simulated {
    let mut simulated = Simulated::default();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(verb), Some(name)) = (words.next(), words.next()) else { continue };
        let name = name.to_owned();
        let rest: Vec<&str> = words.collect();
        match verb {
            "Inst" => {
                let old = rest
                    .first()
                    .and_then(|word| word.strip_prefix('['))
                    .map(|word| word.trim_end_matches(']').to_owned());
                let new = rest.iter().find_map(|word| word.strip_prefix('(')).unwrap_or_default();
                simulated.install.insert(name, (old, new.trim_end_matches(')').to_owned()));
            }
            "Remv" | "Purg" => {
                simulated.remove.insert(name);
            }
            _ => {}
        }
    }
    simulated
}

/// What a simulation is judged by.
pub(super) struct Rules<'a> {
    /// Whether somebody put a package on hold.
    pub(super) held: &'a dyn Fn(&str) -> bool,
    /// Whether a package is declared otherwise than at this version.
    pub(super) contradicts: &'a dyn Fn(&str, &str) -> bool,
    /// Whether the first version is older than the second.
    pub(super) is_older: &'a dyn Fn(&str, &str) -> bool,
    /// Whether what is needed may be brought to a newer version though nobody declared it.
    pub(super) may_raise: bool,
    /// The host's own package.
    pub(super) host: &'a str,
    /// Whether the host's version is declared exactly.
    pub(super) host_is_exact: bool,
}

/// Whether a simulated transaction may be run: it does all that is wanted, removes nothing but that, downgrades
/// nothing but that, and leaves what is on hold as it is. New dependencies and newer versions of them are its business.
pub(super) fn judge(
    wanted: &Wanted,
    simulated: &Simulated,
    rules: &Rules<'_>,
) -> Result<(), TransactionRefusal> {
    host(simulated, rules)?;
    let may_go = |name: &&String| wanted.remove.contains(*name) || wanted.may_go.contains(*name);
    refuse(simulated.remove.iter().filter(|name| !may_go(name)), TransactionRefusal::Removes)?;
    // What is of several architectures is of one version.
    let undeclared = || simulated.install.iter().filter(|(name, _)| !wanted.install.contains_key(bare(name)));
    let lowers =
        |(old, new): &(Option<String>, String)| old.as_deref().is_some_and(|old| (rules.is_older)(new, old));
    let lowered = undeclared().filter(|(_, versions)| lowers(versions)).map(|(name, _)| name);
    refuse(lowered, TransactionRefusal::Downgrades)?;
    let unheld = undeclared().filter(|(name, (old, _))| old.is_some() && (rules.held)(name));
    refuse(unheld.map(|(name, _)| name), TransactionRefusal::OnHold)?;
    let raises = |(old, new): &(Option<String>, String)| old.as_ref().is_some_and(|old| old != new);
    let raised =
        undeclared().filter(|(_, versions)| !rules.may_raise && raises(versions)).map(|(name, _)| name);
    refuse(raised, TransactionRefusal::Raises)?;
    let otherwise = undeclared().filter(|(name, (_, new))| (rules.contradicts)(bare(name), new));
    refuse(otherwise.map(|(name, _)| name), TransactionRefusal::Undeclared)?;
    let left = wanted.remove.difference(&simulated.remove).map(|name| format!("remove {name}"));
    let missed =
        wanted.install.iter().filter_map(|(name, version)| match (simulated.brought(name), version) {
            (None, _) => Some(format!("install {name}")),
            (Some((_, new)), Some(version)) if new != version => {
                Some(format!("install {name} at {version} but at {new}"))
            }
            (Some(_), _) => None,
        });
    let left: Vec<String> = left.chain(missed).collect();
    if left.is_empty() { Ok(()) } else { Err(TransactionRefusal::Leaves(left.join(", "))) }
}

/// The host may be raised, never removed, and lowered only to a version that is named exactly (H-02).
fn host(simulated: &Simulated, rules: &Rules<'_>) -> Result<(), TransactionRefusal> {
    if simulated.remove.contains(rules.host) {
        return Err(TransactionRefusal::Host(rules.host.to_owned()));
    }
    match simulated.brought(rules.host) {
        Some((Some(old), new)) if (rules.is_older)(new, old) && !rules.host_is_exact => {
            Err(TransactionRefusal::OlderHost(new.clone()))
        }
        Some(_) | None => Ok(()),
    }
}

fn refuse<'a>(
    names: impl Iterator<Item = &'a String>,
    why: fn(String) -> TransactionRefusal,
) -> Result<(), TransactionRefusal> {
    let names: Vec<&str> = names.map(String::as_str).collect();
    if names.is_empty() { Ok(()) } else { Err(why(names.join(", "))) }
}

#[cfg(test)]
mod tests;
