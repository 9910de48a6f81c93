//! What a pass would do on a machine, before it is done: one line a resource. A machine foresees it by itself
//! (`tenure-host plan`), or for a declaration that the control plane has not written yet (`tenure declare --plan`).

use serde::{Deserialize, Serialize};

use crate::id::{Millis, NodeId};
use crate::outcome::Outcome;
use crate::refusal::Refusal;
use crate::resource::Content;
use crate::wire::codec::bounded;

/// The most lines of one page; what does not fit the frame comes with the next one.
pub const MOST_LINES: usize = 1000;
/// The most lines of detail that one resource has.
pub const MOST_DETAIL: usize = 500;
/// The most packages of one transaction that are named one by one.
pub const MOST_PACKAGES: usize = 500;

/// What is known of a resource beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The machine would be changed for it.
    Change,
    /// The machine would stay as it is.
    Keep,
    /// That depends on what is known only when its turn comes; the line says on what.
    CannotKnow,
}

impl Verdict {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Keep => "keep",
            Self::CannotKnow => "cannot know",
        }
    }
}

/// What would become of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// It would be made, or changed to what is declared.
    Change,
    /// It is as declared.
    Keep,
    /// It depends on what cannot be known before it is tried.
    CannotKnow,
    /// It is kept as found.
    Hold,
    /// It is not done, by rule.
    Refuse,
    /// It would be removed.
    Remove,
    /// It leaves the declaration and stays as it is.
    Release,
    /// It would be tried and not come to be.
    Fail,
    /// It would not be begun, since what it needs would not be as declared.
    Wait,
}

impl What {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Keep => "keep",
            Self::CannotKnow => "cannot know",
            Self::Hold => "hold",
            Self::Refuse => "refuse",
            Self::Remove => "remove",
            Self::Release => "release",
            Self::Fail => "fail",
            Self::Wait => "wait",
        }
    }

    /// The outcome of a pass in which it came as foreseen; none: any may come.
    pub const fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Change => Some(Outcome::Applied),
            Self::Keep => Some(Outcome::Unchanged),
            Self::CannotKnow => None,
            Self::Hold => Some(Outcome::Held),
            Self::Refuse => Some(Outcome::Refused),
            Self::Remove => Some(Outcome::Removed),
            Self::Release => Some(Outcome::Released),
            Self::Fail => Some(Outcome::Failed),
            Self::Wait => Some(Outcome::Outstanding),
        }
    }

    /// What it says of the machine.
    pub const fn verdict(self) -> Verdict {
        match self {
            Self::Change | Self::Remove => Verdict::Change,
            Self::Keep | Self::Hold | Self::Refuse | Self::Release | Self::Fail | Self::Wait => Verdict::Keep,
            Self::CannotKnow => Verdict::CannotKnow,
        }
    }
}

/// One resource, as it is foreseen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeseenLine {
    /// Its key, or what stood in its place when that was not understood.
    pub key: String,
    /// The module that declares or declared it.
    pub module: String,
    /// Whether the machine would be changed for it.
    pub verdict: Verdict,
    /// What would become of it.
    pub what: What,
    /// The stable name of the reason, where it would not be as declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// How and why: sentences, and for text that may be shown a unified diff, line by line. Sensitive content is in
    /// none of it (S-19).
    #[serde(deserialize_with = "bounded::<_, _, 500>")]
    pub detail: Vec<String>,
    /// With the first package of a transaction: every package that it would install, change or remove.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "bounded::<_, _, 500>")]
    pub packages: Vec<PackageMove>,
}

/// One package of a simulated transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageMove {
    /// Its name.
    pub name: String,
    /// The version it has; none: it is not installed.
    pub from: Option<String>,
    /// The version it would get; none: it would be removed.
    pub to: Option<String>,
}

/// Asks a node what a pass over this declaration would do there now. It changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Foresee {
    /// The declaration's bytes, to be fetched as content while this is asked.
    pub declaration: Content,
    /// How many lines are known already; zero: it is looked anew.
    pub from: u64,
}

/// The same of an operator, for one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeseeOf {
    /// Which.
    pub node: NodeId,
    /// The declaration, as a plan names it.
    pub declaration: Content,
    /// How many lines are known already; zero: it is looked anew.
    pub from: u64,
}

/// Lines of what is foreseen, in the order in which it would be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeseenPage {
    /// When the machine was looked at, on its own clock.
    pub at: Millis,
    /// Why the machine would refuse the declaration whole, if so: then none of the lines is done.
    pub refused: Option<Refusal>,
    /// At most [`MOST_LINES`].
    #[serde(deserialize_with = "bounded::<_, _, 1000>")]
    pub lines: Vec<ForeseenLine>,
    /// Whether there are more.
    pub more: bool,
}

/// Everything that is foreseen for one machine: what `tenure-host plan --json` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Foreseen {
    /// When the machine was looked at, on its own clock.
    pub at: Millis,
    /// Why the declaration would be refused whole, if so: then none of the lines is done.
    pub refused: Option<Refusal>,
    /// One a resource, in the order in which it would be done.
    pub lines: Vec<ForeseenLine>,
}
