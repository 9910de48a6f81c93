//! One declared thing: its key, what it needs, and what it should be.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::id::{Malformed, ModuleName};
use crate::path::DeclaredPath;

mod directory;
mod file;
mod package;
mod unit;

pub use directory::{DirectoryPresent, DirectorySpec};
pub use file::{Content, FilePresent, FileSpec};
pub use package::{PackageName, PackageSpec, PackageVersion, PackageWanted};
pub use unit::{UnitName, UnitSpec};

/// Which kind of thing a resource is. The order breaks ties between resources that no edge orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceKind {
    /// A package of the machine's package manager: that it is installed, at which version, or that it is not.
    Package,
    /// A directory: that it is there, whose it is, its mode; never what else lies in it.
    Directory,
    /// A regular file: its content, owner and mode.
    File,
    /// A unit of the service manager: enabled, running; never its content, which is a file.
    Unit,
}

impl ResourceKind {
    /// Every kind this version performs.
    pub const ALL: [Self; 4] = [Self::Package, Self::Directory, Self::File, Self::Unit];

    /// The word for it in keys, tables and messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Package => "package",
            Self::Directory => "directory",
            Self::File => "file",
            Self::Unit => "unit",
        }
    }
}

impl fmt::Display for ResourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The stable name of a resource on its node: `file:/etc/app.conf`, `package:nginx-light`, `unit:nginx.service`. Two
/// spellings of one path are one key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ResourceKey {
    /// A package by name.
    Package(PackageName),
    /// A directory by path.
    Directory(DeclaredPath),
    /// A file by path.
    File(DeclaredPath),
    /// A unit by name.
    Unit(UnitName),
}

impl ResourceKey {
    /// Its kind.
    pub const fn kind(&self) -> ResourceKind {
        match self {
            Self::Package(_) => ResourceKind::Package,
            Self::Directory(_) => ResourceKind::Directory,
            Self::File(_) => ResourceKind::File,
            Self::Unit(_) => ResourceKind::Unit,
        }
    }

    /// Where it lies, if it is a thing with a path.
    pub const fn path(&self) -> Option<&DeclaredPath> {
        match self {
            Self::Directory(path) | Self::File(path) => Some(path),
            Self::Package(_) | Self::Unit(_) => None,
        }
    }

    /// The whole key as text, as it is displayed: made in one piece, since a pass makes many for each resource.
    pub fn text(&self) -> String {
        [self.kind().as_str(), ":", self.name()].concat()
    }

    /// Its name without its kind.
    pub fn name(&self) -> &str {
        match self {
            Self::Directory(path) | Self::File(path) => path.as_str(),
            Self::Package(name) => name.as_str(),
            Self::Unit(name) => name.as_str(),
        }
    }
}

impl Ord for ResourceKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.name().cmp(other.name()).then(self.kind().cmp(&other.kind()))
    }
}

impl PartialOrd for ResourceKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl FromStr for ResourceKey {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let malformed = |rule| Malformed::new("resource key", text, rule);
        let (kind, name) =
            text.split_once(':').ok_or_else(|| malformed("KIND:NAME, as in file:/etc/app.conf"))?;
        let path = || {
            DeclaredPath::new(name)
                .map_err(|_| malformed("its name must be an absolute path that can be declared"))
        };
        match ResourceKind::ALL.into_iter().find(|known| known.as_str() == kind) {
            Some(ResourceKind::Package) => PackageName::new(name).map(Self::Package),
            Some(ResourceKind::Directory) => path().map(Self::Directory),
            Some(ResourceKind::File) => path().map(Self::File),
            Some(ResourceKind::Unit) => UnitName::new(name).map(Self::Unit),
            None => Err(malformed("this version knows the kinds package, directory, file and unit")),
        }
    }
}

impl TryFrom<String> for ResourceKey {
    type Error = Malformed;
    fn try_from(text: String) -> Result<Self, Malformed> {
        text.parse()
    }
}

impl From<ResourceKey> for String {
    fn from(key: ResourceKey) -> Self {
        key.text()
    }
}

impl fmt::Display for ResourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind(), self.name())
    }
}

/// One declared thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Its stable name; agrees with `spec`.
    pub key: ResourceKey,
    /// The module that declares it.
    pub module: ModuleName,
    /// What must have succeeded in the same pass before this is touched. Only these edges block on failure.
    pub needs: Vec<ResourceKey>,
    /// What it should be.
    pub spec: Spec,
}

/// What a resource should be, by kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Spec {
    /// A package.
    Package(PackageSpec),
    /// A directory.
    Directory(DirectorySpec),
    /// A file.
    File(FileSpec),
    /// A unit.
    Unit(UnitSpec),
}

impl Spec {
    /// The key this spec has.
    pub fn key(&self) -> ResourceKey {
        match self {
            Self::Package(spec) => ResourceKey::Package(spec.name.clone()),
            Self::Directory(spec) => ResourceKey::Directory(spec.path.clone()),
            Self::File(spec) => ResourceKey::File(spec.path.clone()),
            Self::Unit(spec) => ResourceKey::Unit(spec.name.clone()),
        }
    }

    /// The content it needs, if any.
    pub const fn content(&self) -> Option<&Content> {
        match self {
            Self::File(FileSpec { present: Some(present), .. }) => Some(&present.content),
            Self::File(FileSpec { present: None, .. })
            | Self::Directory(_)
            | Self::Package(_)
            | Self::Unit(_) => None,
        }
    }

    /// Whether it declares that the thing should be gone.
    pub const fn is_absent(&self) -> bool {
        match self {
            Self::Package(spec) => matches!(spec.wanted, PackageWanted::Absent),
            Self::Directory(spec) => spec.present.is_none(),
            Self::File(spec) => spec.present.is_none(),
            Self::Unit(_) => false,
        }
    }

    /// What must come before it without standing in its way: a unit acts once what it restarts on has been done.
    pub fn follows(&self) -> impl Iterator<Item = &ResourceKey> {
        let (restart, reload): (&[ResourceKey], &[ResourceKey]) = match self {
            Self::Unit(spec) => (&spec.restart_on, &spec.reload_on),
            Self::Package(_) | Self::Directory(_) | Self::File(_) => (&[], &[]),
        };
        restart.iter().chain(reload)
    }
}

/// Permission bits, written in octal with a leading zero: `"0644"`. At most `07777`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Mode(u32);

impl Mode {
    /// Takes the bits if no other bit is set.
    pub fn from_bits(bits: u32) -> Option<Self> {
        (bits <= 0o7777).then_some(Self(bits))
    }

    /// The bits.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether others have no access at all, by which content counts as sensitive (S-19).
    pub const fn is_closed_to_others(self) -> bool {
        self.0 & 0o007 == 0
    }
}

impl FromStr for Mode {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let octal = (3..=5).contains(&text.len()) && text.bytes().all(|b| (b'0'..=b'7').contains(&b));
        u32::from_str_radix(text, 8).ok().filter(|_| octal).and_then(Self::from_bits).ok_or_else(|| {
            Malformed::new("mode", text, "three or four octal digits in quotes, as in \"0644\"")
        })
    }
}

impl TryFrom<String> for Mode {
    type Error = Malformed;
    fn try_from(text: String) -> Result<Self, Malformed> {
        text.parse()
    }
}

impl From<Mode> for String {
    fn from(mode: Mode) -> Self {
        mode.to_string()
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

/// An owner or a group: a name of the machine's own account files, or a number. Judged when the resource's turn
/// comes, since a package may create it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Principal {
    /// `www-data`
    Name(Box<str>),
    /// `33`
    Number(u32),
}

impl FromStr for Principal {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let malformed = || {
            Malformed::new(
                "owner or group",
                text,
                "a name of at most 32 characters of a-z, A-Z, 0-9, `-`, `_` and `.`, or a number",
            )
        };
        if text.bytes().all(|b| b.is_ascii_digit()) {
            // The highest number means "leave it as it is" to the kernel, and is nobody's.
            return text.parse().ok().filter(|n| *n != u32::MAX).map(Self::Number).ok_or_else(malformed);
        }
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        let rest = text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        if first && rest && text.len() <= 32 { Ok(Self::Name(text.into())) } else { Err(malformed()) }
    }
}

impl TryFrom<String> for Principal {
    type Error = Malformed;
    fn try_from(text: String) -> Result<Self, Malformed> {
        text.parse()
    }
}

impl From<Principal> for String {
    fn from(principal: Principal) -> Self {
        principal.to_string()
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Number(number) => number.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests;
