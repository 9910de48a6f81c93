//! Why the daemon does not start, in words for whoever reads its journal. Each cause has a code of its own, and none is
//! told under another's name (O-70).

use std::path::Path;

use tenure_actors::database::{Obstacle, OpenError};
use tenure_actors::file::FileError;
use tenure_actors::socket::InTheWay;
use tenure_protocol::id::Millis;
use tenure_protocol::refusal::{Explain, chain};
use tenure_protocol::token::NoMasterKey;

use super::StartRefusal;
use crate::api::SocketError;
use crate::fleet::invitation::until;
use crate::ground::GroundError;
use crate::keys::KeyError;
use crate::listener::ListenError;

/// It starts all the same, for whoever looks at nodes and declares (N-04); and says what it cannot do meanwhile.
pub(super) fn without_master_key(why: &KeyError) {
    tracing::error!(
        code = "no_master_key",
        means = "tokens are neither made nor judged, and sessions neither opened nor renewed; everything else goes on",
        "do" = "put the key file back as it was, owned by the user this runs as and closed to others, and start again",
        "{NoMasterKey}: {}",
        chain(why)
    );
}

impl Explain for StartRefusal {
    fn code(&self) -> &'static str {
        match self {
            Self::Ground(GroundError::Foreign { .. }) => "directories_not_made",
            Self::Ground(GroundError::Io { source, .. }) => match Obstacle::of(source) {
                Obstacle::Full => "state_full",
                Obstacle::ReadOnly => "state_read_only",
                Obstacle::Denied | Obstacle::Failing | Obstacle::Busy | Obstacle::Other => {
                    "directories_not_made"
                }
            },
            Self::Keys(KeyError::Ground(GroundError::Foreign { .. })) => "keys_not_made",
            Self::Keys(KeyError::Ground(GroundError::Io { source, .. })) => match Obstacle::of(source) {
                Obstacle::Full => "state_full",
                Obstacle::ReadOnly => "state_read_only",
                Obstacle::Denied | Obstacle::Failing | Obstacle::Busy | Obstacle::Other => "keys_not_made",
            },
            Self::Config(_) => "config_unusable",
            Self::Open(error) => open_code(error),
            Self::StoreGone(_) => "store_gone",
            Self::LogGone(_) => "store_log_gone",
            Self::Store(error) => error.code(),
            Self::Keys(KeyError::Missing { .. }) => "key_missing",
            Self::Keys(
                KeyError::Damaged { .. }
                | KeyError::Foreign { .. }
                | KeyError::Unreadable(_)
                | KeyError::Tls(_),
            ) => "key_unreadable",
            Self::Keys(KeyError::Randomness(_) | KeyError::Certificate(_)) => "keys_not_made",
            Self::Listen(ListenError::InUse { .. }) => "address_in_use",
            Self::Listen(ListenError::Io { .. }) => "cannot_listen",
            Self::Socket(SocketError::InTheWay(InTheWay::InUse { .. })) => "socket_in_use",
            Self::Socket(SocketError::InTheWay(InTheWay::NotASocket { .. })) => "socket_in_the_way",
            Self::Socket(_) => "socket_not_made",
            Self::Part(_) | Self::Nodes(_) => "not_started",
        }
    }

    fn meaning(&self) -> String {
        match self {
            Self::Open(OpenError::Locked { .. }) => "one control plane at a time runs on a store",
            Self::Open(OpenError::OnNetwork { .. }) => {
                "locks do not hold there between machines, so that two control planes could write the same store"
            }
            Self::Open(OpenError::CannotOpen { .. }) => {
                "the store was not touched, and nothing is known to be wrong with it; machines are held as they are"
            }
            Self::LogGone(_) => {
                "what was answered last is not in the store any more; nothing was changed, so that the log can still be put back"
            }
            Self::Open(OpenError::Newer { .. }) => {
                "a newer control plane has used it; this one would misread it"
            }
            Self::Open(OpenError::NotOurs { .. }) => {
                "something else lies where the control plane's store belongs"
            }
            Self::Open(_) | Self::StoreGone(_) | Self::Keys(_) => {
                "nothing was created or replaced: a control plane without its store or keys is another one"
            }
            Self::Listen(_) => "hosts could not reach it",
            Self::Ground(_)
            | Self::Config(_)
            | Self::Store(_)
            | Self::Socket(_)
            | Self::Part(_)
            | Self::Nodes(_) => "the control plane does not run; machines are held as they are",
        }
        .to_owned()
    }

    fn remedy(&self) -> String {
        match self {
            Self::Open(error) => open_remedy(error),
            Self::StoreGone(_) => "put the store back beside its keys, or a backup of it".to_owned(),
            Self::LogGone(path) => {
                let path = path.display();
                format!(
                    "put {path}-wal back; if another program wrote it into the store (`sqlite3` does), or its loss is \
                     accepted, `rm {path}.lock` and start again"
                )
            }
            Self::Ground(error) => ground_remedy(error),
            Self::Keys(error) => keys(error),
            Self::Listen(ListenError::InUse { .. }) => {
                "stop what listens there, or choose another address with `--listen`".to_owned()
            }
            Self::Listen(ListenError::Io { .. }) => {
                "choose an address of this machine with `--listen` (`ip address` lists them)".to_owned()
            }
            Self::Config(_) => "put /etc/tenure/control.toml or the option right, and start again".to_owned(),
            Self::Socket(SocketError::InTheWay(InTheWay::InUse { path, pid, .. })) => match pid {
                Some(pid) => {
                    format!("see what process {pid} is (`ps {pid}`), and stop it if it should not be there")
                }
                None => format!(
                    "see who has it (`fuser {}`), and stop that if it should not be there",
                    path.display()
                ),
            },
            Self::Socket(SocketError::InTheWay(InTheWay::NotASocket { path, .. })) => {
                format!("see what it is (`ls -l {}`), and move it away", path.display())
            }
            Self::Socket(_) => {
                "look at the folder's owner and mode, or choose another with `--root`".to_owned()
            }
            Self::Store(error) => error.remedy(),
            Self::Part(_) | Self::Nodes(_) => "look at the lines before this one in the log".to_owned(),
        }
    }
}

const fn open_code(error: &OpenError) -> &'static str {
    match error {
        OpenError::Absent { .. } => "store_gone",
        OpenError::Empty { .. } => "store_empty",
        OpenError::NotADatabase { .. } => "store_not_a_database",
        OpenError::NotOurs { .. } => "store_not_ours",
        OpenError::Newer { .. } => "store_newer",
        OpenError::Locked { .. } => "store_locked",
        OpenError::Damaged { .. } => "store_damaged",
        OpenError::OnNetwork { .. } => "store_on_network",
        OpenError::Migration { .. } => "store_migration",
        OpenError::CannotOpen { why, .. } => match why {
            Obstacle::Full => "store_full",
            Obstacle::ReadOnly => "store_read_only",
            Obstacle::Denied => "store_unreadable",
            Obstacle::Failing => "store_failing",
            Obstacle::Busy => "store_busy",
            Obstacle::Other => "store_not_opened",
        },
    }
}

fn open_remedy(error: &OpenError) -> String {
    match error {
        OpenError::Locked { pid: Some(pid), since, .. } => {
            let since = since.map_or_else(String::new, |at| format!(" since {}", until(Millis(at.millis()))));
            format!("use the one that runs as process {pid}{since}, or stop it first (`kill {pid}`)")
        }
        OpenError::Locked { pid: None, path, .. } => {
            format!("stop the other one first; `fuser {}.lock` names it", path.display())
        }
        OpenError::Newer { .. } => "start the newer version again".to_owned(),
        OpenError::Absent { .. } => "put the store back, or a backup of it".to_owned(),
        OpenError::Empty { path } | OpenError::NotADatabase { path } | OpenError::Damaged { path, .. } => {
            let path = path.display();
            format!(
                "keep what is left (`mv {path} {path}.damaged`, the same for {path}-wal), then put a backup in its place"
            )
        }
        OpenError::NotOurs { path, .. } => {
            format!("move the other program's file away from {} and put the store back", path.display())
        }
        OpenError::OnNetwork { .. } => {
            "move the state directory to a disk of this machine, or choose another with `--root`".to_owned()
        }
        OpenError::Migration { path, .. } => {
            format!(
                "start the version before this one again, and report this text with a copy of {}",
                path.display()
            )
        }
        OpenError::CannotOpen { path, why, .. } => way(*why, path),
    }
}

fn ground_remedy(error: &GroundError) -> String {
    match error {
        GroundError::Foreign { path, .. } => format!(
            "run this as that user, or see who made {} and give it to the user this runs as (`chown -R`)",
            path.display()
        ),
        GroundError::Io { path, source } => match Obstacle::of(source) {
            Obstacle::Other => {
                "look at the folder's owner and mode, or choose another with `--root`".to_owned()
            }
            obstacle => way(obstacle, path),
        },
    }
}

/// What to do about what stands in the way to this file.
fn way(obstacle: Obstacle, path: &Path) -> String {
    // The nearest folder that is there, for commands that look at it.
    let folder = path.ancestors().find(|above| above.is_dir()).unwrap_or(Path::new("/")).display();
    let path = path.display();
    match obstacle {
        Obstacle::Full => {
            format!("make room on the disk that holds {folder} (`df {folder}`), then start again")
        }
        Obstacle::ReadOnly => {
            format!(
                "make the file system that holds {folder} writable (`findmnt -T {folder}` shows it), then start again"
            )
        }
        Obstacle::Denied => {
            format!(
                "give {path} back to the user that runs the control plane (`ls -l {folder}` shows whose it is)"
            )
        }
        Obstacle::Failing => format!("look at the disk that holds {folder} (`dmesg`), then start again"),
        Obstacle::Busy => {
            format!("end the program that holds {path} (`fuser {path}` names it), then start again")
        }
        Obstacle::Other => format!("look at {path} and at the folder above it, then start again"),
    }
}

fn keys(error: &KeyError) -> String {
    match error {
        KeyError::Missing { .. }
        | KeyError::Damaged { .. }
        | KeyError::Tls(_)
        | KeyError::Unreadable(FileError::Absent { .. }) => {
            "put the key files back beside the store".to_owned()
        }
        KeyError::Foreign { path, .. } => format!(
            "see who put {} there; put your own back, and give it to the user this runs as",
            path.display()
        ),
        KeyError::Unreadable(FileError::Io { path, source }) => way(Obstacle::of(source), path),
        KeyError::Unreadable(
            FileError::Link { path } | FileError::NotAFile { path, .. } | FileError::TooLarge { path, .. },
        ) => format!("see what it is (`ls -l {}`), and put the key file back in its place", path.display()),
        KeyError::Ground(error) => ground_remedy(error),
        KeyError::Randomness(_) | KeyError::Certificate(_) => {
            "find out why /dev/urandom does not work here, then start again".to_owned()
        }
    }
}

#[cfg(test)]
mod tests;
