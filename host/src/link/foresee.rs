//! What this machine would make of a declaration that is only planned. It is brought into memory, looked at, and
//! forgotten: nothing of it reaches the store. One at a time; the pages of what was found are handed out as they are
//! asked for.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::Duration;

use tenure_actors::database::DatabaseError;
use tenure_protocol::declaration::{Declaration, MOST_BYTES};
use tenure_protocol::foresight::{Foresee, ForeseenLine, ForeseenPage, MOST_LINES};
use tenure_protocol::id::{Digest, Millis};
use tenure_protocol::refusal::{Explain as _, Refusal, chain};
use tenure_protocol::resource::Content;
use tenure_protocol::wire::{Outgoing, codec};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::Around;
use super::fetch::bring;
use crate::identity::StoredIdentity;
use crate::reconcile::admit::{AdmitRefusal, Standing};
use crate::reconcile::foresee::{AtHand, PreviewInput, preview, worth_having};
use crate::reconcile::intake::{self, IntakeError};
use crate::store::Store;

/// What was asked, with the number its answer is for.
pub(super) type Asked = (u64, Foresee);

/// So many questions may wait: whoever asks waits for the answer before the next one.
pub(super) const MOST_WAITING: usize = 1;

/// The most bytes of lines in one answer, so that it fits a frame with room for what is around them.
const MOST_IN_AN_ANSWER: usize = 192 * 1024;

/// How often it is looked whether what is waited for has ended.
const AGAIN: Duration = Duration::from_millis(200);
const PASS_RUNNING: &str = "pass_running";
const ALREADY_ASKED: &str = "already_asked";

/// How long is looked for one question, and that it is one at a time: also when the session of the one before is gone.
#[derive(Debug, Clone)]
pub struct Foreseeing {
    /// How long a pass that is at work is waited for.
    pub settles_within: Duration,
    /// How long a question may take; what was not looked at by then cannot be known. The control plane waits for 60 s.
    pub looks_within: Duration,
    /// How long a look that is called off may take to come back, with what it saw until then.
    pub comes_back_within: Duration,
    /// Held by the look that is at work.
    pub(super) looking: Arc<Mutex<()>>,
}

impl Default for Foreseeing {
    fn default() -> Self {
        Self {
            settles_within: Duration::from_secs(20),
            looks_within: Duration::from_secs(45),
            comes_back_within: Duration::from_secs(5),
            looking: Arc::default(),
        }
    }
}

/// Calls a look off when it is dropped: with the question, or with the session.
#[derive(Default)]
struct CallOff(Arc<AtomicBool>);

impl CallOff {
    fn now(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Drop for CallOff {
    fn drop(&mut self) {
        self.now();
    }
}

/// What was found, until something else is asked.
struct Found {
    of: Digest,
    at: Millis,
    refused: Option<Refusal>,
    lines: Vec<ForeseenLine>,
}

/// Answers each question, for as long as the session lasts.
pub(super) async fn serve(
    around: &Around,
    identity: &StoredIdentity,
    outgoing: &Outgoing,
    mut asked: mpsc::Receiver<Asked>,
) -> Infallible {
    let mut kept: Option<Found> = None;
    loop {
        let Some((id, foresee)) = asked.recv().await else { std::future::pending().await };
        let found = match (kept.take(), foresee.from) {
            (_, 0) => look(around, identity, outgoing, foresee.declaration).await,
            (Some(found), _) if found.of == foresee.declaration.sha256 => Ok(found),
            (_, _) => Err(forgotten()),
        };
        let page = found.map(|found| {
            let page = page(&found, foresee.from);
            // Nobody asks for what comes after the last.
            kept = page.more.then_some(found);
            codec::encode(&page)
        });
        // A connection that takes no answer any more ends by itself.
        let _ = outgoing.answer(id, page).await;
    }
}

/// The lines from there on, as many as fit.
fn page(found: &Found, from: u64) -> ForeseenPage {
    let from = usize::try_from(from).unwrap_or(usize::MAX).min(found.lines.len());
    let rest = found.lines.get(from..).unwrap_or_default();
    let mut left = MOST_IN_AN_ANSWER;
    let fits = |(at, line): &(usize, &ForeseenLine)| {
        let size = codec::encode(*line).len();
        let fits = *at == 0 || size <= left;
        left = left.saturating_sub(size);
        fits
    };
    let lines: Vec<ForeseenLine> =
        rest.iter().take(MOST_LINES).enumerate().take_while(fits).map(|(_, line)| line.clone()).collect();
    let more = lines.len() < rest.len();
    ForeseenPage { at: found.at, refused: found.refused.clone(), lines, more }
}

async fn look(
    around: &Around,
    identity: &StoredIdentity,
    outgoing: &Outgoing,
    declaration: Content,
) -> Result<Found, Refusal> {
    let (deadline, call_off) = (Instant::now() + around.foreseeing.looks_within, CallOff::default());
    if declaration.size > MOST_BYTES {
        return Err(not_read(&format!("it has {} bytes, at most {MOST_BYTES}", declaration.size)));
    }
    let to = format!("reconcile/{}", identity.node);
    let mut bytes =
        bring(outgoing, &to, &[declaration]).await.map_err(|error| not_brought(&chain(&error)))?;
    let bytes =
        bytes.remove(&declaration.sha256).ok_or_else(|| not_read("it is not what its digest says"))?;
    let parsed = Declaration::parse(&bytes).map_err(|error| not_read(&chain(&error)))?;
    let wanted = worth_having(&parsed);
    let missing = around.store.off(move |store| store.missing(&wanted)).await;
    let missing = missing.map_err(crate::reconcile::unreadable)?;
    let missing: Vec<Content> = missing.into_iter().map(|(content, _)| content).collect();
    // Without its content a preview says less, and nothing wrong.
    let brought = match bring(outgoing, &to, &missing).await {
        Ok(brought) => brought,
        Err(error) => {
            tracing::debug!(error = %chain(&error), "content of what is foreseen was not brought");
            Default::default()
        }
    };
    let planned = Arc::new(Planned { of: declaration.sha256, declaration: parsed, brought });
    if Instant::now() >= deadline {
        // What it is about took all of the time to come.
        call_off.now();
    }
    let mut settled = pin!(settled(around, identity, &planned, &call_off));
    match timeout_at(deadline, &mut settled).await {
        Ok(found) => found,
        Err(_) => {
            call_off.now();
            timeout(around.foreseeing.comes_back_within, settled).await.unwrap_or_else(|_| Err(hangs()))
        }
    }
}

/// Looks again as long as something else was at work meanwhile, for a while.
async fn settled(
    around: &Around,
    identity: &StoredIdentity,
    planned: &Arc<Planned>,
    call_off: &CallOff,
) -> Result<Found, Refusal> {
    let deadline = Instant::now() + around.foreseeing.settles_within;
    let passes = |refusal: &Refusal| refusal.is(PASS_RUNNING) || refusal.is(ALREADY_ASKED);
    loop {
        match once(around, identity, planned, call_off).await {
            Err(refusal) if passes(&refusal) && Instant::now() < deadline => sleep(AGAIN).await,
            found => return found,
        }
    }
}

/// A planned declaration, in memory.
struct Planned {
    of: Digest,
    declaration: Declaration,
    brought: HashMap<Digest, Vec<u8>>,
}

async fn once(
    around: &Around,
    identity: &StoredIdentity,
    planned: &Arc<Planned>,
    CallOff(called_off): &CallOff,
) -> Result<Found, Refusal> {
    let standing = Standing {
        control_plane_id: identity.control_plane_id,
        node: identity.node.clone(),
        generation: identity.generation,
        epoch: identity.epoch,
    };
    let (ground, at, of, planned) = (around.ground.clone(), around.now(), planned.of, Arc::clone(planned));
    let (looking, called_off) = (Arc::clone(&around.foreseeing.looking), Arc::clone(called_off));
    let foreseen = around.store.off(move |store| {
        let _alone = match looking.try_lock() {
            Ok(alone) => alone,
            Err(TryLockError::Poisoned(alone)) => alone.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(Err(busy())),
        };
        undisturbed(store, || {
            let declaration = &planned.declaration;
            let refused = match intake::admit(store, Some(&standing), declaration, of) {
                Ok(_) => None,
                Err(IntakeError::Refused(refusal)) => Some(AdmitRefusal::refusal(&refusal)),
                Err(IntakeError::Store(error)) => return Err(error),
            };
            let input = PreviewInput {
                ground: &ground,
                store: Some(store),
                declaration,
                programs: crate::program::of(&ground),
                contents: &AtHand { brought: &planned.brought, store },
                now: at,
                called_off: &called_off,
            };
            Ok((refused, preview(&input)?))
        })
    });
    let (refused, lines) = foreseen.await.map_err(crate::reconcile::unreadable)??;
    Ok(Found { of, at, refused, lines })
}

/// What is seen while no pass is at work. What one changed meanwhile may have been looked at before and after, also when
/// it began and ended while it was looked.
fn undisturbed<T>(
    store: &Store,
    look: impl FnOnce() -> Result<T, DatabaseError>,
) -> Result<Result<T, Refusal>, DatabaseError> {
    let begun = store.passes_begun();
    if is_passing(store) {
        return Ok(Err(while_passing()));
    }
    let seen = look()?;
    let disturbed = is_passing(store) || store.passes_begun() != begun;
    Ok(if disturbed { Err(while_passing()) } else { Ok(seen) })
}

fn is_passing(store: &Store) -> bool {
    matches!(store.passing().try_lock(), Err(TryLockError::WouldBlock))
}

fn while_passing() -> Refusal {
    Refusal::new(
        PASS_RUNNING,
        "a pass is at work on this machine",
        "what it leaves behind is not known yet, so nothing was foreseen; nothing was changed",
        "plan again in a moment with `tenure declare DIR --plan`",
    )
}

fn hangs() -> Refusal {
    Refusal::new(
        "look_hangs",
        "looking at this machine takes too long, and does not come back when it is called off",
        "a disk, a network file system or a program there may hang; what would change is not known; nothing was changed",
        "run `tenure-host plan` on the machine itself, and look there what it waits for",
    )
}

/// Another question is being answered.
pub(super) fn busy() -> Refusal {
    Refusal::new(
        ALREADY_ASKED,
        "this machine is looking already what another declaration would change",
        "it answers one such question at a time; nothing was changed",
        "plan again in a moment with `tenure declare DIR --plan`",
    )
}

fn forgotten() -> Refusal {
    Refusal::new(
        "foresight_forgotten",
        "what was foreseen is not here any more: something else was asked since, or the session is a new one",
        "the lines that came before may be of another look; nothing was changed",
        "plan again with `tenure declare DIR --plan`",
    )
}

fn not_brought(why: &str) -> Refusal {
    Refusal::new(
        "declaration_not_fetched",
        format!("the planned declaration could not be fetched: {why}"),
        "nothing was foreseen and nothing was changed; the machine holds its last declaration",
        "plan again; if it stays, look at the host's log (`journalctl -u tenure-host`)",
    )
}

fn not_read(why: &str) -> Refusal {
    Refusal::new(
        "declaration_unreadable",
        format!("the planned declaration cannot be read: {why}"),
        "nothing was foreseen and nothing was changed; declared, it would be refused",
        "compare the versions of both sides (`tenure nodes`)",
    )
}

#[cfg(test)]
mod tests {
    use tenure_actors::clock::Moment;
    use tenure_protocol::foresight::What;

    use super::*;

    #[test]
    fn pages_hand_out_every_line_once_and_in_order_whatever_their_size() {
        let line = |number: usize| ForeseenLine {
            key: format!("file:/srv/{number}"),
            module: "base".to_owned(),
            verdict: What::Change.verdict(),
            what: What::Change,
            code: None,
            detail: vec!["x".repeat(number % 7 * 20_000)],
            packages: Vec::new(),
        };
        let lines: Vec<ForeseenLine> = (0..2_500).map(line).collect();
        let found = Found { of: Digest::of(b"d"), at: Millis(1), refused: None, lines: lines.clone() };
        let mut got = Vec::new();
        loop {
            let page = page(&found, u64::try_from(got.len()).unwrap());
            assert!(codec::encode(&page).len() < 250 * 1024);
            assert!(!page.lines.is_empty());
            got.extend(page.lines);
            if !page.more {
                break;
            }
        }
        assert_eq!(got, lines);
        assert!(page(&found, u64::MAX).lines.is_empty());
    }

    #[test]
    fn a_pass_that_began_and_ended_while_it_was_looked_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let ground = crate::ground::Ground::new(folder.path().join("root"), true);
        ground.create().unwrap();
        let store = Store::open(&ground, true, Moment::from_millis(1)).unwrap().store;
        assert_eq!(undisturbed(&store, || Ok(1)).unwrap(), Ok(1));
        let pass = || {
            let passing = store.passing();
            let _at_work = passing.lock().unwrap();
            store.next_pass(0)
        };
        let seen = undisturbed(&store, || Ok(pass()));
        assert!(seen.unwrap().unwrap_err().is(PASS_RUNNING));
        assert_eq!(undisturbed(&store, || Ok(2)).unwrap(), Ok(2));
    }

    #[test]
    fn a_look_is_called_off_with_the_question_that_asked_for_it() {
        let call_off = CallOff::default();
        let called_off = Arc::clone(&call_off.0);
        assert!(!called_off.load(Ordering::Relaxed));
        drop(call_off);
        assert!(called_off.load(Ordering::Relaxed));
    }
}
