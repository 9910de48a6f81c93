//! What lay at each declared path when it was last looked at, and what was read of it. What the kernel says of a file
//! tells whether it was changed since, so that an unchanged one need not be read again: its change time moves with each
//! change of content, owner, mode, attributes or names, and nobody can set it. Three things are not believed: a change
//! time so young that a second change could have fallen into it, one that lies ahead of the clock, and those of file
//! systems that keep none. What is written through a shared memory map moves it only when the kernel writes the page
//! back; what such a writer hides is found when everything is read.
//!
//! It decides nothing. Passes keep it; [`super::Site::look`] asks it.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use tenure_protocol::id::{Digest, Millis};
use tenure_protocol::path::DeclaredPath;

use super::Seen;
use crate::ground::own::{Inode, Touch, is_place_of_units};
use crate::walk::read::{Found, Stat};
use crate::walk::{Dir, Walker};

/// Everything that was seen, by path. It is kept for as long as the machine stands still, so it is few pieces of memory.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct Recall {
    /// By path.
    places: Vec<Place>,
    /// Those of each place together, by name.
    things: Vec<Thing>,
    /// Every path and name.
    text: String,
}

/// A stretch of the text.
type Text = std::ops::Range<usize>;

/// A directory in which declared things lie.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Place {
    /// As the declaration spells it.
    path: Text,
    /// The deepest directory on the way that was there, by its number and by its path with links resolved.
    inode: Inode,
    resolved: Text,
    /// Whether the change times of what lies in it can be believed.
    keeps_times: bool,
    /// How much of the path that is.
    reached: usize,
    /// Which of the things lie in it.
    things: std::ops::Range<usize>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Thing {
    name: Text,
    lay: Lay,
    /// Which entry of the declaration it is.
    entry: u32,
}

/// What lay there.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Lay {
    /// What it was is not known, or not for certain: whoever asks has to look.
    Unsure,
    /// Something whose content was not read.
    Unread(Found),
    /// A file that was read whole.
    Read {
        stat: Stat,
        sha256: Digest,
        /// Whether the kernel would tell if it were another by now.
        settled: bool,
    },
}

/// Whether a file is read that is as it was by all that the kernel says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Every one is.
    Whole,
    /// Only those are of which the kernel would not tell.
    WhatMayHaveChanged,
}

/// What was changed this long ago is not changed again under the same change time: a tick of the kernel's clock is at
/// most ten milliseconds, ext3's change times whole seconds, and pages of shared memory maps are written back within
/// half a minute, after which the next write moves it.
const SETTLED_AFTER: i64 = 60;

/// Whether the kernel would tell by now if what was last changed in this second were changed once more.
pub(super) const fn is_settled(changed: i64, now: Millis) -> bool {
    changed.saturating_add(SETTLED_AFTER) <= now.0 / 1_000
}

/// So many things are looked at before the next are claimed, and before it is said how many.
const SHARE: usize = 64;
/// Below this many, starting a thread costs more than it saves; and where each of them is read.
const WORTH_A_THREAD: usize = 1_024;
const WORTH_A_THREAD_READ: usize = 256;
const MOST_THREADS: usize = 4;

/// One declared thing: its path, which entry it is, and what was seen of it, if somebody could look.
pub(crate) type Sighted<'s> = (&'s DeclaredPath, u32, Option<&'s Seen>);

impl Recall {
    /// What was seen of these paths, by a walk that began at `now`.
    pub(crate) fn of<'s>(walker: &Walker<'_>, now: Millis, seen: impl Iterator<Item = Sighted<'s>>) -> Self {
        let parts = |(path, entry, seen): Sighted<'s>| {
            let (directory, name) = split(path);
            (directory, name, entry, seen)
        };
        let mut seen: Vec<Part<'_>> = seen.map(parts).collect();
        seen.sort_unstable_by_key(|(directory, name, ..)| (*directory, *name));
        let mut recall = Self { things: Vec::with_capacity(seen.len()), ..Self::default() };
        for things in seen.chunk_by(|(a, ..), (b, ..)| a == b) {
            recall.add(walker, things);
        }
        recall.text.shrink_to_fit();
        recall.settle(now);
        recall
    }

    /// Adds what was seen in one directory; nothing where the way there is barred: nothing was seen there either.
    fn add(&mut self, walker: &Walker<'_>, seen: &[Part<'_>]) {
        let Some((path, ..)) = seen.first() else { return };
        let Ok((dir, reached)) = walker.deepest(path) else { return };
        let first = self.things.len();
        for (_, name, entry, seen) in seen {
            let lay = seen.map_or(Lay::Unsure, Lay::of);
            let name = self.put(name);
            self.things.push(Thing { name, lay, entry: *entry });
        }
        let place = Place {
            path: self.put(path),
            inode: dir.inode(),
            resolved: self.put(dir.name()),
            keeps_times: reached.len() == path.len() && dir.keeps_times(),
            reached: reached.len(),
            things: first..self.things.len(),
        };
        self.places.push(place);
    }

    fn put(&mut self, text: &str) -> Text {
        let from = self.text.len();
        self.text.push_str(text);
        from..self.text.len()
    }

    fn text(&self, text: &Text) -> &str {
        self.text.get(text.clone()).unwrap_or_default()
    }

    fn things_of(&self, place: &Place) -> &[Thing] {
        self.things.get(place.things.clone()).unwrap_or_default()
    }

    /// Everything was found as it was by a look that began at `now`, and what may have changed was read.
    pub(crate) fn settle(&mut self, now: Millis) {
        let Self { places, things, .. } = self;
        for place in places {
            for thing in things.get_mut(place.things.clone()).unwrap_or_default() {
                if let Lay::Read { stat, settled, .. } = &mut thing.lay {
                    let (changed, _) = stat.changed;
                    *settled |=
                        place.keeps_times && stat.inode.dev == place.inode.dev && is_settled(changed, now);
                }
            }
        }
    }

    /// Whether it knows of everything what it was, and another process can be told.
    pub(crate) fn is_sure(&self) -> bool {
        let is_unsure = |thing: &Thing| matches!(thing.lay, Lay::Unsure | Lay::Unread(Found::Other { .. }));
        !self.things.iter().any(is_unsure)
    }

    /// How many paths it knows.
    pub(crate) const fn len(&self) -> usize {
        self.things.len()
    }

    /// The content of the file at `path`, if it was read before and is untouched since.
    pub(crate) fn content(&self, path: &DeclaredPath, now: &Stat) -> Option<Digest> {
        match &self.things.get(self.find(path)?)?.lay {
            Lay::Read { stat, sha256, settled: true } if stat == now => Some(*sha256),
            Lay::Read { .. } | Lay::Unread(_) | Lay::Unsure => None,
        }
    }

    /// Takes what was seen now of one path for what it is; none: that is not known any more.
    pub(crate) fn put_right(&mut self, path: &DeclaredPath, seen: Option<&Seen>) {
        if let Some(thing) = self.find(path).and_then(|at| self.things.get_mut(at)) {
            thing.lay = seen.map_or(Lay::Unsure, Lay::of);
        }
    }

    fn find(&self, path: &DeclaredPath) -> Option<usize> {
        let (directory, name) = split(path);
        let place = self.places.binary_search_by(|place| self.text(&place.path).cmp(directory)).ok()?;
        let place = self.places.get(place)?;
        let things = self.things_of(place);
        let at = things.binary_search_by(|thing| self.text(&thing.name).cmp(name)).ok()?;
        Some(place.things.start + at)
    }

    /// The entries of everything that is not as it was, in their order; none where a directory on the way is another, or
    /// somebody says `stop`, or more than `most` are found: then nothing of it stands. `looked`: is told how many were
    /// looked at, one by one.
    pub(crate) fn moved(
        &self,
        (walker, reading): (&Walker<'_>, Reading),
        most: usize,
        stop: &AtomicBool,
        looked: &(dyn Fn(usize) + Sync),
    ) -> Option<Vec<u32>> {
        let (next, seen, broken) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
        let look = || {
            let mut moved = Vec::new();
            loop {
                let first = next.fetch_add(SHARE, Ordering::Relaxed);
                let last = first.saturating_add(SHARE).min(self.things.len());
                if first >= last {
                    return Some(moved);
                }
                let is_over = broken.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed);
                if is_over || !self.look(walker, reading, first..last, &mut moved) || moved.len() > most {
                    broken.store(true, Ordering::Relaxed);
                    return None;
                }
                let before = seen.fetch_add(last - first, Ordering::Relaxed);
                (before..before + (last - first)).for_each(looked);
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        let worth = match reading {
            Reading::Whole => WORTH_A_THREAD_READ,
            Reading::WhatMayHaveChanged => WORTH_A_THREAD,
        };
        let threads = if self.things.len() < worth { 1 } else { threads };
        let parts: Option<Vec<Vec<u32>>> = std::thread::scope(|scope| {
            // Where no thread can be had, whoever is there does it all.
            let helper = |_| std::thread::Builder::new().spawn_scoped(scope, look).ok();
            let helpers: Vec<_> = (1..threads).filter_map(helper).collect();
            let mine = look();
            // One that panicked has looked at nothing.
            let theirs = helpers.into_iter().map(|helper| helper.join().ok().flatten());
            std::iter::once(mine).chain(theirs).collect()
        });
        let mut moved = parts?.concat();
        moved.sort_unstable();
        (moved.len() <= most).then_some(moved)
    }

    /// Adds to `moved` which of these things are not as they were; answers whether their directories are.
    fn look(
        &self,
        walker: &Walker<'_>,
        reading: Reading,
        things: std::ops::Range<usize>,
        moved: &mut Vec<u32>,
    ) -> bool {
        let from = self.places.partition_point(|place| place.things.end <= things.start);
        let places = self.places.get(from..).unwrap_or_default().iter();
        places.take_while(|place| place.things.start < things.end).all(|place| {
            let share = things.start.max(place.things.start)..things.end.min(place.things.end);
            let share = self.things.get(share).unwrap_or_default();
            self.look_in(walker, place, (share, reading), moved)
        })
    }

    fn look_in(
        &self,
        walker: &Walker<'_>,
        place: &Place,
        (things, reading): (&[Thing], Reading),
        moved: &mut Vec<u32>,
    ) -> bool {
        let path = self.text(&place.path);
        let Ok((dir, reached)) = walker.deepest(path) else { return false };
        let resolved = self.text(&place.resolved);
        if (dir.inode(), dir.name(), reached.len()) != (place.inode, resolved, place.reached) {
            return false;
        }
        let is_missing = reached.len() < path.len();
        let missing = path.get(reached.len()..).unwrap_or_default();
        let resolved = if is_missing { Cow::from(format!("{resolved}{missing}")) } else { resolved.into() };
        // Only where units are does a name say today what it did not say then.
        let spellings = [path, &resolved];
        let is_telling = spellings.iter().any(|directory| is_place_of_units(directory));
        let spellings = if is_telling { &spellings[..] } else { &[] };
        let stands = |thing: &&Thing| {
            let name = self.text(&thing.name);
            if dir.is_ours() && !is_missing || thing.lay.is_ours((walker, &dir), spellings, name) {
                return false;
            }
            match &thing.lay {
                Lay::Unsure => false,
                // What lay in a directory that is still missing is missing.
                Lay::Unread(Found::Nothing) if is_missing => true,
                Lay::Unread(found) => dir.look(name).is_ok_and(|now| stands(found, &now)),
                Lay::Read { stat, settled: true, .. } if reading == Reading::WhatMayHaveChanged => {
                    dir.look(name).is_ok_and(|now| now == Found::File(*stat))
                }
                Lay::Read { stat, sha256, .. } => dir.digest_of(name, stat).is_ok_and(|now| now == *sha256),
            }
        };
        moved.extend(things.iter().filter(|thing| !stands(thing)).map(|thing| thing.entry));
        true
    }
}

/// The directory and the name of something declared, which entry it is, and what was seen of it.
type Part<'s> = (&'s str, &'s str, u32, Option<&'s Seen>);

#[cfg(test)]
impl Recall {
    /// For tests: takes `now` for what was seen of the file at `path` when it was read.
    pub(crate) fn believe(&mut self, path: &DeclaredPath, now: Stat) {
        let at = self.find(path).unwrap();
        let Lay::Read { stat, .. } = &mut self.things[at].lay else { panic!("{path} was not read") };
        *stat = now;
    }
}

impl Lay {
    fn of(seen: &Seen) -> Self {
        match seen {
            Seen::File { stat, sha256: Some(sha256) } => {
                Self::Read { stat: *stat, sha256: *sha256, settled: false }
            }
            Seen::File { stat, sha256: None } => Self::Unread(Found::File(*stat)),
            Seen::Directory(stat) => Self::Unread(Found::Directory(*stat)),
            Seen::Link { to } => Self::Unread(Found::Link { to: to.clone() }),
            Seen::Other { what } => Self::Unread(Found::Other { what }),
            Seen::Nothing => Self::Unread(Found::Nothing),
            // That is nothing at a path.
            Seen::Package { .. } | Seen::Unit(_) => Self::Unsure,
        }
    }

    /// Whether it has become the host's own since (H-02), though nothing about it moved: by a link among the host's files,
    /// by one that it is, or by another name that the host's unit has been given. `spellings`: of the directory it lies
    /// in, where names tell.
    fn is_ours(&self, (walker, dir): (&Walker<'_>, &Arc<Dir>), spellings: &[&str], name: &str) -> bool {
        let by_name = |above: &&str| walker.touch_of(&format!("{above}/{name}")) == Touch::Ours;
        let by_itself = match self {
            Self::Read { stat, .. } | Self::Unread(Found::File(stat) | Found::Directory(stat)) => {
                walker.touch(stat.inode) == Touch::Ours
            }
            Self::Unread(Found::Link { .. }) => walker.leads_to_ours(dir, name),
            Self::Unread(Found::Nothing | Found::Other { .. }) | Self::Unsure => false,
        };
        by_itself || spellings.iter().any(by_name)
    }
}

/// The directory a path lies in, and its name there.
fn split(path: &DeclaredPath) -> (&str, &str) {
    path.as_str().rsplit_once('/').unwrap_or(("", path.as_str()))
}

/// Whether something is as it was in what is asked of it: of what was not read, and of a directory, only whose it is.
fn stands(then: &Found, now: &Found) -> bool {
    let standing = |stat: &Stat| (stat.inode, stat.mode, stat.uid, stat.gid);
    match (then, now) {
        (Found::File(then), Found::File(now)) | (Found::Directory(then), Found::Directory(now)) => {
            standing(then) == standing(now)
        }
        (then, now) => then == now,
    }
}

#[cfg(test)]
mod tests;
