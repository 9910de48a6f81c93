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
    /// The point it is to die at once more.
    again: Option<String>,
    fencing: u64,
    declared: u64,
}

impl World {
    pub fn new(side: Side) -> Self {
        let sandbox = Sandbox::of(PROGRAMS);
        Self { sandbox, side, died: 0, again: None, fencing: 0, declared: 0 }
    }

    /// Kills both, and starts both, the one of this side under this order.
    pub fn begin(&mut self, order: Order<'_>) {
        drop(self.sandbox.host.take());
        drop(self.sandbox.control.take());
        self.died = 0;
        self.again = None;
        let log;
        let environment = match order {
            Order::Live => None,
            Order::Tell(path) => {
                log = text(path);
                Some(("TENURE_CRASH_LOG", log.as_str()))
            }
            Order::Die(point) => Some(("TENURE_CRASH", point)),
            Order::DieTwice(point) => {
                self.again = Some(point.to_owned());
                Some(("TENURE_CRASH", point))
            }
        };
        self.start(environment);
        self.start_other();
    }

    fn start(&mut self, environment: Option<(&str, &str)>) {
        let environment: Vec<(&str, &str)> = environment.into_iter().collect();
        match self.side {
            Side::Host => self.sandbox.spawn_host(&environment),
            Side::Control => self.sandbox.spawn_control(&self.sandbox.address(), &environment),
        }
    }

    fn start_other(&mut self) {
        match self.side {
            Side::Host => self.sandbox.spawn_control(&self.sandbox.address(), &[]),
            Side::Control => self.sandbox.spawn_host(&[]),
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
        assert!(
            self.other().as_mut().is_some_and(Running::is_running),
            "the other side ended: {:?}",
            self.side
        );
        let Some(status) = self.killed().as_mut().and_then(Running::ended) else { return };
        assert_eq!(status.signal(), Some(9), "{:?} ended with {status}", self.side);
        self.died += 1;
        let again = self.again.take();
        self.start(again.as_deref().map(|point| ("TENURE_CRASH", point)));
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
