//! Bad input, as a user would type it or leave it lying: what is not writable, not readable, not ours, too large or not
//! what it is named. Each is refused by a name of its own, nothing is lost by it, and nothing is waited for that never
//! comes.

mod bundle;
mod declared;
mod folder;
mod key;
mod names;
mod permissions;
mod places;
mod surroundings;
mod token;

use serde_json::Value;
use tenure_tests::program::Ran;

/// The refusal that a command printed with `--json`; it was refused, and says all it must.
fn refusal(ran: &Ran) -> Value {
    assert_eq!(ran.code, 3, "{ran:?}");
    let said: Value = serde_json::from_str(ran.out.trim()).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    let refusal = said["refusal"].clone();
    for part in ["code", "happened", "means", "do"] {
        let text = refusal[part].as_str().unwrap_or_default();
        assert!(!text.is_empty() && !text.chars().any(char::is_control), "{part}: {refusal}");
    }
    refusal
}

/// That it is refused with this code, and says these words of what happened.
fn assert_refused(ran: &Ran, code: &str, words: &[&str]) {
    let refusal = refusal(ran);
    assert_eq!(refusal["code"], code, "{refusal}");
    for word in words {
        assert!(refusal["happened"].as_str().unwrap().contains(word), "`{word}` is not in {refusal}");
    }
}

/// Somebody who is neither root nor the owner of anything here.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}
