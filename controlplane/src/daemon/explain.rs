//! Why the daemon does not start, in words for whoever reads its journal.

use tenure_actors::database::OpenError;
use tenure_protocol::refusal::Explain;

use super::StartRefusal;
use crate::keys::KeyError;
use crate::listener::ListenError;

impl Explain for StartRefusal {
    fn code(&self) -> &'static str {
        match self {
            Self::Ground(_) => "state_directory",
            Self::Config(_) => "configuration",
            Self::Open(OpenError::Locked { .. }) => "store_locked",
            Self::Open(OpenError::Newer { .. }) => "store_newer",
            Self::Open(_) => "store_not_opened",
            Self::StoreGone(_) => "store_gone",
            Self::Store(error) => error.code(),
            Self::Keys(KeyError::Missing { .. }) => "key_missing",
            Self::Keys(_) => "keys",
            Self::Listen(ListenError::InUse { .. }) => "address_in_use",
            Self::Listen(ListenError::Io { .. }) => "address",
            Self::Socket(_) => "socket",
            Self::Part(_) => "part_not_started",
            Self::Nodes(_) => "nodes_not_read",
        }
    }

    fn meaning(&self) -> String {
        match self {
            Self::Open(OpenError::Locked { .. }) => "one control plane at a time runs on a store",
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
            Self::Open(OpenError::Locked { pid: Some(pid), .. }) => {
                format!("use the one that runs as process {pid}, or stop it first")
            }
            Self::Open(OpenError::Locked { pid: None, .. }) => "stop the other one first".to_owned(),
            Self::Open(OpenError::Newer { .. }) => "start the newer version again".to_owned(),
            Self::Open(_) | Self::StoreGone(_) => "put the store back, or restore a backup".to_owned(),
            Self::Keys(_) => "put the key files back beside the store".to_owned(),
            Self::Listen(ListenError::InUse { .. }) => {
                "stop what listens there, or choose another address with `--listen`".to_owned()
            }
            Self::Listen(ListenError::Io { .. }) => "choose another address with `--listen`".to_owned(),
            Self::Config(_) => "put the file right, and start again".to_owned(),
            Self::Ground(_) | Self::Socket(_) => {
                "look at the folder's owner and mode, or choose another with `--root`".to_owned()
            }
            Self::Store(error) => error.remedy(),
            Self::Part(_) | Self::Nodes(_) => "look at the lines before this one in the log".to_owned(),
        }
    }
}
