use tenure_protocol::id::FencingToken;
use tenure_protocol::machine::NodeState;
use tenure_protocol::operator::{Invite, Retire};
use tenure_protocol::proof::{NodeKey, Purpose};
use tenure_protocol::token::Presented;
use tenure_protocol::wire::tls::Trust;

use super::scripted::{START, enrol_hello, invitation, joining, name, refusal, up};

// rule: N-01
#[tokio::test]
async fn an_invited_identity_is_listed_before_any_machine_exists_and_is_invited_once() {
    let up = up().await;
    let invited = up.invite("edge-1").await;
    assert_eq!(invited.expires.0, START.millis() + 30 * 60 * 1000);
    let detail = up.node("edge-1").await;
    assert_eq!((detail.line.state, detail.fencing_token), (NodeState::Enrolling, FencingToken(0)));
    assert_eq!(detail.invited_until, Some(invited.expires));
    let again = refusal(up.ask("fleet", &invitation("edge-1")).await);
    assert!(again.is("node_exists") && again.remedy.contains("tenure reinvite edge-1"), "{again:?}");
    let minted = up.ask("fleet", &Invite { node: None, ..invitation("x") }).await.unwrap();
    assert!(minted.node.as_str().starts_with("node-"));
}

// rule: X-1
#[tokio::test]
async fn redeeming_makes_the_node_ready_binds_its_key_and_raises_the_fencing_token() {
    let up = up().await;
    let host = up.host("edge-1").await;
    assert_eq!(host.enrolled.fencing, FencingToken(1));
    assert_eq!(host.enrolled.roots.len(), 1);
    assert!(host.enrolled.briefing.is_assignable());
    let detail = up.node("edge-1").await;
    assert_eq!(detail.line.state, NodeState::Ready);
    assert!(detail.line.assignable && detail.enrolled_at.is_some() && detail.lease_expires.is_some());
    assert_eq!(detail.invited_until, None);
    assert_eq!(detail.profile.unwrap().hostname, "scripted");
}

// rule: X-11
#[tokio::test]
async fn a_repeat_with_the_same_key_gets_the_same_answer_and_nothing_moves() {
    let up = up().await;
    let invited = up.invite("edge-1").await;
    let key = NodeKey::generate().unwrap();
    let first = up.enrol(invited.token.reveal(), &key).await.unwrap();
    let again = up.enrol(invited.token.reveal(), &key).await.unwrap();
    assert_eq!(first, again);
    assert_eq!(up.node("edge-1").await.fencing_token, FencingToken(1));
    let enrolled = up.events("edge-1").await.into_iter().filter(|(kind, _)| kind == "enrolled").count();
    assert_eq!(enrolled, 1);
}

// rule: N-03
#[tokio::test]
async fn another_key_on_a_spent_token_is_spent_and_the_operator_hears_both_addresses_once() {
    let up = up().await;
    let invited = up.invite("edge-1").await;
    up.enrol(invited.token.reveal(), &NodeKey::generate().unwrap()).await.unwrap();
    let thief = NodeKey::generate().unwrap();
    for _ in 0..3 {
        let refused = up.enrol(invited.token.reveal(), &thief).await.unwrap_err();
        assert!(refused.is("spent") && refused.remedy.contains("tenure reinvite edge-1"), "{refused:?}");
    }
    let alarms: Vec<String> = up
        .events("edge-1")
        .await
        .into_iter()
        .filter_map(|(kind, text)| (kind == "second_redemption").then_some(text))
        .collect();
    assert!(matches!(&alarms[..], [text] if text.matches("127.0.0.1:").count() == 2), "{alarms:?}");
    let detail = up.node("edge-1").await;
    assert_eq!((detail.fencing_token, detail.line.state), (FencingToken(1), NodeState::Ready));
}

// rule: N-03
#[tokio::test]
async fn not_proven_not_valid_spent_and_not_found_are_four_answers() {
    let up = up().await;
    let invited = up.invite("edge-1").await;
    let (token, key) = (invited.token.reveal(), NodeKey::generate().unwrap());
    // A token of another control plane, and a key that signed for another connection.
    let other = super::scripted::up().await;
    let foreign = other.invite("edge-1").await;
    let refused = up.enrol(foreign.token.reveal(), &key).await.unwrap_err();
    assert!(refused.is("not_proven"), "{refused:?}");
    let refused = up.enrol_as(token, &key, |hello| enrol_hello(hello.token.reveal(), &key, &[0; 32])).await;
    assert!(refused.unwrap_err().is("not_proven"));
    // A token of ours for a name that nobody invited.
    let unknown = {
        let plane = up.control.plane();
        let invitation = Presented::parse(token).unwrap().invitation;
        plane
            .keys
            .signer
            .mint(&tenure_protocol::token::Invitation { node: name("ghost"), ..invitation })
            .unwrap()
    };
    assert!(up.enrol(unknown.text.reveal(), &key).await.unwrap_err().is("not_found"));
    up.clock.advance(std::time::Duration::from_secs(31 * 60));
    let late = up.enrol(token, &key).await.unwrap_err();
    assert!(late.is("not_valid") && late.happened.contains("run out"), "{late:?}");
    assert_eq!(up.node("edge-1").await.line.state, NodeState::Enrolling);
}

// rule: N-14
#[tokio::test]
async fn a_retired_node_hears_so_after_its_proof_and_has_no_way_back() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let mut open = host.session(&up).await;
    let retire = Retire { node: name("edge-1") };
    assert!(!up.ask("fleet", &retire).await.unwrap().already);
    assert_eq!(open.ended().await.as_deref(), Some("retired"));
    assert!(up.ask("fleet", &retire).await.unwrap().already);
    assert!(host.session_as(&up, |hello| hello).await.err().unwrap().is("retired"));
    assert!(refusal(up.reinvite("edge-1", false).await).is("retired"));
    let again = refusal(up.ask("fleet", &invitation("edge-1")).await);
    assert!(again.is("retired") && !again.remedy.contains("reinvite"), "{again:?}");
    let detail = up.until("edge-1", |detail| detail.lease_expires.is_none()).await;
    assert_eq!(detail.line.state, NodeState::Retired);
    // An outstanding token of a retired node is worth nothing.
    let invited = up.invite("edge-2").await;
    up.ask("fleet", &Retire { node: name("edge-2") }).await.unwrap();
    let refused = up.enrol(invited.token.reveal(), &NodeKey::generate().unwrap()).await.unwrap_err();
    assert!(refused.is("retired"), "{refused:?}");
}

// case: O-52
// rule: N-03
#[tokio::test]
async fn of_fifty_machines_that_redeem_one_token_at_once_exactly_one_is_enrolled() {
    let up = up().await;
    let invited = up.invite("edge-1").await;
    let mut keys = Vec::new();
    keys.resize_with(50, || NodeKey::generate().unwrap());
    // Every one of them has proved its key before the first of them asks to join.
    let mut links = Vec::new();
    for key in &keys {
        let mut link = up.dial().await;
        let hello = enrol_hello(invited.token.reveal(), key, &link.binding(Purpose::Enrol));
        link.ask("fleet", &hello).await.unwrap();
        links.push(link);
    }
    let mut joins = tokio::task::JoinSet::new();
    for mut link in links {
        joins.spawn(async move { link.ask("fleet", &joining()).await });
    }
    let (won, lost): (Vec<_>, Vec<_>) = joins.join_all().await.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 49));
    assert_eq!(won[0].as_ref().unwrap().fencing, FencingToken(1));
    assert!(lost.iter().all(|lost| lost.as_ref().unwrap_err().is("spent")));
    let detail = up.node("edge-1").await;
    assert_eq!((detail.fencing_token, detail.line.state), (FencingToken(1), NodeState::Ready));
}

// rule: N-14
#[tokio::test]
async fn a_session_that_was_opening_while_its_node_was_retired_leaves_no_actor_behind() {
    let up = up().await;
    up.host("edge-1").await;
    up.ask("fleet", &Retire { node: name("edge-1") }).await.unwrap();
    let plane = up.control.plane();
    let node = crate::fleet::find(plane, &name("edge-1")).unwrap();
    crate::node::attend(plane, &node, NodeState::Ready).await;
    up.until("edge-1", |detail| detail.lease_expires.is_none()).await;
    let declared = tenure_protocol::content::Push {
        revision: tenure_protocol::id::Revision {
            epoch: plane.founding.epoch,
            number: tenure_protocol::id::RevisionNumber(1),
        },
        sha256: tenure_protocol::id::Digest::of(b"x"),
        bytes: 1,
        resources: 1,
    };
    let part = super::declaring::part(&declared, 1, &[], &[]);
    let refused = node.reconcile.report(tenure_protocol::id::StoreId::random(), part).await.unwrap_err();
    assert!(refused.is("try_later") && refused.happened.contains("not running"), "{refused:?}");
}

// case: O-64
#[tokio::test]
async fn what_an_enrolment_was_answered_with_is_there_after_a_restart() {
    let up = up().await;
    let invited = up.invite("edge-1").await;
    let key = NodeKey::generate().unwrap();
    let enrolled = up.enrol(invited.token.reveal(), &key).await.unwrap();
    let up = up.restart().await;
    assert_eq!(up.enrol(invited.token.reveal(), &key).await.unwrap(), enrolled);
    let refused = up.enrol(invited.token.reveal(), &NodeKey::generate().unwrap()).await.unwrap_err();
    assert!(refused.is("spent"));
    assert_eq!(up.node("edge-1").await.fencing_token, enrolled.fencing);
}

// rule: H-13
#[tokio::test]
async fn the_first_frame_of_an_enrolment_redeems_nothing() {
    let up = up().await;
    let invited = up.invite("edge-1").await;
    let key = NodeKey::generate().unwrap();
    let mut link = up.dial().await;
    let hello = enrol_hello(invited.token.reveal(), &key, &link.binding(Purpose::Enrol));
    link.ask("fleet", &hello).await.unwrap();
    assert_eq!(up.node("edge-1").await.line.state, NodeState::Enrolling);
    drop(link);
    let other = NodeKey::generate().unwrap();
    up.enrol(invited.token.reveal(), &other).await.unwrap();
}

// rule: S-02
#[tokio::test]
async fn a_second_frame_of_another_kind_redeems_nothing() {
    let up = up().await;
    let invited = up.invite("edge-1").await;
    let key = NodeKey::generate().unwrap();
    let mut link = up.dial().await;
    let hello = enrol_hello(invited.token.reveal(), &key, &link.binding(Purpose::Enrol));
    link.ask("fleet", &hello).await.unwrap();
    let refused = link.ask("fleet", &invitation("edge-9")).await.unwrap_err();
    assert!(refused.is("wrong_door"), "{refused:?}");
    let mut link = up.dial().await;
    assert!(link.ask("fleet", &joining()).await.unwrap_err().is("wrong_door"));
    assert_eq!(up.node("edge-1").await.line.state, NodeState::Enrolling);
}

// rule: N-01
#[tokio::test]
async fn without_an_address_to_advertise_an_invitation_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let clock = tenure_actors::clock::ManualClock::at(START);
    let options = super::scripted::options(folder.path(), &clock);
    let control =
        crate::daemon::start(crate::daemon::Options { advertise: vec![], ..options }).await.unwrap();
    let refused = control.plane().fleet.invite(invitation("edge-1")).await.unwrap_err();
    assert!(refused.is("no_advertise") && refused.remedy.contains("advertise"), "{refused:?}");
    control.stop().await;
}

// rule: S-01
#[tokio::test]
async fn the_digest_in_a_token_finds_this_control_plane_before_and_after_a_restart_and_no_other() {
    let up = up().await;
    let invited = up.invite("edge-1").await;
    let ca = Presented::parse(invited.token.reveal()).unwrap().invitation.ca;
    let other = super::scripted::up().await;
    assert!(other.dial_trusting(Trust::ByDigest(ca)).await.is_err());
    up.dial_trusting(Trust::ByDigest(ca)).await.unwrap();
    let up = up.restart().await;
    up.dial_trusting(Trust::ByDigest(ca)).await.unwrap();
}

// rule: S-04
#[tokio::test]
async fn a_proof_made_for_another_connection_or_purpose_enrols_nobody() {
    let up = up().await;
    let invited = up.invite("edge-1").await;
    let key = NodeKey::generate().unwrap();
    let elsewhere = up.dial().await;
    for binding in [elsewhere.binding(Purpose::Enrol), elsewhere.binding(Purpose::Session)] {
        let replayed = enrol_hello(invited.token.reveal(), &key, &binding);
        assert!(up.dial().await.ask("fleet", &replayed).await.unwrap_err().is("not_proven"));
    }
    let mut link = up.dial().await;
    let wrong_purpose = enrol_hello(invited.token.reveal(), &key, &link.binding(Purpose::Session));
    assert!(link.ask("fleet", &wrong_purpose).await.unwrap_err().is("not_proven"));
    up.enrol(invited.token.reveal(), &key).await.unwrap();
}
