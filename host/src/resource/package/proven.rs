//! The machine's package sources as apt itself reads them, without the words that let them go unsigned. A transaction
//! that touches the host's own package is run with these alone: apt then believes only what it has verified, whatever the
//! machine's configuration allows (S-13).

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tenure_protocol::id::EventId;

use super::Trouble;

/// Such sources, in a file that is there as long as this is.
#[derive(Debug)]
pub(super) struct Proven {
    file: PathBuf,
}

/// What is asked of each list of packages that apt has: where it comes from.
pub(super) const FORMAT: &str = "$(REPO_URI) $(RELEASE) $(COMPONENT)";

impl Proven {
    /// Of what apt says of its lists in [`FORMAT`]; written into `folder`.
    pub(super) fn write(targets: &str, folder: &Path) -> Result<Self, Trouble> {
        let file = folder.join(format!("sources-{}.list", EventId::random()));
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&file);
        let proven = Self { file };
        opened.and_then(|mut open| open.write_all(sources(targets).as_bytes())).map_err(|error| {
            let reason = format!(
                "the sources that {} is taken from could not be written to {}: {error}; nothing was changed, and it is \
                 tried again by the next pass",
                super::OWN_PACKAGE,
                proven.file.display()
            );
            Trouble::failed("sources_unwritable", reason)
        })?;
        Ok(proven)
    }

    /// The options by which apt uses these and no others. Its caches are of the machine's own sources, and stay so.
    pub(super) fn options(&self) -> Vec<String> {
        let list = format!("Dir::Etc::SourceList={}", self.file.display());
        let rest = ["Dir::Etc::SourceParts=/dev/null", "Dir::Cache::pkgcache=", "Dir::Cache::srcpkgcache="];
        [list].into_iter().chain(rest.map(str::to_owned)).flat_map(|set| ["-o".to_owned(), set]).collect()
    }
}

impl Drop for Proven {
    fn drop(&mut self) {
        // It lies in a directory that goes with the host's run.
        let _ = std::fs::remove_file(&self.file);
    }
}

/// A line for each source; one that cannot be written so is left out, and nothing is taken from it.
fn sources(targets: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    // Of two that have the same version apt takes the first.
    for line in targets.lines().filter_map(source) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.concat()
}

fn source(target: &str) -> Option<String> {
    let words: Vec<&str> = target.split_ascii_whitespace().collect();
    let [uri, release, component] = words[..] else { return None };
    // A source without components has none to name.
    let component = if component.starts_with("$(") { String::new() } else { format!(" {component}") };
    // With one of these a word would be read as something else than a word.
    let plain = |word: &str| !word.contains(['[', ']', '"', '\'', '#']);
    [uri, release, &component].into_iter().all(plain).then(|| format!("deb {uri} {release}{component}\n"))
}

#[cfg(test)]
mod tests;
