//! One child: how to make it, when to make it again, how long it may take. The supervisor's actor calls it.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ractor::{Actor, ActorCell, SpawnErr};

use super::StartError;
use crate::address::Address;
use crate::work::said;

/// A child as its supervisor holds it: a name, a way to make it anew, and what to do when it ends.
pub struct Child {
    name: String,
    restart: Restart,
    stop_within: Duration,
    start: Box<dyn FnMut(ActorCell) -> Starting + Send>,
    vacate: Box<dyn Fn() + Send>,
}

type Starting = Pin<Box<dyn Future<Output = Result<ActorCell, String>> + Send>>;

/// When a child that has ended is started again. One that is not is forgotten, and its name is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Restart {
    /// However it ended; an end that nobody asked for counts as a failure.
    #[default]
    Always,
    /// After a panic, an error or a kill; not after an end of its own will.
    OnFailure,
    /// Not at all.
    Never,
}

const STOP_WITHIN: Duration = Duration::from_secs(5);

/// A start that takes longer has failed. Slow things belong into `post_start` or a first message: while a child's
/// `pre_start` runs, its supervisor does nothing else.
const START_WITHIN: Duration = Duration::from_secs(30);

/// How long a killed child may take to reach an await point before we go on without it.
const KILL_WITHIN: Duration = Duration::from_secs(1);

impl Child {
    /// `make` builds a fresh actor and its arguments at each (re)start; the address is refilled each time and emptied
    /// when the actor ends. A `make` that panics is a failed start. Actors get no ractor name: those are process-wide.
    pub fn new<A: Actor>(
        name: impl Into<String>,
        address: Address<A::Msg>,
        mut make: impl FnMut() -> (A, A::Arguments) + Send + 'static,
    ) -> Self
    where
        A::Msg: Send + 'static,
    {
        let emptied = address.clone();
        let start = move |supervisor: ActorCell| -> Starting {
            let made = catch_unwind(AssertUnwindSafe(&mut make));
            let address = address.clone();
            Box::pin(async move {
                let (actor, arguments) = made.map_err(|panic| said(panic.as_ref()))?;
                let (actor, _) = A::spawn_linked(None, actor, arguments, supervisor).await.map_err(reason)?;
                address.fill(actor.clone());
                Ok(actor.get_cell())
            })
        };
        Self {
            name: name.into(),
            restart: Restart::default(),
            stop_within: STOP_WITHIN,
            start: Box::new(start),
            vacate: Box::new(move || emptied.vacate()),
        }
    }

    /// When to start it again; [`Restart::Always`] unless said.
    #[must_use]
    pub fn restart(self, restart: Restart) -> Self {
        Self { restart, ..self }
    }

    /// How long it may take to stop before it is killed; five seconds unless said.
    #[must_use]
    pub fn stop_within(self, stop_within: Duration) -> Self {
        Self { stop_within, ..self }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Is it started again after this end?
    pub(super) fn comes_back(&self, failed: bool) -> bool {
        match self.restart {
            Restart::Always => true,
            Restart::OnFailure => failed,
            Restart::Never => false,
        }
    }

    pub(super) async fn start(&mut self, supervisor: ActorCell) -> Result<ActorCell, String> {
        match tokio::time::timeout(START_WITHIN, (self.start)(supervisor)).await {
            Ok(started) => started,
            Err(_) => Err(format!("it had not started after {START_WITHIN:?}")),
        }
    }

    pub(super) fn vacate(&self) {
        (self.vacate)();
    }

    pub(super) fn time_to_stop(&self) -> Duration {
        self.stop_within
    }
}

impl std::fmt::Debug for Child {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Child")
            .field("name", &self.name)
            .field("restart", &self.restart)
            .finish_non_exhaustive()
    }
}

/// Stop one actor: politely, then by force, then without it.
pub(super) async fn stop(name: &str, cell: &ActorCell, within: Duration) {
    cell.stop(None);
    if cell.wait(Some(within)).await.is_ok() {
        return;
    }
    tracing::warn!(child = name, ?within, "did not stop in its time: killing it");
    cell.kill();
    if cell.wait(Some(KILL_WITHIN)).await.is_err() {
        tracing::error!(child = name, "is busy in blocking code and cannot be killed: going on without it");
    }
}

/// Why a start failed, in the actor's own words.
pub(super) fn reason(error: SpawnErr) -> String {
    match error {
        SpawnErr::StartupFailed(why) => why.to_string(),
        SpawnErr::ActorAlreadyStarted | SpawnErr::ActorAlreadyRegistered(_) => error.to_string(),
    }
}

pub(super) fn taken_from(place: &Mutex<Option<StartError>>) -> Option<StartError> {
    place.lock().unwrap_or_else(PoisonError::into_inner).take()
}
