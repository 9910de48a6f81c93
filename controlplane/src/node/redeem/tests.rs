use tenure_protocol::enrolment::{Briefing, Join};
use tenure_protocol::id::{
    ControlPlaneId, Digest, Epoch, EpochId, FencingToken, Generation, Millis, NodeId, NodeUuid, Rental,
};
use tenure_protocol::machine::{Mode, NodeState};
use tenure_protocol::operator::Rejoin;
use tenure_protocol::profile::{Inventory, Profile};
use tenure_protocol::proof::PublicKey;

use super::*;
use crate::store::Spent;

const OURS: PublicKey = PublicKey::from_bytes([1; 32]);
const THEIRS: PublicKey = PublicKey::from_bytes([2; 32]);

fn node() -> NodeId {
    NodeId::new("edge-1").unwrap()
}

fn record() -> NodeRecord {
    NodeRecord {
        node: node(),
        uuid: NodeUuid::from_bytes([3; 16]),
        rental: Rental::new("own").unwrap(),
        generation: Generation(1),
        mode: Mode::Converged,
        rejoin: Rejoin::Key,
        state: NodeState::Enrolling,
        fencing: FencingToken(0),
        key: None,
        revoked: false,
        enrolled_at: None,
        retired_at: None,
        profile: None,
        briefing: Briefing::default(),
        last_session: None,
        session_used: false,
    }
}

fn invitation() -> InvitationRecord {
    InvitationRecord {
        node: node(),
        counter: 1,
        token: Digest::of(b"token"),
        bytes: vec![],
        expires: Millis(100),
        minted_at: Millis(0),
        spent: None,
        replaced: false,
    }
}

fn attempt(key: PublicKey, now: i64) -> Attempt {
    Attempt {
        node: node(),
        generation: Generation(1),
        token: Digest::of(b"token"),
        key,
        from: "192.0.2.1:9".to_owned(),
        join: Join { profile: Profile::default(), inventory: Inventory::default() },
        briefing: Briefing::default(),
        now: Millis(now),
    }
}

fn enrolled(revoked: bool) -> (NodeRecord, InvitationRecord) {
    let record = NodeRecord { key: Some(OURS), state: NodeState::Ready, revoked, ..record() };
    let spent = Spent { key: OURS, from: "192.0.2.7:1".to_owned() };
    (record, InvitationRecord { spent: Some(spent), ..invitation() })
}

fn code(decision: Decision) -> &'static str {
    match decision {
        Decision::Redeem => "redeem",
        Decision::Again => "again",
        Decision::Alarm { .. } => "alarm",
        Decision::Refuse(refusal) => refusal.code(),
    }
}

// rule: N-03
#[test]
fn each_state_of_record_and_token_has_its_own_answer() {
    let (record, invitation) = (record(), invitation());
    let decide = |record: Option<&NodeRecord>,
                  invitation: Option<&InvitationRecord>,
                  attempt: Attempt,
                  bound| { code(decide(record, invitation, &attempt, bound)) };
    assert_eq!(decide(Some(&record), Some(&invitation), attempt(OURS, 1), false), "redeem");
    assert_eq!(decide(None, Some(&invitation), attempt(OURS, 1), false), "not_found");
    assert_eq!(decide(Some(&record), None, attempt(OURS, 1), false), "not_found");
    assert_eq!(decide(Some(&record), Some(&invitation), attempt(OURS, 100), false), "not_valid");
    assert_eq!(decide(Some(&record), Some(&invitation), attempt(OURS, 1), true), "key_used");
    let other = Attempt { generation: Generation(2), ..attempt(OURS, 1) };
    assert_eq!(decide(Some(&record), Some(&invitation), other, false), "not_valid");
    let replaced = InvitationRecord { replaced: true, ..invitation.clone() };
    assert_eq!(decide(Some(&record), Some(&replaced), attempt(OURS, 1), false), "not_valid");
    let retired = NodeRecord { state: NodeState::Retired, ..record };
    assert_eq!(decide(Some(&retired), Some(&invitation), attempt(OURS, 1), false), "retired");
}

// rule: X-11
#[test]
fn a_repeat_is_answered_again_only_with_the_key_and_standing_it_made_and_inside_the_window() {
    let (record, invitation) = enrolled(false);
    let decide =
        |record: &NodeRecord, attempt: Attempt| code(decide(Some(record), Some(&invitation), &attempt, true));
    assert_eq!(decide(&record, attempt(OURS, 99)), "again");
    assert_eq!(decide(&record, attempt(OURS, 100)), "not_valid");
    assert_eq!(decide(&record, attempt(THEIRS, 99)), "alarm");
    assert_eq!(decide(&NodeRecord { key: Some(THEIRS), ..record }, attempt(OURS, 99)), "spent");
    assert_eq!(decide(&enrolled(true).0, attempt(OURS, 99)), "spent");
}

// rule: N-03
#[test]
fn the_first_door_judges_a_token_without_any_record() {
    let epoch = Epoch { number: 1, id: EpochId::from_bytes([4; 16]) };
    let us = ControlPlaneId::from_bytes([5; 16]);
    let token = Invitation {
        v: 1,
        addresses: vec!["a:1".to_owned()],
        ca: Digest::of(b"ca"),
        control_plane_id: us,
        epoch,
        node: node(),
        rental: Rental::new("own").unwrap(),
        generation: Generation(1),
        mode: Mode::Converged,
        expires: Millis(100),
        counter: 1,
        key_id: 1,
    };
    assert!(valid(&token, us, epoch, Millis(99)).is_ok());
    let years = Invitation { expires: Millis(2 * 366 * 24 * 3_600_000), ..token.clone() };
    assert!(matches!(
        valid(&years, us, epoch, Millis(99)),
        Err(EnrolRefusal::NotValid { why: NotValid::Ahead, .. })
    ));
    let refused = |result: Result<(), EnrolRefusal>| result.unwrap_err();
    assert!(matches!(
        refused(valid(&token, us, epoch, Millis(100))),
        EnrolRefusal::NotValid { why: NotValid::Expired, .. }
    ));
    let later = Epoch { number: 2, ..epoch };
    assert!(matches!(
        refused(valid(&token, us, later, Millis(1))),
        EnrolRefusal::NotValid { why: NotValid::Epoch, .. }
    ));
}
