//! A refusal is an API: a stable code, and three sentences that say what happened, what it means, what to do.

use serde::{Deserialize, Serialize};

use crate::text::shown;

/// A refusal as it travels and as it is shown. Every text is bounded when it arrives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{happened}")]
pub struct Refusal {
    /// The stable name, `lower_snake`. Programs match on this and on nothing else.
    pub code: String,
    /// What happened: one lower-case clause without a stop.
    pub happened: String,
    /// What that means.
    pub means: String,
    /// What to do, with the command to type where there is one.
    #[serde(rename = "do")]
    pub remedy: String,
}

/// An error that can be told to a person. `Display` is *what happened*.
pub trait Explain: std::error::Error {
    /// The stable name of this refusal.
    fn code(&self) -> &'static str;
    /// What it means for whoever reads it.
    fn meaning(&self) -> String;
    /// What to do about it.
    fn remedy(&self) -> String;

    /// The refusal in the form that travels.
    fn refusal(&self) -> Refusal {
        Refusal {
            code: self.code().to_owned(),
            happened: chain(self),
            means: self.meaning(),
            remedy: self.remedy(),
        }
    }
}

/// The error and its sources, as one line: `what happened: because of this: because of that`.
pub fn chain<E: std::error::Error + ?Sized>(error: &E) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        line.push_str(": ");
        line.push_str(&cause.to_string());
        source = cause.source();
    }
    line
}

impl Refusal {
    /// A refusal written on the spot.
    pub fn new(
        code: &str,
        happened: impl Into<String>,
        means: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { code: code.to_owned(), happened: happened.into(), means: means.into(), remedy: remedy.into() }
    }

    /// The same refusal with every text bounded and escaped, for one that came from the other side of a wire.
    #[must_use]
    pub fn from_outside(self) -> Self {
        Self {
            code: shown(&self.code, 64),
            happened: shown(&self.happened, 2000),
            means: shown(&self.means, 2000),
            remedy: shown(&self.remedy, 2000),
        }
    }

    /// As a program says it on its standard error. Whoever wrote what is quoted in it, nothing of it moves the cursor
    /// (S-20).
    pub fn in_words(&self, program: &str) -> String {
        let Self { code, happened, means, remedy } = self.clone().from_outside();
        format!("{program}: {happened} ({code})\n  that means: {means}\n  what to do: {remedy}")
    }

    /// Whether it has this code.
    pub fn is(&self, code: &str) -> bool {
        self.code == code
    }
}
