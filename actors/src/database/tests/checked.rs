//! Whether every page of a store is checked when it is opened, or it is known to be as it was closed.

use super::*;
use crate::database::lock::{beside, take};

/// Whether the next opening takes it for as it was closed.
fn is_as_closed(place: &Place) -> bool {
    take(&place.path()).unwrap().is_as_closed(&place.path())
}

fn closed() -> Place {
    let (place, database) = fresh();
    database.write_blocking(insert("kept")).unwrap();
    database.close();
    place
}

#[test]
fn a_store_that_was_closed_and_not_touched_since_is_known_for_what_was_closed() {
    let place = closed();
    assert!(is_as_closed(&place));
    assert!(
        !is_as_closed(&place),
        "whoever takes the lock and does not close the store in order vouches for nothing"
    );
    let place = closed();
    place.open().close();
    assert!(is_as_closed(&place), "a second life of it too");
    assert_eq!(texts(&place.open()), ["kept"]);
}

#[test]
fn a_store_that_anybody_wrote_replaced_or_left_open_is_checked() {
    let written = closed();
    let bytes = std::fs::read(written.path()).unwrap();
    std::fs::write(written.path(), &bytes).unwrap();
    assert!(!is_as_closed(&written), "the same bytes, written anew");

    let replaced = closed();
    std::fs::copy(replaced.path(), beside(&replaced.path(), ".copy")).unwrap();
    std::fs::rename(beside(&replaced.path(), ".copy"), replaced.path()).unwrap();
    assert!(!is_as_closed(&replaced));

    let with_log = closed();
    std::fs::write(beside(&with_log.path(), "-wal"), "").unwrap();
    assert!(!is_as_closed(&with_log), "somebody left a log beside it");

    let left_open = closed();
    std::fs::write(beside(&left_open.path(), ".lock"), "1 2 3 log\n").unwrap();
    assert!(!is_as_closed(&left_open));
}

#[test]
fn a_lock_that_says_something_else_than_what_was_closed_vouches_for_nothing() {
    for said in ["1 2 closed", "1 2 closed 3", "1 2 closed x 0 0 0", "1 2 closed 3 4 5 6", ""] {
        let place = closed();
        std::fs::write(beside(&place.path(), ".lock"), said).unwrap();
        assert!(!is_as_closed(&place), "{said:?}");
        assert_eq!(texts(&place.open()), ["kept"]);
    }
}
