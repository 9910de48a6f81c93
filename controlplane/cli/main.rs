//! The operator's command line. It speaks the message API and nothing else: it names no store and no actor. `up`
//! alone starts something: this same binary, twice, as the two daemons (see [`daemons`]).

mod api;
mod arguments;
mod bundle;
mod caller;
mod command;
mod completions;
mod content;
mod daemons;
mod declare;
mod ending;
mod events;
mod invite;
mod node;
mod nodes;
mod retire;
mod rollout;
mod screen;
mod socket;
mod table;
mod up;
mod words;

use std::process::ExitCode;

use clap::Parser as _;
use tenure_actors::clock;
use tenure_protocol::command_line::without_tokens;
use tenure_protocol::id::Millis;

use crate::command::{Cli, Command};
use crate::daemons::Daemon;
use crate::ending::{Exit, Trouble};
use crate::screen::Screen;

fn main() -> ExitCode {
    if let Some(daemon) = std::env::args_os().next().and_then(|name| Daemon::named(&name)) {
        return daemon.run();
    }
    tenure_actors::privacy::keep();
    if let Err(refusal) = without_tokens(std::env::args_os()) {
        return arguments::screen(std::env::args_os()).trouble(&refusal.into()).into();
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return arguments::not_parsed(&error).into(),
    };
    let mut screen = Screen::of_this_process(cli.common.json);
    let exit = match run(cli, &mut screen) {
        Ok(exit) => exit,
        Err(trouble) => screen.trouble(&trouble),
    };
    exit.into()
}

/// One thread for everything: what `up` starts must die with it, and the kernel ties that to the thread.
fn run(cli: Cli, screen: &mut Screen) -> Result<Exit, Trouble> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Trouble::ours("the program could not start its threads", &error))?;
    runtime.block_on(dispatch(cli, screen))
}

async fn dispatch(cli: Cli, screen: &mut Screen) -> Result<Exit, Trouble> {
    let Cli { common, command } = cli;
    let now = Millis(clock::system().now().millis());
    let named = common.socket.as_deref();
    match command {
        Command::Up(order) => up::run(&order, screen).await,
        Command::Invite(order) => invite::invite(&order, named, screen, now).await,
        Command::Reinvite(order) => invite::reinvite(&order, named, screen, now).await,
        Command::Nodes => nodes::run(&socket::control_plane(named).await?, screen, now).await,
        Command::Node(order) => node::run(&order, &socket::control_plane(named).await?, screen, now).await,
        Command::Declare(order) => declare::run(&order, named, screen).await,
        Command::Render(order) => bundle::run(&order, named, screen).await,
        Command::Retire(order) => retire::run(&order, &socket::control_plane(named).await?, screen).await,
        Command::Rollout => rollout::run(&socket::control_plane(named).await?, screen).await,
        Command::Api => api::run(screen),
        Command::Completions(order) => completions::run(&order, screen),
        Command::Events(order) => events::run(&order, &socket::control_plane(named).await?, screen).await,
    }
}
