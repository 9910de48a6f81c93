use super::*;

fn reason(code: &str) -> Refusal {
    Refusal::new(code, "it happened", "it means", "do")
}

fn refused(code: &str, retry_after_s: u64) -> Farewell {
    Farewell::Refused { reason: reason(code), retry_after: Duration::from_secs(retry_after_s) }
}

// rule: H-12
#[test]
fn joining_losing_and_regaining_the_link_walk_the_one_table() {
    let mut standing = Standing::at_start(false, Millis(0));
    assert_eq!((standing.machine(), standing.status()), (MachineState::Hosted, LinkStatus::None));
    assert!(
        standing.opened("a".into(), None, Millis(0)).is_err(),
        "nobody opens a session without an identity"
    );
    standing.enrolled(Millis(1)).unwrap();
    assert_eq!(standing.machine(), MachineState::Disconnected);
    standing.opened("a:1".into(), None, Millis(2)).unwrap();
    assert_eq!(standing.machine(), MachineState::Enrolled);
    standing.ended(&Farewell::Lost(reason("silent")), Millis(3));
    assert_eq!(standing.machine(), MachineState::Disconnected);
    standing.opened("a:1".into(), None, Millis(4)).unwrap();
    standing.enrolled(Millis(5)).unwrap();
    assert_eq!(standing.machine(), MachineState::Disconnected, "a reinvite begins a new session");
}

// rule: H-12
#[test]
fn a_host_that_starts_with_an_identity_is_disconnected_until_its_link_is_up() {
    assert_eq!(Standing::at_start(true, Millis(0)).machine(), MachineState::Disconnected);
}

#[test]
fn down_is_counted_from_the_moment_the_link_went_and_a_repeated_reason_is_no_news() {
    let mut standing = Standing::at_start(true, Millis(5));
    let unreached = Farewell::Unreached(reason("unreachable"));
    assert!(standing.ended(&unreached, Millis(9)).1);
    assert!(!standing.ended(&unreached, Millis(20)).1);
    assert!(standing.ended(&Farewell::Unreached(reason("wrong_certificate")), Millis(30)).1);
    let LinkStatus::Down { since, reason } = standing.status() else { panic!() };
    assert_eq!((since, reason.unwrap().code.as_str()), (Millis(5), "wrong_certificate"));
}

// rule: X-9
// case: O-61
#[test]
fn each_kind_of_end_has_its_own_wait() {
    assert_eq!(Farewell::Lost(reason("silent")).pause(), Pause::Backoff);
    assert_eq!(Farewell::Unreached(reason("unreachable")).pause(), Pause::Backoff);
    assert_eq!(refused("retired", 0).pause(), Pause::Rarely);
    assert_eq!(Farewell::Unheard(reason("retired")).pause(), Pause::AtLeast(ONLY_A_TOKEN));
    assert_eq!(refused("superseded", 0).pause(), Pause::AtLeast(AFTER_SUPERSEDED));
    assert_eq!(refused("fenced", 0).pause(), Pause::AtLeast(ONLY_A_TOKEN));
    assert_eq!(refused("revoked", 0).pause(), Pause::AtLeast(ONLY_A_TOKEN));
    assert_eq!(refused("draining", 20).pause(), Pause::AtLeast(Duration::from_secs(20)));
    assert_eq!(refused("not_proven", 0).pause(), Pause::Backoff);
    assert_eq!(refused("busy", 1_000_000).pause(), Pause::AtLeast(MOST_IMPOSED));
}

// case: O-55
// case: O-61
#[test]
fn a_session_was_held_when_it_lasted_three_beats_whatever_is_said_of_beats() {
    let seconds = Duration::from_secs;
    assert!(held(seconds(30), seconds(10)) && !held(seconds(29), seconds(10)));
    assert!(held(seconds(45), seconds(600)), "a proxy's minute is beyond it at any setting");
    assert!(!held(seconds(4), Duration::ZERO), "a beat of nothing makes no storm");
}
