//! A fleet folder as it is uploaded: every file below it, by digest. Nothing outside it is ever read: a link is
//! refused, wherever it points. `.git` is not part of a fleet.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use tenure_protocol::id::Digest;
use tenure_protocol::operator::{Folder, FolderFile};
use tenure_protocol::refusal::Explain;
use tenure_protocol::text::shown;

/// The most files of a folder.
const MOST_FILES: usize = 20_000;
/// The most bytes of a folder, together.
const MOST_BYTES: u64 = 64 * 1024 * 1024;
/// The most folders in each other; a tree that is deeper is no fleet.
const DEPTH: usize = 32;
const FLEET: &str = "fleet.toml";
const NOT_PART: &str = ".git";

/// A folder, read whole at one time, so that what is uploaded is what was hashed.
#[derive(Debug)]
pub(crate) struct Gathered {
    /// The digest of the listing, which stands for the folder.
    pub(crate) listing: Digest,
    /// Every content, the listing among them.
    pub(crate) contents: BTreeMap<Digest, Vec<u8>>,
}

impl Gathered {
    /// How many bytes its contents are.
    pub(crate) fn bytes(&self) -> u64 {
        self.contents.values().map(|bytes| u64::try_from(bytes.len()).unwrap_or(u64::MAX)).sum()
    }
}

/// Why a folder is not uploaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    #[error("there is no fleet.toml in {}", shown(&.0.display().to_string(), 300))]
    NoFleet(PathBuf),
    #[error("{path} is a link to {target}")]
    Link { path: String, target: String },
    #[error("{path} is {what}, not a file")]
    NotAFile { path: String, what: &'static str },
    #[error("the name {0} is not UTF-8 text")]
    NotText(String),
    #[error("there are more than {MOST_FILES} files; the first beyond is {0}")]
    TooMany(String),
    #[error("the files are more than {mib} MiB together; the one beyond is {0}", mib = MOST_BYTES >> 20)]
    TooLarge(String),
    #[error("{0} lies deeper than {DEPTH} folders")]
    TooDeep(String),
    #[error("{path} cannot be read")]
    CannotRead { path: String, source: std::io::Error },
}

impl Explain for FolderError {
    fn code(&self) -> &'static str {
        match self {
            Self::NoFleet(_) => "no_fleet",
            Self::Link { .. } => "folder_link",
            Self::NotAFile { .. } => "folder_special",
            Self::NotText(_) => "folder_name",
            Self::TooMany(_) | Self::TooLarge(_) | Self::TooDeep(_) => "folder_too_large",
            Self::CannotRead { .. } => "folder_unreadable",
        }
    }

    fn meaning(&self) -> String {
        match self {
            Self::NoFleet(_) => "this folder is not a fleet; nothing was uploaded",
            Self::Link { .. } => {
                "a fleet folder says everything itself: what a link reaches may lie outside it; nothing was uploaded"
            }
            Self::NotAFile { .. } => "only files and folders can be declared from; nothing was uploaded",
            Self::NotText(_) => "a fleet must read the same on every machine; nothing was uploaded",
            Self::TooMany(_) | Self::TooLarge(_) | Self::TooDeep(_) => {
                "this is more than a fleet folder may hold, so it is probably another folder; nothing was uploaded"
            }
            Self::CannotRead { .. } => "a folder is declared whole or not at all; nothing was uploaded",
        }
        .to_owned()
    }

    fn remedy(&self) -> String {
        match self {
            Self::NoFleet(_) => "name the folder with fleet.toml in it: `tenure declare DIR`".to_owned(),
            Self::Link { path, .. } => format!("put a copy of what it points to in place of {path}"),
            Self::NotAFile { path, .. } => format!("remove {path} from the folder"),
            Self::NotText(_) => "rename it".to_owned(),
            Self::TooMany(_) | Self::TooLarge(_) | Self::TooDeep(_) => {
                "name the folder with fleet.toml in it, and keep what is not declared from outside it"
                    .to_owned()
            }
            Self::CannotRead { path, .. } => format!("make {path} readable for you, and try again"),
        }
    }
}

/// Reads the folder whole.
pub(crate) fn gather(dir: &Path) -> Result<Gathered, FolderError> {
    if dir.join(FLEET).symlink_metadata().is_err() {
        return Err(FolderError::NoFleet(dir.to_path_buf()));
    }
    let mut walk = Walk { files: BTreeMap::new(), bytes: 0, most: MOST_FILES };
    walk.enter(dir, "", 0)?;
    let mut contents = BTreeMap::new();
    let mut folder = Folder::default();
    for (path, bytes) in walk.files {
        let sha256 = Digest::of(&bytes);
        folder.files.push(FolderFile { path, sha256, size: bytes.len().try_into().unwrap_or(u64::MAX) });
        contents.insert(sha256, bytes);
    }
    #[expect(clippy::expect_used, reason = "text, digests and numbers can always be written as JSON")]
    let listing = serde_json::to_vec(&folder).expect("a listing can be written");
    let digest = Digest::of(&listing);
    contents.insert(digest, listing);
    Ok(Gathered { listing: digest, contents })
}

struct Walk {
    /// By path below the folder, with `/`.
    files: BTreeMap<String, Vec<u8>>,
    bytes: u64,
    /// How many files there may be.
    most: usize,
}

impl Walk {
    fn enter(&mut self, dir: &Path, below: &str, depth: usize) -> Result<(), FolderError> {
        let shown_here = || shown(if below.is_empty() { "the folder" } else { below }, 300);
        if depth > DEPTH {
            return Err(FolderError::TooDeep(shown_here()));
        }
        let unreadable = |source| FolderError::CannotRead { path: shown_here(), source };
        for entry in fs::read_dir(dir).map_err(unreadable)? {
            let name = entry.map_err(unreadable)?.file_name();
            if name == NOT_PART {
                continue;
            }
            let Some(name) = name.to_str() else {
                return Err(FolderError::NotText(shown(&name.to_string_lossy(), 300)));
            };
            let below = if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") };
            self.visit(&dir.join(name), below, depth)?;
        }
        Ok(())
    }

    fn visit(&mut self, at: &Path, below: String, depth: usize) -> Result<(), FolderError> {
        let path = shown(&below, 300);
        let kind = match at.symlink_metadata() {
            Ok(metadata) => metadata.file_type(),
            Err(source) => return Err(FolderError::CannotRead { path, source }),
        };
        if kind.is_symlink() {
            let target = fs::read_link(at).map(|to| to.display().to_string()).unwrap_or_default();
            return Err(FolderError::Link { path, target: shown(&target, 300) });
        }
        if kind.is_dir() {
            return self.enter(at, &below, depth + 1);
        }
        if !kind.is_file() {
            return Err(FolderError::NotAFile { path, what: special(kind) });
        }
        if self.files.len() >= self.most {
            return Err(FolderError::TooMany(path));
        }
        let room = MOST_BYTES - self.bytes;
        let bytes =
            read(at, room).map_err(|source| FolderError::CannotRead { path: path.clone(), source })?;
        self.bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if self.bytes > MOST_BYTES {
            return Err(FolderError::TooLarge(path));
        }
        self.files.insert(below, bytes);
        Ok(())
    }
}

/// At most one byte more than there is room for. Neither follows a link nor waits for a pipe, should the file have
/// been exchanged for one since it was looked at.
fn read(at: &Path, room: u64) -> std::io::Result<Vec<u8>> {
    let flags = nix::fcntl::OFlag::O_NOFOLLOW | nix::fcntl::OFlag::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(at)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("it is no file any more"));
    }
    let mut bytes = Vec::new();
    file.take(room + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn special(kind: fs::FileType) -> &'static str {
    if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(test)]
mod tests;
