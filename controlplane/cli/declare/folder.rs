//! A fleet folder as it is uploaded: every file below it, by digest. Nothing outside it is ever read: a link is
//! refused, wherever it points. `.git` is not part of a fleet.

mod walk;

use std::collections::BTreeMap;
use std::path::Path;

use tenure_protocol::id::Digest;
use tenure_protocol::operator::{Folder, FolderFile};
use tenure_protocol::refusal::Explain;

use walk::Bounds;

/// The most files of a folder; folders may be as many.
const MOST_FILES: usize = 20_000;
/// The most bytes of a folder, together.
const MOST_BYTES: u64 = 64 * 1024 * 1024;
/// The most folders in each other; a tree that is deeper is no fleet.
const DEPTH: usize = 32;
const FLEET: &str = "fleet.toml";

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
    #[error("there is no folder {0}")]
    NoFolder(String),
    #[error("{0} is a file, not a folder")]
    NotAFolder(String),
    #[error("there is no fleet.toml in {0}")]
    NoFleet(String),
    #[error("{path} is a link to {target}")]
    Link { path: String, target: String },
    #[error("{path} is {what}, not a file")]
    NotAFile { path: String, what: &'static str },
    #[error("the name {0} is not UTF-8 text")]
    NotText(String),
    #[error("the name {0} has a control character in it")]
    Control(String),
    #[error("the path {0} is longer than 4096 bytes")]
    LongPath(String),
    #[error("there are more than {MOST_FILES} files; the first beyond is {0}")]
    TooMany(String),
    #[error("there are more than {MOST_FILES} folders; the first beyond is {0}")]
    TooManyFolders(String),
    #[error("the files are more than {mib} MiB together; the one beyond is {0}", mib = MOST_BYTES >> 20)]
    TooLarge(String),
    #[error("{0} lies deeper than {DEPTH} folders")]
    TooDeep(String),
    #[error("{0} changed while the folder was read")]
    Changed(String),
    #[error("{path} cannot be read")]
    CannotRead { path: String, source: std::io::Error },
}

impl Explain for FolderError {
    fn code(&self) -> &'static str {
        match self {
            Self::NoFolder(_) | Self::NotAFolder(_) | Self::NoFleet(_) => "no_fleet",
            Self::Link { .. } => "folder_link",
            Self::NotAFile { .. } => "folder_special",
            Self::NotText(_) | Self::Control(_) | Self::LongPath(_) => "folder_name",
            Self::TooMany(_) | Self::TooManyFolders(_) | Self::TooLarge(_) | Self::TooDeep(_) => {
                "folder_too_large"
            }
            Self::Changed(_) => "folder_changed",
            Self::CannotRead { .. } => "folder_unreadable",
        }
    }

    fn meaning(&self) -> String {
        match self {
            Self::NoFolder(_) | Self::NotAFolder(_) | Self::NoFleet(_) => {
                "this is not a fleet folder; nothing was uploaded"
            }
            Self::Link { .. } => {
                "a fleet folder says everything itself: what a link reaches may lie outside it; nothing was uploaded"
            }
            Self::NotAFile { .. } => "only files and folders can be declared from; nothing was uploaded",
            Self::NotText(_) | Self::Control(_) | Self::LongPath(_) => {
                "a fleet must read the same on every machine and in every list; nothing was uploaded"
            }
            Self::TooMany(_) | Self::TooManyFolders(_) | Self::TooLarge(_) | Self::TooDeep(_) => {
                "this is more than a fleet folder may hold, so it is probably another folder; nothing was uploaded"
            }
            Self::Changed(_) => {
                "what would be declared never stood there at one time: somebody works in it; nothing was uploaded"
            }
            Self::CannotRead { .. } => "a folder is declared whole or not at all; nothing was uploaded",
        }
        .to_owned()
    }

    fn remedy(&self) -> String {
        match self {
            Self::NoFolder(_) | Self::NotAFolder(_) | Self::NoFleet(_) => {
                "name the folder with fleet.toml in it: `tenure declare DIR`".to_owned()
            }
            Self::Link { path, .. } => format!("put a copy of what it points to in place of {path}"),
            Self::NotAFile { path, .. } => format!("remove {path} from the folder"),
            Self::NotText(_) | Self::Control(_) | Self::LongPath(_) => "rename it".to_owned(),
            Self::TooMany(_) | Self::TooManyFolders(_) | Self::TooLarge(_) | Self::TooDeep(_) => {
                "name the folder with fleet.toml in it, and keep what is not declared from outside it"
                    .to_owned()
            }
            Self::Changed(_) => "wait until it is done, and run the command again".to_owned(),
            Self::CannotRead { path, .. } => format!("make {path} readable for you, and try again"),
        }
    }
}

/// Reads the folder whole.
pub(crate) fn gather(dir: &Path) -> Result<Gathered, FolderError> {
    let bounds = Bounds { files: MOST_FILES, folders: MOST_FILES, bytes: MOST_BYTES, depth: DEPTH };
    let mut contents = BTreeMap::new();
    let mut folder = Folder::default();
    for (path, bytes) in walk::files(dir, bounds)? {
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

#[cfg(test)]
mod tests;
