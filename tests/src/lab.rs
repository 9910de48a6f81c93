//! Real machines for the tests: whole systems under systemd-nspawn on a network of their own, booted in a second.
//! A [`Lab`] belongs to one test: its names are unique to this run, its network reaches nothing outside it, and what it
//! made is gone when the last of it is dropped, also after a panic; what a killed run left is swept by the next one.
//! Logs are kept of tests that fail, and of all where `TENURE_LAB_KEEP` is set.
//! It never touches the build machine's own network, services or packages. The test binary `lab` uses it.
//!
//! ```no_run
//! use tenure_tests::lab::{Base, Lab};
//! let lab = Lab::new("first_node");
//! let a = lab.machine("a", Base::Bookworm);
//! a.must(&["systemctl", "is-system-running"]);
//! ```

use std::path::Path;
use std::sync::Arc;

pub use apt::{AptRepository, Trust};
pub use base::Base;
pub use deb::Deb;
pub use machine::{Machine, Volume};
pub use pair::{PORT, Pair, SOON};
pub use proxy::{Direction, Proxy};
pub use snapshot::{Difference, Snapshot};
pub use tarball::Tarball;
pub use tool::Output;

use bed::Bed;

mod apt;
mod base;
mod bed;
mod boot;
mod cache;
mod cgroup;
mod deb;
mod files;
mod machine;
mod pair;
mod proxy;
mod run;
mod snapshot;
mod sweep;
mod tarball;
mod tool;
mod wait;

/// One test's machines and the network between them.
pub struct Lab {
    bed: Arc<Bed>,
}

impl Lab {
    /// Sweeps what killed runs left, then makes this run's folder, network namespace and bridge. Panics, naming what to
    /// install, where the lab cannot run.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { bed: Arc::new(Bed::make(name)) }
    }

    /// Makes a machine with an address of its own and boots it; returns when its service manager has settled. The name
    /// is its host name too.
    #[must_use]
    pub fn machine(&self, name: &str, base: Base) -> Machine {
        let machine = self.machine_off(name, base);
        machine.boot();
        machine
    }

    /// Like [`machine`](Self::machine), but not booted: for what has to be in place before the first boot.
    #[must_use]
    pub fn machine_off(&self, name: &str, base: Base) -> Machine {
        Machine::make(&self.bed, name, base)
    }

    /// Runs `work` on a thread inside the lab's network: its sockets, and those of threads it starts, are in the lab.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.bed.inside(work)
    }

    /// The lab's own address, on the bridge: where proxies listen.
    #[must_use]
    pub fn address(&self) -> std::net::Ipv4Addr {
        self.bed.address(bed::OURS)
    }

    /// A folder of this run; it is gone at the end.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.bed.run.folder
    }

    /// Where this run's logs are: kept only if the test fails.
    #[must_use]
    pub fn logs(&self) -> &Path {
        &self.bed.run.logs
    }
}
