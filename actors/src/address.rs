//! An address is a stable way to reach an actor that may be restarted: its supervisor refills it at each start and
//! empties it when the actor ends. It never waits to deliver and never queues for an actor that is not there.
//! Everybody who talks to an actor holds one, usually inside that actor's handle.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use ractor::{ActorCell, ActorRef, ActorStatus, RpcReplyPort};

#[cfg(test)]
mod tests;

/// A stable way to reach an actor that may be restarted. Clones are cheap and share the place.
pub struct Address<M> {
    place: Arc<ArcSwapOption<ActorRef<M>>>,
}

/// Where an actor sends its answer to one question. Dropping it unanswered tells the asker [`AskError::Dropped`].
pub type Reply<T> = RpcReplyPort<T>;

/// Nobody is at this address now: not started, ended, or between two starts. The message was not delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the part of the program that was addressed is not running")]
pub struct Gone;

/// Why a question has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// Nobody was there: the question was not delivered.
    #[error("the part of the program that was asked is not running")]
    Gone,
    /// No answer came in time. The question stays in the mailbox and may still be handled later.
    #[error("no answer came within {} s", within.as_secs())]
    TimedOut {
        /// The deadline that the asker set.
        within: Duration,
    },
    /// The question was delivered and given up unanswered, usually because the actor crashed. Its effect is unknown.
    #[error("the part of the program that was asked stopped before it answered")]
    Dropped,
}

impl<M: Send + 'static> Address<M> {
    /// An address with nobody there yet.
    #[must_use]
    pub fn vacant() -> Self {
        Self { place: Arc::new(ArcSwapOption::empty()) }
    }

    /// The address of an actor that is already running and that nobody restarts.
    #[must_use]
    pub fn of(actor: ActorRef<M>) -> Self {
        let address = Self::vacant();
        address.fill(actor);
        address
    }

    /// Deliver without waiting. `Ok` means it is in the mailbox, not that it was handled.
    pub fn tell(&self, msg: M) -> Result<(), Gone> {
        let actor = self.place.load_full().ok_or(Gone)?;
        actor.send_message(msg).map_err(|_| Gone)
    }

    /// Ask and wait for the answer, at most `within`.
    pub async fn ask<T: Send + 'static>(
        &self,
        within: Duration,
        make: impl FnOnce(Reply<T>) -> M,
    ) -> Result<T, AskError> {
        let (sender, answer) = tokio::sync::oneshot::channel();
        self.tell(make(Reply::from((sender, within)))).map_err(|Gone| AskError::Gone)?;
        match tokio::time::timeout(within, answer).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(_)) => Err(AskError::Dropped),
            Err(_) => Err(AskError::TimedOut { within }),
        }
    }

    /// Is nobody there who could take a message now?
    #[must_use]
    pub fn is_vacant(&self) -> bool {
        match self.place.load_full() {
            None => true,
            Some(actor) => matches!(
                actor.get_status(),
                ActorStatus::Draining | ActorStatus::Stopping | ActorStatus::Stopped
            ),
        }
    }

    /// Put an actor at this address; whoever was there is no longer reached. A [`Child`](crate::Child) does it by itself.
    pub fn fill(&self, actor: ActorRef<M>) {
        self.place.store(Some(Arc::new(actor)));
    }

    /// Empty this address: later messages are refused with [`Gone`].
    pub fn vacate(&self) {
        self.place.store(None);
    }

    pub(crate) fn cell(&self) -> Option<ActorCell> {
        self.place.load_full().map(|actor| actor.get_cell())
    }
}

impl<M> Clone for Address<M> {
    fn clone(&self) -> Self {
        Self { place: Arc::clone(&self.place) }
    }
}

impl<M> std::fmt::Debug for Address<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let there = self.place.load_full().map(|actor| actor.get_id());
        f.debug_tuple("Address").field(&there).finish()
    }
}

/// Answer a question. It never fails: the asker may have gone or timed out, and that is its own affair.
pub fn answer<T>(reply: Reply<T>, value: T) {
    drop(reply.send(value));
}
