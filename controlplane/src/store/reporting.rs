//! How a part of a report changes what is known of a node: pure decisions of what is there and what comes, the same in
//! every store. The newest pass of the newest life of the host's store wins.

use tenure_protocol::id::{Revision, StoreId};
use tenure_protocol::report::Part;

use super::PartStored;

/// Where the report of a node stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Standing {
    /// Which life of the host's store it is from.
    pub(super) store_id: StoreId,
    /// Which pass.
    pub(super) pass: u64,
    /// How many outcomes of it were received.
    pub(super) received: u64,
    /// Whether all of it is here.
    pub(super) whole: bool,
    /// The newest revision of which a whole pass was reported.
    pub(super) applied: Option<Revision>,
}

/// What is to be done with a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing.
    Nothing(PartStored),
    /// It is written.
    Write(Writing),
}

/// How a part is written, and where the report stands afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Writing {
    /// The outcomes that are there are of an earlier life of the host's store, and go first.
    pub(super) begins_anew: bool,
    /// Where the report then stands.
    pub(super) standing: Standing,
    /// What it came to; none: it was the last part of a pass that does not carry every outcome, so our copy is to be
    /// compared with the node's, and the pass to be [`settled`].
    pub(super) stored: Option<PartStored>,
}

/// Decides about a part.
pub(super) fn judge(held: Option<&Standing>, store_id: StoreId, part: &Part) -> Verdict {
    let pass = part.summary.pass;
    // A new store of the host counts its passes anew, and what it says is newer than anything of the old one.
    let same = held.filter(|held| held.store_id == store_id);
    if same.is_some_and(|held| pass < held.pass) {
        return Verdict::Nothing(PartStored::Older);
    }
    if same.is_some_and(|held| held.pass == pass && held.whole && !part.full) {
        return Verdict::Nothing(PartStored::Whole { newly: None });
    }
    let before = same.filter(|held| held.pass == pass && part.part > 0).map_or(0, |held| held.received);
    let received = before.saturating_add(u64::try_from(part.outcomes.len()).unwrap_or(u64::MAX));
    let applied = held.and_then(|held| held.applied);
    let newly = part.summary.revision.filter(|revision| Some(*revision) != applied);
    let (whole, stored) = match (part.last, part.full) {
        (false, _) => (false, Some(PartStored::Part)),
        (true, false) => (false, None),
        (true, true) => (true, Some(PartStored::Whole { newly })),
    };
    let applied = if whole { newly.or(applied) } else { applied };
    let standing = Standing { store_id, pass, received, whole, applied };
    Verdict::Write(Writing { begins_anew: held.is_some() && same.is_none(), standing, stored })
}

/// A pass whose last part came, and whose digest is that of our copy: it is whole, if it still is the newest.
pub(super) fn settled(
    held: Option<&Standing>,
    store_id: StoreId,
    pass: u64,
    revision: Option<Revision>,
) -> Option<(Standing, PartStored)> {
    let held = held.filter(|held| held.store_id == store_id && held.pass == pass)?;
    let newly = revision.filter(|revision| Some(*revision) != held.applied);
    let standing = Standing { whole: true, applied: newly.or(held.applied), ..held.clone() };
    Some((standing, PartStored::Whole { newly }))
}
