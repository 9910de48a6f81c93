//! The words of a command line, before they are read as one: what is wrong with them would be said with the words
//! themselves, and a token is printed nowhere (N-02, O-62).

use std::ffi::OsString;

use clap::CommandFactory as _;
use tenure_protocol::command_line::mistake;
use tenure_protocol::refusal::Refusal;
use tenure_protocol::token;

use crate::command::Cli;
use crate::ending::{Exit, Trouble};
use crate::screen::Screen;

/// Refuses words among which is a token.
pub(crate) fn without_tokens(mut words: impl Iterator<Item = OsString>) -> Result<(), Trouble> {
    if words.any(|word| token::is_in(&word.to_string_lossy())) { Err(refused()) } else { Ok(()) }
}

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

fn refused() -> Trouble {
    Refusal::new(
        "token_in_arguments",
        "a token was given as an argument",
        "arguments can be read by everybody on this machine while the program runs, and stay in the shell's history; \
         nothing was done",
        "no command of `tenure` takes a token: bring it to its machine in a file, and run there \
         `tenure-host enrol --token-file FILE`; if others may have seen it, run `tenure reinvite NODE --revoke-now`",
    )
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    // case: O-62
    #[test]
    fn a_token_among_the_words_is_refused_before_they_are_read_and_not_said_again() {
        let words = |words: &[&str]| without_tokens(words.iter().map(OsString::from));
        assert!(words(&["tenure", "node", "edge-1"]).is_ok());
        for given in [["tenure", "node", "tenure_e1_abc"], ["tenure", "--socket=tenure_e1_abc", "nodes"]] {
            let trouble = words(&given).unwrap_err();
            assert!(trouble.refusal.is("token_in_arguments") && !trouble.text().contains("tenure_e1_"));
        }
    }
}
