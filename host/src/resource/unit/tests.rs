use super::*;

fn shown(active: Active, enabled: Enabled) -> Shown {
    Shown {
        id: "a.service".into(),
        names: vec!["a.service".into()],
        load: Load::Loaded,
        active,
        unit_file: String::new(),
        enabled,
        needs_reload: false,
        result: "success".into(),
        passes: false,
        began: 1,
        fragment: String::new(),
        restarts: 0,
    }
}

fn spec(enabled: Option<bool>, running: Option<bool>) -> UnitSpec {
    let name = tenure_protocol::resource::UnitName::new("a.service").unwrap();
    UnitSpec { name, enabled, running, restart_on: Vec::new(), reload_on: Vec::new() }
}

#[test]
fn only_what_differs_is_acted_on_and_what_is_left_out_is_left() {
    let down = shown(Active::Inactive, Enabled::No);
    assert_eq!(acts(&spec(Some(true), Some(true)), &down, Fired::Nothing), [Act::Enable, Act::Start]);
    assert_eq!(acts(&spec(None, None), &down, Fired::Nothing), []);
    let up = shown(Active::Active, Enabled::Yes);
    assert_eq!(acts(&spec(Some(true), Some(true)), &up, Fired::Nothing), []);
    assert_eq!(acts(&spec(Some(false), Some(false)), &up, Fired::Restart), [Act::Disable, Act::Stop]);
}

#[test]
fn what_does_not_run_is_started_and_not_restarted_and_what_is_to_stand_still_is_neither() {
    let (down, up) = (shown(Active::Inactive, Enabled::No), shown(Active::Active, Enabled::No));
    assert_eq!(acts(&spec(None, Some(true)), &down, Fired::Restart), [Act::Start]);
    assert_eq!(acts(&spec(None, Some(false)), &down, Fired::Restart), []);
    assert_eq!(acts(&spec(None, None), &down, Fired::Restart), []);
    assert_eq!(acts(&spec(None, None), &up, Fired::Restart), [Act::Restart]);
    assert_eq!(acts(&spec(None, Some(true)), &up, Fired::Reload), [Act::Reload]);
}

// case: O-15
#[test]
fn a_masked_unit_is_refused_where_it_should_run_and_as_declared_where_it_should_not() {
    let mut masked = shown(Active::Inactive, Enabled::Never("masked".into()));
    masked.load = Load::Masked;
    let masked = Seen::Unit(Box::new(masked));
    for (enabled, running) in [(Some(true), None), (None, Some(true))] {
        let trouble = differences(&spec(enabled, running), &masked).unwrap_err();
        assert_eq!((trouble.code, trouble.stands), ("unit_masked", crate::resource::Stands::Refused));
        assert!(trouble.reason.contains("systemctl unmask a.service"), "{}", trouble.reason);
    }
    assert_eq!(differences(&spec(Some(false), Some(false)), &masked).unwrap(), Vec::<String>::new());
}

// case: O-16
#[test]
fn a_unit_that_cannot_be_enabled_is_refused_in_its_own_word() {
    for word in ["static", "generated", "transient"] {
        let seen = Seen::Unit(Box::new(shown(Active::Active, Enabled::Never(word.into()))));
        let trouble = differences(&spec(Some(true), None), &seen).unwrap_err();
        assert_eq!(trouble.code, "unit_not_enableable");
        assert!(trouble.reason.contains(word), "{}", trouble.reason);
        assert!(differences(&spec(None, Some(true)), &seen).unwrap().is_empty());
    }
    let fixed = Seen::Unit(Box::new(shown(Active::Active, Enabled::Never("static".into()))));
    assert!(differences(&spec(Some(false), None), &fixed).unwrap().is_empty(), "it does not start by itself");
    let runtime = Seen::Unit(Box::new(shown(Active::Active, Enabled::Runtime)));
    assert_eq!(differences(&spec(Some(true), None), &runtime).unwrap().len(), 1);
}

#[test]
fn a_unit_that_cannot_be_read_and_one_that_is_no_unit_are_failed_by_name() {
    let mut bad = shown(Active::Inactive, Enabled::No);
    bad.load = Load::Bad("bad-setting".into());
    let trouble = differences(&spec(None, Some(true)), &Seen::Unit(Box::new(bad))).unwrap_err();
    assert_eq!(trouble.code, "unit_unreadable");
    assert!(trouble.reason.contains("systemctl status a.service"), "{trouble:?}");
    let trouble = differences(&spec(None, Some(true)), &Seen::Nothing).unwrap_err();
    assert_eq!(trouble.code, "changed_meanwhile");
}
