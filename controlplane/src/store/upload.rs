//! Whether a piece of content is taken: a pure decision of what is there and what comes, the same in every store.

use tenure_protocol::content::{PIECE, Piece};
use tenure_protocol::declaration::MOST_BYTES;

use super::NotPut;

/// How much content that no declaration names may lie in a store: fleet folders and plans of a day, many times over
/// (S-22).
pub(super) const MOST_UNNAMED: u64 = 1 << 30;

/// How much of it may lie there when more comes that is only planned, and can be planned again: so that no plan takes
/// the room of what is uploaded.
pub(super) const MOST_PLANNED: u64 = MOST_UNNAMED / 4;

/// How much of it may lie there when the document of a plan comes: more than what it laid aside before it could fill, so
/// that it can always be shown, and so little that half of the room is left to what is uploaded.
pub(super) const MOST_SHOWN: u64 = MOST_UNNAMED / 2;

/// What is there of a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    /// Its whole size, as was stated.
    pub(super) size: u64,
    /// How many of its bytes are there, from the first one on.
    pub(super) received: u64,
}

impl Held {
    /// It counts as there.
    pub(super) const fn is_whole(&self) -> bool {
        self.received == self.size
    }
}

/// What is to be done with a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing: it is there.
    There,
    /// What is there under this name is dropped, and the piece is the first of it.
    Anew,
    /// It goes behind what is there.
    Next,
    /// It is not taken.
    Refused(NotPut),
}

/// Decides about a piece. `is_there`: whether this very piece is stored; asked only where it matters.
pub(super) fn step<E>(
    held: Option<Held>,
    piece: &Piece,
    is_there: impl FnOnce() -> Result<bool, E>,
) -> Result<Step, E> {
    let sha256 = piece.sha256;
    if !is_well_formed(piece) {
        return Ok(Step::Refused(NotPut::Malformed(sha256)));
    }
    let (step, expected) = match held {
        Some(held) if held.is_whole() => return Ok(Step::There),
        // Another size under the same name: one of the two is no content of that name, and will be found out.
        Some(held) if held.size != piece.size => (Step::Anew, 0),
        // Two that upload the same do not undo each other; only a beginning that differs begins anew.
        Some(held) if piece.offset < held.received => match is_there()? {
            true => return Ok(Step::There),
            false if piece.offset == 0 => (Step::Anew, 0),
            false => (Step::Next, held.received),
        },
        Some(held) => (Step::Next, held.received),
        None => (Step::Anew, 0),
    };
    let in_order = piece.offset == expected;
    Ok(if in_order { step } else { Step::Refused(NotPut::OutOfOrder { sha256, expected }) })
}

/// Where a piece ends.
pub(super) fn end(piece: &Piece) -> u64 {
    piece.offset.saturating_add(u64::try_from(piece.bytes.len()).unwrap_or(u64::MAX))
}

/// Full, or the last one, and within the size.
fn is_well_formed(piece: &Piece) -> bool {
    let length = u64::try_from(piece.bytes.len()).unwrap_or(u64::MAX);
    let Some(end) = piece.offset.checked_add(length) else { return false };
    let fits = piece.size <= MOST_BYTES && length <= u64::from(PIECE) && end <= piece.size;
    fits && (length > 0 || piece.size == 0)
}
