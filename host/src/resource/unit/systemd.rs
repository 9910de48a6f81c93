//! The hand that works the service manager: asking about all units in one call, and one act at a time. Whether an act
//! worked is seen by asking again.
//!
//! It asks over the bus, and systemctl where that leaves anything unsaid; what either costs stands in [`super::memory`]. It
//! acts through systemctl. Of acting this was measured, with 200 units that run, the middle of three rounds on a very busy
//! machine of two cores (load above 20: compare within a column only):
//!
//! | act, each time | 252 | 257 |
//! |---|---|---|
//! | `systemctl enable`, which has all unit files read anew | 717 ms | 1168 ms |
//! | `systemctl --no-reload enable` | 127 ms | 146 ms |
//! | `busctl call … EnableUnitFiles` | 102 ms | 163 ms |
//! | `systemctl restart` | 127 ms | 188 ms |
//! | `busctl call … RestartUnit`, which does not wait for the end of it | 113 ms | 140 ms |
//! | `systemctl daemon-reload` | 679 ms | 1214 ms |
//!
//! So what costs is the reading, not the way to ask for it: it is had once for many. Both ways begin a process; what a
//! connection of one's own would save of that was not measured for acts. systemctl also waits for the end of what it
//! asked for, and works where there is no bus.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tenure_protocol::refusal::chain;

use super::systemctl::{self, Shown};
use crate::program::{Listed, ProgramError, Programs};
use crate::resource::Trouble;

/// How long one start, stop, restart or reload may take: systemd's own default is 90 s.
const ACT: Duration = Duration::from_secs(120);
const QUESTION: Duration = Duration::from_secs(30);
/// How long the bus may take: over a hundred times what it takes for 200 units.
const BUS: Duration = Duration::from_secs(10);
/// So many units are asked for in one call: what is said of them stays far below what is kept of a program's output, and
/// their names below what a program may be given.
const AT_ONCE: usize = 1024;
/// After so many names that it could not take, no more calls are spent on the rest.
const MOST_BAD: usize = 16;

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

/// What is done to many units before the next is done to any: the service manager has to have read its unit files in
/// between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The links by which they start with the machine, and those that forbid them to run, taken away.
    Links,
    /// They begin and end. One that is masked and read so forgets how it is to be ended.
    Runs,
    /// They are forbidden to run.
    Masks,
}

impl Act {
    /// systemctl's words for it; none where there is nothing to tell it.
    const fn words(self) -> &'static [&'static str] {
        match self {
            // Left to itself systemctl has all unit files read anew for each.
            Self::Enable => &["--no-reload", "enable"],
            Self::Disable => &["--no-reload", "disable"],
            Self::DisableUntilBoot => &["--no-reload", "--runtime", "disable"],
            Self::Start => &["start"],
            Self::Await => &[],
            Self::Stop => &["stop"],
            Self::Restart => &["restart"],
            Self::Reload => &["reload"],
            Self::Mask => &["--no-reload", "mask"],
            Self::Unmask => &["--no-reload", "unmask"],
            Self::Forgive => &["reset-failed"],
        }
    }

    /// When its turn is among the acts of many units.
    pub(crate) const fn stage(self) -> Stage {
        match self {
            Self::Enable | Self::Disable | Self::DisableUntilBoot | Self::Unmask => Stage::Links,
            Self::Start | Self::Await | Self::Stop | Self::Restart | Self::Reload | Self::Forgive => {
                Stage::Runs
            }
            Self::Mask => Stage::Masks,
        }
    }
}

/// systemd, which is asked over the bus and by its own command, and told by that: it works where the bus does not.
pub(super) struct Manager<'a> {
    pub(super) programs: &'a dyn Programs,
    /// The bus gave no answer: it is not asked again.
    pub(super) without_bus: &'a AtomicBool,
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
    pub(super) fn running(&self, names: &[&str]) -> Option<Vec<Listed>> {
        let asked = (names.len() <= AT_ONCE).then(|| self.over_bus(|bus| bus.units(names, BUS)))?;
        asked.filter(|listed| listed.len() == names.len())
    }

    /// Asks over the bus, which may be gone, or there and silent: then everything costs its deadline once, and systemctl,
    /// which has a way of its own to the service manager, answers at once.
    fn over_bus<T>(&self, ask: impl FnOnce(&dyn Programs) -> Option<T>) -> Option<T> {
        if self.without_bus.load(Ordering::Relaxed) {
            return None;
        }
        let said = ask(self.programs);
        self.without_bus.store(said.is_none(), Ordering::Relaxed);
        said
    }

    /// One call: what was said, of as many as it was said of, and why not of the next one.
    fn ask(&self, names: &[&str]) -> Result<(Vec<Shown>, Option<Trouble>), Trouble> {
        let wanted = &systemctl::PROPERTIES;
        let said = self.over_bus(|bus| bus.show_units(names, wanted, BUS));
        // Where the bus leaves anything unsaid, systemctl says why.
        if let Some((said, None)) = said.map(|text| systemctl::read(names, &text)) {
            return Ok((said, None));
        }
        let properties = format!("--property={}", wanted.join(","));
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
