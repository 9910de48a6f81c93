//! Files of a machine, seen from outside. Every path is resolved inside the machine's root by the kernel, so that a link
//! such as /var/run → /run leads to the machine's own /run and never to the build machine's.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat, openat2, renameat};
use nix::sys::stat::{Mode, fchmod, mkdirat};

/// The root folder of one machine.
pub(super) struct Root {
    folder: File,
}

impl Root {
    pub(super) fn open(path: &Path) -> Self {
        Self { folder: File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())) }
    }

    pub(super) fn read(&self, path: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let opened = self
            .resolve(path, OFlag::O_RDONLY)
            .unwrap_or_else(|error| panic!("{path} in the machine: {error}"));
        File::from(opened)
            .read_to_end(&mut bytes)
            .unwrap_or_else(|error| panic!("{path} in the machine: {error}"));
        bytes
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.resolve(path, OFlag::O_PATH | OFlag::O_NOFOLLOW).is_ok()
    }

    /// Gives a file an extended attribute.
    pub(super) fn give(&self, path: &str, name: &str, value: &[u8]) {
        let file = self
            .resolve(path, OFlag::O_RDONLY)
            .unwrap_or_else(|error| panic!("{path} in the machine: {error}"));
        rustix::fs::fsetxattr(&file, name, value, rustix::fs::XattrFlags::empty())
            .unwrap_or_else(|error| panic!("{name} of {path} in the machine: {error}"));
    }

    /// An extended attribute of a file; none where it has none of that name.
    pub(super) fn attribute(&self, path: &str, name: &str) -> Option<Vec<u8>> {
        let file = self.resolve(path, OFlag::O_RDONLY).ok()?;
        let mut value = vec![0; 64 * 1024];
        let length = rustix::fs::fgetxattr(&file, name, value.as_mut_slice()).ok()?;
        value.truncate(length);
        Some(value)
    }

    /// Writes a new file, owned by root, and renames it into place: what is running or open keeps its own. Folders that
    /// are missing are made 0755.
    pub(super) fn write(&self, path: &str, bytes: &[u8], mode: u32) {
        let (parent, name) = path.rsplit_once('/').expect("a path from the machine's root");
        let parent = self.folder_of(parent);
        self.write_into(&parent, name, bytes, mode)
            .unwrap_or_else(|error| panic!("{path} in the machine: {error}"));
    }

    fn write_into(&self, parent: &OwnedFd, name: &str, bytes: &[u8], mode: u32) -> std::io::Result<()> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_TRUNC | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mut file = File::from(openat(parent, TEMPORARY, flags, Mode::S_IRUSR | Mode::S_IWUSR)?);
        file.write_all(bytes)?;
        fchmod(&file, Mode::from_bits_truncate(mode))?;
        Ok(renameat(parent, TEMPORARY, parent, name)?)
    }

    fn folder_of(&self, path: &str) -> OwnedFd {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY;
        match self.resolve(path, flags) {
            Ok(folder) => folder,
            Err(Errno::ENOENT) => {
                let (parent, name) = path.rsplit_once('/').expect("the root itself is there");
                let mode = Mode::S_IRWXU | Mode::S_IRGRP | Mode::S_IXGRP | Mode::S_IROTH | Mode::S_IXOTH;
                mkdirat(self.folder_of(parent), name, mode)
                    .unwrap_or_else(|error| panic!("{path} in the machine: {error}"));
                self.folder_of(path)
            }
            Err(error) => panic!("{path} in the machine: {error}"),
        }
    }

    fn resolve(&self, path: &str, flags: OFlag) -> nix::Result<OwnedFd> {
        let path = if path.is_empty() { "/" } else { path };
        let how = OpenHow::new()
            .flags(flags | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
        openat2(&self.folder, path, how)
    }
}

const TEMPORARY: &str = ".lab-is-writing";
