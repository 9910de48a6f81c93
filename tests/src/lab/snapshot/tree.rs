//! The files of a machine's own file system; what is mounted in it (/proc, /run, /tmp) is not followed, nor is any link.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::Facts;

/// Reads the tree below `root` into facts named `file /PATH`.
pub(super) fn read(root: &Path, facts: &mut Facts) {
    // A process's root is a link; its contents are named through it.
    let device = fs::metadata(root).expect("the machine's root").dev();
    read_folder(root, "", device, facts);
}

fn read_folder(root: &Path, inside: &str, device: u64, facts: &mut Facts) {
    let folder = root.join(inside.trim_start_matches('/'));
    let Ok(entries) = fs::read_dir(&folder) else { return };
    for entry in entries.flatten() {
        let path = format!("{inside}/{}", entry.file_name().to_string_lossy());
        // What vanishes between the listing and the look was not there to stay.
        let Ok(metadata) = entry.metadata() else { continue };
        if VOLATILE.contains(&path.as_str()) || path.starts_with(PRIVATE) {
            continue;
        }
        if metadata.is_dir() && metadata.dev() != device {
            continue;
        }
        let mut known = describe(&entry.path(), &metadata);
        if PRIVATE.rsplit_once('/').is_some_and(|(folder, _)| folder == path) {
            known.remove("time");
        }
        facts.insert(format!("file {path}"), known);
        if metadata.is_dir() {
            read_folder(root, &path, device, facts);
        }
    }
}

fn describe(path: &Path, metadata: &Metadata) -> BTreeMap<&'static str, String> {
    let mut facts = BTreeMap::from([
        ("mode", format!("{:04o}", metadata.mode() & 0o7777)),
        ("owner", format!("{}:{}", metadata.uid(), metadata.gid())),
    ]);
    let kind = metadata.file_type();
    facts.extend(attributes(path).map(|attributes| ("attributes", attributes)));
    // Whatever is done to it, and be it undone again, moves this time, which nobody can set back. A directory has it
    // moved by what comes and goes in it, a device or a link by what only uses it on some file systems.
    if kind.is_file() {
        facts.insert("touched", format!("{}.{:09}", metadata.ctime(), metadata.ctime_nsec()));
        facts.insert("names", metadata.nlink().to_string());
        facts.insert("kind", "file".to_owned());
        facts.insert("time", format!("{}.{:09}", metadata.mtime(), metadata.mtime_nsec()));
        facts.insert("content", digest(path).unwrap_or_else(|error| error.to_string()));
    } else if kind.is_symlink() {
        facts.insert("kind", "link".to_owned());
        facts.insert(
            "target",
            fs::read_link(path).map_or_else(|error| error.to_string(), |to| to.display().to_string()),
        );
    } else if kind.is_dir() {
        facts.insert("kind", "directory".to_owned());
        facts.insert("time", format!("{}.{:09}", metadata.mtime(), metadata.mtime_nsec()));
    } else if kind.is_char_device() || kind.is_block_device() {
        facts.insert("kind", format!("device {}", metadata.rdev()));
    } else {
        facts.insert("kind", "pipe or socket".to_owned());
    }
    facts
}

/// Extended attributes, access lists and capabilities among them; none where it has none.
fn attributes(path: &Path) -> Option<String> {
    let mut list = vec![0_u8; 64 * 1024];
    let length = rustix::fs::llistxattr(path, list.as_mut_slice()).ok()?;
    let mut names: Vec<&[u8]> =
        list[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()).collect();
    // What an overlay notes for itself is told by no machine above it.
    names.retain(|name| !name.starts_with(b"trusted.overlay."));
    names.sort_unstable();
    let value = |name: &&[u8]| {
        let mut value = vec![0_u8; 64 * 1024];
        let length =
            rustix::fs::lgetxattr(path, *name, value.as_mut_slice()).map_err(|errno| errno.to_string());
        let value = length.map(|length| value[..length].escape_ascii().to_string());
        format!("{}={}", name.escape_ascii(), value.unwrap_or_else(|errno| errno))
    };
    let all: Vec<String> = names.iter().map(value).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

fn digest(path: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            length => hasher.update(&buffer[..length]),
        }
    }
    Ok(hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}

/// The service manager gives each boot of a service with `PrivateTmp` folders of its own.
const PRIVATE: &str = "/var/tmp/systemd-private-";
/// What a machine writes by living.
const VOLATILE: &[&str] = &[
    "/var/log/journal",
    "/var/log/wtmp",
    "/var/log/lastlog",
    "/var/log/btmp",
    "/var/lib/systemd",
    "/etc/.pwd.lock",
];
