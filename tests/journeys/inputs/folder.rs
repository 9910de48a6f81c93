//! Fleet folders that are none, as `tenure declare` meets them. No control plane runs: a folder is read, and refused,
//! before anybody is asked.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use tenure_tests::program::{Ran, run};
use tenure_tests::sandbox::text;

use super::{assert_refused, is_root};

fn fleet() -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("fleet-").tempdir().unwrap();
    fs::create_dir_all(folder.path().join("modules/web/files")).unwrap();
    fs::write(folder.path().join("fleet.toml"), "[node.\"edge-1\"]\nmodules = [\"web\"]\n").unwrap();
    fs::write(folder.path().join("modules/web/module.toml"), "[module]\nname = \"web\"\n").unwrap();
    folder
}

fn declare(folder: &Path) -> Ran {
    // A socket of nobody: whatever passes for a folder ends there.
    let nobody = text(&folder.join("no.sock"));
    run("tenure", &["declare", &text(folder), "--json", "--socket", &nobody], Path::new("/"))
}

/// What is put into a fleet folder, the code it is refused with, and words of what happened.
type Case = (fn(&Path), &'static str, &'static str);

const CASES: &[Case] = &[
    (
        |f| symlink("/etc/passwd", f.join("modules/web/files/out")).unwrap(),
        "folder_link",
        "files/out is a link to /etc/passwd",
    ),
    (
        |f| symlink("..", f.join("modules/web/loop")).unwrap(),
        "folder_link",
        "modules/web/loop is a link to ..",
    ),
    (|f| symlink("nowhere", f.join("gone")).unwrap(), "folder_link", "gone is a link to nowhere"),
    (|f| nix::unistd::mkfifo(&f.join("pipe"), Mode::S_IRWXU).unwrap(), "folder_special", "pipe is a pipe"),
    (
        |f| drop(std::os::unix::net::UnixListener::bind(f.join("s")).unwrap()),
        "folder_special",
        "s is a socket",
    ),
    (
        |f| fs::write(f.join(std::ffi::OsStr::from_bytes(b"a\xffb")), "").unwrap(),
        "folder_name",
        "is not UTF-8 text",
    ),
    (|f| fs::write(f.join("a\nb"), "").unwrap(), "folder_name", "a\\nb has a control character"),
    (
        |f| fs::write(f.join("a\u{1b}[2Jb"), "").unwrap(),
        "folder_name",
        "a\\u{1b}[2Jb has a control character",
    ),
    (
        |f| fs::create_dir_all(f.join(["d"; 40].join("/"))).unwrap(),
        "folder_too_large",
        "lies deeper than 32 folders",
    ),
    (
        |f| fs::File::create(f.join("disk.img")).unwrap().set_len(1 << 40).unwrap(),
        "folder_too_large",
        "more than 64 MiB together; the one beyond is disk.img",
    ),
    (|f| fs::remove_file(f.join("fleet.toml")).unwrap(), "no_fleet", "there is no fleet.toml in "),
    (
        |f| fs::rename(f.join("fleet.toml"), f.join("modules/web/files/fleet.toml")).unwrap(),
        "no_fleet",
        "there is no fleet.toml in ",
    ),
];

#[test]
fn each_kind_of_folder_that_is_none_is_refused_by_name_and_without_waiting() {
    for (spoil, code, words) in CASES {
        let folder = fleet();
        spoil(folder.path());
        assert_refused(&declare(folder.path()), code, &[words]);
    }
    let folder = fleet();
    assert_refused(&declare(&folder.path().join("none")), "no_fleet", &["there is no folder "]);
    assert_refused(&declare(&folder.path().join("fleet.toml")), "no_fleet", &["is a file, not a folder"]);
}

/// Needs root: nobody else can make a device.
#[test]
fn a_device_in_a_folder_is_refused_and_never_opened() {
    if !is_root() {
        return;
    }
    let folder = fleet();
    let device = folder.path().join("watchdog");
    // A number that no driver has: opening it would fail, and the refusal would say so.
    if mknod(&device, SFlag::S_IFCHR, Mode::S_IRUSR, makedev(254, 254)).is_err() {
        return;
    }
    assert_refused(&declare(folder.path()), "folder_special", &["watchdog is a device, not a file"]);
}

#[test]
fn names_of_255_bytes_hard_links_case_and_what_git_and_editors_leave_are_no_fault_of_a_folder() {
    let folder = fleet();
    let at = |name: &str| folder.path().join(name);
    fs::write(at(&"n".repeat(255)), "x").unwrap();
    fs::write(at("README"), "x").unwrap();
    fs::write(at("readme"), "x").unwrap();
    fs::hard_link(at("readme"), at("modules/web/files/readme")).unwrap();
    symlink("somebody@host.1:2", at(".#fleet.toml")).unwrap();
    fs::write(at(".fleet.toml.swp"), "x").unwrap();
    fs::create_dir(at(".git")).unwrap();
    symlink("/", at(".git/anything")).unwrap();
    assert_refused(&declare(folder.path()), "no_control_plane", &["no control plane answers at"]);
}

#[test]
fn a_folder_of_one_file_too_many_is_refused_before_anything_of_it_is_read() {
    let folder = fleet();
    for number in 0..20_000 {
        fs::File::create(folder.path().join(format!("modules/web/files/{number}"))).unwrap();
    }
    let began = Instant::now();
    assert_refused(
        &declare(folder.path()),
        "folder_too_large",
        &["there are more than 20000 files; the first beyond is "],
    );
    // Not how fast it is, but that it does not read without end.
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}
