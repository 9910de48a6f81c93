//! A token where it does not belong: among arguments, in files that others read, in what a crash would leave (O-62).

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;

use tenure_tests::program::run;
use tenure_tests::sandbox::{Sandbox, text};

use super::{assert_refused, is_root};

/// The argument lists of all processes there are.
fn arguments_of_everybody() -> Vec<Vec<u8>> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok()).collect()
}

/// The end of a token, which no other has; they all begin alike.
fn secret(token: &str) -> &str {
    &token[token.len() - 30..]
}

// rule: N-02
// case: O-62
#[test]
fn a_token_among_the_arguments_of_any_command_is_refused_and_not_printed() {
    let mut sandbox = Sandbox::empty();
    sandbox.start_control();
    let token = sandbox.invite("edge-1", &[]);
    let file = format!("--token-file={token}");
    let host: [&[&str]; 7] = [
        &["enrol", &token],
        &["enrol", "--token", &token],
        &["enrol", "--token-file", &token],
        &["enrol", &file],
        &["enrol", "twice", &token, "more"],
        &["enroll", &token],
        &["status", &token],
    ];
    for arguments in host {
        let json: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        let ran = sandbox.host(&json);
        assert_refused(&ran, "token_in_arguments", &[]);
        assert!(!ran.out.contains(secret(&token)) && !ran.err.contains(secret(&token)), "{ran:?}");
    }
    for arguments in [["node", &token], ["invite", &token], ["enrol", &token], ["declare", &token]] {
        let ran = run("tenure", &[arguments[0], arguments[1], "--json"], Path::new("/"));
        assert_refused(&ran, "token_in_arguments", &[]);
        assert!(!ran.out.contains(secret(&token)) && !ran.err.contains(secret(&token)), "{ran:?}");
    }
    assert!(!sandbox.machine("/var/lib/tenure-host").exists(), "nothing was made for it");
}

// case: O-62
#[test]
fn a_token_file_that_is_open_is_none_or_is_not_there_is_refused_by_name_and_costs_nothing() {
    let mut sandbox = Sandbox::empty();
    sandbox.start_control();
    sandbox.start_host();
    let token = sandbox.invite("edge-1", &[]);
    let file = sandbox.write("token", &token);
    let enrol = |file: &Path| sandbox.host(&["enrol", "--json", "--token-file", &text(file)]);
    for mode in [0o644, 0o640, 0o604, 0o666] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        assert_refused(&enrol(&file), "token_file_open", &[&format!("mode {mode:04o}")]);
    }
    let pipe = sandbox.at("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRUSR).unwrap();
    assert_refused(&enrol(&pipe), "token_file_unreadable", &["is a pipe, not a file"]);
    assert_refused(&enrol(&sandbox.at("")), "token_file_unreadable", &["a folder, not a file"]);
    assert_refused(&enrol(&sandbox.at("none")), "token_file_unreadable", &["is not there"]);
    for (text, code) in [("", "not_a_token"), ("hello", "not_a_token"), (&token[..30], "token_damaged")] {
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        assert_refused(&enrol(&file), code, &[]);
    }
    assert_eq!(sandbox.host(&["status", "--json"]).json()["machine_state"], "hosted");
    sandbox.redeem(&token).expect(0);
    sandbox.wait_for_state("edge-1", "ready");
    for arguments in arguments_of_everybody() {
        let found = String::from_utf8_lossy(&arguments).contains(secret(&token));
        assert!(!found, "{}", String::from_utf8_lossy(&arguments));
    }
}

/// Whether the kernel would write an image of a process is known by whose its entries below `/proc` are: the user's own,
/// or root's. Needs root, to be somebody else than root.
// case: O-62
#[test]
fn a_crash_of_either_daemon_leaves_no_image_with_what_it_knows() {
    if !is_root() {
        return;
    }
    let folder = tempfile::Builder::new().prefix("public-").tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let port = format!("127.0.0.1:{}", tenure_tests::sandbox::free_port());
    let root = text(&folder.path().join("root"));
    fs::create_dir(&root).unwrap();
    chown(&root, Some(super::NOBODY), Some(super::NOBODY)).unwrap();
    for (name, more) in [("tenure-control", ["--listen", &port]), ("tenure-host", ["--sandbox", "--json"])] {
        let program = folder.path().join(name);
        fs::copy(tenure_tests::program::folder().join(name), &program).unwrap();
        let arguments: Vec<&str> = ["run", "--root", &root].into_iter().chain(more).collect();
        let log = folder.path().join("log");
        let daemon = tenure_tests::program::Running::start_as(super::NOBODY, &program, &arguments, log);
        let socket = folder.path().join("root/run").join(name).join("api.sock");
        tenure_tests::wait::until_true("it runs", tenure_tests::sandbox::SOON, || socket.exists());
        let entry = fs::metadata(format!("/proc/{}/mem", daemon.pid())).unwrap();
        assert_eq!(entry.uid(), 0, "{name} would leave an image of itself");
    }
}
