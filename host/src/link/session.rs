//! An open session: frames in both directions until it ends, and what is done on it. Everything that belongs to it is
//! one future, so that nothing of it outlives it. It never dials and never decides when to come back.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use tenure_actors::timer::Backoff;
use tenure_protocol::content::{Push, Pushed};
use tenure_protocol::envelope::Request;
use tenure_protocol::foresight::Foresee;
use tenure_protocol::id::Millis;
use tenure_protocol::kind::{self, Door, Message as _};
use tenure_protocol::refusal::{Refusal, chain};
use tenure_protocol::report::Trigger;
use tenure_protocol::session::{Ended, Renew, Renewed, Welcome};
use tenure_protocol::wire::codec;
use tenure_protocol::wire::exchange::exchange;
use tenure_protocol::wire::{Connection, Incoming, Outgoing, WireError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::buffering::buffering;
use super::greeting::unreadable_message;
use super::state::Farewell;
use super::{Around, declaration, foresee, tell};
use crate::heartbeat::Beat;
use crate::identity::StoredIdentity;
use crate::reconcile::intake;

/// Detection of a half-open connection takes at most this, whatever the other side proposes (O-54).
const MOST_SILENCE: Duration = Duration::from_secs(30);
/// Less would end sessions over a line that merely stutters.
const LEAST_SILENCE: Duration = Duration::from_secs(1);
/// How long the end of a connection may take to be known, with what was said before it.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// A control plane that misspoke is not hammered with beats.
const LEAST_BEAT: Duration = Duration::from_millis(200);

/// Keeps the session until it ends, and says how it ended.
pub(super) async fn hold<S: AsyncRead + AsyncWrite>(
    around: &Around,
    identity: &StoredIdentity,
    welcome: Welcome,
    connection: Connection<S>,
) -> Farewell {
    let silence = silence(&welcome);
    let echoes = around.heartbeat.control_time();
    let (outgoing, incoming, exchange) = exchange(connection, silence);
    let (push, pushes) = watch::channel(welcome.declared);
    around.heartbeat.begin(Beat {
        outgoing: outgoing.clone(),
        to: format!("lease/{}", identity.node),
        every: beat(&welcome),
    });
    around.reconcile.wanted(Trigger::Reconnect);
    let (ask, asked) = mpsc::channel(foresee::MOST_WAITING);
    let to = Inside { push, ask };
    let mut listening = pin!(listen(around, identity, incoming, &outgoing, &to));
    let mut running = pin!(exchange.run());
    let end = tokio::select! {
        farewell = &mut listening => {
            if let Some(farewell) = farewell {
                return farewell;
            }
            // Nothing comes any more: the connection is about to say how it ended.
            let end = timeout(LAST_WORDS, running).await.unwrap_or(WireError::Closed);
            return Farewell::Lost(lost(&end));
        }
        end = &mut running => end,
        never = declaration::take(around, identity, &outgoing, pushes) => match never {},
        never = foresee::serve(around, identity, &outgoing, asked) => match never {},
        never = tell::run(around, identity, &outgoing) => match never {},
        never = renew(around, identity, &outgoing, welcome.token_expires_in_ms) => match never {},
        never = keep_time(around) => match never {},
    };
    // A goodbye that came just before the end is still in the queue, which ends with the exchange.
    match timeout(LAST_WORDS, listening).await {
        Ok(Some(farewell)) => farewell,
        Ok(None) | Err(_) => Farewell::Lost(match end {
            // Not one beat came back from the first on: it is not a line that was lost (O-55).
            WireError::Silent(_) if !echoes.has_changed().unwrap_or(true) => buffering(&chain(&end)),
            end => lost(&end),
        }),
    }
}

/// After how long without a word the other side counts as gone.
fn silence(welcome: &Welcome) -> Duration {
    Duration::from_millis(welcome.silence_ms).clamp(LEAST_SILENCE, MOST_SILENCE)
}

/// How often to beat: one that is lost must not cost the session.
pub(super) fn beat(welcome: &Welcome) -> Duration {
    Duration::from_millis(welcome.heartbeat_ms).min(silence(welcome) / 2).max(LEAST_BEAT)
}

/// Where what comes goes, inside the session.
struct Inside {
    push: watch::Sender<Option<Push>>,
    ask: mpsc::Sender<foresee::Asked>,
}

/// Answers what comes until the session is ended in words; none when the connection ends first.
async fn listen(
    around: &Around,
    identity: &StoredIdentity,
    mut incoming: mpsc::Receiver<Incoming>,
    outgoing: &Outgoing,
    to: &Inside,
) -> Option<Farewell> {
    while let Some(came) = incoming.recv().await {
        match came {
            Incoming::Event(event) if event.kind == Ended::KIND.name => match codec::decode(&event.body) {
                Ok(ended) => return Some(farewell(ended)),
                Err(error) => tracing::debug!(%error, "a goodbye that cannot be read"),
            },
            // A fact of a kind that a newer control plane tells: nobody waits for an answer.
            Incoming::Event(event) => tracing::debug!(kind = %event.kind, "event not known here"),
            Incoming::Request(request) if request.kind == Ended::KIND.name => {
                let ended = codec::decode(&request.body);
                // The answer may not get out before the end, and the other side does not wait for it.
                let _ = outgoing.answer(request.id, Ok(codec::encode(&()))).await;
                if let Ok(ended) = ended {
                    return Some(farewell(ended));
                }
            }
            Incoming::Request(request) => {
                let id = request.id;
                let result = answer(around, identity, request, to).await;
                // A connection that takes no answer any more has ended; a goodbye may still be in the queue.
                if let Some(result) = result.transpose() {
                    let _ = outgoing.answer(id, result).await;
                }
            }
        }
    }
    None
}

/// None: what was asked is answered later, by whoever looks.
async fn answer(
    around: &Around,
    identity: &StoredIdentity,
    request: Request,
    to: &Inside,
) -> Result<Option<Vec<u8>>, Refusal> {
    let kind = kind::admit(&request.kind, Door::LinkDown)?;
    if kind == Foresee::KIND {
        let asked: Foresee = codec::decode(&request.body).map_err(|error| unreadable_message(&error))?;
        return to.ask.try_send((request.id, asked)).map(|()| None).map_err(|_| foresee::busy());
    }
    if kind != Push::KIND {
        return Err(not_performed(kind.name));
    }
    let wanted: Push = codec::decode(&request.body).map_err(|error| unreadable_message(&error))?;
    let us = identity.clone();
    let held = around.store.off(move |store| intake::held_whole(store, &us)).await;
    let held = held.map_err(crate::reconcile::unreadable)?;
    let answer = declaration::judge(held.as_ref(), &wanted);
    if answer == Pushed::Fetching {
        to.push.send_replace(Some(wanted));
    }
    Ok(Some(codec::encode(&answer)))
}

fn farewell(ended: Ended) -> Farewell {
    Farewell::Refused {
        reason: ended.reason.from_outside(),
        retry_after: Duration::from_millis(ended.retry_after_ms),
    }
}

/// A new session token well ahead of the old one's end (N-06). A renewal that fails is tried again; the session does
/// not stand on it.
async fn renew(around: &Around, identity: &StoredIdentity, outgoing: &Outgoing, lives_ms: u64) -> Infallible {
    let to = format!("session/{}", identity.node);
    let mut ends = Instant::now() + Duration::from_millis(lives_ms);
    let mut again = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));
    sleep(well_ahead(lives_ms)).await;
    loop {
        match outgoing.call(&to, &Renew {}, Duration::from_secs(30)).await {
            Ok(Renewed { token, expires_in_ms, .. }) => {
                around.keep_token(token).await;
                ends = Instant::now() + Duration::from_millis(expires_in_ms);
                again.reset();
                sleep(well_ahead(expires_in_ms)).await;
            }
            Err(error) => {
                tracing::debug!(error = %chain(&error), "session token not renewed");
                // Once it has ended there is no hurry any more; the session stands without it.
                let ended = Instant::now() >= ends;
                sleep(if ended { LONG_AFTER } else { again.full_jitter().max(LEAST_BEAT) }).await;
            }
        }
    }
}

/// Two thirds of a token's life.
fn well_ahead(lives_ms: u64) -> Duration {
    Duration::from_millis(lives_ms).max(Duration::from_secs(3)) / 3 * 2
}

/// How often a token that has ended is asked for anew.
const LONG_AFTER: Duration = Duration::from_secs(5 * 60);

/// Keeps the control plane's clock, not more often than once a minute (S-18).
async fn keep_time(around: &Around) -> Infallible {
    const APART: Duration = Duration::from_secs(60);
    let mut told = around.heartbeat.control_time();
    let mut next = Instant::now() + APART;
    loop {
        if told.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        sleep_until(next).await;
        let now: Option<Millis> = *told.borrow_and_update();
        if let Some(now) = now {
            around.keep_time(now).await;
        }
        next = Instant::now() + APART;
    }
}

fn lost(end: &WireError) -> Refusal {
    let code = match end {
        WireError::Silent(_) => "silent",
        WireError::Closed | WireError::Cut | WireError::Io(_) => "closed",
        WireError::Frame(_) => "unreadable_frame",
    };
    Refusal::new(
        code,
        format!("the session with the control plane broke off: {}", chain(end)),
        "this machine goes on holding what it was last told; nothing is lost by it",
        "wait: the host dials again by itself; if it stays, look whether the control plane runs and is reachable",
    )
}

fn not_performed(kind: &str) -> Refusal {
    Refusal::new(
        "unsupported_kind",
        format!("this host does not perform `{kind}`"),
        "its version is older than the one that asks; nothing was done",
        "upgrade the host, or leave the message out",
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tenure_protocol::wire::frame::FrameError;

    use super::*;

    // case: O-70
    #[test]
    fn how_a_session_broke_off_is_told_by_its_cause() {
        let long = FrameError::TooLong { length: 9_000_000, most: 262_144 };
        for (end, code, words) in [
            (WireError::Silent(Duration::from_secs(45)), "silent", "for 45 s"),
            (WireError::Closed, "closed", "the other side closed"),
            (WireError::Cut, "closed", "in the middle of a message"),
            (WireError::Frame(long), "unreadable_frame", "9000000 bytes"),
        ] {
            let refusal = lost(&end);
            assert_eq!(refusal.code, code);
            assert!(refusal.happened.contains(words), "{refusal:?}");
        }
    }
}
