//! pacman's directory of packages: one entry for each that is installed, with what it is and the files it has brought.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use super::super::dpkg::{Package, PackageState};
use super::super::{Packages, Tools, Trouble, meaning};
use crate::ground::own::is_part_of_the_host;

const LOCAL: &str = "/var/lib/pacman/local";

/// Whether there is any package.
pub(in super::super) fn holds_packages(tools: &Tools<'_>) -> Result<bool, Trouble> {
    match entries(tools) {
        Ok(entries) => Ok(!entries.is_empty()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(unread(LOCAL, &error)),
    }
}

/// What is installed. `held` and `groups`: what the operator told pacman to leave as it is.
pub(super) fn read(tools: &Tools<'_>, held: &[String], groups: &[String]) -> Result<Arc<Packages>, Trouble> {
    let mut by_name: BTreeMap<String, Vec<Package>> = BTreeMap::new();
    for entry in entries(tools).map_err(|error| unread(LOCAL, &error))? {
        let place = format!("{LOCAL}/{entry}");
        let (name, package) = match std::fs::read(tools.at(&place).join("desc")) {
            Ok(bytes) => described(&String::from_utf8_lossy(&bytes), held, groups)
                .or_else(|| half(&entry))
                .ok_or_else(|| {
                Trouble::unknown("could_not_look", format!("{place} is no package that can be read"))
            })?,
            // It went while it was read, or was never written.
            Err(error) if error.kind() == ErrorKind::NotFound => match half(&entry) {
                Some(half) if tools.at(&place).is_dir() => half,
                Some(_) | None => continue,
            },
            Err(error) => return Err(unread(&place, &error)),
        };
        by_name.entry(name).or_default().push(package);
    }
    if by_name.is_empty() {
        return Err(meaning::holds_none(LOCAL, "pacman -Q"));
    }
    for packages in by_name.values_mut().filter(|packages| packages.len() > 1) {
        let versions: Vec<&str> = packages.iter().map(|package| &*package.version).collect();
        let word = format!("there twice, at {}", versions.join(" and at "));
        packages.iter_mut().for_each(|package| {
            (package.state, package.word) = (PackageState::Broken, word.as_str().into());
        });
    }
    let all = by_name.into_iter().flat_map(|(name, all)| all.into_iter().map(move |one| (name.clone(), one)));
    Ok(Arc::new(all.collect()))
}

/// The first of these packages that owns a file of the host's, and the file, in words.
pub(super) fn of_the_hosts_files(tools: &Tools<'_>, names: &[&str]) -> Result<Option<String>, String> {
    if names.is_empty() {
        return Ok(None);
    }
    let names: BTreeSet<&str> = names.iter().copied().collect();
    let unread = |error: std::io::Error| format!("{LOCAL} cannot be read: {error}");
    for entry in entries(tools).map_err(unread)? {
        let Some((name, _)) = half(&entry).filter(|(name, _)| names.contains(name.as_str())) else {
            continue;
        };
        let files = match std::fs::read(tools.at(LOCAL).join(&entry).join("files")) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(format!("{LOCAL}/{entry}/files cannot be read: {error}")),
        };
        // Paths are written without the first slash.
        let mut paths = files.lines().map(|line| format!("/{line}"));
        if let Some(path) = paths.find(|path| is_part_of_the_host(path)) {
            return Ok(Some(format!("{name} has brought {path}")));
        }
    }
    Ok(None)
}

/// The directories of packages; beside them lies a file that says which form they have.
fn entries(tools: &Tools<'_>) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(tools.at(LOCAL))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            names.extend(entry.file_name().into_string());
        }
    }
    names.sort();
    Ok(names)
}

/// `NAME-VERSION-RELEASE`, of which nothing more is known.
fn half(entry: &str) -> Option<(String, Package)> {
    let (rest, release) = entry.rsplit_once('-')?;
    let (name, version) = rest.rsplit_once('-')?;
    let whole = Package::installed(format!("{version}-{release}"), String::new());
    let package = Package { state: PackageState::Broken, word: "without a description".into(), ..whole };
    Some((name.to_owned(), package))
}

fn described(text: &str, held: &[String], groups: &[String]) -> Option<(String, Package)> {
    let fields = fields(text);
    let one =
        |field: &str| fields.get(field).and_then(|values| values.first()).map(|value| (*value).to_owned());
    let (name, version) = (one("NAME")?, one("VERSION")?);
    let of = |field: &str| fields.get(field).into_iter().flatten();
    let hold = held.iter().any(|held| is_like(&name, held))
        || of("GROUPS").any(|group| groups.iter().any(|held| is_like(group, held)));
    let whole = Package::installed(version, one("ARCH").unwrap_or_default());
    let brought = one("INSTALLDATE").and_then(|seconds| seconds.parse().ok());
    Some((name, Package { hold, brought, ..whole }))
}

/// `%FIELD%`, its values one a line, and an empty line.
fn fields(text: &str) -> BTreeMap<&str, Vec<&str>> {
    let (mut fields, mut field) = (BTreeMap::<&str, Vec<&str>>::new(), "");
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('%').and_then(|line| line.strip_suffix('%')) {
            field = name;
        } else if !line.is_empty() {
            fields.entry(field).or_default().push(line);
        }
    }
    fields
}

/// Whether the operator's pattern means this name; what is not plain in a pattern is read as widely as it may be meant.
fn is_like(name: &str, pattern: &str) -> bool {
    match pattern.split_once(['*', '?', '[']) {
        Some((begin, _)) => name.starts_with(begin),
        None => name == pattern,
    }
}

fn unread(place: &str, error: &std::io::Error) -> Trouble {
    let place = Path::new(place).display();
    Trouble::unknown("could_not_look", format!("{place} cannot be read: {error}"))
}

#[cfg(test)]
mod tests;
