//! Packages that are there and of which a script failed: rpm and pacman go on over that and do not note it (O-13). What
//! was said of it stays true until somebody has brought the package anew.

use std::collections::BTreeMap;

use tenure_protocol::id::Millis;

use super::Tools;
use crate::resource::Remark;
use crate::resource::remark::Kind;

/// What is told of a package that is there though the transaction that brought it did not come to its end. dpkg notes
/// itself what it has begun, and is told to finish that.
pub(crate) fn was_cut_short(tools: &Tools<'_>, name: &str) -> Option<Remark> {
    let manager = tools.package_manager().ok().filter(|manager| !manager.keeps_a_journal())?;
    let again = (manager.words().again)(name);
    let reason = format!(
        "the transaction that brought it was cut short, so a script of it may not have come to its end; {again} runs it again"
    );
    Some(Remark { kind: Kind::ScriptFailed, reason })
}

/// Whether one of the packages that `reason` says to bring anew is still the one that was there at that time. So it is
/// too where nobody can look.
pub(crate) fn fails_still(tools: &Tools<'_>, reason: &str, at: Millis) -> bool {
    let (Ok(packages), Ok(manager)) = (tools.packages(), tools.package_manager()) else { return true };
    let again = manager.words().again;
    let meant = packages.all().filter(|(name, _)| reason.contains(&again(name)));
    is_one_the_same(meant.map(|(name, one)| (name, one.brought)), at)
}

/// Whether nothing of one of these names was brought since. What is there more than once, such as a kernel or one of two
/// architectures, was brought anew with the newest: the older ones stay as they are for ever.
fn is_one_the_same<'p>(all: impl Iterator<Item = (&'p str, Option<i64>)>, at: Millis) -> bool {
    let mut newest: BTreeMap<&str, Option<i64>> = BTreeMap::new();
    for (name, brought) in all {
        let known = newest.entry(name).or_default();
        *known = brought.max(*known);
    }
    // A second is as exact as their databases are.
    newest.values().any(|brought| brought.is_none_or(|brought| brought.saturating_mul(1000) <= at.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    // case: O-13
    #[test]
    fn a_script_that_failed_is_told_until_the_newest_of_that_name_was_brought_later() {
        let still =
            |all: &[(&'static str, Option<i64>)]| is_one_the_same(all.iter().copied(), Millis(10_500));
        assert!(still(&[("kernel", Some(3)), ("kernel", Some(10))]));
        assert!(!still(&[("kernel", Some(3)), ("kernel", Some(11))]), "a newer kernel lies beside the old");
        assert!(!still(&[("library", Some(11)), ("library", Some(10))]), "one of two architectures");
        assert!(still(&[("kernel", Some(11)), ("library", Some(10))]), "the other of two that failed");
        assert!(still(&[("unread", None)]), "nobody can look");
        assert!(!still(&[]), "it is gone");
    }
}
