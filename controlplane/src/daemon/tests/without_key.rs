use tenure_protocol::operator::{self, Invite, Nodes, Rejoin};
use tenure_protocol::proof::NodeKey;
use tenure_protocol::session::Hello;

use super::scripted::{Host, Up, invitation, name, refusal, up, up_in};
use crate::ground::Ground;

/// The same control plane again, with this in place of its master key; none: with no file.
async fn again_with(up: Up, key: Option<&[u8]>) -> Up {
    let Up { control, clock, folder, operator } = up;
    drop(operator);
    control.stop().await;
    let path = Ground::new(folder.path()).master_key();
    match key {
        Some(bytes) => std::fs::write(path, bytes).unwrap(),
        None => std::fs::remove_file(path).unwrap(),
    }
    up_in(folder, clock).await
}

// rule: N-04
#[tokio::test]
async fn without_its_master_key_it_refuses_to_mint_and_to_judge_says_so_and_answers_everything_else() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let outstanding = up.invite("edge-2").await;
    let key = std::fs::read(Ground::new(up.folder.path()).master_key()).unwrap();
    let mut up = up;
    for bad in [None, Some(&b""[..]), Some(&b"short"[..])] {
        up = again_with(up, bad).await;
        let reinvite = operator::Reinvite {
            node: name("edge-2"),
            valid_ms: None,
            revoke_now: false,
            clock_is_right: false,
        };
        for refused in
            [refusal(up.ask("fleet", &invitation("edge-3")).await), refusal(up.ask("fleet", &reinvite).await)]
        {
            assert!(refused.is("no_master_key") && refused.remedy.contains("master.key"), "{refused:?}");
        }
        let enrolling = NodeKey::generate().unwrap();
        assert!(up.enrol(outstanding.token.reveal(), &enrolling).await.unwrap_err().is("no_master_key"));
        assert!(host.session_as(&up, |hello| hello).await.err().unwrap().is("no_master_key"));
        let nodes = up.ask("fleet", &Nodes { after: None }).await.unwrap().nodes;
        assert_eq!(nodes.iter().map(|line| line.node.as_str()).collect::<Vec<_>>(), ["edge-1", "edge-2"]);
        let module = "[module]\nname = \"web\"\n[[file]]\npath = \"/a\"\ncontent = \"x\"\n";
        let fleet = "[node.edge-1]\nmodules = [\"web\"]\n";
        let files = [("fleet.toml", fleet), ("modules/web/module.toml", module)];
        up.declare_with(&files, true, None).await.unwrap();
    }
    let up = again_with(up, Some(&key)).await;
    host.session(&up).await;
    up.enrol(outstanding.token.reveal(), &NodeKey::generate().unwrap()).await.unwrap();
}

// rule: N-04
// case: O-70
#[tokio::test]
async fn without_a_master_key_nobody_is_told_that_a_session_lapsed() {
    let up = up().await;
    let asked = Invite { rejoin: Rejoin::Invitation, ..invitation("edge-1") };
    let invited = up.ask("fleet", &asked).await.unwrap();
    let key = NodeKey::generate().unwrap();
    let enrolled = up.enrol(invited.token.reveal(), &key).await.unwrap();
    let mut host = Host { key, enrolled, store_id: tenure_protocol::id::StoreId::random(), sessions: 0 };
    let open = host.session(&up).await;
    open.beat().await.unwrap();
    up.until_used("edge-1").await;
    let token = open.welcome.token.clone();
    let up = again_with(up, None).await;
    let with = |hello| Hello { session_token: Some(token), ..hello };
    let refused = host.session_as(&up, with).await.err().unwrap();
    assert!(refused.is("no_master_key"), "{refused:?}");
}

// rule: N-04
// rule: N-08
#[tokio::test]
async fn without_a_master_key_whoever_knocks_and_gets_no_session_does_not_look_ready() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let up = again_with(up, None).await;
    let before = up.node("edge-1").await;
    up.clock.advance(std::time::Duration::from_secs(40));
    assert!(host.session_as(&up, |hello| hello).await.err().unwrap().is("no_master_key"));
    let after = up.node("edge-1").await;
    assert_eq!(after.lease_expires, before.lease_expires);
    assert_eq!(after.line.last_contact, before.line.last_contact);
}
