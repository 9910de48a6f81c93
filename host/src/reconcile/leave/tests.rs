use tenure_protocol::id::{Digest, Millis};

use super::*;

const FILE: State = State::File { mode: 0o644, uid: 0, gid: 0, size: 1, sha256: Digest::from_bytes([1; 32]) };

fn ask(origin: Origin, applied: State, seen: Result<Seen, Trouble>) -> Leave {
    let key: ResourceKey = "file:/srv/a".parse().unwrap();
    let record = Record {
        key: key.to_string(),
        module: "base".to_owned(),
        origin,
        earlier: State::Absent,
        applied,
        recorded_at: Millis(1),
    };
    decide(&key, &record, &seen, None)
}

// rule: H-24
#[test]
fn nothing_but_what_we_created_is_ever_removed() {
    for origin in [Origin::Changed, Origin::AlreadyThere] {
        for seen in [Seen::Nothing, Seen::Link { to: "/x".to_owned() }] {
            assert_eq!(ask(origin, FILE, Ok(seen)), Leave::Release("left: existed before us".to_owned()));
        }
    }
    assert_eq!(ask(Origin::Created, FILE, Ok(Seen::Nothing)), Leave::Gone);
    for seen in [Seen::Link { to: "/x".to_owned() }, Seen::Other { what: "a device" }] {
        assert!(matches!(ask(Origin::Created, FILE, Ok(seen)), Leave::Release(_)));
    }
    assert!(matches!(ask(Origin::Created, State::Absent, Ok(Seen::Nothing)), Leave::Release(_)));
}

#[test]
fn what_cannot_be_looked_at_keeps_its_record_and_where_we_may_not_go_is_let_go() {
    let trouble = |stands| Trouble { stands, code: "x", reason: "why".to_owned() };
    let unknown = trouble(Stands::Unknown);
    assert_eq!(ask(Origin::Created, FILE, Err(unknown.clone())), Leave::Stop(unknown));
    let refused = ask(Origin::Created, FILE, Err(trouble(Stands::Refused)));
    assert_eq!(refused, Leave::Release("left: why".to_owned()));
}
