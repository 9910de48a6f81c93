//! One machine: an overlay on a base root, its own address, and what a test may do to it. It stays the same machine over
//! reboots and pulled plugs; dropping it removes it. Only its own processes and its own link are ever touched.

use std::fs::{self, File, OpenOptions};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::Pid;

use super::base::Base;
use super::bed::{BRIDGE, Bed};
use super::boot::{Booted, Parts};
use super::cache;
use super::cgroup::Cgroup;
use super::snapshot::Snapshot;
use super::tool::Tool;
use super::wait::try_for;
use crate::wait::until_true;

use link::Link;
pub use volume::Volume;

mod inside;
mod link;
mod volume;

/// A machine of the lab.
pub struct Machine {
    name: String,
    address: Ipv4Addr,
    folder: PathBuf,
    cgroup: Cgroup,
    state: Mutex<State>,
    made: Instant,
    // Last, so that the bed outlives everything of the machine.
    bed: Arc<Bed>,
}

struct State {
    booted: Option<Booted>,
    link: Link,
}

impl Machine {
    pub(super) fn make(bed: &Arc<Bed>, name: &str, base: Base) -> Self {
        let machine = Self {
            name: name.to_owned(),
            address: bed.next_address(),
            folder: bed.run.folder.join(name),
            cgroup: Cgroup::make(&format!("{}-{name}", bed.run.name)),
            state: Mutex::new(State { booted: None, link: Link::Joined }),
            made: Instant::now(),
            bed: Arc::clone(bed),
        };
        machine.lay_over(&base.root());
        machine.give_identity();
        machine.connect_at_boot_to(BRIDGE);
        machine
    }

    /// Its name, which is its host name too.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address on the lab's network; it stays the same.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Boots it and waits until its service manager has settled. Panics if it runs already.
    #[track_caller]
    pub fn boot(&self) {
        let console = self.log("console");
        let parts = Parts {
            namespace: &self.bed.namespace(),
            root: &self.root_folder(),
            name: &self.unique_name(),
            host_name: &self.name,
            bridge: &self.folder.join("bridge"),
            cgroup: &self.cgroup,
            console: &console,
        };
        {
            let mut state = self.state();
            assert!(state.booted.as_mut().is_none_or(|booted| !booted.runs()), "{} runs already", self.name);
            state.booted = Some(Booted::start(&parts));
        }
        self.wait_until_settled(None);
    }

    /// Reboots it from inside and waits until it has settled with a new boot id.
    #[track_caller]
    pub fn reboot(&self) {
        let before = self.boot_id();
        // The machine may be gone before the command can say that it worked.
        let _ = self.run(&["systemctl", "reboot"]);
        self.wait_until_settled(Some(&before));
    }

    /// Waits until it has settled after a reboot that something else began.
    #[track_caller]
    pub fn wait_until_rebooted(&self, boot_id_before: &str) {
        self.wait_until_settled(Some(boot_id_before));
    }

    /// Pulls its plug: nothing inside is told. What the kernel had not yet written is not lost, other than in a real
    /// power cut. Does nothing when it is off.
    pub fn kill(&self) {
        let booted = self.state().booted.take();
        if let Some(booted) = booted {
            assert!(booted.end(&self.cgroup), "some processes of {} did not end", self.name);
        }
    }

    /// Waits until `condition` holds; panics, naming this machine and `what`, after `deadline`.
    #[track_caller]
    pub fn wait_until(&self, what: &str, deadline: Duration, mut condition: impl FnMut(&Self) -> bool) {
        until_true(&format!("{} {what}", self.name), deadline, || condition(self));
    }

    /// The id of this boot.
    #[must_use]
    pub fn boot_id(&self) -> String {
        self.must(&["cat", BOOT_ID])
    }

    /// Everything that a careful operator could find changed later: see [`Snapshot`].
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(self)
    }

    /// Where its files are, seen from outside: with its own /run and /tmp while it runs.
    pub(super) fn root_seen_from_outside(&self) -> PathBuf {
        match self.leader() {
            Some(leader) => PathBuf::from(format!("/proc/{leader}/root")),
            None => self.root_folder(),
        }
    }

    fn leader(&self) -> Option<Pid> {
        self.state().booted.as_ref()?.leader()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A test that panicked while it held the lock is still cleaned up after.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// What nspawn calls it: the build machine's /run has a folder of this name.
    fn unique_name(&self) -> String {
        format!("{}-{}", self.bed.run.name, self.name)
    }

    fn root_folder(&self) -> PathBuf {
        self.folder.join("root")
    }

    fn lay_over(&self, base: &Path) {
        let [root, upper, work] = ["root", "upper", "work"].map(|part| self.folder.join(part));
        for folder in [&root, &upper, &work] {
            fs::create_dir_all(folder).expect("a folder of the machine's own");
        }
        let options =
            format!("lowerdir={},upperdir={},workdir={}", base.display(), upper.display(), work.display());
        mount(Some("overlay"), &root, Some("overlay"), MsFlags::empty(), Some(options.as_str()))
            .expect("root may mount an overlay");
    }

    fn give_identity(&self) {
        let uuid = fs::read_to_string("/proc/sys/kernel/random/uuid").expect("the kernel's own file");
        self.write("/etc/machine-id", uuid.replace('-', ""));
        self.write("/etc/hostname", format!("{}\n", self.name));
        self.write(
            "/etc/hosts",
            format!("127.0.0.1 localhost\n127.0.1.1 {}\n::1 localhost ip6-localhost\n", self.name),
        );
        let (address, gateway) = (self.address, self.bed.address(super::bed::OURS));
        self.write(
            "/etc/systemd/network/10-lab.network",
            format!("[Match]\nName=host0\n\n[Network]\nAddress={address}/24\nGateway={gateway}\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n"),
        );
        let key = self.root_folder().join("etc/ssh/ssh_host_ed25519_key").display().to_string();
        Tool::new(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", &self.name, "-f", &key]).must();
    }

    #[track_caller]
    fn wait_until_settled(&self, boot_id_before: Option<&str>) {
        let settled = try_for(BOOT, || {
            let alive = self.state().booted.as_mut().is_some_and(Booted::runs);
            if !alive {
                return Some(false);
            }
            let leader = self.leader()?;
            let root = PathBuf::from(format!("/proc/{leader}/root"));
            let boot_id = fs::read_to_string(root.join(BOOT_ID.trim_start_matches('/'))).ok()?;
            // Nothing of ours runs inside before the service manager answers: a stranger there has hung a boot.
            if Some(boot_id.trim()) == boot_id_before || !root.join("run/systemd/private").exists() {
                return None;
            }
            has_settled(leader).then_some(true)
        });
        assert!(
            settled == Some(true),
            "{} did not boot; its console is in {}",
            self.name,
            self.log_path("console").display()
        );
        self.set_link();
    }

    fn log_path(&self, what: &str) -> PathBuf {
        self.bed.run.logs.join(format!("{}.{what}", self.name))
    }

    fn log(&self, what: &str) -> File {
        let path = self.log_path(what);
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}

/// Degraded has settled, too: what failed is the test's business.
fn has_settled(leader: Pid) -> bool {
    let leader = leader.to_string();
    let command: Vec<&str> =
        inside::enter(&leader).into_iter().chain(["systemctl", "is-system-running"]).collect();
    let said = Tool::new(&command).deadline(Duration::from_secs(10)).run().stdout;
    matches!(said.trim(), "running" | "degraded")
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(booted) = self.state().booted.take()
            && !booted.end(&self.cgroup)
        {
            eprintln!("lab: some processes of {} did not end", self.name);
        }
        if cache::keeps_logs() {
            let _ = fs::write(
                self.log_path("journal"),
                self.journal_on_disk(&["--no-pager", "--quiet", "--output=short-precise"]),
            );
        }
        let _ = umount2(&self.root_folder(), MntFlags::MNT_DETACH);
        self.cgroup.remove();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// A second is usual; a build machine that compiles on all cores takes longer.
const BOOT: Duration = Duration::from_secs(90);
