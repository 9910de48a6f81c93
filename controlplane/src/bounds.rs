//! How much of what a node says is kept, in bytes and after escaping: one node must not be able to make a row, a page
//! or an answer that is too long for everybody (S-20, S-22). Pure; called wherever something comes from a node.

use std::collections::HashSet;

use tenure_protocol::declaration::MOST_RESOURCES;
use tenure_protocol::enrolment::Join;
use tenure_protocol::profile::{Inventory, Profile};
use tenure_protocol::refusal::Refusal;
use tenure_protocol::report::Summary;
use tenure_protocol::text::shown;

/// A word: a name, a version, a code.
pub const WORD: usize = 256;
/// A clause.
pub const CLAUSE: usize = 1000;
/// The longest key a resource of a declaration may have: a kind, and a path.
pub const KEY: usize = 4200;
/// Entries of an inventory's list.
const ENTRIES: usize = 200;

/// `text` as it may be shown, at most `most` bytes of it.
pub fn clause(text: &str, most: usize) -> String {
    // No character becomes shorter by being escaped, so that nothing behind is looked at.
    cut(&shown(cut(text, most.saturating_add(1)), usize::MAX), most).to_owned()
}

/// The first `most` bytes of `text`, as they are. For what is compared and not shown.
pub fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// A refusal of a host.
pub fn refusal(refusal: Refusal) -> Refusal {
    Refusal {
        code: clause(&refusal.code, WORD),
        happened: clause(&refusal.happened, CLAUSE),
        means: clause(&refusal.means, CLAUSE),
        remedy: clause(&refusal.remedy, CLAUSE),
    }
}

/// The head of a report. Nobody has more resources than a declaration may have, whatever is counted.
pub fn summary(summary: Summary) -> Summary {
    let most = u64::try_from(MOST_RESOURCES).unwrap_or(u64::MAX);
    Summary {
        counts: summary.counts.at_most(most),
        owned: summary.owned.min(most),
        refused: summary.refused.map(refusal),
        ..summary
    }
}

/// What a machine says of itself when it joins.
pub fn join(join: Join) -> Join {
    let word = |text: String| clause(&text, WORD);
    let list = |texts: Vec<String>| -> Vec<String> {
        let mut seen = HashSet::new();
        texts.into_iter().take(ENTRIES).map(word).filter(|text| seen.insert(text.clone())).collect()
    };
    let (profile, inventory) = (join.profile, join.inventory);
    Join {
        profile: Profile {
            hostname: word(profile.hostname),
            os: word(profile.os),
            kernel: word(profile.kernel),
            architecture: word(profile.architecture),
            machine: word(profile.machine),
            ..profile
        },
        inventory: Inventory {
            listeners: list(inventory.listeners),
            kinds: list(inventory.kinds),
            could_not_look: list(inventory.could_not_look),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: S-20
    #[test]
    fn what_grows_by_being_escaped_is_bounded_after_it_and_not_before() {
        let hostile = "\u{202e}".repeat(500);
        let kept = clause(&hostile, CLAUSE);
        assert!(kept.len() <= CLAUSE && kept.starts_with("\\u{202e}\\u{202e}"), "{}", kept.len());
        assert_eq!(clause("as it is", CLAUSE), "as it is");
        assert_eq!(cut("aé", 2), "a");
    }

    // rule: S-22
    #[test]
    fn a_machine_that_tells_of_a_million_listeners_is_believed_two_hundred() {
        let listeners = (0..1000).map(|number| format!("{number}{}", "x".repeat(5000))).collect();
        let inventory = Inventory { listeners, ..Inventory::default() };
        let profile = Profile { os: "\n".repeat(100_000), ..Profile::default() };
        let kept = join(Join { profile, inventory });
        assert_eq!(kept.inventory.listeners.len(), ENTRIES);
        assert!(kept.inventory.listeners.iter().all(|listener| listener.len() <= WORD));
        assert!(kept.profile.os.len() <= WORD);
    }
}
