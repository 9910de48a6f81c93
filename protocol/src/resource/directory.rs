//! What a directory should be.

use serde::{Deserialize, Serialize};

use super::{Mode, Principal};
use crate::path::DeclaredPath;

/// A directory at a path, or that there is none. Never what else lies in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Form", into = "Form")]
pub struct DirectorySpec {
    /// Where.
    pub path: DeclaredPath,
    /// What it should be; none: it should be gone, which it can only be when it is empty.
    pub present: Option<DirectoryPresent>,
}

/// A directory that should be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryPresent {
    /// Its permission bits.
    pub mode: Mode,
    /// Its owner.
    pub owner: Principal,
    /// Its group.
    pub group: Principal,
}

/// The spec as it is written: flat, without what was left out.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    path: DeclaredPath,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<Mode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<Principal>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<Principal>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    absent: bool,
}

impl TryFrom<Form> for DirectorySpec {
    type Error = &'static str;
    fn try_from(form: Form) -> Result<Self, Self::Error> {
        let Form { path, mode, owner, group, absent } = form;
        let present = match (absent, mode, owner, group) {
            (true, None, None, None) => None,
            (true, ..) => return Err("an absent directory has a path and nothing else"),
            (false, Some(mode), Some(owner), Some(group)) => Some(DirectoryPresent { mode, owner, group }),
            (false, ..) => return Err("a directory that is present needs mode, owner and group"),
        };
        Ok(Self { path, present })
    }
}

impl From<DirectorySpec> for Form {
    fn from(spec: DirectorySpec) -> Self {
        let DirectorySpec { path, present } = spec;
        match present {
            None => Self { path, mode: None, owner: None, group: None, absent: true },
            Some(DirectoryPresent { mode, owner, group }) => {
                Self { path, mode: Some(mode), owner: Some(owner), group: Some(group), absent: false }
            }
        }
    }
}
