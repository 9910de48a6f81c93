//! The API on the local socket: the same frames without TLS, for the operator's command line and every integration on
//! this machine. Who may speak is the kernel's word about the peer, never the peer's own (S-21). One actor `api`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_actors::socket::{self, InTheWay};
use tenure_actors::{Address, Child};
use tokio::net::UnixListener;

use crate::ground::Ground;
use crate::plane::Plane;

mod actor;
mod dispatch;
mod peer;

pub use actor::{MOST_PEERS, MOST_WAITING};
use actor::{Msg, Receiving};

/// The socket could not be had.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// A socket's path is bounded by the kernel.
    #[error("the path of the socket is too long: {}", path.display())]
    TooLong {
        /// The path.
        path: PathBuf,
    },
    /// Something that is not ours lies there, or somebody listens.
    #[error(transparent)]
    InTheWay(#[from] InTheWay),
    /// The system does not let us.
    #[error("the socket {} cannot be made", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// What it said.
        #[source]
        source: std::io::Error,
    },
}

/// The group whose members hold the whole fleet. Where it does not exist, root and we ourselves do.
const GROUP: &str = "tenure";
const LONGEST: usize = 107;

/// Makes the socket, 0660. Made beside and renamed, so that it is never open wider than that; one that an earlier run
/// left is replaced, and what anybody else has there is not.
pub fn bind(ground: &Ground) -> Result<UnixListener, SocketError> {
    let path = ground.socket();
    let beside = ground.run().join(".api.sock.new");
    if beside.as_os_str().len() > LONGEST {
        return Err(SocketError::TooLong { path });
    }
    socket::vacant(&path, &path)?;
    let failed = |source| SocketError::Io { path: path.clone(), source };
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    let socket = UnixListener::bind(&beside).map_err(failed)?;
    give(&beside).map_err(failed)?;
    std::fs::rename(&beside, &path).map_err(failed)?;
    Ok(socket)
}

fn give(path: &Path) -> std::io::Result<()> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660))?;
    if let Ok(Some(group)) = nix::unistd::Group::from_name(GROUP) {
        // Whoever is not root and not in that group cannot give it away; then it stays our own.
        let _ = nix::unistd::chown(path, None, Some(group.gid));
    }
    Ok(())
}

/// The actor for the tree. The socket outlives its restarts.
pub fn child(plane: &Arc<Plane>, socket: &Arc<UnixListener>) -> Child {
    let (plane, socket) = (Arc::clone(plane), Arc::clone(socket));
    Child::new::<Receiving>("api", Address::<Msg>::vacant(), move || {
        (Receiving, actor::Seed { plane: Arc::clone(&plane), socket: Arc::clone(&socket) })
    })
}
