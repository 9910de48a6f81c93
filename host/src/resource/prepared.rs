//! A change between its two halves: what takes long is done beside the path, and what is left is one step there.

use std::sync::Arc;

use tenure_protocol::path::DeclaredPath;

use super::trouble::changing;
use super::{Remark, Trouble};
use crate::walk::Dir;
use crate::walk::change::{Fresh, Owner};
use crate::walk::read::Stat;

/// A change that is ready to be made.
#[derive(Debug)]
pub struct Prepared {
    pub(super) dir: Arc<Dir>,
    pub(super) path: DeclaredPath,
    pub(super) step: Step,
    pub(super) note: Option<Remark>,
}

#[derive(Debug)]
pub(super) enum Step {
    Create(Fresh),
    Replace(Fresh, Stat),
    ReplaceLink(Fresh, String),
    SetFile { seen: Stat, mode: u32, owner: Option<Owner> },
    SetDirectory { seen: Stat, while_empty: bool, mode: u32, owner: Option<Owner> },
    RemoveFile(Stat),
    RemoveDirectory,
}

/// A change that was made, and is not yet synced.
#[derive(Debug)]
pub struct Placed {
    /// The directory to sync.
    pub dir: Arc<Dir>,
    /// What should be said about it, although it worked.
    pub note: Option<Remark>,
}

/// The name of what lies at this path.
fn last(path: &DeclaredPath) -> &str {
    path.as_str().rsplit_once('/').map_or(path.as_str(), |(_, name)| name)
}

impl Prepared {
    /// What was written beside and is to be synced before it is placed, if anything was.
    pub fn fresh(&mut self) -> Option<&mut Fresh> {
        match &mut self.step {
            Step::Create(fresh) | Step::Replace(fresh, _) | Step::ReplaceLink(fresh, _) => Some(fresh),
            Step::SetFile { .. }
            | Step::SetDirectory { .. }
            | Step::RemoveFile(_)
            | Step::RemoveDirectory => None,
        }
    }

    /// Syncs what was written beside, if nobody has.
    pub fn sync(&mut self) -> Result<(), Trouble> {
        let synced = self.fresh().map_or(Ok(()), Fresh::sync);
        synced.map_err(|error| changing(&self.path, &self.dir, last(&self.path), error))
    }

    /// The short half: the one change at the path itself.
    pub fn place(self) -> Result<Placed, Trouble> {
        let Self { dir, path, step, note } = self;
        let name = last(&path);
        let placed = match step {
            Step::Create(fresh) => fresh.create(name),
            Step::Replace(fresh, seen) => fresh.replace(name, &seen),
            Step::ReplaceLink(fresh, to) => fresh.replace_link(name, &to),
            Step::SetFile { seen, mode, owner } => dir.set_file(name, &seen, mode, owner),
            Step::SetDirectory { seen, while_empty, mode, owner } => {
                dir.set_directory(name, &seen, while_empty, mode, owner)
            }
            Step::RemoveFile(seen) => dir.remove_file(name, &seen),
            Step::RemoveDirectory => dir.remove_directory(name),
        };
        placed.map_err(|error| changing(&path, &dir, name, error))?;
        Ok(Placed { dir, note })
    }
}
