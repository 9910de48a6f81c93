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
        facts.insert(format!("file {path}"), describe(&entry.path(), &metadata));
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
    if kind.is_file() {
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
    } else if kind.is_char_device() || kind.is_block_device() {
        facts.insert("kind", format!("device {}", metadata.rdev()));
    } else {
        facts.insert("kind", "pipe or socket".to_owned());
    }
    facts
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
