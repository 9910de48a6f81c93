//! What a new rendering changes against the last declaration of a node, line by line, before anything is written.

use std::collections::BTreeMap;

use similar::TextDiff;
use tenure_protocol::declaration::{Declaration, Entry};
use tenure_protocol::id::{Digest, ModuleName};
use tenure_protocol::operator::{Change, ChangeKind};
use tenure_protocol::resource::{
    Content, DirectorySpec, FilePresent, FileSpec, Mode, PackageSpec, PackageWanted, Principal, Resource,
    ResourceKey, ResourceKind, Spec, UnitSpec,
};
use tenure_protocol::text::shown_line;

use super::edges;

/// Larger content is told by size and digest.
const MOST_DIFFED: u64 = 64 * 1024;
/// The most bytes of diff for one node; what comes after is told by size and digest.
const MOST_DIFF: usize = 256 * 1024;
/// A longer line of a diff is cut.
const MOST_LINE: usize = 400;

/// Every resource that is added, changed or leaves, by kind and path. `text` gives the bytes of a content, where they are
/// still known. Sensitive content is in none of it, not even by digest (S-19).
pub fn changes(
    before: Option<&Declaration>,
    after: &[Resource],
    text: &dyn Fn(Digest) -> Option<Vec<u8>>,
) -> Vec<Change> {
    let entries = before.map(|declaration| declaration.entries.as_slice()).unwrap_or_default();
    let mut old: BTreeMap<String, &Entry> = entries.iter().map(|entry| (entry.key(), entry)).collect();
    let mut sight = Sight { text, left: MOST_DIFF };
    let mut changes = Vec::new();
    for resource in after {
        let key = resource.key.to_string();
        let change = match old.remove(&key) {
            None => Some((ChangeKind::Add, sight.added(&resource.spec))),
            Some(Entry::Known(earlier)) => {
                let detail = sight.changed(earlier, resource);
                (!detail.is_empty()).then_some((ChangeKind::Change, detail))
            }
            Some(Entry::Unsupported(earlier)) => {
                Some((ChangeKind::Change, vec![format!("was not understood: {}", earlier.reason)]))
            }
        };
        if let Some((what, detail)) = change {
            changes.push(Change { key, module: resource.module.clone(), what, detail });
        }
    }
    changes.extend(old.into_iter().filter_map(|(key, entry)| leaves(key, entry)));
    changes.sort_by(|one, other| place_of(&one.key).cmp(&place_of(&other.key)).then(one.key.cmp(&other.key)));
    changes
}

/// Packages first, then by path, then units; what is of no known kind last.
fn place_of(key: &str) -> (u8, &str) {
    let (kind, name) = key.split_once(':').unwrap_or(("", key));
    let kind = ResourceKind::ALL.into_iter().find(|known| known.as_str() == kind);
    (kind.map_or(u8::MAX, edges::turn), name)
}

fn leaves(key: String, entry: &Entry) -> Option<Change> {
    let module = match entry {
        Entry::Known(resource) => resource.module.clone(),
        Entry::Unsupported(unsupported) => ModuleName::new(&unsupported.module).ok()?,
    };
    let detail = vec!["removed if we created it, else released and left as it is".to_owned()];
    Some(Change { key, module, what: ChangeKind::Leave, detail })
}

/// What may be looked at, and how much of it is left to be shown.
struct Sight<'a> {
    text: &'a dyn Fn(Digest) -> Option<Vec<u8>>,
    left: usize,
}

impl Sight<'_> {
    fn added(&mut self, spec: &Spec) -> Vec<String> {
        match spec {
            Spec::Package(PackageSpec { wanted: PackageWanted::Absent, .. })
            | Spec::Directory(DirectorySpec { present: None, .. })
            | Spec::File(FileSpec { present: None, .. }) => {
                vec!["should be gone".to_owned()]
            }
            Spec::Package(new) => vec![format!("version {}", new.wanted)],
            Spec::Directory(DirectorySpec { present: Some(new), .. }) => {
                vec![access(new.mode, &new.owner, &new.group)]
            }
            Spec::File(FileSpec { present: Some(new), .. }) => self.added_file(new),
            Spec::Unit(new) => added_unit(new),
        }
    }

    fn added_file(&mut self, new: &FilePresent) -> Vec<String> {
        let mut detail = vec![access(new.mode, &new.owner, &new.group)];
        if new.create_once {
            detail.push("written once, where it is missing".to_owned());
        }
        if new.replace_link {
            detail.push("takes the place of a link, if there is one".to_owned());
        }
        if new.is_sensitive() {
            detail.push("content is sensitive and not shown".to_owned());
        } else {
            detail.push(format!("content {}", sized(&new.content)));
            detail.extend(self.diff(None, &new.content).unwrap_or_default());
        }
        detail
    }

    fn changed(&mut self, earlier: &Resource, now: &Resource) -> Vec<String> {
        let mut detail = Vec::new();
        differs(&mut detail, "module", &earlier.module, &now.module);
        lists_differ(&mut detail, "needs", &earlier.needs, &now.needs);
        match (earlier.spec.is_absent(), now.spec.is_absent()) {
            (true, true) => {}
            (false, true) => detail.push("present → should be gone".to_owned()),
            (true, false) => {
                detail.push("should be gone → present".to_owned());
                detail.extend(self.added(&now.spec));
            }
            (false, false) => self.changed_spec(&mut detail, &earlier.spec, &now.spec),
        }
        detail
    }

    /// Both should be there.
    fn changed_spec(&mut self, detail: &mut Vec<String>, earlier: &Spec, now: &Spec) {
        match (earlier, now) {
            (Spec::Package(old), Spec::Package(new)) => differs(detail, "version", &old.wanted, &new.wanted),
            (
                Spec::Directory(DirectorySpec { present: Some(old), .. }),
                Spec::Directory(DirectorySpec { present: Some(new), .. }),
            ) => {
                differs(detail, "mode", &old.mode, &new.mode);
                differs(detail, "owner", &old.owner, &new.owner);
                differs(detail, "group", &old.group, &new.group);
            }
            (
                Spec::File(FileSpec { present: Some(old), .. }),
                Spec::File(FileSpec { present: Some(new), .. }),
            ) => self.changed_file(detail, old, new),
            (Spec::Unit(old), Spec::Unit(new)) => changed_unit(detail, old, new),
            // A key says its kind, so both are of one kind.
            (Spec::Package(_) | Spec::Directory(_) | Spec::File(_) | Spec::Unit(_), _) => {
                detail.extend(self.added(now));
            }
        }
    }

    fn changed_file(&mut self, detail: &mut Vec<String>, old: &FilePresent, new: &FilePresent) {
        differs(detail, "mode", &old.mode, &new.mode);
        differs(detail, "owner", &old.owner, &new.owner);
        differs(detail, "group", &old.group, &new.group);
        differs(detail, "create_once", &old.create_once, &new.create_once);
        differs(detail, "replace_link", &old.replace_link, &new.replace_link);
        differs(detail, "sensitive", &old.sensitive, &new.sensitive);
        if old.content == new.content {
            return;
        }
        if old.is_sensitive() || new.is_sensitive() {
            detail.push("content changes, is sensitive and not shown".to_owned());
            return;
        }
        detail.push(format!("content {} → {}", sized(&old.content), sized(&new.content)));
        detail.extend(self.diff(Some(&old.content), &new.content).unwrap_or_default());
    }

    /// A unified diff; none where one of the two is not text, too large or not known any more, or where enough was
    /// shown already.
    fn diff(&mut self, old: Option<&Content>, new: &Content) -> Option<Vec<String>> {
        let old = match old {
            Some(old) => self.plain(old)?,
            None => String::new(),
        };
        let new = self.plain(new)?;
        let diff = TextDiff::from_lines(&old, &new);
        let text = diff.unified_diff().context_radius(3).to_string();
        self.left = self.left.checked_sub(text.len())?;
        // Where a line ends otherwise, that is the change: it is shown.
        Some(text.split_terminator('\n').map(|line| shown_line(line, MOST_LINE)).collect())
    }

    fn plain(&self, content: &Content) -> Option<String> {
        if content.size > MOST_DIFFED || self.left == 0 {
            return None;
        }
        let bytes = (self.text)(content.sha256)?;
        String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
    }
}

fn differs<T: PartialEq + ToString>(detail: &mut Vec<String>, field: &str, old: &T, new: &T) {
    if old != new {
        detail.push(format!("{field} {} → {}", old.to_string(), new.to_string()));
    }
}

fn lists_differ(detail: &mut Vec<String>, field: &str, old: &[ResourceKey], new: &[ResourceKey]) {
    if old != new {
        detail.push(format!("{field} {} → {}", listed(old), listed(new)));
    }
}

fn listed(keys: &[ResourceKey]) -> String {
    match keys {
        [] => "nothing".to_owned(),
        keys if keys.len() <= 5 => keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        keys => format!("{} resources", keys.len()),
    }
}

fn added_unit(new: &UnitSpec) -> Vec<String> {
    let states = [("enabled", new.enabled), ("running", new.running), ("masked", new.masked)];
    let states = states.into_iter().filter_map(|(field, state)| Some(format!("{field} {}", state?)));
    let triggers = [("restart_on", &new.restart_on), ("reload_on", &new.reload_on)];
    let triggers = triggers.into_iter().filter(|(_, keys)| !keys.is_empty());
    states.chain(triggers.map(|(field, keys)| format!("{field} {}", listed(keys)))).collect()
}

fn changed_unit(detail: &mut Vec<String>, old: &UnitSpec, new: &UnitSpec) {
    let word = |state: Option<bool>| state.map_or_else(|| "left as it is".to_owned(), |on| on.to_string());
    differs(detail, "enabled", &word(old.enabled), &word(new.enabled));
    differs(detail, "running", &word(old.running), &word(new.running));
    differs(detail, "masked", &word(old.masked), &word(new.masked));
    lists_differ(detail, "restart_on", &old.restart_on, &new.restart_on);
    lists_differ(detail, "reload_on", &old.reload_on, &new.reload_on);
}

fn access(mode: Mode, owner: &Principal, group: &Principal) -> String {
    format!("mode {mode}, owner {owner}, group {group}")
}

fn sized(content: &Content) -> String {
    format!("{} bytes ({})", content.size, content.sha256.short())
}

#[cfg(test)]
mod tests;
