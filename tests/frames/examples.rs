//! One example of every message and of every answer, with every optional field there.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tenure_protocol::content::{Fetch, Missing, MissingAre, Piece, Pieces, Push, Pushed, Put, Wanted};
use tenure_protocol::enrolment::{Briefing, BriefingLine, Enrolled, Join, Root, Verified};
use tenure_protocol::event::{Acknowledged, Listed, NodeEvent, Spooled};
use tenure_protocol::foresight::{
    Foresee, ForeseeOf, ForeseenLine, ForeseenPage, PackageMove, Verdict, What,
};
use tenure_protocol::id::*;
use tenure_protocol::kind::Message;
use tenure_protocol::machine::{MachineState, Mode, NodeState};
use tenure_protocol::operator::*;
use tenure_protocol::outcome::{Origin, Outcome, ResourceOutcome};
use tenure_protocol::profile::{Disk, Facts, Inventory, Profile};
use tenure_protocol::proof::{NodeKey, Proof};
use tenure_protocol::refusal::Refusal;
use tenure_protocol::report::{Counts, Part, Received, Summary, Trigger};
use tenure_protocol::resource::Content;
use tenure_protocol::secret::Secret;
use tenure_protocol::token::{Invitation, SessionClaims, Signer};
use tenure_protocol::version::ProtocolRange;
use tenure_protocol::wire::codec;
use tenure_protocol::{enrolment, rescue, session};

/// One message, or one answer.
pub struct Example {
    /// The kind of a message, and `KIND.answer` of what answers it.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Reads bytes as this form and writes them again; none when they cannot be read.
    pub again: fn(&[u8]) -> Option<Vec<u8>>,
}

/// Every example there is.
pub fn all() -> Vec<Example> {
    let mut examples = Vec::new();
    link(&mut examples);
    operator(&mut examples);
    host(&mut examples);
    examples
}

fn add<M: Message>(to: &mut Vec<Example>, message: M, answer: M::Answer) {
    to.push(example(M::KIND.name.to_owned(), &message));
    to.push(example(format!("{}.answer", M::KIND.name), &answer));
}

fn example<T: Serialize + DeserializeOwned>(name: String, value: &T) -> Example {
    let again = |bytes: &[u8]| codec::decode::<T>(bytes).ok().map(|value| codec::encode(&value));
    Example { name, bytes: codec::encode(value), again }
}

/// What is kept as content is JSON.
fn document<T: Serialize + DeserializeOwned>(name: &str, value: &T) -> Example {
    let write = |value: &T| serde_json::to_vec(value).unwrap();
    let again = |bytes: &[u8]| {
        let value: T = serde_json::from_slice(bytes).ok()?;
        serde_json::to_vec(&value).ok()
    };
    Example { name: name.to_owned(), bytes: write(value), again }
}

fn node() -> NodeId {
    NodeId::new("edge-1").unwrap()
}

fn module() -> ModuleName {
    ModuleName::new("web").unwrap()
}

fn rental() -> Rental {
    Rental::new("own").unwrap()
}

fn control_plane() -> ControlPlaneId {
    ControlPlaneId::from_bytes([1; 16])
}

fn epoch() -> Epoch {
    Epoch { number: 1, id: EpochId::from_bytes([2; 16]) }
}

fn revision() -> Revision {
    Revision { epoch: epoch(), number: RevisionNumber(7) }
}

fn refusal() -> Refusal {
    Refusal::new("code", "happened", "means", "do")
}

fn push() -> Push {
    Push { revision: revision(), sha256: Digest::of(b"declaration"), bytes: 11, resources: 2 }
}

fn counts() -> Counts {
    Counts { unchanged: 1, applied: 2, ..Counts::default() }
}

fn outcome() -> ResourceOutcome {
    ResourceOutcome {
        key: "file:/etc/a".into(),
        module: "web".into(),
        outcome: Outcome::Applied,
        since: Millis(1_700_000_000_000),
        count: 1,
        code: Some("drift".into()),
        reason: Some("its content differed".into()),
    }
}

fn summary() -> Summary {
    Summary {
        refused_revision: None,
        pass: 3,
        trigger: Trigger::Timer,
        revision: Some(revision()),
        started: Millis(1_700_000_000_000),
        took_ms: 12,
        counts: counts(),
        owned: 3,
        digest: Digest::of(b"outcomes"),
        refused: Some(refusal()),
    }
}

fn root() -> Root {
    Root { number: 1, certificate: vec![0x30, 0x82] }
}

fn line() -> BriefingLine {
    BriefingLine { subject: "protocol".into(), failed: false, text: "both speak version 1".into() }
}

pub fn session_token() -> tenure_protocol::token::SessionToken {
    let claims = SessionClaims {
        v: 1,
        key_id: 1,
        control_plane_id: control_plane(),
        epoch: epoch(),
        node: node(),
        generation: Generation(1),
        fencing: FencingToken(1),
        key: NodeKey::from_seed(&[7; 32]).public().digest(),
        expires: Millis(1_700_000_000_000),
    };
    Signer::new(&[9; 32]).mint_session(&claims).unwrap()
}

pub fn token() -> Secret {
    let invitation = Invitation {
        v: 1,
        addresses: vec!["control.example:7443".into()],
        ca: Digest::of(b"ca"),
        control_plane_id: control_plane(),
        epoch: epoch(),
        node: node(),
        rental: rental(),
        generation: Generation(1),
        mode: Mode::Converged,
        expires: Millis(1_700_000_000_000),
        counter: 1,
        key_id: 1,
    };
    Signer::new(&[9; 32]).mint(&invitation).unwrap().text
}

fn profile() -> Profile {
    Profile {
        hostname: "edge-1".into(),
        os: "debian 12".into(),
        kernel: "6.1.0".into(),
        architecture: "x86_64".into(),
        cpus: 2,
        memory: 1 << 30,
        machine: "digest".into(),
        sandbox: false,
    }
}

fn link(examples: &mut Vec<Example>) {
    let protocol = ProtocolRange { lowest: 1, highest: 1 };
    let (key, proof) = (NodeKey::from_seed(&[7; 32]).public(), Proof::from_bytes([5; 64]));
    let software = || "0.1.0".to_owned();
    add(
        examples,
        enrolment::Hello { token: token(), key, proof, software: software(), protocol },
        Verified { protocol: 1 },
    );
    let inventory = Inventory {
        listeners: vec!["tcp 0.0.0.0:5432 postgres".into()],
        kinds: vec!["file".into()],
        could_not_look: vec!["sockets".into()],
    };
    let enrolled = Enrolled {
        control_plane_id: control_plane(),
        epoch: epoch(),
        node: node(),
        node_uuid: NodeUuid::from_bytes([3; 16]),
        rental: rental(),
        generation: Generation(1),
        fencing: FencingToken(1),
        mode: Mode::Converged,
        enrolled_at: Millis(1_700_000_000_000),
        roots: vec![root()],
        briefing: Briefing::new(vec![line()]),
    };
    add(examples, Join { profile: profile(), inventory }, enrolled);
    let hello = session::Hello {
        control_plane_id: control_plane(),
        epoch: epoch(),
        node: node(),
        generation: Generation(1),
        fencing: FencingToken(1),
        store_id: StoreId::from_bytes([4; 16]),
        session_counter: SessionCounter(5),
        boot_id: BootId::from_bytes([6; 16]),
        software: software(),
        protocol,
        capabilities: vec!["file".into(), "directory".into()],
        proof,
        session_token: Some(session_token()),
        held: Some(session::HeldDeclaration { revision: revision(), sha256: Digest::of(b"declaration") }),
        reported: Some((3, Digest::of(b"outcomes"))),
    };
    let welcome = session::Welcome {
        session: SessionId::from_bytes([8; 16]),
        epoch: epoch(),
        protocol: 1,
        fencing: FencingToken(1),
        mode: Mode::Converged,
        lease_ms: 90_000,
        heartbeat_ms: 10_000,
        silence_ms: 25_000,
        token: session_token(),
        token_expires: Millis(1_700_000_000_000),
        token_expires_in_ms: 1_800_000,
        now: Millis(1_700_000_000_000),
        roots: vec![root()],
        declared: Some(push()),
    };
    add(examples, hello, welcome);
    let renewed = session::Renewed {
        token: session_token(),
        expires: Millis(1_700_000_000_000),
        expires_in_ms: 1_800_000,
    };
    add(examples, session::Renew {}, renewed);
    let facts = Facts {
        observed_at: Millis(1_700_000_000_000),
        running_version: software(),
        disk: Disk::Measured { free: 1, size: 2 },
    };
    add(examples, session::Heartbeat { facts }, session::Beaten { now: Millis(1_700_000_000_000) });
    let part = Part {
        summary: summary(),
        full: true,
        part: 0,
        outcomes: vec![outcome()],
        forgotten: vec!["file:/etc/b".into()],
        last: true,
    };
    add(examples, part, Received { resend: false });
    let event = NodeEvent {
        id: EventId::from_bytes([9; 16]),
        at: Millis(1_700_000_000_000),
        kind: "drift_repaired".into(),
        key: Some("file:/etc/a".into()),
        text: "its content differed".into(),
    };
    add(
        examples,
        Spooled { events: vec![event] },
        Acknowledged { events: vec![EventId::from_bytes([9; 16])] },
    );
    let wanted = vec![Wanted { sha256: Digest::of(b"x"), offset: 0 }];
    add(examples, Fetch { wanted }, pieces());
    add(examples, push(), Pushed::HaveLater(revision()));
    let declaration = Content { sha256: Digest::of(b"declaration"), size: 11 };
    add(examples, Foresee { declaration, from: 0 }, foreseen());
    add(examples, session::Ended { reason: refusal(), retry_after_ms: 1_000 }, ());
}

fn foreseen() -> ForeseenPage {
    let line = ForeseenLine {
        key: "package:hello".into(),
        module: "base".into(),
        verdict: Verdict::Change,
        what: What::Change,
        code: None,
        detail: vec!["it is not installed".into(), "it would be installed at 2.10-3".into()],
        packages: vec![PackageMove { name: "hello".into(), from: None, to: Some("2.10-3".into()) }],
    };
    let waits = ForeseenLine {
        key: "file:/etc/a".into(),
        verdict: Verdict::Keep,
        what: What::Wait,
        code: Some("needs_failed".into()),
        detail: vec!["it needs package:other, which would not be as declared".into()],
        packages: Vec::new(),
        ..line.clone()
    };
    ForeseenPage {
        at: Millis(1_700_000_000_000),
        refused: Some(refusal()),
        lines: vec![line, waits],
        more: false,
    }
}

fn pieces() -> Pieces {
    Pieces { pieces: vec![Piece { sha256: Digest::of(b"x"), size: 1, offset: 0, bytes: b"x".to_vec() }] }
}

fn node_line() -> NodeLine {
    NodeLine {
        node: node(),
        state: NodeState::Ready,
        machine_state: Some(MachineState::Enrolled),
        mode: Mode::Converged,
        last_contact: Some(Millis(1_700_000_000_000)),
        revision: Revisions { declared: Some(RevisionNumber(7)), applied: Some(RevisionNumber(6)) },
        version: Some("0.1.0".into()),
        assignable: true,
        held: 0,
        failed: 1,
        outstanding: 2,
        behind: vec!["host".into()],
    }
}

fn operator(examples: &mut Vec<Example>) {
    let status = StatusIs {
        control_plane_id: control_plane(),
        epoch: epoch(),
        version: "0.1.0".into(),
        advertise: vec!["control.example:7443".into()],
        nodes: 1,
    };
    add(examples, Status {}, status);
    add(examples, Nodes { after: Some(node()) }, NodesPage { nodes: vec![node_line()], more: false });
    let detail = NodeDetail {
        line: node_line(),
        rental: rental(),
        generation: Generation(1),
        fencing_token: FencingToken(1),
        enrolled_at: Some(Millis(1_700_000_000_000)),
        invited_until: Some(Millis(1_700_000_000_000)),
        lease_expires: Some(Millis(1_700_000_000_000)),
        session: Some(SessionLine {
            session: SessionId::from_bytes([8; 16]),
            address: "127.0.0.1:40000".into(),
            since: Millis(1_700_000_000_000),
        }),
        profile: Some(profile()),
        briefing: vec![line()],
        disk: Disk::Unmeasurable,
        report: Some(ReportLine {
            revision: Some(revision()),
            trigger: Trigger::Declaration,
            observed_at: Millis(1_700_000_000_000),
            received_at: Millis(1_700_000_000_001),
            took_ms: 12,
            counts: counts(),
            refused: Some(refusal()),
        }),
        declared_resources: 3,
    };
    add(examples, Node { node: node() }, detail);
    let page = ResourcesPage { resources: vec![outcome()], more: true };
    add(examples, Resources { node: node(), after: Some("file:/etc/a".into()) }, page);
    let rollout = RolloutLine {
        node: node(),
        declared: RevisionNumber(7),
        standing: Standing::Outstanding,
        resources: 3,
        reported: 1,
        counts: counts(),
        reason: "it is away".into(),
    };
    add(examples, Rollout { after: None }, RolloutPage { nodes: vec![rollout], more: false });
    let listed = Listed {
        seq: 1,
        node: Some(node()),
        kind: "drift_repaired".into(),
        key: Some("file:/etc/a".into()),
        text: "its content differed".into(),
        observed_at: Millis(1_700_000_000_000),
        received_at: Millis(1_700_000_000_001),
    };
    add(
        examples,
        Events { after: Some(0), node: Some(node()) },
        EventsPage { events: vec![listed], more: false },
    );
    let invited =
        || Invited { node: node(), token: token(), expires: Millis(1_700_000_000_000), handed_back: false };
    let invite = Invite {
        node: Some(node()),
        rental: Some(rental()),
        generation: Some(Generation(1)),
        mode: Mode::Adopted,
        valid_ms: Some(1_800_000),
        rejoin: Rejoin::Key,
        clock_is_right: false,
    };
    add(examples, invite, invited());
    let reinvite =
        Reinvite { node: node(), valid_ms: Some(1_800_000), revoke_now: false, clock_is_right: false };
    add(examples, reinvite, invited());
    add(examples, Retire { node: node() }, Retired { already: false });
    add(examples, Missing { sha256: vec![Digest::of(b"x")] }, MissingAre { sha256: vec![Digest::of(b"x")] });
    add(examples, Put { pieces: pieces().pieces }, ());
    add(examples, Get { wanted: vec![Wanted { sha256: Digest::of(b"x"), offset: 0 }] }, pieces());
    let content = Content { sha256: Digest::of(b"plan"), size: 4 };
    let declare = Declare { folder: Digest::of(b"folder"), plan: true, allow_removals: Some(3) };
    add(examples, declare, Declared { written: false, plan: content });
    add(examples, Render { folder: Digest::of(b"folder"), node: node() }, Rendered { declaration: content });
    add(examples, ForeseeOf { node: node(), declaration: content, from: 1_000 }, foreseen());
    let folder =
        Folder { files: vec![FolderFile { path: "fleet.toml".into(), sha256: Digest::of(b"x"), size: 1 }] };
    examples.push(document("document.folder", &folder));
    let change = Change {
        key: "file:/etc/a".into(),
        module: module(),
        what: ChangeKind::Change,
        detail: vec!["mode 0644 → 0600".into()],
    };
    let plan = NodePlan {
        node: node(),
        from: None,
        to: RevisionNumber(1),
        resources: 1,
        declaration: Some(content),
        cannot_know: Some(refusal()),
        refused: Some(refusal()),
        changes: vec![change],
        unlisted: 1,
    };
    let plan = Plan { nodes: vec![plan], not_in_folder: vec![node()] };
    examples.push(document("document.plan", &plan));
}

fn host(examples: &mut Vec<Example>) {
    let identity = rescue::Identity {
        node: node(),
        control_plane_id: control_plane(),
        addresses: vec!["control.example:7443".into()],
        generation: Generation(1),
        fencing: FencingToken(1),
        mode: Mode::Converged,
    };
    let status = rescue::StatusIs {
        machine_state: MachineState::Enrolled,
        version: "0.1.0".into(),
        store_id: StoreId::from_bytes([4; 16]),
        identity: Some(identity),
        link: rescue::LinkStatus::Up {
            since: Millis(1_700_000_000_000),
            address: "127.0.0.1:7443".into(),
            note: Some("by remembered address".into()),
        },
        revision: Some(revision()),
        last: Some(summary()),
        read_whole: Some(Millis(1_700_000_000_000)),
        owned: 3,
        spooled: 1,
        store_note: Some("set aside".into()),
        credential: None,
        sandbox: true,
    };
    add(examples, rescue::Status {}, status);
    let enrolled =
        rescue::EnrolledAs { node: node(), mode: Mode::Converged, briefing: vec![line()], already: false };
    add(examples, rescue::Enrol { token: token() }, enrolled);
    add(examples, rescue::Apply {}, rescue::Applied { summary: summary() });
    let outcomes = rescue::OutcomesPage { outcomes: vec![outcome()], more: false };
    add(examples, rescue::Outcomes { after: None }, outcomes);
    let owned = rescue::OwnedLine {
        key: "file:/etc/a".into(),
        module: "web".into(),
        origin: Origin::Created,
        recorded_at: Millis(1_700_000_000_000),
    };
    add(examples, rescue::Owned { after: None }, rescue::OwnedPage { owned: vec![owned], more: false });
}
