//! What the link is doing, and what follows from what happens to it: pure. The actor dials, waits and draws the random
//! part of each wait; *now* is an argument.

use std::time::Duration;

use tenure_protocol::id::Millis;
use tenure_protocol::machine::{IllegalStep, MachineState, Step};
use tenure_protocol::refusal::Refusal;
use tenure_protocol::rescue::LinkStatus;

/// The link, as far as anybody needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    machine: MachineState,
    link: Link,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Link {
    /// There is nobody to dial.
    None,
    /// Not open; a dial runs or is due.
    Down { since: Millis, why: Option<Refusal> },
    /// Open.
    Up { since: Millis, address: String, note: Option<String> },
}

/// Why a dial came to nothing, or an open session to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Farewell {
    /// Nobody was reached, or whoever answered is not the control plane. Costs nothing.
    Unreached(Refusal),
    /// An open session broke off.
    Lost(Refusal),
    /// The control plane said, in its own words, that this session shall not be.
    Refused {
        /// Why.
        reason: Refusal,
        /// Not before that.
        retry_after: Duration,
    },
    /// The standing was withdrawn, and what the machine still had to tell of its work did not all get out.
    Unheard(Refusal),
}

/// How long to wait before the next dial. Each is spread, so that a fleet does not come back in one second (O-61).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// The growing wait with full jitter.
    Backoff,
    /// At least this, and the growing wait on top.
    AtLeast(Duration),
    /// As seldom as makes sense for somebody who is not wanted back.
    Rarely,
}

/// Only a new token helps, and who holds one dials at once; asked again now and then all the same, since a record that
/// was lost may be restored, and what this machine did meanwhile is still taken (O-57). As long where it did not get out.
const ONLY_A_TOKEN: Duration = Duration::from_secs(5 * 60);
/// Another session of this node opened: whoever is the second should not push the first out at once.
const AFTER_SUPERSEDED: Duration = Duration::from_secs(15);
/// The longest wait that the other side may impose; what a control plane says by mistake must not lock a machine out.
const MOST_IMPOSED: Duration = Duration::from_secs(15 * 60);

impl Standing {
    /// How things are when the host starts.
    pub const fn at_start(has_identity: bool, now: Millis) -> Self {
        if has_identity {
            Self { machine: MachineState::Disconnected, link: Link::Down { since: now, why: None } }
        } else {
            Self { machine: MachineState::Hosted, link: Link::None }
        }
    }

    /// An invitation was redeemed. Whatever was open belongs to the earlier standing.
    pub fn enrolled(&mut self, now: Millis) -> Result<(), IllegalStep> {
        self.machine = self.machine.after(Step::Enrolled)?.after(Step::LinkLost)?;
        self.link = Link::Down { since: now, why: None };
        Ok(())
    }

    /// A session opened.
    pub fn opened(&mut self, address: String, note: Option<String>, now: Millis) -> Result<(), IllegalStep> {
        self.machine = self.machine.after(Step::LinkRegained)?;
        self.link = Link::Up { since: now, address, note };
        Ok(())
    }

    /// A dial or session ended. Answers how long to wait, and whether the reason is another than before: only then is
    /// it worth a line in the log.
    pub fn ended(&mut self, farewell: &Farewell, now: Millis) -> (Pause, bool) {
        if let Ok(machine) = self.machine.after(Step::LinkLost) {
            self.machine = machine;
        }
        let reason = farewell.reason().clone();
        let (since, news) = match &self.link {
            Link::Down { since, why } => (*since, why.as_ref().is_none_or(|why| why.code != reason.code)),
            Link::Up { .. } | Link::None => (now, true),
        };
        self.link = Link::Down { since, why: Some(reason) };
        (farewell.pause(), news)
    }

    /// The machine's own view of itself.
    pub const fn machine(&self) -> MachineState {
        self.machine
    }

    /// How the link is, in the form that is shown.
    pub fn status(&self) -> LinkStatus {
        match &self.link {
            Link::None => LinkStatus::None,
            Link::Down { since, why } => LinkStatus::Down { since: *since, reason: why.clone() },
            Link::Up { since, address, note } => {
                LinkStatus::Up { since: *since, address: address.clone(), note: note.clone() }
            }
        }
    }
}

impl Farewell {
    /// Why, in words.
    pub const fn reason(&self) -> &Refusal {
        match self {
            Self::Unreached(reason)
            | Self::Lost(reason)
            | Self::Refused { reason, .. }
            | Self::Unheard(reason) => reason,
        }
    }

    /// How long to wait after it.
    pub fn pause(&self) -> Pause {
        match self {
            Self::Unreached(_) | Self::Lost(_) => Pause::Backoff,
            Self::Unheard(_) => Pause::AtLeast(ONLY_A_TOKEN),
            Self::Refused { reason, retry_after } => match reason.code.as_str() {
                "retired" => Pause::Rarely,
                "superseded" => Pause::AtLeast(AFTER_SUPERSEDED.max(*retry_after).min(MOST_IMPOSED)),
                "fenced" | "revoked" | "lapsed" | "wrong_generation" => {
                    Pause::AtLeast(ONLY_A_TOKEN.max(*retry_after).min(MOST_IMPOSED))
                }
                _ if retry_after.is_zero() => Pause::Backoff,
                _ => Pause::AtLeast((*retry_after).min(MOST_IMPOSED)),
            },
        }
    }
}

/// Whether a session that lasted so long was a success, so that the next wait is the first again: it held for three
/// beats. That is well below the minute at which common proxies cut (O-55), and too long for a control plane that drops
/// every session at once to be stormed. The bounds are for one that misspoke about its beats.
pub fn held(lasted: Duration, beat: Duration) -> bool {
    const LEAST: Duration = Duration::from_secs(5);
    const MOST: Duration = Duration::from_secs(45);
    lasted >= beat.saturating_mul(3).clamp(LEAST, MOST)
}

/// Whether the control plane withdrew the standing, and still takes what the machine did while it had one.
pub fn is_withdrawn(reason: &Refusal) -> bool {
    matches!(reason.code.as_str(), "retired" | "revoked" | "fenced")
}

#[cfg(test)]
mod tests;
