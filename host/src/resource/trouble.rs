//! What stands in the way of a resource: refused by rule, failed, or not even looked at. Each has a stable code and a
//! sentence that names the place.

use std::io;

use nix::errno::Errno;
use tenure_protocol::path::DeclaredPath;
use tenure_protocol::refusal::chain;
use tenure_protocol::resource::{Principal, ResourceKey};

use super::ContentsError;
use crate::walk::change::ChangeError;
use crate::walk::{Dir, WalkError};

/// What a trouble makes of the resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stands {
    /// It will not be done as declared, by rule.
    Refused,
    /// It was tried, or would be, and does not come to be.
    Failed,
    /// It waits for something that is not its own fault.
    Outstanding,
    /// Nobody could look.
    Unknown,
}

/// Why a resource is not as declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What it makes of the resource.
    pub stands: Stands,
    /// Its stable name.
    pub code: &'static str,
    /// In words.
    pub reason: String,
}

impl Trouble {
    pub(crate) fn refused(code: &'static str, reason: impl Into<String>) -> Self {
        Self { stands: Stands::Refused, code, reason: reason.into() }
    }

    pub(crate) fn failed(code: &'static str, reason: impl Into<String>) -> Self {
        Self { stands: Stands::Failed, code, reason: reason.into() }
    }

    pub(super) fn outstanding(code: &'static str, reason: impl Into<String>) -> Self {
        Self { stands: Stands::Outstanding, code, reason: reason.into() }
    }

    pub(crate) fn unknown(code: &'static str, reason: impl Into<String>) -> Self {
        Self { stands: Stands::Unknown, code, reason: reason.into() }
    }

    /// Whether it says that what lay at the place was left as it was found.
    pub(crate) fn left_untouched(&self) -> bool {
        self.stands == Stands::Refused || self.code == "changed_meanwhile"
    }

    pub(super) fn own_file(path: &DeclaredPath) -> Self {
        Self::refused("own_file", format!("{path} reaches files of the host itself, which it never manages"))
    }

    pub(super) fn exchanged(path: &DeclaredPath) -> Self {
        Self::unknown("could_not_look", format!("{path} was exchanged while it was looked at"))
    }

    /// Another declared path leads to the same place.
    pub(crate) fn same_place(other: &ResourceKey) -> Self {
        let reason = format!(
            "it reaches the same place as {other}, which is declared before it; declare one of the two"
        );
        Self::refused("same_place", reason)
    }

    pub(super) fn link(to: &str) -> Self {
        Self::refused(
            "path_is_link",
            format!("path is a link to {to}; declare that path, or remove the link"),
        )
    }

    pub(super) fn unread_accounts(file: &str) -> Self {
        Self::unknown(
            "could_not_look",
            format!("{file} of this machine cannot be read, so nobody knows who is in it"),
        )
    }

    pub(super) fn unknown_owner(what: &str, name: &Principal, list: &str) -> Self {
        Self::failed("unknown_owner", format!("the {what} {name} is not in /etc/{list} of this machine"))
    }
}

/// The way to the path.
pub(super) fn walking(error: WalkError) -> Trouble {
    let reason = chain(&error);
    match error {
        WalkError::Missing { .. } => {
            Trouble::failed("parent_missing", format!("{reason}; declare it as a directory"))
        }
        WalkError::NotADirectory { .. } => Trouble::refused("parent_not_a_directory", reason),
        WalkError::Link { .. } => Trouble::refused("link_not_followed", reason),
        WalkError::TooManyLinks { .. } => Trouble::refused("too_many_links", reason),
        WalkError::Io { .. } => Trouble::unknown("could_not_look", reason),
    }
}

/// Looking at the path.
pub(super) fn looking(path: &DeclaredPath, error: io::Error) -> Trouble {
    Trouble::unknown("could_not_look", format!("{path} cannot be looked at: {error}"))
}

/// Changing what is there.
pub(super) fn changing(path: &DeclaredPath, dir: &Dir, name: &str, error: ChangeError) -> Trouble {
    match error {
        ChangeError::MountPoint { of } => {
            Trouble::refused("mount_point", format!("this path is a mount point of {of}; unmount it first"))
        }
        ChangeError::NotEmpty => {
            let entries = counted(dir.names(name, MOST_COUNTED + 1).map_or(0, |names| names.len()));
            Trouble::refused("not_empty", format!("left: holds {entries} entries not ours"))
        }
        ChangeError::Appeared | ChangeError::Meanwhile => Trouble::failed(
            "changed_meanwhile",
            format!("{path}: {error}; it was left, and is looked at again"),
        ),
        ChangeError::Io { act, source } => writing(path, act, &source),
    }
}

/// Entries beyond this are not counted: somebody may have made millions.
pub(crate) const MOST_COUNTED: usize = 10_000;

/// A count in words.
pub(crate) fn counted(entries: usize) -> String {
    if entries > MOST_COUNTED { format!("more than {MOST_COUNTED}") } else { entries.to_string() }
}

/// The system's own refusals, by name.
pub(super) fn writing(path: &DeclaredPath, act: &str, error: &io::Error) -> Trouble {
    let errno = error.raw_os_error().map(Errno::from_raw);
    match errno {
        Some(Errno::ENOSPC | Errno::EDQUOT) => Trouble::failed(
            "no_space",
            format!("no space on the file system of {path}; what was there stays as it was"),
        ),
        Some(Errno::EROFS) => Trouble::failed("read_only", format!("the file system of {path} is read-only")),
        Some(Errno::EPERM | Errno::EACCES) => Trouble::failed(
            "not_permitted",
            format!("{path} could not be {act}: the system does not permit it ({error})"),
        ),
        Some(_) | None => Trouble::failed("io_error", format!("{path} could not be {act}: {error}")),
    }
}

/// Copying content to the path.
pub(super) fn copying(path: &DeclaredPath, error: ContentsError) -> Trouble {
    match error {
        ContentsError::Missing(_) => Trouble::failed("content_missing", chain(&error)),
        ContentsError::Unreadable { .. } => Trouble::failed("content_unreadable", chain(&error)),
        ContentsError::Taking(error) => writing(path, "written", &error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // case: O-70
    #[test]
    fn the_way_to_a_path_and_what_the_system_says_each_have_their_own_code() {
        let at = || "/srv/a".to_owned();
        for (error, code) in [
            (WalkError::Missing { at: at() }, "parent_missing"),
            (WalkError::NotADirectory { at: at() }, "parent_not_a_directory"),
            (WalkError::Link { at: at(), to: "/etc".to_owned() }, "link_not_followed"),
            (WalkError::TooManyLinks { at: at() }, "too_many_links"),
            (WalkError::Io { at: at(), source: Errno::EIO }, "could_not_look"),
        ] {
            let trouble = walking(error);
            assert_eq!(trouble.code, code);
            assert!(trouble.reason.contains("/srv/a"), "{trouble:?}");
        }
        let path = DeclaredPath::new("/srv/a").unwrap();
        for (errno, code) in [
            (Errno::ENOSPC, "no_space"),
            (Errno::EDQUOT, "no_space"),
            (Errno::EROFS, "read_only"),
            (Errno::EPERM, "not_permitted"),
            (Errno::EIO, "io_error"),
        ] {
            assert_eq!(writing(&path, "written", &errno.into()).code, code);
        }
        let sha256 = tenure_protocol::id::Digest::of(b"x");
        let unreadable = ContentsError::Unreadable { sha256, why: "bad sector".to_owned() };
        assert_eq!(copying(&path, unreadable).code, "content_unreadable");
        assert_eq!(copying(&path, ContentsError::Missing(sha256)).code, "content_missing");
    }
}
