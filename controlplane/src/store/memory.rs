//! A store in memory, for tests and trials: it forgets everything when it is dropped, and does everything else that a
//! store does. Each method is one change under one lock, checked first and then made, so that it is made whole or not
//! at all. What is decided is decided by the same pure functions as in the embedded store.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use tenure_protocol::content::{Piece, Wanted};
use tenure_protocol::event::{Listed, NodeEvent};
use tenure_protocol::id::{Digest, EventId, FencingToken, Millis, NodeId, StoreId};
use tenure_protocol::machine::NodeState;
use tenure_protocol::outcome::ResourceOutcome;
use tenure_protocol::proof::PublicKey;
use tenure_protocol::report::Part;

use super::upload::{MOST_PLANNED, MOST_SHOWN, MOST_UNNAMED};
use super::{
    Attempt, CLOCK_TRUSTED, Contact, DeclaredRecord, Fact, Founding, InvitationRecord, NewDeclaration,
    NewNode, NewToken, NodeRecord, NodeSummary, NotDeclared, NotPut, PartStored, Pending, Redeemed,
    SessionFacts, Store, StoreError,
};
use crate::bounds;

mod contents;
mod declared;
mod events;
mod identity;
mod reports;

use contents::Contents;
use events::Events;
use reports::Reports;

/// The store. Clones share what it holds.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    rows: Arc<Mutex<Rows>>,
}

#[derive(Debug, Default)]
struct Rows {
    founding: Option<Founding>,
    nodes: BTreeMap<NodeId, Node>,
    /// Keys that an enrolment bound, and which it was.
    bound: HashMap<PublicKey, (NodeId, FencingToken)>,
    events: Events,
    contents: Contents,
}

#[derive(Debug)]
struct Node {
    record: NodeRecord,
    invitations: BTreeMap<u64, InvitationRecord>,
    contact: Option<Contact>,
    reports: Reports,
    declared: Option<DeclaredRecord>,
    /// What the newest declaration names: its own bytes and the contents it needs.
    named: HashSet<Digest>,
}

impl Rows {
    fn node(&mut self, node: &NodeId) -> Result<&mut Node, StoreError> {
        self.nodes.get_mut(node).ok_or_else(|| fault(format!("node {node} is not there")))
    }

    fn tell(&mut self, fact: Fact, now: Millis) {
        self.events.tell(None, fact, now);
    }
}

fn fault(what: String) -> StoreError {
    StoreError::Fault(what)
}

fn at_most(most: u32) -> usize {
    usize::try_from(most).unwrap_or(usize::MAX)
}

impl Memory {
    fn rows<'a, T: Send + 'a>(
        &'a self,
        change: impl FnOnce(&mut Rows) -> Result<T, StoreError> + Send + 'a,
    ) -> Pending<'a, T> {
        // A change that panicked was checked and not made, or made: what is there still is whole.
        Box::pin(async move { change(&mut self.rows.lock().unwrap_or_else(PoisonError::into_inner)) })
    }
}

impl Store for Memory {
    fn founding(&self) -> Pending<'_, Option<Founding>> {
        self.rows(|rows| Ok(rows.founding))
    }

    fn found(&self, founding: Founding, _: Millis) -> Pending<'_, Founding> {
        self.rows(move |rows| Ok(*rows.founding.get_or_insert(founding)))
    }

    fn names(&self, after: Option<NodeId>, most: u32) -> Pending<'_, Vec<(NodeId, NodeState)>> {
        self.rows(move |rows| {
            let page = rows.after(after.as_ref()).take(at_most(most));
            Ok(page.map(|node| (node.record.node.clone(), node.record.state)).collect())
        })
    }

    fn node(&self, node: NodeId) -> Pending<'_, Option<NodeRecord>> {
        self.rows(move |rows| Ok(rows.nodes.get(&node).map(|node| node.record.clone())))
    }

    fn summaries(&self, after: Option<NodeId>, most: u32) -> Pending<'_, Vec<NodeSummary>> {
        self.rows(move |rows| Ok(rows.after(after.as_ref()).take(at_most(most)).map(Node::summary).collect()))
    }

    fn summary(&self, node: NodeId) -> Pending<'_, Option<NodeSummary>> {
        self.rows(move |rows| Ok(rows.nodes.get(&node).map(Node::summary)))
    }

    fn invite(&self, new: NewNode, now: Millis) -> Pending<'_, bool> {
        self.rows(move |rows| rows.invite(&new, now))
    }

    fn invitation(&self, node: NodeId) -> Pending<'_, Option<InvitationRecord>> {
        self.rows(move |rows| {
            let newest = rows.nodes.get(&node).and_then(|node| node.invitations.values().next_back());
            Ok(newest.cloned())
        })
    }

    fn reinvite(
        &self,
        node: NodeId,
        token: Option<NewToken>,
        revoke: bool,
        now: Millis,
    ) -> Pending<'_, bool> {
        self.rows(move |rows| rows.reinvite(&node, token.as_ref(), revoke, now))
    }

    fn redeem(&self, attempt: Attempt) -> Pending<'_, Redeemed> {
        self.rows(move |rows| rows.redeem(&attempt))
    }

    fn bound_key(&self, node: NodeId, fencing: FencingToken) -> Pending<'_, Option<PublicKey>> {
        self.rows(move |rows| {
            let mut bound = rows.bound.iter();
            Ok(bound.find(|(_, (of, at))| *of == node && *at == fencing).map(|(key, _)| *key))
        })
    }

    fn session_opened(&self, node: NodeId, facts: SessionFacts, _: Millis) -> Pending<'_, ()> {
        self.rows(move |rows| {
            if let Some(node) = rows.nodes.get_mut(&node) {
                node.record.last_session = Some(facts);
            }
            Ok(())
        })
    }

    fn session_used(&self, node: NodeId, fencing: FencingToken) -> Pending<'_, ()> {
        self.rows(move |rows| {
            if let Some(node) = rows.nodes.get_mut(&node).filter(|node| node.record.fencing == fencing) {
                node.record.session_used = true;
            }
            Ok(())
        })
    }

    fn marked(&self, node: NodeId, state: NodeState, text: String, now: Millis) -> Pending<'_, bool> {
        self.rows(move |rows| Ok(rows.marked(&node, state, &text, now)))
    }

    fn retire(&self, node: NodeId, now: Millis) -> Pending<'_, Option<bool>> {
        self.rows(move |rows| Ok(rows.retire(&node, now)))
    }

    fn contacts(&self, contacts: Vec<(NodeId, Contact)>) -> Pending<'_, ()> {
        self.rows(move |rows| {
            for (node, contact) in contacts {
                if let Some(node) = rows.nodes.get_mut(&node) {
                    node.contact = Some(contact);
                }
            }
            Ok(())
        })
    }

    fn report(&self, node: NodeId, store_id: StoreId, part: Part, now: Millis) -> Pending<'_, PartStored> {
        self.rows(move |rows| {
            let part = Part { summary: bounds::summary(part.summary), ..part };
            Ok(rows.node(&node)?.reports.part(store_id, &part, now))
        })
    }

    fn outcomes(&self, node: NodeId, after: Option<String>, most: u32) -> Pending<'_, Vec<ResourceOutcome>> {
        self.rows(move |rows| {
            let Some(node) = rows.nodes.get(&node) else { return Ok(Vec::new()) };
            Ok(node.reports.outcomes(after.as_deref().unwrap_or(""), at_most(most)))
        })
    }

    fn node_events(&self, node: NodeId, events: Vec<NodeEvent>, now: Millis) -> Pending<'_, Vec<EventId>> {
        self.rows(move |rows| {
            rows.node(&node)?;
            Ok(rows.events.of_node(&node, &events, now))
        })
    }

    fn last_words(
        &self,
        node: NodeId,
        enrolment: FencingToken,
        mark: String,
        events: Vec<NodeEvent>,
        now: Millis,
    ) -> Pending<'_, Option<Vec<EventId>>> {
        self.rows(move |rows| {
            rows.node(&node)?;
            Ok(rows.events.last_words(&node, enrolment, &mark, events, now))
        })
    }

    fn tell(&self, facts: Vec<Fact>, now: Millis) -> Pending<'_, ()> {
        self.rows(move |rows| {
            for node in facts.iter().filter_map(|fact| fact.node.as_ref()) {
                rows.node(node)?;
            }
            if facts.iter().any(|fact| fact.node.is_none() && fact.kind == CLOCK_TRUSTED) {
                rows.contents.none_later_than(now);
            }
            facts.into_iter().for_each(|fact| rows.tell(fact, now));
            Ok(())
        })
    }

    fn newest_stamp(&self) -> Pending<'_, Millis> {
        self.rows(|rows| Ok(rows.events.newest_stamp()))
    }

    fn events(&self, after: Option<u64>, node: Option<NodeId>, most: u32) -> Pending<'_, Vec<Listed>> {
        self.rows(move |rows| Ok(rows.events.page(after, node.as_ref(), at_most(most))))
    }

    fn missing(&self, contents: Vec<Digest>) -> Pending<'_, Vec<Digest>> {
        self.rows(move |rows| {
            Ok(contents.into_iter().filter(|sha256| !rows.contents.is_whole(*sha256)).collect())
        })
    }

    fn put(&self, pieces: Vec<Piece>, now: Millis) -> Pending<'_, Result<(), NotPut>> {
        self.rows(move |rows| Ok(pieces.into_iter().try_for_each(|piece| rows.put(piece, now))))
    }

    fn keep(&self, contents: Vec<Vec<u8>>, now: Millis) -> Pending<'_, bool> {
        self.rows(move |rows| Ok(rows.keep_below(MOST_UNNAMED, &contents, now)))
    }

    fn lay_aside(&self, sets: Vec<Vec<Vec<u8>>>, now: Millis) -> Pending<'_, usize> {
        self.rows(move |rows| {
            Ok(sets.iter().take_while(|contents| rows.keep_below(MOST_PLANNED, contents, now)).count())
        })
    }

    fn keep_plan(&self, document: Vec<u8>, now: Millis) -> Pending<'_, bool> {
        self.rows(move |rows| Ok(rows.keep_below(MOST_SHOWN, &[document], now)))
    }

    fn content(&self, sha256: Digest) -> Pending<'_, Option<Vec<u8>>> {
        self.rows(move |rows| Ok(rows.contents.whole(sha256)))
    }

    fn pieces(&self, wanted: Vec<Wanted>, of: Option<NodeId>) -> Pending<'_, Result<Vec<Piece>, Digest>> {
        self.rows(move |rows| Ok(rows.pieces(&wanted, of.as_ref())))
    }

    fn sweep(&self, before: Millis) -> Pending<'_, u64> {
        self.rows(move |rows| Ok(rows.sweep(before)))
    }

    fn declared(&self, node: NodeId) -> Pending<'_, Option<DeclaredRecord>> {
        self.rows(move |rows| Ok(rows.nodes.get(&node).and_then(|node| node.declared)))
    }

    fn declare(
        &self,
        declarations: Vec<NewDeclaration>,
        contents: Vec<Vec<u8>>,
        now: Millis,
    ) -> Pending<'_, Result<(), NotDeclared>> {
        self.rows(move |rows| Ok(rows.declare(&declarations, &contents, now)))
    }
}
