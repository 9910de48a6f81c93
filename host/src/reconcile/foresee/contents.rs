//! The content of a declaration that is not written yet: what of it a preview is the better for having, and where it is
//! while it looks. It lies in memory, since a preview leaves nothing behind.

use std::collections::HashMap;

use tenure_protocol::declaration::Declaration;
use tenure_protocol::id::Digest;
use tenure_protocol::resource::{Content, Spec};

use super::diff::is_worth_having;
use crate::resource::{Contents, ContentsError};

/// The most bytes of content that are brought for one preview; what is beyond is told without its diff.
const MOST: u64 = 8 * 1024 * 1024;

/// The contents that would be shown, none twice.
pub fn worth_having(declaration: &Declaration) -> Vec<Content> {
    let (mut seen, mut left) = (std::collections::HashSet::new(), MOST);
    let files = declaration.resources().filter_map(|resource| match &resource.spec {
        Spec::File(file) => file.present.as_ref().filter(|present| is_worth_having(present)),
        Spec::Package(_) | Spec::Directory(_) | Spec::Unit(_) => None,
    });
    let fits = |content: &Content| match left.checked_sub(content.size) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    files.map(|present| present.content).filter(|content| seen.insert(content.sha256)).filter(fits).collect()
}

/// What is at hand, before what the store has.
#[expect(missing_debug_implementations, reason = "it holds a trait object")]
pub struct AtHand<'a> {
    /// By digest; checked when it was brought.
    pub brought: &'a HashMap<Digest, Vec<u8>>,
    /// Where the rest may be.
    pub store: &'a dyn Contents,
}

impl Contents for AtHand<'_> {
    fn copy(
        &self,
        sha256: Digest,
        take: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
    ) -> Result<(), ContentsError> {
        match self.brought.get(&sha256) {
            Some(bytes) => take(bytes).map_err(ContentsError::Taking),
            None => self.store.copy(sha256, take),
        }
    }
}
