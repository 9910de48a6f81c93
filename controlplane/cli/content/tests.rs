use std::sync::{Arc, Mutex};

use tenure_protocol::content::{MissingAre, Pieces};

use super::*;
use crate::caller::tests::{answered_by, asked, ok};
use crate::ending::Exit;

/// A content store as a control plane has one.
#[derive(Clone, Default)]
pub(crate) struct Shelf(Arc<Mutex<BTreeMap<Digest, Vec<u8>>>>);

impl Shelf {
    pub(crate) fn with(contents: &[&[u8]]) -> Self {
        let shelf = Self::default();
        for bytes in contents {
            shelf.0.lock().unwrap().insert(Digest::of(bytes), bytes.to_vec());
        }
        shelf
    }

    pub(crate) fn get(&self, digest: Digest) -> Option<Vec<u8>> {
        self.0.lock().unwrap().get(&digest).cloned()
    }

    /// Answers the three messages of content; none to any other.
    pub(crate) fn answer(
        &self,
        request: &tenure_protocol::envelope::Request,
    ) -> Option<crate::caller::tests::Answer> {
        if let Some(missing) = asked::<Missing>(request) {
            let sha256 = missing.sha256.into_iter().filter(|digest| self.get(*digest).is_none()).collect();
            return Some(ok::<Missing>(MissingAre { sha256 }));
        }
        if let Some(put) = asked::<Put>(request) {
            let together: usize = put.pieces.iter().map(|piece| piece.bytes.len()).sum();
            assert!(together <= MOST_IN_AN_ANSWER && put.pieces.len() <= MOST_PIECES);
            let mut shelf = self.0.lock().unwrap();
            for piece in put.pieces {
                let got = shelf.entry(piece.sha256).or_default();
                assert_eq!(length(got), piece.offset, "pieces come in order");
                got.extend(piece.bytes);
            }
            return Some(ok::<Put>(()));
        }
        let get = asked::<Get>(request)?;
        let mut room = MOST_IN_AN_ANSWER;
        let mut pieces = Vec::new();
        for wanted in get.wanted {
            let whole = self.get(wanted.sha256).unwrap();
            let rest = whole[usize::try_from(wanted.offset).unwrap()..].to_vec();
            let bytes: Vec<u8> = rest.into_iter().take(PIECE.try_into().unwrap()).collect();
            if bytes.len() > room {
                break;
            }
            room -= bytes.len();
            pieces.push(Piece { sha256: wanted.sha256, size: length(&whole), offset: wanted.offset, bytes });
        }
        Some(ok::<Get>(Pieces { pieces }))
    }
}

fn named(contents: Vec<Vec<u8>>) -> BTreeMap<Digest, Vec<u8>> {
    contents.into_iter().map(|bytes| (Digest::of(&bytes), bytes)).collect()
}

fn content(bytes: &[u8]) -> Content {
    Content { sha256: Digest::of(bytes), size: length(bytes) }
}

fn bar() -> ProgressBar {
    ProgressBar::hidden()
}

#[tokio::test]
async fn contents_small_large_and_empty_arrive_whole_and_what_is_there_is_not_sent() {
    let large: Vec<u8> = (0..500_000_u32).flat_map(u32::to_le_bytes).collect();
    let mut contents = vec![large, vec![], b"there".to_vec()];
    contents.extend((0..600_u32).map(|n| n.to_string().into_bytes()));
    let contents = named(contents);
    let shelf = Shelf::with(&[b"there"]);
    let served = shelf.clone();
    let control = answered_by(move |request| served.answer(request).unwrap());
    let bar = bar();
    upload(&control, &contents, &bar).await.unwrap();
    for (digest, bytes) in &contents {
        assert_eq!(shelf.get(*digest).as_ref(), Some(bytes));
    }
    assert_eq!(bar.position(), contents.values().map(|bytes| length(bytes)).sum::<u64>());
}

#[tokio::test]
async fn contents_come_back_whole_whatever_fits_into_one_answer() {
    let large: Vec<u8> = (0..500_000_u32).flat_map(u32::to_le_bytes).collect();
    let all: [&[u8]; 4] = [&large, &large[1..], b"", b"small"];
    let shelf = Shelf::with(&all);
    let control = answered_by(move |request| shelf.answer(request).unwrap());
    let wanted = all.map(content);
    let got = fetch(&control, &wanted, &bar()).await.unwrap();
    for bytes in all {
        assert_eq!(got[&Digest::of(bytes)], bytes);
    }
}

#[tokio::test]
async fn content_that_is_not_what_its_digest_says_is_not_taken() {
    let honest = content(b"honest");
    let lie = move |pieces: Vec<Piece>| {
        let control = answered_by(move |_| ok::<Get>(Pieces { pieces: pieces.clone() }));
        async move { fetch(&control, &[honest], &bar()).await.unwrap_err() }
    };
    let piece =
        |offset, size, bytes: &[u8]| Piece { sha256: honest.sha256, size, offset, bytes: bytes.to_vec() };
    for pieces in [
        vec![piece(0, 6, b"hOnest")],
        vec![piece(1, 6, b"onest")],
        vec![piece(0, 7, b"honest!")],
        vec![piece(0, 6, b"")],
        vec![],
        vec![Piece { sha256: Digest::of(b"other"), ..piece(0, 6, b"honest") }],
    ] {
        let trouble = lie(pieces).await;
        assert_eq!((trouble.exit, trouble.refusal.code.as_str()), (Exit::Failed, "content_broken"));
    }
}
