//! The loop: one pass at a time, on a worker thread, for four triggers and whoever asks by hand. It owns the timer and
//! nothing else that happens; it never reads the link, and the link never waits for it. Daemon, link and socket talk
//! to it through [`Reconcile`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tenure_actors::clock::SharedClock;
use tenure_actors::timer::{Timer, after, jittered};
use tenure_actors::watchdog::Progress;
use tenure_actors::work::{Panicked, Work, blocking};
use tenure_actors::{Address, AskError, Child, Reply, answer};
use tenure_protocol::id::Revision;
use tenure_protocol::refusal::Refusal;
use tenure_protocol::report::{Summary, Trigger};
use tokio::sync::{Notify, oneshot};

use super::memory::SharedMemory;
use super::pass::Rejected;
use super::patience::Patience;
use super::queue::Queue;
use super::turn::{self, NoTurn, Turn};
use crate::ground::Ground;
use crate::outbox::Outbox;
use crate::resource::Reading;
use crate::store::{Store, StoreTrouble};

/// Speaks to the loop.
#[derive(Debug, Clone)]
pub struct Reconcile {
    address: Address<Msg>,
}

/// What the loop works with.
#[derive(Clone)]
pub struct Setting {
    /// Where.
    pub ground: Ground,
    /// The store.
    pub store: Store,
    /// The time of day.
    pub clock: SharedClock,
    /// Where what a pass has to tell goes.
    pub outbox: Outbox,
    /// How often to look for drift.
    pub every: Duration,
    /// How often such a look reads everything.
    pub full_look: Duration,
    /// What passes leave to the next one.
    pub memory: SharedMemory,
    /// What the watchdog is told.
    pub progress: Progress,
    /// Asks whoever opened the store to open it anew.
    pub anew: Arc<Notify>,
}

impl Reconcile {
    /// One that nobody stands behind yet.
    pub fn new() -> Self {
        Self { address: Address::vacant() }
    }

    /// A pass is wanted. Several of these before one begins make one pass.
    pub fn wanted(&self, trigger: Trigger) {
        // Between two lives of the loop there is nobody; it begins each with a pass.
        let _ = self.address.tell(Msg::Wanted(trigger));
    }

    /// A declaration was refused whole: the next summary says so, and there is one now.
    pub fn refused(&self, revision: Revision, why: Refusal) {
        let _ = self.address.tell(Msg::Refused(Rejected { revision: Some(revision), why }));
    }

    /// A declaration was admitted and stored.
    pub fn admitted(&self) {
        let _ = self.address.tell(Msg::Admitted);
    }

    /// A pass by hand; answers when one that began after this is over.
    pub async fn ask(&self, within: Duration) -> Result<Result<Summary, Refusal>, AskError> {
        self.address.ask(within, Msg::Asked).await
    }

    /// The actor, for the tree.
    pub fn child(&self, setting: Setting) -> Child {
        Child::new("reconcile", self.address.clone(), move || (Looping, setting.clone()))
            .stop_within(STOP_WITHIN)
    }
}

impl Default for Reconcile {
    fn default() -> Self {
        Self::new()
    }
}

/// A pass that is told to end does so after the group it works on; a disk that hangs is not waited for longer.
const STOP_WITHIN: Duration = Duration::from_secs(60);
/// So that a fleet that started together does not look together (O-61).
const JITTER: f64 = 0.2;

struct Looping;

enum Msg {
    Wanted(Trigger),
    Refused(Rejected),
    Admitted,
    Asked(Reply<Result<Summary, Refusal>>),
    TimerDue,
    Done(Result<Result<Turn, NoTurn>, Panicked>),
}

struct Loop {
    setting: Setting,
    queue: Queue,
    /// Why the newest declaration that came was not admitted.
    refused: Option<Rejected>,
    /// Those the pass that runs is for, and those who asked since.
    served: Vec<Reply<Result<Summary, Refusal>>>,
    waiting: Vec<Reply<Result<Summary, Refusal>>>,
    running: Option<Running>,
    /// What was wrong in the turn before, as it was said in the log.
    said: Option<Refusal>,
    patience: Patience,
    _timer: Timer,
}

struct Running {
    cancelled: Arc<AtomicBool>,
    /// Resolves when the worker thread has left the pass.
    over: oneshot::Receiver<()>,
    _work: Work,
}

/// Whoever lets go of a running pass has it end with the group it works on.
impl Drop for Running {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

impl Actor for Looping {
    type Msg = Msg;
    type State = Loop;
    type Arguments = Setting;

    async fn pre_start(&self, me: ActorRef<Msg>, setting: Setting) -> Result<Loop, ActorProcessingErr> {
        drop(me.send_message(Msg::Wanted(Trigger::Start)));
        let timer = due(&me, setting.every);
        Ok(Loop {
            setting,
            queue: Queue::default(),
            refused: None,
            served: Vec::new(),
            waiting: Vec::new(),
            running: None,
            said: None,
            patience: Patience::default(),
            _timer: timer,
        })
    }

    async fn handle(&self, me: ActorRef<Msg>, msg: Msg, this: &mut Loop) -> Result<(), ActorProcessingErr> {
        match msg {
            Msg::Wanted(trigger) => this.wanted(&me, trigger),
            Msg::Refused(rejected) => this.refused(&me, rejected),
            Msg::Admitted => this.admitted(&me),
            Msg::Asked(reply) => this.asked(&me, reply),
            Msg::TimerDue => this.timer_due(&me),
            Msg::Done(done) => this.done(&me, done),
        }
        Ok(())
    }

    /// The store closes after us: a pass that still changes the machine must have written down what it did.
    async fn post_stop(&self, _: ActorRef<Msg>, this: &mut Loop) -> Result<(), ActorProcessingErr> {
        if let Some(mut running) = this.running.take() {
            running.cancelled.store(true, Ordering::Relaxed);
            // An error says that the thread has dropped its end, which is what is waited for.
            let _ = (&mut running.over).await;
        }
        Ok(())
    }
}

impl Loop {
    fn wanted(&mut self, me: &ActorRef<Msg>, trigger: Trigger) {
        if let Some(trigger) = self.queue.wanted(trigger) {
            self.begin(me, trigger);
        }
    }

    fn refused(&mut self, me: &ActorRef<Msg>, rejected: Rejected) {
        self.refused = Some(rejected);
        self.wanted(me, Trigger::Declaration);
    }

    fn admitted(&mut self, me: &ActorRef<Msg>) {
        self.refused = None;
        self.wanted(me, Trigger::Declaration);
    }

    fn asked(&mut self, me: &ActorRef<Msg>, reply: Reply<Result<Summary, Refusal>>) {
        self.waiting.push(reply);
        self.wanted(me, Trigger::Asked);
    }

    fn timer_due(&mut self, me: &ActorRef<Msg>) {
        self._timer = due(me, self.setting.every);
        self.wanted(me, Trigger::Timer);
    }

    fn begin(&mut self, me: &ActorRef<Msg>, trigger: Trigger) {
        self.served.append(&mut self.waiting);
        // Whoever asks by hand wants to know, whatever else the pass is for; and nothing is known yet at a start.
        let whole = trigger == Trigger::Start || !self.served.is_empty();
        let reading = if whole { Reading::Whole } else { Reading::WhatMayHaveChanged };
        let (end, over) = oneshot::channel::<()>();
        let cancelled = Arc::new(AtomicBool::new(false));
        let (setting, refused, stop) = (self.setting.clone(), self.refused.clone(), Arc::clone(&cancelled));
        let job = move || {
            let turn = turn::run(&setting, (trigger, reading), refused, &stop);
            drop(end);
            turn
        };
        self.running = Some(Running { cancelled, over, _work: blocking(me, job, Msg::Done) });
    }

    fn done(&mut self, me: &ActorRef<Msg>, done: Result<Result<Turn, NoTurn>, Panicked>) {
        self.running = None;
        let answers = match done {
            Ok(Ok(Turn::Idle)) => {
                self.say(None);
                Err(turn::nothing_to_hold())
            }
            Ok(Ok(Turn::Done { report, store_trouble, waits })) => {
                self.wait(me, waits);
                self.say(store_trouble.map(|StoreTrouble { refusal, .. }| refusal));
                let summary = report.summary.clone();
                self.setting.outbox.put(*report);
                Ok(summary)
            }
            Ok(Err(no_turn)) => {
                let refusal = no_turn.refusal();
                self.say(Some(refusal.clone()));
                Err(refusal)
            }
            Err(panicked) => {
                let refusal = turn::broke_off(&panicked);
                self.say(Some(refusal.clone()));
                Err(refusal)
            }
        };
        for reply in self.served.drain(..) {
            answer(reply, answers.clone());
        }
        if let Some(trigger) = self.queue.done() {
            self.begin(me, trigger);
        }
    }

    /// Looks again before the timer is due where something waits for who is soon done.
    fn wait(&mut self, me: &ActorRef<Msg>, waits: bool) {
        if let Some(sooner) = self.patience.after(waits, self.setting.every) {
            self._timer = due(me, sooner);
        }
    }

    /// One line when something stops the passes, and one when nothing does any more (H-10).
    fn say(&mut self, wrong: Option<Refusal>) {
        match (&self.said, &wrong) {
            (Some(before), Some(now)) if before.code == now.code => {}
            (_, Some(now)) => {
                tracing::error!(code = %now.code, why = now.happened, "nothing more is changed");
            }
            (Some(before), None) => tracing::info!(code = %before.code, "changes are made again"),
            (None, None) => {}
        }
        self.said = wrong;
    }
}

fn due(me: &ActorRef<Msg>, every: Duration) -> Timer {
    after(me, jittered(every, JITTER), || Msg::TimerDue)
}
