//! Looks for secrets where none may stand. A token is taken apart here by itself, so that what the program hides in its
//! types is looked for as it is.

use std::path::Path;

/// What an enrolment token begins with.
pub const PREFIX: &str = "tenure_e1_";
const DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const MAC: usize = 32;
const CHECKSUM: usize = 4;
/// A beginning of a text that nobody writes by chance.
const ENOUGH: usize = 40;

/// The bytes of an enrolment token: what is signed, 32 bytes of MAC, and a checksum of four.
pub fn bytes_of(token: &str) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    for digit in token.strip_prefix(PREFIX).expect("an enrolment token").bytes() {
        let mut carry = DIGITS.iter().position(|known| *known == digit).expect("a digit");
        for byte in bytes.iter_mut().rev() {
            carry += usize::from(*byte) * DIGITS.len();
            *byte = u8::try_from(carry % 256).expect("a byte");
            carry /= 256;
        }
        if carry > 0 {
            bytes.insert(0, u8::try_from(carry).expect("a byte"));
        }
    }
    bytes
}

/// The text of these bytes, as [`bytes_of`] reads them; their first is not zero.
pub fn text_of(bytes: &[u8]) -> String {
    let mut digits: Vec<usize> = Vec::new();
    for byte in bytes {
        let mut carry = usize::from(*byte);
        for digit in digits.iter_mut().rev() {
            carry += *digit * 256;
            *digit = carry % DIGITS.len();
            carry /= DIGITS.len();
        }
        while carry > 0 {
            digits.insert(0, carry % DIGITS.len());
            carry /= DIGITS.len();
        }
    }
    digits
        .iter()
        .fold(PREFIX.to_owned(), |text, digit| text + char::from(DIGITS[*digit]).encode_utf8(&mut [0; 4]))
}

/// Where the MAC of a token stands in its bytes.
pub fn mac_in(bytes: &[u8]) -> std::ops::Range<usize> {
    let end = bytes.len() - CHECKSUM;
    end - MAC..end
}

/// What is looked for.
#[derive(Default)]
pub struct Secrets(Vec<(&'static str, Vec<u8>)>);

impl Secrets {
    /// What makes a token a secret: its text, and its MAC as it is and in hexadecimal.
    #[must_use]
    pub fn token(mut self, token: &str) -> Self {
        let bytes = bytes_of(token);
        self.0.push(("the text of a token", token.as_bytes()[PREFIX.len()..][..ENOUGH].to_vec()));
        self.key("the MAC of a token", &bytes[mac_in(&bytes)])
    }

    /// A key, as it is and in hexadecimal.
    #[must_use]
    pub fn key(mut self, what: &'static str, bytes: &[u8]) -> Self {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        self.0.extend([(what, bytes.to_vec()), (what, hex.into_bytes())]);
        self
    }

    /// Reads every file below `folder` but those of the name `own`, which are the secrets' own place; says how many.
    pub fn assert_nowhere_below(&self, folder: &Path, own: &str) -> usize {
        let mut looked = 0;
        for entry in std::fs::read_dir(folder).expect("the folder can be read").flatten() {
            let kind = entry.file_type().expect("the kernel knows");
            if kind.is_dir() {
                looked += self.assert_nowhere_below(&entry.path(), own);
            } else if kind.is_file() && entry.file_name() != own {
                looked += 1;
                self.assert_not_in(&std::fs::read(entry.path()).expect("a file of the test"), &entry.path());
            }
        }
        looked
    }

    fn assert_not_in(&self, bytes: &[u8], of: &Path) {
        for (what, secret) in &self.0 {
            let found = bytes.windows(secret.len()).any(|window| window == secret);
            assert!(!found, "{what} stands in {}", of.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_taken_apart_and_put_together_is_the_same() {
        let token = format!("{PREFIX}1{}", "aZ09".repeat(20));
        assert_eq!(text_of(&bytes_of(&token)), token);
    }

    #[test]
    #[should_panic(expected = "a key stands in")]
    fn a_secret_that_stands_somewhere_is_found() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("below")).unwrap();
        std::fs::write(folder.path().join("below/log"), "key=0102030405060708 and more").unwrap();
        Secrets::default().key("a key", &[1, 2, 3, 4, 5, 6, 7, 8]).assert_nowhere_below(folder.path(), "own");
    }
}
