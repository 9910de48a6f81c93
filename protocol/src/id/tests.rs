use super::*;

#[test]
fn a_node_name_is_a_short_lower_case_label() {
    for good in ["edge-1", "a", "10.0.0.1", "db_2", &"x".repeat(63)] {
        assert!(NodeId::new(good).is_ok(), "{good}");
    }
    for bad in ["", "-edge", "Edge", "a b", "a/b", "..", "ä", "a\n", "a\0", &"x".repeat(64)] {
        assert!(NodeId::new(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn a_digest_is_written_in_lower_case_hexadecimal_and_read_back() {
    let digest = Digest::of(b"tenure");
    assert_eq!(digest.to_string().parse::<Digest>().unwrap(), digest);
    assert_eq!(digest.to_string().len(), 64);
    for bad in ["", "00", &"g".repeat(64), &"A".repeat(64), &"0".repeat(65), &"é".repeat(32)] {
        assert!(bad.parse::<Digest>().is_err(), "{bad}");
    }
}

#[test]
fn numbers_stop_at_the_highest_instead_of_wrapping_to_the_lowest() {
    assert_eq!(FencingToken(u64::MAX).next(), FencingToken(u64::MAX));
    assert_eq!(Millis(i64::MAX).plus(std::time::Duration::MAX), Millis(i64::MAX));
    assert_eq!(Millis(5).since(Millis(9)), std::time::Duration::ZERO);
}

#[test]
fn a_malformed_name_is_shown_escaped_and_bounded() {
    let refusal = NodeId::new(&format!("\u{1b}[31m{}", "x".repeat(500))).unwrap_err().to_string();
    assert!(!refusal.contains('\u{1b}') && refusal.len() < 260, "{refusal}");
}
