//! The one place that runs other programs, and asks the bus: no shell, a fixed environment, no input, a
//! deadline, bounded output. What a program prints is read; whether something worked is looked at elsewhere, never taken from its exit status alone.

use std::collections::VecDeque;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use tenure_protocol::text::shown;

use crate::ground::Ground;

mod bus;

pub use bus::Listed;

/// The most bytes of output that are kept, of each stream; the rest is read and dropped from the front.
const MOST: usize = 4 * 1024 * 1024;

/// What a program that ended has said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// Its exit status; none when a signal ended it.
    pub status: Option<i32>,
    /// What it wrote to its standard output.
    pub out: String,
    /// What it wrote to its standard error.
    pub err: String,
}

impl Ran {
    /// Whether it ended with status 0.
    pub fn succeeded(&self) -> bool {
        self.status == Some(0)
    }

    /// Its last words, fit to be shown: the last lines of its standard error, else of its output.
    pub fn last_words(&self) -> String {
        let text = if self.err.trim().is_empty() { &self.out } else { &self.err };
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines.iter().rev().take(3).rev().copied().collect::<Vec<_>>().join(" / ");
        shown(&last, 300)
    }
}

/// Why a program did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It is not on this machine.
    #[error("`{0}` is not installed")]
    NotThere(String),
    /// It could not be started or waited for.
    #[error("`{program}` could not be run")]
    Io {
        /// Which.
        program: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It took too long and was ended.
    #[error("`{program}` was still running after {} s and was ended", within.as_secs())]
    TooLong {
        /// Which.
        program: String,
        /// How long it was given.
        within: Duration,
    },
    /// Whoever waited for it was told to end.
    #[error("`{0}` was not waited for")]
    NotAwaited(String),
}

/// How long a machine is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Up {
    /// Without the time that it slept: as the service manager counts.
    pub awake: Duration,
    /// With it.
    pub in_all: Duration,
}

/// Runs programs, and asks the bus; tests put a scripted one in its place.
pub trait Programs: Sync {
    /// Runs `program` with `arguments`, at most `within`.
    fn run(&self, program: &str, arguments: &[&str], within: Duration) -> Result<Ran, ProgramError>;

    /// As [`Programs::run`], for a program that only waits for another: once `stop` is set it is ended.
    fn attend(
        &self,
        program: &str,
        arguments: &[&str],
        within: Duration,
        stop: &AtomicBool,
    ) -> Result<Ran, ProgramError>;

    /// How units of these names stand, in their order, asked over the machine's bus at most `within`; none where that
    /// cannot be had.
    fn units(&self, _names: &[&str], _within: Duration) -> Option<Vec<Listed>> {
        None
    }

    /// What there is to say of units of these names, in their order and as `systemctl show` writes it, of the properties
    /// that are `wanted`; asked and answered as [`Programs::units`].
    fn show_units(
        &self,
        _names: &[&str],
        _wanted: &'static [&'static str],
        _within: Duration,
    ) -> Option<String> {
        None
    }

    /// How long the machine is up. Not by `/proc/uptime`: there a container may see its own time.
    fn up(&self) -> Up {
        let read = |clock| clock_gettime(clock).map_or(Duration::ZERO, Duration::from);
        Up { awake: read(ClockId::CLOCK_MONOTONIC), in_all: read(ClockId::CLOCK_BOOTTIME) }
    }

    /// Lets so much time pass.
    fn rest(&self, time: Duration);
}

/// The programs that may change what lies at `ground`: those of the machine itself; none where a directory tree only is
/// held.
pub fn of(ground: &Ground) -> Option<&'static dyn Programs> {
    (!ground.is_sandbox() && ground.root() == Path::new("/")).then_some(&System)
}

/// The machine's own programs.
#[derive(Debug, Clone, Copy, Default)]
pub struct System;

impl Programs for System {
    fn run(&self, program: &str, arguments: &[&str], within: Duration) -> Result<Ran, ProgramError> {
        self.attend(program, arguments, within, &AtomicBool::new(false))
    }

    fn attend(
        &self,
        program: &str,
        arguments: &[&str],
        within: Duration,
        stop: &AtomicBool,
    ) -> Result<Ran, ProgramError> {
        let io = |source: std::io::Error| match source.kind() {
            std::io::ErrorKind::NotFound => ProgramError::NotThere(program.to_owned()),
            _ => ProgramError::Io { program: program.to_owned(), source },
        };
        let child = start(program, arguments).map_err(io)?;
        match attend(child, within, stop).map_err(io)? {
            Ended::Ran(ran) => Ok(ran),
            Ended::TooLong => Err(ProgramError::TooLong { program: program.to_owned(), within }),
            Ended::Stopped => Err(ProgramError::NotAwaited(program.to_owned())),
        }
    }

    fn units(&self, names: &[&str], within: Duration) -> Option<Vec<Listed>> {
        bus::units(names, within)
    }

    fn show_units(
        &self,
        names: &[&str],
        wanted: &'static [&'static str],
        within: Duration,
    ) -> Option<String> {
        bus::show(names, wanted, within)
    }

    fn rest(&self, time: Duration) {
        let until = Instant::now() + time;
        while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            std::thread::park_timeout(left);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place")]
fn start(program: &str, arguments: &[&str]) -> std::io::Result<Child> {
    Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LC_ALL", "C")
        .env("HOME", "/root")
        .env("DEBIAN_FRONTEND", "noninteractive")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

/// How waiting for a program ended.
enum Ended {
    Ran(Ran),
    TooLong,
    Stopped,
}

/// Reads both streams until the program ends, or has to be ended.
fn attend(mut child: Child, within: Duration, stop: &AtomicBool) -> std::io::Result<Ended> {
    let deadline = Instant::now() + within;
    let (told, ended) = mpsc::channel();
    let out = child.stdout.take().map(|stream| gather(stream, told.clone()));
    let err = child.stderr.take().map(|stream| gather(stream, told));
    loop {
        if let Some(status) = child.try_wait()? {
            // A grandchild may keep the pipes open: what was said by now is what is taken.
            let text = |stream: Option<mpsc::Receiver<Vec<u8>>>| {
                let bytes = stream.and_then(|stream| stream.recv_timeout(Duration::from_secs(2)).ok());
                String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
            };
            return Ok(Ended::Ran(Ran { status: status.code(), out: text(out), err: text(err) }));
        }
        let stopped = stop.load(Ordering::Relaxed);
        if stopped || Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(if stopped { Ended::Stopped } else { Ended::TooLong });
        }
        // Both streams ended: the program is about to end too. Else look again soon.
        if ended.recv_timeout(LOOK_AGAIN) == Err(mpsc::RecvTimeoutError::Disconnected) {
            std::thread::park_timeout(LOOK_AGAIN);
        }
    }
}

const LOOK_AGAIN: Duration = Duration::from_millis(5);

fn gather(mut stream: impl Read + Send + 'static, told: mpsc::Sender<()>) -> mpsc::Receiver<Vec<u8>> {
    let (whole, taken) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut kept, mut buffer) = (VecDeque::new(), [0; 8192]);
        while let Ok(read @ 1..) = stream.read(&mut buffer) {
            kept.extend(buffer.iter().take(read).copied());
            let over = kept.len().saturating_sub(MOST);
            kept.drain(..over);
        }
        // Whoever waits may have given up.
        let _ = whole.send(kept.into());
        let _ = told.send(());
    });
    taken
}

#[cfg(test)]
mod tests;
