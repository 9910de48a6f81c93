//! Some resources of a declaration that was read whole before, without the rest being read again.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::value::RawValue;

use super::{Declaration, DeclarationError, Entry, Header, entry, order, unreadable};
use crate::resource::ResourceKey;

impl Declaration {
    /// [`Declaration::parse`], with where each of the entries stands in `bytes`.
    pub fn parse_placed(bytes: &[u8]) -> Result<(Self, Vec<Range<usize>>), DeclarationError> {
        let (header, resources) = super::open(bytes)?;
        let entries: Vec<Entry> = resources.iter().map(|raw| entry(raw)).collect::<Result<_, _>>()?;
        let order = order::order(&entries)?;
        let begin = bytes.as_ptr().addr();
        let place = |raw: &&RawValue| {
            let from = raw.get().as_ptr().addr().saturating_sub(begin);
            from..from.saturating_add(raw.get().len())
        };
        let places = resources.iter().map(place).collect();
        Ok((Self { header, entries, order }, places))
    }

    /// A declaration of these resources alone, each as it stands in the bytes of one that was parsed before, and in that
    /// one's order. What they need of the others is left out: the caller knows that it is as declared. Refused like a
    /// whole one.
    pub fn of_part<'b>(
        header: Header,
        resources: impl Iterator<Item = &'b [u8]>,
    ) -> Result<Self, DeclarationError> {
        let read = |bytes| serde_json::from_slice::<&RawValue>(bytes).map_err(|error| unreadable(&error));
        let entries = resources.map(|bytes| entry(read(bytes)?));
        let mut entries: Vec<Entry> = entries.collect::<Result<_, _>>()?;
        let here: HashSet<ResourceKey> = Self::known(&entries).map(|resource| resource.key.clone()).collect();
        for entry in &mut entries {
            if let Entry::Known(resource) = entry {
                resource.needs.retain(|need| here.contains(need));
            }
        }
        let order = order::order(&entries)?;
        Ok(Self { header, entries, order })
    }
}
