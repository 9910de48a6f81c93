use super::*;

// rule: H-22
#[test]
fn a_moment_gone_by_is_said_in_its_largest_unit_and_never_judged() {
    let now = Millis(1_000_000_000);
    let before = |seconds: i64| ago(Millis(now.0 - seconds * 1000), now);
    assert_eq!(before(0), "0 s ago");
    assert_eq!(before(12), "12 s ago");
    assert_eq!(before(61), "1 min ago");
    assert_eq!(before(7200), "2 h ago");
    assert_eq!(before(86_400), "1 day ago");
    assert_eq!(before(40 * 86_400), "40 days ago");
}

#[test]
fn a_moment_of_a_clock_that_runs_ahead_is_no_negative_span() {
    assert_eq!(ago(Millis(2000), Millis(1000)), "0 s ago");
    assert_eq!(until(Millis(91_000), Millis(1000)), "in 1 min");
    assert_eq!(until(Millis(0), Millis(5000)), "5 s ago");
}

#[test]
fn a_moment_is_written_in_utc_and_one_beyond_the_calendar_is_written_all_the_same() {
    assert_eq!(moment(Millis(0)), "1970-01-01 00:00:00Z");
    assert_eq!(moment(Millis(i64::MAX)), format!("{} ms", i64::MAX));
}

#[test]
fn sizes_have_a_digit_behind_the_point_only_where_it_says_something() {
    assert_eq!(bytes(1), "1 byte");
    assert_eq!(bytes(1023), "1023 bytes");
    assert_eq!(bytes(1536), "1.5 KiB");
    assert_eq!(bytes(12 * 1024 * 1024), "12 MiB");
    assert_eq!(bytes(u64::MAX), "16777215 TiB");
}

#[test]
fn a_path_with_blanks_or_quotes_stays_one_word_in_a_shell() {
    assert_eq!(quoted("/usr/bin/tenure"), "/usr/bin/tenure");
    assert_eq!(quoted("/tmp/my dir"), "'/tmp/my dir'");
    assert_eq!(quoted("it's"), r"'it'\''s'");
    assert_eq!(quoted(""), "''");
}
