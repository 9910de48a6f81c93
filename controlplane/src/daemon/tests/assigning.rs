//! Whether a node may be assigned anything, and what happens to one that may not.

use tenure_protocol::content::Push;
use tenure_protocol::enrolment::Join;
use tenure_protocol::id::StoreId;
use tenure_protocol::kind::Message as _;
use tenure_protocol::operator::{RolloutLine, Standing};
use tenure_protocol::profile::Inventory;
use tenure_protocol::proof::{NodeKey, Purpose};
use tenure_protocol::session::Hello;
use tenure_protocol::wire::exchange::Incoming;

use super::declaring::{folder, module, standing};
use super::scripted::{Host, Up, enrol_hello, joining, refusal, up};

/// A host whose machine is in use, enrolled converged: a line of its briefing failed.
async fn in_use(up: &Up, token: &str) -> Host {
    let key = NodeKey::generate().unwrap();
    let mut link = up.dial().await;
    link.ask("fleet", &enrol_hello(token, &key, &link.binding(Purpose::Enrol))).await.unwrap();
    let listeners = vec!["tcp 0.0.0.0:5432 postgres".to_owned()];
    let join = Join { inventory: Inventory { listeners, ..joining().inventory }, ..joining() };
    let enrolled = link.ask("fleet", &join).await.unwrap();
    Host { key, enrolled, store_id: StoreId::random(), sessions: 0 }
}

// rule: H-13
// rule: A-02
#[tokio::test]
async fn nothing_is_declared_for_a_node_whose_briefing_has_a_failed_line_which_is_named() {
    let up = up().await;
    let invited = up.invite("edge-1").await;
    let mut host = in_use(&up, invited.token.reveal()).await;
    let _open = host.session(&up).await;
    let refused = refusal(up.declare(&folder(&module(&[("/etc/motd", "hello")]))).await);
    assert!(refused.is("not_assignable") && refused.happened.contains("postgres"), "{refused:?}");
    assert_eq!(up.node("edge-1").await.line.revision.declared, None);
}

// rule: H-13
// rule: A-02
#[tokio::test]
async fn what_was_declared_before_a_failed_briefing_is_neither_told_nor_pushed_nor_given_out() {
    let up = up().await;
    let invited = up.invite("edge-1").await;
    up.declare(&folder(&module(&[("/etc/motd", "hello")]))).await.unwrap();
    let declared = up.control.plane().store.declared(super::scripted::name("edge-1")).await.unwrap().unwrap();
    let mut host = in_use(&up, invited.token.reveal()).await;
    let mut open = host.session_as(&up, |hello| Hello { held: None, ..hello }).await.unwrap();
    assert_eq!(open.welcome.declared, None);
    assert!(refusal(open.fetch(declared.sha256).await).is("not_assignable"));
    // The reconcile loop is told again, and whatever it sends is before the answer to this report.
    let node = crate::fleet::find(up.control.plane(), &open.node).unwrap();
    node.reconcile.declared(Push::from(declared));
    let RolloutLine { standing: column, reason, .. } = standing(&up).await;
    assert!(column == Standing::Outstanding && reason.contains("postgres"), "{reason}");
    let push = Push::from(declared);
    open.ask(&super::declaring::part(&push, 1, &[], &[])).await.unwrap();
    for _ in 0..20 {
        open.beat().await.unwrap();
    }
    while let Ok(incoming) = open.incoming.try_recv() {
        assert!(!matches!(incoming, Incoming::Request(request) if request.kind == Push::KIND.name));
    }
}
