//! Events: a node's, each stored once whatever is replayed (N-11), and our own.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use tenure_protocol::event::{GAP, Listed, NodeEvent};
use tenure_protocol::id::{EventId, FencingToken, Millis, NodeId};

use super::at_most;
use crate::store::{CLOCK_TRUSTED, Fact, facts};

#[derive(Debug, Default)]
pub(super) struct Events {
    newest: u64,
    /// When the newest of our writes was made, none of before the clock was said to be right.
    stamp: Option<Millis>,
    told: BTreeMap<u64, Listed>,
    /// The places of what a node itself told, oldest first, and their names where they still have one.
    of_nodes: HashMap<NodeId, VecDeque<(u64, Option<EventId>)>>,
    /// How many last words were taken of a node's enrolments that hold no longer.
    last_words: HashMap<NodeId, BTreeMap<FencingToken, u64>>,
    /// What is stored once only: whose, whether it is a fact of our own, and its name.
    known: BTreeSet<(NodeId, bool, EventId)>,
}

impl Events {
    /// A fact of our own; one with a name is one event however often it is told.
    pub(super) fn tell(&mut self, id: Option<EventId>, fact: Fact, now: Millis) {
        if let (Some(id), Some(node)) = (id, &fact.node)
            && !self.known.insert((node.clone(), true, id))
        {
            return;
        }
        let Fact { node, kind, text } = fact;
        let kind = kind.to_owned();
        self.push(Listed { seq: 0, node, kind, key: None, text, observed_at: now, received_at: now });
    }

    pub(super) fn of_node(&mut self, node: &NodeId, events: &[NodeEvent], now: Millis) -> Vec<EventId> {
        for event in events {
            if let Some(seq) = self.store(node, event, now) {
                self.of_nodes.entry(node.clone()).or_default().push_back((seq, Some(event.id)));
            }
        }
        self.forget_the_oldest(node);
        events.iter().map(|event| event.id).collect()
    }

    /// Its place; none: it is there already.
    fn store(&mut self, node: &NodeId, event: &NodeEvent, now: Millis) -> Option<u64> {
        let NodeEvent { id, at, kind, key, text } = facts::kept(event);
        let is_new = self.known.insert((node.clone(), false, id));
        let node = Some(node.clone());
        let listed = Listed { seq: 0, node, kind, key, text, observed_at: at, received_at: now };
        is_new.then(|| self.push(listed))
    }

    /// Of an enrolment that holds no longer; none where no more of it is taken.
    pub(super) fn last_words(
        &mut self,
        node: &NodeId,
        enrolment: FencingToken,
        mark: &str,
        events: Vec<NodeEvent>,
        now: Millis,
    ) -> Option<Vec<EventId>> {
        let mut taken = self.last_words.remove(node).unwrap_or_default();
        let of_enrolment = taken.get(&enrolment).copied().unwrap_or_default();
        let room = facts::room_for_last_words(of_enrolment, taken.values().sum());
        let mut stored = Vec::new();
        for event in events.into_iter().take(room).map(|event| facts::marked_as(mark, event)) {
            if self.store(node, &event, now).is_some() {
                *taken.entry(enrolment).or_default() += 1;
            }
            stored.push(event.id);
        }
        self.last_words.insert(node.clone(), taken);
        (room > 0).then_some(stored)
    }

    fn push(&mut self, listed: Listed) -> u64 {
        self.newest += 1;
        let trusted = listed.node.is_none() && listed.kind == CLOCK_TRUSTED;
        let before = self.stamp.filter(|_| !trusted).unwrap_or(listed.received_at);
        self.stamp = Some(before.max(listed.received_at));
        self.told.insert(self.newest, Listed { seq: self.newest, ..listed });
        self.newest
    }

    fn forget_the_oldest(&mut self, node: &NodeId) {
        let Some(places) = self.of_nodes.get_mut(node) else { return };
        let most = at_most(facts::MOST_OF_A_NODE);
        while places.len() > most + 1 {
            if let Some((seq, id)) = places.pop_front() {
                self.told.remove(&seq);
                id.map(|id| self.known.remove(&(node.clone(), false, id)));
            }
        }
        if places.len() == most + 1
            && let Some((seq, id)) = places.front_mut()
            && let Some(oldest) = self.told.get_mut(seq)
        {
            id.take().map(|id| self.known.remove(&(node.clone(), false, id)));
            (oldest.kind, oldest.key, oldest.text) = (GAP.to_owned(), None, facts::gap());
        }
    }

    /// How many facts of our own about this node have a name that begins so.
    pub(super) fn told_of(&self, node: &NodeId, begins: [u8; 8]) -> u64 {
        let named = |fill| {
            let mut id = [fill; 16];
            id[..8].copy_from_slice(&begins);
            (node.clone(), true, EventId::from_bytes(id))
        };
        u64::try_from(self.known.range(named(0x00)..=named(0xff)).count()).unwrap_or(u64::MAX)
    }

    pub(super) fn newest_stamp(&self) -> Millis {
        self.stamp.unwrap_or(Millis(0))
    }

    pub(super) fn page(&self, after: Option<u64>, node: Option<&NodeId>, most: usize) -> Vec<Listed> {
        let about = |event: &&Listed| node.is_none() || event.node.as_ref() == node;
        let from = after.map_or(0, |after| after.saturating_add(1));
        let events = self.told.range(from..).map(|(_, event)| event).filter(about);
        if after.is_some() {
            return events.take(most).cloned().collect();
        }
        let mut newest: Vec<Listed> = events.rev().take(most).cloned().collect();
        newest.reverse();
        newest
    }
}
