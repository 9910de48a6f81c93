//! What a host may fetch beside what is declared for it: the content of a declaration it is asked about, for as long as
//! it is asked (S-08).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use tenure_protocol::content::Wanted;
use tenure_protocol::id::Digest;

/// The offer of one session. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Offer(Arc<Mutex<Option<HashSet<Digest>>>>);

/// An offer that stands; dropped, it is withdrawn.
pub(super) struct Standing(Offer);

impl Offer {
    /// Offers these. None where another offer stands.
    pub(super) fn make(&self, contents: HashSet<Digest>) -> Option<Standing> {
        let mut offered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if offered.is_some() {
            return None;
        }
        *offered = Some(contents);
        Some(Standing(self.clone()))
    }

    /// Whether all of these are offered now.
    pub(super) fn covers(&self, wanted: &[Wanted]) -> bool {
        let offered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        offered.as_ref().is_some_and(|offered| wanted.iter().all(|one| offered.contains(&one.sha256)))
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: S-08
    #[test]
    fn what_is_offered_may_be_fetched_while_the_offer_stands_and_by_one_question_at_a_time() {
        let (offer, content) = (Offer::default(), Digest::of(b"draft"));
        let wanted = |sha256| [Wanted { sha256, offset: 0 }];
        assert!(!offer.covers(&wanted(content)));
        let standing = offer.make([content].into()).unwrap();
        assert!(offer.covers(&wanted(content)) && !offer.covers(&wanted(Digest::of(b"other"))));
        assert!(offer.make(HashSet::new()).is_none());
        drop(standing);
        assert!(!offer.covers(&wanted(content)));
        assert!(offer.make(HashSet::new()).is_some());
    }
}
