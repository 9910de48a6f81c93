//! A report: what one reconcile did, told upward. It carries what changed and a digest of all, so that a control
//! plane that missed one notices and asks for everything (see [`Digest`] in [`Part`]).

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::id::{Digest, Millis, Revision};
use crate::outcome::{Outcome, ResourceOutcome};

/// The most outcomes one part may carry, so that it fits a frame.
pub const MOST_IN_A_PART: usize = 200;

/// Why a pass ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// The host started.
    Start,
    /// A declaration arrived.
    Declaration,
    /// The drift timer.
    Timer,
    /// The link came back.
    Reconnect,
    /// Somebody asked for it by hand.
    Asked,
}

impl Trigger {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Declaration => "declaration",
            Self::Timer => "timer",
            Self::Reconnect => "reconnect",
            Self::Asked => "asked",
        }
    }
}

/// How many resources had which outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// As declared, nothing done.
    pub unchanged: u64,
    /// Changed and read back.
    pub applied: u64,
    /// Gone.
    pub removed: u64,
    /// No longer ours, left as it is.
    pub released: u64,
    /// Kept as found.
    pub held: u64,
    /// Not done, by rule.
    pub refused: u64,
    /// Tried, did not come to be.
    pub failed: u64,
    /// Waiting.
    pub outstanding: u64,
    /// Nobody could look.
    pub unknown: u64,
}

impl Counts {
    /// The counts of these outcomes.
    pub fn of(outcomes: impl IntoIterator<Item = Outcome>) -> Self {
        let mut counts = Self::default();
        outcomes.into_iter().for_each(|outcome| counts.add(outcome));
        counts
    }

    /// Counts one more.
    pub fn add(&mut self, outcome: Outcome) {
        let count = self.of_mut(outcome);
        *count = count.saturating_add(1);
    }

    /// Counts one less.
    pub fn take(&mut self, outcome: Outcome) {
        let count = self.of_mut(outcome);
        *count = count.saturating_sub(1);
    }

    fn of_mut(&mut self, outcome: Outcome) -> &mut u64 {
        match outcome {
            Outcome::Unchanged => &mut self.unchanged,
            Outcome::Applied => &mut self.applied,
            Outcome::Removed => &mut self.removed,
            Outcome::Released => &mut self.released,
            Outcome::Held => &mut self.held,
            Outcome::Refused => &mut self.refused,
            Outcome::Failed => &mut self.failed,
            Outcome::Outstanding => &mut self.outstanding,
            Outcome::Unknown => &mut self.unknown,
        }
    }

    /// How many had this outcome.
    pub fn get(&self, outcome: Outcome) -> u64 {
        let mut copy = *self;
        *copy.of_mut(outcome)
    }

    /// How many in all.
    pub fn total(&self) -> u64 {
        Outcome::ALL.iter().fold(0, |sum: u64, outcome| sum.saturating_add(self.get(*outcome)))
    }

    /// The same, none of them more than `most`.
    #[must_use]
    pub fn at_most(mut self, most: u64) -> Self {
        for outcome in Outcome::ALL {
            let count = self.of_mut(outcome);
            *count = (*count).min(most);
        }
        self
    }

    /// The counts that are not zero, as in `3 applied, 1 failed`; `nothing declared` when all are.
    pub fn in_words(&self) -> String {
        let words: Vec<String> = Outcome::ALL
            .iter()
            .filter(|outcome| self.get(**outcome) > 0)
            .map(|outcome| format!("{} {outcome}", self.get(*outcome)))
            .collect();
        if words.is_empty() { "nothing declared".to_owned() } else { words.join(", ") }
    }
}

/// What is true of a report as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Counts the passes of this store, rising; the newest wins.
    pub pass: u64,
    /// Why it ran.
    pub trigger: Trigger,
    /// What was reconciled; none: nothing has been declared yet.
    pub revision: Option<Revision>,
    /// When it began, on the node's clock.
    pub started: Millis,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// How many had which outcome.
    pub counts: Counts,
    /// How many resources the host now has records of.
    pub owned: u64,
    /// The digest of every outcome of the pass: [`digest`].
    pub digest: Digest,
    /// Why a newer declaration was not admitted, if one was refused whole; else why the pass changed nothing more, if the
    /// node's store stopped it (O-05).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<crate::refusal::Refusal>,
    /// Which declaration that was; none where it is not about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_revision: Option<Revision>,
}

/// One frame of a report. The parts of one pass come in order; the last one says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The report as a whole, the same in every part.
    pub summary: Summary,
    /// Whether the parts of this pass carry every outcome, not only those that changed.
    pub full: bool,
    /// Which part this is, from 0.
    pub part: u32,
    /// Outcomes; at most [`MOST_IN_A_PART`].
    #[serde(deserialize_with = "crate::wire::codec::bounded::<_, _, 200>")]
    pub outcomes: Vec<ResourceOutcome>,
    /// Keys that the node no longer has anything to say about; at most [`MOST_IN_A_PART`].
    #[serde(default, deserialize_with = "crate::wire::codec::bounded::<_, _, 200>")]
    pub forgotten: Vec<String>,
    /// Whether it is the last part.
    pub last: bool,
}

/// The answer to a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// The control plane's copy does not have this digest: send everything once.
    pub resend: bool,
}

/// The digest of all outcomes, however they are ordered. What only counts up (`count`) stays out of it.
pub fn digest<'a>(outcomes: impl IntoIterator<Item = &'a ResourceOutcome>) -> Digest {
    let mut digesting = Digesting::default();
    outcomes.into_iter().for_each(|line| digesting.outcome(line));
    digesting.end()
}

/// The same digest of outcomes that come one by one, in any order: the SHA-256 of each, all of them added without carry.
/// So what is added twice is gone again, and one outcome takes another's place without anybody reading the rest. It tells
/// whether two copies of one node's outcomes are the same; it is no proof of who made them.
#[derive(Debug, Default, Clone, Copy)]
pub struct Digesting([u8; 32]);

impl Digesting {
    /// Goes on from the digest of what came before.
    pub const fn from(digest: Digest) -> Self {
        Self(*digest.as_bytes())
    }

    /// Adds one outcome; takes it away, where it was added before.
    pub fn outcome(&mut self, line: &ResourceOutcome) {
        let ResourceOutcome { key, module, outcome, code, since, .. } = line;
        let mut digest = Sha256::new();
        for text in [key, module, outcome.as_str(), code.as_deref().unwrap_or("")] {
            digest.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
            digest.update(text.as_bytes());
        }
        digest.update(since.0.to_be_bytes());
        self.0.iter_mut().zip(digest.finalize()).for_each(|(sum, byte)| *sum ^= byte);
    }

    /// The digest of all of them.
    pub const fn end(self) -> Digest {
        Digest::from_bytes(self.0)
    }
}

#[cfg(test)]
mod tests;
