//! What `systemctl show` says of units. Pure: reads its words; a unit is asked for by full name, all in one call.

use std::collections::HashMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_protocol::resource::UnitName;

use super::mask::Mask;
use crate::ground::own::is_own_unit;

/// The properties that are asked for of each unit.
pub const PROPERTIES: [&str; 28] = [
    "Id",
    "Names",
    "LoadState",
    "ActiveState",
    "SubState",
    "UnitFileState",
    "NeedDaemonReload",
    "Type",
    "RemainAfterExit",
    "Result",
    "ActiveEnterTimestampMonotonic",
    "InactiveExitTimestampMonotonic",
    "InactiveEnterTimestampMonotonic",
    "NRestarts",
    "FragmentPath",
    "SourcePath",
    "CanStart",
    "CanStop",
    "CanReload",
    "TriggeredBy",
    "InvocationID",
    "RequiredBy",
    "RequisiteOf",
    "BoundBy",
    "ConsistsOf",
    "PropagatesStopTo",
    "Conflicts",
    "ConflictedBy",
];

/// Units that go down, or are begun anew, with the one that is asked for.
const GO_WITH_IT: [&str; 5] = ["RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf", "PropagatesStopTo"];
/// Units that go down when that one is started.
const GO_FOR_IT: [&str; 2] = ["Conflicts", "ConflictedBy"];

/// One unit as the service manager knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// Its own name, which differs from the one asked for when that is an alias.
    pub id: String,
    /// All its names.
    pub names: Vec<String>,
    /// Whether it could be read.
    pub load: Load,
    /// Whether it runs.
    pub active: Active,
    /// How it stands, in systemd's words for load, activity and the same in detail.
    pub stands: String,
    /// The id of its run, or of its last one.
    pub run: String,
    /// It is to be started anew by itself, having ended.
    pub again: bool,
    /// Whether it starts with the machine.
    pub enabled: Enabled,
    /// Whether it starts with the machine, in systemd's own word.
    pub unit_file: String,
    /// What a job can do to it by name; its file may leave that to other units.
    pub can: Can,
    /// The units that start it when something happens.
    pub triggered_by: Vec<String>,
    /// What the host's own unit cannot be without: it goes down with this one, or for it.
    pub host: Bound,
    /// Which mask it is that forbids it to run for good.
    pub mask: Option<Mask>,
    /// It is masked, and our record says that we did that.
    pub masked_by_us: bool,
    /// Its file is a link to elsewhere, which goes when it is disabled.
    pub linked: bool,
    /// Its file changed since the service manager read it.
    pub needs_reload: bool,
    /// How its last run ended, as in `success` or `exit-code`.
    pub result: String,
    /// It does its work and ends: being inactive after a success is how it should be.
    pub passes: bool,
    /// When it last began to run, in microseconds since boot; zero: never in this boot.
    pub began: u64,
    /// When it last ended, likewise.
    pub ended: u64,
    /// The file it was read from, if it was.
    pub fragment: String,
    /// The file that a program made it of, if one did.
    pub source: String,
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

    /// The name under which it is acted on: by another one systemd enables nothing.
    pub(crate) fn real_name<'n>(&'n self, name: &'n UnitName) -> &'n str {
        if self.load == Load::Loaded { &self.id } else { name.as_str() }
    }

    /// How long it is masked, if it is.
    pub fn masked(&self) -> Option<Until> {
        match self.load {
            Load::Masked(until) => Some(until),
            Load::Loaded | Load::NotFound | Load::Bad(_) => None,
        }
    }

    /// Whether the mask it wears is the one that our record tells of. One that is another link is somebody else's.
    pub(crate) fn wears(&self, masked: bool, ours: Option<Mask>) -> bool {
        let same = ours.is_none_or(|ours| self.mask == Some(ours));
        masked && self.masked() == Some(Until::Undone) && same
    }

    /// How long its last run lasted, of one that has ended.
    pub(crate) fn lived(&self) -> Option<Duration> {
        let ended = self.ended.checked_sub(self.began).filter(|_| self.began > 0)?;
        Some(Duration::from_micros(ended))
    }

    /// Whether it starts with the machine, this boot or not.
    pub fn is_enabled(&self) -> bool {
        self.enabled == Enabled::Yes
    }
}

/// Whether the service manager could read a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Load {
    /// It did.
    Loaded,
    /// There is no such unit.
    NotFound,
    /// Somebody forbade it to run.
    Masked(Until),
    /// It is there and cannot be read.
    Bad(String),
}

/// How long something holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Until {
    /// For good.
    Undone,
    /// Until the next boot.
    Boot,
}

/// What can be done with a unit by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Can {
    /// It can be started.
    pub start: bool,
    /// It can be stopped.
    pub stop: bool,
    /// It has a way to read its configuration anew while it runs.
    pub reload: bool,
}

/// What becomes of the host's own unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Bound {
    /// It goes down, or is begun anew, where this one is.
    pub with_it: bool,
    /// It goes down where this one is started.
    pub for_it: bool,
}

/// Whether a unit runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Enabled {
    /// It does.
    Yes,
    /// It does, until the next boot.
    Runtime,
    /// It does not.
    No,
    /// It cannot be asked to: systemd's own word says why.
    Never,
}

/// The words cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("systemctl said nothing of `{0}`")]
pub(super) struct Unsaid(pub(super) String);

/// Reads what was said of `names`, one block a name, in their order: of as many as it was said of, and of which it was
/// not.
pub(super) fn read(names: &[&str], text: &str) -> (Vec<Shown>, Option<Unsaid>) {
    let mut blocks = text.split("\n\n").map(str::trim).filter(|block| !block.is_empty());
    let mut all = Vec::with_capacity(names.len());
    for name in names {
        let said = blocks.next().and_then(shown);
        match said.filter(|shown| shown.id == *name || shown.names.iter().any(|known| known == name)) {
            Some(shown) => all.push(shown),
            None => return (all, Some(Unsaid((*name).to_owned()))),
        }
    }
    (all, None)
}

fn shown(block: &str) -> Option<Shown> {
    let fields: HashMap<&str, &str> = block.lines().filter_map(|line| line.split_once('=')).collect();
    let get = |name: &str| fields.get(name).copied().unwrap_or_default();
    let list = |name: &str| get(name).split_ascii_whitespace().map(unquoted).collect();
    let names_host =
        |lists: &[&str]| lists.iter().any(|list| get(list).split_ascii_whitespace().any(is_own_unit));
    let number = |name: &str| get(name).parse().unwrap_or(0);
    let left: u64 = number("InactiveExitTimestampMonotonic");
    let until = if get("UnitFileState") == "masked-runtime" { Until::Boot } else { Until::Undone };
    let load = match *fields.get("LoadState")? {
        "loaded" => Load::Loaded,
        "not-found" => Load::NotFound,
        "masked" => Load::Masked(until),
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
        "enabled-runtime" => Enabled::Runtime,
        "disabled" => Enabled::No,
        // Without a word it has no file; `indirect` begins another unit; `linked` is not enabled by its name.
        _ => Enabled::Never,
    };
    Some(Shown {
        id: get("Id").to_owned(),
        names: list("Names"),
        load,
        active,
        stands: format!("{} {} {}", get("LoadState"), get("ActiveState"), get("SubState")),
        run: get("InvocationID").to_owned(),
        again: get("SubState").starts_with("auto-restart"),
        enabled,
        unit_file: get("UnitFileState").to_owned(),
        can: Can {
            start: get("CanStart") != "no",
            stop: get("CanStop") != "no",
            reload: get("CanReload") == "yes",
        },
        triggered_by: list("TriggeredBy"),
        host: Bound { with_it: names_host(&GO_WITH_IT), for_it: names_host(&GO_FOR_IT) },
        mask: None,
        masked_by_us: false,
        linked: false,
        needs_reload: get("NeedDaemonReload") == "yes",
        result: get("Result").to_owned(),
        passes: get("Type") == "oneshot" && get("RemainAfterExit") != "yes",
        began: if left > 0 { left } else { number("ActiveEnterTimestampMonotonic") },
        ended: number("InactiveEnterTimestampMonotonic"),
        fragment: get("FragmentPath").to_owned(),
        source: get("SourcePath").to_owned(),
        restarts: number("NRestarts"),
    })
}

/// A name in a list, of which systemctl quotes those with a backslash.
fn unquoted(word: &str) -> String {
    let inside = word.strip_prefix('"').and_then(|word| word.strip_suffix('"'));
    inside.map_or_else(|| word.to_owned(), |inside| inside.replace(r"\\", r"\"))
}

#[cfg(test)]
pub(super) use tests::captured;

#[cfg(test)]
mod tests;
