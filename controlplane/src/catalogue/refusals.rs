//! Why the catalogue does not do what it was asked, beside what is wrong in the folder itself.

use tenure_protocol::id::{Digest, NodeId};
use tenure_protocol::refusal::Explain;

use crate::store::{NotDeclared, NotPut};

/// One of these.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum CatalogueRefusal {
    /// Pieces that cannot be taken.
    #[error("a piece of content {} was not taken: {}", sha256(.0).short(), in_words(.0))]
    NotPut(NotPut),
    /// A question for nothing, or for too much.
    #[error("no piece of content was asked for, or more than one answer may have")]
    NothingWanted,
    /// It is not there whole.
    #[error("content {} is not there", .0.short())]
    NoContent(Digest),
    /// The folder's listing is not one.
    #[error("the folder's listing cannot be read: {0}")]
    Listing(String),
    /// A file of the folder has another size than its listing says.
    #[error("the file {path} of the folder has not the size that its listing says")]
    Size {
        /// Where it lies in the folder.
        path: String,
    },
    /// A node of the folder is withdrawn.
    #[error("the folder names node {0}, which is retired")]
    Retired(NodeId),
    /// A line of its briefing failed (H-13).
    #[error("the folder names node {node}, which is not assignable: {subject}: {text}")]
    NotAssignable {
        /// Which.
        node: NodeId,
        /// What was judged.
        subject: String,
        /// What is so.
        text: String,
    },
    /// Somebody else declared in between.
    #[error("another declaration of node {0} was written in between")]
    Overtaken(NodeId),
    /// A declaration of ours that we cannot read any more.
    #[error("the last declaration of node {0} cannot be read from the store")]
    LastUnreadable(NodeId),
    /// It is only planned, and there is no room for more of that.
    #[error(
        "what is planned for node {0} was not laid aside: what is only planned has a share of the room, and it is taken"
    )]
    NotLaidAside(NodeId),
    /// There is no room for what was made of the folder: the plan, or a bundle.
    #[error(
        "what was made of the folder was not kept: as much lies there already as may without a declaration that names it"
    )]
    NotKept,
    /// Too many folders wait.
    #[error("too many folders wait to be rendered")]
    Crowded,
}

impl From<NotDeclared> for CatalogueRefusal {
    fn from(not: NotDeclared) -> Self {
        match not {
            NotDeclared::Overtaken(node) => Self::Overtaken(node),
            NotDeclared::NoStanding(node) => Self::Retired(node),
            NotDeclared::ContentMissing(_, digest) => Self::NoContent(digest),
        }
    }
}

fn sha256(not: &NotPut) -> Digest {
    match not {
        NotPut::OutOfOrder { sha256, .. }
        | NotPut::Malformed(sha256)
        | NotPut::WrongDigest(sha256)
        | NotPut::NoRoom(sha256) => *sha256,
    }
}

fn in_words(not: &NotPut) -> String {
    match not {
        NotPut::OutOfOrder { expected, .. } => format!("byte {expected} comes next"),
        NotPut::Malformed(_) => "its size or place cannot be".to_owned(),
        NotPut::NoRoom(_) => {
            "as much lies there already as may without a declaration that names it".to_owned()
        }
        NotPut::WrongDigest(_) => "all its bytes are there, and they are other content".to_owned(),
    }
}

impl Explain for CatalogueRefusal {
    fn code(&self) -> &'static str {
        match self {
            Self::NotPut(NotPut::OutOfOrder { .. }) => "out_of_order",
            Self::NotPut(NotPut::Malformed(_)) => "malformed_piece",
            Self::NothingWanted => "nothing_wanted",
            Self::NotPut(NotPut::WrongDigest(_)) => "wrong_digest",
            Self::NotPut(NotPut::NoRoom(_)) | Self::NotKept => "no_room",
            Self::NoContent(_) => "no_content",
            Self::Listing(_) => "listing_unreadable",
            Self::Size { .. } => "wrong_size",
            Self::Retired(_) => "retired",
            Self::NotAssignable { .. } => "not_assignable",
            Self::Overtaken(_) => "overtaken",
            Self::LastUnreadable(_) => "last_unreadable",
            Self::NotLaidAside(_) => "no_room_to_foresee",
            Self::Crowded => "busy",
        }
    }

    fn meaning(&self) -> String {
        match self {
            Self::NotPut(_) | Self::NothingWanted | Self::NoContent(_) => "nothing else was changed",
            Self::Retired(_) => "a retired node gets nothing declared; nothing was declared for any node",
            Self::NotAssignable { .. } => {
                "a node whose briefing has a failed line is assigned nothing; nothing was declared for any node"
            }
            Self::NotLaidAside(_) => {
                "the node cannot be asked what it would make of it; the plan is whole, and nothing was changed"
            }
            Self::Listing(_)
            | Self::Size { .. }
            | Self::Overtaken(_)
            | Self::LastUnreadable(_)
            | Self::NotKept
            | Self::Crowded => "nothing was declared for any node",
        }
        .to_owned()
    }

    fn remedy(&self) -> String {
        match self {
            Self::NotKept => {
                "try again in an hour, when what nothing names is dropped, or with fewer nodes in `fleet.toml`".to_owned()
            }
            Self::NotPut(NotPut::NoRoom(_)) => {
                "try again in an hour: what nothing names is dropped then; until then, declare what was uploaded"
                    .to_owned()
            }
            Self::NothingWanted => "ask for at least one piece, and for at most 256 at a time".to_owned(),
            Self::NotPut(_) | Self::NoContent(_) | Self::Size { .. } => {
                "run the command again; it uploads what is missing".to_owned()
            }
            Self::Listing(_) => "compare `tenure --version` with the version of the control plane (`tenure-control --version` there)".to_owned(),
            Self::Retired(node) => format!("take node {node} out of fleet.toml"),
            Self::NotAssignable { node, .. } => format!(
                "look at `tenure node {node}`, put right what its line names, and enrol it anew with the token of `tenure reinvite {node}`; or take it out of fleet.toml"
            ),
            Self::Overtaken(_) => "look at `tenure declare DIR --plan`, then declare again".to_owned(),
            Self::LastUnreadable(_) => "look at the control plane's log (`journalctl -u tenure-control`), and restore a backup".to_owned(),
            Self::NotLaidAside(_) => {
                "plan again with fewer nodes in `fleet.toml`, or in an hour: what is only planned is dropped then"
                    .to_owned()
            }
            Self::Crowded => "declare again in a minute, when the others are rendered".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
