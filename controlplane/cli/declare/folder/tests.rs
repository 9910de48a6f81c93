use std::fs;
use std::os::unix::fs::symlink;

use super::*;

fn fleet() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("modules/web")).unwrap();
    fs::write(dir.path().join(FLEET), "[node.a]\n").unwrap();
    fs::write(dir.path().join("modules/web/module.toml"), "[module]\n").unwrap();
    dir
}

fn refusal_of(dir: &Path) -> tenure_protocol::refusal::Refusal {
    gather(dir).unwrap_err().refusal()
}

fn listing(gathered: &Gathered) -> Folder {
    serde_json::from_slice(&gathered.contents[&gathered.listing]).unwrap()
}

#[test]
fn a_folder_is_listed_by_path_with_every_content_by_digest_and_without_git() {
    let dir = fleet();
    fs::create_dir_all(dir.path().join(".git/objects")).unwrap();
    fs::write(dir.path().join(".git/config"), "x").unwrap();
    fs::write(dir.path().join("modules/web/empty"), "").unwrap();
    let gathered = gather(dir.path()).unwrap();
    let folder = listing(&gathered);
    let paths: Vec<&str> = folder.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["fleet.toml", "modules/web/empty", "modules/web/module.toml"]);
    for file in &folder.files {
        assert_eq!(gathered.contents[&file.sha256].len(), usize::try_from(file.size).unwrap());
    }
    assert_eq!(gather(dir.path()).unwrap().listing, gathered.listing, "the same folder has the same digest");
}

#[test]
fn a_folder_without_a_fleet_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let refusal = refusal_of(dir.path());
    assert_eq!(refusal.code, "no_fleet");
    assert_eq!(refusal.happened, format!("there is no fleet.toml in {}", dir.path().display()));
}

#[test]
fn a_link_is_refused_wherever_it_points() {
    for (name, target) in
        [("out", "/etc/passwd"), ("inside", "fleet.toml"), ("dangling", "nowhere"), ("dir", "modules")]
    {
        let dir = fleet();
        symlink(target, dir.path().join(name)).unwrap();
        let refusal = refusal_of(dir.path());
        assert_eq!(
            (refusal.code.as_str(), refusal.happened),
            ("folder_link", format!("{name} is a link to {target}"))
        );
    }
    let dir = fleet();
    fs::rename(dir.path().join(FLEET), dir.path().join("real.toml")).unwrap();
    symlink("real.toml", dir.path().join(FLEET)).unwrap();
    assert_eq!(refusal_of(dir.path()).code, "folder_link");
}

#[test]
fn a_pipe_or_a_socket_is_refused_and_not_waited_for() {
    let dir = fleet();
    nix::unistd::mkfifo(&dir.path().join("modules/p"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let refusal = refusal_of(dir.path());
    assert_eq!(
        (refusal.code.as_str(), refusal.happened.as_str()),
        ("folder_special", "modules/p is a pipe, not a file")
    );
    let dir = fleet();
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("s")).unwrap();
    assert_eq!(refusal_of(dir.path()).happened, "s is a socket, not a file");
}

#[test]
fn a_folder_of_more_bytes_than_a_fleet_may_have_is_refused_by_name() {
    let dir = fleet();
    let large = fs::File::create(dir.path().join("modules/large")).unwrap();
    large.set_len(MOST_BYTES).unwrap();
    let refusal = refusal_of(dir.path());
    assert_eq!(refusal.code, "folder_too_large");
    assert!(
        refusal.happened.starts_with("the files are more than 64 MiB together; the one beyond is "),
        "{}",
        refusal.happened
    );
}

#[test]
fn a_folder_of_more_files_than_a_fleet_may_have_is_refused_by_name() {
    let dir = fleet();
    let walk = |files, folders| {
        let bounds = Bounds { files, folders, bytes: MOST_BYTES, depth: DEPTH };
        walk::files(dir.path(), bounds).map(|files| files.len())
    };
    assert_eq!(walk(2, 3).unwrap(), 2);
    let refused = walk(1, 3).unwrap_err();
    assert_eq!(refused.code(), "folder_too_large");
    assert!(refused.to_string().contains("files; the first beyond is "), "{refused}");
    assert!(walk(2, 2).unwrap_err().to_string().contains("folders; the first beyond is modules"));
}

#[test]
fn a_sparse_file_of_a_terabyte_is_refused_by_its_size_and_not_read() {
    let dir = fleet();
    fs::File::create(dir.path().join("image")).unwrap().set_len(1 << 40).unwrap();
    assert!(refusal_of(dir.path()).happened.ends_with("the one beyond is image"));
}

#[test]
fn a_place_that_is_no_folder_or_may_not_be_looked_into_is_not_called_one_without_a_fleet() {
    let dir = fleet();
    assert!(refusal_of(&dir.path().join("none")).happened.starts_with("there is no folder "));
    assert!(refusal_of(&dir.path().join(FLEET)).happened.ends_with("fleet.toml is a file, not a folder"));
    fs::remove_file(dir.path().join(FLEET)).unwrap();
    fs::create_dir(dir.path().join(FLEET)).unwrap();
    assert!(refusal_of(dir.path()).happened.starts_with("there is no fleet.toml in "));
}

#[test]
fn a_folder_that_is_reached_through_a_link_is_read_and_a_name_of_255_bytes_in_it() {
    let dir = fleet();
    let name = "n".repeat(255);
    fs::write(dir.path().join(&name), "x").unwrap();
    fs::hard_link(dir.path().join(FLEET), dir.path().join("Fleet.toml")).unwrap();
    let link = tempfile::tempdir().unwrap();
    symlink(dir.path(), link.path().join("current")).unwrap();
    let listing = listing(&gather(&link.path().join("current")).unwrap());
    let paths: Vec<&str> = listing.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["Fleet.toml", "fleet.toml", "modules/web/module.toml", &name]);
}

#[test]
fn a_name_with_a_line_break_is_refused_and_one_that_turns_the_line_is_shown_made_harmless() {
    let dir = fleet();
    fs::write(dir.path().join("a\nb"), "").unwrap();
    let refusal = refusal_of(dir.path());
    assert_eq!(
        (refusal.code.as_str(), refusal.happened.as_str()),
        ("folder_name", "the name a\\nb has a control character in it")
    );
    let dir = fleet();
    symlink("x", dir.path().join("a\u{202e}b")).unwrap();
    assert_eq!(refusal_of(dir.path()).happened, "a\\u{202e}b is a link to x");
}

#[test]
fn the_lock_that_an_editor_leaves_beside_a_file_is_no_part_of_the_folder() {
    let dir = fleet();
    symlink("somebody@host.42:1", dir.path().join(".#fleet.toml")).unwrap();
    assert_eq!(gather(dir.path()).unwrap().contents.len(), 3);
}

#[test]
fn a_path_that_is_longer_than_the_control_plane_takes_is_refused_by_name() {
    let dir = fleet();
    let mut at =
        nix::fcntl::open(dir.path(), nix::fcntl::OFlag::O_DIRECTORY, nix::sys::stat::Mode::empty()).unwrap();
    let name = "d".repeat(250);
    for _ in 0..17 {
        nix::sys::stat::mkdirat(&at, name.as_str(), nix::sys::stat::Mode::S_IRWXU).unwrap();
        at = nix::fcntl::openat(
            &at,
            name.as_str(),
            nix::fcntl::OFlag::O_DIRECTORY,
            nix::sys::stat::Mode::empty(),
        )
        .unwrap();
    }
    let refusal = refusal_of(dir.path());
    assert_eq!(refusal.code, "folder_name");
    assert!(refusal.happened.ends_with("is longer than 4096 bytes"), "{refusal:?}");
}

#[test]
fn a_file_that_grows_is_cut_or_exchanged_after_it_was_seen_is_refused() {
    for change in [
        |path: &Path| fs::write(path, "[node.a]\n[node.b]\n").unwrap(),
        |path: &Path| fs::write(path, "").unwrap(),
        |path: &Path| {
            fs::write(path.with_extension("new"), "[node.b]\n").unwrap();
            fs::rename(path.with_extension("new"), path).unwrap();
        },
        |path: &Path| {
            fs::remove_file(path).unwrap();
            symlink("/etc/passwd", path).unwrap();
        },
        |path: &Path| {
            fs::remove_file(path).unwrap();
            nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        },
        |path: &Path| fs::remove_file(path).unwrap(),
    ] {
        let dir = fleet();
        let bounds = Bounds { files: MOST_FILES, folders: MOST_FILES, bytes: MOST_BYTES, depth: DEPTH };
        let seen = walk::look(dir.path(), bounds).unwrap();
        change(&dir.path().join(FLEET));
        let refusal = seen.read().unwrap_err().refusal();
        assert_eq!(
            (refusal.code.as_str(), refusal.happened.as_str()),
            ("folder_changed", "fleet.toml changed while the folder was read")
        );
    }
    let dir = fleet();
    let bounds = Bounds { files: MOST_FILES, folders: MOST_FILES, bytes: MOST_BYTES, depth: DEPTH };
    let seen = walk::look(dir.path(), bounds).unwrap();
    fs::rename(dir.path().join("modules/web"), dir.path().join("web")).unwrap();
    symlink("../web", dir.path().join("modules/web")).unwrap();
    assert_eq!(seen.read().unwrap_err().code(), "folder_changed");
}

#[test]
fn a_folder_that_never_ends_is_refused() {
    let dir = fleet();
    fs::create_dir_all(dir.path().join(["d"; DEPTH + 2].join("/"))).unwrap();
    assert_eq!(refusal_of(dir.path()).code, "folder_too_large");
}

#[test]
fn a_name_that_is_no_text_is_refused_and_shown_made_harmless() {
    use std::os::unix::ffi::OsStrExt as _;
    let dir = fleet();
    fs::write(dir.path().join(std::ffi::OsStr::from_bytes(b"a\xff\x1b[2J")), "").unwrap();
    let refusal = refusal_of(dir.path());
    assert_eq!(refusal.code, "folder_name");
    assert!(!refusal.happened.contains('\u{1b}'));
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_nothing_is_declared_without_it() {
    let source = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
    let refusal = FolderError::CannotRead { path: "modules/web/key".to_owned(), source }.refusal();
    assert_eq!(refusal.code, "folder_unreadable");
    assert!(
        refusal.happened.contains("modules/web/key") && refusal.happened.contains("denied"),
        "{refusal:?}"
    );
}
