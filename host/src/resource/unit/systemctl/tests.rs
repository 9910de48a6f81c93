use super::*;

const TWO: &str = "\
Type=notify
NRestarts=2
Result=success
Id=ssh.service
Names=ssh.service sshd.service
LoadState=loaded
ActiveState=active
SubState=running
FragmentPath=/lib/systemd/system/ssh.service
UnitFileState=enabled
NeedDaemonReload=yes
ActiveEnterTimestampMonotonic=1234567

Id=nothing.service
Names=nothing.service
LoadState=not-found
ActiveState=inactive
SubState=dead
UnitFileState=
NeedDaemonReload=no
ActiveEnterTimestampMonotonic=0
";

#[test]
fn each_unit_is_read_by_its_place_also_by_an_alias() {
    let units = read(&["sshd.service", "nothing.service"], TWO).0;
    let ssh = &units[0];
    assert_eq!(
        (ssh.id.as_str(), &ssh.load, ssh.active, &ssh.enabled),
        ("ssh.service", &Load::Loaded, Active::Active, &Enabled::Yes)
    );
    assert!(ssh.needs_reload && !ssh.passes);
    assert_eq!(ssh.names, ["ssh.service", "sshd.service"]);
    assert_eq!((ssh.began, ssh.restarts), (1_234_567, 2));
    assert_eq!(
        (&units[1].load, units[1].active, &units[1].enabled),
        (&Load::NotFound, Active::Inactive, &Enabled::Never)
    );
}

/// What systemd said of units that are set up in each way there is, in one call: see the names.
const NAMES: [&str; 22] = [
    "webfront.service",
    "www.service",
    "queue@30.service",
    "queue@99.service",
    "helper.service",
    "helper.socket",
    "static-thing.service",
    "once.service",
    "tick.timer",
    "legacy-sync.service",
    "runmask.service",
    "runtime.service",
    "linked.service",
    "linkedrun.service",
    "loopslow.service",
    "limit.service",
    "slow.service",
    "byhand.service",
    "broken.service",
    "nosuch.service",
    "multi-user.target",
    "dev-mqueue.mount",
];

/// Debian 12 with systemd 252, Debian 13 with systemd 257.
pub(in crate::resource::unit) fn captured() -> [HashMap<&'static str, Shown>; 2] {
    [include_str!("debian-12.txt"), include_str!("debian-13.txt")].map(|text| {
        let (said, unsaid) = read(&NAMES, text);
        assert_eq!(unsaid, None);
        NAMES.into_iter().zip(said).collect()
    })
}

// case: O-16
#[test]
fn whether_a_unit_is_enabled_has_more_than_two_answers() {
    for seen in captured() {
        let enabled = |name: &str| (seen[name].enabled, seen[name].unit_file.as_str());
        assert_eq!(enabled("webfront.service"), (Enabled::Yes, "enabled"));
        assert_eq!(enabled("www.service"), (Enabled::Yes, "enabled"));
        assert_eq!(enabled("queue@30.service"), (Enabled::Yes, "enabled"));
        assert_eq!(enabled("queue@99.service"), (Enabled::No, "disabled"));
        assert_eq!(enabled("runtime.service"), (Enabled::Runtime, "enabled-runtime"));
        for (name, word) in [
            ("helper.service", "indirect"),
            ("static-thing.service", "static"),
            ("linked.service", "linked"),
            ("linkedrun.service", "linked-runtime"),
            ("legacy-sync.service", "masked"),
            ("runmask.service", "masked-runtime"),
            ("nosuch.service", ""),
        ] {
            assert_eq!(enabled(name), (Enabled::Never, word), "{name}");
        }
    }
}

// case: O-15
#[test]
fn a_mask_for_good_and_one_until_the_next_boot_are_told_apart() {
    for seen in captured() {
        assert_eq!(seen["legacy-sync.service"].load, Load::Masked(Until::Undone));
        assert_eq!(seen["runmask.service"].load, Load::Masked(Until::Boot));
        assert_eq!(seen["broken.service"].load, Load::Bad("bad-setting".into()));
        assert_eq!(seen["nosuch.service"].load, Load::NotFound);
    }
}

#[test]
fn what_runs_is_known_of_every_kind_of_unit() {
    for seen in captured() {
        for name in
            ["webfront.service", "helper.socket", "static-thing.service", "tick.timer", "multi-user.target"]
        {
            assert!(seen[name].is_up(), "{name}");
        }
        assert!(seen["dev-mqueue.mount"].is_up() && !seen["slow.service"].is_up());
        let slow = &seen["slow.service"];
        assert_eq!((slow.active, slow.again), (Active::Starting, false));
        let falls = &seen["loopslow.service"];
        assert_eq!((falls.active, falls.again), (Active::Starting, true));
        assert_eq!((seen["limit.service"].active, seen["limit.service"].restarts), (Active::Failed, 5));
        assert!(!seen["byhand.service"].can.start && !seen["byhand.service"].can.stop);
        assert!(seen["webfront.service"].can.reload && !seen["queue@30.service"].can.reload);
        assert_eq!(seen["helper.service"].triggered_by, ["helper.socket"]);
        assert_eq!(seen["www.service"].id, "webfront.service");
    }
}

#[test]
fn silence_about_a_unit_is_not_an_answer_and_takes_none_from_those_before_it() {
    let (said, unsaid) = read(&["ssh.service", "nothing.service", "third.service"], TWO);
    assert_eq!((said.len(), unsaid), (2, Some(Unsaid("third.service".into()))));
    let (said, unsaid) = read(&["ssh.service"], "Failed to connect to bus\n");
    assert_eq!((said.len(), unsaid), (0, Some(Unsaid("ssh.service".into()))));
}

#[test]
fn what_is_said_of_one_unit_is_never_taken_for_another() {
    let (said, unsaid) = read(&["nothing.service", "ssh.service"], TWO);
    assert_eq!((said.len(), unsaid), (0, Some(Unsaid("nothing.service".into()))));
}

#[test]
fn a_unit_that_does_its_work_and_ends_is_up_once_it_has_done_it_in_this_boot() {
    let unit = |change: &[(&str, &str)]| {
        let mut text =
            TWO.replace("Type=notify", "Type=oneshot").replace("ActiveState=active", "ActiveState=inactive");
        for (from, to) in change {
            text = text.replace(from, to);
        }
        read(&["ssh.service"], &text).0.remove(0).is_up()
    };
    assert!(unit(&[]));
    assert!(!unit(&[("Result=success", "Result=exit-code")]));
    assert!(!unit(&[("Monotonic=1234567", "Monotonic=0")]), "it never ran");
    assert!(!unit(&[("Type=oneshot", "Type=oneshot\nRemainAfterExit=yes")]), "it was stopped");
    assert!(!unit(&[("Type=oneshot", "Type=simple")]));
}

#[test]
fn an_alias_with_a_backslash_is_known_however_it_is_written() {
    // systemctl quotes it in a list, and the bus does not.
    for names in [r#"a.service "b\\x2dc.service""#, r"a.service b\x2dc.service"] {
        let text =
            format!("Id=a.service\nNames={names}\nLoadState=loaded\nActiveState=active\nSubState=running\n");
        let (units, unsaid) = read(&[r"b\x2dc.service"], &text);
        assert_eq!((units.len(), unsaid), (1, None), "{names}");
        assert_eq!(units[0].names, ["a.service", r"b\x2dc.service"]);
    }
}
