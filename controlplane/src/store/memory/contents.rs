//! Content by digest, in pieces as they came. It counts as there once all its bytes are, and are what they are called.

use std::collections::{BTreeMap, HashMap};

use tenure_protocol::content::{MOST_IN_AN_ANSWER, PIECE, Piece, Wanted};
use tenure_protocol::id::{Digest, Millis, NodeId};

use super::Rows;
use crate::store::NotPut;
use crate::store::upload::{self, Held, MOST_UNNAMED, Step};

#[derive(Debug, Default)]
pub(super) struct Contents {
    contents: HashMap<Digest, Content>,
}

#[derive(Debug)]
struct Content {
    held: Held,
    pieces: BTreeMap<u64, Vec<u8>>,
    added_at: Millis,
}

impl Content {
    fn bytes(&self) -> Vec<u8> {
        self.pieces.values().flatten().copied().collect()
    }
}

impl Contents {
    fn get_whole(&self, sha256: Digest) -> Option<&Content> {
        self.contents.get(&sha256).filter(|content| content.held.is_whole())
    }

    pub(super) fn is_whole(&self, sha256: Digest) -> bool {
        self.get_whole(sha256).is_some()
    }

    pub(super) fn whole(&self, sha256: Digest) -> Option<Vec<u8>> {
        self.get_whole(sha256).map(Content::bytes)
    }

    /// Whole content of ours. One that is there is wanted again: an hour from now, not from when it first came.
    pub(super) fn keep(&mut self, bytes: &[u8], now: Millis) {
        let sha256 = Digest::of(bytes);
        if let Some(content) = self.contents.get_mut(&sha256).filter(|content| content.held.is_whole()) {
            content.added_at = now;
            return;
        }
        let size = length(bytes);
        let step = usize::try_from(PIECE).unwrap_or(usize::MAX);
        let mut pieces = BTreeMap::new();
        let mut offset = 0;
        for piece in bytes.chunks(step) {
            pieces.insert(offset, piece.to_vec());
            offset += length(piece);
        }
        let held = Held { size, received: size };
        self.contents.insert(sha256, Content { held, pieces, added_at: now });
    }

    /// What came while the clock was ahead came now.
    pub(super) fn none_later_than(&mut self, now: Millis) {
        self.contents.values_mut().for_each(|content| content.added_at = content.added_at.min(now));
    }

    fn put(&mut self, piece: Piece, now: Millis) -> Result<(), NotPut> {
        let there = self.contents.get(&piece.sha256);
        let is_there = || {
            let stored = there.and_then(|content| content.pieces.get(&piece.offset));
            Ok::<_, std::convert::Infallible>(stored == Some(&piece.bytes))
        };
        let Ok(step) = upload::step(there.map(|content| content.held), &piece, is_there);
        match step {
            Step::There => return Ok(()),
            Step::Refused(why) => return Err(why),
            Step::Anew => drop(self.contents.remove(&piece.sha256)),
            Step::Next => {}
        }
        let end = upload::end(&piece);
        let Piece { sha256, size, offset, bytes } = piece;
        let content = self.contents.entry(sha256).or_insert_with(|| Content {
            held: Held { size, received: 0 },
            pieces: BTreeMap::new(),
            added_at: now,
        });
        content.held.received = end;
        content.added_at = now;
        if !bytes.is_empty() {
            content.pieces.insert(offset, bytes);
        }
        if end == size && Digest::of(&content.bytes()) != sha256 {
            self.contents.remove(&sha256);
            return Err(NotPut::WrongDigest(sha256));
        }
        Ok(())
    }

    /// The bytes from this place on: to the end of the stored piece they lie in.
    fn piece(&self, want: &Wanted) -> Option<Piece> {
        let content = self.get_whole(want.sha256)?;
        let size = content.held.size;
        if want.offset > size {
            return None;
        }
        // At the end of it there is nothing more, and of empty content there is nothing else.
        let stored = content.pieces.range(..=want.offset).next_back().filter(|_| want.offset < size);
        let bytes = stored.map_or(&[][..], |(offset, bytes)| {
            let skip = usize::try_from(want.offset.saturating_sub(*offset)).unwrap_or(usize::MAX);
            bytes.get(skip..).unwrap_or_default()
        });
        Some(Piece { sha256: want.sha256, size, offset: want.offset, bytes: bytes.to_vec() })
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

impl Rows {
    fn is_named(&self, sha256: Digest) -> bool {
        self.nodes.values().any(|node| node.named.contains(&sha256))
    }

    fn unnamed(&self) -> u64 {
        let unnamed = self.contents.contents.iter().filter(|(sha256, _)| !self.is_named(**sha256));
        unnamed.map(|(_, content)| content.held.received).sum()
    }

    pub(super) fn keep_below(&mut self, most: u64, contents: &[Vec<u8>], now: Millis) -> bool {
        let new = contents.iter().filter(|bytes| !self.contents.is_whole(Digest::of(bytes)));
        let more: u64 = new.map(|bytes| length(bytes)).sum();
        let has_room = self.unnamed().saturating_add(more) <= most;
        if has_room {
            contents.iter().for_each(|bytes| self.contents.keep(bytes, now));
        }
        has_room
    }

    pub(super) fn put(&mut self, piece: Piece, now: Millis) -> Result<(), NotPut> {
        if self.unnamed().saturating_add(length(&piece.bytes)) > MOST_UNNAMED {
            return Err(NotPut::NoRoom(piece.sha256));
        }
        self.contents.put(piece, now)
    }

    pub(super) fn pieces(&self, wanted: &[Wanted], of: Option<&NodeId>) -> Result<Vec<Piece>, Digest> {
        let node = of.map(|node| self.nodes.get(node));
        if let (Some(None), Some(first)) = (node, wanted.first()) {
            return Err(first.sha256);
        }
        let may = |sha256| node.flatten().is_none_or(|node| node.named.contains(&sha256));
        let (mut pieces, mut room) = (Vec::new(), MOST_IN_AN_ANSWER);
        for want in wanted {
            match Some(want).filter(|want| may(want.sha256)).and_then(|want| self.contents.piece(want)) {
                Some(piece) if piece.bytes.len() <= room => {
                    room -= piece.bytes.len();
                    pieces.push(piece);
                }
                // What was found before it still is of use; it is named when it comes first.
                None if pieces.is_empty() => return Err(want.sha256),
                Some(_) | None => break,
            }
        }
        Ok(pieces)
    }

    pub(super) fn sweep(&mut self, before: Millis) -> u64 {
        let old = self.contents.contents.iter().filter(|(_, content)| content.added_at < before);
        let unnamed = old.map(|(sha256, _)| *sha256).filter(|sha256| !self.is_named(*sha256));
        let unnamed: Vec<Digest> = unnamed.collect();
        unnamed.iter().for_each(|sha256| drop(self.contents.contents.remove(sha256)));
        u64::try_from(unnamed.len()).unwrap_or(u64::MAX)
    }
}
