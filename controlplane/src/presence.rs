//! What is known of nodes in memory only: the last word, the lease, the open session. Lists answer from here and from
//! the store, and trouble no link for it. Written by leases and by node actors.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_protocol::id::{Millis, NodeId, SessionId};
use tenure_protocol::operator::SessionLine;

use crate::store::Contact;

/// What memory holds of one node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// Its last word since this process started.
    pub contact: Option<Contact>,
    /// When its lease ends, on our wall clock.
    pub lease_expires: Option<Millis>,
    /// Its open session.
    pub session: Option<SessionLine>,
}

/// What memory holds of all nodes. Clones are cheap and share it.
#[derive(Debug, Clone, Default)]
pub struct Presence {
    seen: Arc<Mutex<HashMap<NodeId, Seen>>>,
}

impl Presence {
    /// What is known of one; nothing is known of one that was not heard from.
    pub fn of(&self, node: &NodeId) -> Seen {
        self.lock().get(node).cloned().unwrap_or_default()
    }

    /// It was heard, and its lease runs until then. What it did not say stays as it was.
    pub fn heard(&self, node: &NodeId, contact: Contact, lease_expires: Millis) {
        let mut all = self.lock();
        let seen = all.entry(node.clone()).or_default();
        let version =
            contact.version.clone().or_else(|| seen.contact.take().and_then(|before| before.version));
        seen.contact = Some(Contact { version, ..contact });
        seen.lease_expires = Some(lease_expires);
    }

    /// A lease runs until then; nothing was heard for it.
    pub fn leased(&self, node: &NodeId, lease_expires: Option<Millis>) {
        self.lock().entry(node.clone()).or_default().lease_expires = lease_expires;
    }

    /// A session opened.
    pub fn opened(&self, node: &NodeId, session: SessionLine) {
        self.lock().entry(node.clone()).or_default().session = Some(session);
    }

    /// That session ended; a later one is left alone.
    pub fn ended(&self, node: &NodeId, session: SessionId) {
        if let Some(seen) = self.lock().get_mut(node) {
            seen.session.take_if(|open| open.session == session);
        }
    }

    /// Whatever session is shown of it, unless it is this one, ended.
    pub fn only(&self, node: &NodeId, session: Option<SessionId>) {
        if let Some(seen) = self.lock().get_mut(node) {
            seen.session.take_if(|open| Some(open.session) != session);
        }
    }

    /// The last word of each of these that has one.
    pub fn contacts(&self, nodes: impl IntoIterator<Item = NodeId>) -> Vec<(NodeId, Contact)> {
        let all = self.lock();
        nodes
            .into_iter()
            .filter_map(|node| {
                let contact = all.get(&node)?.contact.clone()?;
                Some((node, contact))
            })
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<NodeId, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
