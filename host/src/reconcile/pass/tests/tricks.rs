//! What a user who owns the folder can lay there before the host comes (S-12), one trick a row: what it is, how the host
//! ends with it, and that he has nothing by it that he had not before. What he does meanwhile is in `raced`.

use std::os::unix::fs::{FileTypeExt, chown};

use super::raced::End;
use super::*;

const USER: u32 = 1234;
const SECRET: &str = "what nobody but root may read";
const HOME: &str = "/srv/home";

fn machine() -> Option<Machine> {
    if !is_root() {
        eprintln!("skipped: a user of his own needs root");
        return None;
    }
    let machine = Machine::new();
    std::fs::create_dir(machine.at(HOME)).unwrap();
    chown(machine.at(HOME), Some(USER), Some(USER)).unwrap();
    std::fs::create_dir_all(machine.at("/etc/closed")).unwrap();
    roots(&machine, "/etc/shadow", 0o600);
    Some(machine)
}

/// A file of root's.
fn roots(machine: &Machine, path: &str, mode: u32) {
    machine.write(path, SECRET);
    chown(machine.at(path), Some(0), Some(0)).unwrap();
    std::fs::set_permissions(machine.at(path), std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A folder of root's that only root may enter, with a file in it that anybody could read who came so far.
fn roots_folder(machine: &Machine, path: &str) {
    std::fs::create_dir(machine.at(path)).unwrap();
    chown(machine.at(path), Some(0), Some(0)).unwrap();
    roots(machine, &format!("{path}/open"), 0o644);
    std::fs::set_permissions(machine.at(path), std::fs::Permissions::from_mode(0o700)).unwrap();
}

fn his(machine: &Machine, path: &str) {
    std::os::unix::fs::lchown(machine.at(path), Some(USER), Some(USER)).unwrap();
}

type Lay = fn(&Machine, &str);

/// A trick, what is declared at the path, and how the host ends with it: as declared where there is no code.
struct Trick {
    what: &'static str,
    lay: Lay,
    declared: fn(&mut Machine, &str),
    ends: Option<&'static str>,
}

fn closed(machine: &mut Machine, path: &str) {
    machine.file_with(path, "declared", serde_json::json!({ "mode": "0600" }));
}

fn open(machine: &mut Machine, path: &str) {
    machine.file(path, "declared");
}

/// To him, or open to all: what of root's lies there must not become so.
fn once(machine: &mut Machine, path: &str) {
    machine.file_with(path, "declared", serde_json::json!({ "create_once": true }));
}

fn once_his(machine: &mut Machine, path: &str) {
    let more = serde_json::json!({ "create_once": true, "owner": "1234", "group": "1234", "mode": "0600" });
    machine.file_with(path, "declared", more);
}

fn folder(machine: &mut Machine, path: &str) {
    machine.directory(path, "0755");
}

fn folder_of_his(machine: &mut Machine, path: &str) {
    let spec = serde_json::json!({ "path": path, "mode": "0700", "owner": "1234", "group": "1234" });
    machine.entry("directory", spec, &[]);
}

fn gone(machine: &mut Machine, path: &str) {
    machine.absent("file", path);
}

const TRICKS: [Trick; 24] = [
    Trick {
        what: "a link to a file of root's",
        lay: |m, path| symlink("/etc/shadow", m.at(path)).unwrap(),
        declared: closed,
        ends: Some("path_is_link"),
    },
    Trick {
        what: "a link to a file of root's that is to be gone",
        lay: |m, path| symlink("/etc/shadow", m.at(path)).unwrap(),
        declared: gone,
        ends: Some("path_is_link"),
    },
    Trick {
        what: "a link to a folder of root's",
        lay: |m, path| symlink("/etc/closed", m.at(path)).unwrap(),
        declared: folder,
        ends: Some("path_is_link"),
    },
    Trick {
        what: "a link that is declared to be replaced",
        lay: |m, path| symlink("/etc/shadow", m.at(path)).unwrap(),
        declared: |m, path| {
            m.file_with(path, "declared", serde_json::json!({ "replace_link": true }));
        },
        ends: None,
    },
    Trick {
        what: "a second name of a file of root's",
        lay: |m, path| std::fs::hard_link(m.at("/etc/shadow"), m.at(path)).unwrap(),
        declared: open,
        ends: None,
    },
    Trick {
        what: "a second name of a file of root's that is written once",
        lay: |m, path| std::fs::hard_link(m.at("/etc/shadow"), m.at(path)).unwrap(),
        declared: once,
        ends: Some("not_given_away"),
    },
    Trick {
        what: "a second name of a file of root's that is written once and his",
        lay: |m, path| std::fs::hard_link(m.at("/etc/shadow"), m.at(path)).unwrap(),
        declared: once_his,
        ends: Some("not_given_away"),
    },
    Trick {
        what: "a file of root's moved to where one that all may read is written once",
        lay: |m, path| roots(m, path, 0o600),
        declared: once,
        ends: Some("not_given_away"),
    },
    Trick {
        what: "a file of root's moved to where one of a group is written once",
        lay: |m, path| roots(m, path, 0o640),
        declared: |m, path| {
            let more = serde_json::json!({ "create_once": true, "group": "1234", "mode": "0640" });
            m.file_with(path, "declared", more);
        },
        ends: Some("not_given_away"),
    },
    Trick {
        what: "a folder of root's moved to where one that all may enter is declared",
        lay: roots_folder,
        declared: folder,
        ends: Some("not_given_away"),
    },
    Trick {
        what: "a folder of root's moved to where one of his is declared",
        lay: roots_folder,
        declared: folder_of_his,
        ends: Some("not_given_away"),
    },
    Trick {
        what: "a folder of another user's moved to where one of his is declared",
        lay: |m, path| {
            roots_folder(m, path);
            chown(m.at(path), Some(4321), Some(4321)).unwrap();
        },
        declared: folder_of_his,
        ends: Some("not_given_away"),
    },
    Trick {
        what: "an empty folder of root's where one of his is declared",
        lay: |m, path| std::fs::create_dir(m.at(path)).unwrap(),
        declared: folder_of_his,
        ends: None,
    },
    Trick {
        what: "an empty folder of root's, closed, where one that all may enter is declared",
        lay: |m, path| {
            std::fs::create_dir(m.at(path)).unwrap();
            std::fs::set_permissions(m.at(path), std::fs::Permissions::from_mode(0o700)).unwrap();
        },
        declared: folder,
        ends: None,
    },
    Trick {
        what: "a folder of his own, open, where one of root's is declared",
        lay: |m, path| {
            std::fs::create_dir(m.at(path)).unwrap();
            his(m, path);
        },
        declared: folder,
        ends: None,
    },
    Trick {
        what: "a folder of his own with the wrong mode",
        lay: |m, path| {
            std::fs::create_dir(m.at(path)).unwrap();
            his(m, path);
        },
        declared: folder_of_his,
        ends: None,
    },
    Trick {
        what: "a pipe nobody reads",
        lay: |m, path| {
            nix::unistd::mkfifo(&m.at(path), nix::sys::stat::Mode::from_bits_truncate(0o666)).unwrap();
        },
        declared: open,
        ends: Some("not_a_regular_file"),
    },
    Trick {
        what: "a socket",
        lay: |m, path| drop(std::os::unix::net::UnixListener::bind(m.at(path)).unwrap()),
        declared: gone,
        ends: Some("not_a_regular_file"),
    },
    Trick {
        what: "a device",
        lay: |m, path| {
            let (kind, mode) =
                (nix::sys::stat::SFlag::S_IFCHR, nix::sys::stat::Mode::from_bits_truncate(0o666));
            nix::sys::stat::mknod(&m.at(path), kind, mode, nix::sys::stat::makedev(1, 3)).unwrap();
        },
        declared: once,
        ends: Some("not_a_regular_file"),
    },
    Trick {
        what: "a folder with something in it",
        lay: |m, path| {
            std::fs::create_dir(m.at(path)).unwrap();
            std::fs::write(m.at(path).join("x"), "x").unwrap();
        },
        declared: open,
        ends: Some("path_is_directory"),
    },
    Trick {
        what: "a file of his, open to all and with what it is declared to have in it",
        lay: |m, path| {
            m.write(path, "declared");
            his(m, path);
            std::fs::set_permissions(m.at(path), std::fs::Permissions::from_mode(0o666)).unwrap();
        },
        declared: closed,
        ends: None,
    },
    Trick {
        what: "a file of his that runs as root once it is root's",
        lay: |m, path| {
            m.write(path, "declared");
            his(m, path);
            std::fs::set_permissions(m.at(path), std::fs::Permissions::from_mode(0o6755)).unwrap();
        },
        declared: open,
        ends: None,
    },
    Trick {
        what: "a file that is larger than any disk",
        lay: |m, path| {
            std::fs::File::create(m.at(path)).unwrap().set_len(1 << 42).unwrap();
            his(m, path);
        },
        declared: closed,
        ends: None,
    },
    Trick {
        what: "a name that is no text beside it, and one as of a temporary",
        lay: |m, _| {
            use std::os::unix::ffi::OsStrExt as _;
            std::fs::write(m.at(HOME).join(std::ffi::OsStr::from_bytes(b"\xff\n")), "x").unwrap();
            symlink("/etc/shadow", m.at(HOME).join(".tenure-aaaaaaaa")).unwrap();
        },
        declared: closed,
        ends: None,
    },
];

/// How his folder is: each makes it one in which not root alone can put things.
const FOLDERS: [(&str, u32, u32); 5] = [
    ("his", USER, 0o755),
    ("his, and hands down its group", USER, 0o2755),
    ("root's, and anybody's to write", 0, 0o777),
    ("root's, anybody's, with the sticky bit", 0, 0o1777),
    ("root's, and its group's", 0, 0o775),
];

// rule: S-12
#[test]
fn whatever_a_user_lays_in_his_folder_he_has_nothing_of_roots_by_it_and_every_trick_has_its_end() {
    for (how, owner, mode) in FOLDERS {
        let Some(mut machine) = machine() else { return };
        chown(machine.at(HOME), Some(owner), Some(USER)).unwrap();
        std::fs::set_permissions(machine.at(HOME), std::fs::Permissions::from_mode(mode)).unwrap();
        for (number, trick) in TRICKS.iter().enumerate() {
            let path = format!("{HOME}/{number}");
            (trick.lay)(&machine, &path);
            (trick.declared)(&mut machine, &path);
        }
        machine.file("/srv/elsewhere", "fine");
        let done = machine.pass();
        for (number, trick) in TRICKS.iter().enumerate() {
            let what = format!("{} in a folder that is {how}", trick.what);
            let ended = done.outcomes.iter().find(|line| line.key.ends_with(&format!("{HOME}/{number}")));
            let ended = ended.unwrap();
            match trick.ends {
                Some(code) => {
                    assert_eq!((ended.outcome, ended.code.as_deref()), (Refused, Some(code)), "{what}")
                }
                None => assert!(ended.outcome.is_as_declared(), "{what}: {ended:?}"),
            }
        }
        assert_eq!(line(&done, "file:/srv/elsewhere").outcome, Applied);
        assert_nothing_is_his(&machine, how);
    }
}

/// What root alone could read nobody else can, by whatever name; no device or program has become more than it was.
fn assert_nothing_is_his(machine: &Machine, how: &str) {
    let shadow = machine.at("/etc/shadow").metadata().unwrap();
    assert_eq!((shadow.mode() & 0o7777, shadow.uid(), shadow.gid()), (0o600, 0, 0), "{how}");
    assert_eq!(machine.read("/etc/shadow"), SECRET, "{how}");
    for entry in std::fs::read_dir(machine.at(HOME)).unwrap().map(Result::unwrap) {
        let (path, stat) = (entry.path(), entry.path().symlink_metadata().unwrap());
        let what = format!("{} in a folder that is {how}: {:o}", path.display(), stat.mode());
        if stat.is_dir() && path.join("open").exists() {
            assert!(stat.mode() & 0o077 == 0 && stat.uid() != USER, "{what}");
        } else if stat.is_file() && stat.len() < 1 << 20 {
            let is_secret = std::fs::read(&path).unwrap() == SECRET.as_bytes();
            let is_his = stat.uid() == USER || stat.gid() == USER && stat.mode() & 0o070 != 0;
            assert!(!is_secret || !is_his && stat.mode() & 0o007 == 0, "{what}");
            assert!(stat.mode() & 0o6000 == 0 || stat.uid() == USER, "{what}");
        }
        assert!(!stat.file_type().is_char_device() || stat.uid() == 0, "{what}");
    }
}

// rule: S-12
#[test]
fn a_folder_of_roots_that_is_put_under_the_name_of_a_new_one_is_not_given_to_him_with_what_is_in_it() {
    use crate::walk::change::{ChangeError, Fresh, temporary};
    let Some(machine) = machine() else { return };
    let own = Own::look(&machine.ground);
    let walker = Walker::new(&machine.ground, &own).unwrap();
    let path = tenure_protocol::path::DeclaredPath::new("/srv/home/new").unwrap();
    let (dir, _) = walker.parent(&path).unwrap();
    roots_folder(&machine, "/srv/home/secret");
    let (ended, mut rounds) = (AtomicBool::new(false), 0);
    let names: Vec<String> = (0..2000).map(|_| temporary().unwrap()).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // He sees each name as it comes, and puts root's folder under it.
            let (home, secret) = (machine.at(HOME), machine.at("/srv/home/secret"));
            while !ended.load(Ordering::Relaxed) {
                let entries = std::fs::read_dir(&home).unwrap().flatten();
                for new in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(".tenure-"))
                {
                    use rustix::fs::{CWD, RenameFlags, renameat_with};
                    let _ = renameat_with(CWD, &secret, CWD, new.path(), RenameFlags::EXCHANGE);
                    let _ = renameat_with(CWD, &secret, CWD, new.path(), RenameFlags::EXCHANGE);
                }
            }
        });
        let _end = End(&ended);
        for name in &names {
            match Fresh::directory(&dir, name, 0o755, Some((USER, USER))) {
                Ok(_) => {}
                Err(ChangeError::Meanwhile | ChangeError::Io { .. }) => rounds += 1,
                Err(other) => panic!("{other:?}"),
            }
        }
    });
    let holds = |entry: &std::fs::DirEntry| entry.path().join("open").exists();
    let entries = std::fs::read_dir(machine.at(HOME)).unwrap().map(Result::unwrap);
    let folder = entries.filter(holds).map(|entry| entry.metadata().unwrap()).next().unwrap();
    assert_eq!((folder.uid(), folder.mode() & 0o777), (0, 0o700), "after {rounds} times that it was noticed");
}

// rule: S-12
#[test]
fn a_file_that_grows_for_ever_while_it_is_read_holds_nobody_up() {
    let Some(mut machine) = machine() else { return };
    machine.file("/srv/home/grows", &"x".repeat(100_000));
    machine.file_with("/srv/home/once", "first", serde_json::json!({ "create_once": true, "mode": "0600" }));
    machine.file("/srv/elsewhere", "fine");
    machine.pass();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for path in ["/srv/home/grows", "/srv/home/once"].map(|path| machine.at(path)) {
            let ended = &ended;
            scope.spawn(move || {
                use std::io::Write as _;
                while !ended.load(Ordering::Relaxed) {
                    let open = std::fs::OpenOptions::new().append(true).open(&path);
                    drop(open.and_then(|mut file| file.write_all(&[b'x'; 4096])));
                }
            });
        }
        let _end = End(&ended);
        for _ in 0..20 {
            let done = machine.pass_unforeseen();
            assert!(line(&done, "file:/srv/elsewhere").outcome.is_as_declared());
            for key in ["file:/srv/home/grows", "file:/srv/home/once"] {
                let (outcome, code) = outcome(&done, key);
                let named =
                    ["changed_meanwhile", "could_not_look", "not_as_written", "drift", "not_given_away"];
                assert!(
                    outcome.is_as_declared() || code.as_deref().is_some_and(|code| named.contains(&code)),
                    "{key}: {outcome:?} {code:?}"
                );
            }
        }
    });
    assert!(machine.is_clean());
}
