//! Small file systems of a test's own, in a mount namespace of its own thread: what the thread starts from then on sees
//! them, nobody else does, and they are gone when the last of these has ended.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::mount::{MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

/// A file system mounted on a folder.
pub struct Disk {
    folder: PathBuf,
}

impl Disk {
    /// One in memory of so many KiB. None: without root nothing can be mounted, and the test says so and ends.
    pub fn in_memory(folder: &Path, kib: usize) -> Option<Self> {
        Self::tmpfs(folder, &format!("size={kib}k,mode=0700"))
    }

    /// One in memory that has room for so many files and folders, itself counted.
    pub fn of_so_many_files(folder: &Path, files: usize) -> Option<Self> {
        Self::tmpfs(folder, &format!("nr_inodes={files},mode=0700"))
    }

    fn tmpfs(folder: &Path, options: &str) -> Option<Self> {
        alone()?;
        std::fs::create_dir_all(folder).expect("a folder to mount on");
        mount(Some("tmpfs"), folder, Some("tmpfs"), MsFlags::empty(), Some(options))
            .expect("a file system in memory can be mounted by root");
        Some(Self { folder: folder.to_owned() })
    }

    /// One of 8 MiB in the file `image`, which can [`Disk::fail`].
    pub fn in_a_file(image: &Path, folder: &Path) -> Option<Self> {
        alone()?;
        std::fs::create_dir_all(folder).expect("a folder to mount on");
        File::create(image).and_then(|file| file.set_len(8 << 20)).expect("a file for the image");
        tool("mkfs.ext4", &["-q", "-F", text(image)]);
        tool("mount", &["-o", "loop,errors=remount-ro", text(image), text(folder)]);
        Some(Self { folder: folder.to_owned() })
    }

    /// It turns read-only, as at a fault of the disk below it.
    pub fn fail(&self) {
        tool("mount", &["-o", "remount,abort", text(&self.folder)]);
    }

    /// What an operator does then, with nobody at work on it: it is taken off, checked, and mounted again. A file system
    /// that turned read-only by a fault takes no `remount`.
    pub fn mend(&self, image: &Path) {
        tool("umount", &[text(&self.folder)]);
        // It says 1 where it has put something right.
        let checked = Command::new("e2fsck").args(["-fy", text(image)]).stdin(Stdio::null()).output();
        assert!(checked.is_ok_and(|ran| ran.status.code().is_some_and(|code| code < 2)), "it is not mended");
        tool("mount", &["-o", "loop", text(image), text(&self.folder)]);
    }

    /// Takes it out of its place while somebody is at work on it, who keeps it.
    pub fn detach(&self) {
        umount2(&self.folder, nix::mount::MntFlags::MNT_DETACH).expect("it is mounted");
    }

    /// Another place of the same one, which stays when this place is taken.
    pub fn also_at(&self, folder: &Path) -> Self {
        Self::bind(&self.folder, folder)
    }

    fn bind(from: &Path, to: &Path) -> Self {
        std::fs::create_dir_all(to).expect("a folder to mount on");
        mount(Some(from), to, None::<&str>, MsFlags::MS_BIND, None::<&str>)
            .expect("a folder can be mounted elsewhere by root");
        Self { folder: to.to_owned() }
    }

    /// The folder itself as a mount of its own, so that it can be made read-only.
    pub fn bound(folder: &Path) -> Option<Self> {
        alone()?;
        Some(Self::bind(folder, folder))
    }

    /// Takes writes no more, or again. A file that is open for writing stays so.
    pub fn read_only(&self, read_only: bool) {
        let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT;
        let flags = if read_only { flags | MsFlags::MS_RDONLY } else { flags };
        mount(None::<&str>, &self.folder, None::<&str>, flags, None::<&str>)
            .expect("the mount can be changed");
    }

    /// Fills it to the last page; what is returned takes the room.
    pub fn fill(&self) -> PathBuf {
        let path = self.folder.join("filler");
        let mut file = File::create(&path).expect("a file that takes the room");
        let page = [0_u8; 4096];
        while file.write_all(&page).is_ok() {}
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // What still runs in it keeps it until it ends.
        let _ = umount2(&self.folder, nix::mount::MntFlags::MNT_DETACH);
    }
}

fn tool(name: &str, arguments: &[&str]) {
    let ended = Command::new(name).args(arguments).stdin(Stdio::null()).status();
    assert!(ended.is_ok_and(|status| status.success()), "{name} {arguments:?} did not do it");
}

fn text(path: &Path) -> &str {
    path.to_str().expect("test folders have plain names")
}

/// From here on this thread mounts for itself alone.
fn alone() -> Option<()> {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("needs root to mount a file system: nothing was tested");
        return None;
    }
    unshare(CloneFlags::CLONE_NEWNS).expect("root may have a mount namespace of its own");
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>).expect("mounts can be kept to oneself");
    Some(())
}
