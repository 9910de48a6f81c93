//! The beat: facts upward while a session is open, so that silence means something. It is an actor of its own, apart
//! from the reconcile loop and its timer, and keeps beating through a long pass (H-07). It never ends a session: the
//! session itself notices that nothing is answered.

use std::path::PathBuf;
use std::time::Duration;

use tenure_actors::clock::SharedClock;
use tenure_actors::timer::{Timer, after};
use tenure_actors::work::{Panicked, Work, work};
use tenure_actors::{Address, Child};
use tenure_protocol::id::Millis;
use tenure_protocol::session;
use tenure_protocol::wire::{CallError, Outgoing};
use tokio::sync::watch;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::machine;

/// Speaks to the heartbeat.
#[derive(Debug, Clone)]
pub struct Heartbeat {
    address: Address<Msg>,
    control_time: watch::Sender<Option<Millis>>,
}

/// Where and how often to beat.
#[derive(Debug, Clone)]
pub struct Beat {
    /// The open session.
    pub outgoing: Outgoing,
    /// The lease it renews, as in `lease/edge-1`.
    pub to: String,
    /// How often.
    pub every: Duration,
}

impl Heartbeat {
    /// One that nobody stands behind yet.
    pub fn new() -> Self {
        Self { address: Address::vacant(), control_time: watch::Sender::new(None) }
    }

    /// A session opened: beat on it, at once and from then on. It takes the place of an earlier one, and ends by itself
    /// when the session's connection has ended.
    pub fn begin(&self, beat: Beat) {
        if self.address.tell(Msg::Begin(beat)).is_err() {
            tracing::warn!("heartbeat not running: the next session will beat");
        }
    }

    /// The control plane's clock as each answered beat tells it.
    pub fn control_time(&self) -> watch::Receiver<Option<Millis>> {
        self.control_time.subscribe()
    }

    /// The actor, for the tree. `state` is the directory whose disk counts.
    pub fn child(&self, clock: SharedClock, state: PathBuf) -> Child {
        let control_time = self.control_time.clone();
        Child::new("heartbeat", self.address.clone(), move || {
            let beats = Beats {
                clock: clock.clone(),
                state: state.clone(),
                control_time: control_time.clone(),
                beat: None,
                _due: None,
                _asking: None,
            };
            (Beating, beats)
        })
    }
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self::new()
    }
}

struct Beating;

enum Msg {
    Begin(Beat),
    BeatDue,
    Answered(Result<Result<session::Beaten, CallError>, Panicked>),
}

struct Beats {
    clock: SharedClock,
    state: PathBuf,
    control_time: watch::Sender<Option<Millis>>,
    beat: Option<Beat>,
    _due: Option<Timer>,
    _asking: Option<Work>,
}

impl Actor for Beating {
    type Msg = Msg;
    type State = Beats;
    type Arguments = Beats;

    async fn pre_start(&self, _: ActorRef<Msg>, beats: Beats) -> Result<Beats, ActorProcessingErr> {
        Ok(beats)
    }

    async fn handle(&self, me: ActorRef<Msg>, msg: Msg, beats: &mut Beats) -> Result<(), ActorProcessingErr> {
        match msg {
            Msg::Begin(beat) => beats.begin(&me, beat),
            Msg::BeatDue => beats.beat(&me),
            Msg::Answered(answer) => beats.answered(answer),
        }
        Ok(())
    }
}

impl Beats {
    fn begin(&mut self, me: &ActorRef<Msg>, beat: Beat) {
        self.beat = Some(beat);
        self.beat(me);
    }

    /// The disk is looked at beside the mailbox: a file system that hangs must not hold up the next beat.
    fn beat(&mut self, me: &ActorRef<Msg>) {
        let Some(beat) = self.beat.clone() else { return };
        self._due = Some(after(me, beat.every, || Msg::BeatDue));
        let (clock, state) = (self.clock.clone(), self.state.clone());
        let ask = async move {
            let looked = tokio::task::spawn_blocking(move || machine::facts(&state, clock.now())).await;
            let facts = looked.map_err(|_| CallError::Gone)?;
            beat.outgoing.call(&beat.to, &session::Heartbeat { facts }, ANSWER_WITHIN).await
        };
        self._asking = Some(work(me, ask, Msg::Answered));
    }

    fn answered(&mut self, answer: Result<Result<session::Beaten, CallError>, Panicked>) {
        match answer {
            Ok(Ok(beaten)) => {
                self.control_time.send_replace(Some(beaten.now));
            }
            // The session is over, and whoever opens the next one says so.
            Ok(Err(CallError::Gone)) => self.beat = None,
            Ok(Err(error)) => tracing::debug!(%error, "beat unanswered"),
            Err(panicked) => tracing::warn!(error = %panicked, "beat broke off"),
        }
    }
}

/// As long as any frame may take; the session's own silence is what counts.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
