//! A fleet folder as it arrives: every file's bytes under a checked relative path, bounded in number and size.
//!
//! It reads no disk: the command line walks the folder and uploads it, and the catalogue actor puts it together.

use std::collections::BTreeMap;

use tenure_protocol::operator::Folder;
use tenure_protocol::refusal::{Explain, Refusal};
use tenure_protocol::text::shown;

/// The most files a folder may have.
pub const MOST_FILES: usize = 20_000;
/// The most bytes all its files may have together.
pub const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// A fleet folder. Its paths are relative, separated by `/`, in one spelling.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FolderFiles {
    files: BTreeMap<String, Vec<u8>>,
}

/// Why a set of files is not a fleet folder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum FolderError {
    #[error("the folder names the file `{0}`, which {1}")]
    Name(String, &'static str),
    #[error("the folder names the file `{0}` twice")]
    Twice(String),
    #[error("the folder has {0} files, at most {MOST_FILES}")]
    TooMany(usize),
    #[error("the folder has {0} bytes, at most {MOST_BYTES}")]
    TooLarge(u64),
}

impl FolderFiles {
    /// Takes `files` if every name is one that can lie below a folder, and they are not too many or too large.
    pub fn new(files: BTreeMap<String, Vec<u8>>) -> Result<Self, Refusal> {
        let sizes =
            files.iter().map(|(path, bytes)| (path.as_str(), u64::try_from(bytes.len()).unwrap_or(u64::MAX)));
        admit(files.len(), sizes).map_err(|error| error.refusal())?;
        Ok(Self { files })
    }

    /// The bytes of the file at `path`.
    pub fn get(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    /// The path as the folder holds it, and its bytes.
    pub(super) fn entry(&self, path: &str) -> Option<(&str, &[u8])> {
        self.files.get_key_value(path).map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
    }

    /// Every path, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }
}

/// Judges a listing by its names and stated sizes, before any of its contents is fetched.
pub fn check(listing: &Folder) -> Result<(), Refusal> {
    let sizes = listing.files.iter().map(|file| (file.path.as_str(), file.size));
    admit(listing.files.len(), sizes).map_err(|error| error.refusal())
}

fn admit<'a>(count: usize, files: impl Iterator<Item = (&'a str, u64)>) -> Result<(), FolderError> {
    if count > MOST_FILES {
        return Err(FolderError::TooMany(count));
    }
    let mut bytes = 0_u64;
    let mut names = std::collections::HashSet::with_capacity(count);
    for (path, size) in files {
        if let Some(why) = objection(path) {
            return Err(FolderError::Name(shown(path, 200), why));
        }
        if !names.insert(path) {
            return Err(FolderError::Twice(shown(path, 200)));
        }
        bytes = bytes.saturating_add(size);
    }
    if bytes > MOST_BYTES { Err(FolderError::TooLarge(bytes)) } else { Ok(()) }
}

/// Why `path` cannot name a file below the folder.
fn objection(path: &str) -> Option<&'static str> {
    if path.chars().any(char::is_control) {
        return Some("has a control character in its name");
    }
    if path.starts_with('/') {
        return Some("is an absolute path");
    }
    if path.len() > 4096 {
        return Some("has a longer name than a file system takes");
    }
    path.split('/').find_map(|name| match name {
        ".." => Some("leaves the folder through `..`"),
        "" | "." => Some("is spelled with an empty name or `.`"),
        _ => None,
    })
}

impl Explain for FolderError {
    fn code(&self) -> &'static str {
        match self {
            Self::Name(..) | Self::Twice(_) => "bad_file_name",
            Self::TooMany(_) | Self::TooLarge(_) => "folder_too_large",
        }
    }

    fn meaning(&self) -> String {
        match self {
            Self::Name(..) | Self::Twice(_) => {
                "a fleet folder holds files below itself, each under one name".to_owned()
            }
            Self::TooMany(_) | Self::TooLarge(_) => {
                "a fleet folder holds configuration; nothing of it was taken".to_owned()
            }
        }
    }

    fn remedy(&self) -> String {
        match self {
            Self::Name(..) | Self::Twice(_) => "rename or remove the file and declare again".to_owned(),
            Self::TooMany(_) | Self::TooLarge(_) => {
                "move what is not configuration (build results, archives, `.git`) out of the folder"
                    .to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests;
