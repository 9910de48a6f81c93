use super::*;
use crate::ground::Ground;
use crate::ground::own::Own;

/// What is remembered of one file of a folder, by a look that began so many seconds after its change time.
fn remembered(after: i64) -> Option<Digest> {
    let folder = tempfile::tempdir().unwrap();
    let ground = Ground::new(folder.path(), true);
    std::fs::write(folder.path().join("a"), "a").unwrap();
    let own = Own::default();
    let walker = Walker::new(&ground, &own).unwrap();
    let path = DeclaredPath::new("/a").unwrap();
    let (dir, name) = walker.parent(&path).unwrap();
    let (stat, sha256) = dir.digest(name).unwrap();
    let seen = Seen::File { stat, sha256: Some(sha256) };
    let now = Millis((stat.changed.0 + after) * 1_000);
    let recall = Recall::of(&walker, now, [(&path, 0, Some(&seen))].into_iter());
    let look = (&walker, Reading::WhatMayHaveChanged);
    assert_eq!(recall.moved(look, 1, &AtomicBool::new(false), &|_| {}), Some(Vec::new()));
    recall.content(&path, &stat)
}

#[test]
fn a_change_time_is_believed_when_it_is_a_minute_old_and_never_when_it_lies_ahead() {
    assert_eq!(remembered(SETTLED_AFTER), Some(Digest::of(b"a")));
    assert_eq!(remembered(SETTLED_AFTER - 1), None);
    assert_eq!(remembered(0), None);
    assert_eq!(remembered(-3_600), None);
}
