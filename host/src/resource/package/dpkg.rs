//! Reads dpkg's own database: what is installed, at which version, and in which state. State is read here and never
//! from an exit code. Pure; the bytes are read by the adapter.

use std::collections::HashMap;

/// What dpkg says of its packages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::resource) struct Packages {
    by_name: HashMap<Box<str>, Vec<Package>>,
    /// Nobody says the architecture with a name: rpm's and pacman's.
    by_name_alone: bool,
}

/// One package as dpkg knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Package {
    /// Its architecture.
    pub(super) architecture: Box<str>,
    /// Each architecture has one of its own, at one version: a name alone means the machine's (`Multi-Arch: same`).
    pub(super) beside_others: bool,
    /// Its version; empty when dpkg only knows the name.
    pub(super) version: Box<str>,
    /// What it is to become.
    pub(super) hold: bool,
    /// What it is.
    pub(super) state: PackageState,
    /// dpkg's own word for that.
    pub(super) word: Box<str>,
    /// When it was brought, in seconds since 1970; dpkg does not say.
    pub(super) brought: Option<i64>,
}

/// How far a package is. Only one of these counts as installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PackageState {
    /// Unpacked and configured. What its triggers have to do may be left to do: it can be used.
    Installed,
    /// Not here; at most its configuration is.
    Gone,
    /// Begun and not finished: unpacked, half-installed, half-configured, or waiting for another's triggers.
    Broken,
}

impl Package {
    /// It was being unpacked: it cannot be configured, only unpacked anew.
    pub(super) fn is_half_unpacked(&self) -> bool {
        self.state == PackageState::Broken && &*self.word == "half-installed"
    }

    /// Something is left to do that dpkg puts off to the end of a transaction.
    fn has_triggers_due(&self) -> bool {
        self.word.starts_with("triggers-")
    }
}

/// The database is not one that can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("dpkg's database has a paragraph that cannot be read, near `{near}`")]
pub(super) struct Unreadable {
    near: String,
}

/// The name without the architecture that is said with it where it is not the machine's.
pub(super) fn bare(called: &str) -> &str {
    called.split_once(':').map_or(called, |(name, _)| name)
}

impl Packages {
    /// Reads the text of `/var/lib/dpkg/status`, or of one entry of dpkg's journal.
    pub(super) fn parse(status: &str) -> Result<Self, Unreadable> {
        let mut packages = Self::default();
        let mut rest = status.trim_start_matches('\n');
        while !rest.is_empty() {
            let (paragraph, after) = rest.split_once("\n\n").unwrap_or((rest, ""));
            let (name, package) = read(paragraph)?;
            match packages.by_name.get_mut(name) {
                Some(known) => known.push(package),
                None => drop(packages.by_name.insert(name.into(), vec![package])),
            }
            rest = after.trim_start_matches('\n');
        }
        Ok(packages)
    }

    /// Whether there is no package at all, which is so on no machine that works.
    pub(super) fn are_none(&self) -> bool {
        self.by_name.is_empty()
    }

    /// What `newer` says of a package replaces what is said here of it.
    pub(super) fn overlay(&mut self, newer: Self) {
        for (name, packages) in newer.by_name {
            let known = self.by_name.entry(name).or_default();
            known.retain(|old| packages.iter().all(|new| new.architecture != old.architecture));
            known.extend(packages);
        }
    }

    /// The package that a name alone means: the machine's own, or that of another architecture where there can be only
    /// one.
    pub(super) fn get(&self, name: &str) -> Option<&Package> {
        let known = self.by_name.get(name)?;
        let here = |package: &&Package| package.state != PackageState::Gone;
        let own = |package: &&Package| self.is_native(package);
        known
            .iter()
            .find(|package| here(package) && own(package))
            .or_else(|| known.iter().find(|package| here(package) && !package.beside_others))
            .or_else(|| known.iter().find(own))
            .or_else(|| known.iter().find(|package| !package.beside_others))
    }

    /// The package of this name that is installed at a version which `takes`, where a name alone means several; else
    /// the one that it means. One of another architecture is never meant in place of the machine's own.
    pub(super) fn pick(&self, name: &str, takes: impl Fn(&str) -> bool) -> Option<&Package> {
        if !self.by_name_alone {
            return self.get(name);
        }
        let known = self.by_name.get(name)?;
        let is_it = |one: &&Package| one.state == PackageState::Installed && takes(&one.version);
        known.iter().find(is_it).or_else(|| self.get(name))
    }

    /// One that is [called](Self::called) so.
    pub(super) fn get_called(&self, called: &str) -> Option<&Package> {
        if self.by_name_alone {
            // A name may have dots of its own.
            return self.get(called).or_else(|| {
                let (name, of) = called.rsplit_once('.')?;
                self.by_name.get(name)?.iter().find(|package| &*package.architecture == of)
            });
        }
        match called.split_once(':') {
            None => self.get(called),
            Some((name, of)) => self.by_name.get(name)?.iter().find(|package| &*package.architecture == of),
        }
    }

    /// What is there of a name, in whatever architecture, as package managers call each: the name alone where it is the
    /// machine's own.
    pub(super) fn here<'p>(&'p self, name: &'p str) -> impl Iterator<Item = (String, &'p Package)> {
        let known = self.by_name.get(name).map(Vec::as_slice).unwrap_or_default();
        let here = known.iter().filter(|package| package.state != PackageState::Gone);
        here.map(move |package| (self.called(name, package), package))
    }

    /// What is begun and not finished, as each is called; triggers are not meant, which a transaction settles.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = (String, &Package)> {
        let broken =
            self.all().filter(|(_, one)| one.state == PackageState::Broken && !one.has_triggers_due());
        broken.map(|(name, one)| (self.called(name, one), one))
    }

    /// Whether triggers are left to be settled.
    pub(super) fn have_triggers_due(&self) -> bool {
        self.all().any(|(_, one)| one.has_triggers_due())
    }

    /// The version of an installed package; none when it is gone or not whole.
    pub(super) fn installed(&self, called: &str) -> Option<&str> {
        let whole = self.get_called(called).filter(|package| package.state == PackageState::Installed);
        whole.map(|package| &*package.version)
    }

    /// Every package, by name; some names more than once.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &Package)> {
        self.by_name.iter().flat_map(|(name, known)| known.iter().map(|one| (&**name, one)))
    }

    /// What one of this architecture is called where architectures are not said with names: only beside the one that
    /// the name alone means it is `name.architecture`.
    pub(super) fn named(&self, name: &str, architecture: &str) -> String {
        let meant = self.get(name).is_none_or(|one| &*one.architecture == architecture);
        if meant { name.to_owned() } else { format!("{name}.{architecture}") }
    }

    fn called(&self, name: &str, package: &Package) -> String {
        if self.by_name_alone {
            return self.named(name, &package.architecture);
        }
        if self.is_native(package) { name.to_owned() } else { format!("{name}:{}", package.architecture) }
    }

    /// dpkg itself is of the machine's architecture; where it does not say which that is, all are.
    fn is_native(&self, package: &Package) -> bool {
        let of_dpkg = self.by_name.get("dpkg").and_then(|known| known.first());
        let own = self.by_name_alone || of_dpkg.is_none_or(|dpkg| dpkg.architecture == package.architecture);
        own || &*package.architecture == "all" || package.architecture.is_empty()
    }
}

impl FromIterator<(String, Package)> for Packages {
    /// Of several of one name the first counts.
    fn from_iter<T: IntoIterator<Item = (String, Package)>>(all: T) -> Self {
        let mut packages = Self { by_name_alone: true, ..Self::default() };
        for (name, package) in all {
            packages.by_name.entry(name.into_boxed_str()).or_default().push(package);
        }
        packages
    }
}

impl Package {
    /// One that is installed and whole.
    pub(super) fn installed(version: String, architecture: String) -> Self {
        Self {
            architecture: architecture.into_boxed_str(),
            beside_others: false,
            version: version.into_boxed_str(),
            hold: false,
            state: PackageState::Installed,
            word: "installed".into(),
            brought: None,
        }
    }
}

fn read(paragraph: &str) -> Result<(&str, Package), Unreadable> {
    let unreadable = || Unreadable {
        near: tenure_protocol::text::shown(paragraph.lines().next().unwrap_or_default(), 60),
    };
    let (mut name, mut status, mut version, mut architecture) = (None, None, "", "");
    let mut beside_others = false;
    for line in paragraph.lines().filter(|line| !line.starts_with([' ', '\t'])) {
        let (field, value) = line.split_once(':').ok_or_else(unreadable)?;
        match field {
            "Package" => name = Some(value.trim()),
            "Status" => status = Some(value.trim()),
            // dpkg writes its fields in one order, and this is the last of ours; what comes after is the most of it.
            "Version" => {
                version = value.trim();
                if !architecture.is_empty() {
                    break;
                }
            }
            "Architecture" => architecture = value.trim(),
            "Multi-Arch" => beside_others = value.trim() == "same",
            _ => {}
        }
    }
    let (name, status) = name.zip(status).ok_or_else(unreadable)?;
    let mut words = status.split_ascii_whitespace();
    let (Some(want), Some(flag), Some(word), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(unreadable());
    };
    let state = match (flag, word) {
        ("ok", "installed" | "triggers-pending") => PackageState::Installed,
        (_, "not-installed" | "config-files") => PackageState::Gone,
        _ => PackageState::Broken,
    };
    let package = Package {
        architecture: architecture.into(),
        beside_others,
        version: version.into(),
        hold: want == "hold",
        state,
        word: word.into(),
        brought: None,
    };
    Ok((name, package))
}

#[cfg(test)]
mod tests;
