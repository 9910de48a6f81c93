//! What may not be read or written by whoever runs a program, and what others may write. The parts for another user
//! need root, who alone can become one; without root they are not run.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use tenure_tests::program::{self, Ran, run, run_as};
use tenure_tests::sandbox::{Sandbox, text};

use super::{NOBODY, assert_refused, is_root};

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A folder that everybody may walk through, with copies of the programs that everybody may run.
struct Public {
    folder: tempfile::TempDir,
}

impl Public {
    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("public-").tempdir().unwrap();
        mode(folder.path(), 0o755);
        Self { folder }
    }

    fn at(&self, place: &str) -> PathBuf {
        self.folder.path().join(place)
    }

    /// A folder of nobody's own.
    fn theirs(&self, place: &str) -> PathBuf {
        let path = self.at(place);
        fs::create_dir_all(&path).unwrap();
        chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        path
    }

    fn write(&self, place: &str, text: &str, bits: u32) -> PathBuf {
        let path = self.at(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        mode(&path, bits);
        path
    }

    fn run(&self, name: &str, arguments: &[&str]) -> Ran {
        let program = self.at(name);
        if !program.exists() {
            fs::copy(program::folder().join(name), &program).unwrap();
            mode(&program, 0o755);
        }
        run_as(NOBODY, &program, arguments, self.folder.path())
    }
}

fn not_started(ran: &Ran, code: &str, words: &[&str]) {
    assert_eq!(ran.code, 3, "{ran:?}");
    for word in words.iter().copied().chain([code]) {
        assert!(ran.err.contains(word), "`{word}` is not in {}", ran.err);
    }
}

#[test]
fn a_control_plane_that_may_not_have_its_places_does_not_start_and_says_which() {
    if !is_root() {
        return;
    }
    let public = Public::new();
    let control = |place: &str| {
        let root = text(&public.at(place));
        public.run("tenure-control", &["run", "--root", &root, "--listen", "127.0.0.1:0"])
    };
    fs::create_dir(public.at("closed")).unwrap();
    not_started(
        &control("closed"),
        "directories_not_made",
        &["var/lib/tenure-control cannot be made", "Permission denied"],
    );

    public.theirs("taken");
    fs::create_dir_all(public.at("taken/var/lib/tenure-control")).unwrap();
    not_started(
        &control("taken"),
        "directories_not_made",
        &["belongs to user 0, and this runs as user 65534"],
    );

    public.theirs("socket");
    public.theirs("socket/var/lib/tenure-control");
    fs::create_dir_all(public.at("socket/run/tenure-control")).unwrap();
    not_started(&control("socket"), "directories_not_made", &["run/tenure-control belongs to user 0"]);

    public.theirs("config");
    public.write("config/etc/tenure/control.toml", "log = \"info\"\n", 0o600);
    for place in ["config/var/lib", "config/run"] {
        public.theirs(place);
    }
    not_started(&control("config"), "config_unusable", &["control.toml cannot be read", "Permission denied"]);
}

#[test]
fn a_host_that_may_not_have_its_places_does_not_start_and_says_which() {
    if !is_root() {
        return;
    }
    let public = Public::new();
    let host =
        |place: &str| public.run("tenure-host", &["run", "--sandbox", "--root", &text(&public.at(place))]);
    fs::create_dir(public.at("closed")).unwrap();
    not_started(&host("closed"), "directories_not_made", &["Permission denied", "--sandbox --root DIR"]);

    public.theirs("taken");
    for place in ["taken/etc", "taken/var/lib", "taken/run"] {
        public.theirs(place);
    }
    chown(public.at("taken/var"), Some(NOBODY), None).unwrap();
    fs::create_dir_all(public.at("taken/var/lib/tenure-host")).unwrap();
    not_started(&host("taken"), "directories_not_made", &["var/lib/tenure-host belongs to user 0"]);

    public.theirs("config");
    public.write("config/etc/tenure/host.toml", "timer = \"1m\"\n", 0o600);
    not_started(&host("config"), "config_unusable", &["host.toml cannot be read", "Permission denied"]);
}

#[test]
fn a_folder_a_token_and_a_socket_that_may_not_be_read_are_named() {
    if !is_root() {
        return;
    }
    let public = Public::new();
    public.write("fleet/fleet.toml", "[node.a]\n", 0o644);
    public.write("fleet/modules/web/secret", "x", 0o600);
    let declare = || public.run("tenure", &["declare", &text(&public.at("fleet")), "--json"]);
    assert_refused(
        &declare(),
        "folder_unreadable",
        &["modules/web/secret cannot be read: ", "ermission denied"],
    );
    mode(&public.at("fleet/modules/web"), 0o700);
    assert_refused(&declare(), "folder_unreadable", &["modules/web cannot be read: "]);

    let token = public.write("token", "tenure_e1_x", 0o600);
    let root = text(&public.theirs("machine"));
    let arguments = ["enrol", "--token-file", &text(&token), "--root", &root, "--sandbox", "--json"];
    assert_refused(&public.run("tenure-host", &arguments), "token_file_unreadable", &["Permission denied"]);

    let mut sandbox = Sandbox::empty();
    sandbox.start_control();
    mode(&sandbox.at(""), 0o755);
    let socket = text(&sandbox.at("control/run/tenure-control/api.sock"));
    assert_refused(
        &public.run("tenure", &["nodes", "--json", "--socket", &socket]),
        "socket_not_permitted",
        &["api.sock"],
    );
}

#[test]
fn a_configuration_that_everybody_may_write_or_that_says_nonsense_is_refused_with_its_place() {
    let sandbox = Sandbox::empty();
    let control = || {
        let root = text(&sandbox.at("control"));
        run("tenure-control", &["run", "--root", &root, "--listen", "127.0.0.1:0"], Path::new("/"))
    };
    let host = || sandbox.host(&["run"]);
    for (text, words) in [
        ("lisen = \"0.0.0.0:7443\"\n", ["control.toml:1:1: unknown field `lisen`", "| lisen = "]),
        ("\nlisten = \"nowhere\"\n", ["control.toml:2:10: ", "| listen = "]),
        ("listen = \"0.0.0.0:7443\n", ["control.toml:1:", "| listen = "]),
    ] {
        sandbox.write("control/etc/tenure/control.toml", text);
        not_started(&control(), "config_unusable", &words);
    }
    for (text, words) in [
        ("timer = \"1m\"\ntimre = 1\n", ["host.toml:2:1: unknown field `timre`", "| timre = 1"]),
        ("timer = \"0s\"\n", ["host.toml:1:9: `0s` is not between 1s and 24h", "| timer = "]),
    ] {
        sandbox.write("machine/etc/tenure/host.toml", text);
        not_started(&host(), "config_unusable", &words);
    }
    mode(&sandbox.write("control/etc/tenure/control.toml", ""), 0o666);
    not_started(&control(), "config_unusable", &["control.toml can be written by everybody (mode 0666)"]);
    mode(&sandbox.write("machine/etc/tenure/host.toml", ""), 0o666);
    not_started(&host(), "config_unusable", &["host.toml can be written by everybody (mode 0666)"]);
    // Neither made anything before it knew what is wanted.
    assert!(!sandbox.machine("/var/lib/tenure-host/store.db").exists());
    assert!(!sandbox.at("control/var/lib/tenure-control/store.db").exists());
}

// case: O-62
#[test]
fn key_files_that_were_left_open_are_closed_said_and_used() {
    let mut sandbox = Sandbox::enrolled(&[]);
    sandbox.kill_control();
    sandbox.kill_host();
    let keys = [
        sandbox.at("control/var/lib/tenure-control/master.key"),
        sandbox.at("control/var/lib/tenure-control/ca.key"),
        sandbox.machine("/var/lib/tenure-host/node.key"),
    ];
    keys.iter().for_each(|key| mode(key, 0o644));
    sandbox.start_control();
    sandbox.start_host();
    sandbox.wait("the session is back", |s| !s.node()["session"].is_null());
    for key in &keys {
        assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{}", key.display());
    }
    for (said, words) in [
        (sandbox.control.as_ref().unwrap().said(), ["master.key", "0644"]),
        (sandbox.host.as_ref().unwrap().said(), ["node.key", "0644"]),
    ] {
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
}
