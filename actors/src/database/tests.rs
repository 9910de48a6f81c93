//! The promises of the store: what an acknowledgement means, and which file is refused by which name.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use rusqlite::Transaction;

use super::writer::{Durability, Outcome};
use super::{
    Check, Create, Database, DatabaseError, Obstacle, OpenError, Opening, PATIENCE, lock, log_is_gone, writer,
};

mod opening;
mod state;

const OURS: i32 = 0x7465_6e31;

const SCHEMA: &[&str] = &[
    "CREATE TABLE kept (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT",
    "CREATE TABLE part (of INTEGER NOT NULL REFERENCES kept (id)) STRICT",
];

/// A folder with a path for a store in it.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    fn open(&self) -> Database {
        Database::open(opening(&self.path())).unwrap()
    }

    /// What opening says; the store is closed at once if it opened after all.
    fn refusal(&self, create: Create) -> OpenError {
        let path = self.path();
        Database::open(Opening { create, ..opening(&path) }).unwrap_err()
    }
}

fn opening(path: &Path) -> Opening<'_> {
    Opening {
        path,
        application_id: OURS,
        migrations: SCHEMA,
        create: Create::WhenAbsent,
        cache_kib: 2048,
        readers: 2,
        check: Check::Before,
    }
}

/// A store of its own, and the folder that must outlive it.
fn fresh() -> (Place, Database) {
    let place = Place::new();
    let database = place.open();
    (place, database)
}

fn insert(text: &'static str) -> impl FnOnce(&Transaction<'_>) -> rusqlite::Result<usize> + Send {
    move |transaction| transaction.execute("INSERT INTO kept (text) VALUES (?1)", [text])
}

fn texts(database: &Database) -> Vec<String> {
    let all = database.read_blocking(|connection| {
        connection
            .prepare_cached("SELECT text FROM kept ORDER BY id")?
            .query_map((), |row| row.get(0))?
            .collect::<rusqlite::Result<Vec<String>>>()
    });
    all.unwrap()
}

/// A change that keeps the writer busy: the first channel hears when it has begun, the second lets it end.
fn held(database: &Database) -> (mpsc::Receiver<()>, mpsc::Sender<()>, std::thread::JoinHandle<()>) {
    let ((begun, began), (go, wait)) = (mpsc::channel(), mpsc::channel());
    let database = database.clone();
    let thread = std::thread::spawn(move || {
        let change = move |_: &Transaction<'_>| {
            begun.send(()).unwrap();
            wait.recv().unwrap();
            Ok(())
        };
        database.write_blocking(change).unwrap();
    });
    (began, go, thread)
}

#[tokio::test]
async fn an_acknowledged_write_is_in_the_files_that_a_power_cut_would_leave() {
    // case: O-64
    let (place, after) = (Place::new(), Place::new());
    let database = place.open();
    database.write(insert("promised")).await.unwrap();
    for ending in ["", "-wal"] {
        let name = |place: &Place| super::lock::beside(&place.path(), ending);
        std::fs::copy(name(&place), name(&after)).unwrap();
    }
    assert_eq!(texts(&after.open()), ["promised"]);
}

#[tokio::test]
async fn the_writer_syncs_every_commit_in_full_and_logs_ahead() {
    // case: O-64
    let (_place, database) = fresh();
    let settings = |connection: &Transaction<'_>| -> rusqlite::Result<(i64, String, i64)> {
        let sync = connection.query_row("PRAGMA synchronous", (), |row| row.get(0))?;
        let mode = connection.query_row("PRAGMA journal_mode", (), |row| row.get(0))?;
        Ok((sync, mode, connection.query_row("PRAGMA foreign_keys", (), |row| row.get(0))?))
    };
    assert_eq!(database.write(settings).await.unwrap(), (2, "wal".to_owned(), 1));
}

#[test]
fn only_what_nobody_misses_is_answered_before_it_is_synced() {
    // case: O-64
    let (place, database) = fresh();
    let level = |t: &Transaction<'_>| t.query_row("PRAGMA synchronous", (), |row| row.get::<_, i64>(0));
    let lock = || std::fs::read_to_string(lock::beside(&place.path(), ".lock")).unwrap();
    let put = move |t: &Transaction<'_>| insert("missed by nobody")(t).and_then(|_| level(t));
    assert_eq!(database.write_unsynced_blocking(put).unwrap(), 1);
    assert_eq!(texts(&database), ["missed by nobody"]);
    assert!(!lock().contains("log"), "its loss is no loss to tell of");
    assert_eq!(database.write_blocking(level).unwrap(), 2);
    assert!(lock().contains("log"), "now something may be in it that was promised");
    // Beside one that is to be kept it is kept as well.
    let (began, go, first) = held(&database);
    began.recv().unwrap();
    let (answer, answers) = mpsc::channel();
    for durability in [Durability::Unsynced, Durability::Synced] {
        let answer = answer.clone();
        let answer = move |level: Outcome<i64>| answer.send(level.into_result().unwrap()).unwrap();
        database.queue.push_blocking(writer::change(durability, level, answer)).unwrap();
    }
    go.send(()).unwrap();
    first.join().unwrap();
    assert_eq!([answers.recv().unwrap(), answers.recv().unwrap()], [2, 2]);
    database.close();
    assert!(!log_is_gone(&place.path()));
    assert_eq!(texts(&place.open()), ["missed by nobody"]);
}

#[test]
fn a_store_that_was_opened_to_look_and_in_which_only_such_a_change_was_made_is_whole_after_its_end_and_after_a_kill()
 {
    // case: O-64
    let (place, killed) = (Place::new(), Place::new());
    place.open().close();
    let path = place.path();
    let database = Database::open(Opening { check: Check::Beside, ..opening(&path) }).unwrap();
    database.write_unsynced_blocking(insert("missed by nobody")).unwrap();
    let log = lock::beside(&path, "-wal").metadata().unwrap();
    assert!(log.len() > 0, "one that is empty would be taken for one that somebody emptied");
    for part in ["", "-wal", ".lock"] {
        std::fs::copy(lock::beside(&path, part), lock::beside(&killed.path(), part)).unwrap();
    }
    database.close();
    for after in [&place, &killed] {
        assert!(!log_is_gone(&after.path()));
        let database = after.open();
        assert_eq!(texts(&database), ["missed by nobody"]);
        database.close();
        assert!(!log_is_gone(&after.path()) && !lock::beside(&after.path(), "-wal").exists());
    }
}

#[test]
fn a_write_is_acknowledged_only_after_its_commit() {
    // case: O-64
    let (_place, database) = fresh();
    let (seen, was_seen) = mpsc::channel();
    let reader = database.clone();
    let change = move |transaction: &Transaction<'_>| {
        transaction.execute("INSERT INTO kept (text) VALUES ('early')", ())?;
        seen.send(texts(&reader)).unwrap();
        Ok(())
    };
    database.write_blocking(change).unwrap();
    assert!(was_seen.recv().unwrap().is_empty(), "made, but not yet committed");
    assert_eq!(texts(&database), ["early"]);
}

#[tokio::test]
async fn a_change_whose_commit_fails_is_not_acknowledged() {
    // case: O-64
    let (_place, database) = fresh();
    let change = |transaction: &Transaction<'_>| {
        // What no schema of ours does: only the commit finds out.
        transaction.pragma_update(None, "defer_foreign_keys", true)?;
        transaction.execute("INSERT INTO part (of) VALUES (99)", ())
    };
    let error = database.write(change).await.unwrap_err();
    assert!(matches!(error, DatabaseError::Sql(_)), "{error:?}");
    database.write(insert("next")).await.unwrap();
    assert_eq!(texts(&database), ["next"]);
}

#[tokio::test]
async fn one_failing_change_in_a_group_does_not_fail_its_neighbours() {
    let (_place, database) = fresh();
    let (began, go, holder) = held(&database);
    began.recv().unwrap();
    let (panicking, reader) = (database.clone(), database.clone());
    let panics = tokio::spawn(async move {
        let change = |transaction: &Transaction<'_>| -> rusqlite::Result<()> {
            transaction.execute("INSERT INTO kept (text) VALUES ('half')", ())?;
            panic!("no further")
        };
        panicking.write(change).await
    });
    let look = move |transaction: &Transaction<'_>| {
        let inside: i64 = transaction.query_row("SELECT count(*) FROM kept", (), |row| row.get(0))?;
        Ok((inside, texts(&reader).len()))
    };
    let release = async {
        tokio::task::yield_now().await;
        go.send(()).unwrap();
    };
    let (one, twice, seen, two, ()) = tokio::join!(
        database.write(insert("one")),
        database.write(insert("one")),
        database.write(look),
        database.write(insert("two")),
        release,
    );
    holder.join().unwrap();
    assert_eq!((one.unwrap(), two.unwrap()), (1, 1));
    assert!(matches!(twice, Err(DatabaseError::Sql(_))), "{twice:?}");
    assert_eq!(seen.unwrap(), (1, 0), "its neighbour's row, which nobody else could see: one group");
    assert!(panics.await.unwrap_err().is_panic(), "the panic went on in its own caller");
    assert_eq!(texts(&database), ["one", "two"]);
}

#[tokio::test]
async fn a_change_that_fails_midway_leaves_nothing() {
    let (_place, database) = fresh();
    let change = |transaction: &Transaction<'_>| {
        transaction.execute("INSERT INTO kept (text) VALUES ('first half')", ())?;
        transaction.execute("INSERT INTO part (of) VALUES (99)", ())
    };
    let error = database.write(change).await.unwrap_err();
    assert_eq!(error.to_string(), "the store refused the statement");
    assert!(texts(&database).is_empty());
}

#[tokio::test]
async fn a_change_that_ends_the_transaction_itself_is_not_acknowledged_and_the_writer_goes_on() {
    let (_place, database) = fresh();
    let meddle = |transaction: &Transaction<'_>| {
        transaction.execute("INSERT INTO kept (text) VALUES ('meddled')", ())?;
        transaction.execute_batch("ROLLBACK")
    };
    let (began, go, holder) = held(&database);
    began.recv().unwrap();
    let (before, meddled, after, ()) = tokio::join!(
        database.write(insert("before")),
        database.write(meddle),
        database.write(insert("after")),
        async { go.send(()).unwrap() },
    );
    holder.join().unwrap();
    assert!(before.is_err() && meddled.is_err(), "what it took along is not acknowledged either");
    assert_eq!(after.unwrap(), 1);
    assert_eq!(texts(&database), ["after"]);
}

#[tokio::test]
async fn a_change_whose_caller_stops_waiting_is_still_made() {
    let (_place, database) = fresh();
    let (began, go, holder) = held(&database);
    began.recv().unwrap();
    let write = database.write(insert("left behind"));
    assert!(tokio::time::timeout(Duration::ZERO, write).await.is_err());
    go.send(()).unwrap();
    holder.join().unwrap();
    database.write(|_| Ok(())).await.unwrap();
    assert_eq!(texts(&database), ["left behind"]);
}

#[tokio::test]
async fn reads_see_every_committed_write() {
    let (_place, database) = fresh();
    for text in ["a", "b", "c"] {
        database.write(insert(text)).await.unwrap();
        let last: String = database
            .read(|connection| {
                connection.query_row("SELECT text FROM kept ORDER BY id DESC", (), |row| row.get(0))
            })
            .await
            .unwrap();
        assert_eq!(last, text);
    }
}

#[tokio::test]
async fn a_reader_cannot_write_and_sees_one_state_from_first_to_last() {
    let (_place, database) = fresh();
    let write = database.read(|connection| connection.execute("DELETE FROM kept", ())).await;
    assert!(matches!(write, Err(DatabaseError::ReadOnly)), "{write:?}");
    let writer = database.clone();
    let look = move |connection: &rusqlite::Connection| {
        let count = || connection.query_row("SELECT count(*) FROM kept", (), |row| row.get::<_, i64>(0));
        let before = count()?;
        writer.write_blocking(insert("meanwhile")).unwrap();
        Ok((before, count()?))
    };
    assert_eq!(database.read(look).await.unwrap(), (0, 0));
    assert_eq!(texts(&database), ["meanwhile"]);
}

#[test]
fn a_look_that_panics_gives_its_connection_back() {
    let (_place, database) = fresh();
    for _ in 0..4 {
        let look = || database.read_blocking(|_| -> rusqlite::Result<()> { panic!("bad look") });
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(look)).is_err());
    }
    assert!(texts(&database).is_empty(), "two connections, and both are back");
}

#[test]
fn many_threads_lose_nothing() {
    let (_place, database) = fresh();
    let threads: Vec<_> = (0..8)
        .map(|thread: i64| {
            let database = database.clone();
            std::thread::spawn(move || {
                for number in 0..50 {
                    let change = move |transaction: &Transaction<'_>| {
                        let text = format!("{thread}/{number}");
                        transaction.prepare_cached("INSERT INTO kept (text) VALUES (?1)")?.execute([text])
                    };
                    database.write_blocking(change).unwrap();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(texts(&database).len(), 400);
}

#[test]
fn closing_makes_what_is_queued_and_refuses_what_comes_after() {
    let place = Place::new();
    let database = place.open();
    let (began, go, holder) = held(&database);
    began.recv().unwrap();
    let queued = database.clone();
    let queued = std::thread::spawn(move || queued.write_blocking(insert("queued")));
    while database.queue.free() == super::QUEUE {
        std::thread::yield_now();
    }
    let other = database.clone();
    let closing = std::thread::spawn(move || database.close());
    go.send(()).unwrap();
    holder.join().unwrap();
    assert_eq!(queued.join().unwrap().unwrap(), 1);
    closing.join().unwrap();
    assert!(matches!(other.write_blocking(insert("late")), Err(DatabaseError::Closed)));
    assert!(matches!(other.read_blocking(|_| Ok(())), Err(DatabaseError::Closed)));
    assert_eq!(texts(&place.open()), ["queued"], "and the lock is free while the other clone lives");
}
