//! Which declared paths are the host's own (H-02): by the way they are written, and by what walking them reaches. A
//! declaration that touches one of them is refused by name; the rest applies. Pure, save for [`Own::look`], which
//! stats the places once a pass.

use std::collections::HashSet;
use std::path::Path;

use tenure_protocol::path::DeclaredPath;
use tenure_protocol::resource::ResourceKey;

use super::{ETC, Ground, RUN, STATE};

/// A file or directory by what the kernel calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Inode {
    /// The device.
    pub dev: u64,
    /// The number on it.
    pub ino: u64,
}

/// What is ours, as it stood when the pass began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Own {
    /// Things of ours: whatever is one of them, or lies below one.
    ours: HashSet<Inode>,
    /// The directories above them: neither removed nor replaced by something else.
    above: HashSet<Inode>,
}

/// How a declared path touches what is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// It does not.
    No,
    /// It is one of ours, or lies in one.
    Ours,
    /// It is a directory that ours lie in.
    Above,
}

/// Files and directories of ours, wherever a unit may stand excepted.
const PLACES: [&str; 6] = [
    "/usr/bin/tenure-host",
    "/usr/lib/tenure-host",
    ETC,
    STATE,
    RUN,
    "/etc/needrestart/conf.d/tenure-host.conf",
];

/// Where systemd reads units and drop-ins, in any spelling.
pub(crate) const UNIT_PLACES: [&str; 11] = [
    "/etc/systemd/system",
    "/etc/systemd/system.control",
    "/etc/systemd/system.attached",
    "/run/systemd/system",
    "/run/systemd/system.control",
    "/run/systemd/system.attached",
    "/run/systemd/transient",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// Our unit and what systemd reads together with it, by file name: also below `….wants` and `….requires`.
const UNIT_NAMES: [&str; 4] =
    ["tenure-host.service", "tenure-host.service.d", "tenure-.service.d", "service.d"];

/// The package that brings the host.
pub const OWN_PACKAGE: &str = "tenure-host";

/// Transient units in which the host has a package transaction run begin so: the next host finds by it one that
/// outlived the last (O-41).
pub const TRANSACTION_UNIT: &str = "tenure-host-apt-";

/// Whether a unit of this name is the host's own.
pub fn is_own_unit(name: &str) -> bool {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    stem == "tenure-host" || name.starts_with("tenure-host@") || name.starts_with(TRANSACTION_UNIT)
}

/// Files that programs make units of, each time the service manager reads its unit files.
pub(crate) const MADE_INTO_UNITS: [&str; 3] = ["/etc/fstab", "/etc/crypttab", "/etc/init.d"];

/// Whether this is a file by which the service manager knows its units. A directory alone tells it nothing.
pub fn is_unit_file(key: &ResourceKey) -> bool {
    match key {
        ResourceKey::File(path) => {
            UNIT_PLACES.iter().chain(&MADE_INTO_UNITS).any(|place| path.is_at_or_below(place))
        }
        ResourceKey::Directory(_) | ResourceKey::Package(_) | ResourceKey::Unit(_) => false,
    }
}

/// Whether a file that a package lists is one the host cannot do without: its binary, its unit with drop-ins, its
/// scripts. Packages also list directories, and what lies in those of configuration and state goes with no removal.
pub fn is_part_of_the_host(listed: &str) -> bool {
    // Packages of before the merge of /usr spell it without.
    let merged = ["/bin/", "/sbin/"].iter().any(|old| listed.starts_with(old));
    let path = if merged { format!("/usr{listed}") } else { listed.to_owned() };
    let kept = [ETC, STATE, RUN].iter().any(|place| path.starts_with(place));
    !kept && by_text(&path) == Touch::Ours
}

/// Every place that is the host's own, as a declared path would spell it.
pub fn own_paths() -> Vec<String> {
    let units =
        UNIT_PLACES.iter().flat_map(|place| UNIT_NAMES.iter().map(move |name| format!("{place}/{name}")));
    PLACES.iter().map(|place| (*place).to_owned()).chain(units).collect()
}

/// What the spelling of `path` says.
pub fn by_spelling(path: &DeclaredPath) -> Touch {
    by_text(path.as_str())
}

/// What `text` says, a path in its one spelling: also of what does not exist yet, once links are resolved.
pub fn by_text(text: &str) -> Touch {
    let unit = || {
        let place = UNIT_PLACES.iter().find_map(|place| text.strip_prefix(place)?.strip_prefix('/'));
        place.is_some_and(|rest| rest.split('/').any(|name| UNIT_NAMES.contains(&name)))
    };
    let below =
        |place: &&str| text.strip_prefix(*place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if PLACES.iter().any(below) || unit() {
        return Touch::Ours;
    }
    let above = |place: &&str| place.strip_prefix(text).is_some_and(|rest| rest.starts_with('/'));
    if PLACES.iter().chain(&UNIT_PLACES).any(above) || UNIT_PLACES.contains(&text) {
        return Touch::Above;
    }
    Touch::No
}

impl Own {
    /// Looks at every place of ours that is there, links followed, and at the directories above them.
    pub fn look(ground: &Ground) -> Self {
        let mut own = Self::default();
        for place in own_paths() {
            let path = ground.at(&place);
            let Some(inode) = inode(&path) else { continue };
            own.ours.insert(inode);
            own.stand_above(ground, &path);
        }
        // Wherever it was started from, this is the binary that runs.
        own.ours.extend(inode(Path::new("/proc/self/exe")));
        own
    }

    fn stand_above(&mut self, ground: &Ground, path: &Path) {
        let real = path.canonicalize();
        let real = real.as_deref().unwrap_or(path);
        for path in [path, real] {
            let above = path.ancestors().skip(1).take_while(|above| above.starts_with(ground.root()));
            self.above.extend(above.filter_map(inode));
        }
    }

    /// What `inode` is to us.
    pub fn touch(&self, inode: Inode) -> Touch {
        if self.ours.contains(&inode) {
            Touch::Ours
        } else if self.above.contains(&inode) {
            Touch::Above
        } else {
            Touch::No
        }
    }
}

fn inode(path: &Path) -> Option<Inode> {
    use std::os::unix::fs::MetadataExt;
    path.metadata().ok().map(|seen| Inode { dev: seen.dev(), ino: seen.ino() })
}

#[cfg(test)]
mod tests;
