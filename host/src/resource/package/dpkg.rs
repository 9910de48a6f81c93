//! Reads dpkg's own database: what is installed, at which version, and in which state. State is read here and never
//! from an exit code. Pure; the bytes are read by the adapter.

use std::collections::BTreeMap;

/// What dpkg says of its packages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::resource) struct Packages {
    by_name: BTreeMap<String, Vec<Package>>,
}

/// One package as dpkg knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Package {
    /// Its architecture.
    pub(super) architecture: String,
    /// Its version; empty when dpkg only knows the name.
    pub(super) version: String,
    /// What it is to become.
    pub(super) hold: bool,
    /// What it is.
    pub(super) state: PackageState,
    /// dpkg's own word for that.
    pub(super) word: String,
}

/// How far a package is. Only one of these counts as installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PackageState {
    /// Unpacked and configured.
    Installed,
    /// Not here; at most its configuration is.
    Gone,
    /// Begun and not finished: unpacked, half-installed, half-configured, or waiting for triggers.
    Broken,
}

impl Package {
    /// It was being unpacked: it cannot be configured, only unpacked anew.
    pub(super) fn is_half_unpacked(&self) -> bool {
        self.state == PackageState::Broken && self.word == "half-installed"
    }
}

/// The database is not one that can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("dpkg's database has a paragraph that cannot be read, near `{near}`")]
pub(super) struct Unreadable {
    near: String,
}

impl Packages {
    /// Reads the text of `/var/lib/dpkg/status`.
    pub(super) fn parse(status: &str) -> Result<Self, Unreadable> {
        let mut packages = Self::default();
        for paragraph in
            status.split("\n\n").map(|paragraph| paragraph.trim_matches('\n')).filter(|p| !p.is_empty())
        {
            let (name, package) = read(paragraph)?;
            packages.by_name.entry(name).or_default().push(package);
        }
        Ok(packages)
    }

    /// What `newer` says of a package replaces what is said here of it.
    pub(super) fn overlay(&mut self, newer: Self) {
        for (name, packages) in newer.by_name {
            let known = self.by_name.entry(name).or_default();
            known.retain(|old| packages.iter().all(|new| new.architecture != old.architecture));
            known.extend(packages);
        }
    }

    /// The package of this name that counts: the native one, of several architectures the one that is installed.
    pub(super) fn get(&self, name: &str) -> Option<&Package> {
        let known = self.by_name.get(name)?;
        known.iter().find(|package| package.state != PackageState::Gone).or_else(|| known.first())
    }

    /// What is begun and not finished, by name; waiting for triggers is not meant, which a transaction settles.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = (&str, &Package)> {
        let all = self.by_name.iter().flat_map(|(name, known)| known.iter().map(|one| (name.as_str(), one)));
        all.filter(|(_, one)| one.state == PackageState::Broken && !one.word.starts_with("triggers-"))
    }

    /// The version of an installed package; none when it is gone or not whole.
    pub(super) fn installed(&self, name: &str) -> Option<&str> {
        self.get(name)
            .filter(|package| package.state == PackageState::Installed)
            .map(|package| package.version.as_str())
    }
}

fn read(paragraph: &str) -> Result<(String, Package), Unreadable> {
    let unreadable = || Unreadable {
        near: tenure_protocol::text::shown(paragraph.lines().next().unwrap_or_default(), 60),
    };
    let (mut name, mut status, mut version, mut architecture) = (None, None, "", "");
    for line in paragraph.lines().filter(|line| !line.starts_with([' ', '\t'])) {
        let (field, value) = line.split_once(':').ok_or_else(unreadable)?;
        match field {
            "Package" => name = Some(value.trim()),
            "Status" => status = Some(value.trim()),
            "Version" => version = value.trim(),
            "Architecture" => architecture = value.trim(),
            _ => {}
        }
    }
    let (name, status) = name.zip(status).ok_or_else(unreadable)?;
    let words: Vec<&str> = status.split_ascii_whitespace().collect();
    let [want, flag, state] = words[..] else { return Err(unreadable()) };
    let word = state.to_owned();
    let state = match (flag, state) {
        ("ok", "installed") => PackageState::Installed,
        (_, "not-installed" | "config-files") => PackageState::Gone,
        _ => PackageState::Broken,
    };
    let package = Package {
        architecture: architecture.to_owned(),
        version: version.to_owned(),
        hold: want == "hold",
        state,
        word,
    };
    Ok((name.to_owned(), package))
}

#[cfg(test)]
mod tests;
