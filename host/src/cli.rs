//! The commands of `tenure-host`: the daemon itself, and what somebody at this machine may ask and do with no control
//! plane at hand (H-01). A writing command speaks to the daemon where one answers; else it takes the store's lock and
//! runs the same code; else it is refused with the holder's pid.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use serde::Serialize;
use tenure_actors::clock;
use tenure_protocol::command_line::{Shell, mistake, token_as_an_argument, without_tokens};
use tenure_protocol::refusal::{Explain as _, Refusal};

use crate::daemon::StartRefused;
use crate::ground::Ground;
use crate::identity::keep;
use crate::reconcile::unreadable;
use crate::store::{Opened, Store};

mod ask;
mod enrol;
mod look;
mod plan;
mod run;
mod show;
mod snapshot;

/// Holds this machine in its declared state.
#[derive(Debug, Parser)]
#[command(name = "tenure-host", version, max_term_width = 100, after_help = AFTER)]
struct Cli {
    /// The directory that everything of the host hangs under.
    #[arg(long, global = true, value_name = "DIR", default_value = "/")]
    root: PathBuf,
    /// Hold a directory tree only: no packages, units, owners and groups.
    #[arg(long, global = true)]
    sandbox: bool,
    /// Answer as JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

const SOURCED: &str = "\
bash: source <(tenure-host completions bash), in ~/.bashrc
zsh:  tenure-host completions zsh > a file `_tenure-host` in a folder of $fpath
fish: tenure-host completions fish > ~/.config/fish/completions/tenure-host.fish";

const AFTER: &str = "\
Exit status: 0 done, 1 our fault, 2 usage, 3 refused, 4 failed, 5 outstanding. None of these commands needs a
control plane; where the daemon runs they ask it, else they read its store, which needs root.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the daemon in the foreground.
    Run {
        /// End when the process that started this one ends.
        #[arg(long, hide = true)]
        die_with_parent: bool,
    },
    /// Join a control plane: hand over the token of an invitation.
    #[command(override_usage = "tenure-host enrol [OPTIONS] --token-file <FILE>")]
    Enrol {
        /// A file that holds the token and that nobody else can read, or `-` for standard input.
        #[arg(long, value_name = "FILE", required_unless_present_any = ["token", "argument"])]
        token_file: Option<PathBuf>,
        /// Refused: an argument can be read by everybody on this machine.
        #[arg(long, hide = true, value_name = "TOKEN")]
        token: Option<String>,
        /// Refused, likewise.
        #[arg(hide = true, value_name = "TOKEN")]
        argument: Option<String>,
    },
    /// Show what this machine is to its control plane, how the link is, and what the last pass did.
    Status,
    /// List what is ours on this machine, and how it became ours.
    Owned,
    /// List what was found here and is kept as it is.
    Held,
    /// Show what a pass would do with what is stored, or with a bundle; changes nothing.
    Plan {
        /// A folder with a rendered declaration.
        bundle: Option<PathBuf>,
    },
    /// Reconcile what is stored, now; or, on a machine without a control plane, a bundle.
    Apply {
        /// A folder with a rendered declaration.
        bundle: Option<PathBuf>,
    },
    /// Print a script that completes what is typed, for a shell to read at its start.
    #[command(after_help = SOURCED)]
    Completions {
        /// For which shell.
        shell: Shell,
    },
}

/// How a command ended, short of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Done {
    /// As asked.
    Well,
    /// Something failed, or nobody could look.
    Failed,
    /// Something waits for its turn.
    Outstanding,
    /// It is our own fault.
    OurFault,
}

/// The program. Reads the arguments of the process.
pub fn main() -> ExitCode {
    tenure_actors::privacy::keep();
    let json = std::env::args_os().any(|word| word == "--json");
    if let Err(refusal) = without_tokens(std::env::args_os()) {
        refuse(&refusal, json);
        return ExitCode::from(3);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_parsed(&error, json),
    };
    let ground = Ground::new(cli.root, cli.sandbox);
    if !matches!(cli.command, Command::Run { .. }) {
        tenure_actors::log::start("tenure-host", tenure_actors::log::Log::Terminal, "error");
    }
    let json = cli.json;
    let done = match cli.command {
        Command::Run { die_with_parent } => run::run(ground, die_with_parent),
        Command::Enrol { token: Some(_), .. } | Command::Enrol { argument: Some(_), .. } => {
            Err(token_as_an_argument())
        }
        Command::Enrol { token_file, .. } => enrol::enrol(ground, token_file, json),
        Command::Status => look::status(&ground, json),
        Command::Owned => look::owned(&ground, json),
        Command::Held => look::held(&ground, json),
        Command::Plan { bundle } => plan::plan(&ground, bundle, json),
        Command::Apply { bundle } => plan::apply(&ground, bundle, json),
        Command::Completions { shell } => {
            say(std::io::stdout(), shell.script(Cli::command()).trim_end());
            Ok(Done::Well)
        }
    };
    match done {
        Ok(Done::Well) => ExitCode::SUCCESS,
        Ok(Done::OurFault) => ExitCode::from(1),
        Ok(Done::Failed) => ExitCode::from(4),
        Ok(Done::Outstanding) => ExitCode::from(5),
        Err(refusal) => {
            refuse(&refusal, json);
            ExitCode::from(3)
        }
    }
}

/// What a line that is none says, or help and version, which are no mistakes.
fn not_parsed(error: &clap::Error, json: bool) -> ExitCode {
    let Some(refusal) = mistake(error, Cli::command(), std::env::args_os()) else {
        // Whoever closed the pipe does not want to read them.
        let _ = error.print();
        return ExitCode::SUCCESS;
    };
    refuse(&refusal, json);
    ExitCode::from(2)
}

pub(crate) fn refuse(refusal: &Refusal, json: bool) {
    #[derive(Serialize)]
    struct Refused<'a> {
        refusal: &'a Refusal,
    }
    if json && let Ok(text) = serde_json::to_string(&Refused { refusal }) {
        say(std::io::stdout(), &text);
    }
    say(std::io::stderr(), &refusal.in_words("tenure-host"));
}

/// Prints an answer: as JSON, or as `text` says it.
fn print<T: Serialize>(json: bool, answer: &T, text: impl FnOnce() -> String) {
    match json.then(|| serde_json::to_string_pretty(answer)) {
        Some(Ok(json)) => say(std::io::stdout(), &json),
        Some(Err(_)) | None => say(std::io::stdout(), text().trim_end()),
    }
}

/// A reader that has heard enough (`| grep -q`) is no fault of ours.
fn say(mut to: impl std::io::Write, text: &str) {
    let _ = writeln!(to, "{text}");
}

/// The store for a command that does what the daemon would do: made where there is none, and with the identity that a
/// lost one left beside the key. What was lost is said.
fn opened(ground: &Ground) -> Result<Store, Refusal> {
    ground
        .create()
        .map_err(|source| StartRefused::Ground { root: ground.root().to_owned(), source }.refusal())?;
    let Opened { store, note } =
        Store::open(ground, true, clock::system().now()).map_err(|error| error.refusal())?;
    if let Some(note) = note {
        say(std::io::stderr(), &format!("tenure-host: {note}"));
    }
    if let Err(error) = keep::recover(&store, ground) {
        store.close();
        return Err(unreadable(error));
    }
    Ok(store)
}

/// A runtime for one command.
fn runtime() -> Result<tokio::runtime::Runtime, Refusal> {
    may_start_threads()?;
    let built = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    built.map_err(|error| no_threads(&error))
}

/// A runtime on this very thread, for a command that asks one thing and waits for the answer.
fn asking() -> Result<tokio::runtime::Runtime, Refusal> {
    may_start_threads()?;
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| no_threads(&error))
}

/// Where this user may start no thread a runtime would break off instead of saying so, and a store could not be opened.
fn may_start_threads() -> Result<(), Refusal> {
    let spare = std::thread::Builder::new().spawn(|| ()).map_err(|error| no_threads(&error))?;
    drop(spare.join());
    Ok(())
}

fn no_threads(error: &std::io::Error) -> Refusal {
    Refusal::new(
        "no_runtime",
        format!("the program could not start its threads: {error}"),
        "nothing was done",
        "look at the limits of this user (`ulimit -a`), then run it again",
    )
}

#[cfg(test)]
mod tests;
