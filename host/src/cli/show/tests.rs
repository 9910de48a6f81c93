use serde_json::{Value, json};
use tenure_protocol::refusal::Refusal;

use super::*;

/// Moves the cursor, turns the line, hides, and forges a line of its own; long beyond reason.
fn hostile() -> String {
    "x\u{1b}[2J\r\nready\u{202e}txt\u{2066}\u{200b}\u{7}".repeat(400)
}

fn assert_harmless(text: &str) {
    let odd = |c: char| c.is_control() && c != '\n' || "\u{202e}\u{2066}\u{200b}".contains(c);
    assert!(!text.contains(odd), "{text:?}");
    assert!(!text.lines().any(|line| line.trim_start().starts_with("ready")), "a forged line: {text}");
    assert!(text.chars().count() < 20_000, "{} characters", text.chars().count());
}

fn refusal() -> Value {
    json!({ "code": hostile(), "happened": hostile(), "means": hostile(), "do": hostile() })
}

fn status_with(link: &Value) -> StatusIs {
    let epoch = json!({ "number": 1, "id": "6f1c1b3e-8d2f-4c55-9d0e-2b7a4c8f9e11" });
    let revision = json!({ "epoch": epoch, "number": 3 });
    let last = json!({
        "pass": 1, "trigger": "timer", "revision": revision, "started": 0, "took_ms": 1, "counts": {},
        "owned": 1, "digest": "0".repeat(64), "refused": refusal(),
    });
    let identity = json!({
        "node": "edge-1", "control_plane_id": "6f1c1b3e-8d2f-4c55-9d0e-2b7a4c8f9e10", "addresses": [hostile()],
        "generation": 1, "fencing": 1, "mode": "adopted",
    });
    serde_json::from_value(json!({
        "machine_state": "enrolled", "version": hostile(), "store_id": "6f1c1b3e-8d2f-4c55-9d0e-2b7a4c8f9e12",
        "identity": identity, "link": link, "revision": revision, "last": last, "owned": 1, "spooled": 0,
        "store_note": hostile(), "sandbox": true,
    }))
    .unwrap()
}

// rule: S-20
#[test]
fn whatever_the_control_plane_or_the_store_says_no_line_of_a_status_moves_the_cursor() {
    for link in [
        json!({ "up": { "since": 0, "address": hostile(), "note": hostile() } }),
        json!({ "down": { "since": 0, "reason": refusal() } }),
    ] {
        assert_harmless(&status(&status_with(&link), true));
    }
}

// rule: S-20
#[test]
fn whatever_was_declared_or_briefed_no_table_of_the_host_moves_the_cursor() {
    let line = json!({ "key": hostile(), "module": hostile(), "origin": "created", "recorded_at": 0 });
    assert_harmless(&owned(&[serde_json::from_value(line).unwrap()]));
    let answer = json!({
        "node": "edge-1", "mode": "adopted", "already": false,
        "briefing": [{ "subject": hostile(), "failed": true, "text": hostile() }],
    });
    assert_harmless(&enrolled(&serde_json::from_value(answer).unwrap()));
    let said = Refusal::new(&hostile(), hostile(), hostile(), hostile());
    let text = said.in_words("tenure-host");
    assert_eq!(text.lines().count(), 3);
    assert_harmless(&text);
}
