//! Where the lab keeps things outside the source tree: base roots for ever, runs while they last, logs of the last
//! failed runs.

use std::fs::{self, File};
use std::path::PathBuf;

/// The cache folder; `TENURE_LAB_CACHE` names another one.
pub(super) fn folder() -> PathBuf {
    std::env::var_os("TENURE_LAB_CACHE").map_or_else(|| PathBuf::from("/var/cache/tenure-lab"), PathBuf::from)
}

/// A folder of the cache, made where it is missing.
pub(super) fn subfolder(name: &str) -> PathBuf {
    let path = folder().join(name);
    fs::create_dir_all(&path)
        .unwrap_or_else(|error| panic!("the lab's cache {} cannot be made: {error}", path.display()));
    path
}

/// Whether logs are to be kept now: the test that calls this fails, or `TENURE_LAB_KEEP` asks for those of all.
pub(super) fn keeps_logs() -> bool {
    std::thread::panicking() || std::env::var_os("TENURE_LAB_KEEP").is_some()
}

/// Holds the named lock until it is dropped; the kernel lets go of it when its holder dies.
pub(super) fn lock(name: &str) -> File {
    let path = subfolder("locks").join(name);
    let file = File::create(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    file.lock().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    file
}
