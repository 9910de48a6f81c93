//! Looking at what lies at a name, and reading it. Nothing is followed, nothing is waited for, nothing but a regular
//! file is read.

use std::cmp::Ordering;
use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, readlinkat};
use nix::libc::nlink_t;
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tenure_protocol::id::Digest;
use tenure_protocol::text::shown;

use super::{Dir, inode, kind};
use crate::ground::own::Inode;

/// What the kernel says of a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stat {
    /// Which it is.
    pub inode: Inode,
    /// Its permission bits.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Its size in bytes.
    pub size: u64,
    /// How many names it has.
    pub links: nlink_t,
    /// When anything about it last changed: content, standing, or the number of its names.
    pub changed: (i64, i64),
    /// When its content last changed, as its owner says.
    pub written: (i64, i64),
}

/// What lies at a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// A regular file.
    File(Stat),
    /// A directory.
    Directory(Stat),
    /// A symbolic link.
    Link {
        /// Where it leads; bounded and escaped.
        to: String,
    },
    /// A pipe, a socket or a device.
    Other {
        /// What it is called; another process takes it for another thing, and looks.
        #[serde(skip)]
        what: &'static str,
    },
}

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is no longer the regular file it was.
    #[error("it was exchanged while it was looked at")]
    Exchanged,
    /// The system did not let us.
    #[error("it cannot be read")]
    Io(#[source] std::io::Error),
}

/// Opening waits for nobody (a pipe's other end), takes no terminal, and follows no link.
const READ: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_NONBLOCK)
    .union(OFlag::O_NOCTTY)
    .union(OFlag::O_CLOEXEC);

/// Large enough that a small file is one call.
const BUFFER: usize = 64 * 1024;

impl Dir {
    /// What lies at `name`. It opens nothing, so that a device or a pipe does not notice.
    pub fn look(&self, name: &str) -> Result<Found, Errno> {
        let Some(stat) = self.stat(name)? else { return Ok(Found::Nothing) };
        Ok(match kind(&stat) {
            SFlag::S_IFREG => Found::File(Stat::of(&stat)),
            SFlag::S_IFDIR => Found::Directory(Stat::of(&stat)),
            SFlag::S_IFLNK => Found::Link { to: shown(&readlinkat(&self.fd, name)?.to_string_lossy(), 200) },
            SFlag::S_IFIFO => Found::Other { what: "a named pipe" },
            SFlag::S_IFSOCK => Found::Other { what: "a socket" },
            SFlag::S_IFCHR | SFlag::S_IFBLK => Found::Other { what: "a device" },
            _ => Found::Other { what: "neither a file nor a directory" },
        })
    }

    /// Opens the regular file at `name` for reading.
    pub fn open_file(&self, name: &str) -> Result<(File, Stat), ReadError> {
        let fd = openat(&self.fd, name, READ, Mode::empty()).map_err(|errno| match errno {
            Errno::ELOOP | Errno::ENOENT | Errno::ENXIO => ReadError::Exchanged,
            errno => ReadError::Io(errno.into()),
        })?;
        let stat = fstat(&fd).map_err(|errno| ReadError::Io(errno.into()))?;
        if kind(&stat) != SFlag::S_IFREG {
            return Err(ReadError::Exchanged);
        }
        Ok((File::from(fd), Stat::of(&stat)))
    }

    /// The digest of the regular file at `name`, with what the kernel says of the very file that was read. No more is
    /// read than the size that was seen: one that grows meanwhile counts as exchanged.
    pub fn digest(&self, name: &str) -> Result<(Stat, Digest), ReadError> {
        let (mut file, stat) = self.open_file(name)?;
        Ok((stat, digest(&mut file, stat.size)?))
    }

    /// The same of a file that was seen before; one that is not untouched since counts as exchanged, and is not read.
    pub fn digest_of(&self, name: &str, seen: &Stat) -> Result<Digest, ReadError> {
        let (mut file, stat) = self.open_file(name)?;
        if stat == *seen { digest(&mut file, stat.size) } else { Err(ReadError::Exchanged) }
    }

    /// The names of at most `most` entries of the directory at `name`.
    pub fn names(&self, name: &str, most: usize) -> Result<Vec<String>, Errno> {
        let flags = READ | OFlag::O_DIRECTORY;
        let mut dir = nix::dir::Dir::openat(&self.fd, name, flags, Mode::empty())?;
        let mut names = Vec::new();
        for entry in dir.iter() {
            let entry = entry?;
            let name = entry.file_name();
            if names.len() == most {
                break;
            }
            if !matches!(name.to_bytes(), b"." | b"..") {
                names.push(name.to_string_lossy().into_owned());
            }
        }
        Ok(names)
    }
}

/// The digest of `file`, which had `size` bytes when it was opened.
fn digest(file: &mut File, size: u64) -> Result<Digest, ReadError> {
    let (mut hasher, mut read) = (Sha256::new(), 0_u64);
    let all = read_pages(file, &mut |bytes, is_short| {
        read = read.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        hasher.update(bytes);
        match read.cmp(&size) {
            Ordering::Greater => Err(std::io::ErrorKind::FileTooLarge.into()),
            // A page that was not filled was the last: asking for the end would cost as much as reading it did.
            Ordering::Equal if is_short => Ok(ControlFlow::Break(())),
            Ordering::Equal | Ordering::Less => Ok(ControlFlow::Continue(())),
        }
    });
    if read > size {
        return Err(ReadError::Exchanged);
    }
    all.map_err(ReadError::Io)?;
    Ok(Digest::from_bytes(hasher.finalize().into()))
}

/// Hands everything in `file` to `take`.
pub(crate) fn read_all(
    file: &mut File,
    take: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
) -> std::io::Result<()> {
    read_pages(file, &mut |bytes, _| take(bytes).map(ControlFlow::Continue))
}

/// Whether more is wanted.
type Taken = std::io::Result<ControlFlow<()>>;

/// Hands `file` to `take`, page by page, and whether the page was not filled, to its end or until `take` has enough.
fn read_pages(file: &mut File, take: &mut dyn FnMut(&[u8], bool) -> Taken) -> std::io::Result<()> {
    thread_local! {
        static PAGE: std::cell::RefCell<Vec<u8>> = std::cell::RefCell::new(vec![0; BUFFER]);
    }
    PAGE.with_borrow_mut(|page| {
        loop {
            match file.read(page) {
                Ok(0) => return Ok(()),
                Ok(read) => {
                    let bytes = page.get(..read).unwrap_or_default();
                    if take(bytes, read < BUFFER)?.is_break() {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    })
}

impl Stat {
    pub(super) fn of(stat: &FileStat) -> Self {
        Self {
            inode: inode(stat),
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            links: stat.st_nlink,
            changed: (stat.st_ctime, stat.st_ctime_nsec),
            written: (stat.st_mtime, stat.st_mtime_nsec),
        }
    }

    /// Whether this is the same thing, untouched since. That it has more or fewer names than then does not touch it.
    pub fn is_untouched(&self, then: &Self) -> bool {
        let standing = |stat: &Self| (stat.inode, stat.mode, stat.uid, stat.gid, stat.size, stat.written);
        standing(self) == standing(then) && (self.changed == then.changed || self.links != then.links)
    }
}
