//! Declarations: writing new ones, all or none.

use std::collections::HashSet;

use tenure_protocol::id::{Digest, Millis};

use super::Rows;
use crate::store::{DeclaredRecord, NewDeclaration, NotDeclared, facts};

impl Rows {
    pub(super) fn declare(
        &mut self,
        declarations: &[NewDeclaration],
        contents: &[Vec<u8>],
        now: Millis,
    ) -> Result<(), NotDeclared> {
        for new in declarations {
            let held = self.nodes.get(&new.node);
            new.may_follow(held.map(|node| &node.record), held.and_then(|node| node.declared.as_ref()))?;
        }
        let brought: HashSet<Digest> = contents.iter().map(|bytes| Digest::of(bytes)).collect();
        let is_there = |sha256: &Digest| brought.contains(sha256) || self.contents.is_whole(*sha256);
        for new in declarations {
            if let Some(sha256) = new.contents.iter().find(|sha256| !is_there(sha256)) {
                return Err(NotDeclared::ContentMissing(new.node.clone(), *sha256));
            }
        }
        contents.iter().for_each(|bytes| self.contents.keep(bytes, now));
        declarations.iter().for_each(|new| self.write(new, now));
        Ok(())
    }

    fn write(&mut self, new: &NewDeclaration, now: Millis) {
        self.contents.keep(&new.bytes, now);
        let sha256 = Digest::of(&new.bytes);
        if let Some(node) = self.nodes.get_mut(&new.node) {
            let bytes = u64::try_from(new.bytes.len()).unwrap_or(u64::MAX);
            node.declared =
                Some(DeclaredRecord { revision: new.revision, sha256, bytes, resources: new.resources });
            node.named = new.contents.iter().copied().chain([sha256]).collect();
        }
        self.tell(facts::declared(new), now);
    }
}
