//! The number of each session. It is on the disk before it is used, so that a copied disk shows; while the store
//! takes nothing, be it full or moved, this process counts on by itself, since a full disk must not silence a machine that has to say so
//! (O-05).

use std::sync::{Arc, Mutex, PoisonError};

use tenure_actors::database::DatabaseError;
use tenure_protocol::id::SessionCounter;

/// The last number this process used. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Counter(Arc<Mutex<SessionCounter>>);

impl Counter {
    /// The next number: the store's, unless this process has counted further; its own while the store takes nothing. A
    /// process that never had a number of the store has none to go on from.
    pub fn next(
        &self,
        stored: impl FnOnce() -> Result<SessionCounter, DatabaseError>,
    ) -> Result<SessionCounter, DatabaseError> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = match stored() {
            Ok(number) => number.max(last.next()),
            Err(
                DatabaseError::Full
                | DatabaseError::ReadOnly
                | DatabaseError::Failing
                | DatabaseError::Removed
                | DatabaseError::Replaced
                | DatabaseError::LogRemoved
                | DatabaseError::Unmounted,
            ) if last.0 > 0 => last.next(),
            Err(error) => return Err(error),
        };
        *last = next;
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // case: O-05
    #[test]
    fn a_full_disk_does_not_silence_a_process_that_had_a_number_and_none_is_used_twice() {
        let counter = Counter::default();
        assert!(counter.next(|| Err(DatabaseError::Full)).is_err());
        assert_eq!(counter.next(|| Ok(SessionCounter(7))).unwrap(), SessionCounter(7));
        assert_eq!(counter.next(|| Err(DatabaseError::Full)).unwrap(), SessionCounter(8));
        assert_eq!(counter.next(|| Err(DatabaseError::ReadOnly)).unwrap(), SessionCounter(9));
        for moved in [DatabaseError::Removed, DatabaseError::Replaced, DatabaseError::LogRemoved] {
            let before = counter.0.lock().unwrap().0;
            assert_eq!(counter.next(|| Err(moved)).unwrap().0, before + 1);
        }
        assert!(counter.next(|| Err(DatabaseError::Closed)).is_err());
        assert_eq!(counter.next(|| Ok(SessionCounter(8))).unwrap(), SessionCounter(13));
        assert_eq!(counter.next(|| Ok(SessionCounter(14))).unwrap(), SessionCounter(14));
    }
}
