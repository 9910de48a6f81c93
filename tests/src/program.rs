//! The programs as they are shipped, started by tests and ended with them.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{tree, wait};

/// Where the programs lie; they are built once when they are not there.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        if let Some(given) = std::env::var_os("TENURE_PROGRAMS") {
            return given.into();
        }
        let mut cargo = Command::new(env!("CARGO"));
        // What a test runner says of the package under test would make build scripts of others run anew.
        for (name, _) in std::env::vars_os().filter(|(name, _)| of_the_package_under_test(name)) {
            cargo.env_remove(name);
        }
        let built = cargo
            .args(["build", "--release", "--quiet", "--bins"])
            .args(["--package", "tenure", "--package", "tenure-host", "--package", "tenure-controlplane"])
            .current_dir(tree::root())
            .status()
            .expect("cargo starts");
        assert!(built.success(), "the programs could not be built");
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| tree::root().join("target"), PathBuf::from);
        target.join("release")
    })
}

/// What the unit of the host sets in its environment. The text is built in, for programs that are carried elsewhere.
fn of_the_unit() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = include_str!("../../packaging/tenure-host.service").lines();
    let set = lines.filter_map(|line| line.strip_prefix("Environment="));
    set.flat_map(str::split_whitespace).filter_map(|word| word.split_once('='))
}

fn of_the_package_under_test(name: &std::ffi::OsStr) -> bool {
    let name = name.as_encoded_bytes();
    [b"CARGO_PKG_".as_slice(), b"CARGO_MANIFEST_"].iter().any(|start| name.starts_with(start))
}

/// What a program that ended has said.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; 255 when a signal ended it.
    pub code: i32,
    /// What it wrote to its standard output.
    pub out: String,
    /// What it wrote to its standard error.
    pub err: String,
}

impl Ran {
    /// The value it printed as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }

    /// Itself, if it ended with `code`.
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }
}

/// Runs a program of ours to its end, at most a minute.
pub fn run(name: &str, arguments: &[&str], folder_of_work: &Path) -> Ran {
    let mut command = Command::new(folder().join(name));
    command.args(arguments).current_dir(folder_of_work).env_remove("TENURE_SOCKET");
    end(command, name)
}

/// The same of a program that lies elsewhere, as the user of this number; for root, who alone may become another.
pub fn run_as(user: u32, program: &Path, arguments: &[&str], folder_of_work: &Path) -> Ran {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder_of_work).env_remove("TENURE_SOCKET").uid(user).gid(user);
    end(command, &program.display().to_string())
}

/// How long any program takes from its start to its end, which must be a good one. What it says goes nowhere: nobody
/// is waited for but the program.
pub fn timed(program: &Path, arguments: &[&str]) -> Duration {
    let (took, status) = ended(program, arguments, &[]);
    assert!(status.success(), "{} ended with {status}", program.display());
    took
}

/// The same in an environment with more in it, however the program ends; a program without a path is looked for.
pub fn ended(program: &Path, arguments: &[&str], environment: &[(&str, String)]) -> (Duration, ExitStatus) {
    let mut command = Command::new(program);
    command.args(arguments).env_remove("TENURE_SOCKET").stdin(Stdio::null()).stdout(Stdio::null());
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let began = Instant::now();
    let status =
        command.status().unwrap_or_else(|error| panic!("{} does not start: {error}", program.display()));
    (began.elapsed(), status)
}

fn end(mut command: Command, name: &str) -> Ran {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{name} does not start: {error}"));
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let read = |stream: Option<Box<dyn std::io::Read + Send>>| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            if let Some(mut stream) = stream {
                let _ = std::io::Read::read_to_end(&mut stream, &mut text);
            }
            String::from_utf8_lossy(&text).into_owned()
        })
    };
    let out = read(out.map(|stream| Box::new(stream) as _));
    let err = read(err.map(|stream| Box::new(stream) as _));
    let mut running = Running { child, name: name.to_owned(), log: PathBuf::new() };
    let status = running.ended_within(Duration::from_secs(60));
    Ran {
        code: status.code().unwrap_or(255),
        out: out.join().unwrap_or_default(),
        err: err.join().unwrap_or_default(),
    }
}

/// A program that runs; it is killed when this is dropped.
pub struct Running {
    child: Child,
    name: String,
    log: PathBuf,
}

impl Running {
    /// Starts a program of ours with its output in `log`; the host as its unit does.
    pub fn start(name: &str, arguments: &[&str], environment: &[(&str, &str)], log: PathBuf) -> Self {
        let file = File::options().create(true).append(true).open(&log).expect("the log can be written");
        let mut command = Command::new(folder().join(name));
        if name == "tenure-host" {
            command.envs(of_the_unit());
        }
        let child = command
            .args(arguments)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("the log can be written twice"))
            .stderr(file)
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        Self { child, name: name.to_owned(), log }
    }

    /// Starts a program that lies elsewhere, as the user of this number; for root.
    pub fn start_as(user: u32, program: &Path, arguments: &[&str], log: PathBuf) -> Self {
        let file = File::options().create(true).append(true).open(&log).expect("the log can be written");
        let name = program.display().to_string();
        let child = Command::new(program)
            .args(arguments)
            .uid(user)
            .gid(user)
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("the log can be written twice"))
            .stderr(file)
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        Self { child, name, log }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has written so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("a process id");
        kill(Pid::from_raw(pid), signal).expect("our own child can be signalled");
    }

    /// Kills it, as a power cut would end it.
    pub fn kill(mut self) {
        self.child.kill().expect("our own child can be killed");
        self.child.wait().expect("our own child can be waited for");
    }

    /// Asks it to stop and waits until it has.
    pub fn stop(mut self) -> ExitStatus {
        self.signal(Signal::SIGTERM);
        self.ended_within(Duration::from_secs(30))
    }

    /// Waits until it has ended by itself.
    pub fn ended_within(&mut self, within: Duration) -> ExitStatus {
        let what = format!("{} ends; it said:\n{}", self.name, self.said());
        wait::until(&what, within, || self.child.try_wait().expect("our own child can be waited for"))
    }

    /// How it has ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("our own child can be waited for")
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        self.ended().is_none()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() && !self.log.as_os_str().is_empty() {
            eprintln!("--- what {} said ---\n{}", self.name, self.said());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_started_with_what_its_unit_sets_for_its_memory() {
        let set: Vec<_> = of_the_unit().collect();
        assert!(set.contains(&("MALLOC_ARENA_MAX", "1")) && set.len() == 3, "{set:?}");
    }
}
