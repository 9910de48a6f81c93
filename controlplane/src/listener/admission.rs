//! How many greetings are judged at the same time. Judging costs a proof and the store; beyond the bound a greeting is
//! answered at once with when to come back (O-61), before anything of it is looked at. A fleet that comes back after a
//! restart is thereby spread over as long as it takes, and nobody waits for an answer that would come too late.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_protocol::refusal::Refusal;
use tenure_protocol::session::Ended;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// What the store's one writer takes into a group of its own; well below what the pool gives to one source, so that of those
/// behind one address translation, too, none gives way while it is judged.
const MOST: usize = 32;

/// So many of them from one source: whoever has one address must not have everybody turned away.
const MOST_FROM_ONE: usize = MOST / 4;

/// Lets greetings be judged. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Admission {
    places: Arc<Semaphore>,
    sources: Arc<Mutex<HashMap<IpAddr, usize>>>,
    turned_away: Arc<Mutex<Burst>>,
}

/// A place. Dropped, it is free again.
#[derive(Debug)]
pub(super) struct Judged {
    source: IpAddr,
    sources: Arc<Mutex<HashMap<IpAddr, usize>>>,
    _place: OwnedSemaphorePermit,
}

impl Drop for Judged {
    fn drop(&mut self) {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = sources.get_mut(&self.source) {
            *count = count.saturating_sub(1);
        }
        // No longer than there are places.
        sources.retain(|_, count| *count > 0);
    }
}

/// So many were turned away, the last of them then.
#[derive(Debug, Default)]
struct Burst {
    count: u32,
    last: Option<Instant>,
}

impl Default for Admission {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(MOST)), sources: Arc::default(), turned_away: Arc::default() }
    }
}

impl Admission {
    /// A place, held until what was judged is decided; or when to come back.
    pub(super) fn enter(&self, source: IpAddr) -> Result<Judged, Ended> {
        self.place(source).ok_or_else(|| busy(self.turn_away(Instant::now())))
    }

    fn place(&self, source: IpAddr) -> Option<Judged> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let count = sources.get(&source).copied().unwrap_or_default();
        if count >= MOST_FROM_ONE {
            return None;
        }
        sources.insert(source, count + 1);
        Some(Judged { source, sources: Arc::clone(&self.sources), _place: place })
    }

    fn turn_away(&self, now: Instant) -> Duration {
        let mut burst = self.turned_away.lock().unwrap_or_else(PoisonError::into_inner);
        if burst.last.is_none_or(|last| now.saturating_duration_since(last) >= QUIET) {
            burst.count = 0;
        }
        burst.last = Some(now);
        burst.count = burst.count.saturating_add(1);
        come_back_in(burst.count)
    }
}

/// A burst is over when nobody was turned away for so long.
const QUIET: Duration = Duration::from_secs(10);

/// When the `number`-th that is turned away in one burst is to come back: each second less than a slow store judges,
/// and never so late that a lease of the default length would end over it. The host puts its own random part on top.
fn come_back_in(number: u32) -> Duration {
    const SOONEST: u32 = 3;
    const LATEST: u32 = 30;
    const EACH_SECOND: u32 = 100;
    Duration::from_secs(SOONEST.saturating_add(number / EACH_SECOND).min(LATEST).into())
}

fn busy(come_back_in: Duration) -> Ended {
    let seconds = come_back_in.as_secs();
    let reason = Refusal::new(
        "busy",
        format!("too many nodes come in at this moment; come back in {seconds} s"),
        "nothing was looked at and nothing was decided; the machine is held in its last state meanwhile",
        format!(
            "nothing: the host comes back by itself; whoever is enrolling gives the same token again in {seconds} s"
        ),
    );
    Ended { reason, retry_after_ms: u64::try_from(come_back_in.as_millis()).unwrap_or(u64::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(number: usize) -> IpAddr {
        std::net::Ipv4Addr::new(192, 0, 2, u8::try_from(number).unwrap()).into()
    }

    // case: O-61
    #[test]
    fn the_more_are_turned_away_the_later_they_come_back_and_never_too_late_for_their_lease() {
        assert_eq!(come_back_in(1), Duration::from_secs(3));
        assert_eq!(come_back_in(450), Duration::from_secs(7));
        assert_eq!(come_back_in(u32::MAX), Duration::from_secs(30));
    }

    // case: O-61
    #[tokio::test(start_paused = true)]
    async fn beyond_the_bound_it_is_busy_and_a_place_that_comes_free_is_given_again() {
        let admission = Admission::default();
        let mut held: Vec<_> = (0..MOST).map(|number| admission.enter(from(number / 8)).unwrap()).collect();
        let refused = admission.enter(from(9)).unwrap_err();
        assert_eq!((refused.reason.code.as_str(), refused.retry_after_ms), ("busy", 3_000));
        assert!(refused.reason.happened.ends_with("come back in 3 s"), "{}", refused.reason.happened);
        held.pop();
        drop(admission.enter(from(9)).unwrap());
    }

    // rule: S-22
    #[tokio::test(start_paused = true)]
    async fn one_source_has_a_quarter_of_the_places_and_the_others_are_still_let_in() {
        let admission = Admission::default();
        let mut held: Vec<_> = (0..MOST / 4).map(|_| admission.enter(from(1)).unwrap()).collect();
        admission.enter(from(1)).unwrap_err();
        drop(admission.enter(from(2)).unwrap());
        held.pop();
        held.push(admission.enter(from(1)).unwrap());
        drop(held);
        assert!(admission.sources.lock().unwrap().is_empty());
    }

    // case: O-61
    #[tokio::test(start_paused = true)]
    async fn a_burst_that_is_over_does_not_make_the_next_one_wait_longer() {
        let admission = Admission::default();
        let first: Vec<_> = (0..1_000).map(|_| admission.turn_away(Instant::now())).collect();
        assert_eq!(first.last(), Some(&Duration::from_secs(13)));
        tokio::time::advance(QUIET).await;
        assert_eq!(admission.turn_away(Instant::now()), Duration::from_secs(3));
    }
}
