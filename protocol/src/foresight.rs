//! What a pass would do on a machine, before it is done: one line a resource. A machine foresees it by itself
//! (`tenure-host plan`), or for a declaration that the control plane has not written yet (`tenure declare --plan`).

use serde::{Deserialize, Serialize};

use crate::id::{Millis, NodeId};
use crate::outcome::Outcome;
use crate::refusal::Refusal;
use crate::resource::Content;
use crate::text::{shown, shown_line};
use crate::wire::codec::bounded;

/// The most lines of one page; what does not fit the frame comes with the next one.
pub const MOST_LINES: usize = 1000;
/// The most lines of detail that one resource has.
pub const MOST_DETAIL: usize = 500;
/// The most packages of one transaction that are named one by one.
pub const MOST_PACKAGES: usize = 500;
/// How many nodes one connection may ask at the same time: so many that hang (a minute each, until they are given up)
/// hold up no fleet, and so few that the control plane holds little for them, a page each. One more waits for its turn.
/// How much is held of what they said already is for whoever asks to bound.
pub const MOST_AT_ONCE: usize = 16;

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
    /// All of them, in the order they are counted.
    pub const ALL: [Self; 9] = [
        Self::Change,
        Self::Keep,
        Self::CannotKnow,
        Self::Remove,
        Self::Hold,
        Self::Release,
        Self::Refuse,
        Self::Fail,
        Self::Wait,
    ];

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

impl ForeseenLine {
    /// The line itself, and what stands below it, each fit to be shown (S-20): a machine and the control plane tell it in
    /// the same words.
    pub fn in_words(&self) -> (String, Vec<String>) {
        // Which of the three it is, and where that is not all of it, how.
        let word = match (self.verdict.as_str(), self.what.as_str()) {
            (verdict, what) if verdict == what => verdict.to_owned(),
            (verdict, what) => format!("{verdict}: {what}"),
        };
        let head = format!("{word:<14}  {}  ({})", shown(&self.key, 300), shown(&self.module, 63));
        let mut below: Vec<String> = self.detail.iter().map(|line| shown_line(line, 1000)).collect();
        if !self.packages.is_empty() {
            below.push("the package transaction, simulated:".to_owned());
        }
        for PackageMove { name, from, to } in &self.packages {
            let version = |version: &Option<String>| {
                version.as_deref().map_or_else(|| "none".to_owned(), |version| shown(version, 100))
            };
            below.push(format!("  {}  {} → {}", shown(name, 100), version(from), version(to)));
        }
        (head, below)
    }
}

/// How many lines are of each verdict, and how many of them of a kind that its word does not say: what stays as it is
/// since it would fail must not be taken for what is as declared.
pub fn in_words(lines: &[ForeseenLine]) -> String {
    let verdicts = [Verdict::Change, Verdict::Keep, Verdict::CannotKnow];
    let one = |verdict: Verdict| {
        let of =
            |what: &What| lines.iter().filter(|line| line.verdict == verdict && line.what == *what).count();
        let kinds: Vec<String> = What::ALL
            .iter()
            .filter(|what| what.as_str() != verdict.as_str() && of(what) > 0)
            .map(|what| format!("{} {}", of(what), what.as_str()))
            .collect();
        let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
        let count = lines.iter().filter(|line| line.verdict == verdict).count();
        format!("{count} {}{kinds}", verdict.as_str())
    };
    verdicts.map(one).join(", ")
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

#[cfg(test)]
mod tests {
    use super::*;

    fn line(what: What) -> ForeseenLine {
        ForeseenLine {
            key: "file:/etc/a".to_owned(),
            module: "base".to_owned(),
            verdict: what.verdict(),
            what,
            code: None,
            detail: Vec::new(),
            packages: Vec::new(),
        }
    }

    // rule: A-18
    #[test]
    fn what_stays_as_it_is_and_not_as_declared_is_counted_beside_what_is_kept() {
        let lines = [What::Change, What::Remove, What::Keep, What::Fail, What::Fail, What::Refuse].map(line);
        assert_eq!(in_words(&lines), "2 change (1 remove), 4 keep (1 refuse, 2 fail), 0 cannot know");
        assert_eq!(in_words(&lines[..1]), "1 change, 0 keep, 0 cannot know");
    }

    #[test]
    fn between_the_word_and_the_key_is_room_whatever_the_word_is() {
        for what in [What::Change, What::Remove, What::Release, What::Refuse, What::CannotKnow] {
            let (head, below) = line(what).in_words();
            assert!(head.contains("  file:/etc/a  (base)") && below.is_empty(), "{head}");
        }
    }
}
