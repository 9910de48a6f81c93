//! Tokens for an identity that is there already: handed back, minted anew, or refused.

use tenure_protocol::id::FencingToken;
use tenure_protocol::proof::NodeKey;
use tenure_protocol::token::Presented;

use super::scripted::{Up, options, up, up_with};

// rule: N-05
#[tokio::test]
async fn a_reinvite_leaves_the_old_enrolment_until_the_new_one_is_redeemed_and_then_fences_it() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let mut old = host.session(&up).await;
    let invited = up.reinvite("edge-1", false).await.unwrap();
    assert!(!invited.handed_back);
    old.beat().await.unwrap();
    let refused = up.enrol(invited.token.reveal(), &host.key).await.unwrap_err();
    assert!(refused.is("key_used"), "{refused:?}");
    let key = NodeKey::generate().unwrap();
    let enrolled = up.enrol(invited.token.reveal(), &key).await.unwrap();
    assert_eq!(enrolled.fencing, FencingToken(2));
    assert_eq!(old.ended().await.as_deref(), Some("fenced"));
    // The old key opens nothing, and neither does the new one with the old number.
    assert!(host.session_as(&up, |hello| hello).await.err().unwrap().is("fenced"));
    host.key = key;
    assert!(host.session_as(&up, |hello| hello).await.err().unwrap().is("fenced"));
    host.enrolled = enrolled;
    host.session(&up).await;
}

// rule: N-15
#[tokio::test]
async fn a_reinvite_hands_back_an_outstanding_token_and_mints_only_where_none_is_usable() {
    let up = up().await;
    let invited = up.invite("edge-1").await;
    let again = up.reinvite("edge-1", false).await.unwrap();
    assert!(again.handed_back);
    assert_eq!(again.token.reveal(), invited.token.reveal());
    up.clock.advance(std::time::Duration::from_secs(29 * 60 + 30));
    let fresh = up.reinvite("edge-1", false).await.unwrap();
    assert!(!fresh.handed_back && fresh.token.reveal() != invited.token.reveal());
    let key = NodeKey::generate().unwrap();
    let replaced = up.enrol(invited.token.reveal(), &key).await.unwrap_err();
    assert!(replaced.is("not_valid"), "{replaced:?}");
    up.enrol(fresh.token.reveal(), &key).await.unwrap();
}

// rule: N-15
#[tokio::test]
async fn a_reinvite_that_revokes_now_ends_the_session_and_the_old_key_hears_it_by_name() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let mut open = host.session(&up).await;
    up.reinvite("edge-1", true).await.unwrap();
    assert_eq!(open.ended().await.as_deref(), Some("revoked"));
    assert!(host.session_as(&up, |hello| hello).await.err().unwrap().is("revoked"));
}

// rule: N-15
#[tokio::test]
async fn an_outstanding_token_that_leads_to_an_address_of_before_is_not_handed_back() {
    let up = up().await;
    let invited = up.invite("edge-1").await;
    let Up { control, clock, folder, operator } = up;
    drop(operator);
    control.stop().await;
    let moved = vec!["elsewhere.example:7443".to_owned()];
    let up =
        up_with(crate::daemon::Options { advertise: moved, ..options(folder.path(), &clock) }, folder, clock)
            .await;
    let fresh = up.reinvite("edge-1", false).await.unwrap();
    assert!(!fresh.handed_back && fresh.token.reveal() != invited.token.reveal());
    let presented = Presented::parse(fresh.token.reveal()).unwrap();
    assert_eq!(presented.invitation.addresses, vec!["elsewhere.example:7443".to_owned()]);
    assert!(up.reinvite("edge-1", false).await.unwrap().handed_back);
}
