//! What a package should be.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::id::Malformed;

/// The name of a package: 2 to 100 characters of `A-Z a-z 0-9 + - . _`, beginning with a letter or digit. Never an
/// option, a pattern, a path or a version. Capitals are rpm's: dpkg and pacman have none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PackageName(Box<str>);

impl PackageName {
    /// Takes `text` if it can be a package's name.
    pub fn new(text: &str) -> Result<Self, Malformed> {
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        let rest = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-._".contains(&b));
        // A trailing `+` or `-` is an instruction to a package manager, unless the name itself ends so (g++, libstdc++).
        let sign = text.ends_with('-') || (text.ends_with('+') && !text.ends_with("++"));
        if first && rest && !sign && (2..=100).contains(&text.len()) {
            Ok(Self(text.into()))
        } else {
            Err(Malformed::new(
                "package name",
                text,
                "2 to 100 characters of A-Z, a-z, 0-9, `+`, `-`, `.` and `_`, beginning with a letter or a digit",
            ))
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for PackageName {
    type Error = Malformed;
    fn try_from(text: String) -> Result<Self, Malformed> {
        Self::new(&text)
    }
}

impl From<PackageName> for String {
    fn from(name: PackageName) -> Self {
        name.0.into()
    }
}

impl fmt::Display for PackageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A version as a package manager writes it: up to 100 characters of `A-Z a-z 0-9 . + - : ~ _ ^`, beginning with a
/// letter or digit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PackageVersion(Box<str>);

impl PackageVersion {
    /// The version.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PackageVersion {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        let rest = text.bytes().all(|b| b.is_ascii_alphanumeric() || b".+-:~_^".contains(&b));
        if first && rest && text.len() <= 100 {
            Ok(Self(text.into()))
        } else {
            Err(Malformed::new(
                "package version",
                text,
                "`present`, a version as in `1.22.1-9`, or a prefix as in `1.22.*`",
            ))
        }
    }
}

impl TryFrom<String> for PackageVersion {
    type Error = Malformed;
    fn try_from(text: String) -> Result<Self, Malformed> {
        text.parse()
    }
}

impl From<PackageVersion> for String {
    fn from(version: PackageVersion) -> Self {
        version.0.into()
    }
}

impl fmt::Display for PackageVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A package, and how it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageSpec {
    /// Its name.
    pub name: PackageName,
    /// How it should be.
    #[serde(rename = "version")]
    pub wanted: PackageWanted,
}

/// How a package should be: `present`, `absent`, an exact version, or a prefix that ends in `*`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum PackageWanted {
    /// Installed, at whatever version it is.
    Present,
    /// Installed at exactly this version.
    Exact(PackageVersion),
    /// Installed at a version that begins so.
    Prefix(PackageVersion),
    /// Not installed.
    Absent,
}

impl PackageWanted {
    /// Whether an installed version is one that is wanted.
    pub fn takes(&self, version: &str) -> bool {
        match self {
            Self::Present => true,
            Self::Exact(exact) => exact.as_str() == version,
            Self::Prefix(prefix) => version.starts_with(prefix.as_str()),
            Self::Absent => false,
        }
    }
}

impl FromStr for PackageWanted {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        match text {
            "present" => Ok(Self::Present),
            "absent" => Ok(Self::Absent),
            _ => match text.strip_suffix('*') {
                Some(prefix) => prefix.parse().map(Self::Prefix),
                None => text.parse().map(Self::Exact),
            },
        }
    }
}

impl TryFrom<String> for PackageWanted {
    type Error = Malformed;
    fn try_from(text: String) -> Result<Self, Malformed> {
        text.parse()
    }
}

impl From<PackageWanted> for String {
    fn from(wanted: PackageWanted) -> Self {
        wanted.to_string()
    }
}

impl fmt::Display for PackageWanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Present => f.write_str("present"),
            Self::Absent => f.write_str("absent"),
            Self::Exact(version) => version.fmt(f),
            Self::Prefix(version) => write!(f, "{version}*"),
        }
    }
}
