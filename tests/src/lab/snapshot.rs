//! Everything about a machine that its operator could find changed: files (kind, owner, mode, time, content), packages,
//! units, firewall rules of every backend, listeners. Taking it changes nothing; comparing two names each difference.
//! What a machine changes by living (its journal, its counters) is left out.

use std::collections::BTreeMap;
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

    /// Without the things whose name begins so, e.g. `file /var/lib/tenure-host`.
    #[must_use]
    pub fn without(mut self, beginnings: &[&str]) -> Self {
        self.facts.retain(|name, _| !beginnings.iter().any(|beginning| name.starts_with(beginning)));
        self
    }

    /// What has changed since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Difference {
        let mut lines = Vec::new();
        for (name, before) in &earlier.facts {
            match self.facts.get(name) {
                None => lines.push(format!("gone: {name}")),
                Some(after) if after != before => {
                    lines.push(format!("changed: {name}: {}", changes(before, after)))
                }
                Some(_) => {}
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

fn changes(before: &BTreeMap<&'static str, String>, after: &BTreeMap<&'static str, String>) -> String {
    let absent = String::from("none");
    let mut names: Vec<_> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let changed = names.into_iter().filter_map(|name| {
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
