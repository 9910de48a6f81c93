//! Identities, their tokens and their standing.

use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;

use tenure_protocol::enrolment::Briefing;
use tenure_protocol::id::{Digest, EventId, FencingToken, Millis, NodeId};
use tenure_protocol::machine::NodeState;

use super::{Node, Reports, Rows, fault};
use crate::node::redeem::{Decision, EnrolRefusal, alarm_id, alarms_of, decide};
use crate::store::{
    Attempt, InvitationRecord, NewNode, NewToken, NodeRecord, NodeSummary, Redeemed, Spent, StoreError, facts,
};

impl Node {
    fn invited(new: &NewNode) -> Self {
        let record = NodeRecord {
            node: new.node.clone(),
            uuid: new.uuid,
            rental: new.rental.clone(),
            generation: new.generation,
            mode: new.mode,
            rejoin: new.rejoin,
            state: NodeState::Enrolling,
            fencing: FencingToken(0),
            key: None,
            revoked: false,
            enrolled_at: None,
            retired_at: None,
            profile: None,
            briefing: Briefing::default(),
            last_session: None,
            session_used: false,
        };
        let (invitations, reports) = (BTreeMap::new(), Reports::default());
        Self { record, invitations, contact: None, reports, declared: None, named: HashSet::new() }
    }

    pub(super) fn summary(&self) -> NodeSummary {
        let outstanding = |token: &&InvitationRecord| token.spent.is_none() && !token.replaced;
        NodeSummary {
            record: self.record.clone(),
            contact: self.contact.clone(),
            declared: self.declared,
            report: self.reports.record(),
            invited_until: self.invitations.values().rev().find(outstanding).map(|token| token.expires),
        }
    }

    fn mint(&mut self, token: &NewToken, minted_at: Millis) {
        let NewToken { counter, token, bytes, expires } = token.clone();
        let node = self.record.node.clone();
        let (spent, replaced) = (None, false);
        let minted = InvitationRecord { node, counter, token, bytes, expires, minted_at, spent, replaced };
        self.invitations.insert(counter, minted);
    }

    fn replace_unspent(&mut self) {
        self.invitations
            .values_mut()
            .filter(|token| token.spent.is_none())
            .for_each(|token| token.replaced = true);
    }
}

impl Rows {
    pub(super) fn after(&self, after: Option<&NodeId>) -> impl Iterator<Item = &Node> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.nodes.range((from, Bound::Unbounded)).map(|(_, node)| node)
    }

    /// No two tokens are one, and no two of a node have one number.
    fn may_mint(&self, node: &NodeId, token: &NewToken) -> Result<(), StoreError> {
        let counted = self.nodes.get(node).is_some_and(|node| node.invitations.contains_key(&token.counter));
        let known = self
            .nodes
            .values()
            .flat_map(|node| node.invitations.values())
            .any(|has| has.token == token.token);
        if counted || known { Err(fault(format!("a token of node {node} is there already"))) } else { Ok(()) }
    }

    pub(super) fn invite(&mut self, new: &NewNode, now: Millis) -> Result<bool, StoreError> {
        if self.nodes.contains_key(&new.node) {
            return Ok(false);
        }
        if self.nodes.values().any(|node| node.record.uuid == new.uuid) {
            return Err(fault(format!("the uuid of node {} is another node's", new.node)));
        }
        self.may_mint(&new.node, &new.token)?;
        let mut node = Node::invited(new);
        node.mint(&new.token, now);
        self.nodes.insert(new.node.clone(), node);
        self.tell(facts::invited(new), now);
        Ok(true)
    }

    pub(super) fn reinvite(
        &mut self,
        node: &NodeId,
        token: Option<&NewToken>,
        revoke: bool,
        now: Millis,
    ) -> Result<bool, StoreError> {
        token.map_or(Ok(()), |token| self.may_mint(node, token))?;
        let standing = |node: &&mut Node| node.record.state != NodeState::Retired;
        let Some(held) = self.nodes.get_mut(node).filter(standing) else { return Ok(false) };
        let mut told = Vec::new();
        if let Some(token) = token {
            held.replace_unspent();
            held.mint(token, now);
            told.push(facts::reinvited(node));
        }
        if revoke && held.record.key.is_some() && !held.record.revoked {
            told.push(facts::revoked(&held.record));
            held.record.revoked = true;
            held.record.state = NodeState::Enrolling;
        }
        told.into_iter().for_each(|fact| self.tell(fact, now));
        Ok(true)
    }

    pub(super) fn redeem(&mut self, attempt: &Attempt) -> Result<Redeemed, StoreError> {
        let held = self.nodes.get(&attempt.node);
        let record = held.map(|node| node.record.clone());
        let token = held.and_then(|node| node.token(attempt.token));
        let decision = decide(record.as_ref(), token, attempt, self.bound.contains_key(&attempt.key));
        match (decision, record) {
            (Decision::Redeem, Some(_)) => Ok(Redeemed::Enrolled(self.enrol(attempt)?)),
            (Decision::Again, Some(record)) => Ok(Redeemed::Again(record)),
            (Decision::Refuse(refusal), _) => Ok(Redeemed::Refused(refusal)),
            (Decision::Alarm { holder }, _) => {
                self.alarm(attempt, &holder);
                Ok(Redeemed::Refused(EnrolRefusal::Spent { node: attempt.node.clone() }))
            }
            (Decision::Redeem | Decision::Again, None) => {
                Err(fault("a redemption without a record".to_owned()))
            }
        }
    }

    fn enrol(&mut self, attempt: &Attempt) -> Result<NodeRecord, StoreError> {
        let node = self.node(&attempt.node)?;
        let fencing = node.record.fencing.next();
        let spent = Spent { key: attempt.key, from: attempt.from.clone() };
        node.invitations
            .values_mut()
            .filter(|token| token.token == attempt.token)
            .for_each(|token| token.spent = Some(spent.clone()));
        node.record = NodeRecord {
            state: NodeState::Ready,
            fencing,
            key: Some(attempt.key),
            revoked: false,
            enrolled_at: Some(attempt.now),
            profile: Some(attempt.join.profile.clone()),
            briefing: attempt.briefing.clone(),
            last_session: None,
            session_used: false,
            ..node.record.clone()
        };
        let record = node.record.clone();
        self.bound.insert(attempt.key, (attempt.node.clone(), fencing));
        self.tell(facts::enrolled(attempt, fencing), attempt.now);
        Ok(record)
    }

    fn alarm(&mut self, attempt: &Attempt, holder: &str) {
        if self.events.told_of(&attempt.node, alarms_of(attempt.token)) < facts::MOST_ALARMS {
            let id = EventId::from_bytes(alarm_id(attempt.token, &attempt.key));
            self.events.tell(Some(id), facts::presented_again(attempt, holder), attempt.now);
        }
    }

    pub(super) fn marked(&mut self, node: &NodeId, state: NodeState, text: &str, now: Millis) -> bool {
        let Some((before, fact)) = facts::marked(node, state, text) else { return false };
        let held = self.nodes.get_mut(node).filter(|node| node.record.state == before);
        let Some(held) = held else { return false };
        held.record.state = state;
        self.tell(fact, now);
        true
    }

    pub(super) fn retire(&mut self, node: &NodeId, now: Millis) -> Option<bool> {
        let held = self.nodes.get_mut(node)?;
        if held.record.state == NodeState::Retired {
            return Some(true);
        }
        held.record.state = NodeState::Retired;
        held.record.retired_at = Some(now);
        held.replace_unspent();
        self.tell(facts::retired(node), now);
        Some(false)
    }
}

impl Node {
    fn token(&self, token: Digest) -> Option<&InvitationRecord> {
        self.invitations.values().find(|has| has.token == token)
    }
}
