//! What passes leave to the next one: what lay at each declared path, what was asked of packages and units, and what came
//! of it. A daemon keeps it in memory alone; passes by hand leave it to each other (`kept`). What a start finds is read
//! whole, whatever is remembered.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tenure_actors::timer::jittered;
use tenure_protocol::declaration::{Declaration, Entry, Header};
use tenure_protocol::id::{Digest, Millis};
use tenure_protocol::outcome::{Outcome, ResourceOutcome};
use tenure_protocol::path::DeclaredPath;
use tenure_protocol::report::Summary;
use tenure_protocol::resource::{ResourceKey, Spec};

use super::plan::Sight;
use crate::ground::own::Own;
use crate::resource::remark::{CONFIGURATION_KEPT, SCRIPT_FAILED};
use crate::resource::unit::Disk;
use crate::resource::{Accounts, Reading, Recall, SAME_PLACE, Seen, Site, Trouble};
use crate::store::{Record, State};

/// What passes leave to the next one. Clones of the handle share it.
pub type SharedMemory = Arc<Mutex<Memory>>;

/// What was seen, and when everything was read.
#[derive(Debug, Default)]
pub struct Memory {
    pub(super) recall: Recall,
    pub(super) still: Option<Still>,
    /// An ordinary pass has left it, and no process before.
    pub(super) is_new: bool,
    /// What a pass by hand goes by of units; none in a daemon.
    pub(super) units: Option<Units>,
    /// When everything was last read.
    read_whole: Option<Millis>,
    /// When it is to be read again.
    due: Option<Instant>,
    /// When the last look began.
    pub(super) looked: Millis,
}

/// What units were made of on the disk when all of them were last looked at in full, and when that was.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Units {
    pub(super) disk: Disk,
    pub(super) looked: Millis,
}

/// What else a pass decides by, and what it came to.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Still {
    pub(super) declaration: Digest,
    pub(super) header: Header,
    pub(super) own: Own,
    pub(super) accounts: Arc<Accounts>,
    pub(super) asked: Vec<Asked>,
    pub(super) summary: Summary,
    pub(super) entries: Entries,
}

/// Where the entries of the declaration stand, and what is between them; as few pieces of memory as can be.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Entries {
    /// By position: where it begins in the declaration's bytes, and how long it is.
    places: Box<[(u32, u32)]>,
    /// What needs something that is not as declared for good, kept as found or not understood; and that.
    pub(super) barred: Box<[(u32, u32)]>,
    /// What some unit restarts or reloads on.
    pub(super) followed: Box<[u32]>,
}

/// A package or unit, and what was said of it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) spec: Spec,
    /// What our record says that we made of it.
    pub(super) applied: Option<State>,
    pub(super) seen: Seen,
}

/// What an ordinary pass looked at.
#[derive(Debug, Default)]
pub(super) struct Looked {
    recall: Recall,
    asked: Vec<Asked>,
    /// Something could not be looked at.
    partly: bool,
    /// All there is has a place in what is remembered.
    complete: bool,
    /// The service manager has not read anew what was changed of a unit: that is tried again until it has.
    unread: bool,
}

/// What else it found, where what it found can stand.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) own: Own,
    pub(super) accounts: Arc<Accounts>,
    /// The keys of which a record was written.
    pub(super) recorded: HashSet<String>,
}

impl Memory {
    /// When everything was last read; none: not since the start.
    pub const fn read_whole(&self) -> Option<Millis> {
        self.read_whole
    }

    /// What is read in a pass that begins at `now`. `whole`: everything is to be.
    pub(super) fn begin(&mut self, now: Millis, whole: bool) -> Reading {
        if now < self.looked {
            // The clock went back: change times of before and after cannot be compared.
            *self = Self::default();
        }
        self.looked = now;
        let due = self.due.is_none_or(|due| Instant::now() >= due);
        if whole || due { Reading::Whole } else { Reading::WhatMayHaveChanged }
    }

    /// A pass looked in this way; the next is due after `every`. `partly`: at not all there is.
    pub(super) fn has_looked(&mut self, reading: Reading, every: Duration, partly: bool) {
        if reading == Reading::Whole {
            let due = Instant::now().checked_add(jittered(every, JITTER));
            self.due = Some(due.unwrap_or_else(Instant::now));
            self.read_whole = if partly { self.read_whole } else { Some(self.looked) };
        }
    }

    /// What an ordinary pass may go by; until it has ended there is nothing to remember.
    pub(super) fn take(&mut self, reading: Reading) -> Recall {
        (self.still, self.units) = (None, None);
        let recall = std::mem::take(&mut self.recall);
        if reading == Reading::Whole { Recall::default() } else { recall }
    }

    /// Moves what is kept to where memory was free when the pass was over: what the pass needed lies below it, and could
    /// not be given back.
    pub(super) fn move_down(&mut self) {
        self.recall = self.recall.clone();
    }

    /// Keeps what an ordinary pass saw of this declaration, and what it came to. `found`: it can stand.
    pub(super) fn keep(
        &mut self,
        (reading, every): (Reading, Duration),
        (looked, found): (Looked, Option<Found>),
        (declaration, sha256, places): (&Declaration, Digest, &[Range<usize>]),
        (lines, summary): (&[ResourceOutcome], &Summary),
    ) {
        let Looked { recall, asked, partly, complete, unread } = looked;
        self.recall = recall;
        self.has_looked(reading, every, partly);
        let restless = |found: &Found| restless(declaration, lines, &found.recorded);
        let standing = found
            .filter(|_| complete && !unread)
            .and_then(|found| Some((restless(&found)?, Entries::of(declaration, places, lines)?, found)));
        self.is_new = true;
        self.still = standing.map(|(restless, entries, Found { own, accounts, .. })| {
            restless.into_iter().for_each(|path| self.recall.put_right(path, None));
            let (header, summary) = (declaration.header.clone(), summary.clone());
            Still { declaration: sha256, header, own, accounts, asked, summary, entries }
        });
    }

    /// Keeps what a pass over a part of the declaration saw, and what it came to.
    pub(super) fn keep_part(
        &mut self,
        (declaration, seen): (&Declaration, &[Option<Seen>]),
        (lines, recorded): (&[ResourceOutcome], &HashSet<String>),
        summary: &Summary,
    ) {
        let restless = restless(declaration, lines, recorded);
        let (Some(restless), Some(still)) = (restless, self.still.as_mut()) else {
            self.still = None;
            return;
        };
        // What is newly kept as found bars what needs it, which nobody has noted.
        let is_newly_held =
            |line: &&ResourceOutcome| line.outcome == Outcome::Held && line.since == summary.started;
        if lines.iter().any(|line| is_newly_held(&line)) {
            self.still = None;
            return;
        }
        let restless: HashSet<&DeclaredPath> = restless.into_iter().collect();
        for (resource, seen) in declaration.resources().zip(seen) {
            if let Some(path) = resource.key.path() {
                self.recall.put_right(path, seen.as_ref().filter(|_| !restless.contains(path)));
            }
        }
        self.recall.settle(self.looked);
        still.summary = summary.clone();
    }
}

/// So that a fleet that started together does not read together.
const JITTER: f64 = 0.2;

/// The paths whose turn comes in the next pass again, though they lie untouched: what became of them may become another
/// tomorrow, or a record was written of them just now. None where anything else may, so that all has to be decided anew.
fn restless<'d>(
    declaration: &'d Declaration,
    lines: &[ResourceOutcome],
    recorded: &HashSet<String>,
) -> Option<Vec<&'d DeclaredPath>> {
    let is_restless = |line: &&ResourceOutcome| !is_still(line) || recorded.contains(&line.key);
    let keys: Option<HashSet<ResourceKey>> = lines
        .iter()
        .filter(is_restless)
        // Which of two paths has the place is known only where both are looked at.
        .map(|line| line.key.parse().ok().filter(|_| line.code.as_deref() != Some(SAME_PLACE)))
        .collect();
    let keys = keys?;
    let paths = declaration.resources().filter(|_| !keys.is_empty()).filter(|r| keys.contains(&r.key));
    let paths: Vec<&DeclaredPath> = paths.filter_map(|resource| resource.key.path()).collect();
    // Packages and units are decided together, and what left the declaration is nowhere in it.
    (paths.len() == keys.len()).then_some(paths)
}

/// Whether the next pass could not say anything else of it, as long as nothing moves.
fn is_still(line: &ResourceOutcome) -> bool {
    let code = line.code.as_deref();
    match line.outcome {
        // What lies beside a configuration, and whether a script has run again, an ordinary pass alone looks for; either is
        // told until it is gone.
        Outcome::Unchanged | Outcome::Held => !matches!(code, Some(CONFIGURATION_KEPT | SCRIPT_FAILED)),
        // This version of the host does not learn it.
        Outcome::Refused => matches!(code, Some("unsupported_kind" | "unsupported_field")),
        Outcome::Applied
        | Outcome::Removed
        | Outcome::Released
        | Outcome::Failed
        | Outcome::Outstanding
        | Outcome::Unknown => false,
    }
}

impl Entries {
    /// None where there are more of them, or more bytes, than it counts.
    fn of(declaration: &Declaration, places: &[Range<usize>], lines: &[ResourceOutcome]) -> Option<Self> {
        let short = |place: &Range<usize>| Some((place.start.try_into().ok()?, place.len().try_into().ok()?));
        let places = places.iter().map(short).collect::<Option<_>>()?;
        let mut entries = Self { places, barred: Box::default(), followed: Box::default() };
        let held = held(lines);
        let ties = |entry: &Entry| match entry {
            Entry::Known(resource) => resource.spec.follows().next().is_some(),
            Entry::Unsupported(_) => true,
        };
        if held.is_empty() && !declaration.entries.iter().any(ties) {
            return Some(entries);
        }
        let mut at = HashMap::with_capacity(declaration.entries.len());
        for (position, entry) in (0_u32..).zip(&declaration.entries) {
            let (key, is_unknown) = match entry {
                Entry::Known(resource) => (Some(resource.key.clone()), false),
                Entry::Unsupported(unsupported) => (unsupported.key.parse().ok(), true),
            };
            at.extend(key.map(|key| (key, (position, is_unknown))));
        }
        let place = |key: &ResourceKey| at.get(key).map(|(position, _)| *position);
        entries.followed = declaration
            .resources()
            .flat_map(|resource| resource.spec.follows())
            .map(place)
            .collect::<Option<_>>()?;
        // What is not understood bars what needs it like what was kept as found.
        let bars =
            |need: &&ResourceKey| held.contains(need) || at.get(need).is_none_or(|(_, unknown)| *unknown);
        let barred = declaration.resources().flat_map(|resource| {
            resource.needs.iter().filter(bars).map(|need| Some((place(&resource.key)?, place(need)?)))
        });
        entries.barred = barred.collect::<Option<_>>()?;
        Some(entries)
    }

    /// How many there are.
    pub(super) const fn len(&self) -> usize {
        self.places.len()
    }

    /// Where these stand in the bytes.
    pub(super) fn places(&self, entries: &[u32]) -> Option<Vec<Range<usize>>> {
        let place = |entry: &u32| {
            let (from, len) = *self.places.get(usize::try_from(*entry).ok()?)?;
            let from = usize::try_from(from).ok()?;
            Some(from..from.checked_add(usize::try_from(len).ok()?)?)
        };
        entries.iter().map(place).collect()
    }
}

/// What was kept as found.
fn held(lines: &[ResourceOutcome]) -> HashSet<ResourceKey> {
    let held = lines.iter().filter(|line| line.outcome == Outcome::Held);
    held.filter_map(|line| line.key.parse().ok()).collect()
}

impl Looked {
    /// What a survey saw of each entry of the declaration, by position.
    pub(super) fn of(
        site: &Site<'_>,
        now: Millis,
        declaration: &Declaration,
        records: &HashMap<String, Record>,
        sights: &[Option<Result<Sight, Trouble>>],
    ) -> Self {
        let (mut paths, mut asked, mut partly) = (Vec::new(), Vec::new(), false);
        for ((entry, sight), position) in declaration.entries.iter().zip(sights).zip(0_u32..) {
            let Entry::Known(resource) = entry else { continue };
            let seen = match sight {
                Some(Ok(sight)) => Some(&sight.seen),
                Some(Err(_)) | None => None,
            };
            partly |= seen.is_none();
            match (resource.key.path(), seen) {
                (Some(path), seen) => paths.push((path, position, seen)),
                (None, Some(seen)) => asked.push(Asked {
                    spec: resource.spec.clone(),
                    applied: records.get(&resource.key.text()).map(|record| record.applied.clone()),
                    seen: seen.clone(),
                }),
                (None, None) => {}
            }
        }
        let many = paths.len();
        let recall = Recall::of(&site.walker, now, paths.into_iter());
        let complete = recall.len() == many && asked.len() + many == declaration.resources().count();
        let unread = asked.iter().any(|asked| matches!(&asked.seen, Seen::Unit(shown) if shown.needs_reload));
        Self { recall, asked, partly, complete, unread }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_until_its_cause_is_gone_is_asked_for_in_each_pass() {
        let line = |outcome, code: Option<&str>| ResourceOutcome {
            key: "package:hello".to_owned(),
            module: "base".to_owned(),
            outcome,
            since: Millis(1),
            count: 1,
            code: code.map(str::to_owned),
            reason: None,
        };
        assert!(is_still(&line(Outcome::Unchanged, None)) && is_still(&line(Outcome::Held, Some("found"))));
        for code in [CONFIGURATION_KEPT, SCRIPT_FAILED] {
            assert!(!is_still(&line(Outcome::Unchanged, Some(code))), "{code}");
        }
        assert!(is_still(&line(Outcome::Refused, Some("unsupported_field"))));
        assert!(
            !is_still(&line(Outcome::Refused, Some("path_is_link"))),
            "it may be another by the next pass"
        );
    }
}
