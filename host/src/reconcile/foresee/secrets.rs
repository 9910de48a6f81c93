//! What the declaration that is held says is sensitive (S-19): what lies there stays unshown, also where the planned one
//! does not say so any more.

use std::collections::HashSet;

use tenure_actors::database::DatabaseError;
use tenure_protocol::declaration::Declaration;
use tenure_protocol::resource::{Resource, ResourceKey, Spec};

use crate::store::Store;

/// What was declared to be sensitive.
pub(super) enum Secrets {
    /// These.
    These(HashSet<ResourceKey>),
    /// What is held cannot be read: it may be any of them.
    Any,
}

impl Default for Secrets {
    fn default() -> Self {
        Self::These(HashSet::new())
    }
}

impl Secrets {
    /// Those of the declaration that is held.
    pub(super) fn held(store: &Store) -> Result<Self, DatabaseError> {
        let Some(held) = store.declaration()? else { return Ok(Self::default()) };
        let Ok(declaration) = Declaration::parse(&held.bytes) else { return Ok(Self::Any) };
        let is_secret = |resource: &&Resource| match &resource.spec {
            Spec::File(file) => file.present.as_ref().is_some_and(|present| present.is_sensitive()),
            Spec::Directory(_) | Spec::Package(_) | Spec::Unit(_) => false,
        };
        Ok(Self::These(declaration.resources().filter(is_secret).map(|one| one.key.clone()).collect()))
    }

    /// Whether what lies at this key may be one.
    pub(super) fn holds(&self, key: &ResourceKey) -> bool {
        match self {
            Self::These(keys) => keys.contains(key),
            Self::Any => true,
        }
    }
}
