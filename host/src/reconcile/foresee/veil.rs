//! Digests of what must not be shown (S-19): keyed, so that nobody who reads them can try out what the content might
//! be. The key is drawn anew by each process and kept nowhere: two digests of one preview can be compared, and no
//! digest of another machine or another day with them.

use std::sync::OnceLock;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use tenure_protocol::id::Digest;

/// The digest of some content as it may leave this machine; none where the system has no randomness.
pub(super) fn veiled(content: Digest) -> Option<String> {
    static KEY: OnceLock<Option<[u8; 32]>> = OnceLock::new();
    let key = KEY.get_or_init(|| {
        let mut key = [0; 32];
        getrandom::fill(&mut key).ok().map(|()| key)
    });
    keyed(key.as_ref()?, content)
}

fn keyed(key: &[u8; 32], content: Digest) -> Option<String> {
    // A key of any length is taken.
    let mac = Hmac::<Sha256>::new_from_slice(key).ok()?.chain_update(content.as_bytes());
    Some(Digest::from_bytes(mac.finalize().into_bytes().into()).short())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_a_secret_depends_on_a_key_that_nobody_has() {
        let secret = Digest::of(b"hunter2");
        assert_ne!(keyed(&[1; 32], secret), keyed(&[2; 32], secret));
        assert_eq!(veiled(secret), veiled(secret), "two looks of one process can be compared");
        assert_ne!(veiled(secret).unwrap(), secret.short());
    }
}
