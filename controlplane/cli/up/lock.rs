//! One `up` at a time works in a state folder. The kernel holds the lock and drops it with the process; the text in
//! it names the holder.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use tenure_protocol::refusal::Refusal;
use tenure_protocol::text::shown;

/// Held while it lives.
#[derive(Debug)]
pub(crate) struct Held {
    _file: Flock<File>,
}

pub(crate) fn hold(path: &Path, state: &Path) -> Result<Held, Refusal> {
    let flags = nix::fcntl::OFlag::O_NOFOLLOW.bits();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags)
        .open(path)
        .map_err(|error| unusable(path, &error.to_string()))?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(mut file) => {
            let written = file
                .set_len(0)
                .and_then(|()| file.rewind())
                .and_then(|()| writeln!(file, "{}", std::process::id()));
            written.map_err(|error| unusable(path, &error.to_string()))?;
            Ok(Held { _file: file })
        }
        Err((file, Errno::EWOULDBLOCK)) => {
            let mut text = String::new();
            // Whoever holds it may not have written its name yet.
            let _ = file.take(64).read_to_string(&mut text);
            Err(taken(state, text.trim()))
        }
        Err((_, error)) => Err(unusable(path, error.desc())),
    }
}

fn taken(state: &Path, pid: &str) -> Refusal {
    let who = if pid.is_empty() {
        "another `tenure up`".to_owned()
    } else {
        format!("`tenure up` with pid {}", shown(pid, 20))
    };
    Refusal::new(
        "state_held",
        format!("{who} works in {}", state.display()),
        "two would write the same stores; nothing was started",
        "use the one that runs, stop it with Ctrl-C in its terminal, or name another folder with --root DIR",
    )
}

fn unusable(path: &Path, why: &str) -> Refusal {
    Refusal::new(
        "cannot_lock",
        format!("{} cannot be locked: {why}", path.display()),
        "nobody could tell whether another `tenure up` works there; nothing was started",
        "name a folder of yours, on a local disk, with --root DIR",
    )
}

#[cfg(test)]
mod tests;
