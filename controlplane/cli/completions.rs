//! `tenure completions SHELL`: a script for the shell, made from the same description that the command line is parsed
//! by. It asks no control plane.

use clap::CommandFactory as _;
use clap_complete::aot;

use crate::command::{self, Cli, Shell};
use crate::ending::{Exit, Trouble};
use crate::screen::Screen;

pub(crate) fn run(order: &command::Completions, screen: &mut Screen) -> Result<Exit, Trouble> {
    screen.print(&script(order.shell))?;
    Ok(Exit::Done)
}

fn script(shell: Shell) -> String {
    let shell = match shell {
        Shell::Bash => aot::Shell::Bash,
        Shell::Zsh => aot::Shell::Zsh,
        Shell::Fish => aot::Shell::Fish,
    };
    let mut bytes = Vec::new();
    aot::generate(shell, &mut Cli::command(), "tenure", &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests;
