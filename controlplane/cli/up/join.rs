//! The machine joins its control plane on the ordinary path: an invitation, whose token is handed to the
//! host through its own socket. A sandbox is converged, since everything in its tree is there for being declared; a
//! real machine is adopted, so that what is found on it stays as it is. A machine that has joined before is left as it is, unless the control plane now
//! listens elsewhere: the token is where a host learns its addresses from, so it is given a fresh one.

use tenure_protocol::id::NodeId;
use tenure_protocol::machine::Mode;
use tenure_protocol::operator::{self, Invite, Invited, Reinvite, Rejoin};
use tenure_protocol::refusal::Refusal;
use tenure_protocol::rescue::{self, Enrol};

use crate::caller::Caller;
use crate::ending::Trouble;

/// What a control plane answers about a name it has not reserved.
const UNKNOWN: &str = "unknown_node";

/// As what a machine joins that has not joined before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Newcomer {
    pub(crate) node: NodeId,
    pub(crate) mode: Mode,
}

impl Newcomer {
    /// The machine of a sandbox.
    pub(crate) fn of_a_sandbox() -> Result<Self, Trouble> {
        Self::called("sandbox", Mode::Converged)
    }

    /// This machine, by its own name.
    pub(crate) fn this_machine(host_name: &str) -> Result<Self, Trouble> {
        Self::called(&label(host_name), Mode::Adopted)
    }

    fn called(name: &str, mode: Mode) -> Result<Self, Trouble> {
        let node = NodeId::new(name)
            .map_err(|error| Trouble::ours("this machine cannot be named as a node", &error))?;
        Ok(Self { node, mode })
    }
}

/// A machine's name in the form a node's name has.
fn label(host_name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c.to_ascii_lowercase() } else { '-' };
    let name: String =
        host_name.trim().chars().map(plain).skip_while(|c| !c.is_ascii_alphanumeric()).take(63).collect();
    let name = name.trim_end_matches(['-', '.']);
    if name.is_empty() { "machine".to_owned() } else { name.to_owned() }
}

/// What came of it: the node this machine is, and how it came to be that.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) node: NodeId,
    pub(crate) how: How,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// It joined just now.
    Anew,
    /// It was that before.
    Before,
    /// It was that before, and was told just now where the control plane listens.
    ElsewhereNow,
}

pub(crate) async fn join(control: &Caller, host: &Caller, newcomer: &Newcomer) -> Result<Joined, Trouble> {
    let here = control.ask(&operator::Status {}).await?;
    let machine = host.ask(&rescue::Status {}).await?;
    let (invited, how) = match machine.identity {
        Some(identity) if identity.control_plane_id != here.control_plane_id => {
            return Err(stranger(&identity, newcomer.mode).into());
        }
        Some(identity) if here.advertise.iter().all(|address| identity.addresses.contains(address)) => {
            return Ok(Joined { node: identity.node, how: How::Before });
        }
        Some(identity) => (reinvite(control, identity.node).await?, How::ElsewhereNow),
        None => (invite(control, newcomer.clone()).await?, How::Anew),
    };
    let enrolled = host.ask(&Enrol { token: invited.token.clone() }).await?;
    Ok(Joined { node: enrolled.node, how })
}

async fn reinvite(control: &Caller, node: NodeId) -> Result<Invited, Trouble> {
    control.ask(&Reinvite { node, valid_ms: None, revoke_now: false, clock_is_right: false }).await
}

async fn invite(control: &Caller, newcomer: Newcomer) -> Result<Invited, Trouble> {
    let Newcomer { node, mode } = newcomer;
    match control.ask_of(&node, &operator::Node { node: node.clone() }).await {
        Ok(_) => reinvite(control, node).await,
        Err(trouble) if trouble.refusal.is(UNKNOWN) => {
            let asked = Invite {
                node: Some(node),
                rental: None,
                generation: None,
                mode,
                valid_ms: None,
                rejoin: Rejoin::Key,
                clock_is_right: false,
            };
            control.ask(&asked).await
        }
        Err(trouble) => Err(trouble),
    }
}

fn stranger(identity: &rescue::Identity, mode: Mode) -> Refusal {
    let (which, means, remedy) = match mode {
        Mode::Converged => (
            "the machine of this sandbox",
            "the control plane it belonged to is not in this folder any more; nothing was changed",
            "put the `control` folder back, or remove the `machine` folder, which loses what it holds",
        ),
        Mode::Adopted => (
            "this machine",
            "it belongs to that one, and `up` takes no machine over; nothing was changed",
            "run its host by itself (`systemctl start tenure-host`), or retire the node there first",
        ),
    };
    let happened =
        format!("{which} is node {} of another control plane ({})", identity.node, identity.control_plane_id);
    Refusal::new("foreign_control_plane", happened, means, remedy)
}

#[cfg(test)]
mod tests;
