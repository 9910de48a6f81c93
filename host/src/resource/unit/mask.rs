//! Whose mask of a unit it is. A mask is a link; one that was taken away and put back by somebody is another link than the
//! one we made, though both say the same. It only looks.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A mask, by the link that it is: its number and when it was made, to the nanosecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mask {
    ino: u64,
    made: (i64, i64),
}

/// Where masks for good are.
const PLACE: &str = "/etc/systemd/system/";

impl Mask {
    /// The mask of this unit, if there is one that can be looked at. `at`: where the machine's paths are found here.
    pub(super) fn of(unit: &str, at: impl FnOnce(&str) -> PathBuf) -> Option<Self> {
        let link = at(&format!("{PLACE}{unit}")).symlink_metadata().ok().filter(|link| link.is_symlink())?;
        Some(Self { ino: link.ino(), made: (link.mtime(), link.mtime_nsec()) })
    }
}
