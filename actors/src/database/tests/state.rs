//! O-70: whatever is wrong with the store, the answer names the store and its state.

use super::*;

#[tokio::test(start_paused = true)]
async fn whoever_finds_the_queue_full_hears_busy_after_the_deadline() {
    // case: O-70
    let place = Place::new();
    let database = Database::open_with(opening(&place.path()), 1, PATIENCE).unwrap();
    let (began, go, holder) = held(&database);
    began.recv().unwrap();
    let second = database.clone();
    let second = tokio::spawn(async move { second.write(insert("second")).await });
    tokio::task::yield_now().await;
    assert_eq!(database.queue.free(), 0);
    let asked = tokio::time::Instant::now();
    let third = database.write(insert("third")).await;
    assert!(matches!(third, Err(DatabaseError::Busy)), "{third:?}");
    assert!(asked.elapsed() >= PATIENCE);
    go.send(()).unwrap();
    holder.join().unwrap();
    second.await.unwrap().unwrap();
    assert_eq!(texts(&database), ["second"], "busy means that nothing was changed");
}

#[test]
fn a_blocking_caller_has_the_same_deadline_and_the_same_answer() {
    // case: O-70
    let place = Place::new();
    let database = Database::open_with(opening(&place.path()), 1, Duration::from_millis(20)).unwrap();
    let (began, go, holder) = held(&database);
    began.recv().unwrap();
    let second = database.clone();
    let second = std::thread::spawn(move || second.write_blocking(insert("second")));
    while database.queue.free() > 0 {
        std::thread::yield_now();
    }
    assert!(matches!(database.write_blocking(insert("third")), Err(DatabaseError::Busy)));
    go.send(()).unwrap();
    holder.join().unwrap();
    second.join().unwrap().unwrap();
}

#[test]
fn a_read_that_finds_no_free_connection_hears_busy_after_the_deadline() {
    // case: O-70
    let place = Place::new();
    let path = place.path();
    let one = Opening { readers: 1, ..opening(&path) };
    let database = Database::open_with(one, 8, Duration::from_millis(20)).unwrap();
    let inner = database.clone();
    let nested = database
        .read_blocking(move |_| Ok(matches!(inner.read_blocking(|_| Ok(())), Err(DatabaseError::Busy))));
    assert!(nested.unwrap());
    assert!(texts(&database).is_empty(), "and the one connection is back");
}

#[test]
fn a_read_that_waits_goes_on_as_soon_as_a_connection_comes_back() {
    let place = Place::new();
    let path = place.path();
    let one = Opening { readers: 1, ..opening(&path) };
    let database = Database::open_with(one, 8, Duration::from_secs(3600)).unwrap();
    let ((begun, began), (go, wait)) = (mpsc::channel(), mpsc::channel::<()>());
    let first = database.clone();
    let first = std::thread::spawn(move || {
        let look = move |_: &rusqlite::Connection| {
            begun.send(()).unwrap();
            wait.recv().unwrap();
            Ok(())
        };
        first.read_blocking(look).unwrap();
    });
    began.recv().unwrap();
    let second = database.clone();
    let second = std::thread::spawn(move || texts(&second));
    go.send(()).unwrap();
    first.join().unwrap();
    assert!(second.join().unwrap().is_empty());
}

#[test]
fn one_more_connection_is_made_when_it_is_needed_and_never_to_another_store_in_the_place_of_this_one() {
    // case: O-05
    let (place, other) = (Place::new(), Place::new());
    other.open().write_blocking(insert("of the other")).unwrap();
    let path = place.path();
    let open = || Database::open_with(opening(&path), 8, Duration::from_millis(20)).unwrap();
    let at_once = |database: &Database| {
        let inner = database.clone();
        database.read_blocking(move |_| Ok(inner.read_blocking(|_| Ok(())))).unwrap()
    };
    let database = open();
    at_once(&database).unwrap();
    database.close();
    let database = open();
    std::fs::rename(&path, lock::beside(&path, ".aside")).unwrap();
    assert!(matches!(at_once(&database), Err(DatabaseError::Busy)));
    std::fs::copy(other.path(), &path).unwrap();
    assert!(matches!(at_once(&database), Err(DatabaseError::Busy)));
    assert!(texts(&database).is_empty(), "it is read by the one that was there");
    std::fs::rename(lock::beside(&path, ".aside"), &path).unwrap();
    at_once(&database).unwrap();
}

#[tokio::test]
async fn a_full_disk_is_named_to_the_change_and_reading_goes_on() {
    // case: O-70
    let (_place, database) = fresh();
    database.write(insert("before")).await.unwrap();
    // SQLite's own page limit gives the very code that a full disk gives.
    let limit = |transaction: &Transaction<'_>| {
        let pages: i64 = transaction.query_row("PRAGMA page_count", (), |row| row.get(0))?;
        transaction.query_row(&format!("PRAGMA max_page_count = {pages}"), (), |_| Ok(()))
    };
    database.write(limit).await.unwrap();
    let big = |transaction: &Transaction<'_>| {
        transaction.execute("INSERT INTO kept (text) VALUES (hex(zeroblob(100000)))", ())
    };
    let error = database.write(big).await.unwrap_err();
    assert!(matches!(error, DatabaseError::Full), "{error:?}");
    assert_eq!(error.to_string(), "the disk under the store is full");
    assert_eq!(texts(&database), ["before"]);
    let lift = |transaction: &Transaction<'_>| {
        transaction.query_row("PRAGMA max_page_count = 100000", (), |_| Ok(()))
    };
    database.write(lift).await.unwrap();
    database.write(insert("after")).await.unwrap();
    assert_eq!(texts(&database), ["before", "after"]);
}

#[tokio::test]
async fn a_store_that_takes_no_writes_is_named_read_only() {
    // case: O-70
    let (_place, database) = fresh();
    database.write(|transaction| transaction.pragma_update(None, "query_only", true)).await.unwrap();
    let error = database.write(insert("refused")).await.unwrap_err();
    assert!(matches!(error, DatabaseError::ReadOnly), "{error:?}");
    assert!(texts(&database).is_empty());
}

#[tokio::test]
async fn a_change_after_the_file_was_removed_or_replaced_is_refused_by_name_and_what_is_open_can_be_saved() {
    // case: O-70
    let (place, database) = fresh();
    database.write(insert("kept")).await.unwrap();
    let away = place.folder.path().join("away.db");
    std::fs::rename(place.path(), &away).unwrap();
    assert!(matches!(database.write(insert("lost")).await, Err(DatabaseError::Removed)));
    std::fs::write(place.path(), "something else").unwrap();
    assert!(matches!(database.write(insert("lost")).await, Err(DatabaseError::Replaced)));
    assert!(matches!(database.in_place(), Err(DatabaseError::Replaced)));
    assert_eq!(texts(&database), ["kept"], "what was acknowledged can be read");
    std::fs::remove_file(&away).unwrap();
    let saved = Place::new();
    database.copy_to(&saved.path()).unwrap();
    let found = Database::open(Opening { create: Create::Never, ..opening(&saved.path()) }).unwrap();
    assert_eq!(texts(&found), ["kept"]);
    database.close();
    assert_eq!(std::fs::read(place.path()).unwrap(), b"something else", "and nothing of it was touched");
}

#[tokio::test]
async fn a_change_after_the_log_was_removed_is_refused_and_closing_saves_what_the_log_held() {
    // case: O-70
    for ending in ["-wal", "-shm"] {
        let (place, database) = fresh();
        database.write(insert("only in the log")).await.unwrap();
        std::fs::remove_file(super::super::lock::beside(&place.path(), ending)).unwrap();
        let refused = database.write(insert("lost")).await;
        assert!(matches!(refused, Err(DatabaseError::LogRemoved)), "{ending}: {refused:?}");
        database.close();
        assert_eq!(texts(&place.open()), ["only in the log"], "{ending}");
    }
}

#[tokio::test]
async fn what_a_removed_log_held_is_written_back_into_a_store_that_stays_open() {
    // case: O-70
    let (place, database) = fresh();
    database.write(insert("only in the log")).await.unwrap();
    std::fs::remove_file(super::super::lock::beside(&place.path(), "-wal")).unwrap();
    // What holds it up is an answer, and not taken for done.
    database.write(|_| Ok(())).await.unwrap_err();
    let (began, go, reading) = reading(&database);
    began.recv().unwrap();
    let held_up = {
        let database = database.clone();
        std::thread::spawn(move || database.write_back())
    };
    assert!(matches!(held_up.join().unwrap(), Err(DatabaseError::Busy)));
    go.send(()).unwrap();
    reading.join().unwrap();
    database.write_back().unwrap();
    assert_eq!(texts(&database), ["only in the log"], "it is open");
    let after = Place::new();
    std::fs::copy(place.path(), after.path()).unwrap();
    assert_eq!(texts(&after.open()), ["only in the log"], "and the file alone is whole");
    database.close();
}

/// A read that lasts until it is told to end.
fn reading(database: &Database) -> (mpsc::Receiver<()>, mpsc::Sender<()>, std::thread::JoinHandle<()>) {
    let ((begun, began), (go, wait)) = (mpsc::channel(), mpsc::channel());
    let database = database.clone();
    let thread = std::thread::spawn(move || {
        let look = move |connection: &rusqlite::Connection| {
            connection.query_row("SELECT count(*) FROM kept", (), |row| row.get::<_, i64>(0))?;
            begun.send(()).unwrap();
            wait.recv().unwrap();
            Ok(())
        };
        database.read_blocking(look).unwrap();
    });
    (began, go, thread)
}

#[tokio::test]
async fn a_store_held_by_another_program_is_busy_and_works_again_afterwards() {
    // case: O-70
    let place = Place::new();
    let database = place.open();
    database.write(|transaction| transaction.pragma_update(None, "busy_timeout", 1)).await.unwrap();
    let other = rusqlite::Connection::open(place.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = database.write(insert("refused")).await.unwrap_err();
    assert!(matches!(error, DatabaseError::Busy), "{error:?}");
    other.execute_batch("ROLLBACK").unwrap();
    database.write(insert("taken")).await.unwrap();
    assert_eq!(texts(&database), ["taken"]);
}

#[test]
fn each_state_of_the_store_has_words_of_its_own_that_name_the_store() {
    // case: O-70
    use rusqlite::ffi;
    let named = |code| {
        let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        DatabaseError::from(error).to_string()
    };
    let texts = [
        (ffi::SQLITE_FULL, "the disk under the store is full"),
        (ffi::SQLITE_READONLY, "the store is read-only"),
        (ffi::SQLITE_CORRUPT, "the store is damaged"),
        (ffi::SQLITE_NOTADB, "the store is damaged"),
        (ffi::SQLITE_IOERR, "the disk under the store reports errors"),
        (ffi::SQLITE_IOERR_SHMSIZE, "the disk under the store is full"),
        (ffi::SQLITE_BUSY, "the store is busy"),
        (ffi::SQLITE_CONSTRAINT, "the store refused the statement"),
    ];
    assert_eq!(DatabaseError::Removed.to_string(), "the store's file was removed");
    assert_eq!(DatabaseError::Replaced.to_string(), "another file lies in the place of the store's");
    for (code, text) in texts {
        assert_eq!(named(code), text);
    }
}

/// Lets the change be made, then takes the file away before it is answered.
fn made_and_then(
    act: impl FnOnce() + Send + 'static,
) -> impl FnOnce(&Transaction<'_>) -> rusqlite::Result<usize> + Send {
    move |transaction| {
        let made = transaction.execute("INSERT INTO kept (text) VALUES ('made')", ())?;
        act();
        Ok(made)
    }
}

#[tokio::test]
async fn no_write_into_a_store_whose_file_is_gone_is_acknowledged_and_reading_goes_on() {
    // case: O-70
    for part in ["", "-wal", "-shm", ".lock"] {
        let (place, database) = fresh();
        database.write(insert("before")).await.unwrap();
        let part = super::super::lock::beside(&place.path(), part);
        std::fs::remove_file(&part).unwrap();
        let error = database.write(insert("lost")).await.unwrap_err();
        let of_the_store = part == place.path();
        let named = if of_the_store {
            matches!(error, DatabaseError::Removed)
        } else {
            matches!(error, DatabaseError::LogRemoved)
        };
        assert!(named, "{}: {error:?}", part.display());
        assert_eq!(texts(&database), ["before"], "{}", part.display());
        let saved = Place::new();
        database.copy_to(&saved.path()).unwrap();
        let found = Database::open(Opening { create: Create::Never, ..opening(&saved.path()) }).unwrap();
        assert_eq!(texts(&found), ["before"], "{}", part.display());
    }
}

#[tokio::test]
async fn a_file_that_goes_while_it_is_written_takes_the_acknowledgement_along() {
    // case: O-64
    let (place, database) = fresh();
    let path = place.path();
    let error = database.write(made_and_then(move || std::fs::remove_file(path).unwrap())).await.unwrap_err();
    assert!(matches!(error, DatabaseError::Removed), "{error:?}");
}

#[tokio::test]
async fn a_store_that_is_put_back_takes_writes_again_and_another_in_its_place_takes_none() {
    // case: O-70
    let (place, database) = fresh();
    let aside = place.folder.path().join("aside");
    std::fs::rename(place.path(), &aside).unwrap();
    assert!(matches!(database.write(insert("lost")).await, Err(DatabaseError::Removed)));
    assert!(matches!(database.in_place(), Err(DatabaseError::Removed)));
    std::fs::copy(&aside, place.path()).unwrap();
    assert!(
        matches!(database.write(insert("lost")).await, Err(DatabaseError::Replaced)),
        "a copy is another file"
    );
    std::fs::rename(&aside, place.path()).unwrap();
    database.write(insert("kept")).await.unwrap();
    assert_eq!(texts(&database), ["kept"]);
}

#[test]
fn closing_a_store_that_was_moved_leaves_the_one_in_its_place_alone() {
    let (place, database) = fresh();
    database.write_blocking(insert("old")).unwrap();
    let aside = place.folder.path().join("aside");
    for part in ["", "-wal", "-shm", ".lock"] {
        let name = |path: &Path| super::super::lock::beside(path, part);
        std::fs::rename(name(&place.path()), name(&aside)).unwrap();
    }
    let other = place.open();
    other.write_blocking(insert("new")).unwrap();
    database.close();
    // As a power cut would leave it: what was acknowledged lies in the log, if the log still is there.
    let after = Place::new();
    for part in ["", "-wal"] {
        let name = |path: &Path| super::super::lock::beside(path, part);
        std::fs::copy(name(&place.path()), name(&after.path())).unwrap();
    }
    assert_eq!(texts(&after.open()), ["new"]);
    assert_eq!(
        texts(&Database::open(opening(&aside)).unwrap()),
        ["old"],
        "and nothing of the old one is lost"
    );
}

#[test]
fn what_the_system_says_is_told_apart() {
    // case: O-70
    let of = |errno: nix::errno::Errno| Obstacle::of(&errno.into());
    use nix::errno::Errno;
    let table = [
        (Errno::ENOSPC, Obstacle::Full),
        (Errno::EDQUOT, Obstacle::Full),
        (Errno::EROFS, Obstacle::ReadOnly),
        (Errno::EACCES, Obstacle::Denied),
        (Errno::EPERM, Obstacle::Denied),
        (Errno::EIO, Obstacle::Failing),
        (Errno::EBUSY, Obstacle::Busy),
        (Errno::ENOENT, Obstacle::Other),
    ];
    for (errno, obstacle) in table {
        assert_eq!(of(errno), obstacle, "{errno}");
    }
}

#[tokio::test]
async fn a_failing_disk_is_asked_for_its_cause_with_a_file_beside_that_leaves_the_lock_alone_and_goes() {
    // case: O-70
    let (place, database) = fresh();
    let failing = || {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR);
        rusqlite::Error::SqliteFailure(code, None)
    };
    let lock = super::super::lock::beside(&place.path(), ".lock");
    let signed = || (std::fs::read_to_string(&lock).unwrap(), lock.metadata().unwrap().modified().unwrap());
    let before = signed();
    // What a kill left is in nobody's way.
    std::fs::write(super::super::lock::beside(&place.path(), ".scratch"), "left").unwrap();
    let read = database.read(move |_| -> rusqlite::Result<()> { Err(failing()) }).await;
    assert!(matches!(read, Err(DatabaseError::Failing)), "{read:?}");
    let written = database.write(move |_| -> rusqlite::Result<()> { Err(failing()) }).await;
    assert!(matches!(written, Err(DatabaseError::Failing)), "{written:?}");
    assert_eq!(signed(), before, "the lock was written to");
    assert!(!super::super::lock::beside(&place.path(), ".scratch").exists());
}

#[test]
fn a_statement_is_planned_once_whatever_it_is_given() {
    let place = Place::new();
    let database = place.open();
    let fill = |t: &Transaction<'_>| {
        t.execute_batch(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
             INSERT INTO kept (text) SELECT 'of ' || i FROM n;
             ANALYZE;",
        )
    };
    database.write_blocking(fill).unwrap();
    let planned_anew = |connection: &rusqlite::Connection| {
        let mut statement = connection.prepare("SELECT count(*) FROM kept WHERE text > ?1 AND id > ?2")?;
        statement.query_row(("of", 0), |_| Ok(()))?;
        // Now it has seen what the analysis left.
        statement.reset_status(rusqlite::StatementStatus::RePrepare);
        for at in 0..50 {
            statement.query_row((format!("of {at}"), at * 7), |_| Ok(()))?;
        }
        Ok(statement.get_status(rusqlite::StatementStatus::RePrepare))
    };
    assert_eq!(database.read_blocking(planned_anew).unwrap(), 0);
    // What SQLite does by itself, or the first half would say nothing.
    let plain = rusqlite::Connection::open(place.path()).unwrap();
    assert!(planned_anew(&plain).unwrap() > 10);
}
