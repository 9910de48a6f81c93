//! What surrounds a program when it is run: no home, an output that takes nothing, no room for threads or files, somebody
//! else's socket, a disk that fails. The parts for another user need root, who alone can become one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tenure_protocol::id::{ControlPlaneId, Digest, Epoch, EpochId, Generation, Millis, NodeId, Rental};
use tenure_protocol::machine::Mode;
use tenure_protocol::token::{Invitation, Signer};
use tenure_tests::disk::Disk;
use tenure_tests::program::{self, Ran, Running, run_as};
use tenure_tests::sandbox::{Programs, Sandbox, text};
use tenure_tests::wait;

use super::{NOBODY, assert_refused, is_root};

/// Runs a program of ours as the user of this number, from a shell that did `before`.
fn after(before: &str, user: u32, name: &str, arguments: &[&str], folder: &Path) -> Ran {
    let shell = format!("{before}; exec \"$0\" \"$@\"");
    let program = text(&program::folder().join(name));
    let arguments: Vec<&str> =
        ["-c", &shell, &program].into_iter().chain(arguments.iter().copied()).collect();
    run_as(user, Path::new("/bin/sh"), &arguments, folder)
}

/// That it ended so, and says this code and these words to whoever reads its other stream.
fn says(ran: &Ran, exit: i32, code: &str, words: &[&str]) {
    assert_eq!(ran.code, exit, "{ran:?}");
    for word in words.iter().copied().chain([code]) {
        assert!(ran.err.contains(word), "`{word}` is not in {}", ran.err);
    }
}

/// A folder that everybody may walk through and run programs from.
fn public() -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("public-").tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["tenure", "tenure-host", "tenure-control"] {
        fs::copy(program::folder().join(name), folder.path().join(name)).unwrap();
    }
    folder
}

#[test]
fn a_user_without_a_home_is_told_to_name_a_folder() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["up", "--sandbox", "--json"];
    let ran = after("unset HOME XDG_STATE_HOME", 0, "tenure", &arguments, folder.path()).expect(2);
    let refusal = &ran.json()["refusal"];
    assert_eq!(refusal["code"], "no_home");
    assert!(refusal["do"].as_str().unwrap().contains("--root DIR"), "{refusal}");
}

#[test]
fn an_answer_that_cannot_be_written_is_no_success() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ran = after("exec > /dev/full", 0, "tenure", &["api"], folder.path());
    says(&ran, 1, "our_fault", &["No space left"]);
}

#[test]
fn where_no_control_plane_answers_the_place_that_was_tried_is_named() {
    let sandbox = Sandbox::empty();
    assert_refused(&sandbox.tenure(&["nodes", "--json"]), "no_control_plane", &["api.sock"]);
}

// rule: S-09
#[test]
fn a_daemon_of_another_user_is_named_and_told_nothing() {
    if !is_root() {
        return;
    }
    let public = public();
    let place = |name: &str| {
        let path = public.path().join(name);
        fs::create_dir_all(&path).unwrap();
        std::os::unix::fs::chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        path
    };
    let start = |name: &str, arguments: &[&str]| {
        Running::start_as(
            NOBODY,
            &public.path().join(name),
            arguments,
            public.path().join(format!("{name}.log")),
        )
    };
    let (machine, plane) = (place("machine"), place("plane"));
    let _host = start("tenure-host", &["run", "--sandbox", "--root", &text(&machine)]);
    let _control = start(
        "tenure-control",
        &["run", "--root", &text(&plane), "--listen", "127.0.0.1:0", "--advertise", "a:1"],
    );
    let sockets = [machine.join("run/tenure-host/api.sock"), plane.join("run/tenure-control/api.sock")];
    wait::until_true("both listen", tenure_tests::sandbox::SOON, || sockets.iter().all(|path| path.exists()));
    let words = [format!("is held by user id {NOBODY}")];
    let arguments = ["status", "--json", "--sandbox", "--root", &text(&machine)];
    assert_refused(&program::run("tenure-host", &arguments, public.path()), "foreign_socket", &[&words[0]]);
    let arguments = ["nodes", "--json", "--socket", &text(&sockets[1])];
    assert_refused(&program::run("tenure", &arguments, public.path()), "foreign_socket", &[&words[0]]);
}

// rule: S-09
#[test]
fn somebody_whom_the_socket_lets_in_by_mistake_is_still_told_that_it_is_not_for_him() {
    if !is_root() {
        return;
    }
    let public = public();
    let mut sandbox = Sandbox::empty();
    sandbox.start_control();
    let socket = sandbox.at("control/run/tenure-control/api.sock");
    for (path, mode) in [(sandbox.at(""), 0o755), (socket.clone(), 0o666)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(socket.parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
    let ran = run_as(
        NOBODY,
        &public.path().join("tenure"),
        &["nodes", "--json", "--socket", &text(&socket)],
        public.path(),
    );
    assert_refused(&ran, "not_allowed", &[&format!("user {NOBODY}")]);
}

// case: O-05
#[test]
fn a_control_plane_whose_disk_has_no_room_for_its_folders_says_so() {
    let sandbox = Sandbox::empty();
    let Some(_disk) = Disk::of_so_many_files(&sandbox.at("control"), 3) else { return };
    let root = text(&sandbox.at("control"));
    let arguments = ["run", "--root", &root, "--listen", "127.0.0.1:0", "--advertise", "a:1"];
    let ran = program::run("tenure-control", &arguments, Path::new("/"));
    says(&ran, 3, "state_full", &["make room"]);
}

// case: O-70
#[test]
fn a_disk_that_takes_some_writes_and_lets_others_fail_is_called_failing() {
    if !is_root() {
        return;
    }
    let script = tempfile::NamedTempFile::new().unwrap();
    let control = text(&program::folder().join("tenure-control"));
    // What grows beyond two megabytes cannot be written, and everything else can.
    let wrapped = format!("#!/bin/sh\ntrap '' XFSZ\nulimit -f 4096\nexec {control} \"$@\"\n");
    let path = script.into_temp_path();
    fs::write(&path, wrapped).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let programs = Programs { control: text(&path).leak(), host: "tenure-host" };
    let mut sandbox = Sandbox::of(programs);
    sandbox.start_control();
    sandbox.invite("edge-1", &[]);
    sandbox.module("[[file]]\npath = \"/a\"\nsource = \"a\"\n");
    let noise: Vec<u8> = (0..4_u32 << 20).map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    sandbox.write("fleet/modules/web/a", noise);
    let ran = sandbox.tenure(&["declare", &text(&sandbox.at("fleet")), "--json"]);
    assert_refused(&ran, "store_failing", &["store"]);
}

// case: O-70
#[test]
fn a_user_who_may_have_no_more_threads_or_files_is_told_where_to_look() {
    if !is_root() {
        return;
    }
    let public = public();
    let machine = public.path().join("machine");
    fs::create_dir_all(&machine).unwrap();
    std::os::unix::fs::chown(&machine, Some(NOBODY), Some(NOBODY)).unwrap();
    let program = text(&public.path().join("tenure-host"));
    for limit in ["ulimit -p 1", "ulimit -n 4"] {
        let shell = format!("{limit}; exec \"$0\" \"$@\"");
        let arguments = ["-c", &shell, &program, "apply", "--json", "--sandbox", "--root", &text(&machine)];
        let ran = run_as(NOBODY, Path::new("/bin/sh"), &arguments, public.path());
        assert_refused(&ran, "no_runtime", &["could not start its threads"]);
    }
}

// case: O-62
#[test]
fn a_token_of_a_later_form_is_told_apart_from_a_damaged_one() {
    let sandbox = Sandbox::empty();
    let invitation = Invitation {
        v: 2,
        addresses: vec!["127.0.0.1:1".to_owned()],
        ca: Digest::of(b"ca"),
        control_plane_id: ControlPlaneId::from_bytes([1; 16]),
        epoch: Epoch { number: 1, id: EpochId::from_bytes([1; 16]) },
        node: NodeId::new("edge-1").unwrap(),
        rental: Rental::new("own").unwrap(),
        generation: Generation(1),
        mode: Mode::Converged,
        expires: Millis(i64::MAX),
        counter: 1,
        key_id: 1,
    };
    let token = Signer::new(&[7; 32]).mint(&invitation).unwrap();
    let ran = sandbox.redeem(token.text.reveal());
    says(&ran, 3, "token_other_form", &["compare the versions"]);
}

/// What a program may be told to load before the system's own library.
fn compiled(sandbox: &Sandbox, source: &str) -> String {
    let source = text(&sandbox.write("system.c", source));
    let library = text(&sandbox.at("system.so"));
    let user = nix::unistd::geteuid().as_raw();
    let arguments = ["-shared", "-fPIC", "-o", &library, &source];
    run_as(user, Path::new("/usr/bin/cc"), &arguments, Path::new("/")).expect(0);
    library
}

/// A system whose every file system is NFS, as far as a program that loads this can tell.
const NETWORK: &str = r"
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
static int nfs(long ended, struct statfs *said) { said->f_type = 0x6969; return (int)ended; }
int fstatfs(int fd, struct statfs *said) { return nfs(syscall(SYS_fstatfs, fd, said), said); }
int statfs(const char *at, struct statfs *said) { return nfs(syscall(SYS_statfs, at, said), said); }
int fstatfs64(int fd, struct statfs64 *said) { return fstatfs(fd, (struct statfs *)said); }
int statfs64(const char *at, struct statfs64 *said) { return statfs(at, (struct statfs *)said); }
";

// case: O-70
#[test]
fn a_store_on_a_network_file_system_keeps_either_daemon_from_starting_and_is_said() {
    let mut sandbox = Sandbox::empty();
    let library = compiled(&sandbox, NETWORK);
    let environment = [("LD_PRELOAD", library.as_str())];
    sandbox.spawn_control("127.0.0.1:1", &environment);
    sandbox.spawn_host(&environment);
    for (daemon, remedy) in [(&mut sandbox.control, "move the state directory"), (&mut sandbox.host, "move ")]
    {
        let daemon = daemon.as_mut().unwrap();
        assert_eq!(daemon.ended_within(tenure_tests::sandbox::SOON).code(), Some(3));
        let said = daemon.said();
        let words = ["store_on_network", "lies on a network file system (NFS)", remedy];
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
}

/// A system that ends every write of a new file beside its place with an error of our choice.
const REFUSING: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
ssize_t write(int fd, const void *from, size_t many) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length > 0) {
        path[length] = 0;
        if (strstr(path, "/srv/.tenure-")) {
            errno = atoi(getenv("WRITES_END_WITH"));
            return -1;
        }
    }
    return syscall(SYS_write, fd, from, many);
}
"#;

// case: O-05
#[test]
fn a_file_that_the_file_system_does_not_take_is_refused_for_its_own_reason_and_stays_as_it_was() {
    let declared = |content: &str| {
        format!(
            "[[directory]]\npath = \"/srv\"\n[[file]]\npath = \"/srv/a\"\nneeds = [\"directory:/srv\"]\ncontent = \"{content}\"\n"
        )
    };
    for (errno, code, words) in [
        ("122", "over_quota", "the quota of its owner is used up"),
        ("27", "file_too_large", "takes no file as large as this one"),
    ] {
        let mut sandbox = Sandbox::enrolled(&[]);
        sandbox.module(&declared("before"));
        sandbox.declare(&[]).expect(0);
        let _ = sandbox.host.take().map(Running::stop);
        let library = compiled(&sandbox, REFUSING);
        sandbox.spawn_host(&[("LD_PRELOAD", &library), ("WRITES_END_WITH", errno)]);
        sandbox.module(&declared("after"));
        let _ = sandbox.declare(&[]);
        sandbox.wait("it is said", |s| s.resource("file:/srv/a")["code"] == code);
        let said = sandbox.resource("file:/srv/a");
        assert!(said["reason"].as_str().unwrap().contains(words), "{said}");
        assert_eq!(sandbox.read("/srv/a").as_deref(), Some("before"));
        assert_eq!(fs::read_dir(sandbox.machine("/srv")).unwrap().count(), 1, "nothing is left beside it");
    }
}
