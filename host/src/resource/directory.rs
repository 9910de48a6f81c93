//! Directories: that they are there, whose they are, their mode; never what else lies in them. One is removed only when
//! it is empty.

use tenure_protocol::resource::{DirectoryPresent, DirectorySpec};

use super::trouble::changing;
use super::{Adapter, Prepared, Seen, Site, Step, Trouble, carry};
use crate::ground::own::Touch;
use crate::walk::change::Fresh;

/// The adapter of directories.
#[expect(missing_debug_implementations, reason = "the site holds a trait object")]
pub struct DirectoryAdapter<'a>(pub &'a Site<'a>);

impl Adapter for DirectoryAdapter<'_> {
    type Spec = DirectorySpec;

    fn observe(&self, spec: &DirectorySpec, _deep: bool) -> Result<Seen, Trouble> {
        let seen = self.0.look(&spec.path, None, spec.present.is_none())?;
        // Whoever may write there could put something else in the place of the host's own files.
        if let Some(present) = &spec.present
            && self.is_above(spec, &seen)
            && self.opens_to_others(present)
        {
            return Err(Trouble::own_file(&spec.path));
        }
        Ok(seen)
    }

    fn differences(&self, spec: &DirectorySpec, seen: &Seen) -> Result<Vec<String>, Trouble> {
        match (seen, &spec.present) {
            (Seen::Nothing, None) => Ok(Vec::new()),
            (Seen::Nothing, Some(_)) => Ok(vec!["it is missing".to_owned()]),
            (Seen::Directory(_), None) => Ok(vec!["it is there".to_owned()]),
            (Seen::Directory(stat), Some(DirectoryPresent { mode, owner, group })) => {
                self.0.standing_differs(stat, *mode, owner, group)
            }
            (Seen::Link { to }, _) => Err(Trouble::link(to, "remove the link")),
            (Seen::File { .. }, _) => {
                Err(Trouble::refused("path_is_file", "path is a file, not a directory"))
            }
            (Seen::Package { .. } | Seen::Unit(_), _) => {
                Err(Trouble::failed("changed_meanwhile", "this is nothing at a path"))
            }
            (Seen::Other { what }, _) => {
                Err(Trouble::refused("not_a_directory", format!("path is {what}, not a directory")))
            }
        }
    }

    fn prepare(&self, spec: &DirectorySpec, seen: &Seen, temporary: &str) -> Result<Prepared, Trouble> {
        let while_empty = self.is_free_while_empty(spec, seen)?;
        let (dir, _) = self.0.parent(&spec.path)?;
        let step = match (seen, &spec.present) {
            (Seen::Directory(_), None) => Step::RemoveDirectory,
            (Seen::Nothing, Some(DirectoryPresent { mode, owner, group })) => {
                let owner = self.0.owner(owner, group)?;
                let fresh = Fresh::directory(&dir, temporary, mode.bits(), owner)
                    .map_err(|error| changing(&spec.path, &dir, temporary, error))?;
                Step::Create(fresh)
            }
            (Seen::Directory(stat), Some(DirectoryPresent { mode, owner, group })) => {
                let owner = self.0.owner(owner, group)?;
                Step::SetDirectory { seen: *stat, while_empty, mode: mode.bits(), owner }
            }
            (Seen::Nothing, None)
            | (
                Seen::File { .. }
                | Seen::Link { .. }
                | Seen::Other { .. }
                | Seen::Package { .. }
                | Seen::Unit(_),
                _,
            ) => {
                return Err(Trouble::failed("changed_meanwhile", "there is nothing of this kind to change"));
            }
        };
        Ok(Prepared { dir, path: spec.path.clone(), step, note: None })
    }
}

impl DirectoryAdapter<'_> {
    /// Whether nothing forbids the change; of a way that is not there yet nobody knows.
    pub(super) fn is_free(&self, spec: &DirectorySpec, seen: &Seen) -> Result<(), Trouble> {
        self.is_free_while_empty(spec, seen).map(drop)
    }

    /// The same, and whether it is so only while nothing lies in it: an empty directory gives nothing away.
    fn is_free_while_empty(&self, spec: &DirectorySpec, seen: &Seen) -> Result<bool, Trouble> {
        let Ok((dir, name)) = self.0.parent(&spec.path) else { return Ok(false) };
        let (Seen::Directory(stat), Some(present)) = (seen, &spec.present) else {
            return carry::is_free(&dir, name, &spec.path, true).map(|()| false);
        };
        carry::is_free(&dir, name, &spec.path, false)?;
        let owner = self.0.owner(&present.owner, &present.group)?;
        let standing = (owner, present.mode.bits());
        let Err(given_away) = carry::is_not_given_away(self.0, &dir, &spec.path, stat, standing) else {
            return Ok(false);
        };
        let looked = dir.has_nothing_in(name, stat).map_err(|error| changing(&spec.path, &dir, name, error));
        if looked? { Ok(true) } else { Err(given_away) }
    }

    /// Whether it is a directory that things of the host's own lie in, or would come to lie in.
    fn is_above(&self, spec: &DirectorySpec, seen: &Seen) -> bool {
        let is_known = match seen {
            Seen::Directory(stat) => self.0.walker.touch(stat.inode) == Touch::Above,
            Seen::Nothing => false,
            Seen::File { .. }
            | Seen::Link { .. }
            | Seen::Other { .. }
            | Seen::Package { .. }
            | Seen::Unit(_) => return false,
        };
        is_known || self.0.spelling(&spec.path) == Touch::Above
    }

    fn opens_to_others(&self, present: &DirectoryPresent) -> bool {
        let to_owner = self.0.sets_owner && self.0.accounts.user(&present.owner) != Some(0);
        to_owner || present.mode.bits() & 0o022 != 0
    }
}
