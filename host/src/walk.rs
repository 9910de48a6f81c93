//! The one safe way to read and change paths below the root (S-12). Paths are walked by directory descriptor, one name
//! at a time. A link among the directories is followed only while everything so far is root's alone to change, and
//! inside the root; below the first directory that somebody else owns or can write, none is. The last name of a path is
//! never followed. It decides nothing: the adapters call it, and it says what stood in the way.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use nix::unistd::geteuid;
use tenure_protocol::path::DeclaredPath;
use tenure_protocol::text::shown;

use crate::ground::Ground;
use crate::ground::own::{Inode, Own, Touch};

pub mod carry;
pub mod change;
pub mod flag;
mod mount;
pub mod read;
pub(crate) mod times;
pub mod together;

/// An open directory below the root, by which everything in it is reached.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
    inode: Inode,
    /// Its path from the root, links resolved; empty for the root. One that the host's own things lie in is called by its
    /// own path, wherever it is mounted.
    name: String,
    /// Where `..` leads; none for the root, which is its own parent.
    parent: Option<Arc<Self>>,
    /// Nobody but root can change what its names, or those on the way to it, stand for.
    trusted: bool,
    /// It is, or lies in, something of the host's own.
    ours: bool,
    mount: OnceLock<Option<u64>>,
    keeps_times: OnceLock<bool>,
}

/// Walks below one root. It keeps directories open, so that a pass opens each once; for a fresh look take a fresh one.
#[derive(Debug)]
pub struct Walker<'a> {
    own: &'a Own,
    root: Arc<Dir>,
    trust: Trust,
    /// What was found on the way so far, by path; none: it is missing.
    open: Mutex<HashMap<String, Option<Arc<Dir>>>>,
    /// Whether what is missing is taken to be missing until the end of this walk.
    keeps_gaps: bool,
}

/// Why the directory of a path was not reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WalkError {
    /// A directory on the way is missing.
    #[error("the directory {at} does not exist")]
    Missing {
        /// Which.
        at: String,
    },
    /// Something on the way is no directory.
    #[error("{at} is not a directory")]
    NotADirectory {
        /// Which.
        at: String,
    },
    /// A link on the way lies where somebody else than root could have put it.
    #[error("{at} is a link to {to}, and not root alone can change what lies there")]
    Link {
        /// Where the link is.
        at: String,
        /// Where it leads.
        to: String,
    },
    /// Links lead to links without end.
    #[error("{at} leads through too many links")]
    TooManyLinks {
        /// Where it began.
        at: String,
    },
    /// The system did not let us look.
    #[error("{at} cannot be looked at")]
    Io {
        /// Where.
        at: String,
        /// What it said.
        source: Errno,
    },
}

/// Whose changes need not be feared: root's, and in a sandbox those of the user who runs it.
#[derive(Debug, Clone, Copy)]
struct Trust {
    me: u32,
}

/// What the kernel follows too.
const MOST_LINKS: u32 = 40;
/// A service may have as few as 1024 descriptors, and four walks at the same time; past this many one begins anew.
const MOST_OPEN: usize = 128;
/// To reach things through, never to read or write: opening a device or a pipe this way does nothing to it.
const THROUGH: OFlag = OFlag::O_PATH.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

impl<'a> Walker<'a> {
    /// A walker below the root of `ground`, whose own path is taken as it is.
    pub fn new(ground: &Ground, own: &'a Own) -> Result<Self, WalkError> {
        let trust = Trust { me: if ground.is_sandbox() { geteuid().as_raw() } else { 0 } };
        let at = |source| WalkError::Io { at: "/".to_owned(), source };
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let fd = open(ground.root(), flags, Mode::empty()).map_err(at)?;
        let stat = fstat(&fd).map_err(at)?;
        let root = Dir {
            fd,
            inode: inode(&stat),
            name: String::new(),
            parent: None,
            trusted: trust.alone(&stat),
            ours: own.touch(inode(&stat)) == Touch::Ours,
            mount: OnceLock::new(),
            keeps_times: OnceLock::new(),
        };
        Ok(Self { own, root: Arc::new(root), trust, open: Mutex::default(), keeps_gaps: false })
    }

    /// The same root, with nothing kept open: what was moved meanwhile is not mistaken for what lies at the path now.
    #[must_use]
    pub fn fresh(&self) -> Self {
        let (own, root, trust) = (self.own, Arc::clone(&self.root), self.trust);
        Self { own, root, trust, open: Mutex::default(), keeps_gaps: false }
    }

    /// The same for a walk that only looks: what is missing once counts as missing to its end, as what is there does.
    #[must_use]
    pub fn only_looking(mut self) -> Self {
        self.keeps_gaps = true;
        self
    }

    /// The directory that `path` lies in, and its name there.
    pub fn parent<'p>(&self, path: &'p DeclaredPath) -> Result<(Arc<Dir>, &'p str), WalkError> {
        let (parent, name) = path.as_str().rsplit_once('/').unwrap_or(("", path.as_str()));
        Ok((self.directory(parent)?, name))
    }

    /// The deepest directory on the way to `path` that is there, and the names from it on.
    pub fn reach<'p>(&self, path: &'p DeclaredPath) -> Result<(Arc<Dir>, &'p str), WalkError> {
        let (dir, above) = self.deepest(path.parent().unwrap_or_default())?;
        let rest = path.as_str().strip_prefix(above).unwrap_or(path.as_str());
        Ok((dir, rest.trim_start_matches('/')))
    }

    /// The deepest directory on the way to that of `path`, itself counted, that is there, and how far it comes; `path` is
    /// empty for the root.
    pub(crate) fn deepest<'p>(&self, path: &'p str) -> Result<(Arc<Dir>, &'p str), WalkError> {
        let mut above = path;
        loop {
            match self.directory(above) {
                Ok(dir) => return Ok((dir, above)),
                Err(WalkError::Missing { .. }) if !above.is_empty() => {
                    above = above.rsplit_once('/').map_or("", |(above, _)| above);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// What a path with its links resolved is to the host's own files: also of what is not there.
    pub fn touch_of(&self, text: &str) -> Touch {
        self.own.by_text(text)
    }

    /// Whether the link at `name`, if root alone could have made it, leads to something of the host's own: also to what
    /// is not there yet, and also by other links.
    pub fn leads_to_ours(&self, dir: &Arc<Dir>, name: &str) -> bool {
        let (mut dir, mut name) = (Arc::clone(dir), name.to_owned());
        for _ in 0..MOST_LINKS {
            if self.is_ours(&dir, &name) {
                return true;
            }
            let Some(to) = self.roots_link(&dir, &name) else { return false };
            let from = if to.starts_with('/') { &self.root } else { &dir };
            let (above, last) = last_name(&to);
            let Ok(reached) = self.along(from, above, &to, &mut MOST_LINKS.clone()) else { return false };
            let Some(last) = last else { return reached.ours };
            (dir, name) = (reached, last.to_owned());
        }
        // Links without end lead nowhere, for the kernel too.
        false
    }

    fn is_ours(&self, dir: &Dir, name: &str) -> bool {
        let touches = |stat: FileStat| self.own.touch(inode(&stat)) == Touch::Ours;
        dir.ours
            || self.own.by_text(&format!("{}/{name}", dir.name)) == Touch::Ours
            || dir.stat(name).ok().flatten().is_some_and(touches)
    }

    /// Where the link at `name` leads, if it is one that root alone could have made.
    fn roots_link(&self, dir: &Dir, name: &str) -> Option<String> {
        let fd = openat(&dir.fd, name, THROUGH, Mode::empty()).ok()?;
        let stat = fstat(&fd).ok()?;
        let is_roots = dir.trusted && kind(&stat) == SFlag::S_IFLNK && self.trust.owner(stat.st_uid);
        is_roots.then(|| readlinkat(&fd, "").ok()?.into_string().ok()).flatten()
    }

    /// What something that was seen is to the host's own files.
    pub fn touch(&self, inode: Inode) -> Touch {
        self.own.touch(inode)
    }

    /// Whether root, or in a sandbox the user who runs it, is the owner.
    pub fn is_trusted_owner(&self, uid: u32) -> bool {
        self.trust.owner(uid)
    }

    /// Who else than root can change what the names in `dir`, or those on the way to it, stand for; in words.
    pub fn who_else(&self, dir: &Dir) -> Option<String> {
        let above = std::iter::successors(Some(dir), |dir| dir.parent.as_deref());
        above.into_iter().find_map(|dir| {
            let stat = fstat(&dir.fd).ok().filter(|stat| !self.trust.alone(stat))?;
            let name = if dir.name.is_empty() { "/".to_owned() } else { shown(&dir.name, 200) };
            Some(if !self.trust.owner(stat.st_uid) {
                format!("{name} is of the user {}", stat.st_uid)
            } else if stat.st_mode & 0o002 != 0 {
                format!("anybody can write {name}")
            } else {
                format!("the group {} can write {name}", stat.st_gid)
            })
        })
    }

    fn directory(&self, path: &str) -> Result<Arc<Dir>, WalkError> {
        let Some((above, name)) = path.rsplit_once('/') else { return Ok(Arc::clone(&self.root)) };
        if let Some(known) = self.open.lock().unwrap_or_else(PoisonError::into_inner).get(path) {
            return known.clone().ok_or_else(|| WalkError::Missing { at: shown(path, 200) });
        }
        let above = self.directory(above)?;
        let found = self.step(&above, name, path, &mut MOST_LINKS.clone());
        let known = match &found {
            Ok(dir) => Some(Arc::clone(dir)),
            // Everything below it is missing too: each of ten thousand files would look for it anew.
            Err(WalkError::Missing { .. }) if self.keeps_gaps => None,
            Err(_) => return found,
        };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= MOST_OPEN {
            open.clear();
        }
        open.insert(path.to_owned(), known);
        found
    }

    /// One name further. `path` is how the declaration spells where we are.
    fn step(&self, dir: &Arc<Dir>, name: &str, path: &str, links: &mut u32) -> Result<Arc<Dir>, WalkError> {
        let at = || shown(path, 200);
        let fd = openat(&dir.fd, name, THROUGH, Mode::empty()).map_err(|errno| match errno {
            Errno::ENOENT => WalkError::Missing { at: at() },
            source => WalkError::Io { at: at(), source },
        })?;
        let stat = fstat(&fd).map_err(|source| WalkError::Io { at: at(), source })?;
        match kind(&stat) {
            SFlag::S_IFDIR => {
                let inode = inode(&stat);
                Ok(Arc::new(Dir {
                    fd,
                    inode,
                    name: self.own.known(inode).map_or_else(|| format!("{}/{name}", dir.name), str::to_owned),
                    parent: Some(Arc::clone(dir)),
                    trusted: dir.trusted && self.trust.alone(&stat),
                    ours: dir.ours || self.own.touch(inode) == Touch::Ours,
                    mount: OnceLock::new(),
                    keeps_times: OnceLock::new(),
                }))
            }
            SFlag::S_IFLNK => self.follow(dir, &fd, &stat, path, links),
            _ => Err(WalkError::NotADirectory { at: at() }),
        }
    }

    /// `link` was opened by descriptor in `dir`: what is judged is what is read.
    fn follow(
        &self,
        dir: &Arc<Dir>,
        link: &OwnedFd,
        stat: &FileStat,
        path: &str,
        links: &mut u32,
    ) -> Result<Arc<Dir>, WalkError> {
        let at = || shown(path, 200);
        let to = readlinkat(link, "").map_err(|source| WalkError::Io { at: at(), source })?;
        let to = to.to_string_lossy();
        if !(dir.trusted && self.trust.owner(stat.st_uid)) {
            return Err(WalkError::Link { at: at(), to: shown(&to, 200) });
        }
        *links = links.checked_sub(1).ok_or_else(|| WalkError::TooManyLinks { at: at() })?;
        self.along(if to.starts_with('/') { &self.root } else { dir }, &to, path, links)
    }

    /// The directory at `to` from `from`. `path` is how the declaration spells where we are.
    fn along(&self, from: &Arc<Dir>, to: &str, path: &str, links: &mut u32) -> Result<Arc<Dir>, WalkError> {
        let mut reached = Arc::clone(from);
        for name in to.split('/').filter(|name| !matches!(*name, "" | ".")) {
            reached = match name {
                ".." => reached.parent.clone().unwrap_or(reached),
                name => self.step(&reached, name, path, links)?,
            };
        }
        Ok(reached)
    }
}

impl Trust {
    const fn owner(self, uid: u32) -> bool {
        uid == 0 || uid == self.me
    }

    /// Whether only a trusted owner can change what names in this directory stand for. The group's bit counts even for
    /// root's group: with an access list it is the bound of what somebody else was given.
    fn alone(self, stat: &FileStat) -> bool {
        self.owner(stat.st_uid) && stat.st_mode & 0o022 == 0
    }
}

impl Dir {
    /// What the kernel calls it.
    pub const fn inode(&self) -> Inode {
        self.inode
    }

    /// Its path from the root, with every link resolved; empty for the root.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is, or lies in, something of the host's own.
    pub const fn is_ours(&self) -> bool {
        self.ours
    }

    /// Whether the file system here gives each change of a file a change time of its own that nobody can set.
    pub fn keeps_times(&self) -> bool {
        *self.keeps_times.get_or_init(|| times::are_kept(self.as_fd()))
    }

    /// Whether root alone can change what its names, and those on the way to it, stand for.
    pub const fn is_trusted(&self) -> bool {
        self.trusted
    }

    /// What kind of file system it lies on, where the kernel says it: `ext4`, `vfat`, `nfs4`.
    pub fn file_system(&self) -> Option<String> {
        mount::file_system(self.fd.as_fd())
    }

    fn stat(&self, name: &str) -> Result<Option<FileStat>, Errno> {
        match fstatat(&self.fd, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Where a link leads: the directory, and the name in it; none where it is the directory itself.
fn last_name(to: &str) -> (&str, Option<&str>) {
    let trimmed = to.trim_end_matches('/');
    match trimmed.rsplit_once('/').unwrap_or(("", trimmed)) {
        (_, "" | "." | "..") => (to, None),
        (above, last) => (above, Some(last)),
    }
}

/// What kind of thing was seen.
pub(crate) fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT
}

const fn inode(stat: &FileStat) -> Inode {
    Inode { dev: stat.st_dev, ino: stat.st_ino }
}

#[cfg(test)]
mod tests;
