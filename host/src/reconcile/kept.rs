//! What a pass by hand leaves to the next one, which is another process: what this one saw, and what it came to. The next
//! one reads every file all the same; where it finds all as it was, it need not parse, decide and record anew.
//!
//! It is believed only by the very program that kept it, and only where nothing was done since (`store::look`): how
//! anything is decided may be another in another program. It is no more than time saved: where it cannot be read or kept,
//! the pass is an ordinary one.

use std::os::unix::fs::MetadataExt as _;

use tenure_protocol::id::{Digest, Millis};
use tenure_protocol::version::SOFTWARE;
use tenure_protocol::wire::codec::{decode, encode, encode_by_position, encode_if_written};

use super::memory::{Memory, Still};
use crate::ground::Ground;
use crate::resource::Recall;
use crate::store::Store;

/// Where the kernel shows which program this is.
const PROGRAM: &str = "/proc/self/exe";

impl Memory {
    /// What the last pass by hand left, where it stands; else nothing.
    pub fn kept(store: &Store, ground: &Ground) -> Self {
        let kept = program(store, ground).and_then(|by| store.kept_look(by));
        kept.and_then(|kept| read(&kept)).unwrap_or_default()
    }

    /// Leaves to the next pass by hand what this one saw, if it can stand. Where this one has decided nothing, what is
    /// there stays.
    pub fn keep_in(&self, store: &Store, ground: &Ground) {
        if !self.is_new {
            return;
        }
        let look = self
            .still
            .as_ref()
            .filter(|_| self.recall.is_sure())
            .and_then(|still| Some((program(store, ground)?, still.summary.pass, self.written(still)?)));
        match look {
            Some((by, pass, look)) => store.keep_look(by, pass, &look),
            None => store.drop_look(),
        }
    }

    /// How long the first part is; that; and the second. None where something of it cannot be written.
    fn written(&self, still: &Still) -> Option<Vec<u8>> {
        let decided = encode_if_written(&(self.looked, still))?;
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
    let (looked, still): (Millis, Still) = decode(decided).ok()?;
    let recall: Recall = decode(seen).ok()?;
    let mut memory = Memory::default();
    (memory.recall, memory.still, memory.looked) = (recall, Some(still), looked);
    Some(memory)
}

/// This program, as the kernel knows the file of it, on this ground and with this life of the store; none where that
/// cannot be said.
pub(super) fn program(store: &Store, ground: &Ground) -> Option<Digest> {
    let file = std::fs::metadata(PROGRAM).ok()?;
    let file = (file.dev(), file.ino(), file.size(), file.ctime(), file.ctime_nsec());
    Some(Digest::of(&encode(&(SOFTWARE, file, store.store_id(), ground.is_sandbox()))))
}
