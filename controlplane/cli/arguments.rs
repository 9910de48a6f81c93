//! The words of a command line that was not read: what is wrong with them, on a screen of the form they ask for.

use std::ffi::OsString;

use clap::CommandFactory as _;
use tenure_protocol::command_line::mistake;

use crate::command::Cli;
use crate::ending::{Exit, Trouble};
use crate::screen::Screen;

/// What a line that is none says, or help and version, which are no mistakes.
pub(crate) fn not_parsed(error: &clap::Error) -> Exit {
    let Some(refusal) = mistake(error, Cli::command(), std::env::args_os()) else {
        // Whoever closed the pipe does not want to read them.
        let _ = error.print();
        return Exit::Done;
    };
    screen(std::env::args_os()).trouble(&Trouble { exit: Exit::Usage, refusal })
}

/// The screen of a command line that was not read: of the form its words ask for.
pub(crate) fn screen(mut words: impl Iterator<Item = OsString>) -> Screen {
    Screen::of_this_process(words.any(|word| word == "--json"))
}
