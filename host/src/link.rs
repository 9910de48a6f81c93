//! The link: dial, prove, hold, lose, wait, and dial again, for as long as this machine has an identity. What it is
//! doing is in [`state`]; nothing of what it hears, short of a typed refusal of the pinned control plane, costs the
//! host anything, and even that never more than the way back. It never touches the machine: it stores what was
//! declared and tells the loop.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_actors::clock::SharedClock;
use tenure_protocol::id::Millis;
use tenure_protocol::report::Trigger;
use tenure_protocol::token::SessionToken;
use tenure_protocol::wire::codec;

use crate::ground::Ground;
use crate::heartbeat::Heartbeat;
use crate::outbox::Outbox;
use crate::reconcile::Reconcile;
use crate::steps;
use crate::store::{Cure, Store, StoreTrouble};

mod actor;
mod attempt;
pub mod buffering;
pub mod counter;
mod declaration;
pub mod dial;
pub mod fetch;
mod foresee;
pub mod greeting;
pub mod redial;
mod session;
pub mod state;
mod tell;

pub use actor::{Link, LinkView};
pub use foresee::Foreseeing;

/// What a link works with.
#[derive(Clone)]
pub struct Around {
    /// Where.
    pub ground: Ground,
    /// The store.
    pub store: Store,
    /// The time of day.
    pub clock: SharedClock,
    /// The loop.
    pub reconcile: Reconcile,
    /// The beat.
    pub heartbeat: Heartbeat,
    /// What waits to be told.
    pub outbox: Outbox,
    /// How names become addresses.
    pub resolve: dial::Resolve,
    /// Held by whoever writes the identity.
    pub writing: Arc<Mutex<()>>,
    /// Numbers the sessions.
    pub counter: counter::Counter,
    /// What of the store the loop was asked to mend.
    pub asked: Asked,
    /// How what is only planned is looked at.
    pub foreseeing: Foreseeing,
}

/// What was wrong with the store when a pass was last asked for over it. One that cannot be mended now is tried again by
/// the loop's own timer, not with every beat.
#[derive(Debug, Clone, Default)]
pub struct Asked(Arc<Mutex<Option<String>>>);

impl Asked {
    /// What is wrong now; none: nothing is. Answers whether a pass is to be asked for.
    fn is_new(&self, wrong: Option<&StoreTrouble>) -> bool {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match wrong {
            None => {
                *asked = None;
                false
            }
            Some(trouble) if trouble.cure == Cure::Time => false,
            Some(trouble) => {
                asked.replace(trouble.refusal.code.clone()).as_ref() != Some(&trouble.refusal.code)
            }
        }
    }
}

const SESSION_TOKEN: &str = "session_token";
const LAST_GOOD: &str = "last_good";

/// Certificates are never judged at an earlier moment than this, whatever a clock without battery says (S-18): when
/// this was built, where the build says so, else the year it was written in.
pub fn built() -> Millis {
    const WRITTEN: i64 = 1_767_225_600;
    let built = option_env!("SOURCE_DATE_EPOCH").and_then(|text| text.parse::<i64>().ok());
    Millis(built.unwrap_or(WRITTEN).max(WRITTEN).saturating_mul(1_000))
}

/// The latest moment this host has reason to believe in, apart from the system's clock (S-18). A control plane whose clock
/// stood decades ahead for an hour is not believed: no certificate would hold ever after (O-53).
pub fn no_earlier(told: Option<Millis>) -> Millis {
    const DECADES: Duration = Duration::from_secs(20 * 365 * 24 * 60 * 60);
    told.filter(|told| *told <= built().plus(DECADES)).map_or(built(), |told| told.max(built()))
}

impl Around {
    fn now(&self) -> Millis {
        Millis(self.clock.now().millis())
    }

    /// Keeps the control plane's clock. A store that does not answer now is told again with the next beat.
    async fn keep_time(&self, told: Millis) {
        let kept = self.store.off(move |store| store.set_control_time(told)).await;
        let wrong = kept.err().map(|error| {
            tracing::debug!(%error, "control plane's time not kept");
            StoreTrouble::of(&error)
        });
        if self.asked.is_new(wrong.as_ref()) {
            // The loop finds out what is wrong, says it, and has it mended.
            self.reconcile.wanted(Trigger::Timer);
        }
    }

    async fn keep_token(&self, token: SessionToken) {
        let bytes = codec::encode(&token);
        let note = move |store: &Store| steps::TOKEN_NOTED.take(|| store.set_note(SESSION_TOKEN, &bytes));
        if let Err(error) = self.store.off(note).await {
            tracing::warn!(%error, "session token not kept");
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
