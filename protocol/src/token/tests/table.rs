//! Every way in which a token can be wrong, one after the other, and the name each is refused by.

use super::*;

const GOOD: [u8; 32] = [9; 32];

/// The text of these bytes under a checksum that holds: damage that no checksum shows.
fn written(signed: &[u8]) -> String {
    let mut all = signed.to_vec();
    all.extend(&Digest::of(signed).as_bytes()[..CHECKSUM]);
    format!("{PREFIX}{}", base_x::encode(ALPHABET, &all))
}

/// What is signed, and the MAC behind it.
fn signed(invitation: &Invitation) -> Vec<u8> {
    let bytes = codec::encode(invitation);
    let mac = mac(&Signer::new(&GOOD).keys().unwrap().enrolment, &bytes);
    [bytes, mac.to_vec()].concat()
}

/// The one word that a presented text is refused with; none: it is ours.
fn refused(text: &str) -> Option<&'static str> {
    match Presented::parse(text) {
        Err(TokenError::NotAToken) => Some("not a token"),
        Err(TokenError::Damaged) => Some("damaged"),
        Err(TokenError::OtherForm) => Some("other form"),
        Ok(presented) => Signer::new(&GOOD).judge(&presented).err().map(|_| "not proven"),
    }
}

// rule: S-03
#[test]
fn every_flipped_bit_is_refused_although_the_checksum_holds() {
    let good = signed(&invitation());
    assert_eq!(refused(&written(&good)), None);
    let mut words = std::collections::BTreeMap::<_, usize>::new();
    for bit in 0..good.len() * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let word = refused(&written(&bytes));
        *words.entry(word.unwrap_or_else(|| panic!("bit {bit} is believed"))).or_default() += 1;
    }
    // Whatever still reads as an invitation is refused by its MAC, and the 256 bits of the MAC itself always are.
    assert!(
        words["not proven"] >= 256 && words.keys().all(|word| ["not proven", "other form"].contains(word)),
        "{words:?}"
    );
}

// rule: S-03
#[test]
fn every_flipped_bit_of_the_checksum_is_damage() {
    let minted = Signer::new(&GOOD).mint(&invitation()).unwrap();
    let all = base_x::decode(ALPHABET, minted.text.reveal().strip_prefix(PREFIX).unwrap()).unwrap();
    for bit in (all.len() - CHECKSUM) * 8..all.len() * 8 {
        let mut bytes = all.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let text = format!("{PREFIX}{}", base_x::encode(ALPHABET, &bytes));
        assert_eq!(refused(&text), Some("damaged"), "bit {bit}");
    }
}

// rule: S-03
#[test]
fn every_beginning_and_every_extension_is_refused_although_the_checksum_holds() {
    let good = signed(&invitation());
    for length in 0..good.len() {
        assert!(refused(&written(&good[..length])).is_some(), "cut to {length}");
    }
    for byte in 0..=255 {
        for extended in [[&good[..], &[byte]].concat(), [&[byte], &good[..]].concat()] {
            assert!(refused(&written(&extended)).is_some(), "{byte} more");
        }
    }
    let inside = good.len() - MAC;
    let extended = [&good[..inside], &[0xc0], &good[inside..]].concat();
    assert_eq!(refused(&written(&extended)), Some("other form"), "a byte between what is signed and its MAC");
}

// rule: S-03
#[test]
fn no_word_of_an_invitation_can_be_exchanged_for_another() {
    let ours = signed(&invitation());
    let mac = &ours[ours.len() - MAC..];
    let other_epoch = Epoch { number: 2, id: EpochId::from_bytes([2; 16]) };
    let others = [
        Invitation { addresses: vec!["elsewhere.example:7443".into()], ..invitation() },
        Invitation { ca: Digest::of(b"another"), ..invitation() },
        Invitation { control_plane_id: ControlPlaneId::from_bytes([9; 16]), ..invitation() },
        Invitation { epoch: other_epoch, ..invitation() },
        Invitation { node: NodeId::new("edge-2").unwrap(), ..invitation() },
        Invitation { rental: Rental::new("other").unwrap(), ..invitation() },
        Invitation { generation: Generation(2), ..invitation() },
        Invitation { mode: Mode::Adopted, ..invitation() },
        Invitation { expires: Millis(invitation().expires.0 + 1), ..invitation() },
        Invitation { counter: 2, ..invitation() },
        Invitation { key_id: 2, ..invitation() },
    ];
    for other in others {
        let text = written(&[&codec::encode(&other), mac].concat());
        assert_eq!(refused(&text), Some("not proven"), "{other:?}");
    }
    let second_form = Invitation { v: 2, ..invitation() };
    assert_eq!(
        refused(&written(&signed(&second_form))),
        Some("other form"),
        "of our own making, and not read"
    );
}

// rule: N-04
#[test]
fn a_token_of_one_kind_is_never_one_of_the_other() {
    let signer = Signer::new(&GOOD);
    let session = signer.mint_session(&session_claims()).unwrap();
    assert_eq!(refused(&written(&session.0)), Some("other form"));
    let enrolment = signed(&invitation());
    assert_eq!(signer.judge_session(&SessionToken(enrolment)), Err(NotProven::Mac));
    // The words of one kind under the key of the other, as a confused signer would make them.
    let keys = signer.keys().unwrap();
    let under = |key: &[u8; 32], bytes: Vec<u8>| {
        let mac = mac(key, &bytes);
        [bytes, mac.to_vec()].concat()
    };
    let claims = under(&keys.enrolment, codec::encode(&session_claims()));
    assert_eq!(refused(&written(&claims)), Some("other form"));
    let invited = under(&keys.session, codec::encode(&invitation()));
    assert_eq!(signer.judge_session(&SessionToken(invited)), Err(NotProven::Mac));
}

// rule: S-03
#[test]
fn every_beginning_and_every_extension_of_a_session_token_is_refused() {
    let signer = Signer::new(&GOOD);
    let good = signer.mint_session(&session_claims()).unwrap().0;
    for length in 0..good.len() {
        assert_eq!(
            signer.judge_session(&SessionToken(good[..length].to_vec())),
            Err(NotProven::Mac),
            "{length}"
        );
    }
    for byte in 0..=255 {
        let extended = [&good[..], &[byte]].concat();
        assert_eq!(signer.judge_session(&SessionToken(extended)), Err(NotProven::Mac), "{byte}");
    }
    let foreign = Signer::new(&[8; 32]).mint_session(&session_claims()).unwrap();
    assert_eq!(signer.judge_session(&foreign), Err(NotProven::Mac));
}

// rule: S-03
#[test]
fn a_text_with_a_character_that_no_token_has_is_no_token() {
    let minted = Signer::new(&GOOD).mint(&invitation()).unwrap();
    let good = minted.text.reveal();
    let (head, tail) = good.split_at(PREFIX.len() + 30);
    for odd in ["-", "_", "+", "/", "=", " ", "\n", "\0", "\u{e9}", "\u{202e}", "\u{ff10}"] {
        assert_eq!(refused(&format!("{head}{odd}{tail}")), Some("not a token"), "{odd:?}");
    }
    for other in ["tenure_e2_", "TENURE_E1_", "tenure_s1_", "tenure_e1", "", "Bearer tenure_e1_"] {
        assert_eq!(refused(&format!("{other}{}", &good[PREFIX.len()..])), Some("not a token"), "{other:?}");
    }
    assert_eq!(refused(&format!("{good}\u{a0}{good}")), Some("not a token"));
}

// rule: N-22
#[test]
fn what_a_token_is_refused_with_repeats_nothing_of_it() {
    let good = Signer::new(&GOOD).mint(&invitation()).unwrap();
    let text = good.text.reveal();
    for bad in [format!("x{text}"), format!("{text}0"), text[..text.len() - 1].to_owned()] {
        let said = Presented::parse(&bad).unwrap_err().to_string();
        assert!(!said.contains(&text[PREFIX.len()..PREFIX.len() + 8]), "{said}");
    }
}

/// What is compared with a secret is compared in constant time, which holds by construction: a MAC is looked at by
/// [`Mac::verify_slice`] alone, which is `subtle`'s comparison, and never by an operator that stops at a difference.
// rule: S-03
#[test]
fn a_mac_is_compared_by_the_constant_time_comparison_and_by_nothing_else() {
    let code: Vec<&str> =
        include_str!("../../token.rs").lines().map(|line| line.split("//").next().unwrap()).collect();
    let code = code.join("\n");
    let body = |of: &str| {
        let from = code.find(&format!("pub fn {of}(")).unwrap();
        let to = from + code[from..].find("\n    }\n").unwrap();
        &code[from..to]
    };
    for judge in ["judge", "judge_session"] {
        assert_eq!(body(judge).matches(".verify_slice(").count(), 1, "{judge}");
        assert!(!body(judge).contains("==") && !body(judge).contains("!="), "{judge}");
    }
    // The one comparison of what a MAC became is of digests, of our own record and our own MAC: nobody presents either.
    assert_eq!(code.matches("Digest::of(&mac) == id").count(), 1);
    assert!(!code.contains("mac ==") && !code.contains("mac() =="));
    let derived = code.split("pub struct SessionToken").next().unwrap().rsplit("#[derive(").next().unwrap();
    assert!(!derived.contains("PartialEq"), "two session tokens would be compared byte by byte");
}
