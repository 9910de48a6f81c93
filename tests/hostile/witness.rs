//! The node that behaves well while others do not: it must go on working during every attack and after it, over the
//! session it had before.

use std::cell::Cell;

use serde_json::Value;
use tenure_tests::program::Running;
use tenure_tests::sandbox::Sandbox;

use crate::memory::Memory;

/// A control plane with one node that beats each second.
pub(crate) struct Witness {
    pub(crate) sandbox: Sandbox,
    session: Value,
    rounds: Cell<u32>,
}

impl Witness {
    /// One whose node is enrolled and holds its first declaration.
    pub(crate) fn new() -> Self {
        let mut sandbox = Sandbox::empty();
        sandbox.write("control/etc/tenure/control.toml", "heartbeat_seconds = 1\n");
        sandbox.start_control();
        sandbox.start_host();
        sandbox.enrol("edge-1", &[]);
        sandbox.wait_for_state("edge-1", "ready");
        sandbox.wait("its session is open", |sandbox| !sandbox.node()["session"].is_null());
        let session = sandbox.node()["session"]["session"].clone();
        let witness = Self { sandbox, session, rounds: Cell::new(0) };
        witness.works();
        witness
    }

    /// It takes a new declaration, reports it, and beats, all over the session it had.
    pub(crate) fn works(&self) {
        self.rounds.set(self.rounds.get() + 1);
        let text = format!("round {}", self.rounds.get());
        self.sandbox.module(&format!("[[file]]\npath = \"/a.txt\"\ncontent = \"{text}\"\n"));
        self.sandbox.declare(&[]).expect(0);
        assert_eq!(self.sandbox.read("/a.txt").as_deref(), Some(text.as_str()));
        let before = self.sandbox.node();
        assert_eq!(before["session"]["session"], self.session, "its session was disturbed: {before}");
        self.sandbox.wait("it beats", |sandbox| {
            sandbox.node()["last_contact"].as_i64() > before["last_contact"].as_i64()
        });
        self.nothing_panicked();
    }

    /// Whatever was sent, no part of either program broke on it.
    pub(crate) fn nothing_panicked(&self) {
        for running in [&self.sandbox.control, &self.sandbox.host].into_iter().flatten() {
            assert!(!running.said().contains("panicked"), "{}", running.said());
        }
    }

    /// It works again, over a session of its own choosing.
    pub(crate) fn works_again(&mut self) {
        self.sandbox.wait("its session is open", |sandbox| !sandbox.node()["session"].is_null());
        self.session = self.sandbox.node()["session"]["session"].clone();
        self.works();
    }

    pub(crate) fn control(&self) -> &Running {
        self.sandbox.control.as_ref().expect("it runs")
    }

    pub(crate) fn host(&self) -> &Running {
        self.sandbox.host.as_ref().expect("it runs")
    }

    /// What the control plane holds from here on.
    pub(crate) fn memory(&self) -> Memory {
        Memory::of(self.control())
    }
}
