//! The one place where the lab runs a program: no stdin unless given, output to files (a process that lingers on a pipe
//! would hang the caller), and a deadline, after which it is killed.

use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::wait::try_for;

/// A program about to run.
pub(super) struct Tool {
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
    input: Vec<u8>,
    deadline: Duration,
}

impl Tool {
    pub(super) fn new(command: &[&str]) -> Self {
        Self {
            arguments: command.iter().map(ToString::to_string).collect(),
            environment: Vec::new(),
            input: Vec::new(),
            deadline: DEADLINE,
        }
    }

    pub(super) fn environment(mut self, name: &'static str, value: &str) -> Self {
        self.environment.push((name, value.to_owned()));
        self
    }

    pub(super) fn input(mut self, bytes: &[u8]) -> Self {
        self.input = bytes.to_vec();
        self
    }

    pub(super) fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Runs it to its end or its deadline. Panics only where it cannot be started at all.
    pub(super) fn run(self) -> Output {
        let mut stdout = tempfile::tempfile().expect("a temporary file");
        let mut stderr = tempfile::tempfile().expect("a temporary file");
        let what = self.arguments.join(" ");
        let mut child = self.start(&stdout, &stderr);
        let mut end = try_for(self.deadline, || child.try_wait().expect("our own child"));
        let late = end.is_none();
        if late {
            child.kill().expect("our own child");
            end = Some(child.wait().expect("our own child"));
        }
        Output {
            what,
            code: if late { None } else { end.and_then(|status| status.code()) },
            stdout: text(&mut stdout),
            stderr: text(&mut stderr),
        }
    }

    /// Runs it and panics unless it ends with 0.
    #[track_caller]
    pub(super) fn must(self) -> String {
        self.run().must()
    }

    /// Starts it with both outputs to `log`; the caller ends it.
    pub(super) fn start_logged(&self, log: &File) -> Child {
        self.start(log, log)
    }

    fn start(&self, stdout: &File, stderr: &File) -> Child {
        let stdin = if self.input.is_empty() { Stdio::null() } else { given(&self.input) };
        let mut command = command(&self.arguments[0]);
        command
            .args(&self.arguments[1..])
            .stdin(stdin)
            .stdout(copy(stdout))
            .stderr(copy(stderr))
            .env("LC_ALL", "C");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        match command.spawn() {
            Ok(child) => child,
            Err(error) => panic!("`{}` could not be started: {error}", self.arguments[0]),
        }
    }
}

/// What a program said and how it ended.
#[derive(Debug, Clone)]
pub struct Output {
    what: String,
    /// Its exit code; `None` when a signal or the deadline ended it.
    pub code: Option<i32>,
    /// What it wrote, bytes that are no text replaced.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

impl Output {
    /// Whether it ended with 0.
    #[must_use]
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }

    /// What it wrote, without the white space around it; panics with everything it said unless it ended with 0.
    #[track_caller]
    #[must_use]
    pub fn must(self) -> String {
        assert!(self.success(), "{self}");
        self.stdout.trim().to_owned()
    }

    /// Itself, if it ended with `code`; panics with everything it said otherwise.
    #[track_caller]
    #[must_use]
    pub fn expect(self, code: i32) -> Self {
        assert!(self.code == Some(code), "not {code}: {self}");
        self
    }

    /// The value it printed as JSON, however it ended.
    #[track_caller]
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("no JSON ({error}): {self}"))
    }

    /// The command as it was given by a test, in place of the one that carried it.
    pub(super) fn called(mut self, what: String) -> Self {
        self.what = what;
        self
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.code.map_or_else(
            || "did not end in time or was killed".to_owned(),
            |code| format!("ended with {code}"),
        );
        write!(f, "`{}` {end}\n{}{}", self.what, self.stdout, self.stderr)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place of the harness where a program is started"
)]
fn command(program: &str) -> Command {
    Command::new(program)
}

fn given(bytes: &[u8]) -> Stdio {
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(bytes).expect("a temporary file");
    file.seek(SeekFrom::Start(0)).expect("a temporary file");
    Stdio::from(file)
}

fn copy(file: &File) -> Stdio {
    Stdio::from(file.try_clone().expect("a second descriptor"))
}

fn text(file: &mut File) -> String {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).expect("a temporary file");
    file.read_to_end(&mut bytes).expect("a temporary file");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What an ordinary command may take on a busy build machine.
const DEADLINE: Duration = Duration::from_secs(60);
