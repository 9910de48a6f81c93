use rusqlite::Connection;
use tenure_protocol::id::StoreId;
use tenure_protocol::machine::NodeState;
use tenure_protocol::operator::{Invite, Rejoin};
use tenure_protocol::proof::NodeKey;

use super::scripted::{Host, SOON, invitation, refusal, up};
use crate::ground::Ground;

// case: O-70
#[tokio::test]
async fn while_another_program_holds_the_store_every_answer_names_the_store_and_says_later() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let open = host.session(&up).await;
    let mut knocking = up.host("edge-4").await;
    let before = up.node("edge-4").await;
    up.clock.advance(std::time::Duration::from_secs(40));
    let invited = up.invite("edge-2").await;
    let holder = Connection::open(Ground::new(up.folder.path()).store()).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let key = NodeKey::generate().unwrap();
    let spooled = tenure_protocol::event::Spooled { events: vec![] };
    let third = invitation("edge-3");
    let (enrolled, invite, session, knocked, events, beat) = tokio::join!(
        up.enrol(invited.token.reveal(), &key),
        up.ask("fleet", &third),
        host.session_as(&up, |hello| hello),
        knocking.session_as(&up, |hello| hello),
        open.ask(&spooled),
        open.beat(),
    );
    // A beat needs no store, and an operator can still read.
    beat.unwrap();
    assert_eq!(up.node("edge-1").await.line.state, NodeState::Ready);
    // Who proved its key was heard, whatever the store did: its lease runs on.
    let after = up.node("edge-4").await;
    assert!(after.lease_expires > before.lease_expires && after.line.last_contact > before.line.last_contact);
    let refusals = [
        enrolled.unwrap_err(),
        refusal(invite),
        session.err().unwrap(),
        knocked.err().unwrap(),
        refusal(events),
    ];
    for refused in refusals {
        assert!(refused.is("store_busy") && refused.remedy.contains("try later"), "{refused:?}");
    }
    holder.execute_batch("ROLLBACK").unwrap();
    up.enrol(invited.token.reveal(), &key).await.unwrap();
    host.session(&up).await;
}

// rule: X-1
// case: O-70
#[tokio::test]
async fn no_beat_waits_until_it_is_noted_that_its_session_is_used() {
    let up = up().await;
    let asked = Invite { rejoin: Rejoin::Invitation, ..invitation("edge-1") };
    let invited = up.ask("fleet", &asked).await.unwrap();
    let key = NodeKey::generate().unwrap();
    let enrolled = up.enrol(invited.token.reveal(), &key).await.unwrap();
    let mut host = Host { key, enrolled, store_id: StoreId::random(), sessions: 0 };
    let open = host.session(&up).await;
    let holder = Connection::open(Ground::new(up.folder.path()).store()).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    // The store lets nobody know for five seconds that it is held.
    let beats = async {
        for _ in 0..5 {
            open.beat().await.unwrap();
        }
    };
    tokio::time::timeout(SOON, beats).await.expect("five beats waited for the store");
    holder.execute_batch("ROLLBACK").unwrap();
    // Whatever it says next is a word on its session.
    open.ask(&tenure_protocol::event::Spooled { events: vec![] }).await.unwrap();
    up.until_used("edge-1").await;
}
