//! What the machines of one run lie in: a network namespace with a bridge, and a second bridge that leads nowhere, for
//! links that are cut. It is shared by the lab and its machines, and removed when the last of them is dropped.

use std::fs::File;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};

use nix::sched::{CloneFlags, setns};

use super::run::Run;
use super::tool::Tool;
use super::{cache, sweep};

/// The shared ground of one run.
pub(super) struct Bed {
    pub(super) run: Run,
    next: AtomicU8,
}

impl Bed {
    pub(super) fn make(test: &str) -> Self {
        demand_what_the_lab_needs();
        let run = {
            // Under the lock: a folder whose owner is not yet written would look like a killed run's.
            let _lock = cache::lock("sweep");
            sweep::sweep();
            Run::make(test)
        };
        let bed = Self { run, next: AtomicU8::new(FIRST_MACHINE) };
        bed.make_network();
        bed
    }

    fn make_network(&self) {
        Tool::new(&["ip", "netns", "add", &self.run.name]).must();
        self.ip(&["link", "set", "lo", "up"]);
        for (bridge, hardware) in [(BRIDGE, "02:00:00:77:00:01"), (NOWHERE, "02:00:00:77:00:02")] {
            // A bridge without an address of its own borrows one of its ports', and changes it as they come and go.
            self.ip(&["link", "add", bridge, "address", hardware, "type", "bridge"]);
            self.ip(&["link", "set", bridge, "up"]);
        }
        self.ip(&["address", "add", &format!("{}/24", self.address(OURS)), "dev", BRIDGE]);
    }

    /// The address of the lab's own end, or of a machine, by its last number.
    pub(super) fn address(&self, last: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, self.run.number, last)
    }

    /// An address nobody has yet.
    pub(super) fn next_address(&self) -> Ipv4Addr {
        self.address(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Runs `ip` on the lab's network.
    pub(super) fn ip(&self, arguments: &[&str]) -> String {
        let command: Vec<&str> =
            ["ip", "-n", &self.run.name].into_iter().chain(arguments.iter().copied()).collect();
        Tool::new(&command).must()
    }

    pub(super) fn namespace(&self) -> PathBuf {
        PathBuf::from("/run/netns").join(&self.run.name)
    }

    /// Runs `work` on a thread in the lab's network. The thread ends with it, so no other thread is moved.
    pub(super) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let entered = scope.spawn(|| {
                enter(&self.namespace());
                work()
            });
            entered.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        {
            // Under the lock: a folder that is half removed would look like a killed run's.
            let _lock = cache::lock("sweep");
            sweep::remove(&self.run.folder);
        }
        if cache::keeps_logs() {
            eprintln!("lab: what the machines said is in {}", self.run.logs.display());
        } else {
            let _ = std::fs::remove_dir_all(&self.run.logs);
        }
    }
}

/// Moves the calling thread, and threads it starts later, into a network namespace; there is no way back.
pub(super) fn enter(namespace: &std::path::Path) {
    let namespace = File::open(namespace).unwrap_or_else(|error| panic!("{}: {error}", namespace.display()));
    setns(namespace, CloneFlags::CLONE_NEWNET).expect("root may enter a network namespace");
}

fn demand_what_the_lab_needs() {
    assert!(
        nix::unistd::geteuid().is_root(),
        "lab machines need root: run the lab's tests as root (`tests/run lab`)"
    );
    let missing: Vec<&str> = PROGRAMS.iter().copied().filter(|program| !is_installed(program)).collect();
    let packages: Vec<&str> = NEEDED.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(
        missing.is_empty(),
        "the lab lacks {}: as root, run `apt-get install --no-install-recommends {}`, or let `tests/run lab` do it",
        missing.join(", "),
        packages.join(" ")
    );
}

fn is_installed(program: &str) -> bool {
    ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        .iter()
        .any(|folder| PathBuf::from(folder).join(program).exists())
}

/// The Debian packages that bring [`PROGRAMS`]: one list, for people, for `tests/run` and for this message.
const NEEDED: &str = include_str!("../../lab/packages.txt");
const PROGRAMS: &[&str] = &[
    "systemd-nspawn",
    "mmdebstrap",
    "ip",
    "nsenter",
    "nft",
    "apt-ftparchive",
    "dpkg-deb",
    "gpg",
    "gpgconf",
    "journalctl",
    "ssh-keygen",
];

/// Where machines are connected.
pub(super) const BRIDGE: &str = "br0";
/// Where a cut machine is connected: nobody else is.
pub(super) const NOWHERE: &str = "nowhere";
/// The last number of the lab's own address.
pub(super) const OURS: u8 = 1;
const FIRST_MACHINE: u8 = 11;
