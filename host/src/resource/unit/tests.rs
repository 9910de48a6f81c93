use tenure_protocol::wire::codec::{decode, encode_if_written};

use super::systemctl::captured;
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
        ended: 0,
        fragment: String::new(),
        source: String::new(),
        restarts: 0,
        stands: String::new(),
        run: String::new(),
        again: false,
        can: Can { start: true, stop: true, reload: true },
        triggered_by: Vec::new(),
        host: Bound::default(),
        mask: None,
        masked_by_us: false,
        linked: false,
    }
}

fn spec(enabled: Option<bool>, running: Option<bool>) -> UnitSpec {
    let name = tenure_protocol::resource::UnitName::new("a.service").unwrap();
    UnitSpec { name, enabled, running, masked: None, restart_on: Vec::new(), reload_on: Vec::new() }
}

/// What is declared of a unit of another name, in full.
fn named(name: &str, enabled: Option<bool>, running: Option<bool>, masked: Option<bool>) -> UnitSpec {
    let name = tenure_protocol::resource::UnitName::new(name).unwrap();
    UnitSpec { name, masked, ..spec(enabled, running) }
}

fn seen(shown: Shown) -> Seen {
    Seen::Unit(Box::new(shown))
}

fn refused(spec: &UnitSpec, shown: &Shown) -> (&'static str, String) {
    let trouble = differences(spec, &seen(shown.clone())).unwrap_err();
    assert_eq!(trouble.stands, crate::resource::Stands::Refused, "{}", trouble.reason);
    (trouble.code, trouble.reason)
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
fn a_unit_that_somebody_masked_is_refused_where_it_should_run_and_as_declared_where_it_should_not() {
    for captured in captured() {
        for (name, undo) in [
            ("legacy-sync.service", "`systemctl unmask legacy-sync.service`"),
            ("runmask.service", "`systemctl unmask --runtime runmask.service`"),
        ] {
            let shown = &captured[name];
            for (enabled, running, masked) in
                [(Some(true), None, None), (None, Some(true), None), (None, None, Some(false))]
            {
                let (code, reason) = refused(&named(name, enabled, running, masked), shown);
                assert_eq!(code, "unit_masked");
                assert!(reason.contains(undo) && reason.contains("somebody"), "{reason}");
            }
            let off = named(name, Some(false), Some(false), None);
            assert_eq!(differences(&off, &seen(shown.clone())).unwrap(), Vec::<String>::new());
            assert_eq!(acts(&off, shown, Fired::Restart), []);
        }
    }
}

// case: O-15
#[test]
fn we_mask_what_is_declared_masked_and_take_back_only_a_mask_of_ours() {
    let up = shown(Active::Active, Enabled::Yes);
    let off = named("a.service", Some(false), Some(false), Some(true));
    assert_eq!(acts(&off, &up, Fired::Restart), [Act::Disable, Act::Stop, Act::Mask]);
    assert_eq!(differences(&off, &seen(up)).unwrap().len(), 3);
    let mut masked = shown(Active::Inactive, Enabled::Never);
    masked.load = Load::Masked(Until::Undone);
    assert_eq!(acts(&off, &masked, Fired::Nothing), []);
    assert_eq!(acts(&named("a.service", None, Some(true), None), &masked, Fired::Nothing), [Act::Start]);
    masked.load = Load::Masked(Until::Boot);
    assert_eq!(acts(&off, &masked, Fired::Nothing), [Act::Mask]);
    (masked.load, masked.masked_by_us) = (Load::Masked(Until::Undone), true);
    for taken_back in [Some(false), None] {
        let up = named("a.service", Some(true), Some(true), taken_back);
        assert_eq!(acts(&up, &masked, Fired::Nothing), [Act::Unmask, Act::Enable, Act::Start]);
        assert_eq!(differences(&up, &seen(masked.clone())).unwrap(), ["it is masked, by us"]);
    }
    assert_eq!(acts(&off, &masked, Fired::Nothing), []);
}

// case: O-15
#[test]
fn what_cannot_be_masked_is_refused_in_its_own_words() {
    let mut ours = shown(Active::Active, Enabled::Yes);
    ours.fragment = "/etc/systemd/system/a.service".into();
    let (code, reason) = refused(&named("a.service", None, None, Some(true)), &ours);
    assert!(code == "unit_not_maskable" && reason.contains(&ours.fragment), "{reason}");
    let (code, _) = refused(&named("a.service", Some(true), None, Some(true)), &ours);
    assert_eq!(code, "unit_masked_and_wanted");
    // What is not there can be forbidden to come.
    let mut nothing = shown(Active::Inactive, Enabled::Never);
    nothing.load = Load::NotFound;
    let masked = named("a.service", None, None, Some(true));
    assert_eq!(differences(&masked, &seen(nothing.clone())).unwrap(), ["it is not masked"]);
    assert_eq!(acts(&masked, &nothing, Fired::Nothing), [Act::Mask]);
}

// case: O-16
#[test]
fn a_unit_that_cannot_be_enabled_is_refused_in_words_that_name_the_way() {
    for captured in captured() {
        for (name, way) in [
            ("helper.service", "it is indirect, it is begun by helper.socket; declare that"),
            ("static-thing.service", "it is static, its file has no install section"),
            ("linked.service", "it is linked, its file lies elsewhere"),
            ("linkedrun.service", "it is linked-runtime, its file lies elsewhere"),
        ] {
            let shown = &captured[name];
            let (code, reason) = refused(&named(name, Some(true), None, None), shown);
            assert_eq!(code, "unit_not_enableable");
            assert!(reason.contains(way) && reason.contains("without `enabled`"), "{reason}");
            let off = named(name, Some(false), None, None);
            assert!(
                differences(&off, &seen(shown.clone())).unwrap().is_empty(),
                "it does not start by itself"
            );
            assert_eq!(acts(&off, shown, Fired::Nothing), [], "disabling a link would remove it");
        }
        let runtime = &captured["runtime.service"];
        let off = named("runtime.service", Some(false), None, None);
        assert_eq!(acts(&off, runtime, Fired::Nothing), [Act::DisableUntilBoot]);
        let on = named("runtime.service", Some(true), None, None);
        assert_eq!(differences(&on, &seen(runtime.clone())).unwrap().len(), 1);
        assert_eq!(acts(&on, runtime, Fired::Nothing), [Act::Enable]);
    }
    for (word, enabled) in [("generated", true), ("generated", false), ("transient", true), ("", true)] {
        let mut made = shown(Active::Active, Enabled::Never);
        made.unit_file = word.to_owned();
        assert_eq!(refused(&spec(Some(enabled), None), &made).0, "unit_not_enableable", "{word}");
    }
}

// case: O-16
#[test]
fn a_name_that_goes_when_its_unit_is_disabled_is_not_disabled_by_that_name() {
    for captured in captured() {
        let shown = &captured["www.service"];
        let (code, reason) = refused(&named("www.service", Some(false), None, None), shown);
        assert!(code == "unit_goes_when_disabled" && reason.contains("declare webfront.service"), "{reason}");
        let on = named("www.service", Some(true), Some(true), None);
        assert!(differences(&on, &seen(shown.clone())).unwrap().is_empty());
        assert_eq!(shown.real_name(&on.name), "webfront.service");
    }
    let mut linked = shown(Active::Active, Enabled::Yes);
    linked.linked = true;
    assert_eq!(refused(&spec(Some(false), None), &linked).0, "unit_goes_when_disabled");
}

#[test]
fn what_only_other_units_may_start_or_stop_is_refused_by_the_setting_that_says_so() {
    for captured in captured() {
        let mut shown = captured["byhand.service"].clone();
        let (code, reason) = refused(&named("byhand.service", None, Some(true), None), &shown);
        assert!(code == "unit_by_others_only" && reason.contains("RefuseManualStart="), "{reason}");
        shown.active = Active::Active;
        let (code, reason) = refused(&named("byhand.service", None, Some(false), None), &shown);
        assert!(code == "unit_by_others_only" && reason.contains("RefuseManualStop="), "{reason}");
        assert!(
            differences(&named("byhand.service", None, Some(true), None), &seen(shown)).unwrap().is_empty()
        );
    }
}

#[test]
fn a_reload_that_a_unit_does_not_know_is_refused_before_it_is_due() {
    for captured in captured() {
        let mut on = named("queue@30.service", None, Some(true), None);
        on.reload_on = vec!["file:/etc/queue".parse().unwrap()];
        let (code, reason) = refused(&on, &captured["queue@30.service"]);
        assert!(code == "unit_not_reloadable" && reason.contains("restart_on"), "{reason}");
        on.name = tenure_protocol::resource::UnitName::new("webfront.service").unwrap();
        assert!(differences(&on, &seen(captured["webfront.service"].clone())).unwrap().is_empty());
    }
}

#[test]
fn what_is_on_its_way_up_is_awaited_and_what_falls_again_and_again_is_not_begun_besides() {
    for captured in captured() {
        let up = |name| named(name, None, Some(true), None);
        assert_eq!(acts(&up("slow.service"), &captured["slow.service"], Fired::Nothing), [Act::Await]);
        let falls = &captured["loopslow.service"];
        assert_eq!(acts(&up("loopslow.service"), falls, Fired::Nothing), []);
        assert_eq!(acts(&up("loopslow.service"), falls, Fired::Restart), [Act::Restart]);
        assert_eq!(
            acts(&named("loopslow.service", None, Some(false), None), falls, Fired::Nothing),
            [Act::Stop]
        );
    }
}

#[test]
fn a_unit_that_systemd_gave_up_is_forgiven_only_when_something_of_it_was_changed() {
    for captured in captured() {
        let (up, limit) = (named("limit.service", None, Some(true), None), &captured["limit.service"]);
        assert_eq!(acts(&up, limit, Fired::Nothing), [Act::Start]);
        assert_eq!(acts(&up, limit, Fired::Restart), [Act::Forgive, Act::Start]);
    }
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

#[test]
fn what_was_asked_of_packages_and_units_is_the_same_to_another_process() {
    let unit = Shown {
        load: Load::Masked(Until::Boot),
        host: Bound { with_it: true, for_it: false },
        triggered_by: vec!["a.socket".into()],
        masked_by_us: true,
        ..shown(Active::Stopping, Enabled::Runtime)
    };
    let bad = Shown { load: Load::Bad("bad-setting".into()), ..shown(Active::Failed, Enabled::No) };
    let package = Seen::Package {
        version: Some("1.2-3".into()),
        unfinished: Some("half-configured".into()),
        hold: true,
        brought: Some(7),
    };
    for then in [package, seen(unit), seen(bad)] {
        let now: Seen = decode(&encode_if_written(&then).unwrap()).unwrap();
        assert_eq!(now, then);
    }
}
