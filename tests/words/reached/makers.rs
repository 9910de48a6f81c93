//! What a test may not do by hand where it shows that an input meets a code: make an error, or call what says the code
//! whatever it is given.

use std::collections::{BTreeMap, BTreeSet};

use crate::said;

/// Errors of the system, which somebody may make as well.
const OF_THE_SYSTEM: [&str; 2] = ["ErrorKind", "Errno"];

pub(super) struct Makers {
    /// What each function says that gives nothing but a refusal, by its name.
    always: BTreeMap<String, Vec<BTreeSet<String>>>,
    /// The types that are errors.
    errors: BTreeSet<String>,
}

impl Makers {
    pub(super) fn read() -> Self {
        let mut always: BTreeMap<String, Vec<BTreeSet<String>>> = BTreeMap::new();
        for (sayer, codes) in said::sayers().iter().filter(|(sayer, _)| sayer.always) {
            always.entry(sayer.name.clone()).or_default().push(codes.clone());
        }
        Self { always, errors: said::errors() }
    }

    /// Whether a function of this name says this code and nothing else.
    pub(super) fn only_says(&self, function: &str, code: &str) -> bool {
        let all = self.always.get(function);
        all.is_some_and(|all| all.iter().any(|codes| codes.len() == 1 && codes.contains(code)))
    }

    /// Whether a type is an error.
    pub(super) fn is_error(&self, of: &str) -> bool {
        OF_THE_SYSTEM.contains(&of) || self.errors.contains(of)
    }
}
