//! One daemon as a child of `up`: started, its lines passed on, started again when it ends, stopped within a deadline.
//!
//! It is in a process group of its own, so that the terminal's Ctrl-C reaches only `up`, which stops it in order.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tenure_protocol::refusal::Refusal;
use tenure_protocol::text::shown;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::lines::{Lines, Who};
use super::pause::Pauses;
use crate::caller::Caller;
use crate::ending::{Exit, Trouble};

/// How long a daemon may take until its socket answers.
const START: Duration = Duration::from_secs(30);
/// How often its socket is tried until then.
const TRY: Duration = Duration::from_millis(50);
/// How long a daemon may take to stop when asked.
pub(crate) const STOP: Duration = Duration::from_secs(15);
/// How long its last lines may take to arrive once it has ended.
const LAST_LINES: Duration = Duration::from_secs(1);

/// What to start.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) who: Who,
    pub(crate) path: PathBuf,
    /// Under which name.
    pub(crate) name: &'static str,
    pub(crate) arguments: Vec<OsString>,
}

/// A daemon that is kept running until it is told to stop.
#[derive(Debug)]
pub(crate) struct Kept {
    who: Who,
    /// The process that was started first.
    pid: Option<u32>,
    stop: watch::Sender<bool>,
    /// How its process ended last, and its last line; none: none has.
    ended: watch::Receiver<Option<Ended>>,
    keeper: JoinHandle<()>,
}

#[derive(Debug, Clone)]
struct Ended {
    status: ExitStatus,
    last_line: String,
}

impl Kept {
    pub(crate) fn start(program: Program, lines: Lines) -> Result<Self, Trouble> {
        let who = program.who;
        let (stop, stopped) = watch::channel(false);
        let (tell, ended) = watch::channel(None);
        let child = spawn(&program, &lines)
            .map_err(|error| Trouble::ours("a daemon could not be started", &error))?;
        let pid = child.process.id();
        let keeper = tokio::spawn(keep(program, child, lines, stopped, tell));
        Ok(Self { who, pid, stop, ended, keeper })
    }

    /// Waits until it answers at its socket; somebody else who does is not taken for it. A daemon that ends before
    /// that has said why, and is not started again.
    pub(crate) async fn until_answering(&mut self, socket: &Path) -> Result<Caller, Trouble> {
        let (who, pid) = (self.who, self.pid.and_then(|pid| i32::try_from(pid).ok()));
        let answering = async {
            loop {
                if let Ok(stream) = UnixStream::connect(socket).await
                    && stream.peer_cred().is_ok_and(|peer| peer.pid() == pid)
                {
                    return stream;
                }
                sleep(TRY).await;
            }
        };
        tokio::select! {
            answered = timeout(START, answering) => match answered {
                Ok(stream) => Caller::trusted(stream, socket, who.name()),
                Err(_) => Err(silent(who, socket)),
            },
            ended = self.ended.wait_for(Option::is_some) => {
                let ended = ended.ok().and_then(|ended| ended.clone());
                Err(ended_at_start(who, ended))
            }
        }
    }

    /// Asks it to stop and waits until it has; it is killed when its time is over.
    pub(crate) async fn stop(self) {
        let _ = self.stop.send(true);
        // The keeper holds to its own deadline; it can only be gone.
        let _ = self.keeper.await;
    }
}

struct Running {
    process: Child,
    /// Passes its lines on; ends with the last one.
    reader: JoinHandle<String>,
    since: Instant,
}

fn spawn(program: &Program, lines: &Lines) -> std::io::Result<Running> {
    let mut process = command(&program.path)
        .arg0(program.name)
        .args(&program.arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let stderr = process.stderr.take();
    let (who, lines) = (program.who, lines.clone());
    let reader = tokio::spawn(async move {
        let mut last = String::new();
        let Some(stderr) = stderr else { return last };
        let mut text = BufReader::new(stderr).split(b'\n');
        while let Ok(Some(line)) = text.next_segment().await {
            last = String::from_utf8_lossy(&line).into_owned();
            lines.say(who, &last);
        }
        last
    });
    Ok(Running { process, reader, since: Instant::now() })
}

/// The one place of the command line that names a program to start.
pub(super) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    #[expect(
        clippy::disallowed_methods,
        reason = "`up` starts this very program, and asks the service manager"
    )]
    Command::new(program)
}

async fn keep(
    program: Program,
    first: Running,
    lines: Lines,
    mut stopped: watch::Receiver<bool>,
    tell: watch::Sender<Option<Ended>>,
) {
    let who = program.who;
    let mut pauses = Pauses::default();
    let mut running = Ok(first);
    loop {
        let ran = match running {
            Ok(mut child) => {
                let status = tokio::select! {
                    status = child.process.wait() => Some(status),
                    () = told(&mut stopped) => None,
                };
                let Some(status) = status else { return end(child, who, &lines).await };
                let last_line = timeout(LAST_LINES, child.reader).await.ok().and_then(Result::ok);
                let ran = child.since.elapsed();
                if let Ok(status) = status {
                    tell.send_replace(Some(Ended { status, last_line: last_line.unwrap_or_default() }));
                    lines.say(Who::Up, &format!("{} ended by itself ({})", who.name(), in_words(status)));
                }
                ran
            }
            Err(error) => {
                lines.say(Who::Up, &format!("{} cannot be started: {error}", who.name()));
                Duration::ZERO
            }
        };
        let pause = pauses.after(ran);
        tokio::select! {
            () = sleep(pause) => {}
            () = told(&mut stopped) => return,
        }
        lines.say(Who::Up, &format!("{} is started again after {} s", who.name(), pause.as_secs()));
        running = spawn(&program, &lines);
    }
}

/// Resolves when it is to stop, or when nobody is left who could say so.
async fn told(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stop| *stop).await;
}

async fn end(mut child: Running, who: Who, lines: &Lines) {
    let ask = |signal| {
        let pid = child.process.id().and_then(|pid| i32::try_from(pid).ok());
        // No id, or nobody there: it has ended, and is only waited for.
        pid.map(|pid| kill(Pid::from_raw(pid), signal))
    };
    ask(Signal::SIGTERM);
    let ended = match timeout(STOP, child.process.wait()).await {
        Ok(Ok(status)) => format!("{} has stopped ({})", who.name(), in_words(status)),
        Ok(Err(error)) => format!("{} cannot be waited for: {error}", who.name()),
        Err(_) => {
            // Dropping would kill it as well; but nobody would have waited for its end.
            let _ = child.process.kill().await;
            format!("{} did not stop within {} s and was killed", who.name(), STOP.as_secs())
        }
    };
    let _ = timeout(LAST_LINES, child.reader).await;
    lines.say(Who::Up, &ended);
}

fn in_words(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "in an unknown way".to_owned(),
    }
}

fn ended_at_start(who: Who, ended: Option<Ended>) -> Trouble {
    let exit = match ended.as_ref().and_then(|ended| ended.status.code()) {
        Some(3) => Exit::Refused,
        _ => Exit::Failed,
    };
    let how = ended.as_ref().map_or_else(|| "unseen".to_owned(), |ended| in_words(ended.status));
    let last = match ended {
        Some(ended) if !ended.last_line.is_empty() => format!(": {}", shown(&ended.last_line, 1000)),
        _ => String::new(),
    };
    Trouble {
        exit,
        refusal: Refusal::new(
            "did_not_start",
            format!("{} ended before it could be spoken to ({how}){last}", who.name()),
            "those are its own words; everything that `up` had started is stopped again",
            "do what they say, and run this again",
        ),
    }
}

fn silent(who: Who, socket: &Path) -> Trouble {
    Trouble::failed(Refusal::new(
        "did_not_start",
        format!(
            "{} runs, but nobody answered at {} within {} s",
            who.name(),
            socket.display(),
            START.as_secs()
        ),
        "its own words, in the lines above, may say why; everything that `up` had started is stopped again",
        "run this again; if it comes back, report it with the lines above",
    ))
}

#[cfg(test)]
mod tests;
