//! Which declared paths are the host's own (H-02): by the way they are written, and by what walking them reaches. A
//! declaration that touches one of them is refused by name; the rest applies. Pure, save for [`Own::look`], which
//! stats the places once a pass, and what is looked for when it is first asked for: what lies in them, and what other
//! names its unit has.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use tenure_protocol::path::DeclaredPath;
use tenure_protocol::resource::ResourceKey;

use super::{ETC, Ground, RUN, STATE};

/// A file or directory by what the kernel calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Inode {
    /// The device.
    pub dev: u64,
    /// The number on it.
    pub ino: u64,
}

/// What is ours, as it stood when the pass began.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Own {
    root: PathBuf,
    /// Things of ours: whatever is one of them, or lies below one.
    ours: HashSet<Inode>,
    /// The directories above them, each by the path by which [`by_text`] knows it: neither removed nor replaced by
    /// something else.
    above: HashMap<Inode, String>,
    /// Everything that lies in ours: by a second name or a mount of its own it is reached from elsewhere.
    #[serde(skip)]
    inside: OnceLock<HashSet<Inode>>,
    /// The other names of our unit.
    #[serde(skip)]
    aliases: OnceLock<HashSet<String>>,
}

/// What comes and goes in the state directory, such as the log of the store, makes no other of it.
impl PartialEq for Own {
    fn eq(&self, other: &Self) -> bool {
        (&self.root, &self.ours, &self.above) == (&other.root, &other.ours, &other.above)
    }
}

impl Eq for Own {}

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
pub(crate) const UNIT_PLACES: [&str; 13] = [
    "/etc/systemd/system",
    "/etc/systemd/system.control",
    "/etc/systemd/system.attached",
    "/run/systemd/system",
    "/run/systemd/system.control",
    "/run/systemd/system.attached",
    "/run/systemd/transient",
    "/run/systemd/generator",
    "/run/systemd/generator.early",
    "/run/systemd/generator.late",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// Our unit and what systemd reads together with it, by file name.
const UNIT_NAMES: [&str; 4] =
    ["tenure-host.service", "tenure-host.service.d", "tenure-.service.d", "service.d"];

/// Drop-ins of every service, and of all whose name begins as ours does.
const WIDE_DROP_INS: [&str; 3] = ["service.d", "tenure-.service.d", "tenure-host-.service.d"];

/// Where Podman makes units of files, and those of which it makes one that is called as ours is. One that is given the
/// name in the file is not known by its path.
const CONTAINERS: [&str; 3] =
    ["/etc/containers/systemd", "/run/containers/systemd", "/usr/share/containers/systemd"];
const MADE_INTO_OURS: [&str; 2] = ["tenure-host.container", "tenure-host.kube"];

/// Directories that are named for a unit, and say more of it.
const OF_A_UNIT: [&str; 4] = [".d", ".wants", ".requires", ".upholds"];

/// The package that brings the host.
pub const OWN_PACKAGE: &str = "tenure-host";

/// Transient units in which the host has a package transaction run begin so: the next host finds by it one that
/// outlived the last (O-41).
pub const TRANSACTION_UNIT: &str = "tenure-host-packages-";

/// Whether a unit of this name is the host's own.
pub fn is_own_unit(name: &str) -> bool {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    stem == "tenure-host" || name.starts_with("tenure-host@") || name.starts_with(TRANSACTION_UNIT)
}

/// Files that programs make units of, each time the service manager reads its unit files.
pub(crate) const MADE_INTO_UNITS: [&str; 3] = ["/etc/fstab", "/etc/crypttab", "/etc/init.d"];

/// Whether units stand in this directory, or more is said of them there.
pub(crate) fn is_place_of_units(directory: &str) -> bool {
    UNIT_PLACES.iter().any(|place| is_at_or_below(directory, place))
}

fn is_at_or_below(text: &str, place: &str) -> bool {
    text.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

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
/// Drop-ins of every service are systemd's too: Fedora ships one with it, and its new version brings that anew.
pub fn is_part_of_the_host(listed: &str) -> bool {
    // Packages of before the merge of /usr spell it without.
    let merged = ["/bin/", "/sbin/"].iter().any(|old| listed.starts_with(old));
    let path = if merged { format!("/usr{listed}") } else { listed.to_owned() };
    let kept = [ETC, STATE, RUN].iter().any(|place| path.starts_with(place));
    !kept && judge(&path, &is_own_unit, &[]) == Touch::Ours
}

/// What the spelling of `path` says.
pub fn by_spelling(path: &DeclaredPath) -> Touch {
    by_text(path.as_str())
}

/// What `text` says, a path in its one spelling: also of what does not exist yet, once links are resolved.
pub fn by_text(text: &str) -> Touch {
    judge(text, &is_own_unit, &WIDE_DROP_INS)
}

/// `wide`: directories of drop-ins that count though they are not named for the host's unit alone.
fn judge(text: &str, is_own_unit: &dyn Fn(&str) -> bool, wide: &[&str]) -> Touch {
    // Also below `….wants` of others.
    let unit = || {
        let place = UNIT_PLACES.iter().find_map(|place| text.strip_prefix(place)?.strip_prefix('/'));
        place.is_some_and(|rest| {
            rest.split('/').any(|name| is_of_a_unit(name, is_own_unit) || wide.contains(&name))
        })
    };
    let container = || {
        let is_ours = |name: &str| MADE_INTO_OURS.contains(&name);
        CONTAINERS.iter().any(|place| is_at_or_below(text, place))
            && text.split('/').any(|name| is_of_a_unit(name, &is_ours))
    };
    if PLACES.iter().any(|place| is_at_or_below(text, place)) || unit() || container() {
        return Touch::Ours;
    }
    let above = |place: &&str| place.strip_prefix(text).is_some_and(|rest| rest.starts_with('/'));
    if PLACES.iter().chain(&UNIT_PLACES).any(above) || UNIT_PLACES.contains(&text) {
        return Touch::Above;
    }
    Touch::No
}

/// Whether a name in a place of units is that of such a unit, or of a directory that says more of it.
fn is_of_a_unit(name: &str, is_own_unit: &dyn Fn(&str) -> bool) -> bool {
    let unit = OF_A_UNIT.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
    is_own_unit(unit)
}

impl Own {
    /// Looks at every place of ours that is there, links followed, and at the directories above them.
    pub fn look(ground: &Ground) -> Self {
        let mut own = Self { root: ground.root().to_owned(), ..Self::default() };
        for place in PLACES {
            own.take(&ground.at(place));
        }
        for place in UNIT_PLACES.map(|place| ground.at(place)) {
            if own.stand_above(&place) {
                UNIT_NAMES.iter().for_each(|name| own.take(&place.join(name)));
            }
        }
        // Wherever it was started from, this is the binary that runs.
        own.ours.extend(inode(Path::new("/proc/self/exe")));
        own
    }

    fn take(&mut self, path: &Path) {
        if let Some(above) = path.parent() {
            self.stand_above(above);
        }
        let Some(inode) = inode(path) else { return };
        self.ours.insert(inode);
        let real = path.canonicalize();
        if let Some(above) = real.as_deref().ok().and_then(Path::parent) {
            self.stand_above(above);
        }
    }

    /// Takes `path` and what is above it for directories that ours lie in. False where it is not there.
    fn stand_above(&mut self, path: &Path) -> bool {
        let root = self.root.clone();
        let mut is_there = false;
        for above in path.ancestors().take_while(|above| above.starts_with(&root)) {
            let Some(inode) = inode(above) else { continue };
            is_there |= above == path;
            // The first name of it is one of our own places; what is above it is known by then.
            if self.above.contains_key(&inode) {
                break;
            }
            let name = above.strip_prefix(&root).map(Path::to_string_lossy).unwrap_or_default();
            let name = if name.is_empty() { String::new() } else { format!("/{name}") };
            self.above.insert(inode, name);
        }
        is_there
    }

    /// What `inode` is to us.
    pub fn touch(&self, inode: Inode) -> Touch {
        if self.ours.contains(&inode) || self.is_inside(inode) {
            Touch::Ours
        } else if self.above.contains_key(&inode) {
            Touch::Above
        } else {
            Touch::No
        }
    }

    /// The path by which a directory above ours is known, by whatever way it was reached: also where it is mounted once
    /// more. Empty for the root.
    pub fn known(&self, inode: Inode) -> Option<&str> {
        self.above.get(&inode).map(String::as_str)
    }

    /// [`by_text`], and with the other names that our unit has on this machine: systemd reads the drop-ins of each.
    pub fn by_text(&self, text: &str) -> Touch {
        judge(text, &|name| is_own_unit(name) || self.aliases().contains(name), &WIDE_DROP_INS)
    }

    fn aliases(&self) -> &HashSet<String> {
        self.aliases.get_or_init(|| {
            let at = |place: &&str| self.root.join(place.trim_start_matches('/'));
            let links: Vec<(String, String)> = UNIT_PLACES.iter().map(at).flat_map(|at| links(&at)).collect();
            let mut aliases = HashSet::new();
            // A link may lead to another: each round finds those that are one link further away.
            loop {
                let leads = |to: &String| is_own_unit(to) || aliases.contains(to);
                let found: Vec<String> = links
                    .iter()
                    .filter(|(name, to)| leads(to) && !aliases.contains(name))
                    .map(|(name, _)| name.clone())
                    .collect();
                if found.is_empty() {
                    return aliases;
                }
                aliases.extend(found);
            }
        })
    }

    /// The file or directory that a link in a folder of ours leads to: what we read by it is as much ours. What ours lie
    /// in stays what it is, and of a device, such as /dev/null for a drop-in that is switched off, nothing is read.
    fn led_to(&self, link: &Path) -> Option<Inode> {
        let seen = link.metadata().ok().filter(|seen| seen.is_file() || seen.is_dir())?;
        let inode = Inode { dev: seen.dev(), ino: seen.ino() };
        (!self.above.contains_key(&inode)).then_some(inode)
    }

    /// What comes and goes in ours, such as the log of the store, leaves its number to whatever is made next, wherever that
    /// is: so a number that was found there has to be there still. Where nobody can look again it counts as it did.
    fn is_inside(&self, inode: Inode) -> bool {
        self.inside.get_or_init(|| self.look_inside().0).contains(&inode) && {
            let (now, all) = self.look_inside();
            !all || now.contains(&inode)
        }
    }

    /// What lies in ours, and whether that is all of it.
    fn look_inside(&self) -> (HashSet<Inode>, bool) {
        let (mut inside, mut folders, mut all) = (HashSet::new(), Vec::new(), true);
        let units = UNIT_PLACES.iter().flat_map(|place| UNIT_NAMES.map(|name| format!("{place}/{name}")));
        folders.extend(PLACES.map(str::to_owned).into_iter().chain(units));
        let at = |place: String| self.root.join(place.trim_start_matches('/'));
        let mut folders: Vec<PathBuf> = folders.into_iter().map(at).collect();
        // What is not there, or is a file, has nothing in it.
        let is_nothing = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        };
        while let Some(folder) = folders.pop() {
            let entries = folder.read_dir().inspect_err(|error| all &= is_nothing(error));
            for entry in entries.into_iter().flatten() {
                let seen = entry.and_then(|entry| Ok((entry.metadata()?, entry)));
                let Ok((seen, entry)) = seen.inspect_err(|error| all &= is_nothing(error)) else { continue };
                inside.insert(Inode { dev: seen.dev(), ino: seen.ino() });
                folders.extend(seen.is_dir().then(|| entry.path()));
                inside.extend(seen.is_symlink().then(|| self.led_to(&entry.path())).flatten());
            }
        }
        (inside, all)
    }
}

/// The links in a directory, and the last name of what each leads to: by that systemd knows a unit.
fn links(folder: &Path) -> Vec<(String, String)> {
    let Ok(entries) = folder.read_dir() else { return Vec::new() };
    let links = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let named = |entry: std::fs::DirEntry| {
        let to = entry.path().read_link().ok()?;
        Some((entry.file_name().into_string().ok()?, to.file_name()?.to_str()?.to_owned()))
    };
    links.filter_map(named).collect()
}

fn inode(path: &Path) -> Option<Inode> {
    path.metadata().ok().map(|seen| Inode { dev: seen.dev(), ino: seen.ino() })
}

#[cfg(test)]
mod tests;
