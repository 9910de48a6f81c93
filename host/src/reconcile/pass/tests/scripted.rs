//! apt, dpkg and systemd as a test writes them: they do what they are told, or only say so.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::*;
use crate::program::{Listed, ProgramError, Ran, Up};

mod apt;
mod bus;
mod systemctl;

/// The programs of one machine below a folder.
pub(super) struct Scripted {
    pub(super) root: PathBuf,
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
    /// What only a source has that the machine's configuration trusts without a signature.
    pub(super) unproven: Vec<&'static str>,
    pub(super) units: BTreeMap<String, Unit>,
    /// For so many seconds the machine is up and awake, and for so many it slept.
    pub(super) up: u64,
    pub(super) slept: u64,
    /// Units that appear with the package of this name.
    pub(super) brings: BTreeMap<String, (String, Unit)>,
    /// Every call, in words.
    pub(super) calls: Vec<String>,
    /// What is done instead of what is told, by the word of the call; with `once` behind it, the next time only.
    pub(super) lies: BTreeMap<&'static str, Lie>,
    /// Transactions that outlived their host.
    pub(super) running: Option<String>,
    /// They end once it was asked for them this often, with all they brought in its place.
    pub(super) ends_after: Option<usize>,
    /// Microseconds since boot.
    pub(super) now: u64,
    pub(super) rests: usize,
    /// The service manager answers on the bus.
    pub(super) has_bus: bool,
    /// The bus says all there is to say of units, but of this one; none: it says nothing of any.
    pub(super) bus_shows_all_but: Option<&'static str>,
    /// The bus is there, and gives no answer about what there is to say.
    pub(super) bus_is_silent: bool,
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
    /// A signal ends it, with dpkg half-way through the first of what it brings, and it ends with this.
    IsKilled(i32),
    /// It is not waited for, and goes on.
    TakesLong,
    /// The host dies before it does anything, or right after it did what it was told.
    Dies(When),
}

impl Lie {
    /// What a tool says that does nothing of what it is told; `no` is its status for a failure.
    fn instead(self, no: i32) -> Option<Result<Ran, ProgramError>> {
        match self {
            Self::SaysYes => Some(said(0, "", "")),
            Self::Fails(words) => Some(said(no, "", words)),
            Self::Dies(When::Before) => die(),
            Self::SaysNo
            | Self::IsLocked
            | Self::SaysBefore(_)
            | Self::IsKilled(_)
            | Self::TakesLong
            | Self::Dies(When::After) => None,
        }
    }
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
    /// What it is once the service manager has read its file anew.
    pub(super) unread: Option<&'static str>,
    pub(super) active: &'static str,
    pub(super) enabled: &'static str,
    pub(super) began: u64,
    pub(super) ended: u64,
    pub(super) stale: bool,
    pub(super) result: &'static str,
    pub(super) fragment: String,
    /// What it is after it was started and some time has passed.
    pub(super) becomes: &'static str,
    pub(super) restarts: u64,
    /// It does its work, ends, and is forgotten.
    pub(super) passes: bool,
    /// Another line that systemctl says of it.
    pub(super) says: &'static str,
}

pub(super) fn unit(active: &'static str, enabled: &'static str) -> Unit {
    Unit {
        id: String::new(),
        load: "loaded",
        unread: None,
        active,
        enabled,
        began: if active == "active" { 1 } else { 0 },
        ended: 0,
        stale: false,
        result: "success",
        fragment: String::new(),
        becomes: "active",
        restarts: 0,
        passes: false,
        says: "",
    }
}

/// Masks it as an operator does, whatever mask was there before.
pub(super) fn somebody_masks(machine: &Machine, name: &str) {
    let link = machine.at(&format!("/etc/systemd/system/{name}"));
    drop(std::fs::remove_file(&link));
    std::os::unix::fs::symlink("/dev/null", link).unwrap();
    machine.set(|state| {
        let unit = state.units.get_mut(name).unwrap();
        (unit.load, unit.unread, unit.enabled) = ("masked", None, "masked");
    });
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
            "etc/nginx",
        ] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
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

/// Whether the call changes something.
fn acts(call: &str) -> bool {
    !["show", "bus:", "list-units", "madison", "simulate"].iter().any(|look| call.starts_with(look))
}

fn die() -> ! {
    panic!("the host is killed here")
}

pub(super) fn said(status: i32, out: impl Into<String>, err: impl Into<String>) -> Result<Ran, ProgramError> {
    Ok(Ran { status: Some(status), out: out.into(), err: err.into() })
}

impl Scripted {
    fn state(&self) -> MutexGuard<'_, State> {
        // A host that died in a call has left it as it was.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Programs for Scripted {
    fn run(&self, program: &str, arguments: &[&str], _: Duration) -> Result<Ran, ProgramError> {
        match program {
            "apt-get" => self.apt(arguments),
            "dpkg" => self.configure(arguments),
            "pacman" => self.pacman(arguments),
            "pacman-conf" => said(0, "", ""),
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

    fn units(&self, names: &[&str], _: Duration) -> Option<Vec<Listed>> {
        self.listed(names)
    }

    fn show_units(&self, names: &[&str], _: &'static [&'static str], _: Duration) -> Option<String> {
        self.shown(names)
    }

    fn up(&self) -> Up {
        let state = self.state();
        Up { awake: Duration::from_secs(state.up), in_all: Duration::from_secs(state.up + state.slept) }
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
