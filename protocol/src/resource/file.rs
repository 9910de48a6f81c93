//! What a file should be.

use serde::{Deserialize, Serialize};

use super::{Mode, Principal};
use crate::id::Digest;
use crate::path::DeclaredPath;

/// A regular file at a path, or that there is none. What it does not name (access list, capabilities, label, attributes)
/// is carried over from the file that was there; its times are those of the change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Form", into = "Form")]
pub struct FileSpec {
    /// Where.
    pub path: DeclaredPath,
    /// What it should be; none: it should be gone.
    pub present: Option<FilePresent>,
}

/// A file that should be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePresent {
    /// Its bytes, by digest.
    pub content: Content,
    /// Its permission bits.
    pub mode: Mode,
    /// Its owner.
    pub owner: Principal,
    /// Its group.
    pub group: Principal,
    /// Written once where it is missing; afterwards its content is the machine's business.
    pub create_once: bool,
    /// A symbolic link at the path is replaced by the file; what it leads to stays as it is. Else a link is refused.
    pub replace_link: bool,
    /// Its content stands in no diff, output or report. Implied by a mode that gives others nothing (S-19).
    pub sensitive: bool,
}

impl FilePresent {
    /// Whether its content must not be shown.
    pub const fn is_sensitive(&self) -> bool {
        self.sensitive || self.mode.is_closed_to_others()
    }
}

/// Bytes by their digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    /// SHA-256 of the bytes.
    pub sha256: Digest,
    /// How many they are.
    pub size: u64,
}

/// The spec as it is written: flat, without what was left out.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    path: DeclaredPath,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<Content>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<Mode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<Principal>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<Principal>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    create_once: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    replace_link: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    sensitive: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    absent: bool,
}

impl TryFrom<Form> for FileSpec {
    type Error = &'static str;
    fn try_from(form: Form) -> Result<Self, Self::Error> {
        let Form { path, content, mode, owner, group, create_once, replace_link, sensitive, absent } = form;
        let present = match (absent, content, mode, owner, group) {
            (true, None, None, None, None) if !create_once && !replace_link && !sensitive => None,
            (true, ..) => return Err("an absent file has a path and nothing else"),
            (false, Some(content), Some(mode), Some(owner), Some(group)) => {
                Some(FilePresent { content, mode, owner, group, create_once, replace_link, sensitive })
            }
            (false, ..) => return Err("a file that is present needs content, mode, owner and group"),
        };
        Ok(Self { path, present })
    }
}

impl From<FileSpec> for Form {
    fn from(spec: FileSpec) -> Self {
        let FileSpec { path, present } = spec;
        match present {
            None => Self {
                path,
                content: None,
                mode: None,
                owner: None,
                group: None,
                create_once: false,
                replace_link: false,
                sensitive: false,
                absent: true,
            },
            Some(FilePresent { content, mode, owner, group, create_once, replace_link, sensitive }) => Self {
                path,
                content: Some(content),
                mode: Some(mode),
                owner: Some(owner),
                group: Some(group),
                create_once,
                replace_link,
                sensitive,
                absent: false,
            },
        }
    }
}
