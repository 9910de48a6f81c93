//! Every wrong token at the real listener, and the name each is refused by. The bytes of one are turned over in the
//! protocol's own tests; here it is what a token says, and when.

use std::time::Duration;

use tenure_protocol::id::{ControlPlaneId, Epoch, EpochId, FencingToken, Generation, Millis, StoreId};
use tenure_protocol::machine::NodeState;
use tenure_protocol::operator::{Invite, Rejoin};
use tenure_protocol::proof::NodeKey;
use tenure_protocol::session::Hello;
use tenure_protocol::token::{Invitation, Presented, SessionClaims, SessionToken};
use tenure_protocol::wire::codec;

use super::scripted::{Host, Up, invitation, name, up};

/// Another invitation, made of a good one.
type Change = Box<dyn FnOnce(Invitation) -> Invitation>;

/// A token of our own making that says what `change` makes of a good one.
fn minted(up: &Up, good: &str, change: impl FnOnce(Invitation) -> Invitation) -> String {
    let invitation = change(Presented::parse(good).unwrap().invitation);
    up.control.plane().keys.signer.mint(&invitation).unwrap().text.reveal().to_owned()
}

async fn refused(up: &Up, token: &str) -> String {
    up.enrol(token, &NodeKey::generate().unwrap()).await.unwrap_err().code
}

// rule: N-03
// rule: S-03
#[tokio::test]
async fn a_token_of_our_making_for_anything_else_than_was_invited_is_refused_by_name() {
    let up = up().await;
    let invited = up.invite("edge-1").await;
    let good = invited.token.reveal();
    let epoch = up.control.plane().founding.epoch;
    let other = move |id| Epoch { id, ..epoch };
    let table: [(&str, &str, Change); 7] = [
        ("another node", "not_found", Box::new(|it| Invitation { node: name("edge-2"), ..it })),
        ("a later life", "not_found", Box::new(|it| Invitation { generation: Generation(2), ..it })),
        ("another count", "not_found", Box::new(|it| Invitation { counter: it.counter + 1, ..it })),
        (
            "another control plane",
            "not_valid",
            Box::new(|it| Invitation { control_plane_id: ControlPlaneId::from_bytes([9; 16]), ..it }),
        ),
        (
            "a forked epoch",
            "not_valid",
            Box::new(move |it| Invitation { epoch: other(EpochId::from_bytes([9; 16])), ..it }),
        ),
        (
            "an earlier epoch",
            "not_valid",
            Box::new(move |it| Invitation { epoch: Epoch { number: 0, ..epoch }, ..it }),
        ),
        ("a closed window", "not_valid", Box::new(|it| Invitation { expires: Millis(1), ..it })),
    ];
    for (what, code, change) in table {
        assert_eq!(refused(&up, &minted(&up, good, change)).await, code, "{what}");
    }
    assert_eq!(up.node("edge-1").await.line.state, NodeState::Enrolling);
    up.enrol(good, &NodeKey::generate().unwrap()).await.unwrap();
}

// rule: N-03
#[tokio::test]
async fn a_token_holds_until_the_last_second_of_its_window_and_not_one_moment_longer() {
    let up = up().await;
    let window = Duration::from_secs(30 * 60);
    let (early, late) = (up.invite("edge-1").await, up.invite("edge-2").await);
    up.clock.advance(window - Duration::from_secs(1));
    up.enrol(early.token.reveal(), &NodeKey::generate().unwrap()).await.unwrap();
    up.clock.advance(Duration::from_secs(1));
    assert_eq!(refused(&up, late.token.reveal()).await, "not_valid");
    up.clock.advance(Duration::from_secs(1));
    assert_eq!(refused(&up, late.token.reveal()).await, "not_valid");
    assert_eq!(up.node("edge-2").await.line.state, NodeState::Enrolling);
}

fn bytes_of(token: &SessionToken) -> Vec<u8> {
    let wrapped = codec::encode(token);
    // Two bytes of head: what the bytes are, and how many.
    wrapped[2..].to_vec()
}

fn token_of(bytes: &[u8]) -> SessionToken {
    codec::decode(
        &[&[0xc5, u8::try_from(bytes.len() / 256).unwrap(), u8::try_from(bytes.len() % 256).unwrap()], bytes]
            .concat(),
    )
    .unwrap()
}

/// A node that may come back only with a session token, and the token it has.
async fn returning(up: &Up, node: &str) -> (Host, SessionToken) {
    let asked = Invite { rejoin: Rejoin::Invitation, ..invitation(node) };
    let invited = up.ask("fleet", &asked).await.unwrap();
    let key = NodeKey::generate().unwrap();
    let enrolled = up.enrol(invited.token.reveal(), &key).await.unwrap();
    let mut host = Host { key, enrolled, store_id: StoreId::random(), sessions: 0 };
    let open = host.session(up).await;
    open.beat().await.unwrap();
    up.until_used(node).await;
    let token = open.welcome.token.clone();
    (host, token)
}

// rule: S-03
// rule: N-06
#[tokio::test]
async fn a_session_token_that_is_damaged_or_of_anybody_else_is_a_lapsed_one() {
    let up = up().await;
    let (mut host, good) = returning(&up, "edge-1").await;
    let (_, of_another) = returning(&up, "edge-2").await;
    let signer = &up.control.plane().keys.signer;
    let claims = signer.judge_session(&good).unwrap();
    let says = |change: &dyn Fn(SessionClaims) -> SessionClaims| {
        signer.mint_session(&change(claims.clone())).unwrap()
    };
    let bytes = bytes_of(&good);
    let mut wrong = vec![
        of_another,
        says(&|it| SessionClaims { generation: Generation(2), ..it }),
        says(&|it| SessionClaims { fencing: FencingToken(0), ..it }),
        says(&|it| SessionClaims { fencing: FencingToken(2), ..it }),
        says(&|it| SessionClaims { control_plane_id: ControlPlaneId::from_bytes([9; 16]), ..it }),
        says(&|it| SessionClaims { epoch: Epoch { number: 0, ..it.epoch }, ..it }),
        says(&|it| SessionClaims { key: NodeKey::generate().unwrap().public().digest(), ..it }),
        token_of(&[]),
        token_of(&bytes[..bytes.len() - 1]),
        token_of(&[&bytes[..], &[0]].concat()),
    ];
    wrong.extend((0..bytes.len()).step_by(7).map(|at| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        token_of(&bytes)
    }));
    for (number, token) in wrong.into_iter().enumerate() {
        let with = |hello| Hello { session_token: Some(token), ..hello };
        let refused = host.session_as(&up, with).await.err();
        assert!(refused.as_ref().is_some_and(|refusal| refusal.is("lapsed")), "{number}: {refused:?}");
    }
    host.session_as(&up, |hello| Hello { session_token: Some(good), ..hello }).await.unwrap();
}

// rule: N-06
#[tokio::test]
async fn a_session_token_holds_until_the_last_second_of_its_life_and_not_one_moment_longer() {
    let up = up().await;
    let (mut host, token) = returning(&up, "edge-1").await;
    let ends = up.control.plane().keys.signer.judge_session(&token).unwrap().expires;
    let left = u64::try_from(ends.0 - up.control.plane().now().0).unwrap();
    let with = |hello| Hello { session_token: Some(token.clone()), ..hello };
    up.clock.advance(Duration::from_millis(left - 1000));
    host.session_as(&up, with).await.unwrap();
    up.clock.advance(Duration::from_secs(1));
    assert!(host.session_as(&up, with).await.err().unwrap().is("lapsed"));
}
