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
            match &mut state.ends_after {
                Some(0) => self.end(&mut state),
                Some(left) => *left -= 1,
                None => {}
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
            self.read_unit_files(&mut state);
            if state.lies.contains_key("daemon-reload") {
                die();
            }
            return said(0, "", "");
        }
        let word = words.iter().rev().skip_while(|word| **word != "--").nth(1).unwrap().to_string();
        state.calls.push(format!("{word} {}", names.join(" ")));
        let done = self.act(&mut state, &word, names[0]);
        let links = ["enable", "disable", "mask", "unmask"].contains(&word.as_str());
        if links && !words.contains(&"--no-reload") {
            state.calls.push("daemon-reload unasked".into());
        }
        done
    }

    /// What runs comes to its end, and all it brought is whole.
    fn end(&self, state: &mut super::State) {
        (state.running, state.ends_after) = (None, None);
        let brought: Vec<String> = state.sources.keys().cloned().collect();
        for name in brought {
            state.installed.insert(name, ("1.0".to_owned(), "install ok installed".to_owned()));
        }
        self.write(state);
    }

    /// What was put among the unit files is there once the service manager has read them.
    fn read_unit_files(&self, state: &mut State) {
        for unit in state.units.values_mut() {
            unit.stale = false;
            unit.load = unit.unread.take().unwrap_or(unit.load);
        }
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
    pub(super) fn show(&self, name: &str) -> String {
        let missing = Unit { load: "not-found", ..unit("inactive", "") };
        let unit = self.units.get(name).unwrap_or(&missing);
        let id = if unit.id.is_empty() { name } else { &unit.id };
        format!(
            "Id={id}\nNames={id} {name}\nLoadState={}\nActiveState={}\nUnitFileState={}\nNeedDaemonReload={}\nType={}\n\
             Result={}\nInactiveExitTimestampMonotonic={}\nInactiveEnterTimestampMonotonic={}\nNRestarts={}\nFragmentPath={}\nSubState={}\nCanReload=yes\n{}",
            unit.load,
            if unit.active == "auto-restart" { "activating" } else { unit.active },
            unit.enabled,
            if unit.stale { "yes" } else { "no" },
            if unit.passes { "oneshot" } else { "simple" },
            unit.result,
            unit.began,
            unit.ended,
            unit.restarts,
            unit.fragment,
            unit.active,
            unit.says
        )
    }
}

impl Scripted {
    fn act(&self, state: &mut State, word: &str, name: &str) -> Result<Ran, ProgramError> {
        let lie = state.lies.iter().find(|(lies, _)| **lies == word).map(|(_, lie)| *lie);
        if let Some(said) = lie.and_then(|lie| lie.instead(1)) {
            return said;
        }
        state.now += 1_000_000;
        let now = state.now;
        let unit = state.units.get_mut(name).expect("systemctl acts on what it has shown");
        let link = self.root.join("etc/systemd/system").join(name);
        match word {
            "enable" if unit.enabled == "disabled" => unit.enabled = "enabled",
            "disable" if unit.enabled == "enabled" => unit.enabled = "disabled",
            "disable" if unit.enabled == "enabled-runtime" => unit.enabled = "disabled",
            "mask" => {
                (unit.unread, unit.enabled) = (Some("masked"), "masked");
                std::os::unix::fs::symlink("/dev/null", link).unwrap();
            }
            "unmask" => {
                (unit.unread, unit.enabled) = (Some("loaded"), "disabled");
                std::fs::remove_file(link).unwrap();
            }
            "start" | "restart" if unit.load == "masked" => return said(1, "", "Unit is masked.\n"),
            "reset-failed" => unit.active = "inactive",
            "stop" => (unit.active, unit.ended) = ("inactive", now),
            "start" | "restart" if unit.passes => unit.result = unit.becomes,
            "start" | "restart" => {
                (unit.active, unit.began, unit.result, unit.restarts) = ("active", now, "success", 0);
            }
            _ => {}
        }
        if lie == Some(Lie::Dies(When::After)) {
            die();
        }
        if lie == Some(Lie::SaysNo) { said(1, "", "Job failed.\n") } else { said(0, "", "") }
    }
}
