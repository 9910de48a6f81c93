//! The control plane's clock, wrong by minutes and by years, in both directions.

use std::time::Duration;

use tenure_actors::clock::{ManualClock, Moment};
use tenure_protocol::id::{Millis, StoreId};
use tenure_protocol::machine::NodeState;
use tenure_protocol::operator::{Invite, Nodes, Reinvite, Rejoin};
use tenure_protocol::proof::NodeKey;
use tenure_protocol::session::{Hello, Renew};

use super::scripted::{Host, START, Up, invitation, name, refusal, up, up_in};

const MINUTES: Duration = Duration::from_secs(7 * 60);
const YEARS: Duration = Duration::from_secs(2 * 366 * 24 * 3600);

/// The same control plane, started anew while its clock shows this.
async fn started_at(up: Up, moment: Moment) -> Up {
    let Up { control, folder, operator, .. } = up;
    drop(operator);
    control.stop().await;
    up_in(folder, ManualClock::at(moment)).await
}

// case: O-53
#[tokio::test]
async fn while_the_clock_is_behind_the_last_durable_write_no_token_is_minted_and_everything_else_goes_on() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let up = started_at(up, Moment::from_millis(0)).await;
    let refused = refusal(up.ask("fleet", &invitation("edge-2")).await);
    assert!(refused.is("clock_behind") && refused.happened.contains("1970"), "{refused:?}");
    assert!(refused.remedy.contains("--clock-is-right"), "{refused:?}");
    assert!(refusal(up.reinvite("edge-1", false).await).is("clock_behind"));
    assert_eq!(up.ask("fleet", &Nodes { after: None }).await.unwrap().nodes.len(), 1, "reads are served");
    host.session(&up).await.beat().await.unwrap();
    up.clock.set(START);
    up.invite("edge-2").await;
}

// case: O-53
#[tokio::test]
async fn after_a_clock_that_was_years_ahead_is_put_right_the_operators_word_is_enough_once() {
    let up = up().await;
    let up = started_at(up, START.plus(YEARS)).await;
    let mut host = up.host("edge-1").await;
    let open = host.session(&up).await;
    up.clock.set(START);
    open.beat().await.unwrap();
    assert!(refusal(up.ask("fleet", &invitation("edge-2")).await).is("clock_behind"));
    let asked = Reinvite { node: name("edge-1"), valid_ms: None, revoke_now: false, clock_is_right: true };
    let invited = up.ask("fleet", &asked).await.unwrap();
    assert_eq!(invited.expires, Millis(START.millis()).plus(Duration::from_secs(30 * 60)));
    up.invite("edge-2").await;
    let said =
        up.ask("events", &tenure_protocol::operator::Events { after: None, node: None }).await.unwrap();
    assert_eq!(said.events.iter().filter(|event| event.kind == "clock_trusted").count(), 1);
    let up = started_at(up, START).await;
    up.invite("edge-3").await;
}

// case: O-53
#[tokio::test]
async fn a_clock_that_jumps_under_an_open_session_ends_neither_it_nor_the_lease() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let open = host.session(&up).await;
    for moment in
        [START.plus(MINUTES), START.minus(MINUTES), START.plus(YEARS), Moment::from_millis(0), START]
    {
        up.clock.set(moment);
        open.beat().await.unwrap();
        let renewed = open.ask(&Renew {}).await.unwrap();
        assert_eq!(renewed.expires_in_ms, 1_800_000, "a life is a duration, whatever the clock shows");
        assert_eq!(renewed.expires, Millis(moment.millis()).plus(Duration::from_secs(1800)));
        let detail = up.node("edge-1").await;
        assert_eq!((detail.line.state, detail.session.is_some()), (NodeState::Ready, true));
    }
    let kinds: Vec<String> = up.events("edge-1").await.into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["invited", "enrolled"]);
}

// case: O-53
// rule: X-1
#[tokio::test]
async fn a_session_that_lapsed_by_a_jump_alone_is_recoverable_and_the_path_is_said() {
    let up = up().await;
    let asked = Invite { rejoin: Rejoin::Invitation, ..invitation("edge-1") };
    let invited = up.ask("fleet", &asked).await.unwrap();
    let key = NodeKey::generate().unwrap();
    let enrolled = up.enrol(invited.token.reveal(), &key).await.unwrap();
    let mut host = Host { key, enrolled, store_id: StoreId::random(), sessions: 0 };
    let open = host.session(&up).await;
    open.beat().await.unwrap();
    up.until_used("edge-1").await;
    let token = open.welcome.token.clone();
    let with = |hello| Hello { session_token: Some(token.clone()), ..hello };
    up.clock.set(START.plus(YEARS));
    let lapsed = host.session_as(&up, with).await.err().unwrap();
    assert!(lapsed.is("lapsed") && lapsed.remedy.contains("tenure reinvite edge-1"), "{lapsed:?}");
    open.beat().await.unwrap();
    up.clock.set(START.plus(Duration::from_secs(60)));
    host.session_as(&up, with).await.unwrap();
}

// case: O-53
// rule: N-02
#[tokio::test]
async fn a_token_made_while_the_clock_was_ahead_is_neither_redeemed_nor_handed_back_once_it_is_put_right() {
    for ahead in [YEARS, Duration::from_secs(90 * 24 * 3600)] {
        let up = started_at(up().await, START.plus(ahead)).await;
        let unspent = up.invite("edge-1").await;
        up.clock.set(START);
        let key = NodeKey::generate().unwrap();
        let refused = up.enrol(unspent.token.reveal(), &key).await.unwrap_err();
        assert!(refused.is("not_valid") && refused.happened.contains("has not come"), "{refused:?}");
        let asked =
            Reinvite { node: name("edge-1"), valid_ms: None, revoke_now: false, clock_is_right: true };
        let fresh = up.ask("fleet", &asked).await.unwrap();
        assert!(!fresh.handed_back && fresh.token.reveal() != unspent.token.reveal());
        assert!(up.enrol(unspent.token.reveal(), &key).await.unwrap_err().is("not_valid"));
        up.enrol(fresh.token.reveal(), &key).await.unwrap();
    }
}

// case: O-53
// rule: X-1
#[tokio::test]
async fn a_session_token_made_while_the_clock_was_years_ahead_is_not_good_for_years() {
    let up = started_at(up().await, START.plus(YEARS)).await;
    let asked = Invite { rejoin: Rejoin::Invitation, ..invitation("edge-1") };
    let invited = up.ask("fleet", &asked).await.unwrap();
    let key = NodeKey::generate().unwrap();
    let enrolled = up.enrol(invited.token.reveal(), &key).await.unwrap();
    let mut host = Host { key, enrolled, store_id: StoreId::random(), sessions: 0 };
    let open = host.session(&up).await;
    open.beat().await.unwrap();
    let token = open.welcome.token.clone();
    up.clock.set(START);
    let with = |hello| Hello { session_token: Some(token.clone()), ..hello };
    assert!(host.session_as(&up, with).await.err().unwrap().is("lapsed"));
    open.beat().await.unwrap();
    let renewed = open.ask(&Renew {}).await.unwrap().token;
    host.session_as(&up, |hello| Hello { session_token: Some(renewed), ..hello }).await.unwrap();
}
