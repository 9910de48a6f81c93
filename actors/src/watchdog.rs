//! The watchdog keeps systemd's opinion of us honest: it sends the keepalive only while the root supervisor answers
//! and no declared step is overdue. It never restarts anything; systemd does, when the keepalive stays away.
//! The daemons' roots add it last; whoever does long work holds a [`Progress`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::time::Instant;

use crate::address::{Address, AskError};
use crate::supervisor::{Child, StartError, Supervisor};
use crate::systemd;
use crate::timer::{Timer, after};
use crate::work::{Panicked, Work, work};

#[cfg(test)]
mod tests;

/// What a loop says it is doing, and how long that may take. Clones are cheap and share what was said.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    step: Arc<Mutex<Option<Step>>>,
}

#[derive(Debug)]
struct Step {
    name: String,
    budget: Duration,
    since: Instant,
}

impl Progress {
    /// Idle until a step is declared.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on this is being done, and it should end or be followed by another step within `budget`.
    pub fn step(&self, name: impl Into<String>, budget: Duration) {
        *self.lock() = Some(Step { name: name.into(), budget, since: Instant::now() });
    }

    /// Nothing is being done, and nothing is expected.
    pub fn idle(&self) {
        *self.lock() = None;
    }

    /// What is past its budget at `now`, in words; `None` when all is well.
    #[must_use]
    pub fn overdue(&self, now: Instant) -> Option<String> {
        let step = self.lock();
        let step = step.as_ref()?;
        let taken = now.saturating_duration_since(step.since);
        let seconds = taken.as_secs();
        (taken > step.budget)
            .then(|| format!("{} has taken {seconds} s of {} s", step.name, step.budget.as_secs()))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Step>> {
        self.step.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watch over `root`, if systemd asked to be told. The watchdog becomes the last child of that root.
pub async fn watch(root: &Supervisor, progress: &Progress) -> Result<(), StartError> {
    match systemd::watchdog_interval() {
        Some(interval) => root.add(child(root, progress, interval, tell_systemd)).await,
        None => Ok(()),
    }
}

/// What one look found.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Pulse {
    Alive,
    Withheld(String),
}

fn tell_systemd(pulse: &Pulse) {
    match pulse {
        Pulse::Alive => systemd::keepalive(),
        // Saying nothing is what makes systemd act.
        Pulse::Withheld(_) => {}
    }
}

fn child(
    root: &Supervisor,
    progress: &Progress,
    interval: Duration,
    tell: impl Fn(&Pulse) + Clone + Send + Sync + 'static,
) -> Child {
    let (root, progress) = (root.clone(), progress.clone());
    Child::new(WATCHDOG, Address::vacant(), move || {
        let tell: Tell = Box::new(tell.clone());
        (
            Watchdog,
            Watch {
                root: root.clone(),
                progress: progress.clone(),
                every: interval / 3,
                tell,
                now: Now::Well,
            },
        )
    })
}

const WATCHDOG: &str = "watchdog";

struct Watchdog;

type Tell = Box<dyn Fn(&Pulse) + Send + Sync>;

struct Watch {
    root: Supervisor,
    progress: Progress,
    /// A third of systemd's interval: one late answer is not yet a death.
    every: Duration,
    tell: Tell,
    now: Now,
}

/// Whether the last look was already complained about: one line per change, not one per look.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Now {
    Well,
    Unwell,
}

struct Looking {
    watch: Watch,
    _due: Option<Timer>,
    _look: Option<Work>,
}

enum Msg {
    LookDue,
    Answered(Result<Result<(), AskError>, Panicked>),
}

impl Actor for Watchdog {
    type Msg = Msg;
    type State = Looking;
    type Arguments = Watch;

    async fn pre_start(&self, me: ActorRef<Msg>, watch: Watch) -> Result<Looking, ActorProcessingErr> {
        drop(me.send_message(Msg::LookDue));
        Ok(Looking { watch, _due: None, _look: None })
    }

    async fn handle(
        &self,
        me: ActorRef<Msg>,
        msg: Msg,
        looking: &mut Looking,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            Msg::LookDue => looking.look(&me),
            Msg::Answered(answer) => looking.answered(answer),
        }
        Ok(())
    }
}

impl Looking {
    /// Ask beside the mailbox: the root may be waiting for this very actor to stop.
    fn look(&mut self, me: &ActorRef<Msg>) {
        let (root, within) = (self.watch.root.clone(), self.watch.every);
        self._look = Some(work(me, async move { root.alive(within).await.map(drop) }, Msg::Answered));
        self._due = Some(after(me, self.watch.every, || Msg::LookDue));
    }

    fn answered(&mut self, answer: Result<Result<(), AskError>, Panicked>) {
        let pulse = judge(answer, self.watch.progress.overdue(Instant::now()));
        let now = match &pulse {
            Pulse::Alive => Now::Well,
            Pulse::Withheld(_) => Now::Unwell,
        };
        if now != self.watch.now {
            match &pulse {
                Pulse::Alive => {
                    tracing::info!("well again: the keepalive is sent");
                    systemd::status("well again");
                }
                Pulse::Withheld(why) => {
                    tracing::error!(%why, "not well: the keepalive is withheld");
                    systemd::status(&format!("not well: {why}"));
                }
            }
            self.watch.now = now;
        }
        (self.watch.tell)(&pulse);
    }
}

fn judge(answer: Result<Result<(), AskError>, Panicked>, overdue: Option<String>) -> Pulse {
    match (answer, overdue) {
        (Ok(Ok(())), None) => Pulse::Alive,
        (Ok(Ok(())), Some(step)) => Pulse::Withheld(step),
        (Ok(Err(error)), _) => Pulse::Withheld(format!("the root does not answer: {error}")),
        (Err(panicked), _) => Pulse::Withheld(panicked.to_string()),
    }
}
