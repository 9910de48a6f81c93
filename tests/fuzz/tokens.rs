//! Tokens: the text a person pastes, and the bytes a node brings back.

use tenure_protocol::id::{Digest, Millis};
use tenure_protocol::token::{Presented, SessionToken, Signer};
use tenure_protocol::wire::codec;
use tenure_tests::secrets;

use crate::frame_examples;
use crate::{change, run};

const WORDS: &[&[u8]] = &[
    b"tenure_e1_",
    b"tenure_e2_",
    b"0",
    b"00000000000000000000",
    b"zzzzzzzzzzzzzzzzzzzz",
    b" ",
    b"\n",
    b"\0",
    "\u{e9}".as_bytes(),
    "\u{202e}".as_bytes(),
];

// rule: S-03
#[test]
fn no_changed_text_of_a_token_is_believed() {
    let signer = Signer::new(&[9; 32]);
    let good = frame_examples::token().reveal().to_owned();
    signer.judge(&Presented::parse(&good).unwrap()).unwrap();
    run::run(20_000, |random| {
        let changed = change::bytes(random, good.as_bytes(), WORDS, good.as_bytes());
        let changed = String::from_utf8_lossy(&changed);
        if let Ok(presented) = Presented::parse(&changed) {
            assert!(changed.trim() == good || signer.judge(&presented).is_err(), "{changed}");
        }
    });
}

// rule: S-03
#[test]
fn no_changed_bytes_of_a_token_are_believed_although_the_checksum_holds() {
    let signer = Signer::new(&[9; 32]);
    let good = frame_examples::token().reveal().to_owned();
    let bytes = secrets::bytes_of(&good);
    let signed = &bytes[..secrets::mac_in(&bytes).end];
    run::run(4_000, |random| {
        let mut changed = change::bytes(random, signed, &[&[0xc0], &[0xdf, 0xff, 0xff, 0xff, 0xff]], signed);
        let is_good = changed == signed;
        let checksum = Digest::of(&changed);
        changed.extend(&checksum.as_bytes()[..4]);
        // What is longer than any token is refused by its length, and would only take long to write.
        if changed.len() < 500
            && changed.first().is_some_and(|first| *first != 0)
            && let Ok(presented) = Presented::parse(&secrets::text_of(&changed))
        {
            assert!(is_good || signer.judge(&presented).is_err());
        }
    });
}

// rule: S-03
#[test]
fn no_changed_bytes_of_a_session_token_are_believed() {
    let signer = Signer::new(&[9; 32]);
    let good = codec::encode(&frame_examples::session_token());
    run::run(20_000, |random| {
        let changed = change::bytes(random, &good, &[&[0xc4, 0], &[0xc0]], &good);
        let Ok(token) = codec::decode::<SessionToken>(&changed) else { return };
        match signer.judge_session(&token) {
            // Its length may be written in more than one way; what it says is the same.
            Ok(claims) => assert_eq!(claims.expires, Millis(1_700_000_000_000)),
            Err(_) => assert_ne!(changed, good),
        }
    });
}
