//! Minting tokens: what an invitation says, how long it holds, and when an outstanding one is handed back (N-15).
//! Nothing here writes; the caller stores what was minted before it tells the token.

use std::time::Duration;

use tenure_protocol::id::{Generation, Millis, NodeId, NodeUuid, Rental};
use tenure_protocol::machine::Mode;
use tenure_protocol::operator::{Invite, Invited};
use tenure_protocol::refusal::{Explain as _, Refusal};
use tenure_protocol::secret::Secret;
use tenure_protocol::token::{Invitation, MOST_CHARACTERS, Minted, Presented};

use crate::node::refusals::NodeRefusal;
use crate::plane::Plane;
use crate::store::{CLOCK_TRUSTED, Fact, InvitationRecord, NewNode, NewToken, NodeRecord};

/// How long a token holds where nobody says (N-02).
const VALID: Duration = Duration::from_secs(30 * 60);
const SHORTEST: u64 = 1000;
/// A year and a day; what says that it holds for longer was made by a clock that was ahead.
pub(crate) const LONGEST: u64 = 366 * 24 * 3600 * 1000;
/// An outstanding token with less left than this closes before whoever asked for it can use it.
const USABLE: Duration = Duration::from_secs(60);

/// What a reinvite tells, and what of it is new.
#[derive(Debug)]
pub struct Again {
    /// The answer.
    pub invited: Invited,
    /// The token that is to be stored before it is told; none: the outstanding one is handed back.
    pub minted: Option<NewToken>,
}

/// A new identity and its first token.
pub fn first(plane: &Plane, asked: &Invite) -> Result<(NewNode, Invited), NodeRefusal> {
    let node = asked.node.clone().map_or_else(minted_name, Ok)?;
    let rental = asked.rental.clone().map_or_else(own, Ok)?;
    let generation = asked.generation.unwrap_or(Generation(1));
    let terms = Terms { node: &node, rental: &rental, generation, mode: asked.mode, counter: 1 };
    let (token, invited) = mint(plane, &terms, asked.valid_ms)?;
    let uuid = NodeUuid::random();
    Ok((NewNode { node, uuid, rental, generation, mode: asked.mode, rejoin: asked.rejoin, token }, invited))
}

/// The outstanding token again where it is usable, else a fresh one.
pub fn again(
    plane: &Plane,
    record: &NodeRecord,
    newest: Option<&InvitationRecord>,
    valid_ms: Option<u64>,
) -> Result<Again, NodeRefusal> {
    if let Some(outstanding) = newest.filter(|newest| is_usable(newest, plane.now()))
        && let Some(token) = plane.keys.signer.hand_back(&outstanding.bytes, outstanding.token)?
        && leads_here(plane, &token)
    {
        let invited =
            Invited { node: record.node.clone(), token, expires: outstanding.expires, handed_back: true };
        return Ok(Again { invited, minted: None });
    }
    let counter = newest.map_or(1, |newest| newest.counter.saturating_add(1));
    let terms = Terms {
        node: &record.node,
        rental: &record.rental,
        generation: record.generation,
        mode: record.mode,
        counter,
    };
    let (minted, invited) = mint(plane, &terms, valid_ms)?;
    Ok(Again { invited, minted: Some(minted) })
}

/// One that was made while the clock was ahead holds for longer than anybody said, and is never handed back.
fn is_usable(invitation: &InvitationRecord, now: Millis) -> bool {
    invitation.spent.is_none()
        && !invitation.replaced
        && now.plus(USABLE) <= invitation.expires
        && invitation.minted_at <= now.plus(BEHIND)
}

/// Whether a machine with this token would find this control plane as it is now, and be believed.
fn leads_here(plane: &Plane, token: &Secret) -> bool {
    Presented::parse(token.reveal()).is_ok_and(|Presented { invitation, .. }| {
        invitation.addresses == plane.config.advertise
            && invitation.ca == plane.keys.ca()
            && invitation.epoch == plane.founding.epoch
    })
}

/// How far our clock may be behind the newest durable write: it is put right in small steps all the time.
pub(crate) const BEHIND: Duration = Duration::from_secs(60);

/// Refuses to mint while our clock shows a time before what we wrote last: the window of a token would be a guess (O-53).
/// Whether the clock is behind or was ahead then, only a person knows; `is_right`: one says that it is right now, and
/// that is written.
pub async fn clock_holds(plane: &Plane, is_right: bool) -> Result<(), Refusal> {
    let (newest, now) = (plane.store.newest_stamp().await?, plane.now());
    if now.plus(BEHIND) >= newest {
        return Ok(());
    }
    if is_right {
        let text = format!(
            "the clock was said to be right; writes of up to {} are of one that was not",
            until(newest)
        );
        tracing::warn!(now = %until(now), newest = %until(newest), "clock said to be right");
        plane.store.tell(vec![Fact { node: None, kind: CLOCK_TRUSTED, text }], now).await?;
        return Ok(());
    }
    Err(NodeRefusal::ClockBehind { now, newest }.refusal())
}

struct Terms<'a> {
    node: &'a NodeId,
    rental: &'a Rental,
    generation: Generation,
    mode: Mode,
    counter: u64,
}

fn mint(plane: &Plane, terms: &Terms<'_>, valid_ms: Option<u64>) -> Result<(NewToken, Invited), NodeRefusal> {
    if plane.config.advertise.is_empty() {
        return Err(NodeRefusal::NoAdvertise);
    }
    let valid = match valid_ms {
        None => VALID,
        Some(millis @ SHORTEST..=LONGEST) => Duration::from_millis(millis),
        Some(other) => return Err(NodeRefusal::Validity(other)),
    };
    let expires = plane.now().plus(valid);
    let invitation = Invitation {
        v: 1,
        addresses: plane.config.advertise.clone(),
        ca: plane.keys.ca(),
        control_plane_id: plane.founding.control_plane_id,
        epoch: plane.founding.epoch,
        node: terms.node.clone(),
        rental: terms.rental.clone(),
        generation: terms.generation,
        mode: terms.mode,
        expires,
        counter: terms.counter,
        key_id: 1,
    };
    let Minted { text, id, bytes } = plane.keys.signer.mint(&invitation)?;
    if text.reveal().len() > MOST_CHARACTERS {
        return Err(NodeRefusal::TooLong);
    }
    let token = NewToken { counter: terms.counter, token: id, bytes, expires };
    Ok((token, Invited { node: terms.node.clone(), token: text, expires, handed_back: false }))
}

fn own() -> Result<Rental, NodeRefusal> {
    // A word of ours that has the form; said as a refusal rather than asserted.
    Rental::new("own").map_err(|_| NodeRefusal::TooLong)
}

fn minted_name() -> Result<NodeId, NodeRefusal> {
    let digits: String = NodeUuid::random().to_string().chars().take(8).collect();
    NodeId::new(&format!("node-{digits}")).map_err(|_| NodeRefusal::TooLong)
}

/// A moment as the log shows it.
pub fn until(moment: Millis) -> String {
    jiff::Timestamp::from_millisecond(moment.0).map_or_else(|_| moment.0.to_string(), |at| format!("{at:.0}"))
}
