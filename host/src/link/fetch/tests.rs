use tenure_protocol::id::Digest;

use super::*;

fn content(name: u64, size: u64) -> Content {
    Content { sha256: Digest::of(&name.to_be_bytes()), size }
}

#[test]
fn many_small_contents_travel_together_and_no_answer_overflows() {
    let missing: Vec<_> = (0..1_000).map(|n| (content(n, 1_000), 0)).collect();
    let requests = plan(&missing);
    assert_eq!(requests.iter().map(Vec::len).sum::<usize>(), 1_000);
    for request in &requests {
        assert!(request.len() <= MOST_PIECES && request.len() * 1_000 <= MOST_IN_AN_ANSWER);
    }
    assert!(requests.len() < 10);
    let empty: Vec<_> = (0..1_000).map(|n| (content(n, 0), 0)).collect();
    assert!(plan(&empty).iter().all(|request| request.len() <= MOST_PIECES), "empty ones count too");
}

#[test]
fn a_large_content_is_asked_for_piece_by_piece_from_where_it_broke_off() {
    let piece = u64::from(PIECE);
    let requests = plan(&[(content(1, piece * 5 + 7), piece * 2)]);
    let offsets: Vec<u64> = requests.iter().flatten().map(|wanted| wanted.offset).collect();
    assert_eq!(offsets, [piece * 2, piece * 3, piece * 4, piece * 5]);
    assert_eq!(requests.last().unwrap().len(), 2, "the last two fit one answer");
}

#[test]
fn the_plan_of_an_enormous_content_has_an_end() {
    assert_eq!(plan(&[(content(1, u64::MAX), 0)]).len(), MOST_REQUESTS);
}

#[test]
fn nothing_missing_asks_for_nothing() {
    assert!(plan(&[]).is_empty());
}
