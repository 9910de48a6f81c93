//! A supervisor starts its children in order, restarts the ones that fail after a growing wait, gives up past a limit,
//! and stops them in reverse order. It never revives a child that was removed, never kills one that stops in its time,
//! and keeps no child's state: a restarted child begins anew. The daemons' `root` builds the tree; whoever owns
//! children that come and go (nodes, sessions) holds a [`Supervisor`] of its own.
//!
//! Limits count each child by itself: two children that fail now and then do not add up to the end of the process.

use std::sync::Arc;
use std::time::Duration;

use ractor::Actor;
use tokio::sync::{oneshot, watch};

use crate::address::{Address, AskError, Reply};

mod actor;
mod child;
mod restart;
#[cfg(test)]
pub(crate) mod tests;

pub use child::{Child, Restart};

use actor::{Msg, Overseer, Seed};

/// A handle on one supervisor. Clones are cheap. Dropping all of them stops nothing: [`Supervisor::stop`] does.
#[derive(Clone, Debug)]
pub struct Supervisor {
    address: Address<Msg>,
    ended: Arc<watch::Sender<Option<Ended>>>,
}

/// How often a child may fail, and how long the supervisor waits before it starts it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// More failures than this of one child within `window`, and the supervisor gives up. `u32::MAX` never does.
    pub restarts: u32,
    /// The time that failures are remembered.
    pub window: Duration,
    /// The wait before the first restart; it doubles with each failure in a row, give or take a fifth.
    pub first_backoff: Duration,
    /// The longest wait.
    pub longest_backoff: Duration,
    /// A child that ran this long begins with the first wait again.
    pub stable_after: Duration,
}

impl Default for Limits {
    /// Five restarts in a minute, beginning at 100 ms: a child that fails at once is given up after about four seconds,
    /// long enough for a busy port or a short lock to come free.
    fn default() -> Self {
        Self {
            restarts: 5,
            window: Duration::from_secs(60),
            first_backoff: Duration::from_millis(100),
            longest_backoff: Duration::from_secs(30),
            stable_after: Duration::from_secs(60),
        }
    }
}

/// How a supervisor ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It was asked to stop, and its children have stopped.
    Stopped,
    /// A child failed past the limits; the other children were stopped in reverse order.
    GaveUp {
        /// The child's name.
        child: String,
        /// Its last failure, in its own words.
        why: String,
    },
}

/// Why a supervisor or a child did not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The supervisor has a child of this name already, or is still stopping it.
    #[error("there is already a part named {child}")]
    Taken {
        /// The name.
        child: String,
    },
    /// The child could not be started: past the limits, or it is one that is never restarted.
    #[error("{child} could not be started: {why}")]
    Failed {
        /// The child's name.
        child: String,
        /// The last attempt's failure, in its own words.
        why: String,
    },
    /// The supervisor has ended.
    #[error("{child} was not started, as the part that would hold it has stopped")]
    NotRunning {
        /// The child's name.
        child: String,
    },
    /// The supervisor was too busy to confirm in time; the child may start yet.
    #[error("the start of {child} was not confirmed within {} s", within.as_secs())]
    Unconfirmed {
        /// The child's name.
        child: String,
        /// How long we waited.
        within: Duration,
    },
}

/// What a child is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildState {
    /// It is up.
    Running,
    /// It failed and waits for its restart.
    Waiting {
        /// Failures in a row.
        failures: u32,
    },
    /// It is being removed.
    Stopping,
}

/// How long [`Supervisor::add`] waits for a supervisor that may be starting other children.
const ADD_WITHIN: Duration = Duration::from_secs(60);

/// A supervisor below another has children of its own to stop, one after the other.
const NESTED_STOP_WITHIN: Duration = Duration::from_secs(60);

impl Supervisor {
    /// Start a root and its children, each after the one before it is up. A child whose start fails is tried again in
    /// its place; past the limits the children already up are stopped in reverse order and the error names the child.
    /// Later, past its limits, `ended()` resolves with the reason and the process should exit non-zero.
    pub async fn start(name: &str, limits: Limits, children: Vec<Child>) -> Result<Self, StartError> {
        let supervisor = Self::vacant();
        let failed = Arc::default();
        let seed = Seed {
            name: name.to_owned(),
            limits,
            children,
            ended: Arc::clone(&supervisor.ended),
            root: Some(Arc::clone(&failed)),
        };
        match Actor::spawn(None, Overseer, seed).await {
            Ok((actor, _)) => {
                supervisor.address.fill(actor);
                Ok(supervisor)
            }
            Err(error) => Err(child::taken_from(&failed)
                .unwrap_or_else(|| StartError::Failed { child: name.to_owned(), why: child::reason(error) })),
        }
    }

    /// A handle that no supervisor stands behind yet: the slot for [`Supervisor::as_child`].
    #[must_use]
    pub fn vacant() -> Self {
        Self { address: Address::vacant(), ended: Arc::new(watch::Sender::new(None)) }
    }

    /// A supervisor below another one, reached through `slot`. `children` builds its first children at each start;
    /// children that were added later are gone after a restart, and their owner adds them again. If one of its
    /// children fails past `limits`, it fails as a whole, and its parent counts that as one failure of it.
    /// Inside it a first start that fails is not retried: it fails the whole start, which its parent retries.
    #[must_use]
    pub fn as_child(
        name: impl Into<String>,
        limits: Limits,
        mut children: impl FnMut() -> Vec<Child> + Send + 'static,
        slot: &Self,
    ) -> Child {
        let (name, ended) = (name.into(), Arc::clone(&slot.ended));
        let own_name = name.clone();
        let make = move || {
            let seed = Seed {
                name: own_name.clone(),
                limits,
                children: children(),
                ended: Arc::clone(&ended),
                root: None,
            };
            (Overseer, seed)
        };
        Child::new::<Overseer>(name, slot.address.clone(), make).stop_within(NESTED_STOP_WITHIN)
    }

    /// Add a child and start it. If its first start fails it is kept and tried again like any other failure, so `Ok`
    /// means "the supervisor holds it"; only a child that is never restarted is refused with [`StartError::Failed`].
    pub async fn add(&self, child: Child) -> Result<(), StartError> {
        let name = child.name().to_owned();
        match self.address.ask(ADD_WITHIN, |reply| Msg::Add(child, reply)).await {
            Ok(added) => added,
            Err(AskError::Gone | AskError::Dropped) => Err(StartError::NotRunning { child: name }),
            Err(AskError::TimedOut { within }) => Err(StartError::Unconfirmed { child: name, within }),
        }
    }

    /// Stop a child for good and wait until it has stopped; a pending restart is cancelled and never comes. An unknown
    /// name is nothing to do. A child must not await its own removal inside a handler: it would wait for itself.
    pub async fn remove(&self, name: &str) {
        let (reply, removed) = oneshot::channel();
        let asked = self.address.tell(Msg::Remove(name.to_owned(), Reply::from(reply)));
        if asked.is_ok() {
            // A supervisor that ends meanwhile stops the child as well and drops the reply.
            drop(removed.await);
        }
    }

    /// What each child is doing, in start order. That this is answered at all is what the watchdog asks.
    pub async fn alive(&self, within: Duration) -> Result<Vec<(String, ChildState)>, AskError> {
        self.address.ask(within, Msg::Alive).await
    }

    /// Stop the children in reverse order, each within its time (then it is killed), and then the supervisor. Messages
    /// still in a mailbox are dropped; `post_stop` of each runs. Calling it again waits for the same end.
    pub async fn stop(&self) {
        if let Some(cell) = self.address.cell() {
            cell.stop(None);
            // Without a limit: each child's own limit bounds it.
            drop(cell.wait(None).await);
        }
    }

    /// Wait for the end, and learn how it came. After the end it answers at once. For a supervisor below another it
    /// tells how its present or last life ended.
    pub async fn ended(&self) -> Ended {
        let mut ended = self.ended.subscribe();
        let result = match ended.wait_for(Option::is_some).await {
            Ok(ended) => ended.clone(),
            Err(_) => None,
        };
        // The sender lives in `self`, so the wait cannot end without a value.
        result.unwrap_or(Ended::Stopped)
    }
}
