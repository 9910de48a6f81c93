//! Which file is opened, which is made, and by which name each other one is refused.

use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use super::*;
use crate::database::lock::{beside, network};

#[test]
fn a_missing_store_is_not_created_when_it_was_expected() {
    let place = Place::new();
    let error = place.refusal(Create::Never);
    assert!(matches!(&error, OpenError::Absent { path } if *path == place.path()), "{error:?}");
    assert_eq!(std::fs::read_dir(place.folder.path()).unwrap().count(), 0, "nothing was left behind");
}

#[test]
fn a_store_is_made_once_and_then_found() {
    let place = Place::new();
    let database = place.open();
    database.write_blocking(insert("kept")).unwrap();
    database.close();
    let mode = std::fs::metadata(place.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "secrets may lie in it");
    let found = Database::open(Opening { create: Create::Never, ..opening(&place.path()) }).unwrap();
    assert_eq!(texts(&found), ["kept"]);
}

#[test]
fn what_a_crash_left_of_a_half_made_store_is_made_anew() {
    let place = Place::new();
    std::fs::write(beside(&place.path(), ".new"), "half").unwrap();
    assert!(texts(&place.open()).is_empty());
    assert!(!beside(&place.path(), ".new").exists());
}

#[test]
fn a_log_that_lies_beside_no_store_is_not_read_into_the_new_one() {
    let (place, other) = (Place::new(), Place::new());
    let database = other.open();
    database.write_blocking(insert("of another life")).unwrap();
    std::fs::copy(beside(&other.path(), "-wal"), beside(&place.path(), "-wal")).unwrap();
    assert!(texts(&place.open()).is_empty());
}

#[test]
fn an_empty_file_is_refused_by_its_own_name_and_left_alone() {
    let place = Place::new();
    std::fs::write(place.path(), "").unwrap();
    let error = place.refusal(Create::WhenAbsent);
    assert!(matches!(error, OpenError::Empty { .. }), "{error:?}");
    assert_eq!(std::fs::read(place.path()).unwrap(), b"");
}

#[test]
fn a_garbage_file_is_refused_by_its_own_name_and_left_alone() {
    for garbage in [&b"short"[..], &[b'x'; 5000], b"SQLite format 3\0"] {
        let place = Place::new();
        std::fs::write(place.path(), garbage).unwrap();
        let error = place.refusal(Create::WhenAbsent);
        assert!(matches!(error, OpenError::NotADatabase { .. }), "{error:?}");
        assert_eq!(std::fs::read(place.path()).unwrap(), garbage);
    }
}

#[test]
fn a_foreign_database_is_refused_by_its_own_name_and_left_alone() {
    let place = Place::new();
    let foreign = rusqlite::Connection::open(place.path()).unwrap();
    foreign.execute_batch("PRAGMA application_id = 77; CREATE TABLE theirs (id)").unwrap();
    drop(foreign);
    let before = std::fs::read(place.path()).unwrap();
    let error = place.refusal(Create::WhenAbsent);
    assert!(matches!(error, OpenError::NotOurs { found: 77, .. }), "{error:?}");
    assert_eq!(std::fs::read(place.path()).unwrap(), before);
}

#[test]
fn a_newer_store_is_refused_by_its_own_name_with_both_numbers() {
    let place = Place::new();
    let database = place.open();
    database.write_blocking(|transaction| transaction.pragma_update(None, "user_version", 9)).unwrap();
    database.close();
    let error = place.refusal(Create::WhenAbsent);
    assert!(matches!(error, OpenError::Newer { found: 9, known: 2, .. }), "{error:?}");
    let text = format!("the store at {} has schema 9, and this program knows 2", place.path().display());
    assert_eq!(error.to_string(), text);
}

#[test]
fn a_damaged_page_is_found_at_the_opening() {
    let place = Place::new();
    filled(&place);
    let mut file = std::fs::OpenOptions::new().write(true).open(place.path()).unwrap();
    file.seek(SeekFrom::Start(4096 * 12)).unwrap();
    file.write_all(&[0xAB; 4096]).unwrap();
    let error = place.refusal(Create::WhenAbsent);
    assert!(
        matches!(&error, OpenError::Damaged { what, .. } if what.contains("page") && !what.contains('\n')),
        "{error:?}"
    );
}

#[test]
fn a_folder_that_is_not_there_is_said_to_be_the_cause() {
    let place = Place::new();
    let path = place.folder.path().join("absent/store.db");
    let error = Database::open(opening(&path)).unwrap_err();
    assert!(matches!(error, OpenError::CannotOpen { .. }), "{error:?}");
}

#[test]
fn an_older_store_gets_the_steps_it_lacks_and_keeps_its_rows() {
    let place = Place::new();
    let path = place.path();
    let first = Opening { migrations: &SCHEMA[..1], ..opening(&path) };
    let database = Database::open(first).unwrap();
    database.write_blocking(insert("old")).unwrap();
    database.close();
    let database = place.open();
    database
        .write_blocking(|transaction| transaction.execute("INSERT INTO part (of) VALUES (1)", ()))
        .unwrap();
    assert_eq!(texts(&database), ["old"]);
}

#[test]
fn a_step_that_fails_is_named_by_its_number_and_rolled_back_alone() {
    const BROKEN: &[&str] =
        &[SCHEMA[0], SCHEMA[1], "CREATE TABLE more (id INTEGER); INSERT INTO part (of) VALUES (99)"];
    let place = Place::new();
    let path = place.path();
    place.open().close();
    let error = Database::open(Opening { migrations: BROKEN, ..opening(&path) }).unwrap_err();
    assert!(matches!(error, OpenError::Migration { number: 3, .. }), "rows that refer to nothing: {error:?}");
    let database = place.open();
    let tables = database.read_blocking(|connection| {
        connection.query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'more'", (), |row| {
            row.get::<_, i64>(0)
        })
    });
    assert_eq!(tables.unwrap(), 0);
}

#[test]
fn the_same_process_cannot_open_a_store_twice_either() {
    // case: O-67
    let place = Place::new();
    let first = place.open();
    let error = place.refusal(Create::Never);
    assert!(
        matches!(error, OpenError::Locked { pid: Some(pid), .. } if pid == std::process::id()),
        "{error:?}"
    );
    first.write_blocking(insert("undisturbed")).unwrap();
    drop(first);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the other process is this test program itself")]
fn a_second_process_is_refused_with_the_holders_pid_and_welcome_once_the_first_was_killed() {
    // case: O-67
    let place = Place::new();
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--exact",
            "--nocapture",
            "database::tests::opening::a_process_that_holds_a_store",
        ])
        .env("TENURE_TEST_STORE", place.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("holding")));
    let error = place.refusal(Create::Never);
    assert!(
        matches!(error, OpenError::Locked { pid: Some(pid), since: Some(_), .. } if pid == holder.id()),
        "{error:?}"
    );
    let text = format!("the store at {} is open in process {}", place.path().display(), holder.id());
    assert_eq!(error.to_string(), text);
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!(texts(&place.open()), ["theirs"], "with no cleaning by hand, and with what was acknowledged");
}

#[test]
#[ignore = "this is the other process of the test above"]
fn a_process_that_holds_a_store() {
    let path = PathBuf::from(std::env::var_os("TENURE_TEST_STORE").unwrap());
    let database = Database::open(opening(&path)).unwrap();
    database.write_blocking(insert("theirs")).unwrap();
    println!("holding");
    std::io::stdin().lines().for_each(drop);
}

#[test]
fn file_systems_of_other_machines_are_known_by_their_names() {
    // case: O-67
    use nix::sys::statfs;
    assert_eq!(network(statfs::NFS_SUPER_MAGIC), Some("NFS"));
    assert_eq!(network(statfs::FsType(0xff53_4d42)), Some("CIFS"));
    for local in
        [statfs::EXT4_SUPER_MAGIC, statfs::XFS_SUPER_MAGIC, statfs::BTRFS_SUPER_MAGIC, statfs::TMPFS_MAGIC]
    {
        assert_eq!(network(local), None);
    }
}

/// A store of some fifty pages, closed.
fn filled(place: &Place) {
    let database = place.open();
    let fill = |transaction: &Transaction<'_>| {
        let sql = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
                   INSERT INTO kept (text) SELECT hex(zeroblob(100)) || i FROM n";
        transaction.execute(sql, ())
    };
    database.write_blocking(fill).unwrap();
    database.close();
}

#[test]
fn a_store_that_was_cut_off_anywhere_is_refused_and_left_as_it_is() {
    // case: O-06
    let place = Place::new();
    filled(&place);
    let whole = std::fs::read(place.path()).unwrap();
    for length in [0, 1, 16, 99, 100, 512, 4095, 4096, 4097, 8192, whole.len() / 2, whole.len() - 1] {
        std::fs::write(place.path(), &whole[..length]).unwrap();
        let error = place.refusal(Create::WhenAbsent);
        let named = matches!(
            error,
            OpenError::Empty { .. } | OpenError::NotADatabase { .. } | OpenError::Damaged { .. }
        );
        assert!(named, "cut to {length} bytes: {error:?}");
        assert_eq!(std::fs::read(place.path()).unwrap(), &whole[..length], "cut to {length} bytes");
    }
    std::fs::write(place.path(), &whole).unwrap();
    assert_eq!(texts(&place.open()).len(), 500, "put back, it opens");
}

#[test]
fn a_damaged_store_and_what_its_log_holds_are_left_byte_for_byte() {
    // case: O-06
    let (place, after) = (Place::new(), Place::new());
    filled(&place);
    let database = place.open();
    database.write_blocking(insert("in the log only")).unwrap();
    // What a power cut leaves, and a page that the disk lost.
    let [file, log] = ["", "-wal"].map(|part| {
        let bytes = std::fs::read(beside(&place.path(), part)).unwrap();
        std::fs::write(beside(&after.path(), part), &bytes).unwrap();
        bytes
    });
    let mut damaged = file;
    damaged[4096 * 12..4096 * 13].fill(0xAB);
    std::fs::write(after.path(), &damaged).unwrap();
    for _ in 0..3 {
        let error = after.refusal(Create::Never);
        assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
        assert_eq!(std::fs::read(after.path()).unwrap(), damaged);
        assert_eq!(std::fs::read(beside(&after.path(), "-wal")).unwrap(), log);
    }
}

#[test]
fn a_store_on_another_machines_file_system_is_refused_by_its_name() {
    // case: O-67
    use nix::sys::statfs;
    let path = Path::new("/srv/state/store.db");
    let error = crate::database::lock::refuse(path, statfs::NFS_SUPER_MAGIC).unwrap_err();
    assert_eq!(error.to_string(), "the store at /srv/state/store.db lies on a network file system (NFS)");
    crate::database::lock::refuse(path, statfs::EXT4_SUPER_MAGIC).unwrap();
}

#[test]
fn a_store_that_was_left_open_and_lost_its_log_is_told_from_one_that_was_closed_and_from_a_backup() {
    // case: O-64
    let (place, after) = (Place::new(), Place::new());
    let lacks_log = || crate::database::log_is_gone(&after.path());
    let database = place.open();
    database.write_blocking(insert("in the log only")).unwrap();
    // What a power cut leaves. The file keeps its name in the kernel, as it does on a disk.
    for part in ["", "-wal", ".lock"] {
        std::fs::hard_link(beside(&place.path(), part), beside(&after.path(), part)).unwrap();
    }
    assert!(!lacks_log(), "it was left open, with all that belongs to it");
    std::fs::remove_file(beside(&after.path(), "-wal")).unwrap();
    assert!(lacks_log());
    std::fs::rename(after.path(), beside(&after.path(), ".aside")).unwrap();
    assert!(!lacks_log(), "there is no store");
    std::fs::copy(beside(&after.path(), ".aside"), after.path()).unwrap();
    assert!(!lacks_log(), "one that was put in its place was not left open");
    std::fs::rename(beside(&after.path(), ".aside"), after.path()).unwrap();
    assert!(lacks_log());
    database.close();
    assert!(!lacks_log(), "it was closed");
    assert!(!beside(&place.path(), "-wal").exists(), "and its log went with that");
}

#[test]
fn a_log_that_was_emptied_is_told_from_one_that_nothing_was_in_yet_and_from_one_that_was_written_back() {
    // case: O-64
    let place = Place::new();
    let lacks_log = || crate::database::log_is_gone(&place.path());
    let log = beside(&place.path(), "-wal");
    let length = || log.metadata().unwrap().len();
    let database = place.open();
    assert!(length() == 0 && !lacks_log(), "nothing was written yet");
    database.write_blocking(|_| Ok(())).unwrap();
    assert!(length() == 0 && !lacks_log(), "nor by a change that changes nothing");
    database.write_blocking(insert("in the log")).unwrap();
    assert!(length() > 0 && !lacks_log());
    database.write_back().unwrap();
    assert!(length() == 0 && !lacks_log(), "all of it is in the store");
    database.write_blocking(insert("in the log again")).unwrap();
    let (bytes, lock) =
        (std::fs::read(&log).unwrap(), std::fs::read(beside(&place.path(), ".lock")).unwrap());
    database.close();
    assert!(!lacks_log());
    // What a kill leaves, and what somebody makes of it.
    std::fs::write(beside(&place.path(), ".lock"), lock).unwrap();
    std::fs::write(&log, bytes).unwrap();
    assert!(!lacks_log());
    std::fs::write(&log, "").unwrap();
    assert!(lacks_log());
}

#[test]
fn a_store_that_somebody_opens_and_closes_meanwhile_never_looks_as_if_its_log_were_gone() {
    // case: O-64
    let place = Place::new();
    std::thread::scope(|scope| {
        let others = scope.spawn(|| {
            for at in 0..30 {
                let database = place.open();
                let insert = "INSERT INTO kept (text) VALUES (?1)";
                database.write_blocking(move |t| t.execute(insert, [at.to_string()]).map(drop)).unwrap();
                database.close();
            }
        });
        while !others.is_finished() {
            assert!(!crate::database::log_is_gone(&place.path()));
        }
    });
}

#[test]
fn a_store_whose_end_cannot_be_noted_in_its_lock_keeps_its_log_and_opens_again() {
    // case: O-64
    let place = Place::new();
    // It can be locked, and takes no byte.
    std::os::unix::fs::symlink("/dev/full", beside(&place.path(), ".lock")).unwrap();
    let database = place.open();
    database.write_blocking(insert("kept")).unwrap();
    database.close();
    assert!(beside(&place.path(), "-wal").exists());
    std::fs::remove_file(beside(&place.path(), ".lock")).unwrap();
    assert_eq!(texts(&place.open()), ["kept"]);
}

#[test]
fn a_store_that_is_kept_unopened_is_opened_by_nobody_and_one_that_is_open_is_not_kept() {
    // case: O-05
    let place = Place::new();
    let keep = || crate::database::keep_unopened(&place.path());
    assert!(keep().is_err(), "nobody has ever opened it, and nothing is made");
    assert!(!beside(&place.path(), ".lock").exists());
    let database = place.open();
    assert!(keep().unwrap().is_none());
    database.close();
    let both = (keep().unwrap().unwrap(), keep().unwrap().unwrap());
    assert!(matches!(place.refusal(Create::Never), OpenError::Locked { .. }));
    drop(both);
    place.open().close();
}

/// A store of so many rows, closed; with `damaged`, one of its pages is not what was written.
fn left(damaged: bool) -> (Place, Vec<u8>) {
    let place = Place::new();
    filled(&place);
    let mut file = std::fs::read(place.path()).unwrap();
    if damaged {
        file[4096 * 12..4096 * 13].fill(0xAB);
        std::fs::write(place.path(), &file).unwrap();
    }
    (place, file)
}

#[test]
fn a_store_that_is_checked_beside_is_read_at_once_and_written_when_it_is_known_to_be_sound() {
    let (place, _) = left(false);
    let path = place.path();
    let database = Database::open(Opening { check: Check::Beside, ..opening(&path) }).unwrap();
    assert_eq!(texts(&database).len(), 500);
    database.write_blocking(insert("one more")).unwrap();
    database.checked().unwrap();
    database.close();
    assert_eq!(
        texts(&place.open()).len(),
        501,
        "what was written is there, and nothing says it was left open"
    );
}

#[test]
fn a_damaged_store_that_is_checked_beside_takes_no_change_and_stays_byte_for_byte() {
    // case: O-06
    let (place, damaged) = left(true);
    let path = place.path();
    let database = Database::open(Opening { check: Check::Beside, ..opening(&path) }).unwrap();
    let refused = database.write_blocking(insert("one more")).unwrap_err();
    assert!(matches!(refused, DatabaseError::Damaged), "{refused:?}");
    let refused = database.write_back().unwrap_err();
    assert!(matches!(refused, DatabaseError::Damaged), "{refused:?}");
    for _ in 0..2 {
        let error = database.checked().unwrap_err();
        assert!(matches!(&error, OpenError::Damaged { what, .. } if what.contains("page")), "{error:?}");
        assert!(matches!(database.sound(), Err(DatabaseError::Damaged)));
    }
    database.close();
    assert_eq!(std::fs::read(&path).unwrap(), damaged);
    assert!(
        matches!(place.refusal(Create::Never), OpenError::Damaged { .. }),
        "it is found so the next time too"
    );
}

#[test]
fn a_damaged_copy_that_keeps_no_log_yet_is_checked_before_anything_is_written_into_it() {
    // case: O-06
    let (place, copy) = (Place::new(), Place::new());
    filled(&place);
    let database = place.open();
    database.copy_to(&copy.path()).unwrap();
    database.close();
    let mut file = std::fs::read(copy.path()).unwrap();
    assert_eq!(file[18..20], [1, 1], "a copy is no store with a log");
    file[4096 * 12..4096 * 13].fill(0xAB);
    std::fs::write(copy.path(), &file).unwrap();
    let path = copy.path();
    let error = Database::open(Opening { check: Check::Beside, ..opening(&path) }).unwrap_err();
    assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
    assert_eq!(std::fs::read(&path).unwrap(), file);
}

#[test]
fn a_check_that_broke_off_never_says_that_the_store_is_sound() {
    let checking = super::super::checking::Checking::broken(Path::new("/srv/store.db"));
    for _ in 0..2 {
        let error = checking.wait().unwrap_err();
        assert!(matches!(&error, OpenError::CannotOpen { path, .. } if path == Path::new("/srv/store.db")));
    }
}

#[test]
fn a_store_whose_schema_needs_a_step_is_checked_before_it() {
    // case: O-06
    let place = Place::new();
    let path = place.path();
    Database::open(Opening { migrations: &SCHEMA[..1], ..opening(&path) }).unwrap().close();
    let mut file = std::fs::read(&path).unwrap();
    let last = file.len() - 4096;
    file[last..].fill(0xAB);
    std::fs::write(&path, &file).unwrap();
    let error = Database::open(Opening { check: Check::Beside, ..opening(&path) }).unwrap_err();
    assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
    assert_eq!(std::fs::read(&path).unwrap(), file);
}

#[test]
fn that_something_is_in_the_log_of_a_store_that_is_checked_beside_is_noted_before_it_is_acknowledged() {
    // case: O-06
    let (place, _) = left(false);
    let path = place.path();
    let database = Database::open(Opening { check: Check::Beside, ..opening(&path) }).unwrap();
    let noted = std::fs::read_to_string(beside(&path, ".lock")).unwrap();
    assert!(!noted.contains("log"), "nothing was promised yet: {noted:?}");
    database.write_blocking(insert("promised")).unwrap();
    let noted = std::fs::read_to_string(beside(&path, ".lock")).unwrap();
    assert!(noted.contains("log"), "{noted:?}");
    database.close();
    assert!(!crate::database::log_is_gone(&path));
}
