//! The outcomes of a pass as they come: since when, how often, what changed since the pass before, and which failures
//! began and ended. It knows no disk; what it is told is what was read back.

use std::collections::HashMap;

use tenure_protocol::event::{FAILURE_BEGAN, FAILURE_ENDED, NodeEvent};
use tenure_protocol::id::{EventId, Millis};
use tenure_protocol::outcome::{Outcome, ResourceOutcome};
use tenure_protocol::text::shown;

use super::pass::Progress;
use crate::resource::{Stands, Trouble};
use crate::store::{Remembered, in_a_row};

/// What became of one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) outcome: Outcome,
    pub(super) code: Option<&'static str>,
    pub(super) reason: Option<String>,
}

impl Verdict {
    pub(super) const fn plain(outcome: Outcome) -> Self {
        Self { outcome, code: None, reason: None }
    }

    pub(super) fn because(outcome: Outcome, code: &'static str, reason: impl Into<String>) -> Self {
        Self { outcome, code: Some(code), reason: Some(reason.into()) }
    }
}

impl From<Trouble> for Verdict {
    fn from(Trouble { stands, code, reason }: Trouble) -> Self {
        let outcome = match stands {
            Stands::Refused => Outcome::Refused,
            Stands::Failed => Outcome::Failed,
            Stands::Outstanding => Outcome::Outstanding,
            Stands::Unknown => Outcome::Unknown,
        };
        Self::because(outcome, code, reason)
    }
}

/// The book of one pass.
pub(super) struct Book<'a> {
    pub(super) pass: u64,
    pub(super) now: Millis,
    pub(super) total: usize,
    progress: &'a (dyn Fn(Progress<'_>) + Sync),
    /// What the pass before had to say; what is left at the end is forgotten.
    previous: HashMap<String, Remembered>,
    pub(super) lines: Vec<ResourceOutcome>,
    /// Which of the lines differ from the pass before, by position.
    changed: Vec<usize>,
    /// What is to be kept of this pass.
    pub(super) remember: Vec<Remembered>,
    /// What happened and is in the spool already, with its record.
    pub(super) events: Vec<NodeEvent>,
    /// What happened and is to be spooled at the end.
    failures: Vec<NodeEvent>,
}

/// What is left when a pass is over.
pub(super) struct Closed {
    pub(super) lines: Vec<ResourceOutcome>,
    pub(super) changed: Vec<ResourceOutcome>,
    pub(super) remember: Vec<Remembered>,
    pub(super) forgotten: Vec<String>,
    pub(super) events: Vec<NodeEvent>,
    /// Those of the events that are not in the spool yet.
    pub(super) unspooled: Vec<NodeEvent>,
}

/// The longest reason and event text.
const MOST: usize = 480;

impl<'a> Book<'a> {
    pub(super) fn new(
        pass: u64,
        now: Millis,
        previous: HashMap<String, Remembered>,
        progress: &'a (dyn Fn(Progress<'_>) + Sync),
    ) -> Self {
        Self {
            pass,
            now,
            total: 0,
            progress,
            previous,
            lines: Vec::new(),
            changed: Vec::new(),
            remember: Vec::new(),
            events: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// What was said in the pass before of a resource whose turn has not come yet in this one.
    pub(super) fn before(&self, key: &str) -> Option<&ResourceOutcome> {
        self.previous.get(key).map(|before| &before.line)
    }

    /// An event of this pass; `text` is bounded and escaped.
    pub(super) fn event(&self, kind: &str, key: &str, text: &str) -> NodeEvent {
        NodeEvent {
            id: EventId::random(),
            at: self.now,
            kind: kind.to_owned(),
            key: Some(key.to_owned()),
            text: shown(text, MOST),
        }
    }

    /// Writes what became of a resource, and tells how far the pass is.
    pub(super) fn write(&mut self, key: &str, module: &str, verdict: Verdict) {
        let Verdict { outcome, code, reason } = verdict;
        let reason = reason.map(|reason| shown(&reason, MOST));
        let before = self.previous.remove(key);
        self.compare(key, before.as_ref(), outcome, reason.as_deref());
        let (since, began) = match &before {
            Some(before) if before.line.outcome == outcome => (before.line.since, before.began),
            Some(_) | None => (self.now, self.pass),
        };
        let count = in_a_row(began, self.pass);
        let line = ResourceOutcome {
            key: key.to_owned(),
            module: module.to_owned(),
            outcome,
            since,
            count,
            code: code.map(str::to_owned),
            reason,
        };
        let same = before.is_some_and(|before| is_same(&before.line, &line));
        if !same {
            self.remember.push(Remembered { line: line.clone(), began });
        }
        // A failure is told in every pass; its count rises.
        if !same || outcome == Outcome::Failed {
            self.changed.push(self.lines.len());
        }
        self.lines.push(line);
        if let Some(outcome) = self.lines.last() {
            (self.progress)(Progress { done: self.lines.len(), total: self.total, outcome });
        }
    }

    fn compare(&mut self, key: &str, before: Option<&Remembered>, outcome: Outcome, reason: Option<&str>) {
        let failed = before.is_some_and(|before| before.line.outcome == Outcome::Failed);
        match (failed, outcome == Outcome::Failed) {
            (false, true) => {
                self.failures.push(self.event(FAILURE_BEGAN, key, reason.unwrap_or("it failed")))
            }
            (true, false) => {
                self.failures.push(self.event(FAILURE_ENDED, key, &format!("it is {outcome} now")))
            }
            (true, true) | (false, false) => {}
        }
    }

    pub(super) fn close(mut self) -> Closed {
        let mut forgotten: Vec<String> = Vec::new();
        for (key, before) in std::mem::take(&mut self.previous) {
            if before.line.outcome == Outcome::Failed {
                self.failures.push(self.event(FAILURE_ENDED, &key, "it left the declaration"));
            }
            forgotten.push(key);
        }
        forgotten.sort_unstable();
        let changed = self.changed.iter().filter_map(|at| self.lines.get(*at).cloned()).collect();
        let Self { mut lines, remember, mut events, failures, .. } = self;
        events.extend(failures.iter().cloned());
        lines.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        Closed { lines, changed, remember, forgotten, events, unspooled: failures }
    }
}

/// Whether two lines say the same, but for how often it was said.
fn is_same(before: &ResourceOutcome, now: &ResourceOutcome) -> bool {
    before.outcome == now.outcome
        && before.module == now.module
        && before.since == now.since
        && before.code == now.code
        && before.reason == now.reason
}
