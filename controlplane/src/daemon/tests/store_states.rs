use rusqlite::Connection;
use tenure_protocol::machine::NodeState;
use tenure_protocol::proof::NodeKey;

use super::scripted::{invitation, refusal, up};
use crate::ground::Ground;

// case: O-70
#[tokio::test]
async fn while_another_program_holds_the_store_every_answer_names_the_store_and_says_later() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let open = host.session(&up).await;
    let invited = up.invite("edge-2").await;
    let holder = Connection::open(Ground::new(up.folder.path()).store()).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let key = NodeKey::generate().unwrap();
    let spooled = tenure_protocol::event::Spooled { events: vec![] };
    let third = invitation("edge-3");
    let (enrolled, invite, session, events, beat) = tokio::join!(
        up.enrol(invited.token.reveal(), &key),
        up.ask("fleet", &third),
        host.session_as(&up, |hello| hello),
        open.ask(&spooled),
        open.beat(),
    );
    // A beat needs no store, and an operator can still read.
    beat.unwrap();
    assert_eq!(up.node("edge-1").await.line.state, NodeState::Ready);
    let refusals = [enrolled.unwrap_err(), refusal(invite), session.err().unwrap(), refusal(events)];
    for refused in refusals {
        assert!(refused.is("store_busy") && refused.remedy.contains("try later"), "{refused:?}");
    }
    holder.execute_batch("ROLLBACK").unwrap();
    up.enrol(invited.token.reveal(), &key).await.unwrap();
    host.session(&up).await;
}
