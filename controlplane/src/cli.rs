//! The command line of the control plane's own program: it runs the daemon, and completes its own line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use tenure_actors::log::{self, Log};
use tenure_actors::{Ended, clock, signal};
use tenure_protocol::command_line::{Shell, mistake, without_tokens};
use tenure_protocol::refusal::Explain as _;

use crate::config::Config;
use crate::daemon::{self, Options};
use crate::ground::Ground;

/// The authority over nodes, leases and declarations.
#[derive(Debug, Parser)]
#[command(name = "tenure-control", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the control plane in the foreground.
    Run(Run),
    /// Print a script that completes what is typed, for a shell to read at its start.
    #[command(after_help = SOURCED)]
    Completions {
        /// For which shell.
        shell: Shell,
    },
}

const SOURCED: &str = "\
bash: source <(tenure-control completions bash), in ~/.bashrc
zsh:  tenure-control completions zsh > a file `_tenure-control` in a folder of $fpath
fish: tenure-control completions fish > ~/.config/fish/completions/tenure-control.fish";

#[derive(Debug, clap::Args)]
struct Run {
    /// The folder that everything lies below.
    #[arg(long, default_value = "/")]
    root: PathBuf,
    /// Where hosts are listened for, as ADDRESS:PORT; goes before what is configured.
    #[arg(long, value_parser = listen)]
    listen: Option<SocketAddr>,
    /// Where hosts reach it, as HOST:PORT; may be given more than once; goes before what is configured.
    #[arg(long)]
    advertise: Vec<String>,
    /// Stop when the process that started this one ends.
    #[arg(long, hide = true)]
    die_with_parent: bool,
}

fn listen(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "an address and a port are needed, as in 0.0.0.0:7443".to_owned())
}

const NAME: &str = "tenure-control";

const REFUSED: u8 = 3;
const USAGE: u8 = 2;
const FAILED: u8 = 1;

/// Does what the command line says. The status is the contract's: 0 done, 1 our fault, 2 usage, 3 refused.
pub fn main() -> ExitCode {
    tenure_actors::privacy::keep();
    if let Err(refusal) = without_tokens(std::env::args_os()) {
        say(std::io::stderr(), &refusal.in_words(NAME));
        return ExitCode::from(REFUSED);
    }
    match Cli::try_parse().map(|cli| cli.command) {
        Ok(Command::Run(run)) => start(run),
        Ok(Command::Completions { shell }) => {
            say(std::io::stdout(), shell.script(Cli::command()).trim_end());
            ExitCode::SUCCESS
        }
        Err(error) => not_parsed(&error),
    }
}

/// What a line that is none says, or help and version, which are no mistakes.
fn not_parsed(error: &clap::Error) -> ExitCode {
    let Some(refusal) = mistake(error, Cli::command(), std::env::args_os()) else {
        // Whoever closed the pipe does not want to read them.
        let _ = error.print();
        return ExitCode::SUCCESS;
    };
    say(std::io::stderr(), &refusal.in_words(NAME));
    ExitCode::from(USAGE)
}

/// A reader that has heard enough (`| grep -q`) is no fault of ours.
fn say(mut to: impl std::io::Write, text: &str) {
    let _ = writeln!(to, "{text}");
}

fn start(run: Run) -> ExitCode {
    let level = Config::read(&Ground::new(&run.root).config(), None, &[]).map(|config| config.log);
    log::start(NAME, Log::Auto, &level.unwrap_or_default());
    if run.die_with_parent && !parent_is_watched() {
        tracing::info!("the process that started this one is gone already");
        return ExitCode::SUCCESS;
    }
    take_every_descriptor();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(run_daemon(run)),
        Err(error) => {
            tracing::error!(%error, "no threads to run on");
            ExitCode::from(FAILED)
        }
    }
}

/// Each node holds a connection, and shells start programs with room for about a thousand files. What is allowed is
/// taken; where even that fails, the room is what it was.
fn take_every_descriptor() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, most)| setrlimit(Resource::RLIMIT_NOFILE, most, most));
    if let Err(error) = raised {
        tracing::warn!(%error, "the number of files that may be open stays as it is");
    }
}

/// Asks for a signal when the parent ends; false: it has ended already, before it could be watched. Whose parent has
/// ended is the child of whoever takes orphans: of the first process, unless that is the very program that starts us.
fn parent_is_watched() -> bool {
    let before = nix::unistd::getppid();
    if let Err(error) = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGTERM) {
        tracing::warn!(%error, "will not notice the end of the process that started this one");
        return true;
    }
    let program = |process: &str| std::fs::read_link(format!("/proc/{process}/exe")).ok();
    let taken_in = before.as_raw() == 1 && program("1") != program("self");
    nix::unistd::getppid() == before && !taken_in
}

async fn run_daemon(run: Run) -> ExitCode {
    let Run { root, listen, advertise, .. } = run;
    // From here on a signal is an answer to wait for, also while the daemon still starts.
    let asked = tokio::spawn(signal::shutdown_asked());
    let control = match daemon::start(Options { root, listen, advertise, clock: clock::system() }).await {
        Ok(control) => control,
        Err(refusal) => {
            let refusal = refusal.refusal();
            let (code, means, remedy) = (&refusal.code, &refusal.means, &refusal.remedy);
            tracing::error!(%code, %means, "do" = %remedy, "not started: {}", refusal.happened);
            return ExitCode::from(REFUSED);
        }
    };
    tokio::select! {
        signal = asked => {
            tracing::info!(signal = signal.unwrap_or("unknown"), "stopping");
            control.stop().await;
            ExitCode::SUCCESS
        }
        ended = control.ended() => {
            match ended {
                Ended::Stopped => {}
                Ended::GaveUp { child, why } => tracing::error!(%child, %why, "gave up"),
            }
            ExitCode::from(FAILED)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The help of the program and of its one command, as they are printed.
    fn help() -> String {
        let mut control = Cli::command();
        control.build();
        let mut text = format!("## tenure-control\n\n{}", control.render_long_help());
        for command in control.get_subcommands_mut().filter(|command| command.get_name() != "help") {
            let help = command.render_long_help();
            text.push_str(&format!("\n## tenure-control {}\n\n{help}", command.get_name()));
        }
        text
    }

    #[test]
    fn the_help_is_the_golden_text() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/help/tenure-control.txt");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, help()).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(golden == help(), "the help changed: run `tests/run bless` and read what changed");
    }
}
