use super::*;

const DOORS: [Door; 9] = [
    Door::Greeting,
    Door::Enrolling,
    Door::LinkUp,
    Door::Withdrawn,
    Door::LinkDown,
    Door::Api(Role::Read),
    Door::Api(Role::Work),
    Door::Api(Role::Operate),
    Door::HostSocket,
];

// rule: S-02
#[test]
fn every_kind_comes_in_at_its_own_doors_and_is_refused_by_name_at_every_other() {
    for kind in KINDS {
        for door in DOORS {
            let open = kind.doors.iter().any(|open| match (open, door) {
                (Door::Api(needed), Door::Api(role)) => role >= *needed,
                (open, door) => *open == door,
            });
            match admit(kind.name, door) {
                Ok(admitted) => assert!(open && admitted == *kind, "{} at {door:?}", kind.name),
                Err(refusal) => assert!(!open && refusal.is("wrong_door"), "{} at {door:?}", kind.name),
            }
        }
    }
}

// rule: S-02
#[test]
fn no_kind_of_the_api_or_of_the_host_socket_comes_in_by_the_link() {
    for kind in KINDS {
        let link = kind.doors.iter().any(|door| match door {
            Door::Greeting | Door::Enrolling | Door::LinkUp | Door::Withdrawn | Door::LinkDown => true,
            Door::Api(_) | Door::HostSocket => false,
        });
        let api = kind.doors.iter().any(|door| matches!(door, Door::Api(_) | Door::HostSocket));
        assert!(link != api, "{}", kind.name);
    }
}

// rule: X-9
#[test]
fn whoever_lost_its_standing_may_tell_what_happened_and_nothing_else() {
    let open = KINDS.iter().filter(|kind| admit(kind.name, Door::Withdrawn).is_ok());
    assert_eq!(open.map(|kind| kind.name).collect::<Vec<_>>(), ["events"]);
}

#[test]
fn an_unknown_kind_is_refused_by_name_with_what_it_may_have_meant() {
    let refusal = admit("heartbaet", Door::LinkUp).unwrap_err();
    assert!(refusal.is("unsupported_kind") && refusal.happened.contains("near: `heartbeat`"), "{refusal:?}");
    assert!(admit("\u{1b}[2J", Door::LinkUp).unwrap_err().happened.contains("\\u{1b}"));
}

#[test]
fn no_name_stands_twice() {
    let mut names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), KINDS.len());
}
