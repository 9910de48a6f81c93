//! The service manager on the bus, as far as it is asked there: how units stand, in one call.

use super::*;

impl Scripted {
    pub(super) fn busctl(&self, words: &[&str]) -> Result<Ran, ProgramError> {
        let mut state = self.state();
        if !state.has_bus {
            return said(1, "", "Failed to connect to system scope bus\n");
        }
        let names = words.iter().skip_while(|word| **word != "as").skip(2);
        state.calls.push("list-units by name".into());
        let rows: Vec<_> = names.map(|name| state.row(name)).collect();
        said(0, serde_json::json!({ "type": "a(ssssssouso)", "data": [rows] }).to_string(), "")
    }
}

impl State {
    fn row(&self, name: &str) -> serde_json::Value {
        let missing = Unit { load: "not-found", ..unit("inactive", "") };
        let unit = self.units.get(name).unwrap_or(&missing);
        let id = if unit.id.is_empty() { name } else { &unit.id };
        serde_json::json!([id, "", unit.load, unit.active, unit.active, "", "/", 0, "", "/"])
    }
}
