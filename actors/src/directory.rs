//! The directory: the text of an address (`node/edge-1`) to something that can be reached. It never starts, stops or
//! keeps alive what it lists; whoever registers holds the entry and takes it away by dropping it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[cfg(test)]
mod tests;

/// Names and what stands behind them. Clones are cheap and share the entries.
#[derive(Debug)]
pub struct Directory<T> {
    entries: Arc<Mutex<Entries<T>>>,
}

#[derive(Debug)]
struct Entries<T> {
    named: BTreeMap<String, (u64, T)>,
    given: u64,
}

/// The name is somebody else's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the address {name} is already taken")]
pub struct Taken {
    /// The name that was asked for.
    pub name: String,
}

/// One entry. Dropped, it unregisters itself, and only itself.
#[must_use = "the entry goes when this is dropped"]
pub struct Registered {
    unregister: Option<Box<dyn FnOnce() + Send>>,
}

impl<T: Clone + Send + 'static> Directory<T> {
    /// An empty directory.
    #[must_use]
    pub fn new() -> Self {
        Self { entries: Arc::new(Mutex::new(Entries { named: BTreeMap::new(), given: 0 })) }
    }

    /// List `reachable` under `name` until the returned entry is dropped.
    pub fn register(&self, name: &str, reachable: T) -> Result<Registered, Taken> {
        let mut entries = lock(&self.entries);
        if entries.named.contains_key(name) {
            return Err(Taken { name: name.to_owned() });
        }
        entries.given += 1;
        let number = entries.given;
        entries.named.insert(name.to_owned(), (number, reachable));
        drop(entries);
        let (entries, name) = (Arc::clone(&self.entries), name.to_owned());
        Ok(Registered { unregister: Some(Box::new(move || remove(&entries, &name, number))) })
    }

    /// What stands behind a name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<T> {
        lock(&self.entries).named.get(name).map(|(_, reachable)| reachable.clone())
    }

    /// All names, in order.
    #[must_use]
    pub fn list(&self) -> Vec<String> {
        lock(&self.entries).named.keys().cloned().collect()
    }
}

impl<T: Clone + Send + 'static> Default for Directory<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for Directory<T> {
    fn clone(&self) -> Self {
        Self { entries: Arc::clone(&self.entries) }
    }
}

impl std::fmt::Debug for Registered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Registered")
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        if let Some(unregister) = self.unregister.take() {
            unregister();
        }
    }
}

fn remove<T>(entries: &Mutex<Entries<T>>, name: &str, number: u64) {
    let mut entries = lock(entries);
    if entries.named.get(name).is_some_and(|(present, _)| *present == number) {
        entries.named.remove(name);
    }
}

fn lock<T>(entries: &Mutex<Entries<T>>) -> MutexGuard<'_, Entries<T>> {
    entries.lock().unwrap_or_else(PoisonError::into_inner)
}
