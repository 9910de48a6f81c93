use super::*;
use crate::catalogue::golden;

fn judge(owned: u64, leaving: u64, allowed: Option<u64>, is_final: bool) -> Result<(), Refusal> {
    check(&NodeId::new("edge-1").unwrap(), owned, leaving, allowed, is_final)
}

// rule: H-23
// case: O-65
#[test]
fn a_tenth_may_leave_without_a_word_and_at_least_one_and_never_all() {
    for (owned, leaving, is_free) in [
        (0, 0, true),
        (1, 0, true),
        (1, 1, false),
        (2, 1, true),
        (2, 2, false),
        (9, 2, false),
        (19, 1, true),
        (19, 2, false),
        (20, 2, true),
        (40, 4, true),
        (40, 39, false),
        (40, 40, false),
    ] {
        assert_eq!(judge(owned, leaving, None, false).is_ok(), is_free, "{leaving} of {owned}");
    }
}

// rule: H-23
#[test]
fn the_word_must_cover_what_leaves() {
    assert!(judge(40, 39, Some(39), false).is_ok());
    assert!(judge(40, 39, Some(38), false).is_err());
    assert!(judge(40, 40, Some(40), false).is_ok());
    // A word for less than what is free anyway takes nothing away.
    assert!(judge(40, 4, Some(0), false).is_ok());
}

// case: O-65
#[test]
fn a_final_declaration_may_remove_everything() {
    assert!(judge(40, 40, None, true).is_ok());
}

// rule: H-23
#[test]
fn the_refusal_says_which_number_to_type() {
    golden::check("too_many_removals", &judge(40, 39, None, false).unwrap_err());
    golden::check("too_many_removals_all", &judge(40, 40, Some(3), false).unwrap_err());
}
