//! A question to dnf that leaves nothing on the machine: it answers by what was read before, and writes its logs, which
//! it opens whatever their level, into a folder that goes with the answer. Used where the host only looks.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use tenure_protocol::id::EventId;

use super::super::{Tools, Trouble};

/// Such a folder, which is there as long as this is.
pub(super) struct Aside {
    folder: PathBuf,
}

impl Aside {
    /// In the directory of what lives no longer than the machine runs, since the host's own need not be there.
    pub(super) fn make(tools: &Tools<'_>) -> Result<Self, Trouble> {
        let folder = tools.at("/run").join(format!("tenure-look-{}", EventId::random()));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => Ok(Self { folder }),
            Err(error) => {
                let place = folder.display();
                let reason = format!(
                    "dnf is asked with its logs put aside, and {place} cannot be made for them: {error}; look what is \
                     wrong with /run on the machine (`findmnt /run`)"
                );
                Err(Trouble::unknown("could_not_look", reason))
            }
        }
    }

    /// The options by which nothing is read anew and nothing is logged where the operator's logs are.
    pub(super) fn options(&self) -> [String; 3] {
        let logs = format!("--setopt=logdir={}", self.folder.display());
        ["--cacheonly".to_owned(), logs, "--setopt=logfilelevel=0".to_owned()]
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // It goes with the machine's run at the latest.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
