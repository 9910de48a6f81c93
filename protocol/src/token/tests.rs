use proptest::prelude::*;

use super::*;
use crate::id::EpochId;
use crate::proof::NodeKey;

mod table;

fn invitation() -> Invitation {
    Invitation {
        v: 1,
        addresses: vec!["control.example:7443".into()],
        ca: Digest::of(b"ca"),
        control_plane_id: ControlPlaneId::from_bytes([1; 16]),
        epoch: Epoch { number: 1, id: EpochId::from_bytes([2; 16]) },
        node: NodeId::new("edge-1").unwrap(),
        rental: Rental::new("own").unwrap(),
        generation: Generation(1),
        mode: Mode::Converged,
        expires: Millis(1_700_000_000_000),
        counter: 1,
        key_id: 1,
    }
}

fn session_claims() -> SessionClaims {
    SessionClaims {
        v: 1,
        key_id: 1,
        control_plane_id: ControlPlaneId::from_bytes([1; 16]),
        epoch: Epoch { number: 1, id: EpochId::from_bytes([2; 16]) },
        node: NodeId::new("edge-1").unwrap(),
        generation: Generation(1),
        fencing: FencingToken(3),
        key: NodeKey::from_seed(&[7; 32]).public().digest(),
        expires: Millis(5),
    }
}

// rule: S-03
// rule: N-02
#[test]
fn a_token_says_what_the_invitation_said_and_is_judged_ours() {
    let signer = Signer::new(&[9; 32]);
    let minted = signer.mint(&invitation()).unwrap();
    let presented = Presented::parse(&format!("  {}\n", minted.text.reveal())).unwrap();
    assert_eq!(presented.invitation, invitation());
    assert_eq!(presented.id(), minted.id);
    assert_eq!(presented.text().reveal(), minted.text.reveal());
    signer.judge(&presented).unwrap();
    assert!(minted.text.reveal().len() <= MOST_CHARACTERS);
}

// rule: S-03
#[test]
fn a_token_of_another_master_key_is_not_proven() {
    let presented =
        Presented::parse(Signer::new(&[8; 32]).mint(&invitation()).unwrap().text.reveal()).unwrap();
    assert_eq!(Signer::new(&[9; 32]).judge(&presented), Err(NotProven::Mac));
}

// rule: S-03
#[test]
fn every_character_changed_cut_or_added_is_noticed() {
    let signer = Signer::new(&[9; 32]);
    let minted = signer.mint(&invitation()).unwrap();
    let good = minted.text.reveal();
    let refused = |text: &str| match Presented::parse(text) {
        Err(_) => true,
        Ok(presented) => signer.judge(&presented).is_err(),
    };
    for at in 0..good.len() {
        let mut bytes = good.as_bytes().to_vec();
        bytes[at] = if bytes[at] == b'x' { b'y' } else { b'x' };
        assert!(refused(std::str::from_utf8(&bytes).unwrap()), "changed at {at}");
        assert!(refused(&good[..at]), "cut at {at}");
    }
    assert!(refused(&format!("{good}0")));
    assert!(matches!(Presented::parse(""), Err(TokenError::NotAToken)));
    assert!(matches!(Presented::parse("tenure_e2_abc"), Err(TokenError::NotAToken)));
    assert!(matches!(Presented::parse("tenure_e1_"), Err(TokenError::Damaged)));
    assert!(matches!(Presented::parse(&format!("{PREFIX}{}", "a".repeat(5000))), Err(TokenError::NotAToken)));
}

// rule: N-04
#[test]
fn without_a_master_key_nothing_is_minted_and_nothing_is_judged() {
    let presented =
        Presented::parse(Signer::new(&[9; 32]).mint(&invitation()).unwrap().text.reveal()).unwrap();
    let signer = Signer::without_key();
    assert!(signer.mint(&invitation()).is_err());
    assert_eq!(signer.judge(&presented), Err(NotProven::Signer(NoMasterKey)));
    assert!(signer.mint_session(&session_claims()).is_err());
}

// rule: N-04
#[test]
fn the_two_purposes_have_two_keys() {
    let signer = Signer::new(&[9; 32]);
    let keys = signer.keys().unwrap();
    assert_ne!(keys.enrolment.as_ref(), keys.session.as_ref());
}

// rule: S-03
#[test]
fn a_handed_back_token_is_the_same_one_or_none() {
    let signer = Signer::new(&[9; 32]);
    let minted = signer.mint(&invitation()).unwrap();
    let again = signer.hand_back(&minted.bytes, minted.id).unwrap().unwrap();
    assert_eq!(again.reveal(), minted.text.reveal());
    assert!(signer.hand_back(&minted.bytes, Digest::of(b"else")).unwrap().is_none());
    assert!(Signer::new(&[8; 32]).hand_back(&minted.bytes, minted.id).unwrap().is_none());
}

// rule: S-03
#[test]
fn a_session_token_holds_for_its_own_standing_only() {
    let signer = Signer::new(&[9; 32]);
    let claims = session_claims();
    let token = signer.mint_session(&claims).unwrap();
    let judged = signer.judge_session(&token).unwrap();
    assert_eq!(judged, claims);
    let key = NodeKey::from_seed(&[7; 32]).public();
    let edge = NodeId::new("edge-1").unwrap();
    let are_of = |node: &NodeId, generation, fencing, key: &PublicKey| {
        judged.are_of(claims.control_plane_id, claims.epoch, node, generation, fencing, key)
    };
    assert!(are_of(&edge, Generation(1), FencingToken(3), &key));
    assert!(!are_of(&NodeId::new("edge-2").unwrap(), Generation(1), FencingToken(3), &key));
    assert!(!are_of(&edge, Generation(2), FencingToken(3), &key));
    assert!(!are_of(&edge, Generation(1), FencingToken(2), &key));
    assert!(!are_of(&edge, Generation(1), FencingToken(3), &NodeKey::from_seed(&[8; 32]).public()));
    for bit in 0..token.0.len() * 8 {
        let mut bytes = token.0.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(signer.judge_session(&SessionToken(bytes)).is_err(), "bit {bit}");
    }
}

// rule: N-22
#[test]
fn no_token_can_be_printed() {
    let signer = Signer::new(&[9; 32]);
    let minted = signer.mint(&invitation()).unwrap();
    let presented = Presented::parse(minted.text.reveal()).unwrap();
    let secret = &minted.text.reveal()[PREFIX.len()..PREFIX.len() + 20];
    for shown in [
        format!("{presented:?}"),
        format!("{:?}", minted.text),
        minted.text.to_string(),
        format!("{signer:?}"),
    ] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_fall_over(text in "(tenure_e1_)?[0-9A-Za-z]{0,300}|\\PC{0,200}") {
        let _ = Presented::parse(&text);
    }
}

// rule: N-02
// case: O-62
#[test]
fn a_word_that_carries_a_token_is_told_from_a_path_that_only_looks_like_one() {
    for word in ["tenure_e1_abc", "--token=tenure_e1_abc", "--token-file=tenure_e1_abc", " tenure_e1_abc"] {
        assert!(is_in(word), "{word}");
    }
    let token = "tenure_e1_0123456789abcdEF";
    for word in [
        format!("'{token}'"),
        format!("\"{token}\""),
        format!("\u{201c}{token}\u{201d}"),
        format!("<{token}>"),
        format!("token:{token}"),
        format!("-t{token}"),
        format!("host.example/{token}"),
        format!("/root/tenure_e1_abc,{token}"),
        format!("tenure_e1_{token}"),
        format!("x{token}..."),
    ] {
        assert!(is_in(&word), "{word}");
    }
    for word in [
        "/root/tenure_e1_abc",
        "./tenure_e1_0123456789abcde",
        "token",
        "--token-file=/tmp/tenure_e1_abc",
        "tenure",
    ] {
        assert!(!is_in(word), "{word}");
    }
}
