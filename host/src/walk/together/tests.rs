use std::io::Write as _;
use std::path::Path;

use super::*;
use crate::ground::Ground;
use crate::ground::own::Own;
use crate::walk::Walker;
use crate::walk::carry::Attributes;
use crate::walk::change::temporary;

fn written(dir: &Arc<Dir>) -> Fresh {
    let fill = &mut |file: &mut File| file.write_all(b"new");
    Fresh::file(dir, &temporary().unwrap(), 0o644, None, &Attributes::default(), fill).unwrap()
}

/// Where files are synced together whatever else is at work here, and a directory below this folder.
fn below(folder: &Path) -> (Together, Arc<Dir>) {
    let ground = Ground::new(folder, false);
    let path = "/file".parse().unwrap();
    let dir = Arc::clone(&Walker::new(&ground, &Own::look(&ground)).unwrap().parent(&path).unwrap().0);
    (Together { held: Mutex::default(), is_calm: AtomicBool::new(true) }, dir)
}

// rule: H-09
#[test]
fn what_is_written_together_is_synced_together_and_placed_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let (together, dir) = below(folder.path());
    let mut files = [written(&dir), written(&dir)];
    assert!(files.iter().all(|one| !one.is_synced()));
    let held = File::open(folder.path()).unwrap();
    together.held.lock().unwrap().insert(dir.inode().dev, Some(Arc::new(held)));
    assert!(together.takes(&dir, SMALL) && !together.takes(&dir, SMALL + 1));
    together.sync(files.iter_mut());
    assert!(files.iter().all(Fresh::is_synced));
    for (file, name) in files.into_iter().zip(["one", "two"]) {
        file.create(name).unwrap();
        assert_eq!(std::fs::read(folder.path().join(name)).unwrap(), b"new");
    }
}

// rule: H-09
#[test]
fn what_could_not_be_synced_together_is_not_taken_for_synced_and_is_synced_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (together, dir) = below(folder.path());
    // One that the kernel syncs nothing by.
    let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
    let path = nix::fcntl::open(folder.path(), flags, Mode::empty()).unwrap();
    together.held.lock().unwrap().insert(dir.inode().dev, Some(Arc::new(path.into())));
    let mut file = written(&dir);
    together.sync(std::iter::once(&mut file));
    assert!(!file.is_synced());
    assert!(together.held(&dir).is_none(), "it is not tried again");
    file.sync().unwrap();
    assert!(file.is_synced());
    file.create("file").unwrap();
    assert_eq!(std::fs::read(folder.path().join("file")).unwrap(), b"new");
}

#[test]
fn on_a_file_system_that_is_not_known_to_say_what_it_could_not_write_each_is_synced_by_itself() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let (together, dir) = below(folder.path());
    assert!(!together.takes(&dir, 1));
    let mut file = written(&dir);
    together.sync(std::iter::once(&mut file));
    assert!(!file.is_synced());
}

#[test]
fn where_much_else_is_unwritten_each_is_synced_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (together, dir) = below(folder.path());
    together.held.lock().unwrap().insert(dir.inode().dev, Some(Arc::new(File::open(folder.path()).unwrap())));
    together.is_calm.store(false, Ordering::Relaxed);
    assert!(!together.takes(&dir, 1));
    let meminfo = "MemTotal:       24690280 kB\nDirty:               124 kB\nWriteback:             4 kB\nWritebackTmp: 9 kB\n";
    assert_eq!(unwritten(meminfo), Some(128 * 1024));
    for unclear in ["", "Dirty: 1 kB\n", "Dirty: 1 MB\nWriteback: 1 kB\n", "Dirty: -1 kB\nWriteback: 1 kB\n"]
    {
        assert_eq!(unwritten(unclear), None, "{unclear}");
    }
}

#[test]
fn a_kernel_that_says_nothing_of_what_it_could_not_write_is_not_asked() {
    for (release, says) in [
        ("6.1.0-31-amd64", true),
        ("5.8.0", true),
        ("5.10.0-28", true),
        ("5.7.19", false),
        ("4.19.0-27-amd64", false),
        ("6", false),
        ("", false),
        ("unknown", false),
        ("99999999999.1", false),
    ] {
        assert_eq!(is_since(release, SAYS_SINCE), says, "{release}");
    }
}
