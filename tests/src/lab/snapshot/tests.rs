//! What the comparison says, without a machine.

use super::system::without_counters;
use super::{Facts, Snapshot};

fn snapshot(things: &[(&str, &'static str, &str)]) -> Snapshot {
    let mut facts = Facts::new();
    for (name, field, value) in things {
        facts.entry((*name).to_owned()).or_default().insert(field, (*value).to_owned());
    }
    Snapshot { facts }
}

#[test]
fn a_machine_that_did_not_change_has_no_difference() {
    let one = snapshot(&[("file /a", "mode", "0644")]);
    one.assert_unchanged_since(&one.clone());
}

#[test]
fn what_is_gone_new_and_changed_is_named() {
    let before = snapshot(&[("file /a", "mode", "0644"), ("unit b", "state", "active")]);
    let after = snapshot(&[("file /a", "mode", "0600"), ("package c", "version", "1")]);
    let difference = after.since(&before);
    assert_eq!(difference.lines(), ["changed: file /a: mode 0644 → 0600", "gone: unit b", "new: package c"]);
}

#[test]
fn rules_are_compared_line_by_line() {
    let before = snapshot(&[("rules nft", "rules", "one\ntwo\n")]);
    let after = snapshot(&[("rules nft", "rules", "one\nthree\n")]);
    let text = after.since(&before).to_string();
    assert!(text.contains("-two\n") && text.contains("+three\n"), "{text}");
}

#[test]
fn things_left_out_by_the_beginning_of_their_name_do_not_differ() {
    let before = snapshot(&[("file /a", "mode", "0644")]);
    let after = snapshot(&[("file /a", "mode", "0644"), ("file /var/lib/tenure-host/store", "mode", "0600")]);
    after.without(&["file /var/lib/tenure-host"]).assert_unchanged_since(&before);
}

#[test]
fn packets_that_pass_are_no_change_of_rules() {
    let one = "table ip t {\n\tcounter packets 1 bytes 60 drop\n}\n:INPUT ACCEPT [1:60]\n# Generated at noon";
    let two =
        "table ip t {\n\tcounter packets 9 bytes 540 drop\n}\n:INPUT ACCEPT [9:540]\n# Generated at one";
    assert_eq!(without_counters(one), without_counters(two));
    assert_ne!(
        without_counters(one),
        without_counters("table ip t {\n\tcounter packets 1 bytes 60 accept\n}")
    );
}
