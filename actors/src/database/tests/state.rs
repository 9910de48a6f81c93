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
        (ffi::SQLITE_BUSY, "the store is busy"),
        (ffi::SQLITE_CONSTRAINT, "the store refused the statement"),
    ];
    for (code, text) in texts {
        assert_eq!(named(code), text);
    }
}
