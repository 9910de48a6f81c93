//! What an operator may not do with an identity, each in its own words.

use tenure_protocol::id::{Millis, NodeId};
use tenure_protocol::refusal::Explain;

use crate::fleet::invitation::until;

/// Why an identity is not invited, reinvited, found or retired.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NodeRefusal {
    /// Nobody of this name was ever invited.
    #[error("there is no node {node}{}", near.as_ref().map(|near| format!("; did you mean {near}")).unwrap_or_default())]
    Unknown {
        /// The name.
        node: NodeId,
        /// The nearest one that is known.
        near: Option<String>,
    },
    /// The identity was reserved before.
    #[error("node {0} was invited before")]
    Exists(NodeId),
    /// It was withdrawn for good.
    #[error("node {0} is retired")]
    Retired(NodeId),
    /// No machine would know where to go.
    #[error("this control plane has no address to put into an invitation")]
    NoAdvertise,
    /// A token that could be used at no time, or nearly for ever.
    #[error("an invitation cannot be valid for {0} ms")]
    Validity(u64),
    /// Our clock shows a time before our last durable write.
    #[error("the control plane's clock shows {}, and its last write is of {}", until(*now), until(*newest))]
    ClockBehind {
        /// What it shows.
        now: Millis,
        /// When the newest write was made.
        newest: Millis,
    },
    /// A token cannot be made.
    #[error(transparent)]
    Signer(#[from] tenure_protocol::token::NoMasterKey),
    /// What a machine would have to read is more than a token carries.
    #[error("the addresses to advertise are too long for an invitation")]
    TooLong,
}

impl Explain for NodeRefusal {
    fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "unknown_node",
            Self::Exists(_) => "node_exists",
            Self::Retired(_) => "retired",
            Self::NoAdvertise => "no_advertise",
            Self::Validity(_) => "validity",
            Self::ClockBehind { .. } => "clock_behind",
            Self::Signer(_) => "no_master_key",
            Self::TooLong => "addresses_too_long",
        }
    }

    fn meaning(&self) -> String {
        match self {
            Self::Unknown { .. } => "nothing was done for any node",
            Self::Exists(_) => "an identity is reserved once; what it has may be a machine of yours",
            Self::Retired(_) => "a retired identity never comes back, and its history stays",
            Self::NoAdvertise => "a machine with a token of it would not know where to dial",
            Self::Validity(_) => "the token could not be used, or would be a secret that lives too long",
            Self::ClockBehind { .. } => "no token is made by a clock that went back; everything else goes on",
            Self::Signer(_) => "no token can be made until the key is back",
            Self::TooLong => "a token has at most 2048 characters, and addresses are what makes it long",
        }
        .to_owned()
    }

    fn remedy(&self) -> String {
        match self {
            Self::Unknown { .. } => "run `tenure nodes` to see every name".to_owned(),
            Self::Exists(node) => format!("run `tenure reinvite {node}` for a token, or choose another name"),
            Self::Retired(_) => "run `tenure invite` with another name".to_owned(),
            Self::NoAdvertise => {
                "put `advertise = [\"HOST:7443\"]` into control.toml, or start with `--advertise HOST:7443`"
                    .to_owned()
            }
            Self::Validity(_) => "say at least a second and at most a year, as in `--valid 24h`".to_owned(),
            Self::ClockBehind { .. } => {
                "put the clock of the control plane's machine right (`timedatectl`), and ask again; where it is right \
                 now and was ahead before, say so once with `--clock-is-right`"
                    .to_owned()
            }
            Self::Signer(_) => {
                "put the control plane's master.key back beside its store, and start it again".to_owned()
            }
            Self::TooLong => "advertise fewer or shorter addresses".to_owned(),
        }
    }
}
