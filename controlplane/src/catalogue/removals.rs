//! How much one revision may take from a node without a word (H-23).
//!
//! A wrong branch or an empty list looks like any other declaration; what tells them apart is how much they remove.

use tenure_protocol::id::NodeId;
use tenure_protocol::refusal::{Explain, Refusal};

/// Why a revision takes too much.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum TooMuch {
    #[error("this revision removes all {leaving} resources that node {node} owns")]
    All { node: NodeId, leaving: u64 },
    #[error(
        "this revision removes {leaving} of the {owned} resources that node {node} owns; without a word at most {free}"
    )]
    Many { node: NodeId, owned: u64, leaving: u64, free: u64 },
}

/// Judges a revision of a node by which `leaving` of the `owned` resources leave the declaration. Without a word that may be a
/// tenth, at least one, and never all; with `allowed` up to that number. The final declaration of a graceful
/// retirement says that it is empty, and needs no other word.
pub fn check(
    node: &NodeId,
    owned: u64,
    leaving: u64,
    allowed: Option<u64>,
    is_final: bool,
) -> Result<(), Refusal> {
    let free = (owned / 10).max(1);
    let within = leaving == 0 || (leaving <= free && leaving < owned);
    if is_final || within || allowed.is_some_and(|allowed| leaving <= allowed) {
        return Ok(());
    }
    let node = node.clone();
    let error = match leaving >= owned {
        true => TooMuch::All { node, leaving },
        false => TooMuch::Many { node, owned, leaving, free },
    };
    Err(error.refusal())
}

/// The same refusal where a plan tells it: whoever reads that is looking at what would be removed already.
pub fn in_a_plan(refusal: Refusal, leaving: u64) -> Refusal {
    Refusal {
        remedy: format!("if this is meant, run `tenure declare DIR --allow-removals {leaving}`"),
        ..refusal
    }
}

impl TooMuch {
    const fn leaving(&self) -> u64 {
        match self {
            Self::All { leaving, .. } | Self::Many { leaving, .. } => *leaving,
        }
    }
}

impl Explain for TooMuch {
    fn code(&self) -> &'static str {
        "too_many_removals"
    }

    fn meaning(&self) -> String {
        "what leaves a declaration is removed from the machine if we created it; nothing was declared"
            .to_owned()
    }

    fn remedy(&self) -> String {
        format!(
            "look at `tenure declare DIR --plan`; if this is meant, run `tenure declare DIR --allow-removals {}`",
            self.leaving()
        )
    }
}

#[cfg(test)]
mod tests;
