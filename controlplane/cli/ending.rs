//! How a command ends: the exit status of the contract, and for everything but *done* the three sentences that say
//! what happened, what it means and what to do.

use std::process::ExitCode;

use tenure_protocol::refusal::{Explain, Refusal, chain};

/// The exit statuses scripts may rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    OurFault,
    Usage,
    Refused,
    Failed,
    Outstanding,
    NothingMatched,
}

impl Exit {
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::OurFault => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::Failed => 4,
            Self::Outstanding => 5,
            Self::NothingMatched => 6,
        }
    }

    /// What stands before the code of a trouble.
    const fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::OurFault => "our fault",
            Self::Usage => "usage",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Outstanding => "outstanding",
            Self::NothingMatched => "nothing matched",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.number())
    }
}

/// A command that did not do what was asked.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) exit: Exit,
    pub(crate) refusal: Refusal,
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Self {
        Self { exit: Exit::Refused, refusal }
    }
}

impl Trouble {
    pub(crate) fn refused(error: &impl Explain) -> Self {
        error.refusal().into()
    }

    pub(crate) fn usage(code: &str, happened: &str, means: &str, remedy: &str) -> Self {
        Self { exit: Exit::Usage, refusal: Refusal::new(code, happened, means, remedy) }
    }

    /// It was tried and broke off; what was asked may have been done all the same.
    pub(crate) const fn failed(refusal: Refusal) -> Self {
        Self { exit: Exit::Failed, refusal }
    }

    /// Nobody who uses Tenure can have caused this. `what` could not be done, as a clause that the cause follows.
    pub(crate) fn ours(what: &str, error: &dyn std::error::Error) -> Self {
        Self {
            exit: Exit::OurFault,
            refusal: Refusal::new(
                "our_fault",
                format!("{what}: {}", chain(error)),
                "this is a fault of Tenure or of the machine it runs on, not of what you asked",
                "try again; if it comes back, report it with this text and `tenure --version`",
            ),
        }
    }

    /// As it stands on stderr: whoever wrote what is quoted in it, nothing of it moves the cursor (S-20).
    pub(crate) fn text(&self) -> String {
        let Refusal { code, happened, means, remedy } = self.refusal.clone().from_outside();
        format!(
            "{}: {code}\n  what happened  {happened}\n  what it means  {means}\n  what to do     {remedy}\n",
            self.exit.word()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: S-20
    #[test]
    fn whatever_is_quoted_in_a_refusal_is_shown_without_moving_the_cursor() {
        let odd = "a\u{1b}[2J\nrefused\u{202e}".repeat(900);
        let text = Trouble::from(Refusal::new("code", odd.clone(), odd.clone(), odd)).text();
        assert_eq!(text.lines().count(), 4);
        crate::caller::tests::assert_harmless(&text);
    }

    #[test]
    fn a_fault_of_ours_says_what_was_tried_and_what_the_system_said() {
        let error = std::io::Error::from(std::io::ErrorKind::NotFound);
        let trouble = Trouble::ours("the name of this machine cannot be read", &error);
        assert_eq!((trouble.exit, trouble.refusal.code.as_str()), (Exit::OurFault, "our_fault"));
        assert_eq!(trouble.refusal.happened, format!("the name of this machine cannot be read: {error}"));
        assert!(trouble.text().starts_with("our fault: our_fault\n"));
    }
}
