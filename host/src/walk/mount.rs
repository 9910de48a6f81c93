//! Whether something else is mounted at a name. A bind mount has its parent's device number, so the kernel's own mount
//! numbers are compared where `/proc` tells them; where it does not, the rename itself says *busy*.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::fcntl::openat;
use nix::sys::stat::Mode;
use tenure_protocol::text::shown;

use super::{Dir, THROUGH};

/// What is mounted at `name` in `dir`, if anything is.
pub(super) fn at(dir: &Dir, name: &str) -> Option<String> {
    let fd = openat(&dir.fd, name, THROUGH, Mode::empty()).ok()?;
    let here = number(fd.as_fd());
    let around = *dir.mount.get_or_init(|| number(dir.as_fd()));
    match (here, around) {
        (Some(here), Some(around)) if here != around => Some(source(here)),
        _ => None,
    }
}

impl Dir {
    /// What is mounted at `name`, if anything is.
    pub fn mounted(&self, name: &str) -> Option<String> {
        at(self, name)
    }
}

fn number(fd: BorrowedFd<'_>) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd())).ok()?;
    text.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().parse().ok()
}

/// What the mount shows, by the kernel's list: its place on its device for a bind mount, else the device.
fn source(number: u64) -> String {
    let Some(line) = line(number) else { return "another file system".to_owned() };
    let place = line.split(' ').nth(3).filter(|place| *place != "/");
    let device = line.split(" - ").nth(1).and_then(|rest| rest.split(' ').nth(1));
    shown(place.or(device).unwrap_or("another file system"), 200)
}

/// What kind of file system something open lies on, where the kernel's list says it.
pub(super) fn file_system(fd: BorrowedFd<'_>) -> Option<String> {
    let line = line(number(fd)?)?;
    Some(shown(line.split(" - ").nth(1)?.split(' ').next()?, 40))
}

/// What the kernel's list says of a mount.
fn line(number: u64) -> Option<String> {
    let list = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let number = number.to_string();
    list.lines().find(|line| line.split(' ').next() == Some(&number)).map(str::to_owned)
}
