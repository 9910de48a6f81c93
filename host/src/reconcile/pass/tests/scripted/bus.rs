//! The service manager on the bus, as far as it is asked there: how units stand, in one call.

use super::*;

impl Scripted {
    pub(super) fn listed(&self, names: &[&str]) -> Option<Vec<Listed>> {
        let mut state = self.state();
        if !state.has_bus {
            return None;
        }
        state.calls.push("list-units by name".into());
        Some(names.iter().map(|name| state.row(name)).collect())
    }

    pub(super) fn shown(&self, names: &[&str]) -> Option<String> {
        let mut state = self.state();
        if state.bus_is_silent {
            state.calls.push("bus: silent".into());
            return None;
        }
        let unsaid = state.bus_shows_all_but?;
        state.calls.push(format!("bus: {}", names.join(" ")));
        let known = names.iter().filter(|name| **name != unsaid);
        Some(known.map(|name| state.show(name)).collect::<Vec<_>>().join("\n"))
    }
}

impl State {
    fn row(&self, name: &str) -> Listed {
        let missing = Unit { load: "not-found", ..unit("inactive", "") };
        let unit = self.units.get(name).unwrap_or(&missing);
        let id = if unit.id.is_empty() { name } else { &unit.id };
        let [id, load, active, sub] = [id, unit.load, unit.active, unit.active].map(str::to_owned);
        Listed { id, load, active, sub }
    }
}
