//! Every message kind there is, and the doors through which each may come (S-02). At any other door it is
//! `wrong_door`, before its body is read.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::refusal::Refusal;
use crate::text::{nearest, shown};
use crate::{content, enrolment, event, foresight, operator, report, rescue, session};

/// A way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Door {
    /// The first frame of a link, before anybody is known.
    Greeting,
    /// The second frame of an enrolment.
    Enrolling,
    /// From the node of an open session.
    LinkUp,
    /// From a machine whose standing was withdrawn, after it was told so.
    Withdrawn,
    /// From the control plane, on a link this host opened.
    LinkDown,
    /// An integration or operator, with at least this role.
    Api(Role),
    /// The host's own socket: root on this machine.
    HostSocket,
}

/// What an API principal may do (S-09). Each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Look, without content and invitations.
    Read,
    /// Offers, prepare, launch, stop.
    Work,
    /// Everything.
    Operate,
}

/// A message kind.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name on the wire.
    pub name: &'static str,
    /// The address it is for; `{node}` stands for a node's name.
    pub to: &'static str,
    /// Where it may come in.
    pub doors: &'static [Door],
    /// The type of its body, by module and name, as in `operator::Nodes`.
    pub asks: &'static str,
    /// The type of its answer, likewise; `()` where the answer says nothing but that it was done.
    pub answers: &'static str,
}

/// A request that has a kind and one form of answer.
pub trait Message: Serialize + DeserializeOwned + Send + 'static {
    /// Its kind.
    const KIND: &'static Kind;
    /// The form of its answer.
    type Answer: Serialize + DeserializeOwned + Send + 'static;
}

/// Declares a kind and which message has it. One line a kind, so that the table below stays a table.
macro_rules! kinds {
    ($($name:literal $to:literal [$($door:expr),+] $message:ty => $answer:ty;)+) => {
        /// Every kind, in the order of this table.
        pub const KINDS: &[&Kind] = &[$(<$message as Message>::KIND),+];
        $(impl Message for $message {
            const KIND: &'static Kind = &Kind {
                name: $name,
                to: $to,
                doors: &[$($door),+],
                asks: stringify!($message),
                answers: stringify!($answer),
            };
            type Answer = $answer;
        })+
    };
}

const READ: Door = Door::Api(Role::Read);
const OPERATE: Door = Door::Api(Role::Operate);

kinds! {
    "enrol.hello"         "fleet"            [Door::Greeting]   enrolment::Hello => enrolment::Verified;
    "enrol.join"          "fleet"            [Door::Enrolling]  enrolment::Join => enrolment::Enrolled;
    "session.hello"       "fleet"            [Door::Greeting]   session::Hello => session::Welcome;
    "session.renew"       "session/{node}"   [Door::LinkUp]     session::Renew => session::Renewed;
    "heartbeat"           "lease/{node}"     [Door::LinkUp]     session::Heartbeat => session::Beaten;
    "report"              "reconcile/{node}" [Door::LinkUp]     report::Part => report::Received;
    "events"              "node/{node}"      [Door::LinkUp, Door::Withdrawn] event::Spooled => event::Acknowledged;
    "content.fetch"       "reconcile/{node}" [Door::LinkUp]     content::Fetch => content::Pieces;
    "declaration.push"    "reconcile"        [Door::LinkDown]   content::Push => content::Pushed;
    "declaration.foresee" "reconcile"        [Door::LinkDown]   foresight::Foresee => foresight::ForeseenPage;
    "session.ended"       "link"             [Door::LinkDown]   session::Ended => ();
    "control.status"      "fleet"            [READ]             operator::Status => operator::StatusIs;
    "nodes"               "fleet"            [READ]             operator::Nodes => operator::NodesPage;
    "node"                "node/{node}"      [READ]             operator::Node => operator::NodeDetail;
    "node.resources"      "reconcile/{node}" [READ]             operator::Resources => operator::ResourcesPage;
    "rollout"             "catalogue"        [READ]             operator::Rollout => operator::RolloutPage;
    "events.list"         "events"           [READ]             operator::Events => operator::EventsPage;
    "invite"              "fleet"            [OPERATE]          operator::Invite => operator::Invited;
    "reinvite"            "fleet"            [OPERATE]          operator::Reinvite => operator::Invited;
    "retire"              "fleet"            [OPERATE]          operator::Retire => operator::Retired;
    "content.missing"     "catalogue"        [OPERATE]          content::Missing => content::MissingAre;
    "content.put"         "catalogue"        [OPERATE]          content::Put => ();
    "content.get"         "catalogue"        [OPERATE]          operator::Get => content::Pieces;
    "declare"             "catalogue"        [OPERATE]          operator::Declare => operator::Declared;
    "render"              "catalogue"        [OPERATE]          operator::Render => operator::Rendered;
    "node.foresee"        "reconcile/{node}" [OPERATE]          foresight::ForeseeOf => foresight::ForeseenPage;
    "host.status"         "link"             [Door::HostSocket] rescue::Status => rescue::StatusIs;
    "host.enrol"          "link"             [Door::HostSocket] rescue::Enrol => rescue::EnrolledAs;
    "host.apply"          "reconcile"        [Door::HostSocket] rescue::Apply => rescue::Applied;
    "host.outcomes"       "reconcile"        [Door::HostSocket] rescue::Outcomes => rescue::OutcomesPage;
    "host.owned"          "store"            [Door::HostSocket] rescue::Owned => rescue::OwnedPage;
}

/// The kind of this name.
pub fn find(name: &str) -> Option<&'static Kind> {
    KINDS.iter().copied().find(|kind| kind.name == name)
}

/// Whether `name` may come in at `door`. Asked before the body is read.
pub fn admit(name: &str, door: Door) -> Result<&'static Kind, Refusal> {
    let kind = find(name).ok_or_else(|| unsupported(name))?;
    if kind.doors.iter().any(|open| opens(*open, door)) { Ok(kind) } else { Err(wrong_door(kind, door)) }
}

fn opens(open: Door, at: Door) -> bool {
    match (open, at) {
        (Door::Api(needed), Door::Api(role)) => role >= needed,
        _ => open == at,
    }
}

fn unsupported(name: &str) -> Refusal {
    let hint = nearest(name, KINDS.iter().map(|kind| kind.name))
        .map(|near| format!(" (near: `{near}`)"))
        .unwrap_or_default();
    Refusal::new(
        "unsupported_kind",
        format!("the message kind `{}` is not known here{hint}", shown(name, 64)),
        "the other side is newer, older, or not Tenure at all; nothing was done",
        "compare the versions of both sides (`tenure nodes`), or leave the message out",
    )
}

fn wrong_door(kind: &Kind, door: Door) -> Refusal {
    Refusal::new(
        "wrong_door",
        format!("`{}` may not come in {}", kind.name, door.in_words()),
        "this message exists, but not for whoever is at this door; it was not read",
        format!("send it {}", kind.doors.first().map_or("elsewhere", |door| door.in_words())),
    )
}

impl Door {
    /// Where it is, in words that follow "comes in" and "send it".
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Greeting => "as the first frame of a link",
            Self::Enrolling => "as the second frame of an enrolment",
            Self::LinkUp => "from a node on its open session",
            Self::Withdrawn => "from a machine whose standing was withdrawn",
            Self::LinkDown => "from the control plane on the link",
            Self::Api(Role::Read) => "through the API with the role read",
            Self::Api(Role::Work) => "through the API with the role work",
            Self::Api(Role::Operate) => "through the API with the role operate",
            Self::HostSocket => "through the host's own socket",
        }
    }
}

#[cfg(test)]
mod tests;
