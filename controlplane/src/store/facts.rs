//! What a change tells: the event that is stored with it, worded once for every store. Pure.

use tenure_protocol::event::NodeEvent;
use tenure_protocol::id::{FencingToken, NodeId};
use tenure_protocol::machine::NodeState;

use super::{Attempt, Fact, NewDeclaration, NewNode, NodeRecord};
use crate::bounds;

/// The newest events that a node told are kept; where older ones were, there is a gap that says so.
pub(super) const MOST_OF_A_NODE: u32 = 10_000;

/// Alarms about one token: whoever has it can make keys without end, and the operator heard what there is to hear.
pub(super) const MOST_ALARMS: u64 = 16;

/// What is taken of one enrolment that holds no longer (S-22). It has room of its own, and never pushes out what the one
/// that holds tells.
pub(super) const MOST_LAST_WORDS: u64 = 1_000;

/// What is taken of all such enrolments of a node.
pub(super) const MOST_LAST_WORDS_OF_A_NODE: u64 = 4_000;

/// How many more are taken, of so many of the enrolment and of the node.
pub(super) fn room_for_last_words(of_enrolment: u64, of_node: u64) -> usize {
    let room = MOST_LAST_WORDS.saturating_sub(of_enrolment);
    let room = room.min(MOST_LAST_WORDS_OF_A_NODE.saturating_sub(of_node));
    usize::try_from(room).unwrap_or(usize::MAX)
}

/// The event of an enrolment that holds no longer, with `mark` before its text.
pub(super) fn marked_as(mark: &str, event: NodeEvent) -> NodeEvent {
    NodeEvent { text: format!("{mark}{}", event.text), ..event }
}

pub(super) fn gap() -> String {
    format!("older events of this node are forgotten; the newest {MOST_OF_A_NODE} are kept")
}

pub(super) fn invited(new: &NewNode) -> Fact {
    about(&new.node, "invited", format!("invited as {}, generation {}", new.mode, new.generation))
}

pub(super) fn reinvited(node: &NodeId) -> Fact {
    about(node, "reinvited", "a new token was minted".to_owned())
}

pub(super) fn revoked(record: &NodeRecord) -> Fact {
    about(&record.node, "revoked", format!("enrolment {} was ended by hand", record.fencing))
}

pub(super) fn enrolled(attempt: &Attempt, fencing: FencingToken) -> Fact {
    let text = format!("enrolled from {} with fencing token {fencing}", attempt.from);
    about(&attempt.node, "enrolled", text)
}

pub(super) fn presented_again(attempt: &Attempt, holder: &str) -> Fact {
    let text = format!(
        "the token that was redeemed from {holder} was presented again from {}, with another key; nothing was changed",
        attempt.from
    );
    about(&attempt.node, "second_redemption", text)
}

pub(super) fn retired(node: &NodeId) -> Fact {
    about(node, "retired", "its standing was withdrawn for good".to_owned())
}

pub(super) fn declared(new: &NewDeclaration) -> Fact {
    let text = format!("revision {} with {} resources", new.revision, new.resources);
    about(&new.node, "declared", text)
}

/// The state that must be left for this mark, and what it tells; none: it is no mark.
pub(super) fn marked(node: &NodeId, state: NodeState, text: &str) -> Option<(NodeState, Fact)> {
    let (before, kind) = match state {
        NodeState::Lost => (NodeState::Ready, "lost"),
        NodeState::Ready => (NodeState::Lost, "ready_again"),
        NodeState::Enrolling | NodeState::Retired => return None,
    };
    Some((before, about(node, kind, text.to_owned())))
}

/// What of a node's event is kept (S-20, S-22).
pub(super) fn kept(event: &NodeEvent) -> NodeEvent {
    NodeEvent {
        id: event.id,
        at: event.at,
        kind: bounds::clause(&event.kind, bounds::WORD),
        key: event.key.as_ref().map(|key| bounds::clause(key, bounds::CLAUSE)),
        text: bounds::clause(&event.text, bounds::CLAUSE),
    }
}

fn about(node: &NodeId, kind: &'static str, text: String) -> Fact {
    Fact { node: Some(node.clone()), kind, text }
}
