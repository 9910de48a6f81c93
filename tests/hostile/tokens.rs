//! Every byte of a token turned over, at the real listener.

use tenure_protocol::id::Digest;
use tenure_protocol::proof::NodeKey;
use tenure_protocol::token::Presented;
use tenure_tests::secrets::{self, Secrets};

use crate::link::Link;
use crate::memory::WORK;
use crate::witness::Witness;

/// The text of what is signed, under a checksum that holds.
fn text(signed: &[u8]) -> String {
    secrets::text_of(&[signed, &Digest::of(signed).as_bytes()[..4]].concat())
}

fn changed(signed: &[u8]) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = (0..signed.len())
        .map(|at| {
            let mut bytes = signed.to_vec();
            bytes[at] ^= 1 << (at % 8);
            bytes
        })
        .collect();
    all.extend((1..signed.len()).step_by(17).map(|length| signed[..length].to_vec()));
    all.extend([[signed, &[0]].concat(), [signed, signed].concat()]);
    all
}

// rule: S-03
// rule: N-03
// rule: N-22
#[tokio::test(flavor = "multi_thread")]
async fn a_token_with_any_byte_turned_over_cut_or_extended_is_not_proven_and_stands_in_no_log() {
    let witness = Witness::new();
    let sandbox = &witness.sandbox;
    let token = sandbox.invite("edge-2", &[]);
    let good = Presented::parse(&token).unwrap();
    let bytes = secrets::bytes_of(&token);
    let mac = secrets::mac_in(&bytes);
    assert_eq!(Digest::of(&bytes[mac.clone()]), good.id(), "the MAC is what it is taken for");
    let key = NodeKey::generate().unwrap();
    let attempts = changed(&bytes[..mac.end]);
    let memory = witness.memory();
    for (number, signed) in attempts.iter().enumerate() {
        let refused = Link::open(sandbox).await.present(&text(signed), &good, &key).await.unwrap_err();
        assert!(refused.is("not_proven"), "{number}: {refused:?}");
        assert!(!refused.happened.contains("edge"), "it tells a stranger something: {refused:?}");
    }
    println!("{} tokens that are none were refused", attempts.len());
    for odd in ["", "tenure_e1_", "tenure_e1_0", "tenure_e1_zzzz", "Bearer x", &"tenure_e1_z".repeat(150)] {
        let refused = Link::open(sandbox).await.present(odd, &good, &key).await.unwrap_err();
        assert!(refused.is("not_proven"), "{odd}: {refused:?}");
    }
    memory.assert_grew_at_most(WORK, "tokens that are none");
    assert_eq!(sandbox.tenure(&["node", "edge-2", "--json"]).expect(0).json()["state"], "enrolling");
    let looked = Secrets::default().token(&token).assert_nowhere_below(&sandbox.at(""), "token");
    assert!(looked >= 8, "looked at {looked} files only");
    Link::open(sandbox).await.present(&token, &good, &key).await.unwrap();
    witness.works();
}
