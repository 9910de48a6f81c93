//! `tenure completions SHELL`: a script for the shell, made from the same description that the command line is parsed
//! by. It asks no control plane.

use clap::CommandFactory as _;

use crate::command::{self, Cli};
use crate::ending::{Exit, Trouble};
use crate::screen::Screen;

pub(crate) fn run(order: &command::Completions, screen: &mut Screen) -> Result<Exit, Trouble> {
    screen.print(&order.shell.script(Cli::command()))?;
    Ok(Exit::Done)
}
