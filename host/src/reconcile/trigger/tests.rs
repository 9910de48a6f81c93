use tenure_protocol::resource::UnitName;

use super::*;

const KEY: &str = "package:nginx";

fn spec() -> UnitSpec {
    UnitSpec {
        name: UnitName::new("nginx.service").unwrap(),
        enabled: None,
        masked: None,
        running: Some(true),
        restart_on: vec![KEY.parse().unwrap()],
        reload_on: Vec::new(),
    }
}

fn package(version: &str, origin: Origin, at: i64) -> Record {
    let state = State::Package { version: Some(version.to_owned()) };
    Record {
        key: KEY.to_owned(),
        module: "web".to_owned(),
        origin,
        earlier: if origin == Origin::AlreadyThere { state.clone() } else { State::Absent },
        applied: state,
        recorded_at: Millis(at),
    }
}

fn triggers(record: Option<&Record>) -> Triggers {
    Triggers { marks: HashMap::from([(KEY.to_owned(), Mark::of(record))]) }
}

fn unit(on: BTreeMap<String, Digest>, at: i64) -> Record {
    let applied = State::Unit { enabled: None, running: Some(true), masked: false, mask: None, on };
    Record { key: "unit:nginx.service".to_owned(), applied, ..package("", Origin::Changed, at) }
}

fn fired(triggers: &Triggers, record: Option<&Record>, began: Option<i64>) -> bool {
    triggers.fired(&spec(), record, began.map(Millis)).0 == Fired::Restart
}

#[test]
fn what_changed_in_this_pass_fires_and_what_did_not_is_quiet() {
    let old = package("1", Origin::Created, 10);
    let mut now = triggers(Some(&old));
    let record = unit(now.on(&spec()), 20);
    assert!(!fired(&now, Some(&record), Some(15)));
    now.changed(KEY);
    assert!(fired(&now, Some(&record), Some(15)));
}

#[test]
fn a_change_that_a_cut_short_pass_made_fires_by_record_until_the_unit_has_begun_anew() {
    let then = triggers(Some(&package("1", Origin::Created, 10)));
    let record = unit(then.on(&spec()), 20);
    let mut now = triggers(Some(&package("2", Origin::Created, 30)));
    assert!(fired(&now, Some(&record), Some(15)));
    now.recorded(&package("1", Origin::Created, 30));
    assert!(fired(&now, Some(&record), Some(15)), "put right and not yet restarted");
    assert!(!fired(&now, Some(&record), Some(31)));
}

#[test]
fn without_a_record_only_our_own_change_after_the_unit_began_fires() {
    assert!(!fired(&triggers(None), None, Some(15)));
    assert!(!fired(&triggers(Some(&package("1", Origin::AlreadyThere, 30))), None, Some(15)));
    let ours = triggers(Some(&package("1", Origin::Created, 30)));
    assert!(fired(&ours, None, Some(15)));
    assert!(!fired(&ours, None, Some(31)));
    assert!(fired(&ours, None, None), "nobody knows when it began");
    assert!(!fired(&Triggers::default(), None, None));
}
