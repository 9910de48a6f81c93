//! What a file has besides content, owner and mode, and no declaration names: access list, capabilities, security
//! label, attributes of programs. A file that is put in the place of another gets what that one had (O-03); one that is
//! put where nothing was gets no access list, also not the one its directory would hand down: it is as open as its
//! declared mode says, and no further. Times and inode flags are not among it: a new file is new.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;

use rustix::fs::{XattrFlags, fgetxattr, flistxattr, flistxattr_query, fremovexattr, fsetxattr};
use rustix::io::Errno;

use super::change::ChangeError;

/// The attributes of one file, as they were read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attributes(Vec<Attribute>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Attribute {
    name: CString,
    value: Vec<u8>,
}

/// The access list of POSIX, and the one that a directory hands down.
const ACCESS: &CStr = c"system.posix_acl_access";
const HANDED_DOWN: &CStr = c"system.posix_acl_default";
const CAPABILITY: &CStr = c"security.capability";
/// A digest or signature of the content.
const SIGNED: &CStr = c"security.ima";
/// The kernel's own seal over the others: it is made anew whenever one of them is set.
const SEAL: &CStr = c"security.evm";

const DERIVED: [&[u8]; 2] = [b"trusted.SGI_ACL_", b"trusted.overlay."];

/// The kernel's own bounds, of a list of names and of one value.
const MOST: usize = 64 * 1024;
/// Of all values of a file. Those of programs are short; whoever owns the file could make many.
pub const MOST_IN_ALL: usize = 1 << 20;

impl Attributes {
    /// Reads what `file` has; nothing on a file system that knows no attributes.
    pub fn read(file: &File) -> io::Result<Self> {
        match flistxattr_query(file) {
            Ok(0) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(Self::default()),
            Ok(_) => {}
            Err(errno) => return Err(errno.into()),
        }
        let mut page = vec![0; MOST];
        let length = flistxattr(file, page.as_mut_slice())?;
        let names: Vec<CString> = page
            .get(..length)
            .unwrap_or_default()
            .split_inclusive(|byte| *byte == 0)
            .filter_map(|name| CStr::from_bytes_with_nul(name).ok().map(CStr::to_owned))
            .filter(|name| !is_derived(name))
            .collect();
        let (mut read, mut attributes) = (0_usize, Vec::with_capacity(names.len()));
        for name in names {
            let value = match fgetxattr(file, &name, page.as_mut_slice()) {
                Ok(length) => page.get(..length).unwrap_or_default().to_vec(),
                // It went, or is listed and never told: then there is nothing to carry.
                Err(Errno::NODATA | Errno::OPNOTSUPP) => continue,
                Err(errno) => return Err(errno.into()),
            };
            read = read.saturating_add(value.len());
            if read > MOST_IN_ALL {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            attributes.push(Attribute { name, value });
        }
        attributes.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self(attributes))
    }

    /// Whether there is nothing to carry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their names, as an operator would type them.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(|attribute| typed(&attribute.name)).collect()
    }

    /// Whether the file may do what its user may not.
    pub fn has_capability(&self) -> bool {
        self.value(CAPABILITY).is_some()
    }

    /// The name of one that belongs to the very content, and would be wrong with another.
    pub fn of_the_content(&self) -> Option<String> {
        self.value(SIGNED).map(|_| SIGNED.to_string_lossy().into_owned())
    }

    /// The name of one in a form of the file system's own: nobody could say whom it lets in once it is copied.
    pub fn of_the_file_system(&self) -> Option<String> {
        let known = |name: &CStr| name == ACCESS || name == HANDED_DOWN;
        let mut names = self.0.iter().map(|attribute| attribute.name.as_c_str());
        names.find(|name| name.to_bytes().starts_with(b"system.") && !known(name)).map(typed)
    }

    /// The name of one by which somebody has more than the mode says.
    pub fn giving(&self) -> Option<String> {
        let gives = [ACCESS, CAPABILITY].into_iter().find(|name| self.value(name).is_some());
        gives.map(|name| name.to_string_lossy().into_owned())
    }

    fn value(&self, name: &CStr) -> Option<&[u8]> {
        self.0.iter().find(|attribute| attribute.name.as_c_str() == name).map(|found| found.value.as_slice())
    }

    /// Gives all of them to `file`, which will have the mode `mode`, and reads them back. An access list that the
    /// directory handed down to it and that is not among them goes. Returns the names of those it had not got by itself.
    pub(super) fn put(&self, file: &File, mode: u32) -> Result<Vec<String>, ChangeError> {
        let cannot = |name: &CStr, source: io::Error| ChangeError::CannotCarry { name: typed(name), source };
        let read = || Self::read(file).map_err(|source| ChangeError::Io { act: "looked at", source });
        let there = read()?;
        if self.value(ACCESS).is_none() && there.value(ACCESS).is_some() {
            fremovexattr(file, ACCESS).map_err(|errno| cannot(ACCESS, errno.into()))?;
        }
        let mut given = Vec::new();
        if self.0.is_empty() {
            return Ok(given);
        }
        let wanted = |attribute: &Attribute| match attribute.name.as_c_str() {
            name if name == ACCESS => bounded(&attribute.value, mode),
            _ => attribute.value.clone(),
        };
        for attribute in &self.0 {
            let (name, value) = (attribute.name.as_c_str(), wanted(attribute));
            if there.value(name) != Some(&value) {
                fsetxattr(file, name, &value, XattrFlags::empty())
                    .map_err(|errno| cannot(name, errno.into()))?;
                given.push(typed(name));
            }
        }
        let now = read()?;
        let lost = self.0.iter().find(|one| now.value(&one.name) != Some(&wanted(one)));
        lost.map_or(Ok(given), |one| Err(cannot(&one.name, io::Error::other("it was set, and is not there"))))
    }
}

/// What the kernel makes by itself: its seal, the copies that XFS keeps of access lists, and what an overlay notes of
/// how its layers lie, which is true of no other file.
fn is_derived(name: &CStr) -> bool {
    name == SEAL || DERIVED.iter().any(|prefix| name.to_bytes().starts_with(prefix))
}

/// A name as it may stand in a command that somebody types: whoever owns a file chooses what its attributes are called.
fn typed(name: &CStr) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    name.to_string_lossy().chars().take(100).map(|c| if plain(c) { c } else { '?' }).collect()
}

/// Takes from a new directory what the one around it handed down.
pub(super) fn strip(directory: &File) -> io::Result<()> {
    let there = Attributes::read(directory)?;
    for name in [ACCESS, HANDED_DOWN] {
        if there.value(name).is_some() {
            fremovexattr(directory, name)?;
        }
    }
    Ok(())
}

/// Sets the access list of `file`, if it has one, to what it is with `mode`. A change of mode alone would move the bound
/// of it, and entries that gave nothing would give something again.
pub(super) fn bound(file: &File, mode: u32) -> io::Result<()> {
    match access_list(file)? {
        Some(list) => Ok(fsetxattr(file, ACCESS, &bounded(&list, mode), XattrFlags::empty())?),
        None => Ok(()),
    }
}

/// The name of the access list, where `file` has one.
pub fn has_access_list(file: &File) -> io::Result<Option<String>> {
    Ok(access_list(file)?.map(|_| typed(ACCESS)))
}

fn access_list(file: &File) -> io::Result<Option<Vec<u8>>> {
    let mut none = [0_u8; 0];
    let mut list = match fgetxattr(file, ACCESS, none.as_mut_slice()) {
        Ok(_) => vec![0; MOST],
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    match fgetxattr(file, ACCESS, list.as_mut_slice()) {
        Ok(length) => {
            list.truncate(length);
            Ok(Some(list))
        }
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// An access list as it is once the mode is set: the group's bits bound all it gives, and are what the file's own group
/// has. Whom it names gets no more than the bound before let him have. Set so at once, nobody has more for a moment,
/// beside the place, than he has in the end. Four bytes of version, then eight an entry: what it is for, what it gives,
/// to whom.
fn bounded(list: &[u8], mode: u32) -> Vec<u8> {
    const VERSION: [u8; 4] = [2, 0, 0, 0];
    const OWNER: u16 = 0x01;
    const NAMED_USER: u16 = 0x02;
    const GROUP: u16 = 0x04;
    const NAMED_GROUP: u16 = 0x08;
    const MASK: u16 = 0x10;
    const OTHER: u16 = 0x20;
    let Some(entries) = list.strip_prefix(&VERSION) else { return list.to_vec() };
    let tag = |entry: &[u8]| entry.first_chunk().map(|tag| u16::from_le_bytes(*tag));
    let bits = |shift: u32| u8::try_from((mode >> shift) & 0o7).unwrap_or(0);
    let mask = entries.chunks(8).find(|entry| tag(entry) == Some(MASK));
    let before = mask.and_then(|entry| entry.get(2)).copied().unwrap_or(0);
    let grows = bits(3) & !before != 0;
    let mut bounded = VERSION.to_vec();
    for entry in entries.chunks(8) {
        let mut entry = entry.to_vec();
        let tag = tag(&entry);
        if let Some(gives) = entry.get_mut(2) {
            *gives = match tag {
                Some(OWNER) => bits(6),
                Some(GROUP | MASK) => bits(3),
                Some(OTHER) => bits(0),
                Some(NAMED_USER | NAMED_GROUP) if grows => *gives & before,
                Some(_) | None => *gives,
            };
        }
        bounded.extend(entry);
    }
    bounded
}

#[cfg(test)]
mod tests;
