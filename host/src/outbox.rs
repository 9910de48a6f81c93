//! What is to be told upward: the newest report, and that events wait in the spool. Reports are state: while there is
//! no link only the newest is kept (N-11). The reconcile loop puts in, an open session takes out.

use std::sync::Arc;

use tenure_protocol::id::{Digest, Millis};
use tenure_protocol::outcome::ResourceOutcome;
use tenure_protocol::report::{MOST_IN_A_PART, Part, Summary};
use tokio::sync::watch;

/// What one pass has to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The pass as a whole.
    pub summary: Summary,
    /// The outcomes that are other than in the pass before.
    pub changed: Vec<ResourceOutcome>,
    /// Keys of the pass before about which there is nothing more to say.
    pub forgotten: Vec<String>,
    /// Every outcome, where the store could not keep them (O-05); else they are read from it.
    pub all: Option<Vec<ResourceOutcome>>,
    /// When the content of everything was last read; stays here.
    pub read_whole: Option<Millis>,
}

/// The place where it waits. Clones share it.
#[derive(Debug, Clone)]
pub struct Outbox {
    newest: Arc<watch::Sender<Option<Arc<Report>>>>,
}

impl Default for Outbox {
    fn default() -> Self {
        Self { newest: Arc::new(watch::Sender::new(None)) }
    }
}

impl Outbox {
    /// Puts the newest report in place of an older one, and wakes whoever tells.
    pub fn put(&self, report: Report) {
        self.newest.send_replace(Some(Arc::new(report)));
    }

    /// What is newest, if there was anything yet.
    pub fn newest(&self) -> Option<Arc<Report>> {
        self.newest.borrow().clone()
    }

    /// For a session: what is newest, and when that changes.
    pub fn watch(&self) -> watch::Receiver<Option<Arc<Report>>> {
        self.newest.subscribe()
    }
}

/// How much of a report has to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The summary alone: the other side has every outcome already.
    Summary,
    /// What changed since the pass before, which it has.
    Changed,
    /// Everything.
    Everything,
}

/// What to tell of `summary` to somebody who acknowledged `told` last. Its own digest decides whether it believes us.
pub fn extent(told: Option<(u64, Digest)>, summary: &Summary) -> Extent {
    match told {
        Some((pass, _)) if pass.checked_add(1) == Some(summary.pass) => Extent::Changed,
        Some((_, digest)) if digest == summary.digest => Extent::Summary,
        Some(_) | None => Extent::Everything,
    }
}

/// Room in a frame for outcomes; the rest is the summary's and the envelope's.
const MOST_BYTES_IN_A_PART: usize = 160 * 1024;

/// The frames that tell `outcomes` and `forgotten`; at least one, so that the summary arrives.
pub fn parts(
    summary: &Summary,
    full: bool,
    outcomes: impl IntoIterator<Item = ResourceOutcome>,
    forgotten: impl IntoIterator<Item = String>,
) -> Vec<Part> {
    let empty = || Part {
        summary: summary.clone(),
        full,
        part: 0,
        outcomes: Vec::new(),
        forgotten: Vec::new(),
        last: false,
    };
    let mut parts = vec![empty()];
    let mut room = MOST_BYTES_IN_A_PART;
    for outcome in outcomes {
        let size = size(&outcome);
        if let Some(part) = part_with_room(&mut parts, &mut room, size, |p| p.outcomes.len(), &empty) {
            part.outcomes.push(outcome);
        }
    }
    for key in forgotten {
        let size = key.len().saturating_add(8);
        if let Some(part) = part_with_room(&mut parts, &mut room, size, |p| p.forgotten.len(), &empty) {
            part.forgotten.push(key);
        }
    }
    for (number, part) in parts.iter_mut().enumerate() {
        part.part = u32::try_from(number).unwrap_or(u32::MAX);
    }
    if let Some(last) = parts.last_mut() {
        last.last = true;
    }
    parts
}

fn part_with_room<'a>(
    parts: &'a mut Vec<Part>,
    room: &mut usize,
    size: usize,
    count: impl Fn(&Part) -> usize,
    empty: &impl Fn() -> Part,
) -> Option<&'a mut Part> {
    let full = parts.last().is_some_and(|part| count(part) >= MOST_IN_A_PART) || *room < size;
    if full {
        parts.push(empty());
        *room = MOST_BYTES_IN_A_PART;
    }
    *room = room.saturating_sub(size);
    parts.last_mut()
}

/// What an outcome takes in a frame, generously.
fn size(outcome: &ResourceOutcome) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    outcome.key.len() + outcome.module.len() + text(&outcome.code) + text(&outcome.reason) + 128
}

#[cfg(test)]
mod tests;
