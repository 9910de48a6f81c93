//! What `systemctl show` says of units. Pure: reads its words; a unit is asked for by full name, all in one call.

use std::collections::HashMap;

/// The properties that are asked for, in one call for all units.
pub(super) const PROPERTIES: &str = "Id,Names,LoadState,ActiveState,SubState,UnitFileState,NeedDaemonReload,Type,\
    RemainAfterExit,Result,ActiveEnterTimestampMonotonic,InactiveExitTimestampMonotonic,NRestarts,FragmentPath";

/// One unit as the service manager knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Its own name, which differs from the one asked for when that is an alias.
    pub id: String,
    /// All its names.
    pub names: Vec<String>,
    /// Whether it could be read.
    pub load: Load,
    /// Whether it runs.
    pub active: Active,
    /// Whether it starts with the machine.
    pub enabled: Enabled,
    /// Whether it starts with the machine, in systemd's own word.
    pub unit_file: String,
    /// Its file changed since the service manager read it.
    pub needs_reload: bool,
    /// How its last run ended, as in `success` or `exit-code`.
    pub result: String,
    /// It does its work and ends: being inactive after a success is how it should be.
    pub passes: bool,
    /// When it last began to run, in microseconds since boot; zero: never in this boot.
    pub began: u64,
    /// The file it was read from, if it was.
    pub fragment: String,
    /// How often it was restarted by itself.
    pub restarts: u64,
}

impl Shown {
    /// Whether it runs, or has done what it is there for.
    pub fn is_up(&self) -> bool {
        match self.active {
            Active::Active => true,
            Active::Inactive => self.rests() && self.began > 0,
            Active::Failed | Active::Starting | Active::Stopping => false,
        }
    }

    /// Whether it is one that does its work and ends, and nothing says that it ended badly. systemd forgets such a unit,
    /// and with it that it ran.
    pub fn rests(&self) -> bool {
        self.passes && self.active == Active::Inactive && self.result == "success"
    }

    /// Somebody knows that it has done its work, though systemd has forgotten it.
    pub(crate) fn has_run(&mut self) {
        if self.rests() {
            self.began = self.began.max(1);
        }
    }

    /// Whether it starts with the machine, this boot or not.
    pub fn is_enabled(&self) -> bool {
        self.enabled == Enabled::Yes
    }
}

/// Whether the service manager could read a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Load {
    /// It did.
    Loaded,
    /// There is no such unit.
    NotFound,
    /// Somebody forbade it to run.
    Masked,
    /// It is there and cannot be read.
    Bad(String),
}

/// Whether a unit runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Active {
    /// It does.
    Active,
    /// It does not.
    Inactive,
    /// It ended badly.
    Failed,
    /// It is on its way up.
    Starting,
    /// It is on its way down.
    Stopping,
}

/// Whether a unit starts with the machine. There are more answers than two (O-16).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Enabled {
    /// It does.
    Yes,
    /// It does, until the next boot.
    Runtime,
    /// It does not.
    No,
    /// It cannot be asked to: it has no install section, or is made by a program.
    Never(String),
}

/// The words cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("systemctl said nothing of `{0}`")]
pub(super) struct Unsaid(pub(super) String);

/// Reads what was said of `names`, one block a name, in their order.
pub(super) fn read(names: &[&str], text: &str) -> Result<Vec<Shown>, Unsaid> {
    let mut blocks = text.split("\n\n").map(str::trim).filter(|block| !block.is_empty());
    names.iter().map(|name| blocks.next().and_then(shown).ok_or_else(|| Unsaid((*name).to_owned()))).collect()
}

fn shown(block: &str) -> Option<Shown> {
    let fields: HashMap<&str, &str> = block.lines().filter_map(|line| line.split_once('=')).collect();
    let get = |name: &str| fields.get(name).copied().unwrap_or_default();
    let number = |name: &str| get(name).parse().unwrap_or(0);
    let left: u64 = number("InactiveExitTimestampMonotonic");
    let load = match *fields.get("LoadState")? {
        "loaded" => Load::Loaded,
        "not-found" => Load::NotFound,
        "masked" => Load::Masked,
        other => Load::Bad(other.to_owned()),
    };
    let active = match *fields.get("ActiveState")? {
        "active" | "reloading" | "refreshing" => Active::Active,
        "failed" => Active::Failed,
        "activating" => Active::Starting,
        "deactivating" => Active::Stopping,
        _ => Active::Inactive,
    };
    let enabled = match get("UnitFileState") {
        "enabled" => Enabled::Yes,
        "enabled-runtime" | "linked-runtime" => Enabled::Runtime,
        "disabled" | "linked" | "indirect" | "" => Enabled::No,
        other => Enabled::Never(other.to_owned()),
    };
    Some(Shown {
        id: get("Id").to_owned(),
        names: get("Names").split_ascii_whitespace().map(str::to_owned).collect(),
        load,
        active,
        enabled,
        unit_file: get("UnitFileState").to_owned(),
        needs_reload: get("NeedDaemonReload") == "yes",
        result: get("Result").to_owned(),
        passes: get("Type") == "oneshot" && get("RemainAfterExit") != "yes",
        began: if left > 0 { left } else { number("ActiveEnterTimestampMonotonic") },
        fragment: get("FragmentPath").to_owned(),
        restarts: number("NRestarts"),
    })
}

#[cfg(test)]
mod tests;
