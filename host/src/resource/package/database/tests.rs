use std::fs::FileTimes;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::ground::Ground;
use crate::resource::Stands;

fn status_of(name: &str) -> String {
    format!("Package: {name}\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1\n\n")
}

fn names_in(root: &Path, asked: &[&str]) -> Vec<bool> {
    let (ground, never) = (Ground::new(root, false), AtomicBool::new(false));
    let tools = Tools::new(&ground, None, None, &never);
    let packages = read(&tools).unwrap();
    asked.iter().map(|name| packages.installed(name).is_some()).collect()
}

fn machine() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("var/lib/dpkg/updates")).unwrap();
    folder
}

#[test]
fn a_status_that_is_written_over_at_once_with_the_same_size_and_time_is_read_anew() {
    let folder = machine();
    let status = folder.path().join("var/lib/dpkg/status");
    std::fs::write(&status, status_of("one")).unwrap();
    let file = std::fs::File::options().write(true).open(&status).unwrap();
    let times = FileTimes::new().set_modified(std::fs::metadata(&status).unwrap().modified().unwrap());
    for (now, is) in
        [("one", [true, false]), ("two", [false, true]), ("one", [true, false]), ("two", [false, true])]
    {
        std::fs::write(&status, status_of(now)).unwrap();
        file.set_times(times).unwrap();
        assert_eq!(names_in(folder.path(), &["one", "two"]), is);
    }
}

// rule: H-09
#[test]
fn a_status_that_holds_no_package_is_not_believed() {
    let folder = machine();
    let (ground, never) = (Ground::new(folder.path(), false), AtomicBool::new(false));
    for empty in ["", "\n\n"] {
        std::fs::write(folder.path().join("var/lib/dpkg/status"), empty).unwrap();
        let trouble = read(&Tools::new(&ground, None, None, &never)).unwrap_err();
        assert_eq!((trouble.stands, trouble.code), (Stands::Unknown, "could_not_look"));
        assert!(trouble.reason.contains("holds no package"), "{}", trouble.reason);
    }
}

#[test]
fn what_was_read_once_is_known_only_as_long_as_nothing_can_have_been_written_over_it() {
    let at = |seconds| Which { device: 1, inode: 1, size: 1, changed: (seconds, 0) };
    let now = Moment::from_millis(1_000_000);
    assert!(at(997).is_settled(now));
    assert!(!at(998).is_settled(now), "it was written just now");
    assert!(!at(2000).is_settled(now), "the clock was set back");
    assert!(!at(i64::MAX).is_settled(now));
}

// case: O-11
#[test]
fn entries_of_the_journal_count_in_their_order_and_other_names_beside_them_do_not() {
    let folder = machine();
    let dpkg = folder.path().join("var/lib/dpkg");
    std::fs::write(dpkg.join("status"), status_of("one")).unwrap();
    let entry = |version: &str, word: &str| {
        format!("Package: one\nStatus: install ok {word}\nArchitecture: amd64\nVersion: {version}\n")
    };
    std::fs::write(dpkg.join("updates/0010"), entry("3", "installed")).unwrap();
    std::fs::write(dpkg.join("updates/0002"), entry("2", "half-configured")).unwrap();
    std::fs::write(dpkg.join("updates/tmp.i"), "half a line").unwrap();
    let (ground, never) = (Ground::new(folder.path(), false), AtomicBool::new(false));
    let tools = Tools::new(&ground, None, None, &never);
    assert_eq!(read(&tools).unwrap().installed("one"), Some("3"));
    std::fs::remove_file(dpkg.join("updates/0010")).unwrap();
    assert_eq!(read(&tools).unwrap().unfinished().count(), 1);
    // Merged by somebody: the status alone says it.
    std::fs::remove_file(dpkg.join("updates/0002")).unwrap();
    assert_eq!(read(&tools).unwrap().installed("one"), Some("1"));
}
