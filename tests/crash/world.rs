//! A control plane and a host, each started anew when it has died, as its service manager would.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tenure_tests::program::{Ran, Running};
use tenure_tests::sandbox::{Programs, Sandbox, text};
use tenure_tests::wait;

pub const PROGRAMS: Programs =
    Programs { control: env!("CARGO_BIN_EXE_crash-control"), host: env!("CARGO_BIN_EXE_crash-host") };

/// Which of the two is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Host,
    Control,
}

/// What is to happen to it.
#[derive(Debug, Clone, Copy)]
pub enum Order<'a> {
    /// It lives.
    Live,
    /// Every point it passes is written down there.
    Tell(&'a Path),
    /// It dies at this point.
    Die(&'a str),
    /// And when it is started anew, it dies there once more.
    DieTwice(&'a str),
}

/// How long anything that is waited for may take, with many of these at work on two cores.
const SOON: Duration = Duration::from_secs(60);
/// Asking starts a program.
const PAUSE: Duration = Duration::from_millis(60);

pub struct World {
    pub sandbox: Sandbox,
    side: Side,
    /// How often it has died by its order, since that was given.
    died: usize,
    /// What its next start is told.
    ordered: Option<(&'static str, String)>,
    /// The point it is to die at once more.
    again: Option<String>,
    fencing: u64,
    declared: u64,
}

impl World {
    pub fn new(side: Side) -> Self {
        let sandbox = Sandbox::of(PROGRAMS);
        Self { sandbox, side, died: 0, ordered: None, again: None, fencing: 0, declared: 0 }
    }

    /// Kills both, as a power cut would.
    pub fn kill_both(&mut self) {
        drop(self.sandbox.host.take());
        drop(self.sandbox.control.take());
    }

    /// The next start of the one of this side is under this order.
    pub fn order(&mut self, order: Order<'_>) {
        self.died = 0;
        let (name, value) = match order {
            Order::Live => ("", String::new()),
            Order::Tell(path) => ("TENURE_CRASH_LOG", text(path)),
            Order::Die(point) | Order::DieTwice(point) => ("TENURE_CRASH", point.to_owned()),
        };
        self.ordered = (!name.is_empty()).then_some((name, value));
        self.again = match order {
            Order::DieTwice(point) => Some(point.to_owned()),
            Order::Live | Order::Tell(_) | Order::Die(_) => None,
        };
    }

    /// Starts this one; if it is the one of the order, it takes it.
    pub fn start(&mut self, which: Side) {
        let ordered = if which == self.side { self.ordered.take() } else { None };
        let environment: Vec<(&str, &str)> =
            ordered.iter().map(|(name, value)| (*name, value.as_str())).collect();
        match which {
            Side::Host => self.sandbox.spawn_host(&environment),
            Side::Control => self.sandbox.spawn_control(&self.sandbox.address(), &environment),
        }
    }

    fn killed(&mut self) -> &mut Option<Running> {
        match self.side {
            Side::Host => &mut self.sandbox.host,
            Side::Control => &mut self.sandbox.control,
        }
    }

    fn other(&mut self) -> &mut Option<Running> {
        match self.side {
            Side::Host => &mut self.sandbox.control,
            Side::Control => &mut self.sandbox.host,
        }
    }

    /// Starts anew what has died. Only a kill is a death; nothing may end by itself.
    fn tend(&mut self) {
        // One that is not started yet has not ended.
        let runs = self.other().as_mut().is_none_or(Running::is_running);
        assert!(runs, "the other side ended: {:?}", self.side);
        let Some(status) = self.killed().as_mut().and_then(Running::ended) else { return };
        assert_eq!(status.signal(), Some(9), "{:?} ended with {status}", self.side);
        self.died += 1;
        self.ordered = self.again.take().map(|point| ("TENURE_CRASH", point));
        self.start(self.side);
    }

    /// Stops the control plane in order; it may die over that, where it is told to.
    pub fn stop_control(&mut self) -> bool {
        let status = self.sandbox.control.take().map(Running::stop);
        let died = status.is_some_and(|status| status.signal() == Some(9));
        assert!(died || status.is_some_and(|status| status.success()), "it was not stopped: {status:?}");
        self.died += usize::from(died);
        if died {
            self.ordered = self.again.take().map(|point| ("TENURE_CRASH", point));
        }
        died
    }

    /// Which of the two is killed.
    pub const fn side(&self) -> Side {
        self.side
    }

    /// Whether it died by its order.
    pub fn has_died(&self) -> bool {
        self.died > 0
    }

    /// Waits until `look` finds something, while what dies is started anew.
    pub fn until<T>(&mut self, what: &str, mut look: impl FnMut(&mut Self) -> Option<T>) -> T {
        wait::until_each(PAUSE, what, SOON, || {
            self.tend();
            look(self)
        })
    }

    /// Has an operator do this until it worked. It may fail only where somebody died over it.
    pub fn done(&mut self, what: &str, act: impl Fn(&Sandbox) -> Ran) -> Ran {
        self.until(what, |world| {
            let ran = act(&world.sandbox);
            if ran.code == 0 {
                return Some(ran);
            }
            let starting = ran.err.contains("no_control_plane") || ran.err.contains("store_locked");
            if !world.has_died() && !starting {
                wait::until_each(
                    PAUSE,
                    &format!("{what}, which failed: {ran:?}: somebody died over it"),
                    SOON,
                    || {
                        world.tend();
                        world.has_died().then_some(())
                    },
                );
            }
            None
        })
    }

    /// What `tenure node edge-1 --json` says, if somebody answers. What it counts upward never goes back, whoever died.
    pub fn node(&mut self) -> Option<Value> {
        let node = answered(&self.sandbox.tenure(&["node", "edge-1", "--json"]))?;
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let (fencing, declared) = (number(&node["fencing_token"]), number(&node["revision"]["declared"]));
        assert!(fencing >= self.fencing, "fencing went back from {} to {fencing}", self.fencing);
        assert!(declared >= self.declared, "the revision went back from {} to {declared}", self.declared);
        (self.fencing, self.declared) = (fencing, declared);
        Some(node)
    }

    /// The events the control plane lists, if it answers.
    pub fn events(&self) -> Option<Vec<Value>> {
        answered(&self.sandbox.tenure(&["events", "--json"]))?.as_array().cloned()
    }

    /// What the host says of itself, if it answers.
    pub fn status(&self) -> Option<Value> {
        answered(&self.sandbox.host(&["status", "--json"]))
    }
}

/// What was printed as JSON by a command that worked.
pub fn answered(ran: &Ran) -> Option<Value> {
    (ran.code == 0).then(|| ran.json())
}
