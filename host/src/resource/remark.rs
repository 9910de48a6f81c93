//! What is to be told of something that became as declared all the same: a file had other names or kept what nobody
//! declared of it, a package's script failed (rpm and pacman go on over that, O-13), or a configuration file came beside
//! the operator's own (O-12).

use std::collections::BTreeMap;

use tenure_protocol::text::shown;

/// By package.
pub type Remarks = BTreeMap<String, Remark>;

/// What is to be told of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Of which kind.
    pub kind: Kind,
    /// In words, bounded.
    pub reason: String,
}

/// Of which kind a remark is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file had other names, which stay.
    OtherNames,
    /// A new file has something of the one before that nobody declared.
    CarriedOver,
    /// A configuration file of the package lies beside the one that was kept.
    ConfigurationKept,
    /// A script of the package failed.
    ScriptFailed,
}

/// The code of a package whose new version brought configuration that was put beside what was kept.
pub(crate) const CONFIGURATION_KEPT: &str = "configuration_kept";

/// The code of a package that is there, and of which a script failed.
pub(crate) const SCRIPT_FAILED: &str = "package_script_failed";

impl Remark {
    /// Of a file: its other names and what was carried over in one, the weightier first.
    pub(super) fn of_file(names: Option<String>, carried: Option<String>) -> Option<Self> {
        let kind = if names.is_some() { Kind::OtherNames } else { Kind::CarriedOver };
        let reason: Vec<String> = names.into_iter().chain(carried).collect();
        (!reason.is_empty()).then(|| Self { kind, reason: reason.join("; ") })
    }

    /// Whether it is told as an event of its own: the next pass finds the package as declared, and says no more.
    pub(crate) fn is_told(&self) -> bool {
        self.is_failure() || self.kind == Kind::ConfigurationKept
    }

    /// Whether it is more than something to know.
    pub(crate) fn is_failure(&self) -> bool {
        self.kind == Kind::ScriptFailed
    }

    /// Joins what is told of `name` to what is told of another.
    pub(crate) fn join(self, name: &str, to: &mut Option<Self>) {
        let reason = format!("of {name}, which came with it: {}", self.reason);
        match to {
            None => *to = Some(Self { reason, ..self }),
            Some(to) => {
                if self.is_failure() {
                    to.kind = self.kind;
                }
                to.reason = shown(&format!("{}; {reason}", to.reason), MOST);
            }
        }
    }
}

/// Adds to what is told of a package. A failed script counts for more.
pub(super) fn add(remarks: &mut Remarks, name: &str, kind: Kind, reason: &str) {
    let remark = remarks.entry(name.to_owned()).or_insert_with(|| Remark { kind, reason: String::new() });
    if kind == Kind::ScriptFailed {
        remark.kind = kind;
    }
    if remark.reason.len() < MOST {
        let stop = if remark.reason.is_empty() { "" } else { "; " };
        remark.reason.push_str(&format!("{stop}{}", shown(reason, 400)));
    }
}

/// The last that a script has said.
pub(super) fn spoken(output: &[&str]) -> String {
    let last: Vec<&str> = output.iter().rev().take(3).rev().copied().collect();
    if last.is_empty() { String::new() } else { format!("; it said: {}", shown(&last.join(" / "), 200)) }
}

/// `warning: /etc/a created as /etc/a.new`, with `made` for the words between; or `saved as`, which all of them say.
pub(super) fn kept(line: &str, made: &str) -> Option<String> {
    let rest = line.strip_prefix("warning: ")?;
    let beside = rest.split_once(made).map(|(path, beside)| {
        format!("{path} is kept as it was, and the package's own lies beside it as {beside}")
    });
    let saved = || {
        let (path, saved) = rest.split_once(" saved as ")?;
        Some(format!("{path} was changed by somebody and is kept as {saved}"))
    };
    beside.or_else(saved)
}

/// More than this is in the log of the transaction.
const MOST: usize = 800;
