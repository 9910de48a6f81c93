//! What an operator and every other integration may ask of the control plane. The command line speaks nothing else.

use serde::{Deserialize, Serialize};

use crate::content::Wanted;
use crate::enrolment::BriefingLine;
use crate::event::Listed;
use crate::id::{
    ControlPlaneId, Digest, Epoch, FencingToken, Generation, Millis, ModuleName, NodeId, Rental, Revision,
    RevisionNumber, SessionId,
};
use crate::machine::{MachineState, Mode, NodeState};
use crate::outcome::ResourceOutcome;
use crate::profile::{Disk, Profile};
use crate::report::Counts;
use crate::resource::Content;
use crate::secret::Secret;
use crate::wire::codec::bounded;

/// The most lines a page may have.
pub const PAGE: u32 = 200;

/// Who is this control plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {}

/// What it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusIs {
    /// Its identity.
    pub control_plane_id: ControlPlaneId,
    /// Its epoch.
    pub epoch: Epoch,
    /// Its running version.
    pub version: String,
    /// Where nodes reach it.
    #[serde(deserialize_with = "bounded::<_, _, 64>")]
    pub advertise: Vec<String>,
    /// How many identities it knows, in every state.
    pub nodes: u64,
}

/// Reserves a node identity and mints the token for it (N-01).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invite {
    /// Its name; none: one is minted.
    pub node: Option<NodeId>,
    /// What it is rented as; none: `own`.
    pub rental: Option<Rental>,
    /// Which life of the rental; none: the first.
    pub generation: Option<Generation>,
    /// Whether found things are kept.
    pub mode: Mode,
    /// How long the token can be redeemed; none: 30 minutes.
    pub valid_ms: Option<u64>,
    /// Whether a lapsed session needs a reinvite.
    pub rejoin: Rejoin,
    /// The clock of the control plane is right now, although it was written to at a later time (O-53).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clock_is_right: bool,
}

/// How a node whose session lapsed comes back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rejoin {
    /// By proof of its node key.
    #[default]
    Key,
    /// Only by a reinvite.
    Invitation,
}

/// A fresh token for the same identity, or the outstanding one again (N-15).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reinvite {
    /// Whose.
    pub node: NodeId,
    /// How long the token can be redeemed; none: 30 minutes.
    pub valid_ms: Option<u64>,
    /// End the old enrolment now, rather than when the new one is redeemed.
    pub revoke_now: bool,
    /// The clock of the control plane is right now, although it was written to at a later time (O-53).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clock_is_right: bool,
}

/// The token, once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Invited {
    /// Which node it is for.
    pub node: NodeId,
    /// The token.
    pub token: Secret,
    /// Until when it can be redeemed.
    pub expires: Millis,
    /// It is the outstanding one, handed back.
    pub handed_back: bool,
}

/// One page of the fleet, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nodes {
    /// Those whose name comes after this one.
    pub after: Option<NodeId>,
}

/// A page of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodesPage {
    /// At most [`PAGE`].
    #[serde(deserialize_with = "bounded::<_, _, 200>")]
    pub nodes: Vec<NodeLine>,
    /// Whether there are more after the last one.
    pub more: bool,
}

/// One node in a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLine {
    /// Its name.
    pub node: NodeId,
    /// What it is to the control plane.
    pub state: NodeState,
    /// What the machine says it is; none: it has not said.
    pub machine_state: Option<MachineState>,
    /// Whether found things are kept.
    pub mode: Mode,
    /// When it was last heard; none: never.
    pub last_contact: Option<Millis>,
    /// What is declared and what is applied.
    pub revision: Revisions,
    /// The version that runs there; none: it has not said.
    pub version: Option<String>,
    /// Whether it may be assigned anything.
    pub assignable: bool,
    /// How many resources are held.
    pub held: u64,
    /// How many failed or were refused.
    pub failed: u64,
    /// How many are outstanding or unknown.
    pub outstanding: u64,
    /// Component keys that differ from or are absent in what the node reported.
    #[serde(deserialize_with = "bounded::<_, _, 64>")]
    pub behind: Vec<String>,
}

/// Intent and report, side by side and never written from each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revisions {
    /// The newest declared one.
    pub declared: Option<RevisionNumber>,
    /// The newest one the node reported a whole pass of.
    pub applied: Option<RevisionNumber>,
}

/// One node, whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Which.
    pub node: NodeId,
}

/// What is known of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeDetail {
    /// Its line.
    pub line: NodeLine,
    /// What it is rented as.
    pub rental: Rental,
    /// Which life of it.
    pub generation: Generation,
    /// What voids older standing.
    pub fencing_token: FencingToken,
    /// When it enrolled; none: not yet.
    pub enrolled_at: Option<Millis>,
    /// Until when its token can be redeemed, while one is outstanding.
    pub invited_until: Option<Millis>,
    /// When its lease ends; none: it has none.
    pub lease_expires: Option<Millis>,
    /// Its open session.
    pub session: Option<SessionLine>,
    /// What the machine is, as it said at enrolment.
    pub profile: Option<Profile>,
    /// The lines its enrolment ended with.
    #[serde(deserialize_with = "bounded::<_, _, 64>")]
    pub briefing: Vec<BriefingLine>,
    /// What it last said of its disk.
    pub disk: Disk,
    /// Its last report; none: it has not reported.
    pub report: Option<ReportLine>,
    /// How many resources are declared.
    pub declared_resources: u64,
}

/// An open session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionLine {
    /// Its name.
    pub session: SessionId,
    /// From where.
    pub address: String,
    /// Since when.
    pub since: Millis,
}

/// The last report of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportLine {
    /// What was reconciled.
    pub revision: Option<Revision>,
    /// Why.
    pub trigger: crate::report::Trigger,
    /// When the pass began, on the node's clock.
    pub observed_at: Millis,
    /// When it was received, on the control plane's.
    pub received_at: Millis,
    /// How long the pass took.
    pub took_ms: u64,
    /// How many had which outcome.
    pub counts: Counts,
    /// Why a newer declaration was not admitted, or the pass changed nothing more, if so.
    pub refused: Option<crate::refusal::Refusal>,
}

/// A page of a node's resources, by key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Whose.
    pub node: NodeId,
    /// Those whose key comes after this one.
    pub after: Option<String>,
}

/// A page of outcomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourcesPage {
    /// At most [`PAGE`].
    #[serde(deserialize_with = "bounded::<_, _, 200>")]
    pub resources: Vec<ResourceOutcome>,
    /// Whether there are more.
    pub more: bool,
}

/// Withdraws a node's standing for good (N-14).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retire {
    /// Whose.
    pub node: NodeId,
}

/// It is retired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retired {
    /// It already was.
    pub already: bool,
}

/// Pieces of content this control plane made for the asker: plans, bundles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Get {
    /// Which; at most 256.
    #[serde(deserialize_with = "bounded::<_, _, 256>")]
    pub wanted: Vec<Wanted>,
}

/// Declares a fleet folder, or shows what that would change. All or nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declare {
    /// The folder's listing, uploaded before: see [`Folder`].
    pub folder: Digest,
    /// Only say what would change.
    pub plan: bool,
    /// How many resources each node may lose by it in all. None: a tenth, at least one, and never all (H-23).
    pub allow_removals: Option<u64>,
}

/// A fleet folder as it is uploaded: JSON of this form, itself content by digest. Paths are relative, by `/`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Folder {
    /// Every file, sorted by path; at most 20 000, at most 64 MiB together.
    pub files: Vec<FolderFile>,
}

/// A file of a fleet folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FolderFile {
    /// Where, below the folder.
    pub path: String,
    /// Its content.
    pub sha256: Digest,
    /// Its size.
    pub size: u64,
}

/// What was declared, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declared {
    /// Whether anything was written; never with `plan`.
    pub written: bool,
    /// A [`Plan`] as JSON, to be fetched with `content.get`.
    pub plan: Content,
}

/// What a declaration changes, node by node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The nodes the folder names, by name.
    pub nodes: Vec<NodePlan>,
    /// Nodes the folder does not name; they keep their declaration.
    pub not_in_folder: Vec<NodeId>,
}

impl Plan {
    /// Its bytes, as it is kept.
    pub fn encode(&self) -> Vec<u8> {
        #[expect(
            clippy::expect_used,
            reason = "writing to memory cannot fail, and it has no map with odd keys"
        )]
        serde_json::to_vec(self).expect("a plan can always be written")
    }
}

/// What changes for one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePlan {
    /// Which.
    pub node: NodeId,
    /// Its last revision; none: nothing declared yet.
    pub from: Option<RevisionNumber>,
    /// The revision it gets or would get; the same as `from` where nothing changes.
    pub to: RevisionNumber,
    /// How many resources it then has.
    pub resources: u64,
    /// The bytes of what is or would be declared: `node.foresee` asks the node what it would make of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declaration: Option<Content>,
    /// Why the node cannot be asked about those bytes, though it may be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cannot_know: Option<crate::refusal::Refusal>,
    /// Why declaring it would be refused. Only a plan has this: what is refused is not declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<crate::refusal::Refusal>,
    /// Every resource that is added, changed or leaves.
    pub changes: Vec<Change>,
    /// How many more of them there are; they are not listed, since a plan for many nodes has a bound.
    #[serde(default)]
    pub unlisted: u64,
}

/// One change against the last revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Which resource.
    pub key: String,
    /// Of which module.
    pub module: ModuleName,
    /// What happens to it.
    pub what: ChangeKind,
    /// The fields that differ, as in `mode 0644 → 0600`; for text that may be shown, a unified diff.
    pub detail: Vec<String>,
}

/// How a resource changes between two revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It was not declared.
    Add,
    /// It was declared otherwise.
    Change,
    /// It leaves the declaration: removed if we created it, else released.
    Leave,
}

/// Renders one node of a folder into a bundle; writes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Render {
    /// The folder's listing, uploaded before.
    pub folder: Digest,
    /// Which node.
    pub node: NodeId,
}

/// A bundle, to be fetched with `content.get`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rendered {
    /// The bytes of the declaration; the contents it needs are named in it.
    pub declaration: Content,
}

/// A page of how far the newest revisions are, by node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollout {
    /// Those whose name comes after this one.
    pub after: Option<NodeId>,
}

/// A page of a rollout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolloutPage {
    /// Nodes that have a declaration and are not retired; at most [`PAGE`].
    #[serde(deserialize_with = "bounded::<_, _, 200>")]
    pub nodes: Vec<RolloutLine>,
    /// Whether there are more.
    pub more: bool,
}

/// How far one node is. Outstanding is not failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolloutLine {
    /// Which.
    pub node: NodeId,
    /// What is declared.
    pub declared: RevisionNumber,
    /// Where it stands.
    pub standing: Standing,
    /// How many resources are declared.
    pub resources: u64,
    /// How many of them have been reported on under this revision so far.
    pub reported: u64,
    /// The counts of its last report under this revision.
    pub counts: Counts,
    /// Why, in one clause.
    pub reason: String,
}

/// The three columns of a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// A whole pass of this revision was reported, and everything is as declared or held.
    Applied,
    /// A whole pass was reported, and something failed or was refused.
    Failed,
    /// No whole pass of this revision has been reported, or something waits.
    Outstanding,
}

/// A page of events, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Events {
    /// Those after this place; zero: from the beginning. None: the newest page.
    pub after: Option<u64>,
    /// Of this node only.
    pub node: Option<NodeId>,
}

/// A page of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsPage {
    /// At most [`PAGE`].
    #[serde(deserialize_with = "bounded::<_, _, 200>")]
    pub events: Vec<Listed>,
    /// Whether there are more after the last one.
    pub more: bool,
}
