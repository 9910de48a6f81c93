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
    let walk = |most| {
        let mut walk = Walk { files: BTreeMap::new(), bytes: 0, most };
        walk.enter(dir.path(), "", 0).map(|()| walk.files.len())
    };
    assert_eq!(walk(2).unwrap(), 2);
    assert_eq!(walk(1).unwrap_err().code(), "folder_too_large");
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
