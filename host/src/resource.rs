//! The adapters: how a kind of resource is observed, compared and converged. Observing never changes anything;
//! converging changes once, in two halves, so that the slow one (writing beside and syncing) can run for many at the
//! same time and the short one (one rename) stays in order. The engine observes again afterwards: an adapter never says
//! what became of a resource. Called by the reconcile room only.

use std::collections::BTreeMap;
use std::sync::Arc;

use nix::unistd::{getegid, geteuid};
use serde::{Deserialize, Serialize};
use tenure_protocol::id::Digest;
use tenure_protocol::path::DeclaredPath;
use tenure_protocol::resource::{
    DirectorySpec, FileSpec, PackageSpec, PackageWanted, Principal, ResourceKey, Spec,
};

use crate::ground::own::Touch;
use crate::store::{State, Store};
use crate::walk::change::Owner;
use crate::walk::read::{Found, ReadError, Stat};
use crate::walk::together::Together;
use crate::walk::{Dir, WalkError, Walker};

pub mod accounts;
mod carry;
mod directory;
mod file;
pub(crate) mod package;
mod prepared;
mod recall;
pub mod remark;
mod tools;
mod trouble;
pub mod unit;

pub use accounts::Accounts;
pub use directory::DirectoryAdapter;
pub use file::FileAdapter;
pub use prepared::{Placed, Prepared};
pub use recall::{Reading, Recall};
pub use remark::{Kind, Remark, Remarks};
pub use tools::Tools;
pub(crate) use trouble::{MOST_COUNTED, SAME_PLACE, counted};
pub use trouble::{Stands, Trouble};

use prepared::Step;
use trouble::{looking, walking};
use unit::{Load, Shown, Until};

/// One kind of resource that lies at a path. Packages and units are asked for and acted on through [`Tools`].
pub trait Adapter {
    /// What is declared.
    type Spec;

    /// What is there. `deep`: its content is read too.
    fn observe(&self, spec: &Self::Spec, deep: bool) -> Result<Seen, Trouble>;

    /// In what it differs from what is declared, in words; empty when it is as declared. The error says why it can
    /// never be made so as it stands.
    fn differences(&self, spec: &Self::Spec, seen: &Seen) -> Result<Vec<String>, Trouble>;

    /// The slow half: whatever is needed is written beside and synced, under the name `temporary`. What is declared is
    /// not touched yet; dropping what is returned undoes it.
    fn prepare(&self, spec: &Self::Spec, seen: &Seen, temporary: &str) -> Result<Prepared, Trouble>;
}

/// What adapters work with, for one pass.
#[expect(missing_debug_implementations, reason = "it holds a trait object")]
pub struct Site<'a> {
    /// The way to every path.
    pub walker: Walker<'a>,
    /// Owners and groups by name.
    pub accounts: Arc<Accounts>,
    /// Content by digest.
    pub contents: &'a dyn Contents,
    /// Whether owners and groups are set; not in a sandbox.
    pub sets_owner: bool,
    /// The package manager and the service manager.
    pub tools: &'a Tools<'a>,
    /// What was read before, and need not be read again where it is untouched; none: everything is read.
    pub recall: Option<&'a Recall>,
    /// Where files that are written are synced together; none: each is synced by itself.
    pub together: Option<Arc<Together>>,
}

/// What there is of something declared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Seen {
    /// Nothing, or not even the directory it would lie in.
    Nothing,
    /// A regular file; the digest of its content where it was read.
    File {
        /// What the kernel says.
        stat: Stat,
        /// Of its content.
        sha256: Option<Digest>,
    },
    /// A directory.
    Directory(Stat),
    /// A symbolic link, to there.
    Link {
        /// Where it leads.
        to: String,
    },
    /// A pipe, a socket or a device.
    Other {
        /// What it is called; another process takes it for another thing, and looks.
        #[serde(skip)]
        what: &'static str,
    },
    /// A package.
    Package {
        /// Its version, where it is installed or dpkg began with it.
        version: Option<String>,
        /// dpkg's word for it, where dpkg began with it and did not finish.
        unfinished: Option<String>,
        /// Somebody put it on hold.
        hold: bool,
        /// When it was brought, in seconds since 1970; none where its manager does not say.
        brought: Option<i64>,
    },
    /// A unit, as the service manager knows it.
    Unit(Box<Shown>),
}

impl Seen {
    /// What a record keeps of it; none of what is never ours.
    pub fn state(&self) -> Option<State> {
        match self {
            Self::Nothing => Some(State::Absent),
            Self::File { stat: Stat { mode, uid, gid, size, .. }, sha256 } => {
                let (mode, uid, gid, size) = (*mode, *uid, *gid, *size);
                Some(sha256.map_or(State::Unread { mode, uid, gid, size }, |sha256| State::File {
                    mode,
                    uid,
                    gid,
                    size,
                    sha256,
                }))
            }
            Self::Directory(Stat { mode, uid, gid, .. }) => {
                Some(State::Directory { mode: *mode, uid: *uid, gid: *gid })
            }
            Self::Package { version, unfinished: None, .. } => {
                Some(State::Package { version: version.clone() })
            }
            Self::Unit(shown) => Some(State::Unit {
                enabled: Some(shown.is_enabled()),
                running: Some(shown.is_up()),
                masked: shown.masked() == Some(Until::Undone),
                mask: None,
                on: BTreeMap::new(),
            }),
            Self::Link { .. } | Self::Other { .. } | Self::Package { .. } => None,
        }
    }

    /// Whether there is anything of it.
    pub fn is_there(&self) -> bool {
        match self {
            Self::Nothing => false,
            Self::File { .. } | Self::Directory(_) | Self::Link { .. } | Self::Other { .. } => true,
            Self::Package { version, .. } => version.is_some(),
            Self::Unit(shown) => shown.load != Load::NotFound,
        }
    }
}

/// Where the content of a declaration is.
pub trait Contents: Sync {
    /// Hands the bytes of some content to `take`, piece by piece, until it has all of them or `take` fails.
    fn copy(
        &self,
        sha256: Digest,
        take: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
    ) -> Result<(), ContentsError>;
}

/// Why content was not handed on.
#[derive(Debug, thiserror::Error)]
pub enum ContentsError {
    /// It is not here.
    #[error("the content {0} is not here")]
    Missing(Digest),
    /// It is here and cannot be read.
    #[error("the content {sha256} cannot be read: {why}")]
    Unreadable {
        /// Which.
        sha256: Digest,
        /// Why.
        why: String,
    },
    /// What is there of the file was to be copied, and is another one by now.
    #[error("it was exchanged while it was copied")]
    Exchanged,
    /// Whoever took it failed.
    #[error("writing failed")]
    Taking(#[source] std::io::Error),
}

impl Contents for Store {
    fn copy(
        &self,
        sha256: Digest,
        take: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
    ) -> Result<(), ContentsError> {
        let unreadable = |error: tenure_actors::database::DatabaseError| ContentsError::Unreadable {
            sha256,
            why: tenure_protocol::refusal::chain(&error),
        };
        let mut reader = self.reader(sha256).map_err(unreadable)?.ok_or(ContentsError::Missing(sha256))?;
        while let Some(bytes) = reader.next_piece().map_err(unreadable)? {
            take(&bytes).map_err(ContentsError::Taking)?;
        }
        Ok(())
    }
}

impl Site<'_> {
    /// The same site with a fresh walk, on which everything is read.
    #[must_use]
    pub fn fresh(&self) -> Self {
        Self {
            walker: self.walker.fresh(),
            accounts: Arc::clone(&self.accounts),
            contents: self.contents,
            sets_owner: self.sets_owner,
            tools: self.tools,
            recall: None,
            together: self.together.clone(),
        }
    }

    /// [`Adapter::observe`] by kind.
    pub fn observe(&self, spec: &Spec, deep: bool) -> Result<Seen, Trouble> {
        match spec {
            Spec::Package(spec) => package::observe(self.tools, spec),
            Spec::Unit(spec) => unit::observe(self.tools, spec),
            Spec::File(spec) => FileAdapter(self).observe(spec, deep),
            Spec::Directory(spec) => DirectoryAdapter(self).observe(spec, deep),
        }
    }

    /// [`Adapter::differences`] by kind.
    pub fn differences(&self, spec: &Spec, seen: &Seen) -> Result<Vec<String>, Trouble> {
        match spec {
            Spec::Package(spec) => package::differences(self.tools, spec, seen),
            Spec::Unit(spec) => unit::differences(spec, seen),
            Spec::File(spec) => FileAdapter(self).differences(spec, seen),
            Spec::Directory(spec) => DirectoryAdapter(self).differences(spec, seen),
        }
    }

    /// [`Adapter::prepare`] by kind, for what lies at a path.
    pub fn prepare(&self, spec: &Spec, seen: &Seen, temporary: &str) -> Result<Prepared, Trouble> {
        match spec {
            Spec::Package(_) | Spec::Unit(_) => {
                Err(Trouble::failed("changed_meanwhile", "there is nothing of it at a path"))
            }
            Spec::File(spec) => FileAdapter(self).prepare(spec, seen, temporary),
            Spec::Directory(spec) => DirectoryAdapter(self).prepare(spec, seen, temporary),
        }
    }

    /// What is to be said of a change that would be made, without making it; the error says what bars it.
    pub fn foresee(&self, spec: &Spec, seen: &Seen) -> Result<Option<Remark>, Trouble> {
        match spec {
            Spec::Package(_) | Spec::Unit(_) => Ok(None),
            Spec::File(spec) => FileAdapter(self).foresee(spec, seen),
            Spec::Directory(spec) => DirectoryAdapter(self).is_free(spec, seen).map(|()| None),
        }
    }

    /// What there is of something by its key alone, as it is when it leaves a declaration. `read`: the size up to which
    /// a file is read.
    pub fn look_at(&self, key: &ResourceKey, read: Option<u64>) -> Result<Seen, Trouble> {
        match key {
            ResourceKey::Directory(path) | ResourceKey::File(path) => self.look(path, read, true),
            ResourceKey::Package(name) => package::observe(
                self.tools,
                &PackageSpec { name: name.clone(), wanted: PackageWanted::Present },
            ),
            ResourceKey::Unit(name) => unit::observe(self.tools, &unit::left_alone(name)),
        }
    }

    /// What the path says as it is written, and as it reads once the links on the way are resolved.
    fn spelling(&self, path: &DeclaredPath) -> Touch {
        self.spelt(path, &self.walker.reach(path))
    }

    /// What lies at `path`. What is the host's own is refused (H-02); `above`: whether a directory in which the host's
    /// own things lie is refused too. The content of a file is read only if it has the size `read`: one of another size is
    /// another anyway, and whoever can make a file here could make one without end.
    pub fn look(&self, path: &DeclaredPath, read: Option<u64>, above: bool) -> Result<Seen, Trouble> {
        let refused = |touch| touch == Touch::Ours || above && touch == Touch::Above;
        let reached = self.walker.reach(path);
        if refused(self.spelt(path, &reached)) {
            return Err(Trouble::own_file(path));
        }
        let (dir, name) = reached.map_err(walking)?;
        if name.contains('/') {
            // The directory it would lie in is missing.
            return Ok(Seen::Nothing);
        }
        if dir.is_ours() {
            return Err(Trouble::own_file(path));
        }
        let own = |stat: &Stat| refused(self.walker.touch(stat.inode));
        match dir.look(name).map_err(|errno| looking(path, errno.into()))? {
            Found::Nothing => Ok(Seen::Nothing),
            Found::Link { .. } if self.walker.leads_to_ours(&dir, name) => Err(Trouble::own_file(path)),
            Found::Link { to } => Ok(Seen::Link { to }),
            Found::Other { what } => Ok(Seen::Other { what }),
            Found::Directory(stat) | Found::File(stat) if own(&stat) => Err(Trouble::own_file(path)),
            Found::Directory(stat) => Ok(Seen::Directory(stat)),
            Found::File(stat) if read != Some(stat.size) => Ok(Seen::File { stat, sha256: None }),
            Found::File(stat) => match self.content(path, &stat).map_or_else(|| dir.digest(name), Ok) {
                Ok((stat, _)) if own(&stat) => Err(Trouble::own_file(path)),
                Ok((stat, sha256)) => Ok(Seen::File { stat, sha256: Some(sha256) }),
                Err(ReadError::Exchanged) => Err(Trouble::exchanged(path)),
                Err(ReadError::Io(error)) => Err(looking(path, error)),
            },
        }
    }

    /// What is known of the content of the file at `path`, with what was seen of it.
    fn content(&self, path: &DeclaredPath, stat: &Stat) -> Option<(Stat, Digest)> {
        self.recall?.content(path, stat).map(|sha256| (*stat, sha256))
    }

    /// The directory `path` lies in, for a change: this time it must be there.
    fn parent<'p>(&self, path: &'p DeclaredPath) -> Result<(Arc<Dir>, &'p str), Trouble> {
        let (dir, name) = self.walker.parent(path).map_err(walking)?;
        if dir.is_ours() || self.walker.touch_of(&format!("{}/{name}", dir.name())) == Touch::Ours {
            Err(Trouble::own_file(path))
        } else {
            Ok((dir, name))
        }
    }

    /// Whether a change at `path` finds its way there.
    pub(crate) fn way(&self, path: &DeclaredPath) -> Result<(), Trouble> {
        self.parent(path).map(drop)
    }

    /// Owner and group by number; none where they are not set.
    fn owner(&self, owner: &Principal, group: &Principal) -> Result<Option<Owner>, Trouble> {
        if !self.sets_owner {
            return Ok(None);
        }
        let uid = self.accounts.user(owner).ok_or_else(|| self.unknown("owner", owner, "/etc/passwd"))?;
        let gid = self.accounts.group(group).ok_or_else(|| self.unknown("group", group, "/etc/group"))?;
        Ok(Some((uid, gid)))
    }

    fn unknown(&self, what: &str, name: &Principal, file: &str) -> Trouble {
        if self.accounts.is_unread(file) {
            return Trouble::unread_accounts(file);
        }
        Trouble::unknown_owner(what, name, file.trim_start_matches("/etc/"))
    }

    /// What lies there once this is written, as a record keeps it; none where an owner has no number here.
    pub fn written(&self, spec: &Spec) -> Option<State> {
        let owner = |owner: &Principal, group: &Principal| match self.owner(owner, group) {
            Ok(None) => Some((geteuid().as_raw(), getegid().as_raw())),
            owner => owner.ok().flatten(),
        };
        Some(match spec {
            Spec::File(FileSpec { present: None, .. })
            | Spec::Directory(DirectorySpec { present: None, .. }) => State::Absent,
            Spec::File(FileSpec { present: Some(file), .. }) => {
                let ((uid, gid), mode) = (owner(&file.owner, &file.group)?, file.mode.bits());
                State::File { mode, uid, gid, size: file.content.size, sha256: file.content.sha256 }
            }
            Spec::Directory(DirectorySpec { present: Some(directory), .. }) => {
                let (uid, gid) = owner(&directory.owner, &directory.group)?;
                State::Directory { mode: directory.mode.bits(), uid, gid }
            }
            Spec::Package(_) | Spec::Unit(_) => return None,
        })
    }

    /// In what mode, owner and group differ.
    fn standing_differs(
        &self,
        stat: &Stat,
        mode: tenure_protocol::resource::Mode,
        owner: &Principal,
        group: &Principal,
    ) -> Result<Vec<String>, Trouble> {
        let mut differs = Vec::new();
        if stat.mode != mode.bits() {
            differs.push(format!("its mode is {:04o}, declared {mode}", stat.mode));
        }
        if let Some((uid, gid)) = self.owner(owner, group)? {
            if stat.uid != uid {
                differs.push(format!("its owner is {}, declared {owner}", stat.uid));
            }
            if stat.gid != gid {
                differs.push(format!("its group is {}, declared {group}", stat.gid));
            }
        }
        Ok(differs)
    }

    /// What the path says as it is written, and as it reads where the walk there came to.
    fn spelt(&self, path: &DeclaredPath, reached: &Result<(Arc<Dir>, &str), WalkError>) -> Touch {
        let written = self.walker.touch_of(path.as_str());
        let resolved = match reached {
            // No link was on the way.
            Ok((dir, rest)) if is_joined(path.as_str(), dir.name(), rest) => written,
            Ok((dir, rest)) => self.walker.touch_of(&format!("{}/{rest}", dir.name())),
            // Where the walk is barred nothing is changed either.
            Err(_) => Touch::No,
        };
        match (written, resolved) {
            (Touch::Ours, _) | (_, Touch::Ours) => Touch::Ours,
            (Touch::Above, _) => Touch::Above,
            (Touch::No, resolved) => resolved,
        }
    }
}

/// Whether `path` is `rest` below `above`, as they are written.
fn is_joined(path: &str, above: &str, rest: &str) -> bool {
    path.strip_prefix(above).and_then(|path| path.strip_prefix('/')) == Some(rest)
}

#[cfg(test)]
mod tests;
