//! What is wrong with a store that is open, in an operator's words, and what may mend it. Each state has a code and words
//! of its own, so that nobody looks for the fault elsewhere (O-70).

use tenure_actors::database::DatabaseError;
use tenure_protocol::refusal::{Refusal, chain};

/// Why the store could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreTrouble {
    /// In words.
    pub refusal: Refusal,
    /// What may mend it.
    pub cure: Cure,
}

/// What may mend a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cure {
    /// Room, a disk that works again, or somebody's hand: the next pass tries again.
    Time,
    /// What is open is whole, and its place is empty: [`Store::put_back`](super::Store::put_back).
    PutBack,
    /// What its removed log held is to be written into it: [`Store::write_back`](super::Store::write_back). Only then is it
    /// opened anew.
    WriteBack,
    /// Opening it anew, which keeps a damaged one aside and begins a new one (H-11).
    OpenAnew,
}

impl StoreTrouble {
    /// What the store said.
    pub fn of(error: &DatabaseError) -> Self {
        let (code, remedy, cure) = match error {
            DatabaseError::Full => ("store_full", MAKE_ROOM, Cure::Time),
            DatabaseError::ReadOnly => (
                "store_read_only",
                "see why (`dmesg`; `findmnt -T /var/lib/tenure-host`) and mount it writable again (`mount -o \
                 remount,rw`); the next pass goes on by itself; one that a fault made read-only is to be unmounted and \
                 checked first (`systemctl stop tenure-host`)",
                Cure::Time,
            ),
            DatabaseError::Damaged => (
                "store_damaged",
                "look at the disk below /var/lib/tenure-host (`dmesg`); the host itself keeps the damaged store aside \
                 and begins a new one",
                Cure::OpenAnew,
            ),
            DatabaseError::Failing => (
                "store_failing",
                "look at the disk below /var/lib/tenure-host (`dmesg`); the next pass tries again by itself",
                Cure::Time,
            ),
            DatabaseError::Removed => (
                "store_removed",
                "find out what removed it; the host itself writes it to its place again from what it has open",
                Cure::PutBack,
            ),
            DatabaseError::Replaced => (
                "store_replaced",
                "if the file that lies there now shall count, run `systemctl restart tenure-host`; else move it away, \
                 and the host puts its own back",
                Cure::Time,
            ),
            DatabaseError::Unmounted => (
                "store_unmounted",
                "mount it there again (`findmnt -T /var/lib/tenure-host` says what lies there now); the next pass goes on by \
                 itself; or, if what lies there now shall count, run `systemctl restart tenure-host`",
                Cure::Time,
            ),
            DatabaseError::LogRemoved => (
                "store_log_removed",
                "find out what removed it; the host itself writes what it held into the store and opens it anew",
                Cure::WriteBack,
            ),
            DatabaseError::Busy => (
                "store_busy",
                "close what else has it open (`fuser /var/lib/tenure-host/store.db`); the next pass tries again by itself",
                Cure::Time,
            ),
            DatabaseError::Closed => {
                ("store_closed", "wait: the host is being stopped or started", Cure::Time)
            }
            DatabaseError::Sql(_) => (
                "store_unreadable",
                "report it with the journal of tenure-host (`journalctl -u tenure-host`); a newer tenure-host may have \
                 written what this one cannot read",
                Cure::Time,
            ),
        };
        Self::new(code, &chain(error), remedy, cure)
    }

    /// There is so little room that a change might not be recorded.
    pub fn no_room(left: u64) -> Self {
        let happened = format!("the disk under the store is nearly full: {} KiB are left", left / 1024);
        Self::new("store_full", &happened, MAKE_ROOM, Cure::Time)
    }

    /// Its log was removed, and what that held could not be written into it for this reason.
    pub fn not_written_back(error: &DatabaseError) -> Self {
        let Self { refusal: why, .. } = Self::of(error);
        let happened = format!(
            "the store's log was removed, and what it held could not be written into the store: {}",
            chain(error)
        );
        let remedy = format!(
            "do not stop the host, for what it has open is the only copy of what was recorded last; {}",
            why.remedy
        );
        Self::new(&why.code, &happened, &remedy, Cure::Time)
    }

    fn new(code: &str, happened: &str, remedy: &str, cure: Cure) -> Self {
        Self { refusal: Refusal::new(code, happened, MEANS, remedy), cure }
    }
}

const MAKE_ROOM: &str = "make room on the file system of the host's store (`df -h /var/lib/tenure-host`); the next pass \
                         goes on by itself, with no restart";
const MEANS: &str = "a change that is not recorded would later be taken for somebody else's, so none is made; the host \
                     goes on looking and reporting";

#[cfg(test)]
mod tests {
    use super::*;

    // case: O-70
    #[test]
    fn each_state_of_an_open_store_has_a_code_and_a_remedy_of_its_own() {
        let troubles = [
            (DatabaseError::Full, "store_full", Cure::Time),
            (DatabaseError::ReadOnly, "store_read_only", Cure::Time),
            (DatabaseError::Damaged, "store_damaged", Cure::OpenAnew),
            (DatabaseError::Failing, "store_failing", Cure::Time),
            (DatabaseError::Removed, "store_removed", Cure::PutBack),
            (DatabaseError::Replaced, "store_replaced", Cure::Time),
            (DatabaseError::LogRemoved, "store_log_removed", Cure::WriteBack),
            (DatabaseError::Unmounted, "store_unmounted", Cure::Time),
            (DatabaseError::Busy, "store_busy", Cure::Time),
            (DatabaseError::Closed, "store_closed", Cure::Time),
        ];
        let mut remedies = std::collections::BTreeSet::new();
        for (error, code, cure) in troubles {
            let StoreTrouble { refusal, cure: found } = StoreTrouble::of(&error);
            assert_eq!((refusal.code.as_str(), found), (code, cure));
            assert!(refusal.happened.contains("store"), "{refusal:?}");
            assert!(remedies.insert(refusal.remedy.clone()), "two states have the remedy of {refusal:?}");
        }
    }
}
