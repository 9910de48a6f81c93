//! Joining: a token is read, the machine recognised, a key made and stored, and only then somebody is dialled. The
//! token is redeemed in two frames; its answer becomes the identity in one commit of the store, and the manifest is
//! written from what was stored (I-03). The daemon runs it, and so does the command where no daemon answers.

use std::sync::{Arc, Mutex, PoisonError};

use tenure_actors::clock::SharedClock;
use tenure_actors::database::DatabaseError;
use tenure_protocol::enrolment::{Enrolled, Hello, Join};
use tenure_protocol::id::Digest;
use tenure_protocol::proof::{Claim, NodeKey, Purpose};
use tenure_protocol::refusal::{Explain, Refusal, chain};
use tenure_protocol::rescue::EnrolledAs;
use tenure_protocol::token::{Invitation, Presented, TokenError};
use tenure_protocol::version::{SOFTWARE, SPOKEN};
use tenure_protocol::wire::tls::{self, ALPN_LINK, TlsError, Trust, binding};
use tenure_protocol::wire::{Connection, frame};

use crate::ground::Ground;
use crate::identity::key::{KeyError, KeyFiles};
use crate::identity::{self, StoredIdentity};
use crate::link::dial::{DialError, Dialled, Resolve, dial};
use crate::link::greeting::{self, GreetingError};
use crate::link::{Around, no_earlier};
use crate::machine;
use crate::manifest;
use crate::steps;
use crate::store::Store;
use recognise::{Stranger, recognise};

pub mod recognise;

/// What an enrolment works with.
#[derive(Clone)]
pub struct Place {
    /// Where.
    pub ground: Ground,
    /// The store.
    pub store: Store,
    /// The time of day.
    pub clock: SharedClock,
    /// How names become addresses.
    pub resolve: Resolve,
    /// Held by whoever writes the identity: an old session must not overwrite what a new token made.
    pub writing: Arc<Mutex<()>>,
}

/// Why a machine did not join. The standing it had before is what it was.
#[derive(Debug, thiserror::Error)]
pub enum EnrolError {
    /// What was handed over is no token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The machine is not the token's to have.
    #[error(transparent)]
    Stranger(#[from] Stranger),
    /// The node key could not be made or kept.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The token names a certificate authority that cannot be used.
    #[error("the token's certificate authority cannot be used")]
    Trust(#[from] TlsError),
    /// The control plane was not reached.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// It did not verify the token, or did not answer.
    #[error(transparent)]
    Greeting(#[from] GreetingError),
    /// The token was sent to be redeemed, and no answer came.
    #[error("the control plane did not answer whether the token was redeemed")]
    Unanswered(#[source] GreetingError),
    /// It answered for somebody else.
    #[error("the control plane's answer is not for this token: {0}")]
    OtherAnswer(&'static str),
    /// The store does not answer.
    #[error("the host's store does not answer")]
    Store(#[from] DatabaseError),
}

impl Place {
    /// That of a running host.
    pub fn of(around: &Around) -> Self {
        Self {
            ground: around.ground.clone(),
            store: around.store.clone(),
            clock: around.clock.clone(),
            resolve: around.resolve.clone(),
            writing: Arc::clone(&around.writing),
        }
    }
}

/// What is settled before anybody is dialled.
struct Ready {
    key: NodeKey,
    already: bool,
    no_earlier: tenure_protocol::id::Millis,
}

/// Redeems `token`. Given the same token again it uses the same key, and is answered with the enrolment that was made
///
pub async fn enrol(place: &Place, token: &Presented) -> Result<EnrolledAs, EnrolError> {
    let (ground, presented) = (place.ground.clone(), token.clone());
    let ready = place.store.off(move |store| prepare(store, &ground, &presented)).await?;
    let enrolled = redeem(place, token, &ready).await?;
    is_for(&enrolled, &token.invitation)?;
    let briefing = enrolled.briefing.lines().to_vec();
    let identity =
        StoredIdentity::of(enrolled, token.invitation.addresses.clone(), ready.key.public(), token.id());
    let (ground, writing) = (place.ground.clone(), Arc::clone(&place.writing));
    let kept = place.store.off(move |store| {
        let _alone = writing.lock().unwrap_or_else(PoisonError::into_inner);
        keep(store, &ground, &identity)
    });
    let identity = kept.await?;
    tracing::info!(
        node = %identity.node,
        mode = %identity.mode,
        fencing = %identity.fencing,
        again = ready.already.then_some(true),
        "enrolled"
    );
    Ok(EnrolledAs { node: identity.node, mode: identity.mode, briefing, already: ready.already })
}

/// Looks, and only then writes the key: a machine that is refused here has not changed by one byte.
fn prepare(store: &Store, ground: &Ground, token: &Presented) -> Result<Ready, EnrolError> {
    let stored: Option<StoredIdentity> = store.identity()?;
    recognise(&manifest::look(&ground.manifest()), stored.as_ref(), &token.invitation)?;
    let files = KeyFiles::at(ground.node_key());
    if let Some(stored) = &stored {
        files.free_pending(&stored.key)?;
    }
    let key = files.for_token(token.id())?;
    let already = stored.is_some_and(|stored| stored.token == token.id() && stored.key == key.public());
    Ok(Ready { key, already, no_earlier: no_earlier(store.control_time()?) })
}

async fn redeem(place: &Place, token: &Presented, ready: &Ready) -> Result<Enrolled, EnrolError> {
    let invitation = &token.invitation;
    let config = tls::client(Trust::ByDigest(invitation.ca), ready.no_earlier, ALPN_LINK)?;
    let Dialled { stream, .. } = dial(&invitation.addresses, None, &config, &place.resolve).await?;
    let binding = binding(stream.get_ref().1, Purpose::Enrol).map_err(|_| GreetingError::Nonsense)?;
    let proof = ready.key.prove(&Claim {
        purpose: Purpose::Enrol,
        control_plane_id: invitation.control_plane_id,
        node: &invitation.node,
        generation: invitation.generation,
        binding: &binding,
    });
    let hello = Hello {
        token: token.text(),
        key: ready.key.public(),
        proof,
        software: SOFTWARE.to_owned(),
        protocol: SPOKEN,
    };
    let mut connection = Connection::new(stream, frame::MOST);
    greeting::ask(&mut connection, 1, &hello).await?;
    let (root, sandbox) = (place.ground.root().to_owned(), place.ground.is_sandbox());
    let looked = tokio::task::spawn_blocking(move || Join {
        profile: machine::profile(&root, sandbox),
        inventory: machine::inventory(sandbox),
    });
    let join = looked.await.map_err(|_| DatabaseError::Closed)?;
    let answered = steps::TOKEN_REDEEMED.awaited(greeting::ask(&mut connection, 2, &join)).await;
    answered.map_err(|error| match error {
        GreetingError::Refused(_) | GreetingError::NotNow { .. } => EnrolError::Greeting(error),
        GreetingError::Wire(_) | GreetingError::Nonsense | GreetingError::Unreadable(_) => {
            EnrolError::Unanswered(error)
        }
    })
}

/// An answer that names another identity than the token did is not believed, however it came about.
fn is_for(enrolled: &Enrolled, invitation: &Invitation) -> Result<(), EnrolError> {
    let pinned = |root: &tenure_protocol::enrolment::Root| Digest::of(&root.certificate) == invitation.ca;
    let wrong = if enrolled.control_plane_id != invitation.control_plane_id {
        "it names another control plane"
    } else if enrolled.node != invitation.node || enrolled.rental != invitation.rental {
        "it names another node"
    } else if enrolled.generation != invitation.generation {
        "it names another generation"
    } else if !enrolled.roots.iter().any(pinned) {
        "its certificate authorities lack the one the token pins"
    } else {
        return Ok(());
    };
    Err(EnrolError::OtherAnswer(wrong))
}

/// The commit, and what follows from it. A crash after the first line is finished at the next start.
fn keep(store: &Store, ground: &Ground, identity: &StoredIdentity) -> Result<StoredIdentity, EnrolError> {
    identity::keep::keep(store, ground, identity)?;
    // The enrolment stands; whoever reads the key next finishes the renaming, or says why it cannot.
    if let Err(error) = KeyFiles::at(ground.node_key()).promote() {
        tracing::warn!(error = %chain(&error), "enrolled, but the node key is not in its place yet");
    }
    let stored: StoredIdentity = store.identity()?.unwrap_or_else(|| identity.clone());
    if let Err(error) = manifest::write(&ground.manifest(), &stored) {
        tracing::warn!(error = %chain(&error), "manifest not written");
    }
    Ok(stored)
}

impl Explain for EnrolError {
    fn code(&self) -> &'static str {
        match self {
            Self::Token(TokenError::NotAToken) => "not_a_token",
            Self::Token(TokenError::Damaged) => "token_damaged",
            Self::Token(TokenError::OtherForm) => "token_other_form",
            Self::Stranger(stranger) => stranger.code(),
            Self::Key(error) => error.code(),
            Self::Trust(_) => "no_trust",
            Self::Dial(error) => error.code(),
            Self::Greeting(error) => error.code(),
            Self::Unanswered(_) => "redemption_unanswered",
            Self::OtherAnswer(_) => "other_answer",
            Self::Store(_) => "store_unreadable",
        }
    }

    fn meaning(&self) -> String {
        match self {
            Self::Token(_) | Self::Trust(_) => "nobody was dialled, and nothing was changed".to_owned(),
            Self::Stranger(stranger) => stranger.meaning(),
            Self::Key(error) => error.meaning(),
            Self::Dial(DialError::WrongCertificate { .. }) => {
                "whoever is at that address is not who made the token; the token was not shown to it"
                    .to_owned()
            }
            Self::Dial(_) => "the token was not shown to anybody and is still good".to_owned(),
            Self::Greeting(error) => error.meaning(),
            Self::Unanswered(_) => {
                "it may have been redeemed or not; this machine's key is kept, so that asking again is safe"
                    .to_owned()
            }
            Self::OtherAnswer(_) => "nothing of it was kept; the standing before is what holds".to_owned(),
            Self::Store(_) => "nothing is joined without a place to remember it".to_owned(),
        }
    }

    fn remedy(&self) -> String {
        match self {
            Self::Token(TokenError::NotAToken | TokenError::Damaged) => {
                "copy the whole token, from `tenure_e1_` to its last character, and give it again".to_owned()
            }
            Self::Token(TokenError::OtherForm) => {
                "compare the versions of tenure-host and control plane, and upgrade the older one".to_owned()
            }
            Self::Trust(_) => "have a new token made with `tenure reinvite NODE`".to_owned(),
            Self::Stranger(stranger) => stranger.remedy(),
            Self::Key(error) => error.remedy(),
            Self::Dial(error) => format!("{}; then give the same token again", error.remedy()),
            Self::Greeting(error) => error.remedy(),
            Self::Unanswered(_) => "give the same token again".to_owned(),
            Self::OtherAnswer(_) => {
                "look at the control plane's log (`journalctl -u tenure-control` there); have a new token made with `tenure reinvite NODE`"
                    .to_owned()
            }
            Self::Store(_) => {
                "look at the disk below /var/lib/tenure-host, then give the same token again".to_owned()
            }
        }
    }

    fn refusal(&self) -> Refusal {
        match self {
            // What the control plane said travels on in its own words.
            Self::Greeting(error) => error.refusal(),
            _ => Refusal {
                code: self.code().to_owned(),
                happened: chain(self),
                means: self.meaning(),
                remedy: self.remedy(),
            },
        }
    }
}

#[cfg(test)]
mod tests;
