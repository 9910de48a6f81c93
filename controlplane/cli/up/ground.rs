//! Where what `up` raises lies: a sandbox has one state folder with the control plane's tree, the machine's tree and
//! the lock of `up`; on the machine itself both daemons have their ordinary places. Pure but for making what is asked
//! for.

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};

use tenure_protocol::id::Digest;
use tenure_protocol::refusal::Refusal;

/// The most bytes of a socket's path that the kernel takes.
const MOST: usize = 107;
const CONTROL: &str = "control";
const MACHINE: &str = "machine";
const CONTROL_SOCKET: &str = "run/tenure-control/api.sock";
const HOST_SOCKET: &str = "run/tenure-host/api.sock";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ground {
    state: PathBuf,
    /// The name under which `state` is reached: itself, or a short link where sockets below it would have too long
    /// a path.
    reached: PathBuf,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Two trees in a folder.
    Folder,
    /// The whole machine, which is both.
    Machine,
}

impl Ground {
    /// The machine itself, for root.
    pub(crate) fn of_the_machine() -> Self {
        Self { state: "/".into(), reached: "/".into(), place: Place::Machine }
    }

    /// The sandbox of whoever runs this, where it lies unless another place is named.
    pub(crate) fn of_this_user() -> Option<Self> {
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || absolute("HOME").map(|home| home.join(".local/state"));
        let state = absolute("XDG_STATE_HOME").or_else(home)?.join("tenure");
        Some(Self::new(state, absolute("XDG_RUNTIME_DIR").as_deref()))
    }

    /// The sandbox in this folder.
    pub(crate) fn at(state: &Path) -> std::io::Result<Self> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        Ok(Self::new(std::path::absolute(state)?, runtime.as_deref().filter(|path| path.is_absolute())))
    }

    pub(crate) fn new(state: PathBuf, runtime: Option<&Path>) -> Self {
        let reached = match runtime {
            Some(runtime) if !fits(&state) => runtime.join(short_name(&state)),
            _ => state.clone(),
        };
        Self { state, reached, place: Place::Folder }
    }

    pub(crate) fn state(&self) -> &Path {
        &self.state
    }

    /// Whether it is a directory tree apart from the machine.
    pub(crate) fn is_sandbox(&self) -> bool {
        self.place == Place::Folder
    }

    /// The root of the control plane's tree.
    pub(crate) fn control(&self) -> PathBuf {
        match self.place {
            Place::Folder => self.reached.join(CONTROL),
            Place::Machine => self.reached.clone(),
        }
    }

    /// The root of the tree that the host holds.
    pub(crate) fn machine(&self) -> PathBuf {
        match self.place {
            Place::Folder => self.reached.join(MACHINE),
            Place::Machine => self.reached.clone(),
        }
    }

    pub(crate) fn control_socket(&self) -> PathBuf {
        self.control().join(CONTROL_SOCKET)
    }

    pub(crate) fn host_socket(&self) -> PathBuf {
        self.machine().join(HOST_SOCKET)
    }

    pub(crate) fn lock(&self) -> PathBuf {
        match self.place {
            Place::Folder => self.state.join("up.lock"),
            Place::Machine => self.state.join("run/tenure-up.lock"),
        }
    }

    /// Where the control plane listened last.
    pub(crate) fn listen(&self) -> PathBuf {
        match self.place {
            Place::Folder => self.state.join("listen"),
            Place::Machine => self.state.join("var/lib/tenure-control/up.listen"),
        }
    }

    /// Where the example fleet is put; on the machine itself nowhere, for it would be declared for the machine.
    pub(crate) fn example(&self) -> Option<PathBuf> {
        self.is_sandbox().then(|| self.state.join("example"))
    }

    /// What the operator configured for the control plane.
    pub(crate) fn control_config(&self) -> PathBuf {
        self.control().join("etc/tenure/control.toml")
    }

    /// Makes the state folder and both roots, for nobody but their owner, and the short link where one is needed. The
    /// machine has everything: its daemons make their own folders.
    pub(crate) fn create(&self) -> Result<(), Refusal> {
        if !self.is_sandbox() {
            return Ok(());
        }
        if !fits(&self.reached) {
            return Err(self.too_long());
        }
        let roots = [self.state.clone(), self.state.join(CONTROL), self.state.join(MACHINE)];
        roots.iter().try_for_each(|root| folder(root))?;
        if self.reached == self.state { Ok(()) } else { self.link() }
    }

    fn link(&self) -> Result<(), Refusal> {
        // A link of that name which leads elsewhere is not ours to follow.
        if std::fs::read_link(&self.reached).is_ok_and(|to| to == self.state) {
            return Ok(());
        }
        symlink(&self.state, &self.reached).map_err(|error| cannot_make(&self.reached, &error))
    }

    fn too_long(&self) -> Refusal {
        Refusal::new(
            "path_too_long",
            format!("sockets below {} would have paths of more than {MOST} bytes", self.state.display()),
            "the kernel takes no longer ones, and there is no $XDG_RUNTIME_DIR to reach them from; nothing was started",
            "name a shorter folder with --root DIR",
        )
    }
}

fn fits(state: &Path) -> bool {
    [(CONTROL, CONTROL_SOCKET), (MACHINE, HOST_SOCKET)]
        .iter()
        .all(|(root, socket)| state.join(root).join(socket).as_os_str().len() <= MOST)
}

fn short_name(state: &Path) -> String {
    format!("tenure-{}", Digest::of(state.as_os_str().as_encoded_bytes()).short())
}

fn folder(path: &Path) -> Result<(), Refusal> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| cannot_make(path, &error))
}

fn cannot_make(path: &Path, error: &std::io::Error) -> Refusal {
    Refusal::new(
        "cannot_make_state",
        format!("{} cannot be made: {error}", path.display()),
        "the sandbox has nowhere to lie; nothing was started",
        "name a folder you may write with --root DIR",
    )
}

#[cfg(test)]
mod tests;
