//! What a node would make of a declaration that is not written yet: it is asked on its session, and answers for itself.
//! Nothing is stored and nothing is changed. Called for whoever plans a declaration.

use std::collections::HashSet;

use tenure_protocol::declaration::Declaration;
use tenure_protocol::foresight::{Foresee, ForeseeOf, ForeseenPage};
use tenure_protocol::id::{Digest, NodeId};
use tenure_protocol::refusal::{Explain, Refusal};
use tenure_protocol::resource::Spec;
use tenure_protocol::wire::exchange::CallError;
use tokio::sync::Semaphore;

use crate::fleet;
use crate::fleet::invitation::until;
use crate::plane::Plane;

/// Why nobody knows what a node would make of it.
#[derive(Debug, thiserror::Error)]
pub enum ForeseeRefusal {
    /// It has no session.
    #[error("node {node} is not connected, and {last}")]
    NotConnected {
        /// Which.
        node: NodeId,
        /// When it was last heard, in a clause.
        last: String,
    },
    /// A line of its briefing failed (H-13).
    #[error("node {0} is not assignable, and would be given no content")]
    NotAssignable(NodeId),
    /// It is being asked already.
    #[error("node {0} is being asked already")]
    Asked(NodeId),
    /// The declaration is not here any more.
    #[error("the declaration {} that it is asked about is not here", .0.short())]
    NotHere(Digest),
    /// It is not a declaration for this node.
    #[error("content {} is not a declaration for node {node}", sha256.short())]
    NotForIt {
        /// Which content.
        sha256: Digest,
        /// Which node.
        node: NodeId,
    },
    /// It did not answer.
    #[error("node {node} was asked, and {why}")]
    NoAnswer {
        /// Which.
        node: NodeId,
        /// What became of the question.
        why: String,
    },
}

/// How many declarations are read at the same time to be offered, for all who ask together: one may have 64 MiB, and read
/// it takes a multiple of that for a moment. Two, so that a large one holds up no small one.
const MOST_OFFERED: usize = 2;

/// Turns at reading one. Whoever waits for a turn waits for what is read from the store and nothing else.
#[derive(Debug)]
pub struct Turns(Semaphore);

impl Default for Turns {
    fn default() -> Self {
        Self(Semaphore::new(MOST_OFFERED))
    }
}

/// Asks the node, and hands on what it says.
pub async fn foresee(plane: &Plane, asked: ForeseeOf) -> Result<ForeseenPage, Refusal> {
    let ForeseeOf { node: id, declaration, from } = asked;
    let node = fleet::find(plane, &id)?;
    let Some(session) = node.session() else {
        return Err(ForeseeRefusal::NotConnected { last: last_word(plane, &id).await, node: id }.refusal());
    };
    if !session.is_assignable() {
        return Err(ForeseeRefusal::NotAssignable(id).refusal());
    }
    let offered = match from {
        0 => offered(plane, &id, declaration.sha256).await?,
        // What it said is with it; nothing more is fetched.
        _ => HashSet::new(),
    };
    let said = session.foresee(Foresee { declaration, from }, offered).await;
    match said.ok_or_else(|| ForeseeRefusal::Asked(id.clone()).refusal())? {
        Ok(page) => Ok(page),
        Err(CallError::Refused(refusal)) => Err(refusal.from_outside()),
        Err(error @ (CallError::TimedOut(_) | CallError::Gone | CallError::Unreadable(_))) => {
            Err(ForeseeRefusal::NoAnswer { node: id, why: error.to_string() }.refusal())
        }
    }
}

/// The declaration itself, and what of its content could be shown. Sensitive content stays here until it is declared.
async fn offered(plane: &Plane, node: &NodeId, sha256: Digest) -> Result<HashSet<Digest>, Refusal> {
    // Nobody closes it.
    let _turn = plane.offering.0.acquire().await;
    let bytes = plane.store.content(sha256).await?;
    let bytes = bytes.ok_or_else(|| ForeseeRefusal::NotHere(sha256).refusal())?;
    let other = || ForeseeRefusal::NotForIt { sha256, node: node.clone() }.refusal();
    let declaration = Declaration::parse(&bytes).map_err(|_| other())?;
    let header = &declaration.header;
    if header.node != *node || header.control_plane_id != plane.founding.control_plane_id {
        return Err(other());
    }
    let shown = declaration.resources().filter_map(|resource| match &resource.spec {
        Spec::File(file) => file.present.as_ref().filter(|present| !present.is_sensitive()),
        Spec::Package(_) | Spec::Directory(_) | Spec::Unit(_) => None,
    });
    Ok(shown.map(|present| present.content.sha256).chain([sha256]).collect())
}

async fn last_word(plane: &Plane, node: &NodeId) -> String {
    let seen = plane.presence.of(node).contact;
    let stored = match seen {
        Some(contact) => Some(contact),
        None => plane.store.summary(node.clone()).await.ok().flatten().and_then(|summary| summary.contact),
    };
    stored.map_or_else(
        || "was never heard".to_owned(),
        |contact| format!("was last heard at {}", until(contact.received_at)),
    )
}

impl Explain for ForeseeRefusal {
    fn code(&self) -> &'static str {
        match self {
            Self::NotConnected { .. } => "not_connected",
            Self::NotAssignable(_) => "not_assignable",
            Self::Asked(_) => "already_asked",
            Self::NotHere(_) => "declaration_not_here",
            Self::NotForIt { .. } => "declaration_not_for_node",
            Self::NoAnswer { .. } => "node_did_not_answer",
        }
    }

    fn meaning(&self) -> String {
        let means = match self {
            Self::NotConnected { .. } => {
                "what it would make of the declaration cannot be known; when it comes back it is held in what is declared"
            }
            Self::NotAssignable(_) => {
                "nothing is declared for it until what failed at its enrolment is put right"
            }
            Self::Asked(_) => "one question at a time is put to a node; nothing was changed",
            Self::NotHere(_) => "what is only planned is kept for an hour; nothing was changed",
            Self::NotForIt { .. } => "each node is asked about its own declaration only; nothing was changed",
            Self::NoAnswer { .. } => "looking changes nothing, so that nothing was done there either",
        };
        means.to_owned()
    }

    fn remedy(&self) -> String {
        match self {
            Self::NotConnected { node, .. } | Self::NotAssignable(node) | Self::NoAnswer { node, .. } => {
                format!("`tenure node {node}` shows how it stands; plan again when it is there")
            }
            Self::Asked(_) | Self::NotHere(_) => "plan again with `tenure declare DIR --plan`".to_owned(),
            Self::NotForIt { .. } => "ask about the declaration that the plan names for this node".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Future, poll_fn};
    use std::pin::pin;
    use std::task::Poll;

    use super::*;
    use crate::session::tests::plane;

    // rule: S-22
    #[tokio::test]
    async fn however_many_ask_no_more_declarations_are_read_at_the_same_time_than_there_are_turns() {
        let plane = plane();
        let most = u32::try_from(MOST_OFFERED).unwrap();
        let turns = plane.offering.0.acquire_many(most).await.unwrap();
        let node = NodeId::new("edge-1").unwrap();
        let mut asking = pin!(offered(&plane, &node, Digest::of(b"any")));
        for _ in 0..10 {
            poll_fn(|context| {
                assert!(asking.as_mut().poll(context).is_pending(), "it waits for a turn");
                Poll::Ready(())
            })
            .await;
            tokio::task::yield_now().await;
        }
        drop(turns);
        assert!(asking.await.unwrap_err().is("declaration_not_here"));
    }
}
