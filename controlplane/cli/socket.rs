//! Finding the control plane: the socket that was named, else the one of this machine that answers. Two that answer
//! are never chosen between.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tenure_protocol::refusal::Refusal;
use tokio::net::UnixStream;

use crate::caller::Caller;
use crate::ending::Trouble;
use crate::up::ground::Ground;

const SYSTEM: &str = "/run/tenure-control/api.sock";
const VARIABLE: &str = "TENURE_SOCKET";
const WHOM: &str = "the control plane";

/// A socket, and what connecting to it came to.
#[derive(Debug)]
pub(crate) struct Tried<S> {
    pub(crate) path: PathBuf,
    pub(crate) found: Result<S, ErrorKind>,
}

/// Connects to the control plane: `named`, else the environment's, else whichever of this machine answers.
pub(crate) async fn control_plane(named: Option<&Path>) -> Result<Caller, Trouble> {
    let environment = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let paths = match named.map(Path::to_path_buf).or(environment) {
        Some(path) => vec![path],
        None => usual(),
    };
    let mut tried = Vec::new();
    for path in paths {
        let found = UnixStream::connect(&path).await.map_err(|error| error.kind());
        tried.push(Tried { path, found });
    }
    let (path, stream) = choose(tried)?;
    Caller::trusted(stream, &path, WHOM)
}

fn usual() -> Vec<PathBuf> {
    let sandbox = Ground::of_this_user().map(|ground| ground.control_socket());
    std::iter::once(PathBuf::from(SYSTEM)).chain(sandbox).collect()
}

/// The one that answers. Two, or none, is for the operator to settle.
pub(crate) fn choose<S>(tried: Vec<Tried<S>>) -> Result<(PathBuf, S), Trouble> {
    let (mut answering, mut silent) = (Vec::new(), Vec::new());
    for Tried { path, found } in tried {
        match found {
            Ok(stream) => answering.push((path, stream)),
            Err(kind) => silent.push((path, kind)),
        }
    }
    if answering.len() > 1 {
        return Err(two(&answering.iter().map(|(path, _)| path.as_path()).collect::<Vec<_>>()));
    }
    answering.pop().ok_or_else(|| none(&silent))
}

fn two(paths: &[&Path]) -> Trouble {
    let list: Vec<String> = paths.iter().map(|path| format!("--socket {}", path.display())).collect();
    Trouble::usage(
        "two_control_planes",
        "two control planes answer on this machine, and none was named",
        "they hold different fleets; nothing was asked of either",
        &format!("name one: {}", list.join(" or ")),
    )
}

fn none(silent: &[(PathBuf, ErrorKind)]) -> Trouble {
    let denied = silent.iter().find(|(_, kind)| *kind == ErrorKind::PermissionDenied);
    if let Some((path, _)) = denied {
        return Refusal::new(
            "socket_not_permitted",
            format!("you may not open {}", path.display()),
            "a control plane may run there, but its socket is for root and the group `tenure`",
            "run this as root, or become a member of the group `tenure`: that group holds the whole fleet",
        )
        .into();
    }
    let list: Vec<String> = silent.iter().map(|(path, _)| path.display().to_string()).collect();
    Refusal::new(
        "no_control_plane",
        format!("no control plane answers at {}", list.join(" or ")),
        "it does not run, or its socket lies elsewhere; nothing was asked",
        "start one with `tenure up --sandbox`, or name its socket with --socket PATH",
    )
    .into()
}

#[cfg(test)]
mod tests;
