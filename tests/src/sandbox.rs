//! A control plane and a host of one machine, as two real processes in a folder of their own, without root.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::program::{Ran, Running, run};
use crate::wait;

/// How long anything that is waited for may take.
pub const SOON: Duration = Duration::from_secs(30);

/// Which programs the two daemons are: by name those that are shipped, by path others.
#[derive(Debug, Clone, Copy)]
pub struct Programs {
    /// The control plane.
    pub control: &'static str,
    /// The host.
    pub host: &'static str,
}

const SHIPPED: Programs = Programs { control: "tenure-control", host: "tenure-host" };

/// A folder with a control plane's root, a host's root, and a fleet folder.
pub struct Sandbox {
    folder: tempfile::TempDir,
    port: u16,
    programs: Programs,
    /// The control plane, while it runs.
    pub control: Option<Running>,
    /// The host, while it runs.
    pub host: Option<Running>,
}

impl Sandbox {
    /// An empty one; nothing runs.
    pub fn empty() -> Self {
        Self::of(SHIPPED)
    }

    /// The same, of other programs.
    pub fn of(programs: Programs) -> Self {
        let folder = tempfile::Builder::new().prefix("tenure-").tempdir().expect("a folder for the test");
        let sandbox = Self { folder, port: free_port(), programs, control: None, host: None };
        for place in ["control", "machine/etc/tenure", "fleet"] {
            std::fs::create_dir_all(sandbox.at(place)).expect("a folder for the test");
        }
        // Drift is looked for every second instead of every ten minutes.
        sandbox.write("machine/etc/tenure/host.toml", "timer = \"1s\"\n");
        sandbox
    }

    /// One whose control plane and host run and whose node `edge-1` is enrolled and ready.
    pub fn enrolled(invite: &[&str]) -> Self {
        let mut sandbox = Self::empty();
        sandbox.start_control();
        sandbox.start_host();
        sandbox.enrol("edge-1", invite);
        sandbox.wait_for_state("edge-1", "ready");
        sandbox
    }

    /// A path inside the folder.
    pub fn at(&self, place: &str) -> PathBuf {
        self.folder.path().join(place)
    }

    /// A path inside the host's root, as a declaration names it.
    pub fn machine(&self, path: &str) -> PathBuf {
        self.at("machine").join(path.trim_start_matches('/'))
    }

    /// Writes a file, with the folders above it.
    pub fn write(&self, place: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(place);
        std::fs::create_dir_all(path.parent().expect("below the folder")).expect("a folder for the test");
        std::fs::write(&path, text).expect("a file for the test");
        path
    }

    /// The text of a file of the machine; none when it is not there.
    pub fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.machine(path)).ok()
    }

    /// Starts the control plane and waits until it answers.
    pub fn start_control(&mut self) {
        let address = self.address();
        self.start_control_advertising(&address);
    }

    /// The same, with another address in its tokens than the one it listens on.
    pub fn start_control_advertising(&mut self, advertise: &str) {
        self.spawn_control(advertise, &[]);
        self.wait("the control plane answers", |sandbox| sandbox.tenure(&["nodes"]).code == 0);
    }

    /// Starts the control plane and waits for nothing.
    pub fn spawn_control(&mut self, advertise: &str, environment: &[(&str, &str)]) {
        let address = self.address();
        let root = text(&self.at("control"));
        let arguments = ["run", "--root", &root, "--listen", &address, "--advertise", advertise];
        let log = self.at("control.log");
        self.control = Some(Running::start(self.programs.control, &arguments, environment, log));
    }

    /// Starts the host and waits for nothing.
    pub fn spawn_host(&mut self, environment: &[(&str, &str)]) {
        let root = text(&self.at("machine"));
        let arguments = ["run", "--root", &root, "--sandbox"];
        let log = self.at("host.log");
        self.host = Some(Running::start(self.programs.host, &arguments, environment, log));
    }

    /// Starts the host and waits until it answers.
    pub fn start_host(&mut self) {
        self.spawn_host(&[]);
        self.wait("the host answers", |sandbox| sandbox.host(&["status"]).code == 0);
    }

    /// Kills the control plane as a power cut would.
    pub fn kill_control(&mut self) {
        self.control.take().expect("it runs").kill();
    }

    /// Kills the host as a power cut would.
    pub fn kill_host(&mut self) {
        self.host.take().expect("it runs").kill();
    }

    /// Where the control plane listens.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Runs the operator's command line.
    pub fn tenure(&self, arguments: &[&str]) -> Ran {
        let socket = text(&self.at("control/run/tenure-control/api.sock"));
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--socket", &socket]).collect();
        run("tenure", &arguments, self.folder.path())
    }

    /// Runs one of the host's own commands.
    pub fn host(&self, arguments: &[&str]) -> Ran {
        let root = text(&self.at("machine"));
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--root", &root, "--sandbox"]).collect();
        run(self.programs.host, &arguments, self.folder.path())
    }

    /// Invites `node` and returns the token.
    pub fn invite(&self, node: &str, more: &[&str]) -> String {
        let arguments: Vec<&str> = ["invite", node].into_iter().chain(more.iter().copied()).collect();
        self.tenure(&arguments).expect(0).out.trim().to_owned()
    }

    /// Invites `node` and hands the token to the host.
    pub fn enrol(&self, node: &str, invite: &[&str]) {
        let token = self.invite(node, invite);
        self.redeem(&token).expect(0);
    }

    /// Hands a token to the host.
    pub fn redeem(&self, token: &str) -> Ran {
        let file = self.write("token", token);
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&file, private).expect("the token's file can be closed");
        self.host(&["enrol", "--token-file", &text(&file)])
    }

    /// Writes a fleet folder with one module `web` for `edge-1`.
    pub fn module(&self, text: &str) {
        self.write("fleet/fleet.toml", "[node.\"edge-1\"]\nmodules = [\"web\"]\n");
        self.write(
            "fleet/modules/web/module.toml",
            format!("[module]\nname = \"web\"\nversion = \"1\"\n{text}"),
        );
    }

    /// Declares the fleet folder and waits until every node is done with it.
    pub fn declare(&self, more: &[&str]) -> Ran {
        let folder = text(&self.at("fleet"));
        let arguments: Vec<&str> =
            ["declare", &folder, "--wait=30s"].into_iter().chain(more.iter().copied()).collect();
        self.tenure(&arguments)
    }

    /// What `tenure node edge-1 --json` says.
    pub fn node(&self) -> Value {
        self.tenure(&["node", "edge-1", "--json"]).expect(0).json()
    }

    /// In which column of `tenure rollout` the node stands.
    pub fn standing(&self) -> String {
        let rollout = self.tenure(&["rollout", "--json"]).expect(0).json();
        let stands = |column: &&&str| {
            rollout[**column]
                .as_array()
                .is_some_and(|nodes| nodes.iter().any(|node| node["node"] == "edge-1"))
        };
        ["applied", "failed", "outstanding"]
            .iter()
            .find(stands)
            .map_or_else(|| rollout.to_string(), ToString::to_string)
    }

    /// What `tenure node` says of one resource; null when it does not name it.
    pub fn resource(&self, key: &str) -> Value {
        let node = self.node();
        let resources = node["resources"].as_array().cloned().unwrap_or_default();
        resources.into_iter().find(|resource| resource["key"] == key).unwrap_or_default()
    }

    /// Waits until `tenure nodes` says that the node is in this state.
    pub fn wait_for_state(&self, node: &str, state: &str) {
        self.wait(&format!("{node} is {state}"), |sandbox| {
            let nodes = sandbox.tenure(&["nodes", "--json"]).json();
            nodes
                .as_array()
                .is_some_and(|nodes| nodes.iter().any(|line| line["node"] == node && line["state"] == state))
        });
    }

    /// Waits until `condition` holds of this sandbox.
    pub fn wait(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        wait::until_true(what, SOON, || condition(self));
    }

    /// The kinds of the events the control plane lists.
    pub fn events(&self) -> Vec<Value> {
        self.tenure(&["events", "--json"]).expect(0).json().as_array().cloned().unwrap_or_default()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // The host first, so that it does not spend its last second on a lost link.
        self.host.take();
        self.control.take();
    }
}

/// A port of the loopback that nobody listens on now.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its number").port()
}

/// A path as an argument.
pub fn text(path: &Path) -> String {
    path.to_str().expect("test folders have plain names").to_owned()
}
