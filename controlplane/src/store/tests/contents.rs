//! Content by digest, and the declarations that name it.

use tenure_protocol::content::PIECE;

use super::*;

fn piece(of: &[u8], offset: usize, length: usize) -> Piece {
    Piece {
        sha256: Digest::of(of),
        size: u64::try_from(of.len()).unwrap(),
        offset: u64::try_from(offset).unwrap(),
        bytes: of[offset..offset + length].to_vec(),
    }
}

async fn is_there(store: &dyn Store, bytes: &[u8]) -> bool {
    store.content(Digest::of(bytes)).await.unwrap().as_deref() == Some(bytes)
}

// rule: S-08
pub(super) async fn a_malformed_piece_is_refused_and_what_came_before_it_stays(store: &dyn Store) {
    let whole = piece(b"abcd", 0, 4);
    let too_long = vec![0; usize::try_from(PIECE).unwrap() + 1];
    let most = tenure_protocol::declaration::MOST_BYTES;
    let malformed = [
        Piece { size: 3, ..whole.clone() },
        Piece { offset: 1, ..whole.clone() },
        Piece { offset: u64::MAX, ..whole.clone() },
        Piece { bytes: vec![], ..whole.clone() },
        Piece { size: most + 1, ..whole.clone() },
        piece(&too_long, 0, too_long.len()),
    ];
    for bad in malformed {
        let refused = store.put(vec![piece(b"before", 0, 6), bad.clone()], Millis(1)).await.unwrap();
        assert_eq!(refused, Err(NotPut::Malformed(bad.sha256)));
    }
    assert!(is_there(store, b"before").await);
    assert!(!is_there(store, b"abcd").await);
    store.put(vec![piece(b"", 0, 0)], Millis(1)).await.unwrap().unwrap();
    assert!(is_there(store, b"").await, "empty content is content");
}

// rule: S-08
pub(super) async fn a_content_that_is_not_what_it_is_called_is_dropped_whole(store: &dyn Store) {
    let put = |piece| store.put(vec![piece], Millis(1));
    put(piece(b"abcd", 0, 2)).await.unwrap().unwrap();
    let false_end = Piece { bytes: b"XX".to_vec(), ..piece(b"abcd", 2, 2) };
    assert_eq!(put(false_end).await.unwrap(), Err(NotPut::WrongDigest(Digest::of(b"abcd"))));
    let next = put(piece(b"abcd", 2, 2)).await.unwrap();
    assert_eq!(next, Err(NotPut::OutOfOrder { sha256: Digest::of(b"abcd"), expected: 0 }));
    // One that lies about the size gives way to one that does not.
    put(Piece { size: 9, ..piece(b"abcd", 0, 2) }).await.unwrap().unwrap();
    for at in [0, 2] {
        put(piece(b"abcd", at, 2)).await.unwrap().unwrap();
    }
    assert!(is_there(store, b"abcd").await);
    put(Piece { size: 9, ..piece(b"abcd", 0, 2) }).await.unwrap().unwrap();
    assert!(is_there(store, b"abcd").await, "what is whole and true is left alone");
}

// rule: S-08
pub(super) async fn pieces_are_answered_from_any_place_and_only_as_far_as_they_may_be_seen(
    store: &dyn Store,
) {
    for node in ["a", "b"] {
        store.invite(new(node), Millis(1)).await.unwrap();
    }
    store.put(vec![piece(b"abcdef", 0, 4), piece(b"abcdef", 4, 2)], Millis(1)).await.unwrap().unwrap();
    store.keep(vec![b"other".to_vec(), vec![]], Millis(1)).await.unwrap();
    store.put(vec![piece(b"half", 0, 2)], Millis(1)).await.unwrap().unwrap();
    let (known, other, half) = (Digest::of(b"abcdef"), Digest::of(b"other"), Digest::of(b"half"));
    store.declare(vec![declaration("a", 0, vec![known])], vec![], Millis(2)).await.unwrap().unwrap();
    let at = |sha256, offset| Wanted { sha256, offset };
    let get = |wanted: Vec<Wanted>, of: Option<&str>| store.pieces(wanted, of.map(name));
    let found =
        get(vec![at(known, 1), at(known, 4), at(known, 6), at(Digest::of(b""), 0)], None).await.unwrap();
    let bytes: Vec<Vec<u8>> = found.unwrap().into_iter().map(|piece| piece.bytes).collect();
    assert_eq!(
        bytes,
        [b"bcd".to_vec(), b"ef".to_vec(), vec![], vec![]],
        "to the end of the piece it lies in"
    );
    for none in [at(known, 7), at(half, 0), at(Digest::of(b"never"), 0)] {
        assert_eq!(get(vec![none], None).await.unwrap(), Err(none.sha256));
    }
    assert!(get(vec![], None).await.unwrap().unwrap().is_empty());
    // A node sees what its own declaration names: the bytes of it, and the contents it needs.
    let own = store.declared(name("a")).await.unwrap().unwrap().sha256;
    let seen =
        get(vec![at(own, 0), at(known, 0), at(other, 0), at(known, 4)], Some("a")).await.unwrap().unwrap();
    assert_eq!(seen.iter().map(|piece| piece.sha256).collect::<Vec<_>>(), [own, known]);
    assert_eq!(get(vec![at(other, 0)], Some("a")).await.unwrap(), Err(other));
    for stranger in ["b", "nobody"] {
        assert_eq!(get(vec![at(known, 0)], Some(stranger)).await.unwrap(), Err(known), "{stranger}");
    }
}

pub(super) async fn what_is_missing_is_named_in_the_order_it_was_asked_for(store: &dyn Store) {
    store.keep(vec![b"there".to_vec()], Millis(1)).await.unwrap();
    store.put(vec![piece(b"half", 0, 2)], Millis(1)).await.unwrap().unwrap();
    let [there, half, none] = [&b"there"[..], b"half", b"none"].map(Digest::of);
    let missing = store.missing(vec![none, there, half, none]).await.unwrap();
    assert_eq!(missing, [none, half, none]);
    assert!(store.missing(vec![]).await.unwrap().is_empty());
}

// rule: S-22
pub(super) async fn content_is_swept_once_nothing_names_it_and_its_time_is_over(store: &dyn Store) {
    store.invite(new("a"), Millis(1)).await.unwrap();
    for (bytes, at) in [(b"old", 10), (b"new", 20), (b"use", 10), (b"say", 10)] {
        store.keep(vec![bytes.to_vec()], Millis(at)).await.unwrap();
    }
    store.put(vec![piece(b"half", 0, 2)], Millis(10)).await.unwrap().unwrap();
    store
        .declare(vec![declaration("a", 0, vec![Digest::of(b"use")])], vec![], Millis(11))
        .await
        .unwrap()
        .unwrap();
    store.keep(vec![b"say".to_vec()], Millis(20)).await.unwrap();
    assert_eq!(store.sweep(Millis(10)).await.unwrap(), 0, "before that moment, not at it");
    assert_eq!(store.sweep(Millis(20)).await.unwrap(), 2, "the old one and the half of one");
    let left =
        [is_there(store, b"old"), is_there(store, b"new"), is_there(store, b"use"), is_there(store, b"say")];
    let mut there = Vec::new();
    for one in left {
        there.push(one.await);
    }
    assert_eq!(there, [false, true, true, true]);
    let again = store.put(vec![piece(b"half", 2, 2)], Millis(21)).await.unwrap();
    assert_eq!(again, Err(NotPut::OutOfOrder { sha256: Digest::of(b"half"), expected: 0 }));
}

// case: O-68
pub(super) async fn a_declaration_that_is_refused_brings_no_content_along(store: &dyn Store) {
    for node in ["a", "b"] {
        store.invite(new(node), Millis(1)).await.unwrap();
    }
    let brought = || vec![b"brought".to_vec()];
    let named = vec![Digest::of(b"brought")];
    let lacking = Digest::of(b"lacking");
    let table = [
        (declaration("nobody", 0, vec![]), NotDeclared::NoStanding(name("nobody"))),
        (declaration("b", 3, vec![]), NotDeclared::Overtaken(name("b"))),
        (declaration("b", 0, vec![lacking]), NotDeclared::ContentMissing(name("b"), lacking)),
    ];
    for (second, why) in table {
        let both = vec![declaration("a", 0, named.clone()), second];
        assert_eq!(store.declare(both, brought(), Millis(2)).await.unwrap(), Err(why));
        assert_eq!(store.declared(name("a")).await.unwrap(), None);
        assert!(!is_there(store, b"brought").await);
    }
    assert_eq!(store.events(Some(0), None, 9).await.unwrap().len(), 2);
}

// rule: X-6
pub(super) async fn the_newest_declaration_stands_and_content_only_an_older_one_names_may_go(
    store: &dyn Store,
) {
    store.invite(new("a"), Millis(1)).await.unwrap();
    let declare = |after, content: &'static [u8]| {
        let new = declaration("a", after, vec![Digest::of(content)]);
        store.declare(vec![new], vec![content.to_vec()], Millis(2))
    };
    declare(0, b"first").await.unwrap().unwrap();
    declare(1, b"second").await.unwrap().unwrap();
    let declared = store.declared(name("a")).await.unwrap().unwrap();
    let bytes = declaration("a", 1, vec![]).bytes;
    assert_eq!((declared.revision.number, declared.resources), (RevisionNumber(2), 1));
    assert_eq!((declared.sha256, declared.bytes), (Digest::of(&bytes), u64::try_from(bytes.len()).unwrap()));
    assert_eq!(store.summary(name("a")).await.unwrap().unwrap().declared, Some(declared));
    assert!(is_there(store, &bytes).await, "its bytes are content as well");
    assert_eq!(store.sweep(Millis(100)).await.unwrap(), 2, "the older one's bytes, and what only it named");
    assert!(is_there(store, b"second").await && is_there(store, &bytes).await);
}
