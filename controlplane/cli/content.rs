//! Content by digest, to and from the control plane, in pieces that fit a frame.

use std::collections::{BTreeMap, HashSet};

use indicatif::ProgressBar;
use tenure_protocol::content::{MOST_IN_AN_ANSWER, MOST_PIECES, Missing, PIECE, Piece, Put, Wanted};
use tenure_protocol::id::Digest;
use tenure_protocol::operator::Get;
use tenure_protocol::refusal::Refusal;
use tenure_protocol::resource::Content;

use crate::caller::Caller;
use crate::ending::Trouble;

/// How many digests one question may name.
const ASKED_AT_ONCE: usize = 2000;
/// The most bytes taken of one content: what a declaration may have.
const MOST: u64 = tenure_protocol::declaration::MOST_BYTES;

/// Uploads those of `contents` that the control plane has not; `bar` counts all their bytes.
pub(crate) async fn upload(
    control: &Caller,
    contents: &BTreeMap<Digest, Vec<u8>>,
    bar: &ProgressBar,
) -> Result<(), Trouble> {
    let missing = missing(control, contents).await?;
    let there = contents.iter().filter(|(digest, _)| !missing.contains(digest));
    bar.inc(there.map(|(_, bytes)| length(bytes)).sum());
    let mut pieces: Vec<Piece> = Vec::new();
    let mut together = 0;
    for piece in contents.iter().filter(|(digest, _)| missing.contains(digest)).flat_map(cut) {
        if together + piece.bytes.len() > MOST_IN_AN_ANSWER || pieces.len() == MOST_PIECES {
            put(control, std::mem::take(&mut pieces), bar).await?;
            together = 0;
        }
        together += piece.bytes.len();
        pieces.push(piece);
    }
    if pieces.is_empty() { Ok(()) } else { put(control, pieces, bar).await }
}

async fn missing(control: &Caller, contents: &BTreeMap<Digest, Vec<u8>>) -> Result<HashSet<Digest>, Trouble> {
    let all: Vec<Digest> = contents.keys().copied().collect();
    let mut missing = HashSet::new();
    for some in all.chunks(ASKED_AT_ONCE) {
        missing.extend(control.ask(&Missing { sha256: some.to_vec() }).await?.sha256);
    }
    Ok(missing)
}

async fn put(control: &Caller, pieces: Vec<Piece>, bar: &ProgressBar) -> Result<(), Trouble> {
    let sent = pieces.iter().map(|piece| length(&piece.bytes)).sum();
    control.ask(&Put { pieces }).await?;
    bar.inc(sent);
    Ok(())
}

/// The pieces of one content, in order. Nothing at all is one piece, too: it has a digest and must arrive.
fn cut((digest, bytes): (&Digest, &Vec<u8>)) -> Vec<Piece> {
    let size = length(bytes);
    let piece = usize::try_from(PIECE).unwrap_or(usize::MAX);
    let starts = (0..bytes.len().max(1)).step_by(piece);
    starts
        .map(|start| Piece {
            sha256: *digest,
            size,
            offset: start.try_into().unwrap_or(u64::MAX),
            bytes: bytes.iter().skip(start).take(piece).copied().collect(),
        })
        .collect()
}

/// Fetches these contents whole. What arrives is what its digest says, or it is refused.
pub(crate) async fn fetch(
    control: &Caller,
    contents: &[Content],
    bar: &ProgressBar,
) -> Result<BTreeMap<Digest, Vec<u8>>, Trouble> {
    let mut whole: BTreeMap<Digest, Vec<u8>> = BTreeMap::new();
    let mut parts: BTreeMap<Digest, (Content, Vec<u8>)> = BTreeMap::new();
    for content in contents {
        if content.size > MOST {
            return Err(broken(content.sha256, "it is said to be larger than anything Tenure makes"));
        }
        parts.insert(content.sha256, (*content, Vec::new()));
    }
    while !parts.is_empty() {
        let wanted = parts.values().take(MOST_PIECES);
        let wanted =
            wanted.map(|(content, got)| Wanted { sha256: content.sha256, offset: length(got) }).collect();
        let pieces = control.ask(&Get { wanted }).await?.pieces;
        if pieces.is_empty() {
            return Err(broken(
                parts.keys().next().copied().unwrap_or(Digest::of(b"")),
                "no piece of it came",
            ));
        }
        for piece in pieces {
            take(piece, &mut parts, &mut whole, bar)?;
        }
    }
    Ok(whole)
}

fn take(
    piece: Piece,
    parts: &mut BTreeMap<Digest, (Content, Vec<u8>)>,
    whole: &mut BTreeMap<Digest, Vec<u8>>,
    bar: &ProgressBar,
) -> Result<(), Trouble> {
    let digest = piece.sha256;
    let Some((content, got)) = parts.get_mut(&digest) else {
        return Err(broken(digest, "nobody asked for this piece"));
    };
    let is_next = piece.offset == length(got) && piece.size == content.size;
    if !is_next || (piece.bytes.is_empty() && content.size > 0) {
        return Err(broken(digest, "a piece came that is not the next one"));
    }
    got.extend_from_slice(&piece.bytes);
    bar.inc(length(&piece.bytes));
    if length(got) >= content.size
        && let Some((_, bytes)) = parts.remove(&digest)
    {
        if Digest::of(&bytes) != digest {
            return Err(broken(digest, "what came is not what its digest says"));
        }
        whole.insert(digest, bytes);
    }
    Ok(())
}

fn broken(digest: Digest, how: &str) -> Trouble {
    Trouble::failed(Refusal::new(
        "content_broken",
        format!("content {} could not be fetched: {how}", digest.short()),
        "nothing was done with it; what was declared before is not touched by this",
        "try again; if it comes back, look at the control plane's log (`journalctl -u tenure-control`)",
    ))
}

fn length(bytes: &[u8]) -> u64 {
    bytes.len().try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
pub(crate) mod tests;
