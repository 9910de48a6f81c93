//! Work runs beside an actor, off its mailbox, and its result comes back as a message. It never crashes the actor
//! (a panic inside becomes a [`Panicked`] value) and never outlives the caller's interest: dropping [`Work`] cancels
//! asynchronous work. Actors keep the handle in their state, so that work ends with the actor that asked for it.

use std::any::Any;
use std::future::Future;

use ractor::ActorRef;
use tokio::task::{AbortHandle, JoinHandle};

#[cfg(test)]
mod tests;

/// A running piece of work. Dropped, it cancels asynchronous work at its next await and no message is sent.
/// A blocking closure that has begun runs to its end (nothing can stop a thread); only its message is withheld.
#[derive(Debug)]
#[must_use = "work is cancelled when its handle is dropped"]
pub struct Work {
    job: AbortHandle,
    courier: AbortHandle,
}

/// The work panicked; the text is what it said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the work broke off: {said}")]
pub struct Panicked {
    /// The panic's own message.
    pub said: String,
}

/// Run a future beside `me`; its result comes back as the message that `done` makes.
pub fn work<M, T>(
    me: &ActorRef<M>,
    job: impl Future<Output = T> + Send + 'static,
    done: impl FnOnce(Result<T, Panicked>) -> M + Send + 'static,
) -> Work
where
    M: Send + 'static,
    T: Send + 'static,
{
    deliver(me, tokio::spawn(job), done)
}

/// Run a blocking closure on a thread made for it; its result comes back as the message that `done` makes.
pub fn blocking<M, T>(
    me: &ActorRef<M>,
    job: impl FnOnce() -> T + Send + 'static,
    done: impl FnOnce(Result<T, Panicked>) -> M + Send + 'static,
) -> Work
where
    M: Send + 'static,
    T: Send + 'static,
{
    deliver(me, tokio::task::spawn_blocking(job), done)
}

impl Work {
    /// Has it ended, one way or another? Its message is then in the mailbox, unless the actor is gone.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.courier.is_finished()
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.courier.abort();
        self.job.abort();
    }
}

fn deliver<M: Send + 'static, T: Send + 'static>(
    me: &ActorRef<M>,
    job: JoinHandle<T>,
    done: impl FnOnce(Result<T, Panicked>) -> M + Send + 'static,
) -> Work {
    let me = me.clone();
    let handle = job.abort_handle();
    let courier = tokio::spawn(async move {
        let result = match job.await {
            Ok(value) => Ok(value),
            // The runtime is going down, or the handle was dropped: nobody is left to tell.
            Err(ended) if ended.is_cancelled() => return,
            Err(ended) => Err(Panicked { said: said(ended.into_panic().as_ref()) }),
        };
        // The actor may have ended meanwhile; then its work has no reader.
        drop(me.send_message(done(result)));
    });
    Work { job: handle, courier: courier.abort_handle() }
}

/// What a panic said, as far as it said it in words.
pub(crate) fn said(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "it said nothing in words".to_owned())
}
