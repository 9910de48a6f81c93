//! What an operator reads where a store cannot be worked with: each state in words of its own, so that nobody looks for
//! the fault elsewhere (O-70).

use std::error::Error;
use std::io::ErrorKind;

use tenure_actors::database::rusqlite::{self, ErrorCode};
use tenure_actors::database::{DatabaseError, Obstacle, OpenError};
use tenure_protocol::refusal::Explain;

use super::OpenStoreError;

/// What keeps a store from being opened that may well be good.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// There is no room for what SQLite needs beside it.
    Full,
    /// The file or its file system takes no writes.
    ReadOnly,
    /// Something else; its own words say it.
    Other,
}

impl Cause {
    fn of(source: &(dyn Error + 'static)) -> Self {
        let mut source = Some(source);
        while let Some(error) = source {
            let sqlite = error.downcast_ref::<rusqlite::Error>().and_then(rusqlite::Error::sqlite_error_code);
            match (error.downcast_ref::<DatabaseError>(), error.downcast_ref::<std::io::Error>()) {
                _ if sqlite == Some(ErrorCode::DiskFull) => return Self::Full,
                _ if sqlite == Some(ErrorCode::ReadOnly) => return Self::ReadOnly,
                (Some(DatabaseError::Full), _) => return Self::Full,
                (Some(DatabaseError::ReadOnly), _) => return Self::ReadOnly,
                (_, Some(error)) => match error.kind() {
                    ErrorKind::StorageFull | ErrorKind::QuotaExceeded => return Self::Full,
                    ErrorKind::ReadOnlyFilesystem => return Self::ReadOnly,
                    _ => {}
                },
                _ => {}
            }
            source = error.source();
        }
        Self::Other
    }
}

/// Whether a little more room would open it.
pub(super) fn is_full(error: &OpenError) -> bool {
    match error {
        OpenError::CannotOpen { why, .. } => *why == Obstacle::Full,
        OpenError::Migration { source, .. } => Cause::of(source.as_ref()) == Cause::Full,
        OpenError::Absent { .. }
        | OpenError::Empty { .. }
        | OpenError::NotADatabase { .. }
        | OpenError::NotOurs { .. }
        | OpenError::Newer { .. }
        | OpenError::Locked { .. }
        | OpenError::Damaged { .. }
        | OpenError::OnNetwork { .. } => false,
    }
}

impl OpenStoreError {
    fn cause(&self) -> Cause {
        match self {
            Self::Open(OpenError::CannotOpen { why: Obstacle::Full, .. }) => Cause::Full,
            Self::Open(OpenError::CannotOpen { why: Obstacle::ReadOnly, .. }) => Cause::ReadOnly,
            Self::Open(OpenError::Migration { source, .. }) => Cause::of(source.as_ref()),
            Self::Open(_) => Cause::Other,
            Self::SetAside { source, .. } => Cause::of(source),
            Self::First { source, .. } => Cause::of(source),
        }
    }
}

impl Explain for OpenStoreError {
    fn code(&self) -> &'static str {
        match self {
            Self::Open(OpenError::Absent { .. }) => "store_absent",
            Self::Open(OpenError::Newer { .. }) => "store_newer",
            Self::Open(OpenError::Locked { .. }) => "store_locked",
            Self::Open(OpenError::NotOurs { .. }) => "store_not_ours",
            Self::Open(OpenError::OnNetwork { .. }) => "store_on_network",
            Self::Open(
                OpenError::Damaged { .. } | OpenError::NotADatabase { .. } | OpenError::Empty { .. },
            )
            | Self::SetAside { .. } => "store_damaged",
            Self::Open(OpenError::Migration { .. } | OpenError::CannotOpen { .. }) | Self::First { .. } => {
                match self.cause() {
                    Cause::Full => "store_full",
                    Cause::ReadOnly => "store_read_only",
                    Cause::Other => "store_unreadable",
                }
            }
        }
    }

    fn meaning(&self) -> String {
        let means = match self {
            Self::Open(OpenError::Absent { .. }) => "no host has run here yet",
            Self::Open(OpenError::Newer { .. }) => {
                "a newer tenure-host has used it; this one would misread it, so it changes nothing"
            }
            Self::Open(OpenError::Locked { .. }) => {
                "another tenure-host works with it; two would undo each other's work"
            }
            Self::Open(OpenError::NotOurs { .. }) => "something else lies where the host's store belongs",
            Self::Open(OpenError::OnNetwork { .. }) => "locks do not hold there between machines",
            Self::Open(
                OpenError::Damaged { .. } | OpenError::NotADatabase { .. } | OpenError::Empty { .. },
            )
            | Self::SetAside { .. } => {
                "what this host owns cannot be read from it; nothing was changed, and nothing is removed because of it"
            }
            Self::Open(OpenError::Migration { .. } | OpenError::CannotOpen { .. }) | Self::First { .. } => {
                "the host does not know what it owns, so it changes nothing; the store itself was not touched"
            }
        };
        means.to_owned()
    }

    fn remedy(&self) -> String {
        match self {
            Self::Open(OpenError::Absent { .. }) => "start the host with `tenure-host run`".to_owned(),
            Self::Open(OpenError::Newer { .. }) => "install that version of tenure-host again".to_owned(),
            Self::Open(OpenError::Locked { pid: Some(pid), .. }) => {
                format!("ask the host that runs (process {pid}), or stop it first")
            }
            Self::Open(OpenError::Locked { pid: None, .. }) => {
                "ask the host that runs, or stop it first".to_owned()
            }
            Self::Open(OpenError::NotOurs { path, .. } | OpenError::OnNetwork { path, .. }) => {
                format!("move {} to where it belongs, then start the host again", path.display())
            }
            Self::Open(
                OpenError::Damaged { path, .. }
                | OpenError::NotADatabase { path }
                | OpenError::Empty { path },
            ) => format!(
                "put a good copy of {} in its place, or start the host (`systemctl start tenure-host`): it keeps the \
                 damaged one aside, says so, and begins a new one",
                path.display()
            ),
            Self::Open(OpenError::Migration { path, .. } | OpenError::CannotOpen { path, .. })
            | Self::SetAside { path, .. }
            | Self::First { path, .. } => {
                let path = path.display();
                match self.cause() {
                    Cause::Full => format!(
                        "make room on the file system of {path}; a few hundred KiB are enough, and the host that \
                         `systemctl` keeps starting then goes on by itself"
                    ),
                    Cause::ReadOnly => format!(
                        "look in the kernel's log (`dmesg`) why the file system of {path} takes no writes, then mount it \
                         writable again (`mount -o remount,rw`; `findmnt -T {path}` names it); the host that `systemctl` keeps starting then goes \
                         on by itself"
                    ),
                    Cause::Other => format!("look at {path} and its disk, then start the host again"),
                }
            }
        }
    }
}
