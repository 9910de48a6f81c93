//! Regular files: written beside, whole, and renamed. A link, a pipe or a device at the path is refused and not touched.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use tenure_protocol::id::Digest;
use tenure_protocol::resource::{FilePresent, FileSpec};

use super::trouble::{changing, copying};
use super::{Adapter, ContentsError, Prepared, Remark, Seen, Site, Step, Trouble, carry};
use crate::walk::Dir;
use crate::walk::carry::Attributes;
use crate::walk::change::{Fresh, Owner};
use crate::walk::read::{ReadError, Stat, read_all};
use crate::walk::together::Together;

/// The adapter of files.
#[expect(missing_debug_implementations, reason = "the site holds a trait object")]
pub struct FileAdapter<'a>(pub &'a Site<'a>);

impl Adapter for FileAdapter<'_> {
    type Spec = FileSpec;

    fn observe(&self, spec: &FileSpec, deep: bool) -> Result<Seen, Trouble> {
        let size = spec.present.as_ref().map(|present| present.content.size);
        self.0.look(&spec.path, size.filter(|_| deep), true)
    }

    fn differences(&self, spec: &FileSpec, seen: &Seen) -> Result<Vec<String>, Trouble> {
        match (seen, &spec.present) {
            (Seen::Nothing, None) => Ok(Vec::new()),
            (Seen::Nothing, Some(_)) => Ok(vec!["it is missing".to_owned()]),
            (Seen::File { .. }, None) => Ok(vec!["it is there".to_owned()]),
            (Seen::File { stat, sha256 }, Some(present)) => self.differs(present, stat, *sha256),
            (Seen::Link { to }, Some(present)) if present.replace_link => {
                Ok(vec![format!("it is a link to {to}, which would be replaced and not followed")])
            }
            (Seen::Link { to }, Some(_)) => Err(Trouble::link(to, "say `replace_link = true` of it")),
            (Seen::Link { to }, None) => Err(Trouble::link(to, "remove the link")),
            (Seen::Directory(_), _) => {
                Err(Trouble::refused("path_is_directory", "path is a directory, not a file"))
            }
            (Seen::Package { .. } | Seen::Unit(_), _) => {
                Err(Trouble::failed("changed_meanwhile", "this is nothing at a path"))
            }
            (Seen::Other { what }, _) => {
                Err(Trouble::refused("not_a_regular_file", format!("path is {what}, not a regular file")))
            }
        }
    }

    fn prepare(&self, spec: &FileSpec, seen: &Seen, temporary: &str) -> Result<Prepared, Trouble> {
        let (dir, name) = self.0.parent(&spec.path)?;
        let (step, note) = match (seen, &spec.present) {
            (Seen::File { stat, .. }, None) => {
                carry::is_free(&dir, name, &spec.path, true)?;
                (Step::RemoveFile(*stat), Remark::of_file(other_names(stat, ""), None))
            }
            (Seen::Nothing, Some(present)) => {
                // Looking at the name would wait for all who make something in this directory.
                carry::has_room(&dir)?;
                let carried = Attributes::default();
                (Step::Create(self.write(&dir, spec, present, temporary, (None, carried))?), None)
            }
            (Seen::Link { to }, Some(present)) if present.replace_link => {
                carry::is_free(&dir, name, &spec.path, true)?;
                let fresh = self.write(&dir, spec, present, temporary, (None, Attributes::default()))?;
                (Step::ReplaceLink(fresh, to.clone()), None)
            }
            (Seen::File { stat, sha256 }, Some(present)) => {
                self.replace(&dir, name, spec, present, (stat, *sha256), temporary)?
            }
            (Seen::Nothing, None)
            | (
                Seen::Directory(_)
                | Seen::Link { .. }
                | Seen::Other { .. }
                | Seen::Package { .. }
                | Seen::Unit(_),
                _,
            ) => {
                return Err(Trouble::failed("changed_meanwhile", "there is nothing of this kind to change"));
            }
        };
        Ok(Prepared { dir, path: spec.path.clone(), step, note })
    }
}

/// Where a fresh file's bytes come from, when not from the declaration.
struct Existing<'a> {
    name: &'a str,
    seen: &'a Stat,
}

impl FileAdapter<'_> {
    fn differs(
        &self,
        present: &FilePresent,
        stat: &Stat,
        sha256: Option<Digest>,
    ) -> Result<Vec<String>, Trouble> {
        let mut differs = self.0.standing_differs(stat, present.mode, &present.owner, &present.group)?;
        if !present.create_once && sha256 != Some(present.content.sha256) {
            differs.insert(0, "its content differs".to_owned());
        }
        Ok(differs)
    }

    fn replace(
        &self,
        dir: &Arc<Dir>,
        name: &str,
        spec: &FileSpec,
        present: &FilePresent,
        (seen, sha256): (&Stat, Option<Digest>),
        temporary: &str,
    ) -> Result<(Step, Option<Remark>), Trouble> {
        let (in_place, carried) = self.way(dir, name, spec, present, (seen, sha256))?;
        if in_place {
            let owner = self.0.owner(&present.owner, &present.group)?;
            return Ok((Step::SetFile { seen: *seen, mode: present.mode.bits(), owner }, None));
        }
        let existing = present.create_once.then_some(Existing { name, seen });
        let fresh = self.write(dir, spec, present, temporary, (existing, carried))?;
        let note = Remark::of_file(other_names(seen, ", with what was there"), carry::words(fresh.carried()));
        Ok((Step::Replace(fresh, *seen), note))
    }

    /// Whether the file is altered where it is; else what goes over to the one that takes its place. The error says
    /// what bars either.
    fn way(
        &self,
        dir: &Dir,
        name: &str,
        spec: &FileSpec,
        present: &FilePresent,
        (seen, sha256): (&Stat, Option<Digest>),
    ) -> Result<(bool, Attributes), Trouble> {
        let owner = self.0.owner(&present.owner, &present.group)?;
        let same_content = present.create_once || sha256 == Some(present.content.sha256);
        let in_place = same_content && self.is_ours_alone(seen);
        let same_owner = owner.is_none_or(|owner| owner == (seen.uid, seen.gid));
        if present.create_once {
            carry::is_not_given_away(self.0, dir, &spec.path, seen, (owner, present.mode.bits()))?;
        }
        if in_place && same_owner {
            carry::is_free(dir, name, &spec.path, false)?;
            carry::may_be_set(dir, name, &spec.path, seen)?;
            return Ok((true, Attributes::default()));
        }
        carry::is_free(dir, name, &spec.path, !in_place)?;
        let carried = carry::carried(self.0, dir, name, &spec.path, seen, owner)?;
        // A change of owner takes capabilities away, where it is: then a whole new file takes its place.
        let in_place = in_place && !carried.has_capability();
        if !in_place {
            carry::is_free(dir, name, &spec.path, true)?;
            carry::can_go_over(&spec.path, &carried)?;
        }
        Ok((in_place, carried))
    }

    /// What would be said of the change, without making it.
    pub(super) fn foresee(&self, spec: &FileSpec, seen: &Seen) -> Result<Option<Remark>, Trouble> {
        let (dir, name) = match (seen, self.0.parent(&spec.path)) {
            (Seen::Nothing | Seen::File { .. }, Ok(found)) => found,
            _ => return Ok(None),
        };
        match (seen, &spec.present) {
            (Seen::File { stat, sha256 }, Some(present)) => {
                let (in_place, carried) = self.way(&dir, name, spec, present, (stat, *sha256))?;
                let names = carried.names();
                // The system gives a new file its label by itself, mostly the same.
                let told: Vec<String> = names.into_iter().filter(|name| name != "security.selinux").collect();
                let is_replaced = !in_place;
                let others = other_names(stat, ", with what was there").filter(|_| is_replaced);
                Ok(Remark::of_file(others, carry::words(&told).filter(|_| is_replaced)))
            }
            (Seen::File { stat, .. }, None) => {
                carry::is_free(&dir, name, &spec.path, true)?;
                Ok(Remark::of_file(other_names(stat, ""), None))
            }
            _ => carry::is_free(&dir, name, &spec.path, true).map(|()| None),
        }
    }

    /// Whether the inode may be altered where it is: it has no other name, and nobody else can have it open to write.
    fn is_ours_alone(&self, seen: &Stat) -> bool {
        seen.links == 1 && seen.mode & 0o022 == 0 && self.0.walker.is_trusted_owner(seen.uid)
    }

    fn write(
        &self,
        dir: &Arc<Dir>,
        spec: &FileSpec,
        present: &FilePresent,
        temporary: &str,
        (existing, carried): (Option<Existing<'_>>, Attributes),
    ) -> Result<Fresh, Trouble> {
        let owner: Option<Owner> = self.0.owner(&present.owner, &present.group)?;
        let mut trouble = None;
        let mut fill = |file: &mut File| {
            let filled = match &existing {
                Some(existing) => copy_existing(dir, existing, file),
                None => self.copy_declared(present, file),
            };
            filled.map_err(|error| {
                let text = error.to_string();
                trouble = Some(error);
                io::Error::other(text)
            })
        };
        // What the machine made of its content nobody could bring again, nor knows how it reads.
        let is_declared = existing.is_none();
        let takes = |together: &Arc<Together>| is_declared && together.takes(dir, present.content.size);
        let waits = self.0.together.as_ref().is_some_and(takes);
        let fresh = Fresh::file(dir, temporary, present.mode.bits(), owner, &carried, &mut fill)
            .and_then(|mut fresh| if waits { Ok(fresh) } else { fresh.sync().map(|()| fresh) });
        match (trouble, fresh) {
            (Some(error), _) => Err(copying(&spec.path, error)),
            (None, fresh) => fresh.map_err(|error| changing(&spec.path, dir, temporary, error)),
        }
    }

    /// From the host's store only, hashed once more on its way (S-11).
    fn copy_declared(&self, present: &FilePresent, file: &mut File) -> Result<(), ContentsError> {
        let sha256 = present.content.sha256;
        let mut hasher = Sha256::new();
        self.0.contents.copy(sha256, &mut |bytes| {
            hasher.update(bytes);
            file.write_all(bytes)
        })?;
        if Digest::from_bytes(hasher.finalize().into()) == sha256 {
            Ok(())
        } else {
            Err(ContentsError::Unreadable { sha256, why: "its digest is another".to_owned() })
        }
    }
}

/// What the machine made of a file that was written once stays its content when only its mode or owner is put right.
fn copy_existing(dir: &Dir, existing: &Existing<'_>, file: &mut File) -> Result<(), ContentsError> {
    let taking = |error: ReadError| match error {
        ReadError::Io(error) => ContentsError::Taking(error),
        ReadError::Exchanged => ContentsError::Exchanged,
    };
    let (mut from, stat) = dir.open_file(existing.name).map_err(taking)?;
    if !stat.is_untouched(existing.seen) {
        return Err(taking(ReadError::Exchanged));
    }
    let mut left = stat.size;
    read_all(&mut from, &mut |bytes| {
        // One that grows while it is copied would have no end.
        left = u64::try_from(bytes.len()).ok().and_then(|len| left.checked_sub(len)).ok_or_else(grew)?;
        file.write_all(bytes)
    })
    .map_err(ContentsError::Taking)
}

fn grew() -> io::Error {
    io::Error::other("it grew while it was read")
}

fn other_names(seen: &Stat, with: &str) -> Option<String> {
    (seen.links > 1)
        .then(|| format!("the path was one of {} names of a file; the others keep it{with}", seen.links))
}
