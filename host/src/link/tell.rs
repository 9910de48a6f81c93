//! What an open session tells upward: the newest report, in parts, and the events that wait, oldest first. A report is
//! told until it was taken or a newer one is there; an event is kept until it is acknowledged.

use std::convert::Infallible;
use std::time::Duration;

use tenure_actors::database::DatabaseError;
use tenure_actors::timer::Backoff;
use tenure_protocol::event::{NodeEvent, Spooled};
use tenure_protocol::id::Digest;
use tenure_protocol::outcome::ResourceOutcome;
use tenure_protocol::refusal::chain;
use tenure_protocol::report::Part;
use tenure_protocol::wire::{CallError, Connection, Outgoing, codec};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{sleep, timeout};

use super::Around;
use super::greeting::{GreetingError, ask_at};
use crate::identity::StoredIdentity;
use crate::outbox::{Extent, Report, extent, parts};
use crate::steps;
use crate::store::Store;

/// Why something was not told. It is told later.
#[derive(Debug, thiserror::Error)]
enum TellError {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Refused(#[from] GreetingError),
    #[error("the store does not answer")]
    Store(#[from] DatabaseError),
    #[error("the control plane acknowledges none of the events it is told")]
    NothingTaken,
}

const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// What one frame of events may hold, in events and in bytes.
const MOST_EVENTS: u32 = 100;
const MOST_EVENT_BYTES: usize = 160 * 1024;
const REPORTED: &str = "reported";

/// The pass that was last reported whole, and the digest of its outcomes.
pub(super) fn reported(store: &Store) -> Result<Option<(u64, Digest)>, DatabaseError> {
    // A note that cannot be read means that everything is told once more.
    Ok(store.note(REPORTED)?.and_then(|bytes| codec::decode(&bytes).ok()))
}

/// Tells everything there is and will be.
pub(super) async fn run(around: &Around, identity: &StoredIdentity, outgoing: &Outgoing) -> Infallible {
    let mut newest = around.outbox.watch();
    let mut backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(60));
    loop {
        let report = newest.borrow_and_update().clone();
        let told = async {
            // An event that is not taken must not hold up the report, nor the other way round.
            let events = events(around, identity, outgoing).await;
            let report = match &report {
                Some(report) => tell(around, identity, outgoing, report).await,
                None => Ok(()),
            };
            events.and(report)
        };
        let again = match told.await {
            Ok(()) => {
                backoff.reset();
                None
            }
            Err(error) => {
                tracing::debug!(error = %chain(&error), "not told yet");
                Some(backoff.full_jitter())
            }
        };
        let due = async {
            match again {
                Some(wait) => sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // The outbox lives as long as the host.
            _ = newest.changed() => {}
            () = due => {}
        }
    }
}

async fn tell(
    around: &Around,
    identity: &StoredIdentity,
    outgoing: &Outgoing,
    report: &Report,
) -> Result<(), TellError> {
    let to = format!("reconcile/{}", identity.node);
    let summary = &report.summary;
    let told = match (around.store.off(reported).await, &report.all) {
        (Ok(told), _) => told,
        // The report says why nothing was kept; it must get out all the same (O-05).
        (Err(_), Some(_)) => None,
        (Err(error), None) => return Err(error.into()),
    };
    let frames = match extent(told, summary) {
        Extent::Summary => Some(parts(summary, false, [], [])),
        Extent::Changed => Some(parts(summary, false, report.changed.clone(), report.forgotten.clone())),
        Extent::Everything => everything(around, report).await?,
    };
    // None: a newer pass has begun to replace what would be read; its own report follows.
    let Some(frames) = frames else { return Ok(()) };
    let was_full = frames.first().is_some_and(|part| part.full);
    if send(outgoing, &to, frames).await? && !was_full {
        match everything(around, report).await? {
            Some(frames) => drop(send(outgoing, &to, frames).await?),
            None => return Ok(()),
        }
    }
    let told = codec::encode(&(summary.pass, summary.digest));
    // Told it is; where that cannot be noted, everything is told once more by the next session.
    let note = move |store: &Store| steps::REPORT_NOTED.take(|| store.set_note(REPORTED, &told));
    if let Err(error) = around.store.off(note).await {
        tracing::debug!(%error, "report told and not noted");
    }
    Ok(())
}

/// Sends the parts in order; answers whether everything is wanted.
async fn send(outgoing: &Outgoing, to: &str, frames: Vec<Part>) -> Result<bool, TellError> {
    let mut resend = false;
    for part in frames {
        resend |= steps::REPORT_TOLD.awaited(outgoing.call(to, &part, ANSWER_WITHIN)).await?.resend;
    }
    Ok(resend)
}

/// Every outcome of the reported pass, from the store; none when the store is at another pass by now.
async fn everything(around: &Around, report: &Report) -> Result<Option<Vec<Part>>, TellError> {
    const PAGE: u32 = 1_000;
    let summary = &report.summary;
    if let Some(all) = &report.all {
        return Ok(Some(parts(summary, true, all.clone(), [])));
    }
    let pass = summary.pass;
    let read = around.store.off(move |store| -> Result<_, DatabaseError> {
        let mut all: Vec<ResourceOutcome> = Vec::new();
        loop {
            let page = store.outcomes_page(all.last().map(|outcome| outcome.key.as_str()), PAGE)?;
            if page.is_empty() {
                break;
            }
            all.extend(page);
        }
        let still = store.last_pass()?.is_some_and(|last| last.pass == pass);
        Ok(still.then_some(all))
    });
    Ok(read.await?.map(|outcomes| parts(summary, true, outcomes, [])))
}

/// Tells the spooled events until none is left.
async fn events(around: &Around, identity: &StoredIdentity, outgoing: &Outgoing) -> Result<(), TellError> {
    let to = format!("node/{}", identity.node);
    loop {
        let events = around.store.off(|store| store.spooled(MOST_EVENTS)).await?;
        if events.is_empty() {
            return Ok(());
        }
        let spooled = Spooled { events: fitting(events) };
        let told = steps::EVENTS_TOLD.awaited(outgoing.call(&to, &spooled, ANSWER_WITHIN)).await;
        let taken = told?.events;
        if taken.is_empty() {
            return Err(TellError::NothingTaken);
        }
        around.store.off(move |store| store.acknowledge(&taken)).await?;
    }
}

/// What a machine whose standing was withdrawn still has to tell of what it did (X-9, O-57): its events, and nothing
/// else. What is not taken waits for the next try. False: it broke off, and would be taken by whoever listens to its end.
pub(super) async fn last_words<S: AsyncRead + AsyncWrite>(
    around: &Around,
    identity: &StoredIdentity,
    connection: &mut Connection<S>,
) -> bool {
    let to = format!("node/{}", identity.node);
    let telling = async {
        // The greeting was the first request of this connection.
        let mut id = 2;
        loop {
            let events = around.store.off(|store| store.spooled(MOST_EVENTS)).await?;
            if events.is_empty() {
                return Ok(());
            }
            let taken = ask_at(connection, &to, id, &Spooled { events: fitting(events) }).await?.events;
            if taken.is_empty() {
                return Err(TellError::NothingTaken);
            }
            around.store.off(move |store| store.acknowledge(&taken)).await?;
            id += 1;
        }
    };
    match timeout(ANSWER_WITHIN, telling).await {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            tracing::debug!(error = %chain(&error), "last words not told yet");
            // In its own words the control plane takes no more of them.
            matches!(error, TellError::NothingTaken | TellError::Refused(GreetingError::Refused(_)))
        }
        Err(_) => {
            tracing::debug!("last words not told yet");
            false
        }
    }
}

/// As many of the oldest as fit a frame; at least one.
fn fitting(events: Vec<NodeEvent>) -> Vec<NodeEvent> {
    let mut room = MOST_EVENT_BYTES;
    events
        .into_iter()
        .enumerate()
        .take_while(|(number, event)| {
            let size = event.text.len() + event.key.as_ref().map_or(0, String::len) + event.kind.len() + 128;
            let fits = size <= room || *number == 0;
            room = room.saturating_sub(size);
            fits
        })
        .map(|(_, event)| event)
        .collect()
}
