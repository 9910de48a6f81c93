//! Putting what was written beside in its place, and syncing the directories of it: the one moment of a change that
//! cannot be undone by dropping something. Called by `apply` and `release`.

use std::collections::{HashMap, HashSet};

use crate::resource::{Placed, Prepared, Trouble};
use crate::walk::together::Together;

/// What came of putting one in its place.
pub(super) struct Attempt {
    /// Something may have been changed at the place itself.
    pub(super) begun: bool,
    pub(super) placed: Result<Option<Placed>, Trouble>,
}

pub(super) fn place(prepared: Result<Option<Prepared>, Trouble>) -> Attempt {
    match prepared {
        Err(trouble) => Attempt { begun: false, placed: Err(trouble) },
        Ok(None) => Attempt { begun: false, placed: Ok(None) },
        Ok(Some(prepared)) => match prepared.place() {
            Ok(placed) => Attempt { begun: true, placed: Ok(Some(placed)) },
            Err(trouble) => Attempt { begun: !trouble.left_untouched(), placed: Err(trouble) },
        },
    }
}

/// Syncs what was written beside, all together where that may be; what could not be synced is not to be placed.
pub(super) fn settle(ready: &mut [Result<Option<Prepared>, Trouble>], together: Option<&Together>) {
    if let Some(together) = together {
        together.sync(ready.iter_mut().filter_map(|one| one.as_mut().ok()?.as_mut()?.fresh()));
    }
    for one in ready {
        if let Ok(Some(prepared)) = one
            && let Err(trouble) = prepared.sync()
        {
            *one = Err(trouble);
        }
    }
}

/// Syncs every directory once; says which could not be.
pub(super) fn sync<'p>(
    placed: impl Iterator<Item = &'p Placed>,
) -> HashMap<crate::ground::own::Inode, String> {
    let mut done = HashSet::new();
    let mut failed = HashMap::new();
    for Placed { dir, .. } in placed {
        if done.insert(dir.inode())
            && let Err(error) = dir.sync()
        {
            failed.insert(dir.inode(), format!("its directory could not be synced: {error}"));
        }
    }
    failed
}
