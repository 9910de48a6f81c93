//! `tenure up`: a control plane and a host of one's own in the foreground, each a process, both this very binary: with
//! `--sandbox` in one state folder; without, for root, in this machine's own places, the machine raised adopted. It
//! starts them in order, joins the machine, restarts what dies and stops them in reverse. A second run continues.

mod child;
mod example;
pub(crate) mod ground;
mod join;
mod lines;
mod listen;
mod lock;
mod pause;
mod services;
mod vacant;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::json;
use tenure_actors::signal;

use crate::command;
use crate::daemons::{self, Daemon};
use crate::ending::{Exit, Trouble};
use crate::screen::Screen;
use crate::words::quoted;
use child::{Kept, Program};
use ground::Ground;
use join::{How, Joined, Newcomer};
use lines::{Lines, Who};

pub(crate) async fn run(order: &command::Up, screen: &mut Screen) -> Result<Exit, Trouble> {
    may_start(order.sandbox, nix::unistd::geteuid().is_root())?;
    let ground = if order.sandbox { sandbox(order.root.as_deref())? } else { Ground::of_the_machine() };
    if !order.sandbox {
        services::none_is_active().await?;
    }
    ground.create()?;
    let _held = lock::hold(&ground.lock(), ground.state())?;
    let binary = std::env::current_exe()
        .map_err(|error| Trouble::ours("where this program lies cannot be told", &error))?;
    let lines = Lines::to_stderr();
    lines.say(Who::Up, &where_it_lies(&ground));

    let mut session = Session { ground, binary, lines, control: None, host: None };
    let ended = tokio::select! {
        ended = session.start_and_stay(order, screen) => ended,
        signal = signal::shutdown_asked() => {
            session.lines.say(Who::Up, &format!("stopping ({signal})"));
            Ok(Exit::Done)
        }
    };
    let lines = session.lines.clone();
    session.stop().await;
    if ended.is_ok() {
        lines.say(Who::Up, "everything is stopped; run the same command to continue");
    }
    ended
}

fn may_start(sandbox: bool, root: bool) -> Result<(), Trouble> {
    match (sandbox, root) {
        (true, _) | (false, true) => Ok(()),
        (false, false) => Err(Trouble::usage(
            "needs_root",
            "`up` without --sandbox is for root",
            "it would hold this machine, and only root can; nothing was started",
            "try it in a directory tree of your own: `tenure up --sandbox`",
        )),
    }
}

fn where_it_lies(ground: &Ground) -> String {
    if ground.is_sandbox() {
        format!("everything lies in {}", ground.state().display())
    } else {
        "this machine is raised adopted: what is found on it stays as it is".to_owned()
    }
}

fn newcomer(ground: &Ground) -> Result<Newcomer, Trouble> {
    if ground.is_sandbox() {
        return Newcomer::of_a_sandbox();
    }
    let name = std::fs::read_to_string(HOST_NAME)
        .map_err(|error| Trouble::ours("the name of this machine cannot be read", &error))?;
    Newcomer::this_machine(&name)
}

const HOST_NAME: &str = "/proc/sys/kernel/hostname";

fn sandbox(root: Option<&Path>) -> Result<Ground, Trouble> {
    match root {
        Some(root) => {
            Ground::at(root).map_err(|error| Trouble::ours("the folder of --root cannot be found", &error))
        }
        None => Ground::of_this_user().ok_or_else(no_home),
    }
}

fn no_home() -> Trouble {
    Trouble::usage(
        "no_home",
        "neither $XDG_STATE_HOME nor $HOME says where your state lies",
        "nothing was started",
        "name a folder: `tenure up --sandbox --root DIR`",
    )
}

/// What runs. Stopped in reverse of how it was started, however far that came.
struct Session {
    ground: Ground,
    binary: PathBuf,
    lines: Lines,
    control: Option<Kept>,
    host: Option<Kept>,
}

impl Session {
    /// Ends only by failing; while all is well, somebody else asks for the end.
    async fn start_and_stay(&mut self, order: &command::Up, screen: &mut Screen) -> Result<Exit, Trouble> {
        // What the operator configured for this machine goes before where `up` listened last.
        let configured =
            !self.ground.is_sandbox() && order.listen.is_none() && self.ground.control_config().exists();
        let listen = (!configured).then(|| listen::choose(order.listen, &self.ground.listen()));
        let arguments = daemons::control_arguments(&self.ground.control(), listen);
        let kept = self.keep(Daemon::Control, arguments)?;
        let control = self.control.insert(kept).until_answering(&self.ground.control_socket()).await?;
        vacant::check(&self.ground.host_socket())?;
        let arguments = daemons::host_arguments(&self.ground.machine(), self.ground.is_sandbox());
        let kept = self.keep(Daemon::Host, arguments)?;
        let host = self.host.insert(kept).until_answering(&self.ground.host_socket()).await?;
        let joined = join::join(&control, &host, &newcomer(&self.ground)?).await?;
        drop((control, host));
        let how = match joined.how {
            How::Anew => "has joined as node",
            How::Before => "is node",
            How::ElsewhereNow => "dials the new address as node",
        };
        let which = if self.ground.is_sandbox() { "this sandbox's machine" } else { "this machine" };
        self.lines.say(Who::Up, &format!("{which} {how} {}; Ctrl-C stops everything", joined.node));
        if let Some(listen) = listen {
            listen::remember(listen, &self.ground.listen());
        }
        if let Some(folder) = self.ground.example() {
            example::write(&folder)?;
        }
        self.print_what_to_try(&joined, screen)?;
        std::future::pending().await
    }

    fn keep(&self, daemon: Daemon, arguments: Vec<OsString>) -> Result<Kept, Trouble> {
        let who = match daemon {
            Daemon::Control => Who::Control,
            Daemon::Host => Who::Host,
        };
        let program = Program { who, path: self.binary.clone(), name: daemon.name(), arguments };
        Kept::start(program, self.lines.clone())
    }

    fn print_what_to_try(&self, joined: &Joined, screen: &mut Screen) -> Result<(), Trouble> {
        let commands = commands(&self.binary, &self.ground, joined);
        if screen.is_json() {
            return screen.print_json(&json!({
                "node": joined.node,
                "control_socket": self.ground.control_socket(),
                "host_socket": self.ground.host_socket(),
                "machine": self.ground.machine(),
                "try": commands,
            }));
        }
        let files = if self.ground.is_sandbox() {
            format!("the machine's files appear below {}\n\n", self.ground.machine().display())
        } else {
            String::new()
        };
        screen.print(&format!("\ntry, in another terminal:\n\n  {}\n\n{files}", commands.join("\n  ")))
    }

    async fn stop(self) {
        for kept in [self.host, self.control].into_iter().flatten() {
            kept.stop().await;
        }
    }
}

/// What to try next, to be typed as it stands: the binary that runs, and its socket.
fn commands(binary: &Path, ground: &Ground, joined: &Joined) -> Vec<String> {
    let word = |path: &Path| quoted(&path.display().to_string());
    let begin = format!("{} --socket {}", word(binary), word(&ground.control_socket()));
    let second = match ground.example() {
        Some(example) => format!("{begin} declare {} --wait", word(&example)),
        None => format!("{begin} events --node {}", joined.node),
    };
    vec![format!("{begin} nodes"), second, format!("{begin} node {}", joined.node)]
}

#[cfg(test)]
mod tests;
