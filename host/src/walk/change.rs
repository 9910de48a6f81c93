//! Changing what lies at a name: always beside first, whole and synced, then in one step. An inode that has other names
//! is replaced and never altered. What appeared, changed or was mounted since it was looked at is left, and said.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{Mode, fstat, mkdirat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, geteuid, linkat, unlinkat};
use rustix::fs::{RenameFlags, renameat_with};

use super::carry::{Attributes, bound, strip};
use super::read::{Found, Stat};
use super::{Dir, mount};
use crate::steps;

/// Owner and group by number.
pub type Owner = (u32, u32);

/// Why something was not changed. Nothing at the path was, and nothing is left beside it.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// Something is there that was not when it was looked at.
    #[error("something appeared there meanwhile")]
    Appeared,
    /// It is not what it was when it was looked at.
    #[error("it was changed meanwhile")]
    Meanwhile,
    /// Something is mounted there.
    #[error("this path is a mount point of {of}")]
    MountPoint {
        /// What is mounted.
        of: String,
    },
    /// A directory that has entries.
    #[error("the directory is not empty")]
    NotEmpty,
    /// What the file before had besides, the new one cannot have.
    #[error("the attribute {name} of the file that was there cannot be carried over")]
    CannotCarry {
        /// The attribute.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file system shows it with another owner or mode, whatever is set.
    #[error("it is shown as mode {:04o} of {}:{}, whatever is set", shows.mode, shows.uid, shows.gid)]
    NotKept {
        /// How it is shown there.
        shows: Stat,
    },
    /// The system did not let us.
    #[error("it could not be {act}")]
    Io {
        /// What was tried.
        act: &'static str,
        /// What it said.
        source: io::Error,
    },
}

/// Something new beside its place, whole. Dropped before it is placed, it is removed.
#[derive(Debug)]
pub struct Fresh {
    dir: Arc<Dir>,
    name: String,
    kind: Kind,
    placed: bool,
    /// What it was given of the file whose place it takes.
    carried: Vec<String>,
    /// Its file, as long as that is not synced.
    unsynced: Option<File>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
}

/// A name nobody can foresee, for something that is about to be written beside its place.
pub fn temporary() -> io::Result<String> {
    let mut bytes = [0_u8; 8];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    let letters: String = bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect();
    Ok(format!("{PREFIX}{letters}"))
}

const PREFIX: &str = ".tenure-";
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Whether `name` has the form of [`temporary`].
fn is_temporary(name: &str) -> bool {
    name.strip_prefix(PREFIX)
        .is_some_and(|rest| rest.len() == 8 && rest.bytes().all(|byte| ALPHABET.contains(&byte)))
}

impl Fresh {
    fn new(dir: &Arc<Dir>, temporary: &str, kind: Kind) -> Self {
        Self {
            dir: Arc::clone(dir),
            name: temporary.to_owned(),
            kind,
            placed: false,
            carried: Vec::new(),
            unsynced: None,
        }
    }

    /// The names of the attributes it was given of the file whose place it takes.
    pub fn carried(&self) -> &[String] {
        &self.carried
    }

    /// Writes a file beside its place: new, 0600 and ours while it is filled, then of its owner, with what it carries
    /// over, and of its mode. It is to be synced before it is placed; what nobody has synced is synced then.
    pub fn file(
        dir: &Arc<Dir>,
        temporary: &str,
        mode: u32,
        owner: Option<Owner>,
        carried: &Attributes,
        fill: &mut dyn FnMut(&mut File) -> io::Result<()>,
    ) -> Result<Self, ChangeError> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let made = || openat(&dir.fd, temporary, flags, Mode::S_IRUSR | Mode::S_IWUSR);
        let fd = steps::FILE_MADE.take(made).map_err(busy("written"))?;
        let mut fresh = Self::new(dir, temporary, Kind::File);
        let mut file = File::from(fd);
        let written = |source| ChangeError::Io { act: "written", source };
        let made = Stat::of(&fstat(&file).map_err(io("looked at"))?);
        if made.mode & 0o077 != 0 || made.uid != geteuid().as_raw() {
            // A file system with owners and modes of its own: nothing is written there that would not be as declared.
            give(&file, mode, owner)?;
        }
        steps::FILE_FILLED.take(|| fill(&mut file).and_then(|()| file.flush())).map_err(written)?;
        // A change of owner and every write take capabilities away; the mode bounds an access list: in this order.
        steps::FILE_GIVEN.take(|| {
            give_owner(&file, owner)?;
            fresh.carried = carried.put(&file, mode)?;
            give(&file, mode, owner)
        })?;
        fresh.unsynced = Some(file);
        Ok(fresh)
    }

    /// What it contains is on the disk after it.
    pub fn sync(&mut self) -> Result<(), ChangeError> {
        if let Some(file) = &self.unsynced {
            let synced = steps::FILE_SYNCED.take(|| file.sync_all());
            synced.map_err(|source| ChangeError::Io { act: "written", source })?;
            self.unsynced = None;
        }
        Ok(())
    }

    pub(super) const fn is_synced(&self) -> bool {
        self.unsynced.is_none()
    }

    /// Somebody else saw to that.
    pub(super) fn was_synced(&mut self) {
        self.unsynced = None;
    }

    pub(super) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Makes an empty directory beside its place, of its owner and mode, synced.
    pub fn directory(
        dir: &Arc<Dir>,
        temporary: &str,
        mode: u32,
        owner: Option<Owner>,
    ) -> Result<Self, ChangeError> {
        steps::DIRECTORY_MADE.take(|| mkdirat(&dir.fd, temporary, Mode::S_IRWXU)).map_err(busy("made"))?;
        let fresh = Self::new(dir, temporary, Kind::Directory);
        let (file, stat) = open_directory(dir, temporary)?;
        // In a directory that somebody else can write, the name may be that of something else by now: his, or a directory
        // of root's that he moved there, with all that is in it.
        if stat.uid != geteuid().as_raw() || !is_empty(&file).map_err(io("looked at"))? {
            return Err(ChangeError::Meanwhile);
        }
        steps::DIRECTORY_GIVEN.take(|| {
            strip(&file).map_err(|source| ChangeError::Io { act: "made", source })?;
            give(&file, mode, owner)?;
            file.sync_all().map_err(|source| ChangeError::Io { act: "made", source })
        })?;
        Ok(fresh)
    }

    /// Puts it where nothing is. It never takes the place of anything that appeared meanwhile. The directory is to be
    /// synced by the caller ([`Dir::sync`]), once for all that was placed in it.
    pub fn create(mut self, name: &str) -> Result<(), ChangeError> {
        self.sync()?;
        let step = match self.kind {
            Kind::File => steps::FILE_PLACED,
            Kind::Directory => steps::DIRECTORY_PLACED,
        };
        self.placed = step.take(|| self.to_nothing(name))?;
        Ok(())
    }

    /// Not every file system can rename without replacing; on one that cannot, a file is given the second name, and on one
    /// without hard links one looks once more. Answers whether the first name is gone: a second one goes when this is
    /// dropped.
    fn to_nothing(&self, name: &str) -> Result<bool, ChangeError> {
        let (dir, own) = (&self.dir, self.name.as_str());
        match renameat_with(&dir.fd, own, &dir.fd, name, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(true),
            Err(rustix::io::Errno::EXIST) => return Err(ChangeError::Appeared),
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(busy("put in place")(Errno::from_raw(errno.raw_os_error()))),
        }
        if self.kind == Kind::File {
            match linkat(&dir.fd, own, &dir.fd, name, AtFlags::empty()) {
                Ok(()) => return Ok(false),
                Err(Errno::EEXIST) => return Err(ChangeError::Appeared),
                Err(Errno::EPERM | Errno::EOPNOTSUPP | Errno::EMLINK) => {}
                Err(errno) => return Err(busy("put in place")(errno)),
            }
        }
        if dir.stat(name).map_err(io("looked at"))?.is_some() {
            return Err(ChangeError::Appeared);
        }
        renameat(&dir.fd, own, &dir.fd, name).map(|()| true).map_err(busy("put in place"))
    }

    /// Puts it in the place of the file that was seen there, which keeps its other names if it has any.
    pub fn replace(mut self, name: &str, seen: &Stat) -> Result<(), ChangeError> {
        self.sync()?;
        self.dir.still(name, seen)?;
        let rename = || renameat(&self.dir.fd, self.name.as_str(), &self.dir.fd, name);
        steps::FILE_REPLACED.take(rename).map_err(busy("put in place"))?;
        self.placed = true;
        Ok(())
    }

    /// Puts it in the place of the link that was seen there; what that leads to is not touched.
    pub fn replace_link(mut self, name: &str, seen: &str) -> Result<(), ChangeError> {
        self.sync()?;
        match self.dir.look(name).map_err(looked)? {
            Found::Link { to } if to == seen => {}
            Found::Link { .. }
            | Found::File(_)
            | Found::Directory(_)
            | Found::Other { .. }
            | Found::Nothing => return Err(ChangeError::Meanwhile),
        }
        let rename = || renameat(&self.dir.fd, self.name.as_str(), &self.dir.fd, name);
        steps::FILE_REPLACED.take(rename).map_err(busy("put in place"))?;
        self.placed = true;
        Ok(())
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if !self.placed {
            let flag = match self.kind {
                Kind::File => UnlinkatFlags::NoRemoveDir,
                Kind::Directory => UnlinkatFlags::RemoveDir,
            };
            if let Err(errno) = unlinkat(&self.dir.fd, self.name.as_str(), flag) {
                // The next pass finds it by its intent.
                tracing::debug!(%errno, name = %self.name, "a temporary was left behind");
            }
        }
    }
}

impl Dir {
    /// Removes the file that was seen at `name`.
    pub fn remove_file(&self, name: &str, seen: &Stat) -> Result<(), ChangeError> {
        self.still(name, seen)?;
        let unlink = || unlinkat(&self.fd, name, UnlinkatFlags::NoRemoveDir);
        steps::FILE_REMOVED.take(unlink).map_err(busy("removed"))
    }

    /// Removes the directory at `name` if it is empty.
    pub fn remove_directory(&self, name: &str) -> Result<(), ChangeError> {
        if let Some(of) = mount::at(self, name) {
            return Err(ChangeError::MountPoint { of });
        }
        let unlink = || unlinkat(&self.fd, name, UnlinkatFlags::RemoveDir);
        steps::DIRECTORY_REMOVED.take(unlink).map_err(|errno| match errno {
            Errno::ENOTEMPTY | Errno::EEXIST => ChangeError::NotEmpty,
            errno => busy("removed")(errno),
        })
    }

    /// Whether the directory that was seen at `name` has nothing in it.
    pub fn has_nothing_in(&self, name: &str, seen: &Stat) -> Result<bool, ChangeError> {
        let (file, stat) = open_directory(self, name)?;
        if stat.inode != seen.inode {
            return Err(ChangeError::Meanwhile);
        }
        is_empty(&file).map_err(io("looked at"))
    }

    /// Sets owner and mode of the directory that was seen at `name`. `while_empty`: only if nothing is in it.
    pub fn set_directory(
        &self,
        name: &str,
        seen: &Stat,
        while_empty: bool,
        mode: u32,
        owner: Option<Owner>,
    ) -> Result<(), ChangeError> {
        let (file, stat) = open_directory(self, name)?;
        if stat.inode != seen.inode || while_empty && !is_empty(&file).map_err(io("looked at"))? {
            return Err(ChangeError::Meanwhile);
        }
        steps::DIRECTORY_SET.take(|| give(&file, mode, owner))?;
        file.sync_all().map_err(|source| ChangeError::Io { act: "changed", source })
    }

    /// Sets owner and mode of the file that was seen at `name`, in place: only for one that has no other name.
    pub fn set_file(
        &self,
        name: &str,
        seen: &Stat,
        mode: u32,
        owner: Option<Owner>,
    ) -> Result<(), ChangeError> {
        let (file, stat) = self.open_file(name).map_err(|error| match error {
            super::read::ReadError::Exchanged => ChangeError::Meanwhile,
            super::read::ReadError::Io(source) => ChangeError::Io { act: "changed", source },
        })?;
        if !stat.is_untouched(seen) || stat.links != 1 {
            return Err(ChangeError::Meanwhile);
        }
        if let Some(of) = mount::at(self, name) {
            return Err(ChangeError::MountPoint { of });
        }
        steps::FILE_SET.take(|| give(&file, mode, owner))?;
        file.sync_all().map_err(|source| ChangeError::Io { act: "changed", source })
    }

    /// Removes what a pass that was cut short left at `name`: only under a name of the form we make, and only a file or
    /// an empty directory. The caller knows from its intent that it is ours; a name that somebody put something else
    /// under meanwhile is at most a thing of theirs, in a directory of theirs.
    pub fn clear_temporary(&self, name: &str) -> Result<bool, Errno> {
        if !is_temporary(name) {
            return Ok(false);
        }
        let flag = match self.look(name)? {
            Found::File(_) => UnlinkatFlags::NoRemoveDir,
            Found::Directory(_) => UnlinkatFlags::RemoveDir,
            Found::Nothing | Found::Link { .. } | Found::Other { .. } => return Ok(false),
        };
        unlinkat(&self.fd, name, flag).map(|()| true)
    }

    /// Syncs the directory itself: what was placed in it and removed from it stays so.
    pub fn sync(&self) -> io::Result<()> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let directory = match openat(&self.fd, ".", flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            // It was removed: whoever looks again sees what is there instead.
            Err(Errno::ENOENT) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        };
        steps::PLACE_SYNCED.take(|| directory.sync_all())
    }

    /// Whether what was seen at `name` still is there, untouched, with nothing mounted over it.
    fn still(&self, name: &str, seen: &Stat) -> Result<(), ChangeError> {
        match self.look(name).map_err(looked)? {
            Found::File(now) if now.is_untouched(seen) => match mount::at(self, name) {
                Some(of) => Err(ChangeError::MountPoint { of }),
                None => Ok(()),
            },
            Found::File(_)
            | Found::Directory(_)
            | Found::Link { .. }
            | Found::Other { .. }
            | Found::Nothing => Err(ChangeError::Meanwhile),
        }
    }
}

fn open_directory(dir: &Dir, name: &str) -> Result<(File, Stat), ChangeError> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let fd = openat(&dir.fd, name, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::ELOOP | Errno::ENOTDIR | Errno::ENOENT => ChangeError::Meanwhile,
        errno => io("opened")(errno),
    })?;
    let stat = fstat(&fd).map_err(io("looked at"))?;
    Ok((File::from(fd), Stat::of(&stat)))
}

fn is_empty(directory: &File) -> Result<bool, Errno> {
    let raw = |errno: rustix::io::Errno| Errno::from_raw(errno.raw_os_error());
    for entry in rustix::fs::Dir::read_from(directory).map_err(raw)? {
        if !matches!(entry.map_err(raw)?.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The owner first: a change of owner takes the set-user-id bit away. Then it is looked at: a file system may take
/// both without a word and keep neither (O-21).
fn give(file: &File, mode: u32, owner: Option<Owner>) -> Result<(), ChangeError> {
    give_owner(file, owner)?;
    let shows = standing(file)?;
    if shows.mode != mode {
        let set = || bound(file, mode).and_then(|()| file.set_permissions(Permissions::from_mode(mode)));
        set().map_err(|source| {
            let refused = [io::ErrorKind::PermissionDenied, io::ErrorKind::Unsupported];
            if refused.contains(&source.kind()) {
                ChangeError::NotKept { shows }
            } else {
                ChangeError::Io { act: "given its mode", source }
            }
        })?;
    }
    let shows = standing(file)?;
    let kept = shows.mode == mode && owner.is_none_or(|owner| owner == (shows.uid, shows.gid));
    if kept { Ok(()) } else { Err(ChangeError::NotKept { shows }) }
}

/// Only where it is another's: the kernel takes capabilities away even for the owner it has.
fn give_owner(file: &File, owner: Option<Owner>) -> Result<(), ChangeError> {
    let Some((uid, gid)) = owner else { return Ok(()) };
    let shows = standing(file)?;
    if (shows.uid, shows.gid) == (uid, gid) {
        return Ok(());
    }
    fchown(file.as_fd(), Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))).map_err(|errno| match errno {
        Errno::EPERM
        | Errno::EACCES
        | Errno::EINVAL
        | Errno::EOVERFLOW
        | Errno::EOPNOTSUPP
        | Errno::ENOSYS => ChangeError::NotKept { shows },
        errno => io("given to its owner")(errno),
    })
}

fn standing(file: &File) -> Result<Stat, ChangeError> {
    fstat(file).map(|stat| Stat::of(&stat)).map_err(io("looked at"))
}

fn io(act: &'static str) -> impl Fn(Errno) -> ChangeError {
    move |errno| ChangeError::Io { act, source: errno.into() }
}

/// A link that is no link any more once it is read was exchanged in between.
fn looked(errno: Errno) -> ChangeError {
    match errno {
        Errno::EINVAL => ChangeError::Meanwhile,
        errno => busy("looked at")(errno),
    }
}

fn busy(act: &'static str) -> impl Fn(Errno) -> ChangeError {
    move |errno| match errno {
        Errno::EBUSY => ChangeError::MountPoint { of: "something else".to_owned() },
        // Whoever owns the directory took something away, or put something of another kind in its place.
        Errno::ENOENT | Errno::EISDIR | Errno::ENOTDIR | Errno::ELOOP | Errno::ENOTEMPTY => {
            ChangeError::Meanwhile
        }
        errno => io(act)(errno),
    }
}
