//! The control plane's store is full, read-only, unreadable, damaged, foreign, newer, in use, or goes while it is open:
//! each is said by its own name, nothing is made in its place or overwritten, no machine loses anything by it, and work
//! goes on when the cause is gone. What must mount a file system needs root, and says so where there is none.

use std::path::{Path, PathBuf};

use tenure_actors::database::rusqlite::Connection;
use tenure_tests::disk::Disk;
use tenure_tests::program::{Ran, run};
use tenure_tests::sandbox::{Sandbox, text};

const STATE: &str = "control/var/lib/tenure-control";
const STORE: &str = "control/var/lib/tenure-control/store.db";
const MODULE: &str = "[[file]]\npath = \"/a.txt\"\ncontent = \"a\\n\"\n";

/// Starts a control plane that is expected to refuse, and ends with what it said.
fn refused(sandbox: &Sandbox) -> Ran {
    let (root, address) = (text(&sandbox.at("control")), sandbox.address());
    let arguments = ["run", "--root", &root, "--listen", &address, "--advertise", &address];
    run("tenure-control", &arguments, &sandbox.at("")).expect(3)
}

fn log(sandbox: &Sandbox) -> String {
    sandbox.control.as_ref().map(tenure_tests::program::Running::said).unwrap_or_default()
}

fn part(path: &Path, ending: &str) -> PathBuf {
    PathBuf::from(format!("{}{ending}", path.display()))
}

/// Every file of the state folder with its bytes, save for the lock and the memory that is made anew at each opening.
fn kept(sandbox: &Sandbox) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(sandbox.at(STATE)).unwrap().flatten();
    let files = entries.filter(|entry| entry.path().is_file());
    let mut kept: Vec<(String, Vec<u8>)> = files
        .map(|entry| {
            let bytes = std::fs::read(entry.path()).unwrap();
            (entry.file_name().into_string().unwrap(), bytes)
        })
        .filter(|(name, bytes)| {
            let is_of_an_opening = name.ends_with(".lock") || name.ends_with("-shm");
            let is_empty_log = name.ends_with("-wal") && bytes.is_empty();
            !is_of_an_opening && !is_empty_log
        })
        .collect();
    kept.sort();
    kept
}

/// One that ran, has a node, and was stopped.
fn stopped() -> Sandbox {
    let mut sandbox = Sandbox::empty();
    sandbox.start_control();
    sandbox.invite("edge-1", &[]);
    assert!(sandbox.control.take().unwrap().stop().success());
    sandbox
}

fn knows(sandbox: &Sandbox, node: &str) -> bool {
    sandbox.tenure(&["node", node, "--json"]).code == 0
}

type Damage = fn(&Path, &[u8]);

/// What is done to the store, the code of the refusal, and words it must have.
const DAMAGED: &[(&str, Damage, &str, &str)] = &[
    ("emptied", |store, _| std::fs::write(store, "").unwrap(), "store_empty", "is an empty file"),
    (
        "cut in half",
        |store, whole| std::fs::write(store, &whole[..whole.len() / 2]).unwrap(),
        "store_damaged",
        "cut off",
    ),
    (
        "cut to nothing",
        |store, whole| std::fs::write(store, &whole[..50]).unwrap(),
        "store_not_a_database",
        "not a database",
    ),
    ("a page of zeros", |store, whole| spoilt(store, whole, 8192..12288), "store_damaged", "is damaged"),
    (
        "a header of zeros",
        |store, whole| spoilt(store, whole, 0..100),
        "store_not_a_database",
        "not a database",
    ),
    (
        "text",
        |store, _| std::fs::write(store, "hello\n".repeat(500)).unwrap(),
        "store_not_a_database",
        "not a database",
    ),
    ("of a newer version", |store, _| pragma(store, "user_version = 99"), "store_newer", "has schema 99"),
    (
        "another program's",
        |store, _| pragma(store, "application_id = 7"),
        "store_not_ours",
        "belongs to another program",
    ),
    ("removed", |store, _| std::fs::remove_file(store).unwrap(), "store_gone", "there is no store beside it"),
    ("a folder", |store, _| folder(store), "store_not_opened", "cannot be opened"),
];

fn spoilt(store: &Path, whole: &[u8], range: std::ops::Range<usize>) {
    let mut bytes = whole.to_vec();
    bytes[range].fill(0);
    std::fs::write(store, bytes).unwrap();
}

fn pragma(store: &Path, text: &str) {
    let connection = Connection::open(store).unwrap();
    connection.execute_batch(&format!("PRAGMA {text}; PRAGMA wal_checkpoint(TRUNCATE)")).unwrap();
}

fn folder(store: &Path) {
    std::fs::remove_file(store).unwrap();
    std::fs::create_dir(store).unwrap();
}

// case: O-06
// case: O-70
#[test]
fn each_damage_to_a_store_has_its_own_name_and_no_number_of_starts_changes_a_byte() {
    let mut sandbox = stopped();
    let store = sandbox.at(STORE);
    let whole = std::fs::read(&store).unwrap();
    for (name, damage, code, words) in DAMAGED {
        damage(&store, &whole);
        let before = kept(&sandbox);
        // As a service manager would: again and again.
        for _ in 0..3 {
            let ran = refused(&sandbox);
            let said = ran.err + &ran.out;
            assert!(said.contains(code) && said.contains(words), "{name}: {said}");
            assert!(said.contains("do=") && said.contains("means="), "{name}: {said}");
            assert_eq!(kept(&sandbox), before, "{name}: something was changed");
        }
        let cli = sandbox.tenure(&["nodes"]);
        assert_eq!(cli.code, 3, "{name}: {cli:?}");
        if store.is_dir() {
            std::fs::remove_dir(&store).unwrap();
        }
        std::fs::write(&store, &whole).unwrap();
    }
    sandbox.start_control();
    assert!(knows(&sandbox, "edge-1"), "put back, it is the same control plane");
}

// case: O-67
#[test]
fn a_second_control_plane_is_told_who_has_the_store_and_since_when_and_the_first_goes_on() {
    let mut sandbox = Sandbox::empty();
    sandbox.start_control();
    sandbox.invite("edge-1", &[]);
    let pid = sandbox.control.as_ref().unwrap().pid();
    let ran = refused(&sandbox);
    assert!(ran.err.contains("store_locked"), "{ran:?}");
    assert!(ran.err.contains(&format!("process {pid} since 2")), "{ran:?}");
    assert!(ran.err.contains(&format!("kill {pid}")), "{ran:?}");
    sandbox.invite("edge-2", &[]);
    sandbox.kill_control();
    // With no cleaning by hand.
    sandbox.start_control();
    assert!(knows(&sandbox, "edge-1") && knows(&sandbox, "edge-2"));
}

/// The store goes while it is open. Each: what is done, and the code from then on.
type Going = (&'static str, fn(&Path), &'static str);
const GOES: &[Going] = &[
    ("the file", |store| std::fs::remove_file(store).unwrap(), "store_removed"),
    ("the log", |store| std::fs::remove_file(part(store, "-wal")).unwrap(), "store_removed"),
    ("the shared memory", |store| std::fs::remove_file(part(store, "-shm")).unwrap(), "store_removed"),
    ("the lock", |store| std::fs::remove_file(part(store, ".lock")).unwrap(), "store_removed"),
    (
        "a copy in its place",
        |store| {
            std::fs::copy(store, part(store, ".copy")).unwrap();
            std::fs::rename(part(store, ".copy"), store).unwrap();
        },
        "store_replaced",
    ),
    ("the folder", |store| std::fs::remove_dir_all(store.parent().unwrap()).unwrap(), "store_removed"),
];

// case: O-70
#[test]
fn a_store_that_goes_under_a_running_control_plane_is_noticed_and_nothing_is_done_that_would_be_lost() {
    let running = GOES.iter().map(|(what, act, code)| {
        let mut sandbox = Sandbox::empty();
        sandbox.start_control();
        sandbox.invite("edge-1", &[]);
        act(&sandbox.at(STORE));
        (what, sandbox, code)
    });
    // All of them first, so that one wait is enough for all.
    for (what, mut sandbox, code) in running.collect::<Vec<_>>() {
        let store = sandbox.at(STORE);
        // Said within its five seconds, with nobody asking.
        sandbox.wait(&format!("{what}: it is noticed"), |s| log(s).contains(code));
        let invited = sandbox.tenure(&["invite", "edge-2"]).expect(3);
        assert!(invited.err.contains(code) && invited.err.contains("try later"), "{what}: {invited:?}");
        assert!(knows(&sandbox, "edge-1"), "{what}: what is known is still shown");
        assert!(!knows(&sandbox, "edge-2"), "{what}");
        if !store.parent().unwrap().exists() {
            sandbox.wait("it is said that nothing could be saved", |s| log(s).contains("could not be saved"));
            continue;
        }
        let pid = sandbox.control.as_ref().unwrap().pid();
        let saved = part(&store, &format!(".saved-{pid}"));
        sandbox.wait(&format!("{what}: a copy was saved"), |_| saved.exists());
        assert!(sandbox.control.take().unwrap().stop().success());
        // What was saved is whole, and does what the log said it would.
        for ending in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(part(&store, ending));
        }
        assert!(refused(&sandbox).err.contains("store_gone"), "{what}");
        std::fs::rename(&saved, &store).unwrap();
        sandbox.start_control();
        assert!(knows(&sandbox, "edge-1"), "{what}");
    }
}

// case: O-70
#[test]
fn a_store_that_is_moved_away_and_back_goes_on_without_a_restart() {
    let mut sandbox = Sandbox::enrolled(&[]);
    sandbox.wait("the session is open", |s| !s.node()["session"].is_null());
    let (state, aside) = (sandbox.at(STATE), sandbox.at("aside"));
    std::fs::rename(&state, &aside).unwrap();
    let refused = sandbox.tenure(&["invite", "edge-2"]).expect(3);
    assert!(refused.err.contains("store_removed"), "{refused:?}");
    std::fs::rename(&aside, &state).unwrap();
    sandbox.invite("edge-2", &[]);
    sandbox.wait("it says so", |s| log(s).contains("takes changes again"));
    assert!(!sandbox.node()["session"].is_null(), "the open session stayed open");
    assert!(sandbox.control.as_mut().unwrap().is_running());
}

// case: O-05
// case: O-70
#[test]
fn a_full_disk_is_named_in_every_answer_and_room_ends_it_without_a_restart() {
    let mut sandbox = Sandbox::empty();
    let Some(disk) = Disk::in_memory(&sandbox.at(STATE), 1024) else { return };
    sandbox.write(
        "control/etc/tenure/control.toml",
        "heartbeat_seconds = 1\nsilence_seconds = 3\nlease_seconds = 4\n",
    );
    sandbox.start_control();
    sandbox.start_host();
    sandbox.enrol("edge-1", &[]);
    sandbox.module(MODULE);
    sandbox.declare(&[]).expect(0);
    let token = sandbox.invite("edge-2", &[]);
    sandbox.wait("the session is open", |s| !s.node()["session"].is_null());
    sandbox.wait("little room is said before there is none", |s| log(s).contains("little room is left"));
    let filler = disk.fill();

    // An operator invites, declares, retires; a machine enrols; a node beats and reports.
    let started = std::time::Instant::now();
    sandbox.module(&MODULE.replace("a\\n", "b\\n"));
    let folder = text(&sandbox.at("fleet"));
    for command in [
        vec!["invite", "edge-3"],
        vec!["declare", &folder],
        vec!["retire", "edge-1"],
        vec!["reinvite", "edge-1", "--revoke-now"],
    ] {
        let ran = sandbox.tenure(&command).expect(3);
        assert!(ran.err.contains("store_full") && ran.err.contains("make room"), "{command:?}: {ran:?}");
    }
    let mut second = Sandbox::empty();
    second.start_host();
    let enrolled = second.redeem(&token);
    assert_ne!(enrolled.code, 0);
    assert!(enrolled.err.contains("store_full") && !enrolled.err.contains("not_proven"), "{enrolled:?}");
    assert_eq!(second.host(&["status", "--json"]).expect(0).json()["machine_state"], "hosted");
    std::fs::write(sandbox.machine("/a.txt"), "spoilt").unwrap();
    sandbox.wait("the machine is held meanwhile", |s| s.read("/a.txt").as_deref() == Some("a\n"));
    // Longer than a lease: beats are heard all the same.
    sandbox.wait("a whole lease is over", |_| started.elapsed() > std::time::Duration::from_secs(6));
    let nodes = sandbox.tenure(&["nodes", "--json"]).expect(0).json();
    assert_eq!(
        (&nodes[0]["state"], &nodes[0]["machine_state"]),
        (&"ready".into(), &"enrolled".into()),
        "{nodes}"
    );
    assert!(!sandbox.events().iter().any(|event| event["kind"] == "lost"));
    let said = log(&sandbox);
    assert_eq!(said.matches("code=store_full").count(), 1, "one line for one state: {said}");

    std::fs::remove_file(filler).unwrap();
    sandbox.wait("it says that it is well", |s| log(s).contains("takes changes again"));
    second.redeem(&token).expect(0);
    sandbox.wait_for_state("edge-2", "ready");
    sandbox.declare(&[]).expect(0);
    assert_eq!(sandbox.read("/a.txt").unwrap(), "b\n");
    sandbox.wait("what was told meanwhile arrives", |s| {
        s.events().iter().any(|event| event["kind"] == "drift_repaired" && event["key"] == "file:/a.txt")
    });
    assert!(sandbox.control.as_mut().unwrap().is_running());
}

// case: O-70
#[test]
fn a_start_on_a_full_disk_names_the_disk_and_the_next_one_with_room_goes_on() {
    let mut sandbox = Sandbox::empty();
    let Some(disk) = Disk::in_memory(&sandbox.at(STATE), 1024) else { return };
    let first = disk.fill();
    let ran = refused(&sandbox);
    assert!(ran.err.contains("_full") && ran.err.contains("make room"), "a first start: {ran:?}");
    std::fs::remove_file(first).unwrap();
    sandbox.start_control();
    sandbox.invite("edge-1", &[]);
    assert!(sandbox.control.take().unwrap().stop().success());
    let again = disk.fill();
    let before = kept(&sandbox);
    let ran = refused(&sandbox);
    assert!(ran.err.contains("store_full") && ran.err.contains("make room"), "{ran:?}");
    assert!(ran.err.contains("is full") && !ran.err.contains("reports errors"), "{ran:?}");
    assert_eq!(kept(&sandbox), before);
    std::fs::remove_file(again).unwrap();
    sandbox.start_control();
    assert!(knows(&sandbox, "edge-1"));
}

// case: O-70
#[test]
fn a_start_on_a_read_only_file_system_names_it_and_touches_nothing() {
    let mut sandbox = stopped();
    let Some(disk) = Disk::bound(&sandbox.at(STATE)) else { return };
    let before = kept(&sandbox);
    disk.read_only(true);
    let ran = refused(&sandbox);
    let look = format!("findmnt -T {}`", text(&sandbox.at(STATE)));
    assert!(ran.err.contains("state_read_only") && ran.err.contains(&look), "{ran:?}");
    disk.read_only(false);
    assert_eq!(kept(&sandbox), before);
    sandbox.start_control();
    assert!(knows(&sandbox, "edge-1"));
}

// case: O-70
#[test]
fn a_file_system_that_turns_read_only_is_named_while_reading_goes_on() {
    let mut sandbox = Sandbox::empty();
    let Some(disk) = Disk::in_a_file(&sandbox.at("disk.img"), &sandbox.at(STATE)) else { return };
    sandbox.start_control();
    sandbox.invite("edge-1", &[]);
    disk.fail();
    let ran = sandbox.tenure(&["invite", "edge-2"]).expect(3);
    assert!(ran.err.contains("store_read_only") && ran.err.contains("mount"), "{ran:?}");
    assert!(knows(&sandbox, "edge-1") && !knows(&sandbox, "edge-2"));
    let mut control = sandbox.control.take().unwrap();
    control.signal(nix::sys::signal::Signal::SIGTERM);
    assert!(control.ended_within(tenure_tests::sandbox::SOON).success(), "it ends all the same");
}

// case: O-70
#[test]
fn a_store_that_its_user_may_not_read_is_said_to_be_that_and_no_damaged_one() {
    let sandbox = stopped();
    if !nix::unistd::geteuid().is_root() {
        eprintln!("needs root to be somebody else: nothing was tested");
        return;
    }
    let program = sandbox.at("tenure-control");
    std::fs::copy(tenure_tests::program::folder().join("tenure-control"), &program).unwrap();
    open_to_all(&sandbox.at(""));
    let nobody = |change: &dyn Fn()| {
        own(&sandbox.at("control"), 65534);
        change();
        let (root, address) = (text(&sandbox.at("control")), sandbox.address());
        let program = text(&program);
        let arguments = [
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            &program,
            "run",
            "--root",
            &root,
            "--listen",
            &address,
        ];
        run("/usr/bin/setpriv", &arguments, &sandbox.at("")).expect(3).err
    };
    let store = sandbox.at(STORE);
    let said = nobody(&|| own(&store, 0));
    assert!(said.contains("store_unreadable") && said.contains("ls -l"), "{said}");
    let said = nobody(&|| own(&sandbox.at("control/var/lib/tenure-control/ca.key"), 0));
    assert!(said.contains("key_unreadable") && said.contains("ls -l"), "{said}");
    let said = nobody(&|| own(&sandbox.at(STATE), 0));
    assert!(said.contains("directories_not_made"), "{said}");
}

fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

fn own(path: &Path, id: u32) {
    std::os::unix::fs::chown(path, Some(id), Some(id)).unwrap();
    if path.is_dir() {
        std::fs::read_dir(path).unwrap().flatten().for_each(|entry| own(&entry.path(), id));
    }
}

// case: O-64
#[test]
fn what_was_answered_is_there_after_a_kill_at_once() {
    let mut sandbox = Sandbox::enrolled(&[]);
    sandbox.module(MODULE);
    let folder = text(&sandbox.at("fleet"));
    sandbox.tenure(&["declare", &folder]).expect(0);
    sandbox.kill_control();
    sandbox.start_control();
    assert_eq!(sandbox.node()["revision"]["declared"], 1);
    sandbox.wait("it is applied", |s| s.read("/a.txt").as_deref() == Some("a\n"));
    let token = sandbox.invite("edge-2", &[]);
    sandbox.kill_control();
    sandbox.start_control();
    let mut second = Sandbox::empty();
    second.start_host();
    second.redeem(&token).expect(0);
    sandbox.tenure(&["retire", "edge-1"]).expect(0);
    sandbox.kill_control();
    sandbox.start_control();
    let state = |node| sandbox.tenure(&["node", node, "--json"]).expect(0).json()["state"].clone();
    assert_eq!((state("edge-1"), state("edge-2")), ("retired".into(), "ready".into()));
    assert!(sandbox.tenure(&["reinvite", "edge-1"]).expect(3).err.contains("retired"));
}

// case: O-64
#[test]
fn a_log_that_was_removed_or_emptied_after_a_kill_is_missed_and_found_again_when_it_is_put_back() {
    let mut sandbox = Sandbox::empty();
    sandbox.start_control();
    sandbox.invite("edge-1", &[]);
    sandbox.kill_control();
    let (wal, aside) = (part(&sandbox.at(STORE), "-wal"), sandbox.at("wal"));
    std::fs::rename(&wal, &aside).unwrap();
    for is_emptied in [false, false, true, true] {
        if is_emptied {
            std::fs::write(&wal, "").unwrap();
        }
        let before = kept(&sandbox);
        let ran = refused(&sandbox);
        assert!(ran.err.contains("store_log_gone") && ran.err.contains("store.db-wal back"), "{ran:?}");
        assert_eq!(kept(&sandbox), before);
    }
    std::fs::rename(&aside, &wal).unwrap();
    sandbox.start_control();
    assert!(knows(&sandbox, "edge-1"));
}

// case: O-53
#[test]
fn a_clock_behind_the_stores_newest_write_is_said_and_makes_no_token() {
    let mut sandbox = stopped();
    let later = "UPDATE newest_write SET at = at + 86400000";
    Connection::open(sandbox.at(STORE)).unwrap().execute_batch(later).unwrap();
    sandbox.start_control();
    assert!(log(&sandbox).contains("clock_behind"), "{}", log(&sandbox));
    let ran = sandbox.tenure(&["invite", "edge-2"]).expect(3);
    assert!(ran.err.contains("clock_behind") && ran.err.contains("timedatectl"), "{ran:?}");
    assert!(knows(&sandbox, "edge-1"), "everything else goes on");
}
