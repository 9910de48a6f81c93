//! What a token carries, and what it does not. That it stands in no record is a journey's to show, over every file there
//! is.

use tenure_protocol::token::Presented;

use super::scripted::up;

// rule: N-02
#[tokio::test]
async fn a_token_carries_what_joining_needs() {
    let up = up().await;
    let invited = up.invite("edge-1").await;
    let presented = Presented::parse(invited.token.reveal()).unwrap();
    assert_eq!(presented.invitation.addresses, vec!["control.example:7443".to_owned()]);
    assert_eq!(presented.invitation.ca, up.control.plane().keys.ca());
}
