//! The shell around `admit`: reads what is held and owned, asks it, and stores what was admitted. Called by whoever
//! receives a declaration, the link or a person with a bundle.

use std::sync::Arc;

use tenure_actors::database::DatabaseError;
use tenure_protocol::declaration::{Declaration, Header};
use tenure_protocol::id::Digest;

use super::admit::{self, AdmitRefusal, Admitted, Held, Standing};
use crate::identity::StoredIdentity;
use crate::store::{Store, StoredDeclaration};

/// Why a declaration was not admitted.
#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    /// It may not replace what is held.
    #[error(transparent)]
    Refused(#[from] AdmitRefusal),
    /// What is held and owned could not be read.
    #[error("what is held and owned cannot be read")]
    Store(#[from] DatabaseError),
}

/// Whether this declaration may replace what is held. It changes nothing.
pub fn admit(
    store: &Store,
    standing: Option<&Standing>,
    declaration: &Declaration,
    sha256: Digest,
) -> Result<Admitted, IntakeError> {
    let held = held(store, |header| header.is_for_the_same(&declaration.header))?;
    let owned = store.owned_keys()?;
    Ok(admit::admit(standing, held.as_ref(), declaration, sha256, owned.iter().map(String::as_str))?)
}

/// The declaration that is held, if it is one of these: revisions of another control plane, node or generation are not
/// compared with ours. One whose head nobody can read counts.
fn held(store: &Store, is_meant: impl Fn(&Header) -> bool) -> Result<Option<Held>, DatabaseError> {
    let held = store.declaration()?;
    let held =
        held.filter(|held| Declaration::header_of(&held.bytes).map_or(true, |header| is_meant(&header)));
    Ok(held.map(|held| Held { revision: held.revision, sha256: held.sha256 }))
}

/// The declaration that is held for this identity, with all of its content.
pub fn held_whole(store: &Store, identity: &StoredIdentity) -> Result<Option<Held>, DatabaseError> {
    let Some(held) = held(store, |header| identity.is_meant_by(header))? else { return Ok(None) };
    let contents = store.declaration()?.and_then(|stored| Declaration::parse(&stored.bytes).ok());
    let missing = store.missing(&contents.map(|declaration| declaration.contents()).unwrap_or_default())?;
    Ok(missing.is_empty().then_some(held))
}

/// Stores an admitted declaration, whose content is all here. What only the one before needed is dropped by [`tidy`].
pub fn keep(
    store: &Store,
    declaration: &Declaration,
    sha256: Digest,
    bytes: &Arc<[u8]>,
) -> Result<(), DatabaseError> {
    let revision = declaration.header.revision();
    store.put_declaration(StoredDeclaration { revision, sha256, bytes: Arc::clone(bytes) })
}

/// After a pass over `declaration`: if it is the one that is stored, the content that it does not need is dropped. Not
/// before: a pass of the revision before may still copy from it.
pub fn tidy(store: &Store, declaration: &Declaration) -> Result<(), DatabaseError> {
    let revision = declaration.header.revision();
    if !store.is_untidy()? || store.declaration()?.is_none_or(|held| held.revision != revision) {
        return Ok(());
    }
    let needed: Vec<Digest> = declaration.contents().iter().map(|content| content.sha256).collect();
    store.forget_contents_except(&needed)
}

#[cfg(test)]
mod tests;
