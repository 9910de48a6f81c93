//! A path as a declaration names it: absolute, in one spelling, and not into places where a file is not a file.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::shown;

/// An absolute path in its one spelling: no `//`, `.`, `..` or trailing `/`; at most 4096 bytes, each name at most
/// 255; no control character; not the root itself, and not below `/proc`, `/sys` or `/dev`.
///
/// It says nothing of what lies there: links and mounts are judged where the path is walked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DeclaredPath(Box<str>);

/// Why a text is not a path that can be declared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It does not begin with `/`.
    #[error("path `{0}` is relative")]
    Relative(String),
    /// It has a `..` in it.
    #[error("path `{0}` goes through `..`")]
    Parent(String),
    /// It has a NUL, line break or other control character.
    #[error("path `{0}` has a control character in it")]
    Control(String),
    /// A name above 255 bytes, or a path above 4096.
    #[error("path `{0}` is longer than a file system takes (255 bytes a name, 4096 in all)")]
    Long(String),
    /// `/` itself.
    #[error("the root directory itself cannot be declared")]
    Root,
    /// Below `/proc`, `/sys` or `/dev`, which the kernel makes.
    #[error("path `{0}` lies in `{1}`, which the kernel makes")]
    Kernel(String, &'static str),
}

const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

impl DeclaredPath {
    /// Takes `text` if it can be declared, in its one spelling.
    pub fn new(text: &str) -> Result<Self, PathError> {
        let given = || shown(text, 200);
        if text.chars().any(char::is_control) {
            return Err(PathError::Control(given()));
        }
        if !text.starts_with('/') {
            return Err(PathError::Relative(given()));
        }
        let mut path = String::with_capacity(text.len());
        for name in text.split('/').filter(|name| !name.is_empty() && *name != ".") {
            if name == ".." {
                return Err(PathError::Parent(given()));
            }
            if name.len() > 255 {
                return Err(PathError::Long(given()));
            }
            path.push('/');
            path.push_str(name);
        }
        if path.is_empty() {
            return Err(PathError::Root);
        }
        if path.len() > 4095 {
            return Err(PathError::Long(given()));
        }
        let path = Self(path.into());
        match KERNEL.into_iter().find(|place| path.is_at_or_below(place)) {
            Some(place) => Err(PathError::Kernel(given(), place)),
            None => Ok(path),
        }
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its names, from the root down; never empty.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').skip(1)
    }

    /// The path of the directory it lies in; none when that is the root.
    pub fn parent(&self) -> Option<&str> {
        self.0.rsplit_once('/').map(|(parent, _)| parent).filter(|parent| !parent.is_empty())
    }

    /// Whether this is `place` or lies below it; `place` has no trailing `/`.
    pub fn is_at_or_below(&self, place: &str) -> bool {
        self.0.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl TryFrom<String> for DeclaredPath {
    type Error = PathError;
    fn try_from(text: String) -> Result<Self, PathError> {
        Self::new(&text)
    }
}

impl From<DeclaredPath> for String {
    fn from(path: DeclaredPath) -> Self {
        path.0.into()
    }
}

impl FromStr for DeclaredPath {
    type Err = PathError;
    fn from_str(text: &str) -> Result<Self, PathError> {
        Self::new(text)
    }
}

impl fmt::Display for DeclaredPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
