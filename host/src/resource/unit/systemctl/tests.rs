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
    let units = read(&["sshd.service", "nothing.service"], TWO).unwrap();
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
        (&Load::NotFound, Active::Inactive, &Enabled::No)
    );
}

// case: O-16
#[test]
fn whether_a_unit_is_enabled_has_more_than_two_answers() {
    let enabled = |state: &str| {
        let text = TWO.replace("UnitFileState=enabled", &format!("UnitFileState={state}"));
        read(&["ssh.service"], &text).unwrap().remove(0).enabled
    };
    assert_eq!(enabled("enabled-runtime"), Enabled::Runtime);
    assert_eq!(enabled("disabled"), Enabled::No);
    assert_eq!(enabled("indirect"), Enabled::No);
    for never in ["static", "generated", "transient", "alias", "masked", "bad"] {
        assert_eq!(enabled(never), Enabled::Never(never.into()));
    }
}

#[test]
fn silence_about_a_unit_is_not_an_answer() {
    assert_eq!(
        read(&["ssh.service", "nothing.service", "third.service"], TWO),
        Err(Unsaid("third.service".into()))
    );
    assert_eq!(read(&["ssh.service"], "Failed to connect to bus\n"), Err(Unsaid("ssh.service".into())));
}

#[test]
fn a_unit_that_does_its_work_and_ends_is_up_once_it_has_done_it_in_this_boot() {
    let unit = |change: &[(&str, &str)]| {
        let mut text =
            TWO.replace("Type=notify", "Type=oneshot").replace("ActiveState=active", "ActiveState=inactive");
        for (from, to) in change {
            text = text.replace(from, to);
        }
        read(&["ssh.service"], &text).unwrap().remove(0).is_up()
    };
    assert!(unit(&[]));
    assert!(!unit(&[("Result=success", "Result=exit-code")]));
    assert!(!unit(&[("Monotonic=1234567", "Monotonic=0")]), "it never ran");
    assert!(!unit(&[("Type=oneshot", "Type=oneshot\nRemainAfterExit=yes")]), "it was stopped");
    assert!(!unit(&[("Type=oneshot", "Type=simple")]));
}
