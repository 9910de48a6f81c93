//! Units of the service manager: whether they start with the machine, run, or are masked. What is in them is files. What
//! came of an act is seen by asking again. Called by [`super::Site`] and the unit lane of a pass.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tenure_protocol::id::Millis;
use tenure_protocol::resource::{UnitName, UnitSpec};

use super::{Seen, Tools, Trouble};
use crate::ground::own::is_own_unit;
use crate::steps;

mod judge;
mod mask;
mod memory;
mod systemctl;
mod systemd;

pub(crate) use judge::{Fired, acts};
pub use mask::Mask;
pub use memory::{Disk, Memory};
pub use systemctl::{Active, Bound, Can, Enabled, Load, PROPERTIES, Shown, Until};
pub(crate) use systemd::{Act, Stage};

use systemd::Manager;

impl Tools<'_> {
    fn manager(&self) -> Result<Manager<'_>, Trouble> {
        let programs = self.programs()?;
        if self.has_service_manager() {
            return Ok(Manager { programs, without_bus: &self.without_bus });
        }
        let reason = "systemd does not run this machine (/run/systemd/system is missing), and no other service \
            manager is performed";
        Err(Trouble::refused("no_service_manager", reason))
    }

    /// Looks at these units, in one call; [`observe`] says what was seen.
    pub(crate) fn look_at_units(&self, names: &[&str]) {
        self.units_recalled().retain(|name| !names.contains(&name.as_str()));
        match self.manager().and_then(|manager| manager.show(names)) {
            Err(trouble) => {
                let all = names.iter().map(|name| ((*name).to_owned(), Err(trouble.clone())));
                self.units_seen().extend(all);
            }
            Ok(shown) => self.see_units(names.iter().copied().zip(shown).collect()),
        }
    }

    /// Keeps what was seen, each by itself: what nothing was said of is nobody else's trouble.
    fn see_units(&self, shown: Vec<(&str, Result<Shown, Trouble>)>) {
        let mut units = self.units_seen();
        let names: Vec<&str> = shown.iter().map(|(name, _)| *name).collect();
        let mut first = first_names(&units, &names);
        for (name, shown) in shown {
            let shown = shown.and_then(|shown| {
                let known = first.entry(shown.id.clone()).or_insert_with(|| name.to_owned());
                let twice = known != name && !shown.id.is_empty() && !is_own_unit(&shown.id);
                if twice { Err(same(known)) } else { Ok(shown) }
            });
            units.insert(name.to_owned(), shown);
        }
    }

    /// As [`Tools::look_at_units`], of what is not remembered: only for deciding that nothing is to be done. Others
    /// than `names` are remembered no longer.
    pub(crate) fn glance_at_units(&self, names: &[&str]) {
        let (Some(memory), Ok(manager)) = (self.memory, self.manager()) else {
            return self.look_at_units(names);
        };
        let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.judges(names);
        let root = self.at("/");
        let disk = memory::disk(&root);
        let stands = |disk| Some(memory.stands(names, disk, &manager.running(names)?, &root));
        let recalled: HashMap<String, Shown> =
            disk.filter(|disk| memory.knows(*disk)).and_then(stands).unwrap_or_default();
        let rest: Vec<&str> = names.iter().copied().filter(|name| !recalled.contains_key(*name)).collect();
        let known = names.iter().filter_map(|name| Some((*name, Ok(recalled.get(*name)?.clone()))));
        self.see_units(known.collect());
        if !rest.is_empty() {
            self.look_at_units(&rest);
        }
        self.units_recalled().extend(recalled.into_keys());
        let seen = self.units_seen();
        memory.keep(disk, names.iter().filter_map(|name| Some((*name, seen.get(*name)?.as_ref().ok()?))));
    }

    /// Whether what was seen last was only remembered, of one of these.
    pub(crate) fn has_recalled(&self, names: &[&str]) -> bool {
        let recalled = self.units_recalled();
        names.iter().any(|name| recalled.contains(*name))
    }

    fn unit(&self, name: &str) -> Result<Shown, Trouble> {
        // Never in a sandbox, whatever was seen.
        self.manager()?;
        let known = || self.units_seen().get(name).cloned();
        if known().is_none() {
            self.look_at_units(&[name]);
        }
        known().unwrap_or_else(|| Err(Trouble::unknown("could_not_look", "nobody looked at it")))
    }

    /// Does this with a unit.
    pub(crate) fn act(&self, act: Act, name: &str) -> Result<(), Trouble> {
        let manager = self.manager()?;
        steps::UNIT_ACTED.take(|| manager.act(act, name))
    }

    /// Has the service manager read its unit files anew.
    pub(crate) fn daemon_reload(&self) -> Result<(), Trouble> {
        let manager = self.manager()?;
        steps::UNITS_READ.take(|| manager.daemon_reload())
    }

    /// Whether a unit was started anew by itself since a pass last asked this.
    pub(crate) fn has_fallen(&self, name: &str, shown: &Shown) -> bool {
        let fallen = |memory: &Mutex<Memory>| {
            let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
            memory.has_fallen(name, shown.restarts)
        };
        self.memory.is_some_and(fallen)
    }

    /// Whether there is a service manager that reads unit files.
    pub(crate) fn reads_units(&self) -> bool {
        self.manager().is_ok()
    }

    /// Lets so much time pass.
    pub(crate) fn rest(&self, time: Duration) {
        if let Ok(programs) = self.programs() {
            programs.rest(time);
        }
    }

    /// For how long this unit runs, or has since it last began to, the machine being awake.
    pub(crate) fn age(&self, shown: &Shown) -> Option<Duration> {
        Some(self.programs().ok()?.up().awake.saturating_sub(Duration::from_micros(shown.began)))
    }

    /// When it last began to run, on the clock that shows `now`; never later than that was. Whether the machine slept
    /// before or since nobody knows: it counts as since. None: it never ran in this boot.
    pub(crate) fn began(&self, shown: &Shown, now: Millis) -> Option<Millis> {
        let up = self.programs().ok().filter(|_| shown.began > 0)?.up();
        let age = up.in_all.saturating_sub(Duration::from_micros(shown.began));
        Some(Millis(now.0.saturating_sub(i64::try_from(age.as_millis()).ok()?)))
    }
}

/// By which name each unit was seen first that is not looked at now: whatever its other names are, it is one unit for a
/// whole pass.
fn first_names(seen: &HashMap<String, Result<Shown, Trouble>>, now: &[&str]) -> HashMap<String, String> {
    let before = seen.iter().filter(|(name, _)| !now.contains(&name.as_str()));
    before.filter_map(|(name, shown)| Some((shown.as_ref().ok()?.id.clone(), name.clone()))).collect()
}

/// A unit of which nothing is declared.
pub(super) fn left_alone(name: &UnitName) -> UnitSpec {
    UnitSpec {
        name: name.clone(),
        enabled: None,
        running: None,
        masked: None,
        restart_on: Vec::new(),
        reload_on: Vec::new(),
    }
}

fn same(first: &str) -> Trouble {
    let reason = format!("it is another name of {first}, which is declared too; declare one of them");
    Trouble::refused("unit_twice", reason)
}

/// What there is of a unit. What is the host's own is refused, by whatever name (H-02).
pub(super) fn observe(tools: &Tools<'_>, spec: &UnitSpec) -> Result<Seen, Trouble> {
    let name = spec.name.as_str();
    let own = |by: &str| {
        let also = if by == name { String::new() } else { format!(" by the name {by}") };
        let reason =
            format!("this is a unit of the host itself{also}, which it never manages; stop declaring it");
        Trouble::refused("own_unit", reason)
    };
    tools.programs()?;
    if is_own_unit(name) {
        return Err(own(name));
    }
    let mut shown = tools.unit(name)?;
    match std::iter::once(&shown.id).chain(&shown.names).find(|name| is_own_unit(name)) {
        Some(by) => Err(own(by)),
        None => {
            spares_the_host(spec, &shown)?;
            let can_go = spec.enabled == Some(false) && shown.is_enabled();
            let is_masked = shown.masked() == Some(Until::Undone);
            shown.mask = is_masked.then(|| Mask::of(&shown.id, |path| tools.at(path))).flatten();
            shown.linked = can_go && tools.at(&shown.fragment).is_symlink();
            Ok(Seen::Unit(Box::new(shown)))
        }
    }
}

/// Whether the host's own unit stays as it is whatever is done with this one: systemd stops with a unit what requires it,
/// and for a unit what it conflicts with (H-02).
fn spares_the_host(spec: &UnitSpec, shown: &Shown) -> Result<(), Trouble> {
    let name = &spec.name;
    let goes = spec.running == Some(false) || spec.masked == Some(true) || !spec.restart_on.is_empty();
    let reason = if shown.host.with_it && goes {
        format!(
            "the host's own unit requires {name}: to stop, restart or mask it would stop the host, which it never does; \
             declare it without `running = false`, `masked` and `restart_on`"
        )
    } else if shown.host.for_it && spec.running == Some(true) {
        format!(
            "the host's own unit and {name} exclude each other: to start it would stop the host, which it never does; stop \
             declaring it"
        )
    } else {
        return Ok(());
    };
    Err(Trouble::refused("own_unit", reason))
}

/// In what a unit differs from what is declared.
pub(super) fn differences(spec: &UnitSpec, seen: &Seen) -> Result<Vec<String>, Trouble> {
    let Seen::Unit(shown) = seen else {
        return Err(Trouble::failed("changed_meanwhile", "there is nothing of this kind to look at"));
    };
    judge::differences(spec, shown)
}

#[cfg(test)]
mod tests;
