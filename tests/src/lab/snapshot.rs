//! Everything about a machine that its operator could find changed: files (kind, owner, mode, times, names, attributes
//! with access lists, where links lead, content), packages, units, firewall rules of every backend, listeners. Taking it changes nothing; comparing two names each difference.
//! What a machine changes by living (its journal, its counters) is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::machine::Machine;

mod system;
#[cfg(test)]
mod tests;
mod tree;

/// What a thing is called (`file /etc/hosts`, `unit ssh.service`) → what is known about it.
pub(super) type Facts = BTreeMap<String, BTreeMap<&'static str, String>>;

/// A machine at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    facts: Facts,
}

/// What two snapshots do not share; nothing when it is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    lines: Vec<String>,
}

impl Snapshot {
    pub(super) fn take(machine: &Machine) -> Self {
        let mut facts = Facts::new();
        tree::read(&machine.root_seen_from_outside(), &mut facts);
        system::read(machine, &mut facts);
        Self { facts }
    }

    /// Without the things whose name begins so, e.g. `file /var/lib/tenure-host`, and without the times at which such
    /// came and went in the folders they lie in.
    #[must_use]
    pub fn without(mut self, beginnings: &[&str]) -> Self {
        for (folder, _) in beginnings.iter().filter_map(|beginning| beginning.rsplit_once('/')) {
            drop(self.facts.get_mut(folder).and_then(|facts| facts.remove("time")));
        }
        self.facts.retain(|name, _| !beginnings.iter().any(|beginning| name.starts_with(beginning)));
        self
    }

    /// Without the times at which files were touched: whoever sets what is set already touches, and changes nothing.
    #[must_use]
    pub fn but_for_touches(mut self) -> Self {
        for facts in self.facts.values_mut() {
            drop(facts.remove("touched"));
        }
        self
    }

    /// Only the things whose name begins so.
    #[must_use]
    pub fn only(mut self, beginnings: &[&str]) -> Self {
        self.facts.retain(|name, _| beginnings.iter().any(|beginning| name.starts_with(beginning)));
        self
    }

    /// What has changed since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Difference {
        let (mut lines, moved) = (Vec::new(), self.folders_that_say_so(earlier));
        for (name, before) in &earlier.facts {
            match self.facts.get(name) {
                None => lines.push(format!("gone: {name}")),
                Some(after) => match changes(before, after, moved.contains(name.as_str())) {
                    changes if changes.is_empty() => {}
                    changes => lines.push(format!("changed: {name}: {changes}")),
                },
            }
        }
        lines.extend(
            self.facts
                .keys()
                .filter(|name| !earlier.facts.contains_key(*name))
                .map(|name| format!("new: {name}")),
        );
        Difference { lines }
    }

    /// Folders in which something is new or gone: that is named, and their time says nothing more.
    fn folders_that_say_so<'a>(&'a self, earlier: &'a Self) -> BTreeSet<&'a str> {
        let lacks = |one: &Self, name: &String| !one.facts.contains_key(name);
        let new = self.facts.keys().filter(|name| lacks(earlier, name));
        let gone = earlier.facts.keys().filter(|name| lacks(self, name));
        new.chain(gone).filter_map(|name| name.rsplit_once('/')).map(|(folder, _)| folder).collect()
    }

    /// Panics, naming each difference, unless nothing has changed since `earlier`.
    #[track_caller]
    pub fn assert_unchanged_since(&self, earlier: &Self) {
        let difference = self.since(earlier);
        assert!(difference.is_empty(), "the machine has changed:\n{difference}");
    }
}

impl Difference {
    /// Whether nothing has changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// One line a thing, longer only where rules differ: `gone: …`, `new: …`, `changed: …`.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.lines
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}

/// What differs of one thing. `moved`: it is a folder of which it is said what came and went in it.
fn changes(
    before: &BTreeMap<&'static str, String>,
    after: &BTreeMap<&'static str, String>,
    moved: bool,
) -> String {
    let absent = String::from("none");
    let mut names: Vec<_> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    // The time of a folder that was left out of one of them says nothing.
    let is_left_out = |name: &str| {
        let is_folder =
            |facts: &BTreeMap<_, String>| facts.get("kind").is_some_and(|kind| kind == "directory");
        let is_there = |facts: &BTreeMap<_, String>| facts.contains_key(name);
        let is_one = name == "time" && is_folder(before) && is_folder(after);
        is_one && (moved || is_there(before) != is_there(after))
    };
    let changed = names.into_iter().filter(|name| !is_left_out(name)).filter_map(|name| {
        let (old, new) = (before.get(name).unwrap_or(&absent), after.get(name).unwrap_or(&absent));
        (old != new).then(|| {
            if old.contains('\n') || new.contains('\n') {
                by_line(name, old, new)
            } else {
                format!("{name} {old} → {new}")
            }
        })
    });
    changed.collect::<Vec<_>>().join(", ")
}

fn by_line(name: &str, old: &str, new: &str) -> String {
    let text = similar::TextDiff::from_lines(old, new).unified_diff().context_radius(2).to_string();
    format!("{name}\n{text}")
}
