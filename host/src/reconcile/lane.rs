//! Which resources are worked on together, and how many. Pure.

use tenure_protocol::resource::{Resource, Spec};

use super::apply::GROUP;

/// So many units are enabled before the service manager reads its files anew, which it does for each such number.
pub(super) const AT_ONCE: usize = 4 * GROUP;

/// What is worked on together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// One transaction.
    Packages,
    /// One by one, in order: directories and removals.
    Small,
    /// Written beside by many threads, a bounded number ahead.
    Large,
    /// Acted on one by one, with the files of all read anew once in between, and looked at together.
    Units,
}

impl Lane {
    /// The most that is taken together.
    pub(super) const fn most(self) -> usize {
        match self {
            Self::Units => AT_ONCE,
            Self::Small => GROUP,
            Self::Packages | Self::Large => usize::MAX,
        }
    }
}

/// Where a resource is worked on.
pub(super) const fn lane(resource: &Resource) -> Lane {
    match &resource.spec {
        Spec::Package(_) => Lane::Packages,
        Spec::File(spec) if spec.present.is_some() => Lane::Large,
        Spec::File(_) | Spec::Directory(_) => Lane::Small,
        Spec::Unit(_) => Lane::Units,
    }
}
