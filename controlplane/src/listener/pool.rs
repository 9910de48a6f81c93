//! Connections that have not proven anything yet: so many, so many of them from one source, the oldest gives way (S-22).

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::{AbortHandle, JoinHandle};

/// Enough for a fleet that reconnects at once: a greeting takes some milliseconds. Little enough to be no memory.
const MOST: usize = 512;
/// Nodes behind one address translation share a source, so it is not just a few.
const MOST_PER_SOURCE: usize = 64;

/// Who is being greeted. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Pool {
    greeted: Arc<Mutex<VecDeque<Greeted>>>,
}

#[derive(Debug)]
struct Greeted {
    number: u64,
    source: IpAddr,
    task: Option<AbortHandle>,
}

/// Whoever has an IPv6 address has a whole network of them.
fn source_of(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

/// A place for one connection that comes. Clones are the same place.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pool: Pool,
    number: u64,
}

impl Pool {
    /// Makes room for a connection from `source`, at the cost of the oldest if need be.
    pub(super) fn place(&self, from: IpAddr) -> Place {
        let source = source_of(from);
        let mut greeted = self.lock();
        let of_source = greeted.iter().filter(|other| other.source == source).count();
        let evicted = if of_source >= MOST_PER_SOURCE {
            greeted.iter().position(|other| other.source == source)
        } else {
            (greeted.len() >= MOST).then_some(0)
        };
        if let Some(task) = evicted.and_then(|at| greeted.remove(at)).and_then(|oldest| oldest.task) {
            task.abort();
        }
        let number = greeted.back().map_or(0, |last| last.number.wrapping_add(1));
        greeted.push_back(Greeted { number, source, task: None });
        Place { pool: self.clone(), number }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Greeted>> {
        self.greeted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Whoever holds it proved who it is: it no longer counts, and gives way to nobody.
    pub(super) fn leave(&self) {
        self.pool.lock().retain(|greeted| greeted.number != self.number);
    }

    /// The task that greets; the place comes free when it ends, however it ends.
    pub(super) fn hold(self, task: JoinHandle<()>) {
        let Self { pool, number } = self;
        if let Some(greeted) = pool.lock().iter_mut().find(|greeted| greeted.number == number) {
            greeted.task = Some(task.abort_handle());
        }
        tokio::spawn(async move {
            // Its end is all that matters; a panic was said by its own hook.
            drop(task.await);
            pool.lock().retain(|greeted| greeted.number != number);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    // rule: S-22
    #[tokio::test]
    async fn one_source_costs_its_own_oldest_and_nobody_elses() {
        let pool = Pool::default();
        let waits = || tokio::spawn(std::future::pending::<()>());
        let other = waits();
        let watched = other.abort_handle();
        pool.place(source(1)).hold(other);
        let first = waits();
        let oldest = first.abort_handle();
        pool.place(source(2)).hold(first);
        for _ in 1..MOST_PER_SOURCE {
            pool.place(source(2)).hold(waits());
        }
        assert!(!oldest.is_finished());
        pool.place(source(2)).hold(waits());
        while !oldest.is_finished() {
            tokio::task::yield_now().await;
        }
        assert!(!watched.is_finished());
        assert_eq!(pool.lock().len(), MOST_PER_SOURCE + 1);
    }

    // rule: S-22
    #[tokio::test]
    async fn whoever_proved_who_it_is_gives_way_to_nobody() {
        let pool = Pool::default();
        let proven = pool.place(source(1));
        let task = tokio::spawn(std::future::pending::<()>());
        let watched = task.abort_handle();
        proven.clone().hold(task);
        proven.leave();
        for _ in 0..=MOST_PER_SOURCE {
            pool.place(source(1)).hold(tokio::spawn(std::future::pending()));
        }
        tokio::task::yield_now().await;
        assert!(!watched.is_finished());
        assert_eq!(pool.lock().len(), MOST_PER_SOURCE);
    }

    // rule: S-22
    #[test]
    fn a_network_of_ipv6_addresses_is_one_source_and_a_mapped_address_is_what_it_maps() {
        let of = |text: &str| source_of(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:192.0.2.7"), of("192.0.2.7"));
        assert_ne!(of("192.0.2.7"), of("192.0.2.8"));
    }

    // rule: S-22
    #[tokio::test]
    async fn the_pool_has_a_bound_and_a_connection_that_ends_gives_its_place_back() {
        let pool = Pool::default();
        for number in 0..=MOST {
            pool.place(source(u8::try_from(number % 200).unwrap()))
                .hold(tokio::spawn(std::future::pending()));
        }
        assert_eq!(pool.lock().len(), MOST);
        let quick = Pool::default();
        quick.place(source(1)).hold(tokio::spawn(async {}));
        while !quick.lock().is_empty() {
            tokio::task::yield_now().await;
        }
    }
}
