//! Walks a fleet folder by directory descriptor, in two rounds: the first only looks, so that a folder of a million
//! files or a sparse file of a terabyte is refused before a byte is read; the second reads what the first saw. Nothing
//! is followed, waited for or opened but regular files and folders, and what changed in between is refused: what is
//! declared stood there at one time.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use tenure_protocol::text::shown;

use super::{FLEET, FolderError};

/// How much of a folder is taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Files.
    pub(super) files: usize,
    /// Folders; more than files would be nothing but names.
    pub(super) folders: usize,
    /// Bytes, together.
    pub(super) bytes: u64,
    /// Folders in each other.
    pub(super) depth: usize,
}

/// Not part of a fleet, wherever it lies.
const NOT_PART: &[u8] = b".git";
/// What an editor leaves beside a file that somebody edits: a link that leads nowhere, whose text says who.
const LOCK: &[u8] = b".#";
/// The longest path in a folder: what the control plane takes.
const LONGEST: usize = 4096;

const FOLDER: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC).union(OFlag::O_NONBLOCK);
const FILE: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_NONBLOCK)
    .union(OFlag::O_NOCTTY)
    .union(OFlag::O_CLOEXEC);

/// What was seen of one folder.
#[derive(Default)]
struct Seen {
    files: Vec<(String, Mark)>,
    folders: Vec<(String, Seen)>,
}

/// By which a file is known to be the same, and unchanged.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mark {
    device: u64,
    inode: u64,
    size: i64,
    written: (i64, i64),
    changed: (i64, i64),
}

/// Every file below `dir` by its path there, with `/`.
pub(super) fn files(dir: &Path, bounds: Bounds) -> Result<BTreeMap<String, Vec<u8>>, FolderError> {
    look(dir, bounds)?.read()
}

/// A folder that was looked at.
pub(super) struct Looked {
    root: OwnedFd,
    seen: Seen,
}

/// The first round.
pub(super) fn look(dir: &Path, bounds: Bounds) -> Result<Looked, FolderError> {
    let root = root(dir)?;
    let mut survey = Survey { bounds, files: 0, folders: 0, bytes: 0 };
    let seen = survey.folder(&root, "", 0)?;
    Ok(Looked { root, seen })
}

impl Looked {
    /// The second round.
    pub(super) fn read(self) -> Result<BTreeMap<String, Vec<u8>>, FolderError> {
        let mut files = BTreeMap::new();
        read(&self.root, self.seen, "", &mut files)?;
        Ok(files)
    }
}

/// The folder itself, which may be reached through links, and has a `fleet.toml`.
fn root(dir: &Path) -> Result<OwnedFd, FolderError> {
    let at = || shown(&dir.display().to_string(), 300);
    let root = open(dir, FOLDER, Mode::empty()).map_err(|errno| match errno {
        Errno::ENOENT => FolderError::NoFolder(at()),
        Errno::ENOTDIR => FolderError::NotAFolder(at()),
        other => FolderError::CannotRead { path: at(), source: other.into() },
    })?;
    match fstatat(&root, FLEET, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(stat) if kind(&stat) != SFlag::S_IFDIR => Ok(root),
        Ok(_) | Err(Errno::ENOENT) => Err(FolderError::NoFleet(at())),
        Err(other) => Err(FolderError::CannotRead { path: at(), source: other.into() }),
    }
}

struct Survey {
    bounds: Bounds,
    files: usize,
    folders: usize,
    bytes: u64,
}

impl Survey {
    fn folder(&mut self, fd: &OwnedFd, below: &str, depth: usize) -> Result<Seen, FolderError> {
        let here = || shown(if below.is_empty() { "the folder" } else { below }, 300);
        if depth > self.bounds.depth {
            return Err(FolderError::TooDeep(here()));
        }
        self.folders += 1;
        if self.folders > self.bounds.folders {
            return Err(FolderError::TooManyFolders(here()));
        }
        let unreadable = |errno: Errno| FolderError::CannotRead { path: here(), source: errno.into() };
        let again = openat(fd, ".", FOLDER, Mode::empty()).map_err(unreadable)?;
        let mut seen = Seen::default();
        for entry in Dir::from_fd(again).map_err(unreadable)?.iter() {
            let entry = entry.map_err(unreadable)?;
            let name = entry.file_name();
            if !matches!(name.to_bytes(), b"." | b".." | NOT_PART) {
                self.entry(fd, name, below, depth, &mut seen)?;
            }
        }
        Ok(seen)
    }

    fn entry(
        &mut self,
        fd: &OwnedFd,
        name: &CStr,
        below: &str,
        depth: usize,
        seen: &mut Seen,
    ) -> Result<(), FolderError> {
        let text = || shown(&String::from_utf8_lossy(name.to_bytes()), 300);
        let path = match name.to_str() {
            Err(_) => return Err(FolderError::NotText(text())),
            Ok(name) if name.chars().any(char::is_control) => return Err(FolderError::Control(text())),
            Ok(name) => join(below, name),
        };
        let here = shown(&path, 300);
        if path.len() > LONGEST {
            return Err(FolderError::LongPath(here));
        }
        let unreadable =
            |errno: Errno| FolderError::CannotRead { path: shown(&path, 300), source: errno.into() };
        let stat = match fstatat(fd, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::ENOENT) => return Err(FolderError::Changed(here)),
            Err(errno) => return Err(unreadable(errno)),
        };
        let name_text = path.rsplit('/').next().unwrap_or_default().to_owned();
        match kind(&stat) {
            SFlag::S_IFREG => {
                self.count(&stat, here)?;
                seen.files.push((name_text, Mark::of(&stat)));
            }
            SFlag::S_IFDIR => {
                let inner =
                    openat(fd, name, FOLDER | OFlag::O_NOFOLLOW, Mode::empty()).map_err(unreadable)?;
                seen.folders.push((name_text, self.folder(&inner, &path, depth + 1)?));
            }
            SFlag::S_IFLNK if name.to_bytes().starts_with(LOCK) => {}
            SFlag::S_IFLNK => {
                let target = readlinkat(fd, name).unwrap_or_else(|_| OsString::new());
                let target = shown(&String::from_utf8_lossy(target.as_bytes()), 300);
                return Err(FolderError::Link { path: here, target });
            }
            other => return Err(FolderError::NotAFile { path: here, what: special(other) }),
        }
        Ok(())
    }

    fn count(&mut self, stat: &FileStat, here: String) -> Result<(), FolderError> {
        self.files += 1;
        if self.files > self.bounds.files {
            return Err(FolderError::TooMany(here));
        }
        self.bytes = self.bytes.saturating_add(u64::try_from(stat.st_size).unwrap_or(u64::MAX));
        if self.bytes > self.bounds.bytes { Err(FolderError::TooLarge(here)) } else { Ok(()) }
    }
}

fn read(
    fd: &OwnedFd,
    seen: Seen,
    below: &str,
    files: &mut BTreeMap<String, Vec<u8>>,
) -> Result<(), FolderError> {
    for (name, mark) in seen.files {
        let path = join(below, &name);
        let bytes = file(fd, &name, mark, &path)?;
        files.insert(path, bytes);
    }
    for (name, seen) in seen.folders {
        let path = join(below, &name);
        let inner = openat(fd, name.as_str(), FOLDER | OFlag::O_NOFOLLOW, Mode::empty())
            .map_err(|errno| opened(errno, &path))?;
        read(&inner, seen, &path, files)?;
    }
    Ok(())
}

/// The bytes of the file that was seen, if it is still that, also when they have been read.
fn file(fd: &OwnedFd, name: &str, mark: Mark, path: &str) -> Result<Vec<u8>, FolderError> {
    let unreadable = |source| FolderError::CannotRead { path: shown(path, 300), source };
    let mut file = File::from(openat(fd, name, FILE, Mode::empty()).map_err(|errno| opened(errno, path))?);
    let is_same =
        |file: &File| fstat(file).map(|stat| Mark::of(&stat) == mark).map_err(|e| unreadable(e.into()));
    let size = u64::try_from(mark.size).unwrap_or_default();
    let mut bytes = Vec::new();
    if is_same(&file)? {
        (&mut file).take(size.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable)?;
    }
    if is_same(&file)? && u64::try_from(bytes.len()) == Ok(size) {
        Ok(bytes)
    } else {
        Err(FolderError::Changed(shown(path, 300)))
    }
}

/// Why what was seen could not be opened: it is another thing by now, or it may not be read.
fn opened(errno: Errno, path: &str) -> FolderError {
    let path = shown(path, 300);
    match errno {
        Errno::ENOENT | Errno::ELOOP | Errno::ENOTDIR | Errno::ENXIO => FolderError::Changed(path),
        other => FolderError::CannotRead { path, source: other.into() },
    }
}

fn join(below: &str, name: &str) -> String {
    if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") }
}

fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT
}

fn special(kind: SFlag) -> &'static str {
    match kind {
        SFlag::S_IFIFO => "a pipe",
        SFlag::S_IFSOCK => "a socket",
        _ => "a device",
    }
}

impl Mark {
    const fn of(stat: &FileStat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size,
            written: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}
