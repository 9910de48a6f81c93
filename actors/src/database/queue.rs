//! The bounded queue in front of the writer. A place is a permit: taken with a deadline by asynchronous and blocking
//! callers alike, given back when the writer takes the change out.

use std::pin::pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use super::DatabaseError;
use super::writer::Task;

/// The callers' end.
#[derive(Debug)]
pub(super) struct Queue {
    places: Arc<Semaphore>,
    sender: Mutex<Option<Sender<Queued>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    patience: Duration,
}

type Queued = (Task, OwnedSemaphorePermit);

/// The writer's end.
pub(super) struct Waiting(Receiver<Queued>);

pub(super) fn bounded(places: usize, patience: Duration) -> (Queue, Waiting) {
    let (sender, receiver) = channel();
    let queue = Queue {
        places: Arc::new(Semaphore::new(places)),
        sender: Mutex::new(Some(sender)),
        writer: Mutex::new(None),
        patience,
    };
    (queue, Waiting(receiver))
}

impl Queue {
    pub(super) async fn push(&self, task: Task) -> Result<(), DatabaseError> {
        let place = tokio::time::timeout(self.patience, Arc::clone(&self.places).acquire_owned()).await;
        self.send(task, place.map_err(|_| DatabaseError::Busy)?)
    }

    pub(super) fn push_blocking(&self, task: Task) -> Result<(), DatabaseError> {
        let place = wait(Arc::clone(&self.places).acquire_owned(), Instant::now() + self.patience);
        self.send(task, place.ok_or(DatabaseError::Busy)?)
    }

    pub(super) fn has_writer(&self, writer: JoinHandle<()>) {
        *self.writer.lock().unwrap_or_else(PoisonError::into_inner) = Some(writer);
    }

    /// Take no more, and wait until the writer has made what is queued.
    pub(super) fn close(&self) {
        self.places.close();
        drop(self.sender.lock().unwrap_or_else(PoisonError::into_inner).take());
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if writer.is_some_and(|writer| writer.join().is_err()) {
            tracing::error!("the store's writer broke off");
        }
    }

    #[cfg(test)]
    pub(super) fn free(&self) -> usize {
        self.places.available_permits()
    }

    fn send(
        &self,
        task: Task,
        place: Result<OwnedSemaphorePermit, AcquireError>,
    ) -> Result<(), DatabaseError> {
        let place = place.map_err(|_| DatabaseError::Closed)?;
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = sender.as_ref().ok_or(DatabaseError::Closed)?;
        sender.send((task, place)).map_err(|_| DatabaseError::Closed)
    }
}

impl Waiting {
    /// What is waiting, at least one and at most `most`; `None` when the queue is closed and empty.
    pub(super) fn take(&self, most: usize) -> Option<Vec<Task>> {
        let (first, _) = self.0.recv().ok()?;
        let more = self.0.try_iter().take(most.saturating_sub(1)).map(|(task, _)| task);
        Some(std::iter::once(first).chain(more).collect())
    }
}

/// Wait for a future on this thread, which needs no runtime for it, until the deadline.
fn wait<T>(future: impl Future<Output = T>, deadline: Instant) -> Option<T> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(value);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        std::thread::park_timeout(left);
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
