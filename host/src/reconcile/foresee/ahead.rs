//! What those before would have made of the machine when the turn of the next one comes: which places are filled and
//! which are empty, whether packages were changed, which units were brought by their file. It knows no disk by itself; it
//! asks the walk where a path leads.

use std::collections::{HashMap, HashSet};

use tenure_protocol::path::DeclaredPath;
use tenure_protocol::resource::{Resource, ResourceKey, Spec, UnitName};

use crate::ground::own::is_unit_file;
use crate::resource::{MOST_COUNTED, Site, Trouble};
use crate::walk::read::Found;

/// What there would be at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum There {
    Nothing,
    Directory,
    File,
}

/// The machine as it would be by now.
pub(super) struct Ahead<'a> {
    site: &'a Site<'a>,
    places: HashMap<String, There>,
    /// Directories that were not there before.
    made: HashSet<String>,
    /// What left before anything that is declared was looked at, as it was declared.
    gone: HashSet<String>,
    is_cleared: bool,
    /// The first package that was changed.
    packages: Option<String>,
    /// Names of units whose file was made or changed, or removed.
    unit_files: HashMap<String, (String, There)>,
}

impl<'a> Ahead<'a> {
    pub(super) fn new(site: &'a Site<'a>) -> Self {
        Self {
            site,
            places: HashMap::new(),
            made: HashSet::new(),
            gone: HashSet::new(),
            is_cleared: false,
            packages: None,
            unit_files: HashMap::new(),
        }
    }

    /// This is declared, and would be changed to that.
    pub(super) fn becomes(&mut self, resource: &Resource) {
        let there = match &resource.spec {
            Spec::Package(_) => {
                self.packages.get_or_insert_with(|| resource.key.to_string());
                return;
            }
            Spec::Unit(_) => return,
            spec if spec.is_absent() => There::Nothing,
            Spec::Directory(_) => There::Directory,
            Spec::File(_) => There::File,
        };
        self.is_there(&resource.key, there);
    }

    /// At the place of this there would be that.
    pub(super) fn is_there(&mut self, key: &ResourceKey, there: There) {
        let Some(path) = key.path() else { return };
        let place = self.place(path);
        let fresh = !matches!(self.places.get(&place), Some(There::Directory))
            && (self.places.contains_key(&place) || !self.is_directory(path));
        if there == There::Directory && fresh {
            self.made.insert(place.clone());
        }
        self.places.insert(place, there);
        if is_unit_file(key) && there != There::Directory {
            let name = path.as_str().rsplit_once('/').map_or("", |(_, name)| name);
            self.unit_files.insert(name.to_owned(), (key.to_string(), there));
        }
        if there == There::Nothing && !self.is_cleared {
            self.gone.insert(path.as_str().to_owned());
        }
    }

    /// Packages were changed by what left.
    pub(super) fn packages_move(&mut self, key: &str) {
        self.packages.get_or_insert_with(|| key.to_owned());
    }

    fn is_directory(&self, path: &DeclaredPath) -> bool {
        let found = self.site.walker.parent(path).ok().and_then(|(dir, name)| dir.look(name).ok());
        matches!(found, Some(Found::Directory(_)))
    }

    /// What is in the way of what is declared has left; what leaves from here on was looked at before.
    pub(super) fn is_cleared(&mut self) {
        self.is_cleared = true;
    }

    /// Whether what was looked at here, or above it, is not there any more when it is looked at in earnest.
    pub(super) fn made_way_for(&self, path: &DeclaredPath) -> bool {
        let path = path.as_str();
        !self.gone.is_empty()
            && (self.gone.contains(path)
                || path.match_indices('/').any(|(end, _)| self.gone.contains(path.get(..end).unwrap_or(""))))
    }

    /// The first package that would have been changed by now.
    pub(super) fn packages(&self) -> Option<&str> {
        self.packages.as_deref()
    }

    /// The file that would have made, changed or removed this unit.
    pub(super) fn file_of(&self, unit: &UnitName) -> Option<(&str, There)> {
        let name = unit.as_str();
        // `a@b.service` is made by the file of `a@.service`.
        let template = name
            .split_once('@')
            .and_then(|(before, after)| Some(format!("{before}@.{}", after.rsplit_once('.')?.1)));
        let of = |name: &str| self.unit_files.get(name).map(|(key, there)| (key.as_str(), *there));
        of(name).or_else(|| of(&template?))
    }

    /// Whether what is at `path` would be gone by now.
    pub(super) fn is_gone(&self, path: &DeclaredPath) -> bool {
        self.places.get(&self.place(path)) == Some(&There::Nothing)
    }

    /// The file that would lie by now where a directory above `path` was.
    pub(super) fn file_above(&self, path: &DeclaredPath) -> Option<String> {
        let place = self.place(path);
        let mut above = place.match_indices('/').filter_map(|(end, _)| place.get(..end));
        above.find(|above| self.places.get(*above) == Some(&There::File)).map(str::to_owned)
    }

    /// What stands in the way to `path`, if anything would.
    pub(super) fn way(&self, path: &DeclaredPath) -> Option<Trouble> {
        let place = self.place(path);
        let parent = place.rsplit_once('/').map_or("", |(parent, _)| parent);
        if self.places.get(parent) == Some(&There::Directory) {
            return None;
        }
        let mut above = place.match_indices('/').filter_map(|(end, _)| place.get(..end));
        match above.find_map(|above| Some((above, *self.places.get(above)?)).filter(is_barred)) {
            // Which of the two is put there first decides what stands in the other's way.
            Some((file, There::File)) => {
                let reason = format!(
                    "{file} is declared to be a file, and this lies below it; declare one of the two"
                );
                Some(Trouble::unknown("below_a_file", reason))
            }
            Some((gone, There::Nothing | There::Directory)) => Some(missing(gone)),
            // A directory was made where none was before, so that there is nothing in it yet.
            None if self.is_made_above(&place) => Some(missing(parent)),
            None => Some(self.by_link(path, self.site.way(path).err()?)),
        }
    }

    /// What stands in the way, unless a link on it leads to what is changed before: then nobody follows it ahead.
    pub(super) fn by_link(&self, path: &DeclaredPath, trouble: Trouble) -> Trouble {
        let barred = trouble.code.starts_with("parent_") && !self.places.is_empty();
        if barred && self.has_link(path) { hanging() } else { trouble }
    }

    /// Whether a directory above this place is one that is made in this pass.
    fn is_made_above(&self, place: &str) -> bool {
        let mut above = place.match_indices('/').filter_map(|(end, _)| place.get(..end));
        above.any(|above| self.made.contains(above))
    }

    /// Whether there is a link on the way.
    fn has_link(&self, path: &DeclaredPath) -> bool {
        let is_link = |above: &str| {
            let above = DeclaredPath::new(above).ok()?;
            let (dir, name) = self.site.walker.parent(&above).ok()?;
            dir.look(name).ok().map(|found| matches!(found, Found::Link { .. }))
        };
        let path = path.as_str();
        let mut above = path.match_indices('/').filter_map(|(end, _)| path.get(..end));
        above.any(|above| is_link(above) == Some(true))
    }

    /// How many entries the directory at `path` would hold; none: nobody can look.
    pub(super) fn entries(&self, path: &DeclaredPath) -> Option<usize> {
        let (dir, name) = self.site.walker.parent(path).ok()?;
        let names = dir.names(name, MOST_COUNTED + 1).ok()?;
        let place = self.place(path);
        let at = |name: &String| self.places.get(&format!("{place}/{name}"));
        let stay = names.iter().filter(|name| at(name) != Some(&There::Nothing)).count();
        let here: HashSet<&str> = names.iter().map(String::as_str).collect();
        let fresh = self.places.iter().filter(|(at, there)| {
            let new = at.strip_prefix(&place).and_then(|rest| rest.strip_prefix('/'));
            **there != There::Nothing && new.is_some_and(|new| !new.contains('/') && !here.contains(new))
        });
        Some(stay + fresh.count())
    }

    /// The path as the walk reads it, links resolved. Where the way is barred it counts as it is written.
    fn place(&self, path: &DeclaredPath) -> String {
        match self.site.walker.reach(path) {
            Ok((dir, rest)) => format!("{}/{rest}", dir.name()),
            Err(_) => path.as_str().to_owned(),
        }
    }
}

/// Nothing can be put below it.
fn is_barred((_, there): &(&str, There)) -> bool {
    *there != There::Directory
}

fn hanging() -> Trouble {
    let reason = "a link on the way leads to what cannot be reached now, and something is changed before it";
    Trouble::unknown("link_leads_nowhere", reason)
}

fn missing(parent: &str) -> Trouble {
    Trouble::failed(
        "parent_missing",
        format!("the directory {parent} does not exist; declare it as a directory"),
    )
}
