//! What may stand in no record: tokens, their MAC, and the key they are made under.

use tenure_protocol::operator::Retire;
use tenure_protocol::proof::NodeKey;
use tenure_protocol::token::Presented;

use super::scripted::{name, up};

const PREFIX: &str = "tenure_e1_";

/// The bytes of a token: what is signed, 32 bytes of MAC, and a checksum of four. Decoded here by itself, so that what
/// the program hides in its types is looked for as it is.
fn mac_of(token: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut bytes: Vec<u8> = Vec::new();
    for digit in token.strip_prefix(PREFIX).unwrap().bytes() {
        let mut carry = DIGITS.iter().position(|known| *known == digit).unwrap();
        for byte in bytes.iter_mut().rev() {
            carry += usize::from(*byte) * 62;
            *byte = u8::try_from(carry % 256).unwrap();
            carry /= 256;
        }
        if carry > 0 {
            bytes.insert(0, u8::try_from(carry).unwrap());
        }
    }
    let behind = bytes.len() - 4;
    bytes[behind - 32..behind].to_vec()
}

fn hex(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into_bytes()
}

// rule: N-02
// rule: N-04
#[tokio::test]
async fn a_token_carries_what_joining_needs_and_neither_it_nor_its_key_is_in_any_record() {
    let up = up().await;
    let invited = up.invite("edge-1").await;
    let token = invited.token.reveal();
    let presented = Presented::parse(token).unwrap();
    assert_eq!(presented.invitation.addresses, vec!["control.example:7443".to_owned()]);
    assert_eq!(presented.invitation.ca, up.control.plane().keys.ca());
    let mac = mac_of(token);
    assert_eq!(tenure_protocol::id::Digest::of(&mac), presented.id(), "the MAC is what it is taken for");
    let thief = NodeKey::generate().unwrap();
    up.enrol(token, &NodeKey::generate().unwrap()).await.unwrap();
    up.enrol(token, &thief).await.unwrap_err();
    up.ask("fleet", &Retire { node: name("edge-1") }).await.unwrap();
    let folder = up.folder.path().to_owned();
    up.control.stop().await;
    let state = folder.join("var/lib/tenure-control");
    let master = std::fs::read(state.join("master.key")).unwrap();
    let text = token.as_bytes()[PREFIX.len()..].to_vec();
    let secrets = [text, hex(&mac), mac, hex(&master), master];
    let mut looked = 0;
    for entry in std::fs::read_dir(&state).unwrap().flatten() {
        if entry.file_name() == "master.key" {
            continue;
        }
        let bytes = std::fs::read(entry.path()).unwrap();
        looked += usize::from(!bytes.is_empty());
        for secret in &secrets {
            let found = bytes.windows(secret.len()).any(|window| window == secret);
            assert!(!found, "{}", entry.path().display());
        }
    }
    assert!(looked >= 2, "looked at {looked} files only");
}
