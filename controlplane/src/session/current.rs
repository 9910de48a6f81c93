//! Which session of a node is open. It outlives a crash of every actor that looks at it, so that the next session still
//! supersedes this one, and this one still gets what is declared. Written by the node actor; a session that ends takes
//! itself out.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_protocol::id::SessionId;

use super::Session;

/// The open session, if there is one. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Current(Arc<Mutex<Option<Session>>>);

impl Current {
    /// The open session.
    pub fn get(&self) -> Option<Session> {
        self.lock().clone()
    }

    /// Its name.
    pub fn id(&self) -> Option<SessionId> {
        self.lock().as_ref().map(Session::id)
    }

    /// Puts another in its place, and gives back the one before.
    pub fn replace(&self, session: Option<Session>) -> Option<Session> {
        std::mem::replace(&mut *self.lock(), session)
    }

    /// Takes it out if it is still this one; whether it was.
    pub fn ended(&self, session: SessionId) -> bool {
        self.lock().take_if(|open| open.id() == session).is_some()
    }

    /// Does something with it while nobody can put another in its place.
    pub fn with<T>(&self, look: impl FnOnce(Option<&Session>) -> T) -> T {
        look(self.lock().as_ref())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
