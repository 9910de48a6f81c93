//! The place of a local socket, before a daemon binds it: free, left by an earlier life, or in the way. A socket that
//! somebody listens on is never taken from them, and what is no socket is never removed.

use std::io::ErrorKind;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, socket, sockopt};

use crate::file::kind_in_words;

#[cfg(test)]
mod tests;

/// Why a socket is not put there.
#[derive(Debug, thiserror::Error)]
pub enum InTheWay {
    /// Somebody listens there.
    #[error("the socket {} is in use{}", path.display(), by(*pid, program.as_deref()))]
    InUse {
        /// The path.
        path: PathBuf,
        /// The process that listens, as far as the kernel tells.
        pid: Option<i32>,
        /// What it runs.
        program: Option<String>,
    },
    /// Something else lies there. It was left as it is.
    #[error("{what} lies at {}, where the socket belongs", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// The system does not let us look, or take away what an earlier life left.
    #[error("the place of the socket {} cannot be had", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
}

fn by(pid: Option<i32>, program: Option<&str>) -> String {
    match (pid, program) {
        (Some(pid), Some(program)) => format!(" by {program} (process {pid})"),
        (Some(pid), None) => format!(" by process {pid}"),
        (None, _) => String::new(),
    }
}

/// Makes sure that a socket can be put at `path`: nothing lies there, or a socket that nobody of another process
/// listens on, which stays for whoever renames over it. `way` is `path` as the kernel takes it, which is at most some
/// hundred bytes.
pub fn vacant(path: &Path, way: &Path) -> Result<(), InTheWay> {
    let io = |source| InTheWay::Io { path: path.to_owned(), source };
    let kind = match path.symlink_metadata() {
        Ok(seen) => seen.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io(error)),
    };
    if !kind.is_socket() {
        return Err(InTheWay::NotASocket { path: path.to_owned(), what: kind_in_words(kind) });
    }
    match listener(way).map_err(|errno| io(errno.into()))? {
        Listens::Nobody => Ok(()),
        // An earlier life in this very process: its listener goes when that life has ended.
        Listens::Somebody(Some(pid)) if u32::try_from(pid) == Ok(std::process::id()) => Ok(()),
        Listens::Somebody(pid) => {
            Err(InTheWay::InUse { path: path.to_owned(), pid, program: pid.and_then(program) })
        }
    }
}

enum Listens {
    Nobody,
    /// Its process, where the kernel says.
    Somebody(Option<i32>),
}

/// Who would be spoken to there. It never waits: a queue that is full is somebody, too.
fn listener(way: &Path) -> Result<Listens, Errno> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let ours = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    match connect(ours.as_raw_fd(), &UnixAddr::new(way)?) {
        Ok(()) => {
            Ok(Listens::Somebody(getsockopt(&ours, sockopt::PeerCredentials).ok().map(|peer| peer.pid())))
        }
        Err(Errno::ECONNREFUSED | Errno::ENOENT) => Ok(Listens::Nobody),
        // Somebody's, of another type or too busy for us.
        Err(Errno::EAGAIN | Errno::EPROTOTYPE | Errno::EINPROGRESS) => Ok(Listens::Somebody(None)),
        Err(errno) => Err(errno),
    }
}

fn program(pid: i32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    let plain: String = name.trim().chars().filter(|c| !c.is_control()).take(64).collect();
    (!plain.is_empty()).then_some(plain)
}
