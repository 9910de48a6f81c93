//! The floors: programs that do only what nobody could leave out. They decide nothing and record nothing.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::sys::stat::{FileStat, Mode, fstat, fstatat};
use nix::unistd::syncfs;

/// One file: in which directory (by position), its name, what is wanted of it.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) directory: usize,
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

/// Files below some directories, in their order.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) wanted: Vec<Wanted>,
}

/// What is remembered of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Remembered((u64, i64, u32), (i64, i64), (i64, i64));

impl Remembered {
    fn of(stat: &FileStat) -> Self {
        Self(
            (stat.st_ino, stat.st_size, stat.st_mode),
            (stat.st_mtime, stat.st_mtime_nsec),
            (stat.st_ctime, stat.st_ctime_nsec),
        )
    }
}

/// So many writes with their sync at the same time.
const IN_FLIGHT: usize = 16;

impl Files {
    fn open(&self) -> Vec<std::os::fd::OwnedFd> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let each = |path: &PathBuf| open(path, flags, Mode::empty()).expect("a directory of the benchmark");
        self.directories.iter().map(each).collect()
    }

    fn stats(&self) -> impl Iterator<Item = Remembered> {
        let directories = self.open();
        self.wanted.iter().map(move |file| {
            let at = &directories[file.directory];
            Remembered::of(&fstatat(at, &*file.name, AtFlags::AT_SYMLINK_NOFOLLOW).expect("it is there"))
        })
    }

    /// What `floor_stat` compares with.
    pub(crate) fn remember(&self) -> Vec<Remembered> {
        self.stats().collect()
    }

    /// `floor_stat`: asks of each file what the kernel knows of it, and compares with what is remembered.
    pub(crate) fn stat(&self, remembered: &[Remembered]) -> usize {
        self.stats().zip(remembered).filter(|(now, then)| now != *then).count()
    }

    /// `floor_read`: opens each file, asks its size, reads it, and compares with the wanted bytes.
    pub(crate) fn read(&self) -> usize {
        let directories = self.open();
        let mut page = vec![0; 64 * 1024];
        let differs = |file: &&Wanted| {
            let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            let at = &directories[file.directory];
            let mut opened = File::from(openat(at, &*file.name, flags, Mode::empty()).expect("it is there"));
            let size = fstat(&opened).expect("it can be asked").st_size;
            let read = opened.read(&mut page).expect("it can be read");
            usize::try_from(size) != Ok(file.bytes.len()) || page[..read] != file.bytes
        };
        self.wanted.iter().filter(differs).count()
    }

    /// `floor_write`: a temporary and a rename for each file, 16 in flight, each synced.
    pub(crate) fn write_each(&self) {
        std::thread::scope(|scope| {
            for first in 0..IN_FLIGHT {
                scope.spawn(move || {
                    for file in self.wanted.iter().skip(first).step_by(IN_FLIGHT) {
                        let (temporary, path) = self.paths(file);
                        let mut fresh = File::create(&temporary).expect("it can be made");
                        fresh.write_all(&file.bytes).expect("it can be written");
                        fresh.sync_all().expect("it can be synced");
                        std::fs::rename(temporary, path).expect("it can be renamed");
                    }
                });
            }
        });
        for directory in &self.directories {
            File::open(directory).and_then(|opened| opened.sync_all()).expect("it can be synced");
        }
    }

    /// The same by groups: all written, one sync, all renamed, one sync.
    pub(crate) fn write_together(&self) {
        let root = File::open(&self.directories[0]).expect("a directory of the benchmark");
        for file in &self.wanted {
            std::fs::write(self.paths(file).0, &file.bytes).expect("it can be written");
        }
        syncfs(&root).expect("it can be synced");
        for file in &self.wanted {
            let (temporary, path) = self.paths(file);
            std::fs::rename(temporary, path).expect("it can be renamed");
        }
        syncfs(&root).expect("it can be synced");
    }

    fn paths(&self, file: &Wanted) -> (PathBuf, PathBuf) {
        let directory = &self.directories[file.directory];
        (directory.join(format!(".new-{}", file.name)), directory.join(&file.name))
    }

    /// The same files below another root: `from` is cut off, and what is missing of directories is made.
    pub(crate) fn moved(&self, from: &Path, to: &Path) -> Self {
        let moved = |path: &PathBuf| {
            let path = to.join(path.strip_prefix(from).expect("they lie below it"));
            std::fs::create_dir_all(&path).expect("it can be made");
            path
        };
        let again = |file: &Wanted| Wanted {
            directory: file.directory,
            name: file.name.clone(),
            bytes: file.bytes.clone(),
        };
        Self {
            directories: self.directories.iter().map(moved).collect(),
            wanted: self.wanted.iter().map(again).collect(),
        }
    }

    /// A list of them for [`process`]: a line a file, and all that is wanted in one file beside it.
    pub(crate) fn write_list(&self, list: &Path) {
        let (mut lines, mut all) = (Vec::new(), Vec::new());
        for file in &self.wanted {
            let path = self.paths(file).1;
            lines.extend_from_slice(format!("{} ", file.bytes.len()).as_bytes());
            lines.extend_from_slice(path.as_os_str().as_bytes());
            lines.push(b'\n');
            all.extend_from_slice(&file.bytes);
        }
        std::fs::write(list, lines).expect("a file of the benchmark");
        std::fs::write(list.with_extension("wanted"), all).expect("a file of the benchmark");
    }
}

/// `floor_read` as a program of its own, which is told by a list what to read.
pub(crate) fn process(list: &Path) -> usize {
    let lines = std::fs::read(list).expect("the list can be read");
    let all = std::fs::read(list.with_extension("wanted")).expect("what is wanted can be read");
    let (mut at, mut differ, mut page) = (0, 0, vec![0; 64 * 1024]);
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let space = line.iter().position(|byte| *byte == b' ').expect("a size before each path");
        let length: usize = std::str::from_utf8(&line[..space]).expect("a size").parse().expect("a size");
        let mut file = File::open(OsStr::from_bytes(&line[space + 1..])).expect("it is there");
        let size = fstat(&file).expect("it can be asked").st_size;
        let read = file.read(&mut page).expect("it can be read");
        let same = usize::try_from(size) == Ok(length) && page[..read] == all[at..at + length];
        differ += usize::from(!same);
        at += length;
    }
    differ
}
