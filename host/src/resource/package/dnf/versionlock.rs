//! Whose version an operator has locked, by dnf's plugin (dnf 4) or by dnf itself (dnf 5).

use std::io::ErrorKind;

use super::{Tools, Trouble};

/// Of dnf 4: lines as in `hello-0:2.0-1.*`, written by `dnf versionlock add`.
const LIST: &str = "/etc/dnf/plugins/versionlock.list";
/// Of dnf 5.
const TABLE: &str = "/etc/dnf/versionlock.toml";

/// The names that are locked; one may end in a `*`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Locked(Vec<String>);

impl Locked {
    pub(super) fn holds(&self, name: &str) -> bool {
        self.0.iter().any(|locked| match locked.split_once(['*', '?', '[']) {
            Some((begin, _)) => name.starts_with(begin),
            None => locked == name,
        })
    }
}

/// What is locked on this machine.
pub(super) fn read(tools: &Tools<'_>) -> Result<Locked, Trouble> {
    let mut locked = list(&text(tools, LIST)?);
    let table = text(tools, TABLE)?;
    let of_five = toml::from_str::<Table>(&table).map_err(|error| {
        let reason = format!("{TABLE} cannot be read: {}", error.message());
        Trouble::unknown("could_not_look", reason)
    })?;
    locked.extend(of_five.packages.into_iter().map(|package| package.name));
    Ok(Locked(locked))
}

fn text(tools: &Tools<'_>, path: &str) -> Result<String, Trouble> {
    match std::fs::read(tools.at(path)) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(Trouble::unknown("could_not_look", format!("{path} cannot be read: {error}"))),
    }
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Table {
    packages: Vec<Entry>,
}

#[derive(serde::Deserialize)]
struct Entry {
    name: String,
}

/// A line that begins with `!` forbids one version and locks nothing.
fn list(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with(['#', '!'])).map(name).collect()
}

/// The name that such a line begins with: up to the epoch, else up to what looks like a version.
fn name(line: &str) -> String {
    let before_epoch = line.split_once(':').and_then(|(begin, _)| begin.rsplit_once('-'));
    let before_version = || {
        let dash = line.match_indices('-').map(|(at, _)| at);
        let is_version = |at: &usize| {
            line.get(at + 1..).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '*'))
        };
        dash.clone().find(is_version).and_then(|at| line.get(..at))
    };
    before_epoch.map(|(name, _)| name).or_else(before_version).unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    // case: O-09
    #[test]
    fn a_lock_is_known_by_the_name_of_its_package_alone() {
        let text = "\n# Added lock on Mon Nov 30 09:08:39 2026\nhello-0:2.0-1.*\nlib-2-devel-1:4-5.*\nraw-tool-1.*\nbare\nfam*\n!other-0:1-1.*\n";
        let locked = Locked(list(text));
        for name in ["hello", "lib-2-devel", "raw-tool", "bare", "family"] {
            assert!(locked.holds(name), "{name}");
        }
        for name in ["hello-doc", "lib", "raw", "other"] {
            assert!(!locked.holds(name), "{name}");
        }
    }

    // case: O-09
    #[test]
    fn the_table_of_dnf_5_is_read_by_name() {
        let text = "version = \"1.0\"\n[[packages]]\nname = \"hello\"\ncomment = \"by hand\"\n[[packages.conditions]]\nkey = \"evr\"\ncomparator = \"=\"\nvalue = \"2.0-1\"\n";
        let table: Table = toml::from_str(text).unwrap();
        assert_eq!(table.packages.first().map(|package| package.name.as_str()), Some("hello"));
    }
}
