use std::os::unix::fs::symlink;

use super::*;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn refused(path: &Path, links: Links) -> String {
    read(path, links, 10).unwrap_err().to_string()
}

#[test]
fn a_file_is_read_whole_with_whose_it_is_and_who_may_read_it() {
    let folder = folder();
    let path = folder.path().join("a");
    std::fs::write(&path, "0123456789").unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o642)).unwrap();
    let mut opened = open(&path, Links::Refused).unwrap();
    assert_eq!(opened.read(10).unwrap(), b"0123456789");
    assert_eq!((opened.mode(), opened.size()), (0o642, 10));
    assert!(opened.is_ours() && opened.is_open_to_others() && opened.is_writable_by_all());
    opened.close().unwrap();
    assert!(!open(&path, Links::Refused).unwrap().is_open_to_others());
}

#[test]
fn what_is_no_file_is_named_and_neither_read_nor_waited_for() {
    let folder = folder();
    let path = folder.path().join("p");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(refused(&path, Links::Followed), format!("{} is a pipe, not a file", path.display()));
    let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("s")).unwrap();
    assert!(refused(&folder.path().join("s"), Links::Followed).contains("a socket"));
    assert!(refused(folder.path(), Links::Followed).contains("a folder"));
    assert!(refused(Path::new("/dev/zero"), Links::Followed).contains("a device"));
    assert!(matches!(open(&folder.path().join("none"), Links::Followed), Err(FileError::Absent { .. })));
}

#[test]
fn a_link_is_followed_only_where_that_is_asked_for() {
    let folder = folder();
    let (real, link) = (folder.path().join("real"), folder.path().join("link"));
    std::fs::write(&real, "x").unwrap();
    symlink(&real, &link).unwrap();
    assert_eq!(read(&link, Links::Followed, 10).unwrap(), b"x");
    assert!(matches!(read(&link, Links::Refused, 10), Err(FileError::Link { .. })));
}

#[test]
fn a_sparse_file_of_a_terabyte_is_refused_by_its_size_and_nothing_of_it_is_kept() {
    let folder = folder();
    let path = folder.path().join("large");
    File::create(&path).unwrap().set_len(1 << 40).unwrap();
    assert!(refused(&path, Links::Refused).ends_with("is larger than 10 bytes"));
}

#[test]
fn a_file_that_grows_while_it_is_read_is_refused_at_the_bound() {
    let folder = folder();
    let path = folder.path().join("grows");
    std::fs::write(&path, "12345").unwrap();
    let mut opened = open(&path, Links::Refused).unwrap();
    std::fs::write(&path, "123456789012345").unwrap();
    assert!(matches!(opened.read(10), Err(FileError::TooLarge { .. })));
}
