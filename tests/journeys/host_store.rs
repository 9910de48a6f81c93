//! The host's store and disk: whatever is wrong with them is said by its name everywhere, nothing is removed from the
//! machine because of it, and the work goes on when the cause is gone.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use serde_json::Value;
use tenure_tests::program::Ran;
use tenure_tests::sandbox::{SOON, Sandbox};

const MODULE: &str = "[[file]]\npath = \"/a.txt\"\ncontent = \"a\\n\"\n";
pub const STATE: &str = "/var/lib/tenure-host";

/// A small file system of its own at the host's state directory; let go of with this value.
struct Small(PathBuf);

impl Small {
    /// None where mounting is not possible here.
    fn at(place: PathBuf) -> Option<Self> {
        std::fs::create_dir_all(&place).unwrap();
        let mounted = mount(Some("tmpfs"), &place, Some("tmpfs"), MsFlags::empty(), Some("size=16m"));
        match mounted {
            Ok(()) => Some(Self(place)),
            Err(errno) => {
                eprintln!("skipped: mounting needs root ({errno})");
                None
            }
        }
    }

    /// Takes every byte that is left.
    fn fill(&self) {
        let mut file = std::fs::File::create(self.0.join("ballast")).unwrap();
        while std::io::Write::write(&mut file, &[0; 4096]).is_ok_and(|wrote| wrote > 0) {}
    }

    fn empty(&self) {
        std::fs::remove_file(self.0.join("ballast")).unwrap();
    }

    fn remount(&self, flags: MsFlags) {
        mount(None::<&str>, &self.0, None::<&str>, MsFlags::MS_REMOUNT | flags, None::<&str>).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        umount2(&self.0, MntFlags::MNT_DETACH).unwrap();
    }
}

/// One with a node that is declared `/a.txt` and has it.
pub fn declared(mut sandbox: Sandbox) -> Sandbox {
    sandbox.start_control();
    sandbox.start_host();
    sandbox.enrol("edge-1", &[]);
    sandbox.wait_for_state("edge-1", "ready");
    sandbox.module(MODULE);
    sandbox.declare(&[]).expect(0);
    sandbox
}

pub fn status(sandbox: &Sandbox) -> Value {
    sandbox.host(&["status", "--json"]).expect(0).json()
}

pub fn pid(sandbox: &Sandbox) -> u32 {
    sandbox.host.as_ref().unwrap().pid()
}

/// How often the host said so in its log.
fn said(sandbox: &Sandbox, what: &str) -> usize {
    sandbox.host.as_ref().unwrap().said().matches(what).count()
}

pub fn drift(sandbox: &Sandbox) {
    std::fs::write(sandbox.machine("/a.txt"), "drifted").unwrap();
}

pub fn is_repaired(sandbox: &Sandbox) -> bool {
    sandbox.read("/a.txt").as_deref() == Some("a\n")
}

/// The code and the words of a command that was refused.
fn refused(ran: Ran) -> (String, String) {
    let ran = ran.expect(3);
    let refusal = &ran.json()["refusal"];
    for part in ["happened", "means", "do"] {
        assert!(!refusal[part].as_str().unwrap().is_empty(), "{refusal}");
    }
    (refusal["code"].as_str().unwrap().to_owned(), refusal.to_string())
}

/// Stops the host in order, so that its store lies in one file.
pub fn stop_host(sandbox: &mut Sandbox) {
    assert!(sandbox.host.take().unwrap().stop().success());
}

/// The stores that are kept aside; their logs lie beside them.
fn damaged(sandbox: &Sandbox) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(sandbox.machine(STATE)).unwrap().map(|entry| entry.unwrap().path());
    let is_kept = |path: &PathBuf| {
        let name = path.to_string_lossy();
        name.contains(".damaged-") && !name.ends_with("-wal") && !name.ends_with("-shm")
    };
    let mut kept: Vec<PathBuf> = entries.filter(is_kept).collect();
    kept.sort();
    kept
}

// rule: H-10
// case: O-05
#[test]
fn a_full_disk_under_the_store_stops_changes_says_so_everywhere_and_room_mends_it_without_a_restart() {
    let sandbox = Sandbox::empty();
    let Some(small) = Small::at(sandbox.machine(STATE)) else { return };
    let sandbox = declared(sandbox);
    let started = pid(&sandbox);
    small.fill();
    drift(&sandbox);
    let troubled = |s: &Sandbox| status(s)["last"]["refused"]["code"] == "store_full";
    sandbox.wait("the host says here that its disk is full", troubled);
    sandbox.wait("and upward", |s| {
        let report = &s.node()["report"];
        report["refused"]["code"] == "store_full" && report["counts"]["outstanding"] == 1
    });
    let pass = status(&sandbox)["last"]["pass"].as_u64().unwrap();
    // Each pass says one line that sums it up.
    let beside = |log: &str| log.lines().filter(|line| !line.contains("reconciled")).count();
    let lines = beside(&sandbox.host.as_ref().unwrap().said());
    sandbox.wait("three more passes are done", |s| status(s)["last"]["pass"].as_u64().unwrap() >= pass + 3);
    assert!(!is_repaired(&sandbox), "nothing is changed that could not be recorded");
    let log = sandbox.host.as_ref().unwrap().said();
    assert_eq!((said(&sandbox, "nothing more is changed"), beside(&log)), (1, lines), "{log}");
    let node = sandbox.node();
    assert_eq!((node["state"].as_str(), node["session"].is_null()), (Some("ready"), false), "it beats on");
    let words = sandbox.host(&["status"]).expect(0).out;
    assert!(words.contains("full") && words.contains("make room"), "{words}");
    let ran = sandbox.host(&["apply", "--json"]).expect(4);
    assert_eq!(ran.json()["summary"]["refused"]["code"], "store_full");
    assert_eq!(sandbox.host(&["owned", "--json"]).expect(0).json().as_array().unwrap().len(), 1);
    small.empty();
    sandbox.wait("the drift is repaired", is_repaired);
    sandbox.wait("and the trouble is over upward", |s| s.node()["report"]["refused"].is_null());
    assert_eq!((pid(&sandbox), said(&sandbox, "changes are made again")), (started, 1));
    assert_eq!(said(&sandbox, "host up"), 1);
}

// case: O-05
#[test]
fn a_host_that_is_started_on_a_full_or_read_only_disk_says_which_and_starts_when_it_is_not() {
    let sandbox = Sandbox::empty();
    let Some(small) = Small::at(sandbox.machine(STATE)) else { return };
    let mut sandbox = declared(sandbox);
    stop_host(&mut sandbox);
    drift(&sandbox);
    small.remount(MsFlags::MS_RDONLY);
    for command in ["run", "status", "owned", "held", "plan", "apply"] {
        let (code, words) = refused(sandbox.host(&[command, "--json"]));
        assert_eq!(code, "store_read_only", "{command}: {words}");
        assert!(words.contains("remount"), "{words}");
    }
    small.remount(MsFlags::empty());
    small.fill();
    sandbox.start_host();
    sandbox.wait("it runs on a full disk", |s| status(s)["last"]["refused"]["code"] == "store_full");
    sandbox.wait("and says so upward", |s| s.node()["report"]["refused"]["code"] == "store_full");
    assert!(!is_repaired(&sandbox));
    let session = sandbox.node()["session"]["session"].clone();
    sandbox.kill_host();
    sandbox.start_host();
    sandbox.wait("killed there, it comes back with a session of its own", |s| {
        let now = &s.node()["session"]["session"];
        !now.is_null() && *now != session
    });
    small.empty();
    sandbox.wait("the drift is repaired", is_repaired);
}

// rule: H-11
// case: O-06
#[test]
fn a_damaged_store_is_kept_aside_and_said_and_nothing_goes_from_the_machine_however_often_it_happens() {
    let mut sandbox = declared(Sandbox::empty());
    let store = sandbox.machine(STATE).join("store.db");
    let mut first = Vec::new();
    for (round, damage) in
        ["empty", "cut short", "garbage", "zeros", "a torn page", "gone"].iter().enumerate()
    {
        stop_host(&mut sandbox);
        let good = std::fs::read(&store).unwrap();
        let bytes = match *damage {
            "empty" => Vec::new(),
            "cut short" => good[..good.len() / 2].to_vec(),
            "garbage" => b"this is no database".repeat(500),
            "zeros" => vec![0; good.len()],
            _ => good
                .iter()
                .enumerate()
                .map(|(at, byte)| if at > 8192 { byte ^ 0x5a } else { *byte })
                .collect(),
        };
        std::fs::write(&store, &bytes).unwrap();
        if *damage == "gone" {
            std::fs::remove_file(&store).unwrap();
        } else {
            for command in ["status", "owned", "held", "plan", "apply"] {
                let (code, words) = refused(sandbox.host(&[command, "--json"]));
                assert_eq!(code, "store_damaged", "{damage}, {command}: {words}");
            }
            assert_eq!(std::fs::read(&store).unwrap(), bytes, "looking touches nothing");
        }
        sandbox.start_host();
        sandbox.wait("it is declared anew", |s| status(s)["revision"]["number"] == 1);
        assert!(said(&sandbox, "store lost") > round, "{damage}");
        sandbox.wait("the loss is told upward", |s| {
            s.events().iter().filter(|event| event["kind"] == "store_lost").count() == round + 1
        });
        let events = sandbox.events();
        let mut losses = events.iter().filter(|event| event["kind"] == "store_lost");
        let told = losses.all(|event| event.to_string().contains("what this host owned is not known to it"));
        assert!(told, "{damage}: {events:?}");
        sandbox.wait("and here no longer", |s| status(s)["store_note"].is_null());
        assert!(is_repaired(&sandbox), "{damage}: nothing is gone");
        let kept = damaged(&sandbox);
        assert!(kept.len() <= 4, "{kept:?}");
        if round == 0 {
            first = kept.clone();
            assert_eq!(std::fs::read(&first[0]).unwrap(), bytes);
        }
        assert_eq!(kept.first(), first.first(), "the first is kept for good");
    }
    drift(&sandbox);
    sandbox.wait("it holds on", is_repaired);
}

// case: O-70
#[test]
fn a_newer_or_a_foreign_store_is_named_by_every_command_and_left_as_it_is() {
    let mut sandbox = declared(Sandbox::empty());
    let store = sandbox.machine(STATE).join("store.db");
    stop_host(&mut sandbox);
    let good = std::fs::read(&store).unwrap();
    // In the header: the schema's number, and whose file it is.
    for (place, code) in [(60, "store_newer"), (68, "store_not_ours")] {
        let mut bytes = good.clone();
        bytes[place..place + 4].copy_from_slice(&[0, 0, 0, 99]);
        std::fs::write(&store, &bytes).unwrap();
        for command in ["run", "status", "owned", "held", "plan", "apply"] {
            let (found, words) = refused(sandbox.host(&[command, "--json"]));
            assert_eq!(found, code, "{command}: {words}");
        }
        assert_eq!(std::fs::read(&store).unwrap(), bytes);
        assert!(damaged(&sandbox).is_empty());
    }
    std::fs::write(&store, good).unwrap();
    drift(&sandbox);
    sandbox.start_host();
    sandbox.wait("the right program takes it up where it was", is_repaired);
    assert!(status(&sandbox)["store_note"].is_null());
}

// case: O-05
#[test]
fn a_store_removed_under_a_running_host_is_written_again_and_nothing_is_forgotten() {
    let mut sandbox = declared(Sandbox::empty());
    let (started, before) = (pid(&sandbox), status(&sandbox));
    for name in ["store.db", "store.db-wal", "store.db-shm"] {
        std::fs::remove_file(sandbox.machine(STATE).join(name)).unwrap();
    }
    sandbox.wait("it is there again", |s| s.machine(STATE).join("store.db").exists());
    drift(&sandbox);
    sandbox.wait("it goes on", is_repaired);
    sandbox.wait("with its link", |s| !s.node()["session"].is_null());
    assert_eq!((pid(&sandbox), said(&sandbox, "store written to its place again")), (started, 1));
    sandbox.kill_host();
    sandbox.start_host();
    let after = status(&sandbox);
    assert_eq!((&after["store_id"], &after["owned"]), (&before["store_id"], &before["owned"]));
    assert!(after["store_note"].is_null(), "nothing was lost: {after}");
    let owned = sandbox.host(&["owned", "--json"]).expect(0).json();
    assert_eq!(owned[0]["origin"], "created", "{owned}");
}

// case: O-05
#[test]
fn a_log_removed_under_a_running_host_costs_nothing_also_when_it_is_killed_afterwards() {
    let mut sandbox = declared(Sandbox::empty());
    let (started, before) = (pid(&sandbox), status(&sandbox));
    for name in ["store.db-wal", "store.db-shm"] {
        std::fs::remove_file(sandbox.machine(STATE).join(name)).unwrap();
    }
    sandbox.wait("the store is opened anew", |s| said(s, "the store is opened anew") == 1);
    drift(&sandbox);
    sandbox.wait("it goes on", is_repaired);
    assert_eq!(pid(&sandbox), started);
    sandbox.kill_host();
    sandbox.start_host();
    let after = status(&sandbox);
    assert_eq!((&after["store_id"], &after["owned"]), (&before["store_id"], &before["owned"]));
    let owned = sandbox.host(&["owned", "--json"]).expect(0).json();
    assert_eq!(owned[0]["origin"], "created", "{owned}");
}

// rule: H-11
#[test]
fn a_store_damaged_under_a_running_host_is_kept_aside_and_begun_anew_in_the_same_process() {
    let sandbox = declared(Sandbox::empty());
    let started = pid(&sandbox);
    let store = sandbox.machine(STATE).join("store.db");
    // In place, as a failing disk or a careless copy would: the inode stays.
    let length = std::fs::metadata(&store).unwrap().len();
    let file = std::fs::File::options().write(true).open(&store).unwrap();
    file.set_len(0).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &vec![0xA5; usize::try_from(length).unwrap()], 0)
        .unwrap();
    drift(&sandbox);
    sandbox.wait("it is kept aside", |s| damaged(s).len() == 1);
    sandbox.wait("it is declared anew and holds on", |s| {
        let ran = s.host(&["status", "--json"]);
        is_repaired(s) && ran.code == 0 && ran.json()["revision"]["number"] == 1
    });
    sandbox.wait("the loss is told upward", |s| s.events().iter().any(|event| event["kind"] == "store_lost"));
    assert_eq!((pid(&sandbox), said(&sandbox, "the store is opened anew")), (started, 1));
}

// case: O-70
#[test]
fn another_file_in_the_place_of_the_store_stops_changes_by_name_until_it_is_moved_away() {
    let sandbox = declared(Sandbox::empty());
    let store = sandbox.machine(STATE).join("store.db");
    std::fs::rename(&store, sandbox.machine(STATE).join("away.db")).unwrap();
    std::fs::write(&store, "somebody's").unwrap();
    drift(&sandbox);
    sandbox.wait("it is said here", |s| status(s)["last"]["refused"]["code"] == "store_replaced");
    sandbox.wait("and upward", |s| s.node()["report"]["refused"]["code"] == "store_replaced");
    assert!(!is_repaired(&sandbox));
    assert_eq!(std::fs::read(&store).unwrap(), b"somebody's");
    std::fs::remove_file(&store).unwrap();
    sandbox.wait("the host puts its own back and goes on", is_repaired);
}

// case: O-67
#[test]
fn a_second_host_is_refused_with_the_first_ones_pid_and_harms_nothing() {
    let sandbox = declared(Sandbox::empty());
    let (code, words) = refused(sandbox.host(&["run", "--json"]));
    assert_eq!(code, "store_locked");
    assert!(words.contains(&format!("process {}", pid(&sandbox))), "{words}");
    drift(&sandbox);
    sandbox.wait("the first holds on", is_repaired);
}

/// Spoils the key file in one way.
fn spoil(key: &Path, good: &[u8], how: &str) {
    std::fs::remove_file(key).unwrap();
    match how {
        "empty" => std::fs::write(key, "").unwrap(),
        "cut short" => std::fs::write(key, &good[..40]).unwrap(),
        "zeros" => std::fs::write(key, vec![0; good.len()]).unwrap(),
        "a directory" => std::fs::create_dir(key).unwrap(),
        "a link" => symlink("/etc/hostname", key).unwrap(),
        "gone" => {}
        other => panic!("{other}"),
    }
}

fn put_right(key: &Path, good: &[u8]) {
    let _ = std::fs::remove_file(key);
    let _ = std::fs::remove_dir(key);
    std::fs::write(key, good).unwrap();
    std::fs::set_permissions(key, Permissions::from_mode(0o600)).unwrap();
}

// case: O-06
#[test]
fn a_credential_that_cannot_be_read_is_said_and_the_host_holds_on_until_it_is_reinvited() {
    let mut sandbox = declared(Sandbox::empty());
    let key = sandbox.machine(STATE).join("node.key");
    let good = std::fs::read(&key).unwrap();
    for how in ["empty", "cut short", "zeros", "a directory", "a link", "gone"] {
        sandbox.kill_host();
        spoil(&key, &good, how);
        drift(&sandbox);
        sandbox.start_host();
        sandbox.wait("it holds on", is_repaired);
        sandbox.wait("the link says why it is down", |s| {
            status(s)["link"]["down"]["reason"]["code"] == "credential_unreadable"
        });
        let now = status(&sandbox);
        assert_eq!(now["machine_state"], "disconnected", "{how}");
        assert_eq!(now["identity"]["node"], "edge-1", "{how}");
        assert_eq!(now["credential"]["code"], "credential_unreadable", "{how}: {now}");
        assert!(now["credential"]["do"].as_str().unwrap().contains("`tenure reinvite edge-1`"), "{now}");
        assert_eq!(said(&sandbox, "enrolled node="), 1, "{how}: no new identity was made");
        assert!(!key.is_file() || std::fs::read(&key).unwrap() != good);
        if how != "gone" {
            sandbox.kill_host();
            put_right(&key, &good);
            sandbox.start_host();
            sandbox.wait("the old key is as good as before", |s| !s.node()["session"].is_null());
            assert!(status(&sandbox)["credential"].is_null());
        }
    }
    let token = sandbox.tenure(&["reinvite", "edge-1"]).expect(0).out.trim().to_owned();
    sandbox.redeem(&token).expect(0);
    sandbox.wait("it is back", |s| status(s)["machine_state"] == "enrolled");
    assert!(status(&sandbox)["credential"].is_null());
    assert_eq!(status(&sandbox)["owned"], 1);
}

// rule: H-01
// case: O-70
#[test]
fn rescue_commands_say_what_is_true_with_the_host_running_stopped_and_never_run() {
    let never = Sandbox::empty();
    for command in ["status", "owned", "held", "apply"] {
        assert_eq!(refused(never.host(&[command, "--json"])).0, "store_absent", "{command}");
    }
    assert_eq!(refused(never.host(&["plan", "--json"])).0, "nothing_declared");
    let mut sandbox = declared(Sandbox::empty());
    for runs in [true, false] {
        if !runs {
            stop_host(&mut sandbox);
        }
        let words = sandbox.host(&["status"]).expect(0).out;
        assert_eq!(words.contains("no host runs here"), !runs, "{words}");
        assert_eq!(status(&sandbox)["owned"], 1);
        assert_eq!(sandbox.host(&["owned", "--json"]).expect(0).json()[0]["key"], "file:/a.txt");
        assert_eq!(sandbox.host(&["held", "--json"]).expect(0).json(), serde_json::json!([]));
        assert_eq!(sandbox.host(&["plan", "--json"]).expect(0).json()["lines"][0]["what"], "keep");
        drift(&sandbox);
        sandbox.host(&["apply"]).expect(0);
        assert!(is_repaired(&sandbox));
    }
}

#[test]
fn what_is_held_is_listed_at_the_machine_itself() {
    let mut sandbox = Sandbox::empty();
    std::fs::write(sandbox.machine("/a.txt"), "was here before").unwrap();
    sandbox.start_control();
    sandbox.start_host();
    sandbox.enrol("edge-1", &["--adopted"]);
    sandbox.wait_for_state("edge-1", "ready");
    sandbox.module(MODULE);
    sandbox.declare(&[]).expect(0);
    let held = |s: &Sandbox| s.host(&["held", "--json"]).expect(0).json();
    tenure_tests::wait::until_true("it is listed", SOON, || held(&sandbox)[0]["key"] == "file:/a.txt");
    stop_host(&mut sandbox);
    assert_eq!(held(&sandbox)[0]["outcome"], "held");
    let words = sandbox.host(&["held"]).expect(0).out;
    assert!(words.contains("file:/a.txt") && words.contains("web"), "{words}");
}
