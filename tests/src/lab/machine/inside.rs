//! What is done inside a machine, or to its files: commands with a deadline, files that also work on a machine that is
//! off, its journal. Each command and all it said is in the run's log.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use super::Machine;
use crate::lab::files::Root;
use crate::lab::tool::{Output, Tool};

impl Machine {
    /// Runs a program inside, for at most a minute.
    #[track_caller]
    pub fn run(&self, command: &[&str]) -> Output {
        self.run_for(Duration::from_secs(60), command)
    }

    /// Runs a program inside; after `deadline` it is killed there.
    #[track_caller]
    pub fn run_for(&self, deadline: Duration, command: &[&str]) -> Output {
        self.run_with(deadline, &[], command)
    }

    /// Runs a program inside with these bytes on its stdin.
    #[track_caller]
    pub fn run_with(&self, deadline: Duration, input: &[u8], command: &[&str]) -> Output {
        let leader = self.leader().unwrap_or_else(|| panic!("{} does not run", self.name)).to_string();
        let seconds = deadline.as_secs_f32().to_string();
        let mut carried = enter(&leader);
        carried.extend([
            "env",
            "-i",
            PATH,
            "HOME=/root",
            "LANG=C.UTF-8",
            "timeout",
            "--kill-after=5",
            &seconds,
        ]);
        carried.extend(command);
        let output = Tool::new(&carried).input(input).deadline(deadline + GRACE).run();
        let output = output.called(format!("{}: {}", self.name, command.join(" ")));
        self.note(&output);
        output
    }

    /// Runs a line of shell inside.
    #[track_caller]
    pub fn sh(&self, line: &str) -> Output {
        self.run(&["sh", "-c", line])
    }

    /// Runs a program inside and gives back what it wrote; panics with all it said unless it ends with 0.
    #[track_caller]
    pub fn must(&self, command: &[&str]) -> String {
        self.run(command).must()
    }

    /// Starts a program that goes on, as the transient unit `unit`; its output is in the journal. End it with
    /// `systemctl stop`.
    #[track_caller]
    pub fn start(&self, unit: &str, command: &[&str]) {
        let carried: Vec<&str> = ["systemd-run", "--quiet", "--property=Type=exec", "--unit", unit, "--"]
            .into_iter()
            .chain(command.iter().copied())
            .collect();
        self.must(&carried);
    }

    /// Copies a file of the build machine in, owned by root.
    pub fn copy_in(&self, from: &Path, to: &str, mode: u32) {
        let bytes = fs::read(from).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
        self.write_mode(to, &bytes, mode);
    }

    /// Writes a file 0644, as a new file in the place of an old one; it works on a machine that is off, too.
    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        self.write_mode(path, bytes.as_ref(), 0o644);
    }

    /// Like [`write`](Self::write), with a mode.
    pub fn write_mode(&self, path: &str, bytes: &[u8], mode: u32) {
        self.files().write(path, bytes, mode);
    }

    /// Reads a file; it works on a machine that is off, too.
    #[track_caller]
    #[must_use]
    pub fn read(&self, path: &str) -> Vec<u8> {
        self.files().read(path)
    }

    /// Whether there is anything at this path; a link that leads nowhere counts.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        self.files().has(path)
    }

    /// Gives a file an extended attribute, as `setfattr` would.
    #[track_caller]
    pub fn give_attribute(&self, path: &str, name: &str, value: &[u8]) {
        self.files().give(path, name, value);
    }

    /// An extended attribute of a file; none where it has none of that name.
    #[must_use]
    pub fn attribute(&self, path: &str, name: &str) -> Option<Vec<u8>> {
        self.files().attribute(path, name)
    }

    /// What the journal has of a unit, over all boots; it works on a machine that is off, too.
    #[must_use]
    pub fn journal(&self, unit: &str) -> String {
        let arguments = ["--no-pager", "--quiet", "--output=short-precise", "--unit", unit];
        if self.leader().is_some() {
            // What was said so far may still be on its way to it.
            self.must(&["journalctl", "--sync"]);
            let command: Vec<&str> = ["journalctl"].into_iter().chain(arguments).collect();
            return self.must(&command);
        }
        self.journal_on_disk(&arguments)
    }

    fn files(&self) -> Root {
        Root::open(&self.root_seen_from_outside())
    }

    pub(super) fn journal_on_disk(&self, arguments: &[&str]) -> String {
        let folder = self.root_folder().join("var/log/journal").display().to_string();
        let command: Vec<&str> =
            ["journalctl", "--directory", &folder].into_iter().chain(arguments.iter().copied()).collect();
        Tool::new(&command).run().stdout
    }

    fn note(&self, output: &Output) {
        let line = format!("[{:9.3}] {output}", self.made.elapsed().as_secs_f32());
        let _ = self.log("commands").write_all(line.as_bytes());
    }
}

/// What carries a command into all of a machine. `--wdns`, not `--wd`: that one would leave it in a folder outside.
pub(super) fn enter(leader: &str) -> Vec<&str> {
    vec![
        "nsenter", "--target", leader, "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root",
        "--wdns=/", "--",
    ]
}

const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// What `timeout` inside has, beyond the deadline, to end the program and say so.
const GRACE: Duration = Duration::from_secs(10);
