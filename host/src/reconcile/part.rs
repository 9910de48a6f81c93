//! A pass over the part of a declaration that moved: files and directories that lie otherwise than the pass before left
//! them, and those whose turn comes in each pass. They are read out of the stored declaration by their places in it, so
//! that what it costs goes by what moved. The rest is as the pass before said.
//!
//! Packages and units are decided together, and so is what left: where any of them is concerned, it is no part.

use std::collections::BTreeSet;
use std::sync::Arc;

use tenure_protocol::declaration::{Declaration, Entry};

use super::memory::{Entries, Memory};
use super::pass::{self, PassDone, PassInput};

/// Past so many of them a part saves nothing.
pub(super) const fn most(entries: &Entries) -> usize {
    entries.len() / 4
}

/// Decides these entries anew, and what goes with them; none where that is no part, or the store has more to tell: then an
/// ordinary pass is to follow, which finds what was done here.
pub(super) fn pass(input: &mut PassInput<'_>, memory: &mut Memory, moved: &[u32]) -> Option<PassDone> {
    let still = memory.still.as_ref()?;
    let part = closed(&still.entries, moved)?;
    let places = still.entries.places(&part)?;
    let bytes = input.store.declaration_parts(still.declaration, &places).ok()??;
    let declaration = Declaration::of_part(still.header.clone(), bytes.iter().map(Vec::as_slice)).ok()?;
    let is_path = |entry: &Entry| match entry {
        Entry::Known(resource) => resource.key.path().is_some(),
        Entry::Unsupported(_) => false,
    };
    // What was begun and not ended may concern anything.
    if !declaration.entries.iter().all(is_path) || input.store.has_intents().ok()? {
        return None;
    }
    let declaration = Arc::new(declaration);
    input.declaration = Some(Arc::clone(&declaration));
    let ran = pass::run_part(input, &still.summary);
    input.declaration = None;
    match ran {
        Some(pass::RanPart { done, stands: Some((seen, recorded)) }) => {
            memory.keep_part((&declaration, &seen), (&done.outcomes, &recorded), &done.summary);
            Some(done)
        }
        Some(pass::RanPart { done, stands: None }) => {
            memory.still = None;
            Some(done)
        }
        None => {
            memory.still = None;
            None
        }
    }
}

/// These entries, and all that bars them; none where a unit follows one of them.
fn closed(entries: &Entries, moved: &[u32]) -> Option<Vec<u32>> {
    let mut part: BTreeSet<u32> = moved.iter().copied().collect();
    loop {
        let missing =
            entries.barred.iter().filter(|(by, needed)| part.contains(by) && !part.contains(needed));
        let missing: Vec<u32> = missing.map(|(_, needed)| *needed).collect();
        if missing.is_empty() {
            break;
        }
        part.extend(missing);
    }
    let is_followed = entries.followed.iter().any(|entry| part.contains(entry));
    (!is_followed && part.len() <= most(entries).max(moved.len())).then(|| part.into_iter().collect())
}
