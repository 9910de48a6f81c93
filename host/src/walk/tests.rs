//! Every trick by which a path could lead somewhere else (S-12).

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use super::carry::Attributes;
use super::change::{ChangeError, Fresh, temporary};
use super::read::Found;
use super::*;

/// A tree in which `/home` is another user's. Without root nobody else can own anything, so there it is made writable
/// by everybody, which counts the same.
struct Tree {
    _folder: tempfile::TempDir,
    ground: Ground,
    own: Own,
}

fn is_root() -> bool {
    geteuid().is_root()
}

impl Tree {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ground = Ground::new(folder.path().join("root"), !is_root());
        for place in ["etc", "home/user", "srv/real", "tmp"] {
            std::fs::create_dir_all(ground.root().join(place)).unwrap();
        }
        open_to_all(&ground.at("/tmp"));
        give(&ground.at("/home/user"));
        Self { _folder: folder, own: Own::look(&ground), ground }
    }

    fn walker(&self) -> Walker<'_> {
        Walker::new(&self.ground, &self.own).unwrap()
    }

    fn at(&self, path: &str) -> std::path::PathBuf {
        self.ground.at(path)
    }

    /// Where walking to the directory of `path` ends up.
    fn reaches(&self, path: &str) -> Result<(u64, u64), WalkError> {
        let path = DeclaredPath::new(path).unwrap();
        let (dir, _) = self.walker().parent(&path)?;
        Ok((dir.inode().dev, dir.inode().ino))
    }

    fn dir(&self, path: &str) -> Arc<Dir> {
        let path = DeclaredPath::new(&format!("{path}/x")).unwrap();
        self.walker().parent(&path).unwrap().0
    }
}

fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o1777)).unwrap();
}

fn give(path: &Path) {
    if is_root() { chown(path, Some(1234), Some(1234)).unwrap() } else { open_to_all(path) }
}

fn id(path: &Path) -> (u64, u64) {
    let stat = path.metadata().unwrap();
    (stat.dev(), stat.ino())
}

// rule: S-12
#[test]
fn a_link_of_roots_among_roots_directories_is_followed_and_never_out_of_the_root() {
    let tree = Tree::new();
    symlink("/srv/real", tree.at("/etc/absolute")).unwrap();
    symlink("../srv/real", tree.at("/etc/relative")).unwrap();
    symlink("../../../../../../../../srv/./real//", tree.at("/etc/far")).unwrap();
    symlink("/etc/absolute", tree.at("/etc/twice")).unwrap();
    for path in ["/etc/absolute/f", "/etc/relative/f", "/etc/far/f", "/etc/twice/f"] {
        assert_eq!(tree.reaches(path), Ok(id(&tree.at("/srv/real"))), "{path}");
    }
    symlink("/", tree.at("/etc/top")).unwrap();
    symlink("..", tree.at("/etc/up")).unwrap();
    symlink("../..", tree.at("/etc/upper")).unwrap();
    for path in ["/etc/top/f", "/etc/up/f", "/etc/upper/f"] {
        assert_eq!(tree.reaches(path), Ok(id(tree.ground.root())), "{path}");
    }
}

// rule: S-12
#[test]
fn below_a_directory_that_somebody_else_owns_or_can_write_no_link_is_followed() {
    let tree = Tree::new();
    std::fs::create_dir(tree.at("/home/user/dir")).unwrap();
    std::fs::create_dir(tree.at("/tmp/dir")).unwrap();
    for place in ["/home/user/link", "/home/user/dir/link", "/tmp/link", "/tmp/dir/link"] {
        symlink("/etc", tree.at(place)).unwrap();
        let reached = tree.reaches(&format!("{place}/passwd"));
        assert!(matches!(reached, Err(WalkError::Link { .. })), "{place}: {reached:?}");
    }
    // A real directory is walked, whoever owns it.
    assert_eq!(tree.reaches("/home/user/dir/f"), Ok(id(&tree.at("/home/user/dir"))));
    // A link of root's may lead there, and there it ends.
    symlink("/home/user", tree.at("/etc/user")).unwrap();
    assert_eq!(tree.reaches("/etc/user/f"), Ok(id(&tree.at("/home/user"))));
    assert!(matches!(tree.reaches("/etc/user/link/f"), Err(WalkError::Link { .. })));
    // Also when the detour lies inside the link.
    symlink("/home/user/link/x", tree.at("/etc/detour")).unwrap();
    assert!(matches!(tree.reaches("/etc/detour/f"), Err(WalkError::Link { .. })));
}

// rule: S-12
#[test]
fn a_link_that_somebody_else_owns_is_not_followed_even_in_a_directory_of_roots() {
    if !is_root() {
        eprintln!("skipped: giving a link away needs root");
        return;
    }
    let tree = Tree::new();
    symlink("/srv/real", tree.at("/etc/given")).unwrap();
    std::os::unix::fs::lchown(tree.at("/etc/given"), Some(1234), None).unwrap();
    assert!(matches!(tree.reaches("/etc/given/f"), Err(WalkError::Link { .. })));
    // A group that may write is somebody else, even root's: an access list hides behind it.
    std::fs::set_permissions(tree.at("/srv"), std::fs::Permissions::from_mode(0o775)).unwrap();
    symlink("/etc", tree.at("/srv/link")).unwrap();
    assert!(matches!(tree.reaches("/srv/link/f"), Err(WalkError::Link { .. })));
}

#[test]
fn links_without_end_and_things_that_are_no_directory_are_named() {
    let tree = Tree::new();
    symlink("/etc/b", tree.at("/etc/a")).unwrap();
    symlink("/etc/a", tree.at("/etc/b")).unwrap();
    assert!(matches!(tree.reaches("/etc/a/f"), Err(WalkError::TooManyLinks { .. })));
    std::fs::write(tree.at("/etc/file"), "").unwrap();
    assert_eq!(tree.reaches("/etc/file/f"), Err(WalkError::NotADirectory { at: "/etc/file".to_owned() }));
    assert_eq!(tree.reaches("/etc/none/f"), Err(WalkError::Missing { at: "/etc/none".to_owned() }));
    nix::unistd::mkfifo(&tree.at("/etc/pipe"), Mode::S_IRUSR).unwrap();
    assert!(matches!(tree.reaches("/etc/pipe/f"), Err(WalkError::NotADirectory { .. })));
}

// rule: S-12
#[test]
fn a_device_a_pipe_a_link_at_the_path_are_seen_and_never_opened() {
    let tree = Tree::new();
    let dir = tree.dir("/etc");
    nix::unistd::mkfifo(&tree.at("/etc/pipe"), Mode::S_IRUSR).unwrap();
    symlink("/etc/passwd", tree.at("/etc/link")).unwrap();
    assert_eq!(dir.look("pipe"), Ok(Found::Other { what: "a named pipe" }));
    assert_eq!(dir.look("link"), Ok(Found::Link { to: "/etc/passwd".to_owned() }));
    assert_eq!(dir.look("none"), Ok(Found::Nothing));
    assert!(dir.open_file("link").is_err());
    // Nobody holds the pipe's other end: this must come back.
    assert!(dir.open_file("pipe").is_err());
    if is_root() {
        let device = nix::sys::stat::makedev(1, 3);
        nix::sys::stat::mknod(&tree.at("/etc/null"), SFlag::S_IFCHR, Mode::S_IRUSR, device).unwrap();
        assert_eq!(dir.look("null"), Ok(Found::Other { what: "a device" }));
        assert!(dir.open_file("null").is_err());
    }
}

// rule: S-12
#[test]
fn a_parent_that_is_swapped_for_a_link_meanwhile_leads_nowhere_else() {
    let tree = Tree::new();
    std::fs::create_dir(tree.at("/home/user/app")).unwrap();
    let dir = tree.dir("/home/user/app");
    let fresh =
        Fresh::file(&dir, &temporary().unwrap(), 0o644, None, &Attributes::default(), &mut |_| Ok(()))
            .unwrap();
    // The user moves it away and puts a link to /etc in its place.
    std::fs::rename(tree.at("/home/user/app"), tree.at("/home/user/moved")).unwrap();
    symlink("/etc", tree.at("/home/user/app")).unwrap();
    fresh.create("passwd").unwrap();
    assert!(!tree.at("/etc/passwd").exists());
    assert!(tree.at("/home/user/moved/passwd").exists());
    // And whoever looks again, by a fresh walk, sees that it is not where it was declared.
    assert!(matches!(tree.reaches("/home/user/app/passwd"), Err(WalkError::Link { .. })));
}

// rule: S-12
#[test]
fn nothing_that_appeared_or_changed_since_it_was_seen_is_replaced_or_removed() {
    let tree = Tree::new();
    let dir = tree.dir("/etc");
    let make = || {
        Fresh::file(&dir, &temporary().unwrap(), 0o644, None, &Attributes::default(), &mut |_| Ok(()))
            .unwrap()
    };
    symlink("/nowhere", tree.at("/etc/appeared")).unwrap();
    assert!(matches!(make().create("appeared"), Err(ChangeError::Appeared)));
    assert!(tree.at("/etc/appeared").is_symlink());
    std::fs::write(tree.at("/etc/file"), "seen").unwrap();
    let Ok(Found::File(seen)) = dir.look("file") else { panic!() };
    std::fs::write(tree.at("/etc/file"), "changed").unwrap();
    assert!(matches!(make().replace("file", &seen), Err(ChangeError::Meanwhile)));
    assert!(matches!(dir.remove_file("file", &seen), Err(ChangeError::Meanwhile)));
    std::fs::remove_file(tree.at("/etc/file")).unwrap();
    symlink("/srv/real", tree.at("/etc/file")).unwrap();
    assert!(matches!(make().replace("file", &seen), Err(ChangeError::Meanwhile)));
    assert!(matches!(dir.set_file("file", &seen, 0o600, None), Err(ChangeError::Meanwhile)));
    assert!(matches!(dir.set_directory("file", &seen, false, 0o700, None), Err(ChangeError::Meanwhile)));
    assert_eq!(std::fs::read_dir(tree.at("/etc")).unwrap().count(), 2);
}

// rule: S-12
#[test]
fn a_file_that_got_another_name_is_not_altered_where_it_lies() {
    let tree = Tree::new();
    std::fs::write(tree.at("/etc/file"), "x").unwrap();
    let dir = tree.dir("/etc");
    let Ok(Found::File(seen)) = dir.look("file") else { panic!() };
    std::fs::hard_link(tree.at("/etc/file"), tree.at("/etc/other")).unwrap();
    assert!(matches!(dir.set_file("file", &seen, 0o600, None), Err(ChangeError::Meanwhile)));
    assert_ne!(tree.at("/etc/other").metadata().unwrap().mode() & 0o7777, 0o600);
}

#[test]
fn owner_and_mode_are_those_declared_also_with_the_bits_a_change_of_owner_takes_away() {
    if !is_root() {
        eprintln!("skipped: giving files away needs root");
        return;
    }
    let tree = Tree::new();
    let dir = tree.dir("/etc");
    let name = temporary().unwrap();
    let fresh =
        Fresh::file(&dir, &name, 0o4755, Some((12, 34)), &Attributes::default(), &mut |_| Ok(())).unwrap();
    fresh.create("tool").unwrap();
    let stat = tree.at("/etc/tool").metadata().unwrap();
    assert_eq!((stat.mode() & 0o7777, stat.uid(), stat.gid(), stat.nlink()), (0o4755, 12, 34, 1));
}

// rule: H-02
#[test]
fn links_without_end_lead_to_nothing_of_the_hosts() {
    let tree = Tree::new();
    symlink("itself", tree.at("/etc/itself")).unwrap();
    symlink("there", tree.at("/etc/back")).unwrap();
    symlink("/etc/back", tree.at("/etc/there")).unwrap();
    std::fs::create_dir_all(tree.at("/usr/bin")).unwrap();
    symlink("/usr/bin/tenure-host", tree.at("/etc/ours")).unwrap();
    let leads = |name| tree.walker().leads_to_ours(&tree.dir("/etc"), name);
    assert!(!leads("itself") && !leads("back"));
    assert!(leads("ours"));
}

// rule: S-12
#[test]
fn a_directory_that_was_empty_is_not_given_away_with_what_came_into_it_since() {
    let tree = Tree::new();
    std::fs::create_dir(tree.at("/home/user/new")).unwrap();
    let dir = tree.dir("/home/user");
    let Ok(Found::Directory(seen)) = dir.look("new") else { panic!("it is there") };
    assert!(dir.has_nothing_in("new", &seen).unwrap());
    std::fs::write(tree.at("/home/user/new/secret"), "x").unwrap();
    assert!(!dir.has_nothing_in("new", &seen).unwrap());
    let set = dir.set_directory("new", &seen, true, 0o777, None);
    assert!(matches!(set, Err(ChangeError::Meanwhile)), "{set:?}");
    assert_eq!(tree.at("/home/user/new").metadata().unwrap().mode() & 0o777, seen.mode);
    dir.set_directory("new", &seen, false, 0o777, None).unwrap();
}

// rule: S-12
#[test]
fn who_else_can_put_things_into_a_directory_is_named_with_where() {
    let tree = Tree::new();
    std::fs::create_dir(tree.at("/tmp/below")).unwrap();
    let who = |path| tree.walker().who_else(&tree.dir(path));
    assert_eq!(who("/etc"), None);
    assert_eq!(who("/tmp/below").as_deref(), Some("anybody can write /tmp"));
    std::fs::set_permissions(tree.at("/srv/real"), std::fs::Permissions::from_mode(0o775)).unwrap();
    assert!(who("/srv/real").is_some_and(|who| who.starts_with("the group ")));
    if is_root() {
        assert_eq!(who("/home/user").as_deref(), Some("/home/user is of the user 1234"));
    }
}
