//! What can be typed. Parsed once; behind it every name and number is valid by its type.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tenure_protocol::command_line::Shell;
use tenure_protocol::id::NodeId;
use tenure_protocol::operator::Rejoin;

/// Holds Linux machines in the state you declare, and never takes over what it merely found.
#[derive(Debug, Parser)]
#[command(name = "tenure", version, disable_help_subcommand = true, after_help = AFTER)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER: &str = "\
Exit status: 0 done, 1 our fault, 2 usage, 3 refused, 4 failed, 5 outstanding when --wait ran out,
6 nothing matched. The control plane is found by --socket, else by TENURE_SOCKET, else at the system's
socket or in this user's sandbox.";

/// What every command takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Common {
    /// Print JSON for programs instead of tables and sentences
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// The control plane's socket
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a control plane and a host of your own, in the foreground
    Up(Up),
    /// Reserve a node and print the token that makes a machine this node
    Invite(Invite),
    /// Print a fresh token for a node there is, or the outstanding one again
    Reinvite(Reinvite),
    /// List the nodes
    Nodes,
    /// Show everything known of one node
    Node(Node),
    /// Declare what a fleet folder says, or show what that would change
    Declare(Declare),
    /// Render one node of a fleet folder into a bundle
    Render(Render),
    /// Withdraw a node's standing, for good
    Retire(Node),
    /// Show which nodes have applied what is declared, failed it, or are outstanding
    Rollout,
    /// List what happened, newest last
    Events(Events),
    /// Print every message there is: its address, its doors and the shape of its body; needs no control plane
    Api,
    /// Print a script that completes what is typed, for a shell to read at its start
    Completions(Completions),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Up {
    /// Everything in a directory tree of your own; needs no root and touches nothing else [without it, as root: this
    /// machine is raised adopted, and what is found on it stays as it is]
    #[arg(long)]
    pub(crate) sandbox: bool,
    /// Where that tree lies [default: $XDG_STATE_HOME/tenure]
    #[arg(long, value_name = "DIR", requires = "sandbox")]
    pub(crate) root: Option<PathBuf>,
    /// Where the control plane listens for nodes [default: as the last time, else 127.0.0.1:7443]
    #[arg(long, value_name = "ADDR:PORT", value_parser = listen)]
    pub(crate) listen: Option<SocketAddr>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Invite {
    /// Its name; without one, one is minted
    pub(crate) node: Option<NodeId>,
    /// Keep what is found on the machine until its module is taken
    #[arg(long)]
    pub(crate) adopted: bool,
    /// How long the token can be redeemed, as in 24h [default: 30min]
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) valid: Option<Duration>,
    /// How the node comes back after its session lapsed
    #[arg(long, value_enum, default_value_t = RejoinBy::Key)]
    pub(crate) rejoin: RejoinBy,
    /// The control plane's clock is right now: do not refuse because it was ahead before
    #[arg(long)]
    pub(crate) clock_is_right: bool,
    /// Write the token to this new file, for its owner only, instead of printing it
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum RejoinBy {
    /// By proof of its own key
    Key,
    /// Only by a new invitation
    Invitation,
}

impl From<RejoinBy> for Rejoin {
    fn from(by: RejoinBy) -> Self {
        match by {
            RejoinBy::Key => Self::Key,
            RejoinBy::Invitation => Self::Invitation,
        }
    }
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Reinvite {
    /// Which node
    pub(crate) node: NodeId,
    /// How long the token can be redeemed, as in 24h [default: 30min]
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) valid: Option<Duration>,
    /// End the old enrolment now, not when the new token is redeemed
    #[arg(long)]
    pub(crate) revoke_now: bool,
    /// The control plane's clock is right now: do not refuse because it was ahead before
    #[arg(long)]
    pub(crate) clock_is_right: bool,
    /// Write the token to this new file, for its owner only, instead of printing it
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Node {
    /// Which node
    pub(crate) node: NodeId,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Declare {
    /// The fleet folder: the one with fleet.toml in it
    pub(crate) dir: PathBuf,
    /// Only show what would change, and what each connected node says it would do; asks for ten minutes at most
    #[arg(long, conflicts_with = "wait")]
    pub(crate) plan: bool,
    /// Wait until every node of the folder has applied or failed it
    #[arg(long, value_name = "SPAN", num_args = 0..=1, require_equals = true, default_missing_value = "60s", value_parser = span)]
    pub(crate) wait: Option<Duration>,
    /// How many resources each node may lose by it in all; without it, a tenth, at least one, and never all
    #[arg(long, value_name = "N", value_parser = number)]
    pub(crate) allow_removals: Option<u64>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Render {
    /// The fleet folder: the one with fleet.toml in it
    pub(crate) dir: PathBuf,
    /// Which node of it
    #[arg(long, value_name = "N")]
    pub(crate) node: NodeId,
    /// Where to write the bundle; must not be there yet
    #[arg(long, value_name = "B")]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Events {
    /// Of this node only
    #[arg(long, value_name = "N")]
    pub(crate) node: Option<NodeId>,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = SOURCED)]
pub(crate) struct Completions {
    /// For which shell
    pub(crate) shell: Shell,
}

const SOURCED: &str = "\
bash: source <(tenure completions bash), in ~/.bashrc
zsh:  tenure completions zsh > a file `_tenure` in a folder of $fpath
fish: tenure completions fish > ~/.config/fish/completions/tenure.fish";

fn listen(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr =
        text.parse().map_err(|_| "an address and a port are needed, as in 127.0.0.1:7443".to_owned())?;
    if address.port() == 0 {
        Err("a port of its own is needed, so that it can be dialled".to_owned())
    } else {
        Ok(address)
    }
}

fn span(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| "a time is needed, as in 90s, 30min or 24h".to_owned())
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "a whole number is needed, as in 3".to_owned())
}

#[cfg(test)]
mod tests;
