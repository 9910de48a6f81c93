//! Packages that are installed in several architectures. dnf takes a name for the machine's own when it brings one and for
//! all of them when it removes one; and rpm, when one is brought, takes away the others that stay behind, whatever dnf
//! said it would do. So each is spelled out with its architecture, and what would stay behind is told as what would go.

use std::collections::BTreeSet;

use super::super::transaction::Wanted;
use super::super::{Packages, Trouble};

/// A transaction, as dnf is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spelled {
    /// What stands behind the two dashes.
    pub(super) names: Vec<String>,
    /// What rpm would take away without being told, as each is called.
    pub(super) left_behind: BTreeSet<String>,
}

/// Spells a transaction out, one that only installs or only removes. `offered`: the architectures in which the sources
/// have this version of a package; asked of those alone that are there in several.
pub(super) fn spell(
    wanted: &Wanted,
    now: &Packages,
    offered: impl Fn(&str, &str) -> Result<BTreeSet<String>, Trouble>,
) -> Result<Spelled, Trouble> {
    let mut spelled = Spelled { names: Vec::new(), left_behind: BTreeSet::new() };
    for (name, version) in &wanted.install {
        let Some(version) = version else {
            spelled.names.push(name.clone());
            continue;
        };
        let plain = format!("{name}-{version}");
        let there: BTreeSet<&str> = now.here(name).map(|(_, one)| &*one.architecture).collect();
        let is_so =
            |of: &str| now.here(name).any(|(_, one)| &*one.architecture == of && *one.version == **version);
        let open: Vec<&str> = there.iter().copied().filter(|of| !is_so(of)).collect();
        let offered =
            if there.len() < 2 || open.is_empty() { BTreeSet::new() } else { offered(name, version)? };
        let (brought, left): (Vec<&str>, Vec<&str>) = open.into_iter().partition(|of| offered.contains(*of));
        // One for all of them, or none: dnf says itself what comes of it.
        if brought.is_empty() {
            spelled.names.push(plain);
            continue;
        }
        spelled.names.extend(brought.iter().map(|of| format!("{plain}.{of}")));
        spelled.left_behind.extend(left.iter().map(|of| now.named(name, of)));
    }
    if wanted.install.is_empty() {
        spelled.names.extend(wanted.remove.iter().map(|name| alone(name, wanted, now)));
    }
    Ok(spelled)
}

/// The one that a name means, where another of that name stays.
fn alone(name: &str, wanted: &Wanted, now: &Packages) -> String {
    let stays = now.here(name).any(|(called, _)| !wanted.remove.contains(&called));
    match now.get(name).filter(|_| stays) {
        Some(meant) => format!("{name}.{}", meant.architecture),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::dpkg::Package;
    use super::*;

    fn there(all: &[(&str, &str)]) -> Packages {
        let one = |(name, of): &(&str, &str)| {
            ((*name).to_owned(), Package::installed("1.0-1".to_owned(), (*of).to_owned()))
        };
        all.iter().map(one).collect()
    }

    fn install(name: &str, version: Option<&str>) -> Wanted {
        let install = [(name.to_owned(), version.map(str::to_owned))].into();
        Wanted { install, ..Wanted::default() }
    }

    fn spelled(wanted: &Wanted, now: &Packages, offered: &[&str]) -> (Vec<String>, Vec<String>) {
        let offered = |_: &str, _: &str| Ok(offered.iter().map(|of| (*of).to_owned()).collect());
        let Spelled { names, left_behind } = spell(wanted, now, offered).unwrap();
        (names, left_behind.into_iter().collect())
    }

    // rule: H-25
    #[test]
    fn what_is_there_in_two_architectures_is_brought_in_both_and_what_is_not_to_be_had_would_go() {
        let now = there(&[("libz", "x86_64"), ("libz", "i686"), ("only", "i686")]);
        let both = spelled(&install("libz", Some("2.0-1")), &now, &["i686", "x86_64"]);
        assert_eq!(both, (vec!["libz-2.0-1.i686".to_owned(), "libz-2.0-1.x86_64".to_owned()], vec![]));
        let one = spelled(&install("libz", Some("2.0-1")), &now, &["x86_64"]);
        assert_eq!(one, (vec!["libz-2.0-1.x86_64".to_owned()], vec!["libz.i686".to_owned()]));
        // One that is at that version already stays as it is.
        let so = spelled(&install("libz", Some("1.0-1")), &now, &[]);
        assert_eq!(so, (vec!["libz-1.0-1".to_owned()], vec![]));
        for name in ["only", "new"] {
            assert_eq!(spelled(&install(name, Some("2.0-1")), &now, &[]).0, [format!("{name}-2.0-1")]);
            assert_eq!(spelled(&install(name, None), &now, &[]).0, [name]);
        }
    }

    // rule: H-24
    #[test]
    fn of_two_architectures_only_what_is_meant_is_removed() {
        let now = there(&[("libz", "x86_64"), ("libz", "i686"), ("only", "i686")]);
        let remove = |names: &[&str]| {
            let remove = names.iter().map(|name| (*name).to_owned()).collect();
            spelled(&Wanted { remove, ..Wanted::default() }, &now, &[]).0
        };
        assert_eq!(remove(&["libz", "only"]), ["libz.x86_64", "only"]);
        assert_eq!(remove(&["libz", "libz.i686"]), ["libz", "libz.i686"]);
    }
}
