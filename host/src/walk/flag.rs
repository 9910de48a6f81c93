//! The flags by which somebody forbade changes, on a file or directory: immutable and append-only (O-02). They are
//! looked for before anything is written, because in an append-only directory a file can be made and not taken away
//! again. No flag is ever cleared.

use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, statx};

use super::Dir;

/// A flag that forbids a change, and the command that clears it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// Nothing of it changes.
    Immutable,
    /// It only grows.
    AppendOnly,
}

impl Dir {
    /// The flag on what lies at `name`.
    pub fn flag_on(&self, name: &str) -> Option<Flag> {
        self.flag_at(name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// The flag on the directory itself.
    pub fn flag(&self) -> Option<Flag> {
        self.flag_at("", AtFlags::EMPTY_PATH)
    }

    /// None also where the file system has no flags, or what is there went: then the change itself says so.
    fn flag_at(&self, name: &str, how: AtFlags) -> Option<Flag> {
        let seen = statx(self, name, how, StatxFlags::empty()).ok()?.stx_attributes;
        if seen.contains(StatxAttributes::IMMUTABLE) {
            Some(Flag::Immutable)
        } else {
            seen.contains(StatxAttributes::APPEND).then_some(Flag::AppendOnly)
        }
    }
}
