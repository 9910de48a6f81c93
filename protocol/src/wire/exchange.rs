//! Both sides of a connection ask and answer at the same time. The owner keeps an [`Outgoing`] to ask with, takes
//! what comes from an [`Incoming`] queue, and runs the [`Exchange`] until the connection ends.
//!
//! Queues are bounded: a side that asks faster than it is served waits, and one that does not take answers is given
//! up by the connection's own deadline.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use super::codec;
use super::connection::{Connection, Reader, WireError, Writer};
use crate::envelope::{Answer, Event, Frame, Request};
use crate::kind::Message;
use crate::refusal::Refusal;

/// How many frames may wait to be sent; they are our own.
const QUEUE: usize = 32;
/// How many bytes of them. What is asked for may be large, and whoever asks may never read: this is what a connection
/// holds of what this side says, beside the one frame that is being written.
pub const MOST_QUEUED: usize = 4 * super::frame::MOST;
/// How many frames that came may wait to be taken: enough for a pipeline of pieces, little enough to be no memory.
const MOST_WAITING: usize = 8;
/// The most bytes that one connection holds of what the other side sent: what waits, what is worked on, and one that is
/// being read, which exists as bytes and as a value for a moment. Whoever lays aside what it took from here holds that
/// beside, and has a bound of its own for it.
pub const MOST_HELD: usize = (MOST_WAITING + 4) * super::frame::MOST;
/// How many answers one side may wait for.
const MOST_PENDING: usize = 64;

/// The most bytes of a body, so that it fits a frame with its envelope.
const MOST_BODY: usize = super::frame::MOST - 1024;

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The other side refused, and says why.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// No answer came in time. The other side may still do what was asked.
    #[error("no answer came within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The connection ended before the answer came.
    #[error("the connection ended before the answer came")]
    Gone,
    /// The answer is not of the form it must have.
    #[error("the answer cannot be read")]
    Unreadable(#[source] codec::DecodeError),
}

/// What the other side sends unasked.
#[derive(Debug)]
pub enum Incoming {
    /// It wants an answer.
    Request(Request),
    /// It tells something.
    Event(Event),
}

type Pending = Arc<Mutex<HashMap<u64, oneshot::Sender<Result<Vec<u8>, Refusal>>>>>;

/// A frame that waits to be sent, with the room it takes.
#[derive(Debug)]
struct Queued {
    frame: Frame,
    _room: OwnedSemaphorePermit,
}

/// How much room a frame with this body takes. No more than there is: a frame that is too long is refused elsewhere.
fn weight(body: usize) -> u32 {
    const ENVELOPE: usize = 1024;
    u32::try_from(body.saturating_add(ENVELOPE).min(MOST_QUEUED)).unwrap_or(u32::MAX)
}

/// Asks and answers; cheap to clone.
#[derive(Debug, Clone)]
pub struct Outgoing {
    frames: mpsc::Sender<Queued>,
    room: Arc<Semaphore>,
    pending: Pending,
    next: Arc<AtomicU64>,
    owed: Arc<AtomicU64>,
}

impl Outgoing {
    /// Asks `to` and waits for the answer, at most `within`.
    pub async fn call<M: Message>(
        &self,
        to: &str,
        message: &M,
        within: Duration,
    ) -> Result<M::Answer, CallError> {
        let body = self.call_raw(to, M::KIND.name, codec::encode(message), within).await?;
        codec::decode(&body).map_err(CallError::Unreadable)
    }

    /// The same with bodies that are not looked at.
    pub async fn call_raw(
        &self,
        to: &str,
        kind: &str,
        body: Vec<u8>,
        within: Duration,
    ) -> Result<Vec<u8>, CallError> {
        if body.len() > MOST_BODY {
            return Err(CallError::Refused(question_too_large(kind, body.len())));
        }
        let (id, length) = (self.next.fetch_add(1, Ordering::Relaxed), body.len());
        let (answer, answered) = oneshot::channel();
        let _forget = self.wait_for(id, answer)?;
        let request = Frame::Request(Request { to: to.to_owned(), id, kind: kind.to_owned(), body });
        let asked = async {
            self.send(request, length).await?;
            answered.await.map_err(|_| CallError::Gone)?.map_err(CallError::Refused)
        };
        timeout(within, asked).await.map_err(|_| CallError::TimedOut(within))?
    }

    /// Answers request `re`.
    pub async fn answer(&self, re: u64, result: Result<Vec<u8>, Refusal>) -> Result<(), CallError> {
        // A frame that does not fit would end the connection for everything else on it.
        let result = match result {
            Ok(body) if body.len() > MOST_BODY => Err(too_large(body.len())),
            Err(refusal) if size(&refusal) > MOST_BODY => Err(refusal.from_outside()),
            fits => fits,
        };
        let length = result.as_ref().map_or_else(size, Vec::len);
        let sent = self.send(Frame::Answer(Answer { re, result }), length).await;
        // One that answers what it was not asked owes nothing less for it.
        let _ = self.owed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |owed| owed.checked_sub(1));
        sent
    }

    /// Queues a frame once there is room for it.
    async fn send(&self, frame: Frame, body: usize) -> Result<(), CallError> {
        let room = Arc::clone(&self.room).acquire_many_owned(weight(body)).await;
        let queued = Queued { frame, _room: room.map_err(|_| CallError::Gone)? };
        self.frames.send(queued).await.map_err(|_| CallError::Gone)
    }

    /// Tells something nobody answers, if the queue has room.
    pub fn tell<M: Message>(&self, from: &str, message: &M) -> Result<(), CallError> {
        let seq = self.next.fetch_add(1, Ordering::Relaxed);
        let body = codec::encode(message);
        if body.len() > MOST_BODY {
            return Err(CallError::Refused(question_too_large(M::KIND.name, body.len())));
        }
        let room = Arc::clone(&self.room).try_acquire_many_owned(weight(body.len()));
        let event = Event { from: from.to_owned(), seq, kind: M::KIND.name.to_owned(), body };
        let queued = Queued { frame: Frame::Event(event), _room: room.map_err(|_| CallError::Gone)? };
        self.frames.try_send(queued).map_err(|_| CallError::Gone)
    }

    /// Resolves when the connection has ended.
    pub async fn ended(&self) {
        self.frames.closed().await;
    }

    fn wait_for(
        &self,
        id: u64,
        answer: oneshot::Sender<Result<Vec<u8>, Refusal>>,
    ) -> Result<Forget, CallError> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.len() >= MOST_PENDING || self.frames.is_closed() {
            return Err(CallError::Gone);
        }
        pending.insert(id, answer);
        Ok(Forget { pending: Arc::clone(&self.pending), id })
    }
}

/// A call that is given up no longer waits for its answer.
struct Forget {
    pending: Pending,
    id: u64,
}

impl Drop for Forget {
    fn drop(&mut self) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// Moves the frames. Does nothing unless it is run.
#[must_use = "an exchange does nothing unless it is run"]
pub struct Exchange<S> {
    reader: Reader<S>,
    writer: Writer<S>,
    frames: mpsc::Receiver<Queued>,
    incoming: mpsc::Sender<Incoming>,
    pending: Pending,
    silence: Duration,
    owed: Arc<AtomicU64>,
    patient: bool,
}

/// Opens both directions of `connection`. A side that sends nothing at all for `silence` is taken for gone: beats and
/// their answers must come more often than that.
pub fn exchange<S: AsyncRead + AsyncWrite>(
    connection: Connection<S>,
    silence: Duration,
) -> (Outgoing, mpsc::Receiver<Incoming>, Exchange<S>) {
    let (reader, writer) = connection.split();
    let (frames, to_send) = mpsc::channel(QUEUE);
    let (incoming, received) = mpsc::channel(MOST_WAITING);
    let pending = Pending::default();
    let owed = Arc::new(AtomicU64::new(0));
    let outgoing = Outgoing {
        frames,
        room: Arc::new(Semaphore::new(MOST_QUEUED)),
        pending: Arc::clone(&pending),
        next: Arc::new(AtomicU64::new(1)),
        owed: Arc::clone(&owed),
    };
    let exchange =
        Exchange { reader, writer, frames: to_send, incoming, pending, silence, owed, patient: false };
    (outgoing, received, exchange)
}

impl<S: AsyncRead + AsyncWrite> Exchange<S> {
    /// While this side owes an answer, the other one may be silent: it has nothing to say and waits.
    pub const fn patient(mut self) -> Self {
        self.patient = true;
        self
    }

    /// Runs until the connection ends, and says why. Every call that still waits is answered with *gone*.
    pub async fn run(self) -> WireError {
        let Self { mut reader, mut writer, mut frames, incoming, pending, silence, owed, patient } = self;
        let receive = async {
            loop {
                let received = match reader.receive(silence).await {
                    Ok(frame) => frame,
                    Err(WireError::Silent(_)) if patient && owed.load(Ordering::Relaxed) > 0 => continue,
                    Err(error) => return error,
                };
                let unasked = match received {
                    Frame::Request(request) => {
                        owed.fetch_add(1, Ordering::Relaxed);
                        Incoming::Request(request)
                    }
                    Frame::Event(event) => Incoming::Event(event),
                    Frame::Answer(answer) => {
                        hand_over(&pending, answer);
                        continue;
                    }
                };
                if incoming.send(unasked).await.is_err() {
                    return WireError::Closed;
                }
            }
        };
        let send = async {
            while let Some(queued) = frames.recv().await {
                if let Err(error) = writer.send(&queued.frame).await {
                    return error;
                }
            }
            WireError::Closed
        };
        let end = tokio::select! {
            end = receive => end,
            end = send => end,
        };
        // What was queued before the end (a goodbye, say) still goes out where it can.
        frames.close();
        while let Ok(queued) = frames.try_recv() {
            if writer.send(&queued.frame).await.is_err() {
                break;
            }
        }
        writer.close().await;
        pending.lock().unwrap_or_else(PoisonError::into_inner).clear();
        end
    }
}

fn size(refusal: &Refusal) -> usize {
    let Refusal { code, happened, means, remedy } = refusal;
    [code, happened, means, remedy].into_iter().map(String::len).sum()
}

fn too_large(bytes: usize) -> Refusal {
    Refusal::new(
        "answer_too_large",
        format!("the answer would have {bytes} bytes, and a message has at most {MOST_BODY}"),
        "whatever was asked for was done; only its answer could not be sent",
        "ask for less at a time, and report this with the versions of both sides",
    )
}

fn question_too_large(kind: &str, bytes: usize) -> Refusal {
    Refusal::new(
        "message_too_large",
        format!(
            "a message of the kind `{kind}` would have {bytes} bytes, and a message has at most {MOST_BODY}"
        ),
        "it was not sent; the connection goes on",
        "send less at a time, and report this with the version of this side",
    )
}

fn hand_over(pending: &Pending, answer: Answer) {
    // An answer nobody waits for any more, or to a question that was never asked, is nobody's.
    if let Some(waiting) = pending.lock().unwrap_or_else(PoisonError::into_inner).remove(&answer.re) {
        let _ = waiting.send(answer.result);
    }
}

#[cfg(test)]
mod tests;
