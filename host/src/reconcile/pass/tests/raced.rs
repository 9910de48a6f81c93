//! A user who owns the folder in which things are declared, and changes it under the host as fast as he can (S-12).
//! He is real: threads with a user of their own for every access to files, without the capabilities of root.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::chown;
use std::sync::atomic::AtomicU64;

use nix::unistd::{Gid, Uid, setfsgid, setfsuid};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::*;

const USER: u32 = 65_534;
const SECRET: &str = "what nobody but root may read";
const PASSES: usize = 100;

/// A root with files of its own that nobody declared, and a folder of the user's.
fn machine() -> Option<Machine> {
    if !is_root() {
        eprintln!("skipped: a user of his own needs root");
        return None;
    }
    // In memory where there is one, so that syncing does not leave the user less time.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let ground = Ground::new(folder.path().join("root"), false);
    std::fs::create_dir(ground.root()).unwrap();
    let machine = Machine::on(folder, ground);
    for place in ["/etc/closed", "/etc/dir", "/srv/home/app", "/srv/home/sub"] {
        std::fs::create_dir_all(machine.at(place)).unwrap();
    }
    for file in ["/etc/closed/shadow", "/etc/dir/conf", "/etc/dir/gone", "/etc/dir/file"] {
        machine.write(file, SECRET);
        std::fs::set_permissions(machine.at(file), std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    std::fs::create_dir(machine.at("/etc/dir/made")).unwrap();
    std::fs::set_permissions(machine.at("/etc/dir/made"), std::fs::Permissions::from_mode(0o700)).unwrap();
    for place in ["/srv/home", "/srv/home/app", "/srv/home/sub"] {
        chown(machine.at(place), Some(USER), Some(USER)).unwrap();
    }
    Some(machine)
}

/// Mode, owner and group of something, when it was last written, and what is in it.
type Fact = (u32, u32, u32, i64, i64, Vec<u8>);

fn everything(folder: &Path) -> BTreeMap<PathBuf, Fact> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let (path, stat) = (entry.path(), entry.metadata().unwrap());
            let content = if stat.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
            if stat.is_dir() {
                folders.push(path.clone());
            }
            let standing = (stat.mode(), stat.uid(), stat.gid(), stat.mtime(), stat.mtime_nsec(), content);
            all.insert(path, standing);
        }
    }
    all
}

/// Names in his folder by which root's own file is reached, as if links to what one does not own were allowed here.
fn stock(machine: &Machine) {
    for number in 0..8 {
        let name = machine.at(&format!("/srv/home/stock{number}"));
        drop(std::fs::hard_link(machine.at("/etc/closed/shadow"), name));
    }
}

/// From here on the thread is the user's.
fn become_the_user(machine: &Machine) {
    setfsgid(Gid::from_raw(USER));
    setfsuid(Uid::from_raw(USER));
    let read = std::fs::read(machine.at("/etc/closed/shadow")).map_err(|error| error.kind());
    assert_eq!(read, Err(std::io::ErrorKind::PermissionDenied), "he would prove nothing");
}

/// Numbers that look drawn by lot and are the same in every run.
struct Lot(u64);

impl Lot {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % most
    }
}

/// One trick, by lot. Most of what he tries fails: then he tries something else.
fn trick(machine: &Machine, lot: &mut Lot) {
    let home = machine.at("/srv/home");
    let names = ["file", "app/conf", "once", "app/gone", "app/made", "sub/deep", "open"];
    let name = home.join(names[lot.below(names.len())]);
    let targets = ["/etc/closed/shadow", "/etc/dir/conf", "/etc/dir/made", "/etc/dir", "/etc/none"];
    let target = machine.at(targets[lot.below(targets.len())]);
    let bait = home.join(format!("bait{}", lot.below(4)));
    let exchange = |a: &Path, b: &Path| {
        let _ = renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE);
    };
    match lot.below(9) {
        0 => {
            drop(std::fs::remove_file(&bait).or_else(|_| std::fs::remove_dir(&bait)));
            drop(symlink(&target, &bait));
            exchange(&bait, &name);
        }
        1 => {
            drop(std::fs::remove_file(&bait));
            let _ = nix::unistd::mkfifo(&bait, nix::sys::stat::Mode::from_bits_truncate(0o644));
            exchange(&bait, &name);
        }
        2 => exchange(&home.join(format!("stock{}", lot.below(8))), &name),
        3 => drop(std::fs::remove_file(&name).or_else(|_| std::fs::remove_dir(&name))),
        4 => drop(write(&name, "his")),
        5 => drop(std::fs::create_dir(&name)),
        6 => {
            // A whole folder for a link to root's.
            let (way, link) = (home.join(["app", "sub"][lot.below(2)]), home.join("way"));
            drop(symlink(machine.at("/etc/dir"), &link));
            exchange(&link, &way);
            exchange(&link, &way);
            drop(std::fs::remove_file(&link));
        }
        _ => at_temporaries(&home, &target, lot),
    }
}

/// Waits for nobody at the other end of a pipe.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = nix::libc::O_NONBLOCK;
    let mut open = std::fs::OpenOptions::new();
    open.write(true).create(true).truncate(true).custom_flags(flags).open(path)?.write_all(text.as_bytes())
}

/// What the host writes beside its place is taken away, moved, or has something else put under its name.
fn at_temporaries(home: &Path, target: &Path, lot: &mut Lot) {
    for folder in [home.to_owned(), home.join("app"), home.join("sub")] {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            if !entry.file_name().to_string_lossy().starts_with(".tenure-") {
                continue;
            }
            let moved = home.join(format!("taken{}", lot.below(4)));
            drop(std::fs::rename(entry.path(), &moved));
            match lot.below(4) {
                0 => drop(symlink(target, entry.path())),
                1 => drop(std::fs::rename(home.join(format!("stock{}", lot.below(8))), entry.path())),
                2 => drop(write(&entry.path(), "his")),
                _ => {}
            }
        }
    }
}

fn declare(machine: &mut Machine, round: usize) {
    let text = format!("declared {}", round % 3);
    for path in ["/srv/home/file", "/srv/home/app/conf", "/srv/home/sub/deep"] {
        machine.file_with(
            path,
            &text,
            serde_json::json!({ "mode": "0640", "replace_link": path.ends_with("file") }),
        );
    }
    // To him: whatever of root's he can bring here must not become his by it.
    let his = serde_json::json!({ "create_once": true, "owner": "65534", "group": "65534", "mode": "0600" });
    machine.file_with("/srv/home/once", &text, his);
    machine.file_with("/srv/home/open", &text, serde_json::json!({ "owner": "65534", "mode": "0666" }));
    machine.absent("file", "/srv/home/app/gone");
    let mode = if round.is_multiple_of(40) { "0755" } else { "0777" };
    let made = serde_json::json!({
        "path": "/srv/home/app/made", "mode": mode, "owner": "65534", "group": "65534"
    });
    machine.entry("directory", made, &[]);
}

/// Everything that may become of what lies in somebody else's hands; each says what happened.
const NAMED: [&str; 15] = [
    "path_is_link",
    "link_not_followed",
    "path_is_directory",
    "path_is_file",
    "not_a_regular_file",
    "not_a_directory",
    "parent_missing",
    "parent_not_a_directory",
    "changed_meanwhile",
    "could_not_look",
    "not_as_written",
    "not_given_away",
    "not_empty",
    "same_place",
    "cannot_carry",
];

/// Ends his tricks, also where the pass panics: else nobody would.
pub(super) struct End<'a>(pub(super) &'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

// rule: S-12
// rule: H-10
#[test]
fn whoever_owns_the_folder_and_changes_it_under_the_host_reaches_nothing_outside_it() {
    let Some(mut machine) = machine() else { return };
    let before = everything(&machine.at("/etc"));
    machine.file("/srv/elsewhere", "root's own");
    let (end, tricks, mut codes) = (AtomicBool::new(false), AtomicU64::new(0), BTreeSet::new());
    for round in 0..PASSES {
        if round.is_multiple_of(20) {
            declare(&mut machine, round);
        }
        stock(&machine);
        end.store(false, Ordering::Relaxed);
        let done = std::thread::scope(|scope| {
            for seed in 1..=2_u64 {
                let (machine, end, tricks) = (&machine, &end, &tricks);
                scope.spawn(move || {
                    become_the_user(machine);
                    let mut lot = Lot(seed.wrapping_mul(0x9e37_79b9) + u64::try_from(round).unwrap());
                    while !end.load(Ordering::Relaxed) {
                        trick(machine, &mut lot);
                        tricks.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            let _end = End(&end);
            // Nobody foresees what he does meanwhile.
            machine.pass_unforeseen()
        });
        assert!(line(&done, "file:/srv/elsewhere").outcome.is_as_declared(), "{done:#?}");
        for line in done.outcomes.iter().filter(|line| !line.outcome.is_as_declared()) {
            let code = line.code.clone().unwrap_or_default();
            assert!(NAMED.contains(&code.as_str()), "it has no name of its own: {line:?}");
            codes.insert(code);
        }
        assert_eq!(everything(&machine.at("/etc")), before, "after {tricks:?} tricks");
        assert_nothing_leaked(&machine);
    }
    assert!(codes.len() > 4, "he had hardly a turn: {codes:?} after {tricks:?} tricks");
}

/// Nothing in his folder says what only root's own file says, but the names of that file itself.
fn assert_nothing_leaked(machine: &Machine) {
    let closed = machine.at("/etc/closed/shadow").metadata().unwrap();
    for (path, (.., content)) in everything(&machine.at("/srv/home")) {
        let own = path.symlink_metadata().is_ok_and(|stat| stat.ino() == closed.ino());
        assert!(own || content != SECRET.as_bytes(), "{} has it", path.display());
    }
}

// rule: S-12
#[test]
fn a_writer_that_takes_paths_as_they_are_is_led_out_of_the_folder_by_the_same_user() {
    let Some(machine) = machine() else { return };
    let before = everything(&machine.at("/etc"));
    let end = AtomicBool::new(false);
    let led_astray = std::thread::scope(|scope| {
        scope.spawn(|| {
            become_the_user(&machine);
            let mut lot = Lot(7);
            while !end.load(Ordering::Relaxed) {
                trick(&machine, &mut lot);
            }
        });
        let conf = machine.at("/srv/home/app/conf");
        let astray = (0..200_000).any(|_| {
            // As a careless program would: look that it is no link, then write.
            if conf.symlink_metadata().is_ok_and(|stat| stat.is_file()) {
                drop(write(&conf, "declared"));
            }
            std::fs::read(machine.at("/etc/dir/conf")).is_ok_and(|now| now != SECRET.as_bytes())
        });
        end.store(true, Ordering::Relaxed);
        astray
    });
    assert!(led_astray && everything(&machine.at("/etc")) != before, "the tricks are none");
}
