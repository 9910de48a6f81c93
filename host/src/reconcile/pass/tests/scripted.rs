//! apt, dpkg and systemd as a test writes them: they do what they are told, or only say so.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::*;
use crate::program::{ProgramError, Ran};

/// The programs of one machine below a folder.
pub(super) struct Scripted {
    root: PathBuf,
    state: Mutex<State>,
}

/// What they know.
#[derive(Default)]
pub(super) struct State {
    /// Installed: name → (version, the three words of dpkg).
    pub(super) installed: BTreeMap<String, (String, String)>,
    /// What the sources have, newest first.
    pub(super) sources: BTreeMap<String, Vec<Offer>>,
    /// What they have besides once they were read anew; none: that fails.
    pub(super) newer: Option<BTreeMap<String, Vec<Offer>>>,
    pub(super) units: BTreeMap<String, Unit>,
    /// Units that appear with the package of this name.
    pub(super) brings: BTreeMap<String, (String, Unit)>,
    /// Every call, in words.
    pub(super) calls: Vec<String>,
    /// What is done instead of what is told, by the word of the call.
    pub(super) lies: BTreeMap<&'static str, Lie>,
    /// Transactions that outlived their host.
    pub(super) running: Option<String>,
    /// Microseconds since boot.
    pub(super) now: u64,
    pub(super) rests: usize,
}

/// How a tool lies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lie {
    /// It says that it worked, and does nothing.
    SaysYes,
    /// It does it, and says that it failed.
    SaysNo,
    /// It fails, with these words, and does nothing.
    Fails(&'static str),
    /// dpkg's: it ends with 2, since somebody has its lock.
    IsLocked,
    /// It finds it impossible when it is asked before, with these words.
    SaysBefore(&'static str),
    /// A signal ends it, with dpkg half-way, and it ends with this.
    IsKilled(i32),
    /// It is not waited for, and goes on.
    TakesLong,
    /// The host dies before it does anything, or right after it did what it was told.
    Dies(When),
}

/// On which side of what a tool does the host dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum When {
    Before,
    After,
}

#[derive(Clone, Default)]
pub(super) struct Offer {
    pub(super) version: &'static str,
    pub(super) removes: Vec<&'static str>,
    pub(super) lowers: Vec<(&'static str, &'static str)>,
    /// Its script fails, and leaves it half-configured.
    pub(super) breaks: bool,
}

pub(super) fn offer(version: &'static str) -> Offer {
    Offer { version, ..Offer::default() }
}

#[derive(Clone)]
pub(super) struct Unit {
    pub(super) id: String,
    pub(super) load: &'static str,
    pub(super) active: &'static str,
    pub(super) enabled: &'static str,
    pub(super) began: u64,
    pub(super) stale: bool,
    pub(super) result: &'static str,
    pub(super) fragment: String,
    /// What it is after it was started and some time has passed.
    pub(super) becomes: &'static str,
    pub(super) restarts: u64,
    /// It does its work, ends, and is forgotten.
    pub(super) passes: bool,
}

pub(super) fn unit(active: &'static str, enabled: &'static str) -> Unit {
    Unit {
        id: String::new(),
        load: "loaded",
        active,
        enabled,
        began: if active == "active" { 1 } else { 0 },
        stale: false,
        result: "success",
        fragment: String::new(),
        becomes: "active",
        restarts: 0,
        passes: false,
    }
}

impl Machine {
    /// One with a package manager and a service manager.
    pub(super) fn with_programs() -> Self {
        Self::new().given_programs()
    }

    pub(super) fn given_programs(mut self) -> Self {
        let root = self.ground.root().to_owned();
        for folder in [
            "var/lib/dpkg/updates",
            "var/lib/dpkg/info",
            "run/systemd/system",
            "etc/systemd/system",
            "proc",
            "etc/nginx",
        ] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::fs::write(root.join("proc/uptime"), "0.0 0.0\n").unwrap();
        let scripted = Scripted { root, state: Mutex::new(State { now: 10, ..State::default() }) };
        scripted.write(&scripted.state());
        self.scripted = Some(scripted);
        self
    }

    pub(super) fn adopted_with_programs() -> Self {
        let mut machine = Self::with_programs();
        machine.head.mode = "adopted";
        machine
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.scripted.as_ref().unwrap().state()
    }

    /// Changes what is installed or offered.
    pub(super) fn set(&self, change: impl FnOnce(&mut State)) {
        let scripted = self.scripted.as_ref().unwrap();
        let mut state = scripted.state();
        change(&mut state);
        scripted.write(&state);
    }

    pub(super) fn offers(&self, name: &str, offers: &[Offer]) {
        self.set(|state| drop(state.sources.insert(name.to_owned(), offers.to_vec())));
    }

    pub(super) fn lies(&self, word: &'static str, lie: Lie) {
        self.state().lies.insert(word, lie);
    }

    pub(super) fn installs(&self, name: &str, version: &str) {
        let words = (version.to_owned(), "install ok installed".to_owned());
        self.set(|state| drop(state.installed.insert(name.to_owned(), words)));
    }

    pub(super) fn version(&self, name: &str) -> Option<String> {
        let state = self.state();
        state.installed.get(name).filter(|(_, words)| words == "install ok installed").map(|(v, _)| v.clone())
    }

    pub(super) fn package(&mut self, name: &str, version: &str, needs: &[&str]) {
        self.named("package", name, serde_json::json!({ "name": name, "version": version }), needs);
    }

    pub(super) fn unit(&mut self, name: &str, mut spec: serde_json::Value, needs: &[&str]) {
        spec["name"] = name.into();
        self.named("unit", name, spec, needs);
    }

    fn named(&mut self, kind: &str, name: &str, spec: serde_json::Value, needs: &[&str]) {
        let key = format!("{kind}:{name}");
        self.resources.retain(|entry| entry["key"] != *key);
        self.resources
            .push(serde_json::json!({ "key": key, "module": "base", "needs": needs, "spec": spec }));
    }

    pub(super) fn has_unit(&self, name: &str, unit: Unit) {
        self.set(|state| drop(state.units.insert(name.to_owned(), unit)));
    }

    pub(super) fn is(&self, name: &str) -> (&'static str, &'static str) {
        let state = self.state();
        (state.units[name].active, state.units[name].enabled)
    }

    /// The calls that change something, since it was last asked.
    pub(super) fn acts(&self) -> Vec<String> {
        let calls = std::mem::take(&mut self.state().calls);
        calls.into_iter().filter(|call| acts(call)).collect()
    }
}

const NO: i32 = 100;

/// Whether the call changes something.
fn acts(call: &str) -> bool {
    !["show", "list-units", "madison", "simulate"].iter().any(|look| call.starts_with(look))
}

fn die() -> ! {
    panic!("the host is killed here")
}

fn said(status: i32, out: impl Into<String>, err: impl Into<String>) -> Result<Ran, ProgramError> {
    Ok(Ran { status: Some(status), out: out.into(), err: err.into() })
}

impl Scripted {
    fn state(&self) -> MutexGuard<'_, State> {
        // A host that died in a call has left it as it was.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, state: &State) {
        let paragraph = |(name, (version, words)): (&String, &(String, String))| {
            format!("Package: {name}\nStatus: {words}\nArchitecture: amd64\nVersion: {version}\n")
        };
        let text = state.installed.iter().map(paragraph).collect::<Vec<_>>().join("\n");
        std::fs::write(self.root.join("var/lib/dpkg/status"), text).unwrap();
    }

    fn apt(&self, words: &[&str]) -> Result<Ran, ProgramError> {
        let mut state = self.state();
        if words.contains(&"update") {
            state.calls.push("update".into());
            if let Some(Lie::Fails(words)) = state.lies.get("update") {
                return said(NO, "", *words);
            }
            return match state.newer.clone() {
                None => said(NO, "", "E: The repository 'file:/repo ./ Release' is not signed.\n"),
                Some(newer) => {
                    state.sources.extend(newer);
                    said(0, "", "")
                }
            };
        }
        let names = words.iter().skip_while(|word| **word != "--").skip(1);
        let (mut install, mut remove) = (Vec::new(), Vec::new());
        for word in names.copied() {
            match word.strip_suffix('-') {
                Some(name) => remove.push(name.to_owned()),
                None => match state.offered(word) {
                    Ok(offer) => install.push(offer),
                    Err(error) => return said(NO, "", error),
                },
            }
        }
        // Without this word apt leaves what it calls installed already, though it was cut short.
        if !words.contains(&"--reinstall") {
            let half =
                |name: &str| state.installed.get(name).is_some_and(|(_, w)| w.ends_with("half-installed"));
            install.retain(|(name, _)| !half(name));
        }
        let simulates = words.contains(&"-s");
        let word = if simulates { "simulate" } else { "install" };
        state.calls.push(format!(
            "{word} {}",
            words[words.iter().position(|w| *w == "--").unwrap() + 1..].join(" ")
        ));
        if let (true, Some(Lie::SaysBefore(words))) = (simulates, state.lies.get("install")) {
            return said(NO, *words, "E: Unable to correct problems, you have held broken packages.\n");
        }
        if simulates {
            said(0, state.simulate(&install, &remove), "")
        } else {
            self.transact(state, &install, &remove)
        }
    }

    fn transact(
        &self,
        mut state: MutexGuard<'_, State>,
        install: &[(String, Offer)],
        remove: &[String],
    ) -> Result<Ran, ProgramError> {
        let lie = state.lies.get("install").copied();
        match lie {
            Some(Lie::SaysYes) => return said(0, "", ""),
            Some(Lie::Fails(words)) => return said(NO, "", words),
            Some(Lie::Dies(When::Before)) => die(),
            Some(
                Lie::SaysNo
                | Lie::IsLocked
                | Lie::SaysBefore(_)
                | Lie::IsKilled(_)
                | Lie::TakesLong
                | Lie::Dies(When::After),
            )
            | None => {}
        }
        state.now += 10;
        if let Some(Lie::IsKilled(status)) = lie {
            for (name, offer) in install {
                state.installed.insert(name.clone(), (offer.version.into(), "install ok unpacked".into()));
            }
            self.write(&state);
            return said(status, "", "");
        }
        let mut broken = false;
        for (name, offer) in install {
            let words = if offer.breaks { "install ok half-configured" } else { "install ok installed" };
            broken |= offer.breaks;
            state.installed.insert(name.clone(), (offer.version.into(), words.into()));
            for gone in &offer.removes {
                state.installed.remove(*gone);
            }
            if let Some((name, mut unit)) = state.brings.get(name).cloned() {
                unit.began = if unit.active == "active" { state.now } else { 0 };
                state.units.insert(name, unit);
            }
        }
        for name in remove {
            if let Some((_, words)) = state.installed.get_mut(name) {
                *words = "deinstall ok config-files".into();
            }
        }
        self.write(&state);
        match lie {
            Some(Lie::Dies(_)) => die(),
            Some(Lie::TakesLong) => Err(ProgramError::NotAwaited("systemd-run".into())),
            Some(_) => said(NO, "", "E: Sub-process /usr/bin/dpkg returned an error code (1)\n"),
            None if broken => said(NO, "", "E: Sub-process /usr/bin/dpkg returned an error code (1)\n"),
            None => said(0, "", ""),
        }
    }

    /// Finishes what it can, and puts its journal into its status.
    fn configure(&self, words: &[&str]) -> Result<Ran, ProgramError> {
        assert_eq!(words.last(), Some(&"-a"), "dpkg is only told to configure");
        let mut state = self.state();
        state.calls.push("configure".into());
        match state.lies.get("configure") {
            Some(Lie::Fails(words)) => return said(1, "", *words),
            Some(Lie::IsLocked) => {
                let words = "dpkg: error: dpkg frontend lock was locked by another process with pid 4242\n";
                return said(2, "", words);
            }
            Some(_) | None => {}
        }
        let ready = ["install ok unpacked", "install ok half-configured"];
        for (_, words) in state.installed.values_mut().filter(|(_, words)| ready.contains(&words.as_str())) {
            *words = "install ok installed".into();
        }
        for entry in std::fs::read_dir(self.root.join("var/lib/dpkg/updates")).unwrap().flatten() {
            std::fs::remove_file(entry.path()).unwrap();
        }
        self.write(&state);
        said(0, "", "")
    }

    fn systemctl(&self, words: &[&str]) -> Result<Ran, ProgramError> {
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
    fn offered(&self, word: &str) -> Result<(String, Offer), String> {
        let (name, version) =
            word.split_once('=').map_or((word, None), |(name, version)| (name, Some(version)));
        let offers = self.sources.get(name).ok_or(format!("E: Unable to locate package {name}\n"))?;
        let offer = offers.iter().find(|offer| version.is_none_or(|version| offer.version == version));
        let missing = || format!("E: Version '{}' for '{name}' was not found\n", version.unwrap_or_default());
        offer.map(|offer| (name.to_owned(), offer.clone())).ok_or_else(missing)
    }

    fn simulate(&self, install: &[(String, Offer)], remove: &[String]) -> String {
        let mut lines = Vec::new();
        let line = |name: &str, new: &str| {
            let old = self.installed.get(name).map(|(old, _)| format!(" [{old}]")).unwrap_or_default();
            format!("Inst {name}{old} ({new} Test:1/stable [amd64])")
        };
        for (name, offer) in install {
            lines.extend(
                offer
                    .removes
                    .iter()
                    .filter(|gone| self.installed.contains_key(**gone))
                    .map(|gone| format!("Remv {gone} [1]")),
            );
            lines.extend(offer.lowers.iter().map(|(name, to)| line(name, to)));
            lines.push(line(name, offer.version));
        }
        lines.extend(remove.iter().map(|name| format!("Remv {name} [1]")));
        lines.join("\n")
    }

    fn show(&self, name: &str) -> String {
        let missing = Unit { load: "not-found", ..unit("inactive", "") };
        let unit = self.units.get(name).unwrap_or(&missing);
        let id = if unit.id.is_empty() { name } else { &unit.id };
        format!(
            "Id={id}\nNames={id} {name}\nLoadState={}\nActiveState={}\nUnitFileState={}\nNeedDaemonReload={}\nType={}\n\
             Result={}\nInactiveExitTimestampMonotonic={}\nNRestarts={}\nFragmentPath={}\n",
            unit.load,
            unit.active,
            unit.enabled,
            if unit.stale { "yes" } else { "no" },
            if unit.passes { "oneshot" } else { "simple" },
            unit.result,
            unit.began,
            unit.restarts,
            unit.fragment
        )
    }

    fn act(&mut self, word: &str, name: &str) -> Result<Ran, ProgramError> {
        let lie = self.lies.iter().find(|(lies, _)| **lies == word).map(|(_, lie)| *lie);
        match lie {
            Some(Lie::SaysYes) => return said(0, "", ""),
            Some(Lie::Fails(words)) => return said(1, "", words),
            Some(Lie::Dies(When::Before)) => die(),
            Some(
                Lie::SaysNo
                | Lie::IsLocked
                | Lie::SaysBefore(_)
                | Lie::IsKilled(_)
                | Lie::TakesLong
                | Lie::Dies(When::After),
            )
            | None => {}
        }
        self.now += 1_000_000;
        let now = self.now;
        let unit = self.units.get_mut(name).expect("systemctl acts on what it has shown");
        match word {
            "enable" if unit.enabled == "disabled" => unit.enabled = "enabled",
            "disable" if unit.enabled == "enabled" => unit.enabled = "disabled",
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

impl Programs for Scripted {
    fn run(&self, program: &str, arguments: &[&str], _: Duration) -> Result<Ran, ProgramError> {
        match program {
            "apt-get" => self.apt(arguments),
            "dpkg" => self.configure(arguments),
            "systemctl" => self.systemctl(arguments),
            "systemd-run" => {
                if let Some(Lie::Fails(words)) = self.state().lies.get("systemd-run") {
                    return said(1, "", *words);
                }
                let mut words = arguments.iter();
                let log = words.find_map(|word| word.strip_prefix("--property=StandardOutput=append:"));
                std::fs::create_dir_all(Path::new(log.unwrap()).parent().unwrap()).unwrap();
                std::fs::write(log.unwrap(), "").unwrap();
                let at = arguments.iter().position(|word| *word == "--").unwrap() + 1;
                self.run(arguments[at], &arguments[at + 1..], Duration::ZERO)
            }
            "apt-cache" => {
                let mut state = self.state();
                let name = arguments.last().unwrap().to_string();
                state.calls.push(format!("madison {name}"));
                let offers = state.sources.get(&name).cloned().unwrap_or_default();
                let lines: Vec<String> = offers
                    .iter()
                    .map(|offer| format!(" {name} | {} | http://x stable/main", offer.version))
                    .collect();
                said(0, lines.join("\n"), "")
            }
            other => Err(ProgramError::NotThere(other.to_owned())),
        }
    }

    fn attend(
        &self,
        program: &str,
        arguments: &[&str],
        within: Duration,
        _: &AtomicBool,
    ) -> Result<Ran, ProgramError> {
        self.run(program, arguments, within)
    }

    /// What was started becomes what it becomes.
    fn rest(&self, _: Duration) {
        let mut state = self.state();
        state.rests += 1;
        for unit in state.units.values_mut().filter(|unit| matches!(unit.active, "active" | "activating")) {
            if unit.becomes == "again" {
                unit.restarts += 1;
            } else if unit.becomes != unit.active {
                unit.active = unit.becomes;
                unit.result = if unit.becomes == "failed" { "exit-code" } else { "success" };
            }
        }
    }
}
