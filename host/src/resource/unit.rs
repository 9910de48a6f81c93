//! Units of the service manager: whether they start with the machine, whether they run. What is in them is files. What
//! came of an act is seen by asking again. Called by [`super::Site`] and the unit lane of a pass.

use std::time::Duration;

use tenure_protocol::resource::{UnitName, UnitSpec};

use super::{Seen, Tools, Trouble};
use crate::ground::own::is_own_unit;
use crate::steps;

mod systemctl;
mod systemd;

pub use systemctl::{Active, Enabled, Load, Shown};
pub(crate) use systemd::Act;

use systemd::Manager;

impl Tools<'_> {
    fn manager(&self) -> Result<Manager<'_>, Trouble> {
        let programs = self.programs()?;
        if self.has_service_manager() {
            return Ok(Manager { programs });
        }
        let reason = "systemd does not run this machine (/run/systemd/system is missing), and no other service \
            manager is performed";
        Err(Trouble::refused("no_service_manager", reason))
    }

    /// Looks at these units, in one call; [`observe`] says what was seen.
    pub(crate) fn look_at_units(&self, names: &[&str]) {
        let shown = self.manager().and_then(|manager| manager.show(names));
        let mut units = self.units_seen();
        match shown {
            Err(trouble) => units.extend(names.iter().map(|name| ((*name).to_owned(), Err(trouble.clone())))),
            Ok(shown) => {
                let mut first = std::collections::HashMap::new();
                for (name, shown) in names.iter().zip(shown) {
                    let known = first.entry(shown.id.clone()).or_insert(*name);
                    let twice = *known != *name && !shown.id.is_empty() && !is_own_unit(&shown.id);
                    units.insert((*name).to_owned(), if twice { Err(same(known)) } else { Ok(shown) });
                }
            }
        }
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

    /// Lets so much time pass.
    pub(crate) fn rest(&self, time: Duration) {
        if let Ok(programs) = self.programs() {
            programs.rest(time);
        }
    }

    /// How long ago a moment was that the service manager tells, where the machine says how long it is up.
    pub(crate) fn age(&self, since_boot: u64) -> Option<Duration> {
        let text = std::fs::read_to_string(self.at("/proc/uptime")).ok()?;
        let seconds: f64 = text.split_ascii_whitespace().next()?.parse().ok()?;
        let up = Duration::try_from_secs_f64(seconds).ok()?;
        Some(up.saturating_sub(Duration::from_micros(since_boot)))
    }
}

/// A unit of which nothing is declared.
pub(super) fn left_alone(name: &UnitName) -> UnitSpec {
    UnitSpec {
        name: name.clone(),
        enabled: None,
        running: None,
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
    let shown = tools.unit(name)?;
    match std::iter::once(&shown.id).chain(&shown.names).find(|name| is_own_unit(name)) {
        Some(by) => Err(own(by)),
        None => Ok(Seen::Unit(Box::new(shown))),
    }
}

/// In what a unit differs from what is declared.
pub(super) fn differences(spec: &UnitSpec, seen: &Seen) -> Result<Vec<String>, Trouble> {
    let Seen::Unit(shown) = seen else {
        return Err(Trouble::failed("changed_meanwhile", "there is nothing of this kind to look at"));
    };
    let name = &spec.name;
    match &shown.load {
        Load::Loaded => {}
        Load::NotFound => {
            let reason = format!(
                "there is no unit {name} on this machine; declare the package or the file that brings it"
            );
            return Err(Trouble::failed("unit_missing", reason));
        }
        Load::Masked if spec.enabled == Some(true) || spec.running == Some(true) => {
            let reason = format!("somebody masked it; `systemctl unmask {name}` lets it be started again");
            return Err(Trouble::refused("unit_masked", reason));
        }
        Load::Masked => {}
        Load::Bad(word) => {
            let reason =
                format!("the service manager cannot read it ({word}); `systemctl status {name}` says why");
            return Err(Trouble::failed("unit_unreadable", reason));
        }
    }
    let enabled = starts_differently(spec, shown)?;
    let running = match (spec.running, shown.active) {
        (Some(true), _) if !shown.is_up() => Some(runs(shown)),
        (Some(false), Active::Active | Active::Starting) => Some("it runs".to_owned()),
        (Some(false), Active::Stopping | Active::Inactive | Active::Failed) | (Some(true) | None, _) => None,
    };
    Ok(enabled.into_iter().chain(running).collect())
}

fn starts_differently(spec: &UnitSpec, shown: &Shown) -> Result<Option<String>, Trouble> {
    match (spec.enabled, &shown.enabled) {
        (None, _) | (Some(true), Enabled::Yes) => Ok(None),
        (Some(true), Enabled::Runtime) => {
            Ok(Some("it starts with the machine until the next boot only".to_owned()))
        }
        (Some(true), Enabled::No) => Ok(Some("it does not start with the machine".to_owned())),
        (Some(true), Enabled::Never(word)) => {
            let reason = format!(
                "it cannot be enabled: it is {word}, so something else starts it; declare it without `enabled`"
            );
            Err(Trouble::refused("unit_not_enableable", reason))
        }
        (Some(false), Enabled::No) => Ok(None),
        (Some(false), Enabled::Yes | Enabled::Runtime) => Ok(Some("it starts with the machine".to_owned())),
        (Some(false), Enabled::Never(word)) if word == "generated" => {
            let reason = "it cannot be disabled: a program generates it at each boot, from an init script or \
                /etc/fstab; change that, or declare it without `enabled`";
            Err(Trouble::refused("unit_not_enableable", reason))
        }
        (Some(false), Enabled::Never(_)) => Ok(None),
    }
}

fn runs(shown: &Shown) -> String {
    match shown.active {
        Active::Active | Active::Inactive => "it does not run".to_owned(),
        Active::Failed => format!("it does not run: it ended with {}", shown.result),
        Active::Starting => "it is on its way up".to_owned(),
        Active::Stopping => "it is on its way down".to_owned(),
    }
}

/// What is done with a unit that is to be restarted or reloaded besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fired {
    Nothing,
    Reload,
    Restart,
}

/// What has to be done, in order. What does not run is started and never restarted; what is to stand still is neither.
pub(crate) fn acts(spec: &UnitSpec, shown: &Shown, fired: Fired) -> Vec<Act> {
    let enabled = match spec.enabled {
        Some(true) if !shown.is_enabled() => Some(Act::Enable),
        Some(false) if matches!(shown.enabled, Enabled::Yes | Enabled::Runtime) => Some(Act::Disable),
        Some(_) | None => None,
    };
    let up = shown.active == Active::Active;
    let stands_still = !matches!(shown.active, Active::Active | Active::Starting);
    let running = match (spec.running, fired) {
        (Some(false), _) => (!stands_still).then_some(Act::Stop),
        (Some(true), _) if !shown.is_up() => Some(Act::Start),
        (Some(true), Fired::Restart | Fired::Reload) if !up => Some(Act::Restart),
        (Some(true) | None, Fired::Restart) if up => Some(Act::Restart),
        (Some(true) | None, Fired::Reload) if up => Some(Act::Reload),
        (Some(true) | None, _) => None,
    };
    enabled.into_iter().chain(running).collect()
}

#[cfg(test)]
mod tests;
