//! Reads a small file that people or other programs put there: a configuration, a key, a token, a bundle's declaration.
//! Opening waits for nobody, nothing but a regular file is read, and no more of it than a bound; whose it is and who may
//! read and write it is known of the very file that was read. It changes nothing, except where [`Opened::close`] is called.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

#[cfg(test)]
mod tests;

/// Whether a symbolic link may stand at the path itself. Links among the folders above are always followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// It is followed: people keep a configuration elsewhere and link to it.
    Followed,
    /// It is refused.
    Refused,
}

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Nothing lies there.
    #[error("{} is not there", path.display())]
    Absent {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A link lies there, and none is followed.
    #[error("{} is a link", path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// Something that is no regular file; it was neither read nor waited for.
    #[error("{} is {what}, not a file", path.display())]
    NotAFile {
        /// Where.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// It has more bytes than such a file can have.
    #[error("{} is larger than {most} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The bound.
        most: u64,
    },
    /// The system does not let us.
    #[error("{} cannot be read", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
}

/// A regular file, open for reading.
#[derive(Debug)]
pub struct Opened {
    file: File,
    path: PathBuf,
    seen: Metadata,
}

/// Opens the regular file at `path`.
pub fn open(path: &Path, links: Links) -> Result<Opened, FileError> {
    let link = match links {
        Links::Followed => OFlag::empty(),
        Links::Refused => OFlag::O_NOFOLLOW,
    };
    let failed = |source: std::io::Error| why_not(path, links, source);
    // A device may do something when it is opened, so that what lies there is asked for first. What is exchanged in
    // between is found out below; opening waits for no other end of a pipe and takes no terminal.
    let before = match links {
        Links::Followed => path.metadata(),
        Links::Refused => path.symlink_metadata(),
    };
    regular(path, &before.map_err(failed)?)?;
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY | link;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path).map_err(failed)?;
    let seen = file.metadata().map_err(failed)?;
    regular(path, &seen)?;
    Ok(Opened { file, path: path.to_owned(), seen })
}

/// Every byte of the file at `path`, which has at most `most`.
pub fn read(path: &Path, links: Links, most: u64) -> Result<Vec<u8>, FileError> {
    open(path, links)?.read(most)
}

impl Opened {
    /// Every byte of it.
    pub fn read(&mut self, most: u64) -> Result<Vec<u8>, FileError> {
        let large = || FileError::TooLarge { path: self.path.clone(), most };
        // A sparse file of a terabyte is refused before a byte of it is read, and one that grows while it is.
        if self.seen.len() > most {
            return Err(large());
        }
        let mut bytes = Vec::with_capacity(usize::try_from(self.seen.len()).unwrap_or_default());
        let read = (&self.file).take(most.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|source| FileError::Io { path: self.path.clone(), source })?;
        if u64::try_from(bytes.len()).is_ok_and(|len| len <= most) { Ok(bytes) } else { Err(large()) }
    }

    /// Its size when it was opened.
    pub fn size(&self) -> u64 {
        self.seen.len()
    }

    /// The file itself, for one that is read in pieces.
    pub fn into_file(self) -> File {
        self.file
    }

    /// Its permission bits.
    pub fn mode(&self) -> u32 {
        self.seen.mode() & 0o7777
    }

    /// The number of the user it belongs to.
    pub fn owner(&self) -> u32 {
        self.seen.uid()
    }

    /// Whether it is root's, or of the user this process acts as: nobody else could have put it there.
    pub fn is_ours(&self) -> bool {
        self.seen.uid() == 0 || self.seen.uid() == nix::unistd::geteuid().as_raw()
    }

    /// Whether others than its owner may read, write or run it.
    pub fn is_open_to_others(&self) -> bool {
        self.mode() & 0o077 != 0
    }

    /// Whether everybody may write it.
    pub fn is_writable_by_all(&self) -> bool {
        self.mode() & 0o002 != 0
    }

    /// Leaves it to its owner alone (0600). Fails where it belongs to somebody else.
    pub fn close(&self) -> std::io::Result<()> {
        self.file.set_permissions(Permissions::from_mode(0o600))
    }
}

fn regular(path: &Path, seen: &Metadata) -> Result<(), FileError> {
    let kind = seen.file_type();
    if kind.is_file() {
        return Ok(());
    }
    let path = path.to_owned();
    if kind.is_symlink() {
        return Err(FileError::Link { path });
    }
    Err(FileError::NotAFile { path, what: kind_in_words(kind) })
}

/// What something is called that is not a regular file.
pub fn kind_in_words(kind: std::fs::FileType) -> &'static str {
    if kind.is_dir() {
        "a folder"
    } else if kind.is_symlink() {
        "a link"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_file() {
        "a file"
    } else {
        "a device"
    }
}

fn why_not(path: &Path, links: Links, source: std::io::Error) -> FileError {
    let path = path.to_owned();
    match (source.kind(), source.raw_os_error()) {
        (ErrorKind::NotFound, _) => FileError::Absent { path },
        (_, Some(nix::libc::ELOOP)) if links == Links::Refused => FileError::Link { path },
        _ => FileError::Io { path, source },
    }
}
