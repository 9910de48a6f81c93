//! One attempt at a session: read who we are, dial, prove, be welcomed, keep what the welcome states, hold the session
//! until it ends. Its result is how it ended; when to try again is not its affair.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tenure_actors::database::DatabaseError;
use tenure_protocol::id::{Digest, Millis, SessionCounter, StoreId};
use tenure_protocol::proof::{Binding, Claim, NodeKey, Purpose};
use tenure_protocol::refusal::{Explain as _, Refusal, chain};
use tenure_protocol::session::{HeldDeclaration, Hello, Welcome};
use tenure_protocol::token::SessionToken;
use tenure_protocol::version::{SOFTWARE, SPOKEN};
use tenure_protocol::wire::tls::{self, ALPN_LINK, Trust, binding};
use tenure_protocol::wire::{Connection, codec, frame};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::client::TlsStream;

use super::dial::{Dialled, LastGood, dial, named};
use super::greeting::{self, GreetingError};
use super::state::{Farewell, is_withdrawn};
use super::{Around, LAST_GOOD, SESSION_TOKEN, no_earlier, session, tell};
use crate::identity::key::KeyFiles;
use crate::identity::{self, StoredIdentity};
use crate::machine;
use crate::manifest;
use crate::reconcile::intake;
use crate::reconcile::unreadable;
use crate::steps;

/// What is told once the session is open.
#[derive(Debug)]
pub(super) struct News {
    /// The address that led there, as it was dialled.
    pub(super) address: String,
    /// Its name does not resolve; an address from before was used.
    pub(super) remembered: bool,
    /// How often the session beats.
    pub(super) beat: Duration,
}

/// What a session is opened with, read anew for each.
struct Start {
    identity: StoredIdentity,
    key: NodeKey,
    control_time: Option<Millis>,
    last_good: Option<LastGood>,
    token: Option<SessionToken>,
    held: Option<HeldDeclaration>,
    reported: Option<(u64, Digest)>,
}

/// Tries once. `opened` is called when the session is open.
pub(super) async fn attempt(around: Around, opened: impl FnOnce(News)) -> Farewell {
    match open(&around).await {
        Ok((identity, welcome, connection, news)) => {
            opened(news);
            session::hold(&around, &identity, welcome, connection).await
        }
        Err(farewell) => farewell,
    }
}

type Open = (StoredIdentity, Welcome, Connection<TlsStream<tokio::net::TcpStream>>, News);

async fn open(around: &Around) -> Result<Open, Farewell> {
    let key_files = KeyFiles::at(around.ground.node_key());
    let start = around.store.off(move |store| Ok::<_, DatabaseError>(read(store, &key_files))).await;
    let start =
        start.map_err(|error| Farewell::Unreached(unreadable(error)))?.map_err(Farewell::Unreached)?;
    let roots = start.identity.roots.iter().map(|root| root.certificate.clone()).collect();
    let config = tls::client(Trust::Roots(roots), no_earlier(start.control_time), ALPN_LINK)
        .map_err(|error| Farewell::Unreached(no_trust(&error)))?;
    let dialled = dial(&start.identity.addresses, start.last_good.as_ref(), &config, &around.resolve).await;
    let Dialled { stream, reached, remembered } =
        dialled.map_err(|error| Farewell::Unreached(error.refusal()))?;
    // On the disk before it is used.
    let numbers = around.counter.clone();
    let counter = around.store.off(move |store| numbers.next(|| store.next_session_counter())).await;
    let counter = counter.map_err(|error| Farewell::Unreached(unreadable(error)))?;
    let binding = binding(stream.get_ref().1, Purpose::Session)
        .map_err(|_| Farewell::Unreached(GreetingError::Nonsense.refusal()))?;
    let life = (around.store.store_id(), counter);
    // Whoever answers proved its certificate already, so its frames may have their full size.
    let mut connection = Connection::new(stream, frame::MOST);
    let welcome = match greet(&mut connection, binding, &start, life).await {
        Ok(welcome) => welcome,
        Err(error) => {
            let farewell = error.farewell();
            let is_told = !is_withdrawn(farewell.reason())
                || tell::last_words(around, &start.identity, &mut connection).await;
            return Err(if is_told { farewell } else { Farewell::Unheard(farewell.reason().clone()) });
        }
    };
    let identity = keep(around, &start, &welcome, &reached).await.map_err(Farewell::Unreached)?;
    let address = named(&reached.address, reached.socket);
    let news = News { address, remembered, beat: session::beat(&welcome) };
    Ok((identity, welcome, connection, news))
}

fn read(store: &crate::store::Store, key_files: &KeyFiles) -> Result<Start, Refusal> {
    let database = |error: DatabaseError| unreadable(error);
    let identity: StoredIdentity = store.identity().map_err(database)?.ok_or_else(no_identity)?;
    let key = key_files.standing(&identity.key).map_err(|error| error.of(&identity.node))?;
    let token = store.note(SESSION_TOKEN).map_err(database)?;
    let last_good = store.note(LAST_GOOD).map_err(database)?;
    let held = intake::held_whole(store, &identity).map_err(database)?;
    Ok(Start {
        key,
        control_time: store.control_time().map_err(database)?,
        // Notes that cannot be read are only notes.
        last_good: last_good.and_then(|bytes| codec::decode(&bytes).ok()),
        token: token.and_then(|bytes| codec::decode(&bytes).ok()),
        held: held.map(|held| HeldDeclaration { revision: held.revision, sha256: held.sha256 }),
        reported: tell::reported(store).map_err(database)?,
        identity,
    })
}

async fn greet<S: AsyncRead + AsyncWrite>(
    connection: &mut Connection<S>,
    binding: Binding,
    start: &Start,
    (store_id, session_counter): (StoreId, SessionCounter),
) -> Result<Welcome, GreetingError> {
    let Start { identity, key, .. } = start;
    let proof = key.prove(&Claim {
        purpose: Purpose::Session,
        control_plane_id: identity.control_plane_id,
        node: &identity.node,
        generation: identity.generation,
        binding: &binding,
    });
    let hello = Hello {
        control_plane_id: identity.control_plane_id,
        epoch: identity.epoch,
        node: identity.node.clone(),
        generation: identity.generation,
        fencing: identity.fencing,
        store_id,
        session_counter,
        boot_id: machine::boot_id(),
        software: SOFTWARE.to_owned(),
        protocol: SPOKEN,
        capabilities: Vec::new(),
        proof,
        session_token: start.token.clone(),
        held: start.held,
        reported: start.reported,
    };
    greeting::ask(connection, 1, &hello).await
}

/// Keeps what an opened session states, before anything is done on it.
async fn keep(
    around: &Around,
    start: &Start,
    welcome: &Welcome,
    reached: &LastGood,
) -> Result<StoredIdentity, Refusal> {
    let identity = start.identity.after(welcome).map_err(|error| not_believed(&error))?;
    if identity.epoch != start.identity.epoch {
        tracing::warn!(from = %start.identity.epoch, to = %identity.epoch, "control plane was restored");
    }
    let good = (start.last_good.as_ref() != Some(reached)).then(|| codec::encode(reached));
    let (kept, was, now) = (identity.clone(), start.identity.clone(), welcome.now);
    let (ground, writing) = (around.ground.clone(), Arc::clone(&around.writing));
    let token = codec::encode(&welcome.token);
    let written = around.store.off(move |store| {
        let _alone = writing.lock().unwrap_or_else(PoisonError::into_inner);
        if store.identity::<StoredIdentity>()?.is_none_or(|stored| stored.token != was.token) {
            return Ok(Written::Superseded);
        }
        let notes = || {
            if kept != was {
                identity::keep::keep(store, &ground, &kept)?;
            }
            store.set_control_time(now)?;
            steps::TOKEN_NOTED.take(|| store.set_note(SESSION_TOKEN, &token))?;
            good.map_or(Ok(()), |good| steps::ADDRESS_NOTED.take(|| store.set_note(LAST_GOOD, &good)))
        };
        // The next session states all of it again; a full disk must not cost this one (O-05).
        if let Err(error) = notes() {
            tracing::warn!(%error, "what the session stated is not kept");
        }
        Ok::<_, DatabaseError>(Written::Kept(manifest::write(&ground.manifest(), &kept)))
    });
    match written.await.map_err(unreadable)? {
        Written::Kept(Ok(true)) => tracing::info!(node = %identity.node, "manifest written"),
        Written::Kept(Ok(false)) => {}
        Written::Kept(Err(error)) => tracing::warn!(error = %chain(&error), "manifest not written"),
        Written::Superseded => return Err(superseded()),
    }
    Ok(identity)
}

/// What became of what a session stated.
enum Written {
    Kept(Result<bool, manifest::CannotWrite>),
    /// A new token was answered meanwhile: this session is of the standing before.
    Superseded,
}

fn superseded() -> Refusal {
    Refusal::new(
        "enrolled_anew",
        "this machine was enrolled anew while the session opened",
        "the session belonged to the enrolment before",
        "nothing: the host dials again by itself",
    )
}

fn no_identity() -> Refusal {
    Refusal::new(
        "not_enrolled",
        "this machine belongs to no control plane",
        "there is nobody to dial",
        "enrol it with `tenure-host enrol --token-file FILE`",
    )
}

fn no_trust(error: &tls::TlsError) -> Refusal {
    Refusal::new(
        "no_trust",
        format!("the stored certificate authorities cannot be used: {}", chain(error)),
        "without them nobody can be believed, so nobody is dialled; the machine holds what it was told",
        "run `tenure reinvite NODE` where the control plane is and give this machine the new token",
    )
}

fn not_believed(error: &crate::identity::StandingRefused) -> Refusal {
    Refusal::new(
        "standing_refused",
        chain(error),
        "the control plane that answers is not in the state this machine has seen: an old copy of its store, or another",
        "find out which copy of the control plane runs, and start the newest; this machine does nothing for an older one",
    )
}
