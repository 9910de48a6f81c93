//! What a crash of one part costs: nothing that is open, declared or stored.

use super::declaring::{folder, module, pushed};
use super::scripted::{SOON, Up, name, refusal, up};

fn of(up: &Up) -> crate::node::Node {
    crate::fleet::find(up.control.plane(), &name("edge-1")).unwrap()
}

/// Until the node's actor answers again.
async fn is_back(up: &Up) {
    let back = async {
        loop {
            let asked = up.reinvite("edge-1", false).await;
            if asked.is_ok() || !refusal(asked).is("try_later") {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, back).await.unwrap();
}

#[tokio::test]
async fn an_open_session_gets_what_is_declared_after_its_reconcile_loop_crashed() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let mut open = host.session(&up).await;
    open.beat().await.unwrap();
    of(&up).reconcile.crash();
    up.declare(&folder(&module(&[("/etc/motd", "hello")]))).await.unwrap();
    assert_eq!(pushed(&up, &mut open).await.resources, 1);
}

#[tokio::test]
async fn an_open_session_gets_what_is_declared_after_its_node_actor_crashed() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let mut open = host.session(&up).await;
    open.beat().await.unwrap();
    of(&up).crash();
    is_back(&up).await;
    // And once the loop beside it crashed as well.
    of(&up).reconcile.crash();
    up.declare(&folder(&module(&[("/etc/motd", "hello")]))).await.unwrap();
    assert_eq!(pushed(&up, &mut open).await.resources, 1);
}

// rule: N-07
#[tokio::test]
async fn a_session_that_ends_while_its_node_actor_is_away_is_shown_no_longer() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let open = host.session(&up).await;
    open.beat().await.unwrap();
    of(&up).crash();
    drop(open);
    is_back(&up).await;
    up.until("edge-1", |detail| detail.session.is_none()).await;
}
