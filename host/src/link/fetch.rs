//! Content from the control plane, in pieces: which requests to make (pure), and making them, a few at a time. What
//! arrived is in the store, so a connection that breaks costs only what was on its way.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tenure_actors::database::DatabaseError;
use tenure_protocol::content::{Fetch, MOST_IN_AN_ANSWER, MOST_PIECES, PIECE, Piece, Pieces, Wanted};
use tenure_protocol::id::Digest;
use tenure_protocol::resource::Content;
use tenure_protocol::wire::{CallError, Outgoing};
use tokio::task::JoinSet;

use crate::store::{ContentError, Store};

/// Why content is not here yet.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The control plane did not give it.
    #[error("the control plane did not give the content that was asked for")]
    Call(#[from] CallError),
    /// What it gave is not what was asked for.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// The store does not answer.
    #[error("the store does not answer")]
    Store(#[from] DatabaseError),
    /// It answers and gives nothing.
    #[error("the control plane answers without giving any of what was asked for")]
    NoProgress,
}

/// How many requests are on their way at once: enough to fill the way there and back, little enough to be no memory.
const AT_ONCE: usize = 4;
/// A piece over a very slow line. The session's own silence ends what is dead.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// Requests that are planned at a time; a content of many gigabytes needs no plan of its whole.
const MOST_REQUESTS: usize = 256;

/// Brings everything of `contents` that the store lacks.
pub async fn fetch(
    outgoing: &Outgoing,
    to: &str,
    store: &Store,
    contents: Vec<Content>,
) -> Result<(), FetchError> {
    let mut before = Vec::new();
    loop {
        let asked = contents.clone();
        let missing = store.off(move |store| store.missing(&asked)).await?;
        if missing.is_empty() {
            return Ok(());
        }
        if missing == before {
            return Err(FetchError::NoProgress);
        }
        round(outgoing, to, store, plan(&missing)).await?;
        before = missing;
    }
}

/// The requests that bring what is missing, each of about one answer. The pieces of one content follow each other.
pub fn plan(missing: &[(Content, u64)]) -> Vec<Vec<Wanted>> {
    let most = u64::try_from(MOST_IN_AN_ANSWER).unwrap_or(u64::MAX);
    let mut requests = Vec::new();
    let (mut request, mut bytes) = (Vec::new(), 0_u64);
    'all: for (content, have) in missing {
        let mut offset = *have;
        loop {
            let length = content.size.saturating_sub(offset).min(u64::from(PIECE));
            if request.len() == MOST_PIECES || (!request.is_empty() && bytes.saturating_add(length) > most) {
                requests.push(std::mem::take(&mut request));
                bytes = 0;
                if requests.len() == MOST_REQUESTS {
                    break 'all;
                }
            }
            request.push(Wanted { sha256: content.sha256, offset });
            bytes = bytes.saturating_add(length);
            offset = offset.saturating_add(length);
            if offset >= content.size {
                break;
            }
        }
    }
    if !request.is_empty() {
        requests.push(request);
    }
    requests
}

/// Brings these contents into memory, for what leaves nothing behind. What is not what its digest says is none of it.
pub async fn bring(
    outgoing: &Outgoing,
    to: &str,
    contents: &[Content],
) -> Result<HashMap<Digest, Vec<u8>>, FetchError> {
    let mut brought: HashMap<Digest, Vec<u8>> = HashMap::new();
    loop {
        let have = |content: &Content| brought.get(&content.sha256).map(|bytes| length(bytes));
        let missing = contents.iter().filter(|content| have(content).is_none_or(|have| have < content.size));
        let missing: Vec<(Content, u64)> =
            missing.map(|content| (*content, have(content).unwrap_or(0))).collect();
        if missing.is_empty() {
            brought.retain(|sha256, bytes| Digest::of(bytes) == *sha256);
            return Ok(brought);
        }
        let mut progress = false;
        for wanted in plan(&missing) {
            let Pieces { pieces } = outgoing.call(to, &Fetch { wanted }, ANSWER_WITHIN).await?;
            for Piece { sha256, offset, bytes, .. } in pieces {
                let wanted = missing.iter().find(|(content, _)| content.sha256 == sha256);
                let Some((content, _)) = wanted else { continue };
                let got = brought.entry(sha256).or_default();
                let fits = length(got).saturating_add(length(&bytes)) <= content.size;
                if offset == length(got) && fits {
                    progress |= !bytes.is_empty() || content.size == 0;
                    got.extend_from_slice(&bytes);
                }
            }
        }
        if !progress {
            return Err(FetchError::NoProgress);
        }
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// Makes the requests and keeps the answers, in the order of the requests.
async fn round(
    outgoing: &Outgoing,
    to: &str,
    store: &Store,
    requests: Vec<Vec<Wanted>>,
) -> Result<(), FetchError> {
    let mut requests = requests.into_iter().enumerate();
    // Dropped with this future, it cancels what is on its way.
    let mut asking = JoinSet::new();
    let mut early = BTreeMap::new();
    let mut next = 0;
    loop {
        while asking.len() < AT_ONCE
            && let Some((number, wanted)) = requests.next()
        {
            let (outgoing, to) = (outgoing.clone(), to.to_owned());
            asking.spawn(async move { (number, outgoing.call(&to, &Fetch { wanted }, ANSWER_WITHIN).await) });
        }
        let Some(answered) = asking.join_next().await else { return Ok(()) };
        let (number, answer) = answered.map_err(|_| CallError::Gone)?;
        early.insert(number, answer?);
        let mut pieces: Vec<Piece> = Vec::new();
        while let Some(Pieces { pieces: more }) = early.remove(&next) {
            pieces.extend(more);
            next += 1;
        }
        keep(store, pieces).await?;
    }
}

/// An answer may hold fewer pieces than were asked for; what then comes out of its order is asked for again.
async fn keep(store: &Store, pieces: Vec<Piece>) -> Result<(), FetchError> {
    if pieces.is_empty() {
        return Ok(());
    }
    match store.off(move |store| store.put_pieces(pieces)).await {
        Ok(_) | Err(ContentError::OutOfOrder { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests;
