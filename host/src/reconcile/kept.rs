//! What a pass by hand leaves to the next one, which is another process: what this one saw, and what it came to. The next
//! one reads every file all the same; where it finds all as it was, it need not parse, decide and record anew. Of units it
//! asks in one call whether they stand as they did, while no unit file moved on the disk, and once in [`FULL_LOOK`] all
//! there is to say of each.
//!
//! It is believed only by the very program that kept it, and only where nothing was done since (`store::look`): how
//! anything is decided may be another in another program. It is no more than time saved: where it cannot be read or kept,
//! the pass is an ordinary one.

use std::os::unix::fs::MetadataExt as _;
use std::sync::PoisonError;
use std::time::Duration;

use tenure_protocol::id::{Digest, Millis};
use tenure_protocol::version::SOFTWARE;
use tenure_protocol::wire::codec::{decode, encode, encode_by_position, encode_if_written};

use super::memory::{Memory, Still, Units};
use crate::ground::Ground;
use crate::resource::Recall;
use crate::store::Store;

/// Where the kernel shows which program this is.
const PROGRAM: &str = "/proc/self/exe";
/// For so long passes by hand do not look at every unit in full.
const FULL_LOOK: Duration = Duration::from_secs(60 * 60);

impl Memory {
    /// What the last pass by hand left, where it stands; else nothing.
    pub fn kept(store: &Store, ground: &Ground) -> Self {
        let kept = program(store, ground).and_then(|by| store.kept_look(by));
        kept.and_then(|kept| read(&kept)).unwrap_or_default()
    }

    /// Leaves to the next pass by hand what this one saw, if it can stand. Where this one has decided nothing, and went by
    /// what is there of units, that stays.
    pub fn keep_in(&self, store: &Store, ground: &Ground) {
        let seen =
            self.units_looked_at(store).filter(|seen| self.units.is_none_or(|left| left.disk != seen.disk));
        if !self.is_new && seen.is_none() {
            return;
        }
        let units = seen.or(self.units);
        let look = self.still.as_ref().filter(|_| self.recall.is_sure()).and_then(|still| {
            Some((program(store, ground)?, still.summary.pass, self.written(still, units)?))
        });
        match look {
            Some((by, pass, look)) => store.keep_look(by, pass, &look),
            None => store.drop_look(),
        }
    }

    /// What units are made of as this pass saw them. Where that is not what the pass before left, it looked at each in full.
    fn units_looked_at(&self, store: &Store) -> Option<Units> {
        let units = store.units().lock().unwrap_or_else(PoisonError::into_inner);
        Some(Units { disk: units.settled(self.looked)?, looked: self.looked })
    }

    /// Has units looked at no further than what an earlier pass by hand left of them asks for.
    pub(super) fn recall_units(&mut self, store: &Store) {
        let Self { looked, still, units, .. } = self;
        let age =
            |units: &Units| u64::try_from(looked.0.saturating_sub(units.looked.0)).map(Duration::from_millis);
        *units = units.filter(|units| age(units).is_ok_and(|age| age < FULL_LOOK));
        if let (Some(units), Some(still)) = (units, still) {
            let mut memory = store.units().lock().unwrap_or_else(PoisonError::into_inner);
            memory.keep(Some(units.disk), still.units_seen());
        }
    }

    /// How long the first part is; that; and the second. None where something of it cannot be written.
    fn written(&self, still: &Still, units: Option<Units>) -> Option<Vec<u8>> {
        let decided = encode_if_written(&(self.looked, still, units))?;
        let length = u64::try_from(decided.len()).ok()?.to_be_bytes();
        let seen = encode_by_position(&self.recall)?;
        Some([&length[..], &decided, &seen].concat())
    }

    /// For tests: whether there is anything to go by.
    #[cfg(test)]
    pub(crate) const fn is_there(&self) -> bool {
        self.still.is_some()
    }
}

fn read(kept: &[u8]) -> Option<Memory> {
    let (length, rest) = kept.split_first_chunk::<8>()?;
    let (decided, seen) = rest.split_at_checked(usize::try_from(u64::from_be_bytes(*length)).ok()?)?;
    let (looked, still, units): (Millis, Still, Option<Units>) = decode(decided).ok()?;
    let recall: Recall = decode(seen).ok()?;
    let mut memory = Memory::default();
    (memory.recall, memory.still, memory.looked, memory.units) = (recall, Some(still), looked, units);
    Some(memory)
}

/// This program, as the kernel knows the file of it, on this ground and with this life of the store; none where that
/// cannot be said.
pub(super) fn program(store: &Store, ground: &Ground) -> Option<Digest> {
    let file = std::fs::metadata(PROGRAM).ok()?;
    let file = (file.dev(), file.ino(), file.size(), file.ctime(), file.ctime_nsec());
    Some(Digest::of(&encode(&(SOFTWARE, file, store.store_id(), ground.is_sandbox()))))
}
