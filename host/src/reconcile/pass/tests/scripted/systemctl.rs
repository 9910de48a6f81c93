//! systemctl: units that are shown, started and stopped, and unit files that are read.

use super::*;

impl Scripted {
    pub(super) fn systemctl(&self, words: &[&str]) -> Result<Ran, ProgramError> {
        let mut state = self.state();
        let names: Vec<&str> = words.iter().skip_while(|word| **word != "--").skip(1).copied().collect();
        if words.contains(&"list-units") {
            state.calls.push("list-units".into());
            if state.lies.contains_key("list-units after") && state.calls.iter().any(|call| acts(call)) {
                return said(1, "", "Failed to list units: Connection timed out\n");
            }
            return said(0, state.running.clone().unwrap_or_default(), "");
        }
        if words.contains(&"show") {
            state.calls.push(format!("show {}", names.join(" ")));
            return said(0, names.iter().map(|name| state.show(name)).collect::<Vec<_>>().join("\n"), "");
        }
        if words.contains(&"daemon-reload") {
            state.calls.push("daemon-reload".into());
            if let Some(Lie::Fails(words)) = state.lies.get("daemon-reload") {
                return said(1, "", *words);
            }
            if state.lies.get("daemon-reload") == Some(&Lie::Dies(When::Before)) {
                die();
            }
            state.units.values_mut().for_each(|unit| unit.stale = false);
            self.read_unit_files(&mut state);
            if state.lies.contains_key("daemon-reload") {
                die();
            }
            return said(0, "", "");
        }
        let word = words.iter().rev().skip_while(|word| **word != "--").nth(1).unwrap().to_string();
        state.calls.push(format!("{word} {}", names.join(" ")));
        state.act(&word, names[0])
    }

    /// What was put among the unit files is there once the service manager has read them.
    fn read_unit_files(&self, state: &mut State) {
        for entry in std::fs::read_dir(self.root.join("etc/systemd/system")).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            let mut fresh = unit("inactive", "disabled");
            fresh.fragment = format!("/etc/systemd/system/{name}");
            if name.ends_with(".service") {
                state.units.entry(name).or_insert(fresh);
            }
        }
    }
}

impl State {
    fn show(&self, name: &str) -> String {
        let missing = Unit { load: "not-found", ..unit("inactive", "") };
        let unit = self.units.get(name).unwrap_or(&missing);
        let id = if unit.id.is_empty() { name } else { &unit.id };
        format!(
            "Id={id}\nNames={id} {name}\nLoadState={}\nActiveState={}\nUnitFileState={}\nNeedDaemonReload={}\nType={}\n\
             Result={}\nInactiveExitTimestampMonotonic={}\nNRestarts={}\nFragmentPath={}\nSubState={}\nCanReload=yes\n",
            unit.load,
            if unit.active == "auto-restart" { "activating" } else { unit.active },
            unit.enabled,
            if unit.stale { "yes" } else { "no" },
            if unit.passes { "oneshot" } else { "simple" },
            unit.result,
            unit.began,
            unit.restarts,
            unit.fragment,
            unit.active
        )
    }

    fn act(&mut self, word: &str, name: &str) -> Result<Ran, ProgramError> {
        let lie = self.lies.iter().find(|(lies, _)| **lies == word).map(|(_, lie)| *lie);
        if let Some(said) = lie.and_then(|lie| lie.instead(1)) {
            return said;
        }
        self.now += 1_000_000;
        let now = self.now;
        let unit = self.units.get_mut(name).expect("systemctl acts on what it has shown");
        match word {
            "enable" if unit.enabled == "disabled" => unit.enabled = "enabled",
            "disable" if unit.enabled == "enabled" => unit.enabled = "disabled",
            "disable" if unit.enabled == "enabled-runtime" => unit.enabled = "disabled",
            "mask" => (unit.load, unit.enabled) = ("masked", "masked"),
            "unmask" => (unit.load, unit.enabled) = ("loaded", "disabled"),
            "reset-failed" => unit.active = "inactive",
            "stop" => unit.active = "inactive",
            "start" | "restart" if unit.passes => unit.result = unit.becomes,
            "start" | "restart" => (unit.active, unit.began, unit.result) = ("active", now, "success"),
            _ => {}
        }
        if lie == Some(Lie::Dies(When::After)) {
            die();
        }
        if lie == Some(Lie::SaysNo) { said(1, "", "Job failed.\n") } else { said(0, "", "") }
    }
}
