use tenure_protocol::id::{Digest, ModuleName};
use tenure_protocol::resource::{Content, FilePresent, FileSpec, Mode, Principal};

use super::*;
use crate::ground::own::Inode;
use crate::walk::read::Stat;

fn resource() -> Resource {
    let content = Content { sha256: Digest::of(b"ours"), size: 4 };
    let spec = Spec::File(FileSpec {
        path: "/srv/a".parse().unwrap(),
        present: Some(FilePresent {
            content,
            mode: Mode::from_bits(0o644).unwrap(),
            owner: Principal::Number(0),
            group: Principal::Number(0),
            create_once: false,
            replace_link: false,
            sensitive: false,
        }),
    });
    Resource { key: spec.key(), module: ModuleName::new("base").unwrap(), needs: Vec::new(), spec }
}

fn file(bytes: &[u8], mode: u32) -> Seen {
    let stat = Stat {
        inode: Inode { dev: 1, ino: 2 },
        mode,
        uid: 0,
        gid: 0,
        size: 4,
        links: 1,
        changed: (0, 0),
        written: (0, 0),
    };
    Seen::File { stat, sha256: Some(Digest::of(bytes)) }
}

fn record(origin: Origin, applied: &Seen) -> Record {
    Record {
        key: "file:/srv/a".to_owned(),
        module: "base".to_owned(),
        origin,
        earlier: State::Absent,
        applied: applied.state().unwrap(),
        recorded_at: Millis(1),
    }
}

fn ask(record: Option<&Record>, seen: Seen, differs: &[&str], keeps_found: bool) -> Decision {
    let differs = Ok(differs.iter().map(|text| (*text).to_owned()).collect());
    decide(&resource(), record, &Ok(Sight { seen, differs }), keeps_found, Millis(9))
}

// rule: H-24
#[test]
fn the_first_origin_and_the_earlier_state_stay_whatever_happens_later() {
    let Decision::Change(first) = ask(None, Seen::Nothing, &["it is missing"], false) else { panic!() };
    assert_eq!((first.origin, first.earlier), (Origin::Created, State::Absent));
    let theirs = file(b"theirs", 0o600);
    let Decision::Change(second) = ask(None, theirs.clone(), &["its content differs"], false) else {
        panic!()
    };
    assert_eq!((second.origin, Some(second.earlier)), (Origin::Changed, theirs.state()));
    let ours = record(Origin::Created, &file(b"ours", 0o644));
    let Decision::Change(again) = ask(Some(&ours), theirs, &["its content differs"], false) else { panic!() };
    assert_eq!((again.origin, again.earlier), (Origin::Created, State::Absent));
    assert_eq!(again.drift.unwrap(), "its content was changed, its mode was changed from 0644 to 0600");
    let Decision::Keep(Some(there)) = ask(None, file(b"ours", 0o644), &[], false) else { panic!() };
    assert_eq!(there.origin, Origin::AlreadyThere);
}

#[test]
fn a_new_wish_for_what_is_as_we_left_it_is_no_drift() {
    let left = file(b"older", 0o644);
    let ours = record(Origin::Created, &left);
    let Decision::Change(change) = ask(Some(&ours), left, &["its content differs"], true) else { panic!() };
    assert_eq!(change.drift, None);
}

#[test]
fn what_is_as_declared_and_recorded_is_left_alone_and_a_stale_record_is_brought_up() {
    let ours = record(Origin::Changed, &file(b"ours", 0o644));
    assert_eq!(ask(Some(&ours), file(b"ours", 0o644), &[], true), Decision::Keep(None));
    let Decision::Keep(Some(newer)) = ask(Some(&ours), file(b"ours", 0o600), &[], true) else { panic!() };
    assert_eq!((newer.origin, newer.recorded_at), (Origin::Changed, Millis(9)));
}

// rule: A-03
#[test]
fn only_what_is_there_without_a_record_is_held() {
    let ours = record(Origin::Created, &file(b"ours", 0o644));
    for (record, seen, held) in [
        (None, file(b"x", 0o644), true),
        (None, Seen::Link { to: "/x".to_owned() }, true),
        (None, Seen::Other { what: "a device" }, true),
        (None, Seen::Nothing, false),
        (Some(&ours), file(b"x", 0o644), false),
    ] {
        let decision = ask(record, seen.clone(), &["differs"], true);
        assert_eq!(matches!(decision, Decision::Hold(_)), held, "{seen:?}");
        assert!(!matches!(ask(record, seen, &["differs"], false), Decision::Hold(_)));
    }
}
