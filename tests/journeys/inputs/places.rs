//! Sockets and ports that somebody else has, and what else may lie where a socket belongs.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenure_tests::program::{Ran, Running, run};
use tenure_tests::sandbox::{SOON, Sandbox, free_port, text};
use tenure_tests::wait;

/// What lies where the socket belongs, the code it is refused with, and words of what happened.
type Case = (fn(&Path), &'static str, &'static str);

const IN_THE_WAY: &[Case] = &[
    (|path| fs::write(path, "theirs").unwrap(), "socket_in_the_way", "a file lies at "),
    (|path| fs::create_dir(path).unwrap(), "socket_in_the_way", "a folder lies at "),
    (|path| symlink("/nowhere", path).unwrap(), "socket_in_the_way", "a link lies at "),
    (
        |path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap(),
        "socket_in_the_way",
        "a pipe lies at ",
    ),
];

fn place(sandbox: &Sandbox, at: &str) -> PathBuf {
    let path = sandbox.at(at);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    path
}

const CONTROL: &str = "control/run/tenure-control/api.sock";
const HOST: &str = "machine/run/tenure-host/api.sock";

fn control(sandbox: &Sandbox, listen: &str) -> Ran {
    let root = text(&sandbox.at("control"));
    run(
        "tenure-control",
        &["run", "--root", &root, "--listen", listen, "--advertise", "127.0.0.1:1"],
        Path::new("/"),
    )
}

fn says(ran: &Ran, code: &str, words: &[&str]) {
    assert_eq!(ran.code, 3, "{ran:?}");
    for word in words.iter().copied().chain([code]) {
        assert!(ran.err.contains(word), "`{word}` is not in {}", ran.err);
    }
}

#[test]
fn a_control_plane_takes_no_place_that_is_somebody_elses_and_leaves_what_lies_there() {
    for (put, code, words) in IN_THE_WAY {
        let sandbox = Sandbox::empty();
        let path = place(&sandbox, CONTROL);
        put(&path);
        let before = path.symlink_metadata().unwrap();
        says(&control(&sandbox, "127.0.0.1:0"), code, &[words, "move it away"]);
        let after = path.symlink_metadata().unwrap();
        assert_eq!(std::os::unix::fs::MetadataExt::ino(&before), std::os::unix::fs::MetadataExt::ino(&after));
    }
    let sandbox = Sandbox::empty();
    let _theirs = UnixListener::bind(place(&sandbox, CONTROL)).unwrap();
    let own = format!("(process {})", std::process::id());
    says(&control(&sandbox, "127.0.0.1:0"), "socket_in_use", &["is in use by ", &own]);
}

#[test]
fn what_an_earlier_life_left_at_a_sockets_place_is_in_nobodys_way() {
    let mut sandbox = Sandbox::empty();
    for at in [CONTROL, HOST] {
        drop(UnixListener::bind(place(&sandbox, at)).unwrap());
        assert!(sandbox.at(at).exists());
    }
    sandbox.start_control();
    sandbox.start_host();
}

#[test]
fn a_port_or_an_address_that_cannot_be_had_is_refused_with_who_has_it() {
    let sandbox = Sandbox::empty();
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap().to_string();
    let own = format!("(process {})", std::process::id());
    says(&control(&sandbox, &address), "address_in_use", &[&address, &own, "--listen"]);
    // An address of the documentation, which no machine has.
    says(&control(&sandbox, "192.0.2.1:7443"), "cannot_listen", &["192.0.2.1:7443 cannot be listened on"]);
    let usage = control(&sandbox, "7443");
    assert_eq!(usage.code, 2, "{usage:?}");
}

#[test]
fn a_host_whose_socket_has_no_place_goes_on_holding_says_so_and_takes_the_place_when_it_is_free() {
    let mut sandbox = Sandbox::enrolled(&[]);
    sandbox.module("[[file]]\npath = \"/a.txt\"\ncontent = \"a\\n\"\n");
    sandbox.declare(&[]).expect(0);
    sandbox.kill_host();
    let path = place(&sandbox, HOST);
    fs::remove_file(&path).unwrap();
    fs::write(&path, "theirs").unwrap();
    let root = text(&sandbox.at("machine"));
    let log = sandbox.at("host.log");
    let host = Running::start("tenure-host", &["run", "--root", &root, "--sandbox"], &[], log);
    wait::until_true("it says what lies there", SOON, || {
        let said = host.said();
        ["local socket not bound", "a file lies at ", "move away what lies there"]
            .iter()
            .all(|word| said.contains(word))
    });
    fs::write(sandbox.machine("/a.txt"), "spoilt").unwrap();
    sandbox.wait("the machine is held", |s| s.read("/a.txt").as_deref() == Some("a\n"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
    // It has the store, and says so to whoever asks.
    let asked = sandbox.host(&["status"]).expect(3);
    assert!(
        asked.err.contains("store_locked") && asked.err.contains(&host.pid().to_string()),
        "{}",
        asked.err
    );
    fs::remove_file(&path).unwrap();
    sandbox.wait("it answers once the place is free", |s| s.host(&["status"]).code == 0);
    assert_eq!(host.said().matches("local socket not bound").count(), 1, "said once, not every time");
    drop(host);
}

fn up(folder: &Path, listen: &str) -> (Option<i32>, String) {
    let arguments = ["up", "--sandbox", "--root", &text(folder), "--listen", listen];
    let mut up = Running::start("tenure", &arguments, &[], folder.with_extension("log"));
    let status = up.ended_within(Duration::from_secs(20));
    (status.code(), up.said())
}

#[test]
fn up_names_what_is_in_the_way_of_either_daemon_and_stops_what_it_started() {
    for (at, code) in [(CONTROL, "did_not_start"), (HOST, "socket_in_the_way")] {
        let folder = tempfile::Builder::new().prefix("up-").tempdir().unwrap();
        let state = folder.path().join("s");
        let path = state.join(at);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "theirs").unwrap();
        let listen = format!("127.0.0.1:{}", free_port());
        let (status, said) = up(&state, &listen);
        assert_eq!(status, Some(3), "{said}");
        assert!(said.contains(code) && said.contains("a file lies at "), "{said}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        assert!(std::net::TcpStream::connect(&listen).is_err(), "the control plane still runs");
    }
    let folder = tempfile::Builder::new().prefix("up-").tempdir().unwrap();
    let state = folder.path().join("s");
    fs::write(&state, "a file").unwrap();
    let (status, said) = up(&state, "127.0.0.1:1");
    assert_eq!(status, Some(3), "{said}");
    assert!(said.contains("cannot_make_state") && said.contains("--root DIR"), "{said}");
}
