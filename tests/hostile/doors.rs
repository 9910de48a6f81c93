//! An open session in wrong hands: every kind at the wrong door, and bodies that claim too much.

use tenure_protocol::kind::{Door, KINDS};
use tenure_protocol::wire::frame::MOST;

use crate::link::Node;
use crate::memory::WORK;
use crate::witness::Witness;

// rule: S-02
#[tokio::test(flavor = "multi_thread")]
async fn every_kind_that_a_node_may_not_send_is_refused_by_name_and_its_session_goes_on() {
    let witness = Witness::new();
    let mut node = Node::enrolled(&witness.sandbox, "edge-2").await;
    let (mut link, _) = node.session(&witness.sandbox).await;
    for kind in KINDS {
        let own = kind.to.replace("{node}", "edge-2");
        let refused = link.ask_raw(&own, kind.name, vec![0xc1]).await.unwrap_err();
        let may = kind.doors.contains(&Door::LinkUp);
        assert!(refused.is(if may { "malformed" } else { "wrong_door" }), "{}: {refused:?}", kind.name);
        let others = kind.to.replace("{node}", "edge-1");
        let refused = link.ask_raw(&others, kind.name, vec![0xc1]).await.unwrap_err();
        assert!(refused.is(if may { "not_yours" } else { "wrong_door" }), "{}: {refused:?}", kind.name);
    }
    let refused = link.ask_raw("node/edge-2", "\u{1b}[2J", vec![]).await.unwrap_err();
    assert!(refused.is("unsupported_kind") && !refused.happened.contains('\u{1b}'), "{refused:?}");
    witness.works();
}

// rule: S-22
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_a_bomb_is_refused_by_name_and_the_session_goes_on() {
    let witness = Witness::new();
    let mut node = Node::enrolled(&witness.sandbox, "edge-2").await;
    let (mut link, _) = node.session(&witness.sandbox).await;
    let memory = witness.memory();
    let field = |name: &str, value: &[u8]| {
        let length = u8::try_from(name.len()).unwrap();
        [&[0x81, 0xa0 | length], name.as_bytes(), value].concat()
    };
    let many = [&[0xdd, 0, 3, 0xd0, 0x90][..], &[0x80; 250_000]].concat();
    let claims = [0xdd, 0xff, 0xff, 0xff, 0xff];
    let nested = [0x91; 200_000];
    let bombs = [
        ("report", field("outcomes", &many)),
        ("report", field("outcomes", &claims)),
        ("events", field("events", &many)),
        ("events", field("events", &nested)),
        ("content.fetch", field("wanted", &many)),
        ("content.fetch", field("unknown", &nested)),
        ("heartbeat", field("facts", &claims)),
        ("session.renew", nested.to_vec()),
    ];
    for (kind, body) in &bombs {
        let to = KINDS.iter().find(|known| known.name == *kind).unwrap().to.replace("{node}", "edge-2");
        let refused = link.ask_raw(&to, kind, body.clone()).await.unwrap_err();
        assert!(refused.is("malformed"), "{kind}: {refused:?}");
    }
    memory.assert_grew_at_most(4 * MOST + WORK, "bodies that are bombs");
    witness.works();
}
