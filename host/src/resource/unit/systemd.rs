//! The hand that works the service manager: asking about all units in one call, and one act at a time. Whether an act
//! worked is seen by asking again.

use std::time::Duration;

use tenure_protocol::refusal::chain;

use super::systemctl::{self, Shown};
use crate::program::{ProgramError, Programs};
use crate::resource::Trouble;

/// How long one start, stop, restart or reload may take: systemd's own default is 90 s.
const ACT: Duration = Duration::from_secs(120);
const QUESTION: Duration = Duration::from_secs(30);

/// What can be done with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Enable,
    Disable,
    Start,
    Stop,
    Restart,
    Reload,
}

impl Act {
    /// systemctl's word for it. A reload that a unit cannot do becomes a restart, as an operator would.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Enable => "enable",
            Self::Disable => "disable",
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
            Self::Reload => "reload-or-restart",
        }
    }
}

/// systemd, by its own command: it works where the bus does not.
pub(super) struct Manager<'a> {
    pub(super) programs: &'a dyn Programs,
}

impl Manager<'_> {
    /// What it says of these units, in their order; one call.
    pub(super) fn show(&self, names: &[&str]) -> Result<Vec<Shown>, Trouble> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let properties = format!("--property={}", systemctl::PROPERTIES);
        let arguments: Vec<&str> =
            ["show", "--no-pager", &properties, "--"].into_iter().chain(names.iter().copied()).collect();
        let ran = self.programs.run("systemctl", &arguments, QUESTION).map_err(not_run)?;
        let unsaid =
            |error| Trouble::unknown("could_not_look", format!("{}: {}", chain(&error), ran.last_words()));
        systemctl::read(names, &ran.out).map_err(unsaid)
    }

    /// Does this with a unit.
    pub(super) fn act(&self, act: Act, name: &str) -> Result<(), Trouble> {
        let word = act.word();
        let ran = self
            .programs
            .run("systemctl", &["--no-ask-password", "--quiet", word, "--", name], ACT)
            .map_err(not_run)?;
        if ran.succeeded() {
            return Ok(());
        }
        Err(Trouble::failed("unit_failed", format!("`systemctl {word} {name}`: {}", ran.last_words())))
    }

    /// Has it read its unit files anew.
    pub(super) fn daemon_reload(&self) -> Result<(), Trouble> {
        let ran = self.programs.run("systemctl", &["daemon-reload"], ACT).map_err(not_run)?;
        if ran.succeeded() {
            Ok(())
        } else {
            Err(Trouble::failed("unit_failed", format!("`systemctl daemon-reload`: {}", ran.last_words())))
        }
    }
}

fn not_run(error: ProgramError) -> Trouble {
    match error {
        ProgramError::NotThere(_) => Trouble::refused("no_service_manager", chain(&error)),
        ProgramError::Io { .. } | ProgramError::TooLong { .. } | ProgramError::NotAwaited(_) => {
            Trouble::failed("unit_failed", chain(&error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_manager_that_is_not_there_and_one_that_does_not_answer_are_told_apart() {
        let missing = not_run(ProgramError::NotThere("systemctl".to_owned()));
        assert_eq!(missing.code, "no_service_manager");
        let slow = ProgramError::TooLong { program: "systemctl".to_owned(), within: QUESTION };
        let trouble = not_run(slow);
        assert_eq!(trouble.code, "unit_failed");
        assert!(trouble.reason.contains(&format!("after {} s", QUESTION.as_secs())), "{trouble:?}");
    }
}
