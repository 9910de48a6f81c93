//! One booted system: the shell that starts nspawn again when the machine reboots, nspawn below it, the machine's
//! process 1 below that. Only these three are ever ended, each by its pid.

use std::fs::{self, File};
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::cgroup::Cgroup;
use super::tool::Tool;
use super::wait::try_for;

/// A machine that was started and not yet ended by us; it may have powered itself off.
pub(super) struct Booted {
    supervisor: Child,
}

/// What a machine is started from.
pub(super) struct Parts<'a> {
    pub(super) namespace: &'a Path,
    pub(super) root: &'a Path,
    /// Unique to this machine of this run.
    pub(super) name: &'a str,
    pub(super) host_name: &'a str,
    /// Names the bridge; read anew at each boot, so that a cut machine that reboots stays cut.
    pub(super) bridge: &'a Path,
    pub(super) cgroup: &'a Cgroup,
    pub(super) console: &'a File,
}

impl Booted {
    /// Starts the machine; it is not up yet when this returns.
    pub(super) fn start(parts: &Parts<'_>) -> Self {
        let (namespace, root, bridge) = (text(parts.namespace), text(parts.root), text(parts.bridge));
        let doors = parts.cgroup.doors();
        let mut command =
            vec!["sh", "-c", SUPERVISOR, "lab", &namespace, &root, parts.name, parts.host_name, &bridge];
        command.extend(doors.iter().map(String::as_str));
        let supervisor = Tool::new(&command)
            .environment("SYSTEMD_NSPAWN_UNIFIED_HIERARCHY", "1")
            // Its locks would stay on the build machine; nobody else boots this root.
            .environment("SYSTEMD_NSPAWN_LOCK", "0")
            .start_logged(parts.console);
        Self { supervisor }
    }

    /// The machine's process 1, once it runs.
    pub(super) fn leader(&self) -> Option<Pid> {
        let nspawn = self.nspawn()?;
        children(nspawn).into_iter().find(|pid| is_first_of_a_namespace(*pid))
    }

    fn nspawn(&self) -> Option<Pid> {
        let supervisor = Pid::from_raw(i32::try_from(self.supervisor.id()).ok()?);
        children(supervisor).into_iter().find(|pid| {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            name.trim_end() == "systemd-nspawn"
        })
    }

    /// Whether it still runs: false after it powered itself off.
    pub(super) fn runs(&mut self) -> bool {
        self.supervisor.try_wait().is_ok_and(|ended| ended.is_none())
    }

    /// Pulls the plug: nothing inside is told. Says whether everything of the machine is gone.
    pub(super) fn end(mut self, cgroup: &Cgroup) -> bool {
        // Process 1 takes all others of its namespace with it; nspawn and the supervisor then end by themselves, so that
        // each is waited for by its parent.
        for pid in [self.leader(), self.nspawn()].into_iter().flatten() {
            let _ = kill(pid, Signal::SIGKILL);
            if self.ends_within(Duration::from_secs(5)) {
                break;
            }
        }
        let _ = self.supervisor.kill();
        let _ = self.supervisor.wait();
        // What was being started just then is found as a member of the group.
        try_for(Duration::from_secs(5), || cgroup.is_empty().then_some(())).is_some() || cgroup.end_members()
    }

    fn ends_within(&mut self, deadline: Duration) -> bool {
        try_for(deadline, || (!self.runs()).then_some(())).is_some()
    }
}

fn children(parent: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else { return Vec::new() };
    let lists = threads
        .flatten()
        .map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>())
        .map(Pid::from_raw)
        .collect()
}

/// Whether this process is number 1 of a namespace below ours.
fn is_first_of_a_namespace(pid: Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
    let ids: Vec<&str> = ids.split_whitespace().collect();
    ids.len() > 1 && ids.last() == Some(&"1")
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// nspawn without a scope of systemd's ends with 133 when the machine reboots, and is to be started again. It must stand
/// in a group of its own. `nsenter`, not `ip netns exec`: that one remounts /sys and hides the groups.
const SUPERVISOR: &str = r#"
namespace=$1 root=$2 name=$3 host_name=$4 bridge=$5
shift 5
for door do echo $$ >"$door" || exit; done
while :; do
    nsenter --net="$namespace" systemd-nspawn --register=no --keep-unit --quiet --directory="$root" \
        --machine="$name" --hostname="$host_name" --boot --network-bridge="$(cat "$bridge")" --capability=all
    [ $? -eq 133 ] || exit
done
"#;
