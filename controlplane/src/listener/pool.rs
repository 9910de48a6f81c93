//! Connections that have not proven anything yet: so many, so many of them from one source, the oldest of whoever has
//! the most gives way (S-22). Those that presented a token of ours are counted apart: a token may be anybody's, but a
//! stranger must not push its holder out.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;

/// Enough for a fleet that reconnects at once: a greeting takes some milliseconds. Little enough to be no memory.
pub const MOST_STRANGERS: usize = 512;
/// Nodes behind one address translation share a source, so it is not just a few.
pub const MOST_PER_SOURCE: usize = 64;
/// Holders of a token whose second frame is awaited or worked on, which may be a large one. Machines that join at once
/// are done in some milliseconds each.
pub const MOST_INVITED: usize = 128;

/// Who is being greeted, by where it comes from. Clones share it.
#[derive(Debug)]
pub(crate) struct Pool<S> {
    most: usize,
    most_per_source: usize,
    waiting: Arc<Mutex<Waiting<S>>>,
}

#[derive(Debug)]
struct Waiting<S> {
    next: u64,
    places: VecDeque<Held<S>>,
}

#[derive(Debug)]
struct Held<S> {
    number: u64,
    source: S,
    stage: Stage,
    task: Option<AbortHandle>,
}

/// How far somebody has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing is known.
    Stranger,
    /// It holds a token of ours, as whoever found it would.
    Invited,
}

/// Whoever has an IPv6 address has a whole network of them.
pub(super) fn source_of(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

/// A place for one connection that comes. Dropped, it is free again: the connection's task owns it.
#[derive(Debug)]
pub(crate) struct Place<S> {
    pool: Pool<S>,
    number: u64,
}

impl<S> Clone for Pool<S> {
    fn clone(&self) -> Self {
        let Self { most, most_per_source, waiting } = self;
        Self { most: *most, most_per_source: *most_per_source, waiting: Arc::clone(waiting) }
    }
}

impl<S: Clone + Eq + Hash> Pool<S> {
    /// One with room for `most` strangers, at most `most_per_source` of them from one source.
    pub(crate) fn new(most: usize, most_per_source: usize) -> Self {
        let waiting = Waiting { next: 0, places: VecDeque::new() };
        Self { most, most_per_source, waiting: Arc::new(Mutex::new(waiting)) }
    }

    /// Makes room for a connection from `source`, at the cost of another if need be.
    pub(crate) fn place(&self, source: S) -> Place<S> {
        let mut waiting = lock(&self.waiting);
        waiting.make_room(Stage::Stranger, &source, (self.most, self.most_per_source));
        let number = waiting.next;
        waiting.next = number.wrapping_add(1);
        waiting.places.push_back(Held { number, source, stage: Stage::Stranger, task: None });
        Place { pool: self.clone(), number }
    }

    /// The task that greets at the place of this number, which is ended when it has to give way.
    pub(crate) fn hold(&self, number: u64, task: AbortHandle) {
        // A task that has ended by now has given its place back.
        if let Some(held) = lock(&self.waiting).places.iter_mut().find(|held| held.number == number) {
            held.task = Some(task);
        }
    }
}

fn lock<S>(waiting: &Mutex<Waiting<S>>) -> MutexGuard<'_, Waiting<S>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: Clone + Eq + Hash> Waiting<S> {
    /// One gives way where there is no room: the source's own oldest, else the oldest of whoever has the most, so that
    /// somebody with a single connection is safe from a crowd of a few sources.
    fn make_room(&mut self, stage: Stage, source: &S, (most, per_source): (usize, usize)) {
        let mut counts: HashMap<&S, usize> = HashMap::new();
        for held in self.places.iter().filter(|held| held.stage == stage) {
            *counts.entry(&held.source).or_default() += 1;
        }
        let all: usize = counts.values().sum();
        let crowd = counts.values().copied().max().unwrap_or_default();
        let evicted = if counts.get(source).is_some_and(|own| *own >= per_source) {
            self.places.iter().position(|held| held.stage == stage && held.source == *source)
        } else if all >= most {
            self.places
                .iter()
                .position(|held| held.stage == stage && counts.get(&held.source) == Some(&crowd))
        } else {
            None
        };
        if let Some(task) = evicted.and_then(|at| self.places.remove(at)).and_then(|held| held.task) {
            task.abort();
        }
    }
}

impl<S> Waiting<S> {
    fn remove(&mut self, number: u64) -> Option<Held<S>> {
        let at = self.places.iter().position(|held| held.number == number)?;
        self.places.remove(at)
    }
}

impl<S> Place<S> {
    /// What the pool calls it.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Whoever holds it proved who it is: it no longer counts, and gives way to nobody.
    pub(crate) fn leave(&self) {
        lock(&self.pool.waiting).remove(self.number);
    }
}

impl<S: Clone + Eq + Hash> Place<S> {
    /// Whoever holds it presented a token of ours: it gives way to others who did, and not to strangers.
    pub(crate) fn is_invited(&self) {
        let mut waiting = lock(&self.pool.waiting);
        // One that gave way a moment ago is about to end.
        let Some(held) = waiting.remove(self.number) else { return };
        waiting.make_room(Stage::Invited, &held.source, (MOST_INVITED, MOST_INVITED));
        waiting.places.push_back(Held { stage: Stage::Invited, ..held });
    }
}

impl<S> Drop for Place<S> {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests;
