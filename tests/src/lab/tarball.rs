//! The tarball as it is shipped, and its installation on a machine: packaging's own two scripts, nothing in between.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Lab;
use super::machine::Machine;
use super::tool::{Output, Tool};
use crate::tree;

/// A tarball on the build machine.
pub struct Tarball {
    file: PathBuf,
}

impl Tarball {
    /// Packs the binaries of a folder: `tenure-host`, and `tenure-control` and `tenure` where they are there.
    #[must_use]
    pub fn of(lab: &Lab, binaries: &Path) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("tarball-")
            .tempdir_in(lab.folder())
            .expect("the run's folder")
            .keep();
        let file = folder.join("tenure.tar.gz");
        let script = tree::root().join("packaging/tarball.sh");
        let [script, from, to] = [&script, binaries, &file].map(|path| path.display().to_string());
        Tool::new(&[&script, &from, "0", &to]).deadline(PACKING).must();
        Self { file }
    }
}

impl Machine {
    /// Copies the tarball in, unpacks it and runs its install script with these arguments.
    #[track_caller]
    pub fn install(&self, tarball: &Tarball, arguments: &[&str]) -> Output {
        self.must(&["rm", "-rf", PLACE]);
        self.copy_in(&tarball.file, &format!("{PLACE}/tenure.tar.gz"), 0o644);
        self.must(&["tar", "-xzf", &format!("{PLACE}/tenure.tar.gz"), "-C", PLACE, "--strip-components=1"]);
        let script = format!("{PLACE}/install.sh");
        let command: Vec<&str> = [script.as_str()].into_iter().chain(arguments.iter().copied()).collect();
        self.run(&command)
    }
}

/// Programs with all their symbols are large, and a build machine may be busy.
const PACKING: Duration = Duration::from_secs(300);
/// Not below /tmp: a machine may forbid programs there.
const PLACE: &str = "/root/tenure";
