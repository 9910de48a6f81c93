//! The hand that works the service manager: asking about all units in one call, and one act at a time. Whether an act
//! worked is seen by asking again.

use std::time::Duration;

use tenure_protocol::refusal::chain;

use super::memory::{self, Running};
use super::systemctl::{self, Shown};
use crate::program::{ProgramError, Programs};
use crate::resource::Trouble;

/// How long one start, stop, restart or reload may take: systemd's own default is 90 s.
const ACT: Duration = Duration::from_secs(120);
const QUESTION: Duration = Duration::from_secs(30);
/// So many units are asked for in one call: what is said of them stays far below what is kept of a program's output, and
/// their names below what a program may be given.
const AT_ONCE: usize = 1024;
/// After so many names that it could not take, no more calls are spent on the rest.
const MOST_BAD: usize = 16;

/// The service manager on the bus: its name, object and interface.
const MANAGER: [&str; 3] =
    ["org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"];

/// What can be done with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Enable,
    Disable,
    /// Undoes what makes it start until the next boot only.
    DisableUntilBoot,
    Start,
    /// Nothing is done: it is on its way up already.
    Await,
    Stop,
    Restart,
    Reload,
    Mask,
    Unmask,
    /// Forgets that it failed, and how often it was begun: else systemd may refuse to begin it.
    Forgive,
}

impl Act {
    /// systemctl's words for it; none where there is nothing to tell it.
    const fn words(self) -> &'static [&'static str] {
        match self {
            Self::Enable => &["enable"],
            Self::Disable => &["disable"],
            Self::DisableUntilBoot => &["--runtime", "disable"],
            Self::Start => &["start"],
            Self::Await => &[],
            Self::Stop => &["stop"],
            Self::Restart => &["restart"],
            Self::Reload => &["reload"],
            Self::Mask => &["mask"],
            Self::Unmask => &["unmask"],
            Self::Forgive => &["reset-failed"],
        }
    }
}

/// systemd, by its own command: it works where the bus does not.
pub(super) struct Manager<'a> {
    pub(super) programs: &'a dyn Programs,
}

impl Manager<'_> {
    /// What it says of these units, in their order: one call for many. A name that it cannot take is nobody else's
    /// trouble, though it ends the call.
    pub(super) fn show(&self, names: &[&str]) -> Result<Vec<Result<Shown, Trouble>>, Trouble> {
        let (mut all, mut at, mut bad) = (Vec::with_capacity(names.len()), 0, 0);
        while let Some(rest) = names.get(at..).filter(|rest| !rest.is_empty()) {
            let some = rest.get(..AT_ONCE).unwrap_or(rest);
            let (said, unsaid) = self.ask(some)?;
            all.extend(said.into_iter().map(Ok));
            if let Some(trouble) = unsaid {
                bad += 1;
                let others = if bad > MOST_BAD { names.len() - all.len() } else { 1 };
                all.extend(std::iter::repeat_n(Err(trouble), others));
            }
            at = all.len();
        }
        Ok(all)
    }

    /// How these units stand, in their order; none where that cannot be had in one call over the bus.
    pub(super) fn running(&self, names: &[&str]) -> Option<Vec<Running>> {
        let many = names.len().to_string();
        let asked =
            [&["--json=short", "call"], &MANAGER[..], &["ListUnitsByNames", "as", &many], names].concat();
        let ran = (names.len() <= AT_ONCE).then(|| self.programs.run("busctl", &asked, QUESTION))?.ok()?;
        memory::running(&ran.out, names.len()).filter(|_| ran.succeeded())
    }

    /// One call: what was said, of as many as it was said of, and why not of the next one.
    fn ask(&self, names: &[&str]) -> Result<(Vec<Shown>, Option<Trouble>), Trouble> {
        let properties = format!("--property={}", systemctl::PROPERTIES);
        let arguments: Vec<&str> =
            ["show", "--no-pager", &properties, "--"].into_iter().chain(names.iter().copied()).collect();
        let ran = self.programs.run("systemctl", &arguments, QUESTION).map_err(not_run)?;
        let (said, unsaid) = systemctl::read(names, &ran.out);
        let trouble =
            |error| Trouble::unknown("could_not_look", format!("{}: {}", chain(&error), ran.last_words()));
        Ok((said, unsaid.map(trouble)))
    }

    /// Does this with a unit.
    pub(super) fn act(&self, act: Act, name: &str) -> Result<(), Trouble> {
        let words = act.words();
        if words.is_empty() {
            return Ok(());
        }
        let arguments = [&["--no-ask-password", "--quiet"], words, &["--", name]].concat();
        let ran = self.programs.run("systemctl", &arguments, ACT).map_err(not_run)?;
        if ran.succeeded() {
            return Ok(());
        }
        let reason = format!("`systemctl {} {name}`: {}", words.join(" "), ran.last_words());
        Err(Trouble::failed("unit_failed", reason))
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
