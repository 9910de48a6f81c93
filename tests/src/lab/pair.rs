//! A control plane on one machine and a node on another, both installed from the tarball and under systemd, as an
//! operator would have them. What is asked of either is asked through its own commands, inside its machine.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;

use super::{Base, Lab, Machine, Output, Tarball};
use crate::{program, wait};

/// The control plane on `a`, the node `edge-1` on `b`.
pub struct Pair {
    /// The control plane's machine, Debian 12.
    pub a: Machine,
    /// The node's machine.
    pub b: Machine,
    /// The lab of both.
    pub lab: Lab,
    tarball: Tarball,
}

/// How long anything that is waited for may take. A link that was lost more than once waits up to half a minute.
pub const SOON: Duration = Duration::from_secs(60);
/// Where the control plane listens.
pub const PORT: u16 = 7443;
const FLEET: &str = "/srv/fleet";
const TOKEN: &str = "/root/edge-1.token";

impl Pair {
    /// Two machines that know nothing yet; the node's is `base`.
    #[must_use]
    pub fn boot(name: &str, base: Base) -> Self {
        let lab = Lab::new(name);
        let tarball = Tarball::of(&lab, program::folder());
        let (a, b) = std::thread::scope(|scope| {
            let a = scope.spawn(|| lab.machine("a", Base::Bookworm));
            let b = lab.machine("b", base);
            (a.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), b)
        });
        Self { a, b, lab, tarball }
    }

    /// Two Debian 12 machines with the node enrolled and ready; `advertise` is where it is told to dial, `settings` are
    /// further lines of `control.toml`.
    #[must_use]
    pub fn raised(name: &str, advertise: impl FnOnce(&Self) -> String, settings: &str) -> Self {
        let pair = Self::boot(name, Base::Bookworm);
        pair.start_control(&advertise(&pair), settings);
        pair.install_host();
        pair.enrol();
        pair.start_host();
        // An enrolled node is ready before its first session is open.
        pair.wait_for_state("ready");
        pair.wait_for_both_ends();
        pair
    }

    /// Like [`raised`](Self::raised), the node's machine being `base`, with nothing between the two.
    #[must_use]
    pub fn raised_on(name: &str, base: Base) -> Self {
        let pair = Self::boot(name, base);
        pair.start_control(&pair.direct().to_string(), "");
        pair.install_host();
        pair.enrol();
        pair.start_host();
        pair.wait_for_state("ready");
        pair.wait_for_both_ends();
        pair
    }

    /// Where the control plane is reached without anything in between.
    #[must_use]
    pub fn direct(&self) -> SocketAddr {
        SocketAddr::from((self.a.address(), PORT))
    }

    /// Installs the control plane and starts its service.
    #[track_caller]
    pub fn start_control(&self, advertise: &str, settings: &str) {
        let _ = self.a.install(&self.tarball, &["--control"]).must();
        let text = format!("listen = \"0.0.0.0:{PORT}\"\nadvertise = [\"{advertise}\"]\n{settings}");
        self.a.write("/etc/tenure/control.toml", text);
        self.a.must(&["systemctl", "enable", "--now", "--quiet", "tenure-control"]);
    }

    /// Installs the host; nothing is started. It will look for drift every second instead of every ten minutes.
    #[track_caller]
    pub fn install_host(&self) {
        let _ = self.b.install(&self.tarball, &["--host"]).must();
        self.b.write("/etc/tenure/host.toml", "timer = \"1s\"\n");
    }

    /// Invites the node and hands the token to its machine.
    #[track_caller]
    pub fn enrol(&self) {
        let _ = self.tenure(&["invite", "edge-1", "--out", TOKEN]).must();
        self.b.write_mode(TOKEN, &self.a.read(TOKEN), 0o600);
        self.b.must(&["tenure-host", "enrol", "--token-file", TOKEN]);
    }

    /// Starts the host's service, now and at each boot.
    #[track_caller]
    pub fn start_host(&self) {
        self.b.must(&["systemctl", "enable", "--now", "--quiet", "tenure-host"]);
    }

    /// Runs the operator's command line on the control plane's machine.
    #[track_caller]
    pub fn tenure(&self, arguments: &[&str]) -> Output {
        self.a.run(&[&["tenure"], arguments].concat())
    }

    /// Writes a fleet folder with one module `site` for the node.
    pub fn module(&self, text: &str) {
        self.a.write(&format!("{FLEET}/fleet.toml"), "[node.\"edge-1\"]\nmodules = [\"site\"]\n");
        let text = format!("[module]\nname = \"site\"\nversion = \"1\"\n{text}");
        self.a.write(&format!("{FLEET}/modules/site/module.toml"), text);
    }

    /// Declares the fleet folder.
    #[track_caller]
    pub fn declare(&self, more: &[&str]) -> Output {
        self.tenure(&[&["declare", FLEET], more].concat())
    }

    /// What `tenure node edge-1` says.
    #[track_caller]
    #[must_use]
    pub fn node(&self) -> Value {
        self.tenure(&["node", "edge-1", "--json"]).expect(0).json()
    }

    /// The session the control plane has of the node; null when it has none.
    #[track_caller]
    #[must_use]
    pub fn session(&self) -> Value {
        self.node()["session"]["session"].clone()
    }

    /// What `tenure node` says of one resource; null when it does not name it.
    #[track_caller]
    #[must_use]
    pub fn resource(&self, key: &str) -> Value {
        let resources = self.node()["resources"].as_array().cloned().unwrap_or_default();
        resources.into_iter().find(|resource| resource["key"] == key).unwrap_or_default()
    }

    /// Waits until what is said of a resource is this, in the host's own code for it; gives back the reason.
    #[track_caller]
    pub fn wait_for_code(&self, key: &str, outcome: &str, code: &str) -> String {
        self.wait(&format!("{key} is {outcome}, {code}"), |pair| {
            let resource = pair.resource(key);
            resource["outcome"] == outcome && resource["code"] == code
        });
        self.resource(key)["reason"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits until a resource is as declared.
    #[track_caller]
    pub fn wait_for_resource(&self, key: &str) {
        self.wait(&format!("{key} is as declared"), |pair| {
            let outcome = pair.resource(key)["outcome"].clone();
            outcome == "applied" || outcome == "unchanged" || outcome == "removed"
        });
    }

    /// The pid of the running host; zero while it does not run.
    #[track_caller]
    #[must_use]
    pub fn host_pid(&self) -> u32 {
        let said = self.b.must(&["systemctl", "show", "--value", "--property=MainPID", "tenure-host"]);
        said.parse().expect("a pid")
    }

    /// What the host owns, by key and origin.
    #[track_caller]
    #[must_use]
    pub fn owned(&self) -> BTreeMap<String, String> {
        let lines = self.b.run(&["tenure-host", "owned", "--json"]).expect(0).json();
        let word = |line: &Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
        lines.as_array().into_iter().flatten().map(|line| (word(line, "key"), word(line, "origin"))).collect()
    }

    /// How many events of a kind the control plane lists; of one resource where a key is given.
    #[track_caller]
    #[must_use]
    pub fn told(&self, kind: &str, key: Option<&str>) -> usize {
        let events = self.tenure(&["events", "--json"]).expect(0).json();
        let events = events.as_array().cloned().unwrap_or_default();
        let is_it = |event: &&Value| event["kind"] == kind && key.is_none_or(|key| event["key"] == key);
        events.iter().filter(is_it).count()
    }

    /// What the host says of itself.
    #[track_caller]
    #[must_use]
    pub fn status(&self) -> Value {
        self.b.run(&["tenure-host", "status", "--json"]).expect(0).json()
    }

    /// Why the host has no link, by its code; empty while it has one, or has not tried yet.
    #[track_caller]
    #[must_use]
    pub fn no_link_because(&self) -> String {
        self.status()["link"]["down"]["reason"]["code"].as_str().unwrap_or_default().to_owned()
    }

    /// A file of the node's machine; none where it is not there.
    #[must_use]
    pub fn read(&self, path: &str) -> Option<String> {
        self.b.has(path).then(|| String::from_utf8_lossy(&self.b.read(path)).into_owned())
    }

    /// Waits until the control plane says that the node is in this state.
    #[track_caller]
    pub fn wait_for_state(&self, state: &str) {
        self.wait(&format!("edge-1 is {state}"), |pair| pair.node()["state"] == state);
    }

    /// Waits until the node has reported that revision as applied.
    #[track_caller]
    pub fn wait_for_applied(&self, revision: u64) {
        self.wait(&format!("revision {revision} is applied"), |pair| {
            pair.node()["revision"]["applied"] == revision
        });
    }

    /// Waits until both ends say that the link is up.
    #[track_caller]
    pub fn wait_for_both_ends(&self) {
        self.wait("the link is up at both ends", |pair| {
            pair.status()["link"]["up"].is_object() && !pair.session().is_null()
        });
    }

    /// Waits until both ends say that the link is up, on one connection only.
    #[track_caller]
    pub fn wait_for_link(&self) {
        self.wait("the link is up at both ends, once", |pair| {
            pair.status()["link"]["up"].is_object()
                && !pair.session().is_null()
                && connections(&pair.a, "sport") == 1
                && connections(&pair.b, "dport") <= 1
        });
    }

    /// Waits until `condition` holds.
    #[track_caller]
    pub fn wait(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        wait::until_true(what, SOON, || condition(self));
    }
}

/// How many connections of the link a machine believes to be open.
fn connections(machine: &Machine, side: &str) -> usize {
    machine.must(&["ss", "-Htn", "state", "established", side, "=", &format!(":{PORT}")]).lines().count()
}
