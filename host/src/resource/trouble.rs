//! What stands in the way of a resource: refused by rule, failed, or not even looked at. Each has a stable code and a
//! sentence that names the place.

use std::io;

use nix::errno::Errno;
use tenure_protocol::path::DeclaredPath;
use tenure_protocol::refusal::chain;
use tenure_protocol::resource::{Principal, ResourceKey};

use super::ContentsError;
use crate::walk::carry::MOST_IN_ALL;
use crate::walk::change::{ChangeError, Owner};
use crate::walk::flag::Flag;
use crate::walk::read::Stat;
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

/// Two declared paths reach one place.
pub(crate) const SAME_PLACE: &str = "same_place";

impl Trouble {
    pub(crate) fn refused(code: &'static str, reason: impl Into<String>) -> Self {
        Self { stands: Stands::Refused, code, reason: reason.into() }
    }

    pub(crate) fn failed(code: &'static str, reason: impl Into<String>) -> Self {
        Self { stands: Stands::Failed, code, reason: reason.into() }
    }

    pub(crate) fn outstanding(code: &'static str, reason: impl Into<String>) -> Self {
        Self { stands: Stands::Outstanding, code, reason: reason.into() }
    }

    pub(crate) fn cancelled() -> Self {
        Self::outstanding("cancelled", "the pass was ended before its turn came")
    }

    pub(crate) fn unknown(code: &'static str, reason: impl Into<String>) -> Self {
        Self { stands: Stands::Unknown, code, reason: reason.into() }
    }

    /// Whoever looks was told to stop before its turn.
    pub(crate) fn called_off() -> Self {
        let reason = "looking at this machine took too long and was ended before the turn of this one; plan again, or \
            run `tenure-host plan` there, which takes its time";
        Self::unknown("not_looked_at", reason)
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
        Self::refused(SAME_PLACE, reason)
    }

    pub(crate) fn mount_point(of: String) -> Self {
        Self::refused("mount_point", format!("this path is a mount point of {of}; unmount it first"))
    }

    /// `or`: what to do where the link itself is not meant.
    pub(super) fn link(to: &str, or: &str) -> Self {
        Self::refused("path_is_link", format!("path is a link to {to}; declare that path, or {or}"))
    }

    /// `place`: what the flag is on.
    pub(super) fn flag(flag: Flag, place: &str) -> Self {
        match flag {
            Flag::Immutable => Self::failed(
                "immutable_flag",
                format!("the immutable flag is set on {place}; nothing was tried; `chattr -i` clears it"),
            ),
            Flag::AppendOnly => Self::failed(
                "append_only_flag",
                format!("the append-only flag is set on {place}; nothing was tried; `chattr -a` clears it"),
            ),
        }
    }

    /// Its content is nobody's declaration, and it lies where somebody could have moved it.
    /// `who`: why not root alone could.
    pub(super) fn not_given_away(
        path: &DeclaredPath,
        seen: &Stat,
        who: &str,
        ((user, group), to): (Owner, u32),
    ) -> Self {
        let Stat { mode, uid, gid, .. } = seen;
        let reason = format!(
            "{path} ({uid}:{gid}, mode {mode:04o}) may have been moved there: {who}; if it is meant, run \
             `chown -h {user}:{group} {path}` and `chmod {to:04o} {path}`"
        );
        Self::refused("not_given_away", reason)
    }

    pub(super) fn cannot_carry(path: &DeclaredPath, name: &str, why: &str) -> Self {
        Self::refused(
            "cannot_carry",
            format!(
                "the file at {path} has {name}, which is not carried over to a new one: {why}; it stays as it is; to \
                 have it replaced without, run `setfattr -x {name} {path}`"
            ),
        )
    }

    /// More than one file may have: nobody's program keeps so much there.
    pub(super) fn too_many_attributes(path: &DeclaredPath) -> Self {
        let most = MOST_IN_ALL / 1024;
        Self::refused(
            "cannot_carry",
            format!(
                "{path} has more than {most} KiB of attributes, too much to carry over; it stays as it is; `getfattr -d -m - {path}` \
                 shows them, `setfattr -x NAME {path}` removes one"
            ),
        )
    }

    /// One that could be copied byte for byte and would mean nobody knows what.
    pub(super) fn of_the_file_system(path: &DeclaredPath, name: &str) -> Self {
        Self::refused(
            "cannot_carry",
            format!(
                "the file at {path} has {name}, the file system's own kind of access list, which is not carried over to a new \
                 one; it stays as it is; to have it written anew without, run `rm {path}`"
            ),
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
        ChangeError::MountPoint { of } => Trouble::mount_point(of),
        ChangeError::NotEmpty => {
            let entries = counted(dir.names(name, MOST_COUNTED + 1).map_or(0, |names| names.len()));
            Trouble::refused("not_empty", format!("left: holds {entries} entries not ours"))
        }
        ChangeError::Appeared | ChangeError::Meanwhile => Trouble::failed(
            "changed_meanwhile",
            format!("{path}: {error}; it was left, and is looked at again"),
        ),
        ChangeError::CannotCarry { source, .. } if is_of_the_disk(&source) => {
            writing(path, "written", &source)
        }
        ChangeError::CannotCarry { name, source } => {
            Trouble::cannot_carry(path, &name, &format!("the system does not take it ({source})"))
        }
        ChangeError::NotKept { shows } => not_kept(path, dir, &shows),
        ChangeError::Io { act, source } => {
            let trouble = writing(path, act, &source);
            match dir.file_system().filter(|kind| trouble.code == "not_permitted" && is_elsewhere(kind)) {
                Some(kind) => {
                    Trouble { reason: format!("{}; {}", trouble.reason, decided(&kind)), ..trouble }
                }
                None => trouble,
            }
        }
    }
}

/// Whether it is the disk that takes nothing more, and not the attribute that is not taken.
fn is_of_the_disk(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(errno, Some(Errno::ENOSPC | Errno::EDQUOT | Errno::EROFS | Errno::EIO))
}

/// Whoever serves the file system says who may do what there.
fn is_elsewhere(kind: &str) -> bool {
    ["nfs", "cifs", "smb", "fuse", "9p", "ceph"].iter().any(|remote| kind.starts_with(remote))
}

fn decided(kind: &str) -> String {
    format!("it lies on {kind}, and whoever serves that decides: root of this machine may be nobody there")
}

/// A file system with owners and modes of its own (O-21).
fn not_kept(path: &DeclaredPath, dir: &Dir, shows: &Stat) -> Trouble {
    let kind = dir.file_system().unwrap_or_else(|| "this kind".to_owned());
    let Stat { mode, uid, gid, .. } = shows;
    Trouble::failed(
        "standing_not_kept",
        format!(
            "the file system ({kind}) of {path} shows what is written there as mode {mode:04o} of {uid}:{gid}, whatever \
             is set; nothing was replaced; declare it so, or mount it otherwise"
        ),
    )
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
        Some(Errno::ENOSPC) => Trouble::failed(
            "no_space",
            format!("no space on the file system of {path}; what was there stays as it was"),
        ),
        Some(Errno::EDQUOT) => Trouble::failed(
            "over_quota",
            format!(
                "the quota of its owner is used up on the file system of {path}; what was there stays as it was"
            ),
        ),
        Some(Errno::EFBIG) => Trouble::failed(
            "file_too_large",
            format!("the file system of {path} takes no file as large as this one; what was there stays"),
        ),
        Some(Errno::EROFS) => Trouble::failed("read_only", format!("the file system of {path} is read-only")),
        Some(Errno::EPERM | Errno::EACCES) => Trouble::failed(
            "not_permitted",
            format!("{path} could not be {act}: the system does not permit it ({error})"),
        ),
        Some(_) | None => Trouble::failed("io_error", format!("{path} could not be {act}: {error}")),
    }
}

/// Copying content to the path. Its digest is not told: whoever reads it could try what a secret is (S-19).
pub(super) fn copying(path: &DeclaredPath, error: ContentsError) -> Trouble {
    match error {
        ContentsError::Missing(_) => {
            Trouble::failed("content_missing", format!("the content of {path} is not in the host's store"))
        }
        ContentsError::Unreadable { why, .. } => Trouble::failed(
            "content_unreadable",
            format!("the content of {path} cannot be read from the host's store: {why}"),
        ),
        ContentsError::Exchanged => Trouble::failed(
            "changed_meanwhile",
            format!("{path}: {error}; it was left, and is looked at again"),
        ),
        ContentsError::Taking(error) => writing(path, "written", &error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_somebody_else_serves_the_file_system_he_may_be_the_one_who_does_not_permit_it() {
        assert!(["nfs4", "nfs", "cifs", "fuse.sshfs", "9p"].into_iter().all(is_elsewhere));
        assert!(!["ext4", "xfs", "btrfs", "tmpfs", "vfat"].into_iter().any(is_elsewhere));
        assert!(decided("nfs4").starts_with("it lies on nfs4, and whoever serves that decides"));
    }

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
            (Errno::EDQUOT, "over_quota"),
            (Errno::EFBIG, "file_too_large"),
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
