//! Where everything of a control plane lies, under one root, so that a test or a sandbox owns a whole tree.
//! It makes folders with their modes and files whole or not at all; it never reads what they hold.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::steps;

/// The places of one control plane.
#[derive(Debug, Clone)]
pub struct Ground {
    root: PathBuf,
}

/// A place cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum GroundError {
    /// It could not be made or written.
    #[error("{} cannot be made or written", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Whoever it belongs to could exchange everything in it; and what root wrote there, they could not use again.
    #[error("{} belongs to user {owner}, and this runs as user {us}", path.display())]
    Foreign {
        /// Which.
        path: PathBuf,
        /// The number of the user it belongs to.
        owner: u32,
        /// Ours.
        us: u32,
    },
}

impl Ground {
    /// Everything below `root`; `/` for the one of this machine.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// What the operator configured.
    pub fn config(&self) -> PathBuf {
        self.root.join("etc/tenure/control.toml")
    }

    /// Store and keys; 0700.
    pub fn state(&self) -> PathBuf {
        self.root.join("var/lib/tenure-control")
    }

    /// The store.
    pub fn store(&self) -> PathBuf {
        self.state().join("store.db")
    }

    /// The key of the certificate authority; 0600.
    pub fn ca_key(&self) -> PathBuf {
        self.state().join("ca.key")
    }

    /// The certificate of the authority.
    pub fn ca_certificate(&self) -> PathBuf {
        self.state().join("ca.pem")
    }

    /// The key all tokens are made under; 0600.
    pub fn master_key(&self) -> PathBuf {
        self.state().join("master.key")
    }

    /// The folder of the socket.
    pub fn run(&self) -> PathBuf {
        self.root.join("run/tenure-control")
    }

    /// Where operators and integrations speak to us.
    pub fn socket(&self) -> PathBuf {
        self.run().join("api.sock")
    }

    /// Makes the folders that are not there. One that is there must be ours; its mode is put right.
    pub fn create(&self) -> Result<(), GroundError> {
        self.folder(&self.state(), 0o700)?;
        self.folder(&self.run(), 0o755)
    }

    fn folder(&self, path: &Path, mode: u32) -> Result<(), GroundError> {
        let failed = |source| GroundError::Io { path: path.to_owned(), source };
        DirBuilder::new().recursive(true).mode(mode).create(path).map_err(failed)?;
        let (owner, us) = (path.metadata().map_err(failed)?.uid(), nix::unistd::geteuid().as_raw());
        if owner != us {
            return Err(GroundError::Foreign { path: path.to_owned(), owner, us });
        }
        std::fs::set_permissions(path, Permissions::from_mode(mode)).map_err(failed)
    }
}

/// Puts `bytes` at `path` as a file of mode 0600: written beside, synced and renamed, so that a crash leaves the old
/// file, the new one, or none, and never a half.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), GroundError> {
    let failed = |source| GroundError::Io { path: path.to_owned(), source };
    let beside = path.with_extension("new");
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside).map_err(failed)?;
    let write = || file.write_all(bytes).and_then(|()| file.sync_all());
    steps::KEY_WRITTEN.take(write).map_err(failed)?;
    steps::KEY_PLACED.take(|| std::fs::rename(&beside, path)).map_err(failed)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
}
