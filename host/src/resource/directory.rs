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
        if let (Some(present), Seen::Directory(stat)) = (&spec.present, &seen) {
            let above = self.0.spelling(&spec.path) == Touch::Above
                || self.0.walker.touch(stat.inode) == Touch::Above;
            // Whoever may write there could put something else in the place of the host's own files.
            if above && self.opens_to_others(present) {
                return Err(Trouble::own_file(&spec.path));
            }
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
        self.is_free(spec, seen)?;
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
                Step::SetDirectory { seen: *stat, mode: mode.bits(), owner }
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
    /// Whether no flag forbids the change; of a way that is not there yet nobody knows.
    pub(super) fn is_free(&self, spec: &DirectorySpec, seen: &Seen) -> Result<(), Trouble> {
        let Ok((dir, name)) = self.0.parent(&spec.path) else { return Ok(()) };
        let is_set = matches!(seen, Seen::Directory(_)) && spec.present.is_some();
        carry::is_free(&dir, name, &spec.path, !is_set)
    }

    fn opens_to_others(&self, present: &DirectoryPresent) -> bool {
        let to_owner = self.0.sets_owner && self.0.accounts.user(&present.owner) != Some(0);
        to_owner || present.mode.bits() & 0o022 != 0
    }
}
