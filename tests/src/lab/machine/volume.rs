//! File systems of their own for a machine that is off: made in a file beside it, mounted where the machine finds them
//! once it boots. They are real; those that this kernel does not know itself are served by a program outside (FUSE).
//! They go with the machine.

use std::fs::{self, File};

use super::Machine;
use crate::lab::tool::Tool;

/// A kind of file system, and what it is known for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Volume {
    /// A boot partition's: no owners, modes or links, and setting them is an error.
    Fat,
    /// No owners, modes or links; a mode is taken without a word and not kept.
    Exfat,
    /// No owners or modes unless it is mounted so; both are taken without a word and not kept.
    Ntfs,
    /// The Linux kernel's own.
    Ext4,
    /// The Linux kernel's own.
    Xfs,
    /// The Linux kernel's own; here with a subvolume `limited` that takes a mebibyte.
    Btrfs,
    /// A server's, by NFSv4: each file has an access list of its own kind. A program of the test serves it.
    Listed,
}

impl Machine {
    /// Mounts a new file system at `path`. Panics where it runs, or where a program is missing.
    #[track_caller]
    pub fn mount_new(&self, volume: Volume, path: &str) {
        assert!(self.leader().is_none(), "{} runs: it would not see what is mounted now", self.name);
        let at = self.root_folder().join(path.trim_start_matches('/'));
        fs::create_dir_all(&at).expect("a folder of the machine's own");
        let image = self.folder.join(format!("{volume:?}.img"));
        // Sparse: no kind of them takes less.
        File::create(&image).and_then(|file| file.set_len(320 << 20)).expect("a file beside the machine");
        let (image, at) = (image.display().to_string(), at.display().to_string());
        let must = |command: &[&str]| Tool::new(command).must();
        match volume {
            Volume::Fat => {
                must(&["mkfs.vfat", &image]);
                must(&["fusefat", "-o", "rw+,allow_other", &image, &at]);
            }
            Volume::Exfat => {
                must(&["mkfs.exfat", &image]);
                let device = must(&["losetup", "--find", "--show", &image]);
                must(&["mount.exfat-fuse", &device, &at]);
                // The kernel keeps it for as long as it is mounted.
                must(&["losetup", "--detach", &device]);
            }
            Volume::Ntfs => {
                must(&["mkfs.ntfs", "--force", "--fast", &image]);
                must(&["ntfs-3g", &image, &at]);
            }
            Volume::Ext4 => {
                must(&["mkfs.ext4", "-q", "-F", &image]);
                must(&["mount", "-o", "loop", &image, &at]);
            }
            Volume::Xfs => {
                must(&["mkfs.xfs", "-q", &image]);
                must(&["mount", "-o", "loop", &image, &at]);
            }
            Volume::Listed => {
                let (folder, program) = (self.folder.join("served"), self.folder.join("listed.py"));
                fs::create_dir(&folder)
                    .and_then(|()| fs::write(&program, LISTED))
                    .expect("beside the machine");
                must(&[
                    "/usr/bin/python3",
                    &program.display().to_string(),
                    &folder.display().to_string(),
                    &at,
                ]);
            }
            Volume::Btrfs => {
                must(&["mkfs.btrfs", "-q", &image]);
                must(&["mount", "-o", "loop", &image, &at]);
                let limited = format!("{at}/limited");
                must(&["btrfs", "quota", "enable", &at]);
                must(&["btrfs", "subvolume", "create", &limited]);
                must(&["btrfs", "qgroup", "limit", "1M", &limited]);
            }
        }
    }
}

const LISTED: &str = include_str!("listed.py");
