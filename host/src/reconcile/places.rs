//! Which declared resources reach the same place. Links among the directories give one thing several paths: `/lib/x` and
//! `/usr/lib/x`, `/var/run/x` and `/run/x`. Two declared paths of one place contradict each other, so the second is
//! refused by name; and what leaves under one spelling while it is declared under another has not left at all: its record
//! goes on under the new key. It changes nothing on the machine. Called by the pass and by the preview.

use std::collections::HashMap;

use tenure_protocol::declaration::{Declaration, Entry};
use tenure_protocol::path::DeclaredPath;
use tenure_protocol::resource::{Resource, ResourceKey};

use super::leave::nothing_leaves;
use super::plan::Sight;
use crate::ground::own::Inode;
use crate::resource::{Site, Trouble};
use crate::store::Record;

/// A place: the deepest directory on the way that is there, and the names from it on.
type Place = (Inode, String);

/// The places of a declaration.
pub(super) struct Places<'a> {
    first: HashMap<Place, &'a Resource>,
    /// By position: what reaches a place that an earlier one has.
    twice: Vec<(usize, &'a ResourceKey)>,
}

impl<'a> Places<'a> {
    pub(super) fn of(site: &Site<'_>, declaration: &'a Declaration) -> Self {
        let (mut first, mut twice) = (HashMap::<_, &Resource>::new(), Vec::new());
        for (at, entry) in declaration.entries.iter().enumerate() {
            let Entry::Known(resource) = entry else { continue };
            let Some(place) = resource.key.path().and_then(|path| reached(site, path)) else { continue };
            match first.get(&place) {
                Some(other) => twice.push((at, &other.key)),
                None => drop(first.insert(place, resource)),
            }
        }
        Self { first, twice }
    }

    /// What is declared to be where this record's thing is, under whatever path.
    pub(super) fn holder(&self, site: &Site<'_>, key: &ResourceKey) -> Option<&'a ResourceKey> {
        let resource = self.first.get(&reached(site, key.path()?)?)?;
        (!resource.spec.is_absent() && resource.key.kind() == key.kind()).then_some(&resource.key)
    }

    /// Makes the second path of a place a refusal.
    pub(super) fn refuse_second(&self, sights: &mut [Option<Result<Sight, Trouble>>]) {
        for (at, other) in &self.twice {
            if let Some(sight) = sights.get_mut(*at) {
                *sight = Some(Err(Trouble::same_place(other)));
            }
        }
    }

    /// Lets the records of what is only spelt in another way go on under their new keys. Returns those, and the keys
    /// they had.
    pub(super) fn respell(
        &self,
        site: &Site<'_>,
        declaration: &Declaration,
        records: &mut HashMap<String, Record>,
    ) -> (Vec<Record>, Vec<String>) {
        if nothing_leaves(records, declaration) {
            return (Vec::new(), Vec::new());
        }
        let declared: std::collections::HashSet<String> =
            declaration.entries.iter().map(Entry::key).collect();
        let moved: Vec<(String, String)> = records
            .keys()
            .filter(|key| !declared.contains(*key))
            .filter_map(|old| Some((old.clone(), self.holder(site, &old.parse().ok()?)?.to_string())))
            .filter(|(_, new)| !records.contains_key(new))
            .collect();
        let (mut ours, mut no_longer) = (Vec::new(), Vec::new());
        for (old, new) in moved {
            let Some(record) = records.remove(&old) else { continue };
            let record = Record { key: new.clone(), ..record };
            records.insert(new, record.clone());
            ours.push(record);
            no_longer.push(old);
        }
        (ours, no_longer)
    }
}

/// None where the way there is barred: then nothing is done there either.
fn reached(site: &Site<'_>, path: &DeclaredPath) -> Option<Place> {
    let (dir, rest) = site.walker.reach(path).ok()?;
    Some((dir.inode(), rest.to_owned()))
}
