//! Where everything of the host lies, under one root: `/` on a machine, a folder in a test, a rescue or a sandbox. It
//! never guesses a place from the environment. Everybody who opens a file of ours asks here for its path, and
//! [`own`] says which declared paths would reach one of them (H-02).

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

pub mod own;

/// The root under which a host lives, and whether it holds only a directory tree there (a sandbox: no owner or group
/// is set, and what is owned by the user who runs it counts as owned by root).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ground {
    root: PathBuf,
    sandbox: bool,
}

impl Ground {
    /// The ground under `root`.
    pub fn new(root: impl Into<PathBuf>, sandbox: bool) -> Self {
        Self { root: root.into(), sandbox }
    }

    /// The machine itself.
    pub fn machine() -> Self {
        Self::new("/", false)
    }

    /// The directory that everything hangs under.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether it holds a directory tree only.
    pub const fn is_sandbox(&self) -> bool {
        self.sandbox
    }

    /// The node manifest: readable by everybody.
    pub fn manifest(&self) -> PathBuf {
        self.at(MANIFEST)
    }

    /// The configuration.
    pub fn config(&self) -> PathBuf {
        self.at(CONFIG)
    }

    /// The state directory, 0700.
    pub fn state(&self) -> PathBuf {
        self.at(STATE)
    }

    /// The store.
    pub fn store(&self) -> PathBuf {
        self.state().join("store.db")
    }

    /// The node key: a file of its own, so that losing the store does not lose the identity.
    pub fn node_key(&self) -> PathBuf {
        self.state().join("node.key")
    }

    /// The directory of the socket.
    pub fn run(&self) -> PathBuf {
        self.at(RUN)
    }

    /// The local API.
    pub fn socket(&self) -> PathBuf {
        self.run().join("api.sock")
    }

    /// `absolute`, a path as the machine spells it, as it is found under this root. It follows nothing and checks
    /// nothing: for places of our own only; declared paths are walked.
    pub fn at(&self, absolute: &str) -> PathBuf {
        self.root.join(absolute.trim_start_matches('/'))
    }

    /// Makes the directories that are missing: configuration (0755), state (0700) and socket (0700); and closes a state
    /// directory that others could look into. A state or socket directory that is not ours is refused: whoever it belongs
    /// to could exchange everything in it. Called twice it changes nothing.
    pub fn create(&self) -> io::Result<()> {
        let mut open = DirBuilder::new();
        open.recursive(true).mode(0o755);
        for place in [ETC, "/var/lib", "/run"] {
            open.create(self.at(place))?;
        }
        let mut closed = DirBuilder::new();
        closed.recursive(true).mode(0o700);
        for place in [self.state(), self.run()] {
            closed.create(&place)?;
            let seen = place.metadata()?;
            if seen.uid() != nix::unistd::geteuid().as_raw() {
                let whose = format!("{} belongs to user {}", place.display(), seen.uid());
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, whose));
            }
            if seen.permissions().mode() & 0o077 != 0 {
                std::fs::set_permissions(&place, Permissions::from_mode(0o700))?;
            }
        }
        Ok(())
    }
}

const ETC: &str = "/etc/tenure";
const MANIFEST: &str = "/etc/tenure/node.json";
const CONFIG: &str = "/etc/tenure/host.toml";
const STATE: &str = "/var/lib/tenure-host";
const RUN: &str = "/run/tenure-host";
