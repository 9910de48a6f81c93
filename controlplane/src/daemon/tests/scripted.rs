//! A control plane to test against, an operator, and hosts that say what a test wants them to say.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use tenure_actors::clock::{ManualClock, Moment};
use tenure_protocol::content::{Fetch, Piece, Put, Wanted};
use tenure_protocol::enrolment::{self, Enrolled, Join};
use tenure_protocol::envelope::{Frame, Request};
use tenure_protocol::id::{BootId, Digest, Generation, Millis, NodeId, SessionCounter, StoreId};
use tenure_protocol::kind::Message;
use tenure_protocol::machine::Mode;
use tenure_protocol::operator::{self, Folder, FolderFile, Invite, Invited, NodeDetail, Rejoin};
use tenure_protocol::profile::{Disk, Facts, Inventory, Profile};
use tenure_protocol::proof::{Binding, Claim, NodeKey, Purpose};
use tenure_protocol::refusal::Refusal;
use tenure_protocol::session::{Heartbeat, Hello, Welcome};
use tenure_protocol::token::Presented;
use tenure_protocol::version::SPOKEN;
use tenure_protocol::wire::exchange::{CallError, Incoming, Outgoing, exchange};
use tenure_protocol::wire::frame::MOST;
use tenure_protocol::wire::tls::{self, ALPN_LINK, SERVER_NAME, Trust};
use tenure_protocol::wire::{Connection, codec};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::daemon::{Control, Options, start};

pub(super) const SOON: Duration = Duration::from_secs(20);
/// 2026-01-01.
pub(super) const START: Moment = Moment::from_millis(1_767_225_600_000);

pub(super) struct Up {
    pub(super) control: Control,
    pub(super) clock: ManualClock,
    pub(super) folder: tempfile::TempDir,
    pub(super) operator: Outgoing,
}

pub(super) fn options(root: &std::path::Path, clock: &ManualClock) -> Options {
    Options {
        root: root.to_owned(),
        listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        advertise: vec!["control.example:7443".to_owned()],
        clock: clock.shared(),
    }
}

pub(super) async fn up() -> Up {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(START);
    up_in(folder, clock).await
}

pub(super) async fn up_in(folder: tempfile::TempDir, clock: ManualClock) -> Up {
    up_with(options(folder.path(), &clock), folder, clock).await
}

pub(super) async fn up_with(options: Options, folder: tempfile::TempDir, clock: ManualClock) -> Up {
    let control = start(options).await.unwrap();
    let stream = UnixStream::connect(&control.socket).await.unwrap();
    let (operator, _, frames) = exchange(Connection::new(stream, MOST), Duration::from_secs(600));
    tokio::spawn(frames.run());
    Up { control, clock, folder, operator }
}

pub(super) fn name(text: &str) -> NodeId {
    NodeId::new(text).unwrap()
}

pub(super) fn refusal<T: std::fmt::Debug>(result: Result<T, CallError>) -> Refusal {
    match result {
        Err(CallError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

impl Up {
    pub(super) async fn restart(self) -> Self {
        let Self { control, clock, folder, operator } = self;
        drop(operator);
        control.stop().await;
        up_in(folder, clock).await
    }

    pub(super) async fn ask<M: Message>(&self, to: &str, message: &M) -> Result<M::Answer, CallError> {
        self.operator.call(to, message, SOON).await
    }

    pub(super) async fn invite(&self, node: &str) -> Invited {
        self.ask("fleet", &invitation(node)).await.unwrap()
    }

    pub(super) async fn reinvite(&self, node: &str, revoke_now: bool) -> Result<Invited, CallError> {
        let node = name(node);
        let asked = operator::Reinvite { node, valid_ms: None, revoke_now, clock_is_right: false };
        self.ask("fleet", &asked).await
    }

    pub(super) async fn node(&self, node: &str) -> NodeDetail {
        self.ask(&format!("node/{node}"), &operator::Node { node: name(node) }).await.unwrap()
    }

    /// How many identities the control plane knows.
    pub(super) async fn node_count(&self) -> u64 {
        self.ask("fleet", &operator::Status {}).await.unwrap().nodes
    }

    pub(super) async fn events(&self, node: &str) -> Vec<(String, String)> {
        let asked = operator::Events { after: Some(0), node: Some(name(node)) };
        let page = self.ask("events", &asked).await.unwrap();
        page.events.into_iter().map(|event| (event.kind, event.text)).collect()
    }

    /// Waits until the node is as `holds` says.
    pub(super) async fn until(&self, node: &str, holds: impl Fn(&NodeDetail) -> bool) -> NodeDetail {
        let look = async {
            loop {
                let detail = self.node(node).await;
                if holds(&detail) {
                    return detail;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(SOON, look).await.unwrap()
    }

    /// Waits until it is noted that this node's host has its session token, which no answer waits for.
    pub(super) async fn until_used(&self, node: &str) {
        let noted = async {
            while !self.control.plane().store.node(name(node)).await.unwrap().unwrap().session_used {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(SOON, noted).await.unwrap();
    }

    /// A host that enrolled as this node.
    pub(super) async fn host(&self, node: &str) -> Host {
        let invited = self.invite(node).await;
        let key = NodeKey::generate().unwrap();
        let enrolled = self.enrol(invited.token.reveal(), &key).await.unwrap();
        Host { key, enrolled, store_id: StoreId::random(), sessions: 0 }
    }

    pub(super) async fn enrol(&self, token: &str, key: &NodeKey) -> Result<Enrolled, Refusal> {
        self.enrol_as(token, key, |hello| hello).await
    }

    pub(super) async fn enrol_as(
        &self,
        token: &str,
        key: &NodeKey,
        change: impl FnOnce(enrolment::Hello) -> enrolment::Hello,
    ) -> Result<Enrolled, Refusal> {
        let mut link = self.dial().await;
        let hello = change(enrol_hello(token, key, &link.binding(Purpose::Enrol)));
        link.ask("fleet", &hello).await?;
        link.ask("fleet", &joining()).await
    }

    pub(super) async fn dial(&self) -> Dialled {
        let root = self.control.plane().keys.root.certificate.clone();
        self.dial_trusting(Trust::Roots(vec![root])).await.unwrap()
    }

    pub(super) async fn dial_trusting(&self, trust: Trust) -> std::io::Result<Dialled> {
        let config = tls::client(trust, Millis(0), ALPN_LINK).unwrap();
        let stream = TcpStream::connect(self.control.address).await.unwrap();
        let name = rustls::pki_types::ServerName::try_from(SERVER_NAME).unwrap();
        let stream = TlsConnector::from(config).connect(name, stream).await?;
        let bindings = [Purpose::Enrol, Purpose::Session]
            .map(|purpose| (purpose, tls::binding(stream.get_ref().1, purpose).unwrap()));
        Ok(Dialled { connection: Connection::new(stream, MOST), bindings, next: 1 })
    }

    pub(super) async fn upload(&self, bytes: &[u8]) -> Digest {
        let sha256 = Digest::of(bytes);
        let size = u64::try_from(bytes.len()).unwrap();
        let step = usize::try_from(tenure_protocol::content::PIECE).unwrap();
        let mut pieces: Vec<Piece> = Vec::new();
        for (number, chunk) in bytes.chunks(step).enumerate() {
            let offset = u64::try_from(number * step).unwrap();
            pieces.push(Piece { sha256, size, offset, bytes: chunk.to_vec() });
        }
        if bytes.is_empty() {
            pieces.push(Piece { sha256, size: 0, offset: 0, bytes: vec![] });
        }
        for piece in pieces {
            self.ask("catalogue", &Put { pieces: vec![piece] }).await.unwrap();
        }
        sha256
    }

    pub(super) async fn folder_of(&self, files: &[(&str, &str)]) -> Digest {
        let mut listing = BTreeMap::new();
        for (path, text) in files {
            let sha256 = self.upload(text.as_bytes()).await;
            listing.insert((*path).to_owned(), (sha256, u64::try_from(text.len()).unwrap()));
        }
        let files =
            listing.into_iter().map(|(path, (sha256, size))| FolderFile { path, sha256, size }).collect();
        self.upload(&serde_json::to_vec(&Folder { files }).unwrap()).await
    }

    pub(super) async fn declare(&self, files: &[(&str, &str)]) -> Result<operator::Declared, CallError> {
        self.declare_with(files, false, None).await
    }

    pub(super) async fn declare_with(
        &self,
        files: &[(&str, &str)],
        plan: bool,
        allow_removals: Option<u64>,
    ) -> Result<operator::Declared, CallError> {
        let folder = self.folder_of(files).await;
        self.ask("catalogue", &operator::Declare { folder, plan, allow_removals }).await
    }

    pub(super) async fn plan(&self, declared: &operator::Declared) -> operator::Plan {
        let wanted = vec![Wanted { sha256: declared.plan.sha256, offset: 0 }];
        let pieces = self.ask("catalogue", &operator::Get { wanted }).await.unwrap().pieces;
        serde_json::from_slice(&pieces[0].bytes).unwrap()
    }
}

pub(super) fn invitation(node: &str) -> Invite {
    Invite {
        node: Some(name(node)),
        rental: None,
        generation: None,
        mode: Mode::Converged,
        valid_ms: None,
        rejoin: Rejoin::Key,
        clock_is_right: false,
    }
}

pub(super) fn enrol_hello(token: &str, key: &NodeKey, binding: &Binding) -> enrolment::Hello {
    let presented = Presented::parse(token).unwrap();
    let invitation = &presented.invitation;
    let claim = Claim {
        purpose: Purpose::Enrol,
        control_plane_id: invitation.control_plane_id,
        node: &invitation.node,
        generation: invitation.generation,
        binding,
    };
    enrolment::Hello {
        token: presented.text(),
        key: key.public(),
        proof: key.prove(&claim),
        software: "0.1.0".to_owned(),
        protocol: SPOKEN,
    }
}

pub(super) fn joining() -> Join {
    Join {
        profile: Profile {
            hostname: "scripted".to_owned(),
            os: "debian 12".to_owned(),
            ..Profile::default()
        },
        inventory: Inventory {
            kinds: tenure_protocol::resource::ResourceKind::ALL
                .iter()
                .map(|kind| kind.as_str().to_owned())
                .collect(),
            ..Inventory::default()
        },
    }
}

/// A link before anybody is known on it.
pub(super) struct Dialled {
    pub(super) connection: Connection<TlsStream<TcpStream>>,
    bindings: [(Purpose, Binding); 2],
    next: u64,
}

impl Dialled {
    pub(super) fn binding(&self, purpose: Purpose) -> Binding {
        self.bindings.iter().find(|(of, _)| *of == purpose).unwrap().1
    }

    /// Asks; a connection that ends without an answer is a refusal of the code `closed`.
    pub(super) async fn ask<M: Message>(&mut self, to: &str, message: &M) -> Result<M::Answer, Refusal> {
        let id = self.next;
        self.next += 1;
        let request =
            Request { to: to.to_owned(), id, kind: M::KIND.name.to_owned(), body: codec::encode(message) };
        let closed = |_| Refusal::new("closed", "closed", "", "");
        self.connection.send(&Frame::Request(request)).await.map_err(closed)?;
        match self.connection.receive(SOON).await.map_err(closed)? {
            Frame::Answer(answer) if answer.re == id => Ok(codec::decode(&answer.result?).unwrap()),
            other => panic!("{other:?}"),
        }
    }
}

/// A scripted host with an identity.
pub(super) struct Host {
    pub(super) key: NodeKey,
    pub(super) enrolled: Enrolled,
    pub(super) store_id: StoreId,
    pub(super) sessions: u64,
}

/// An open session of it.
pub(super) struct Open {
    pub(super) welcome: Welcome,
    pub(super) link: Outgoing,
    pub(super) incoming: mpsc::Receiver<Incoming>,
    pub(super) node: NodeId,
}

impl Host {
    pub(super) fn hello(&self, binding: &Binding) -> Hello {
        let claim = Claim {
            purpose: Purpose::Session,
            control_plane_id: self.enrolled.control_plane_id,
            node: &self.enrolled.node,
            generation: self.enrolled.generation,
            binding,
        };
        Hello {
            control_plane_id: self.enrolled.control_plane_id,
            epoch: self.enrolled.epoch,
            node: self.enrolled.node.clone(),
            generation: self.enrolled.generation,
            fencing: self.enrolled.fencing,
            store_id: self.store_id,
            session_counter: SessionCounter(self.sessions),
            boot_id: BootId::from_bytes([7; 16]),
            software: "0.1.0".to_owned(),
            protocol: SPOKEN,
            capabilities: vec![],
            proof: self.key.prove(&claim),
            session_token: None,
            held: None,
            reported: None,
        }
    }

    pub(super) async fn session(&mut self, up: &Up) -> Open {
        self.session_as(up, |hello| hello).await.unwrap()
    }

    pub(super) async fn session_as(
        &mut self,
        up: &Up,
        change: impl FnOnce(Hello) -> Hello,
    ) -> Result<Open, Refusal> {
        self.sessions += 1;
        let mut dialled = up.dial().await;
        let hello = change(self.hello(&dialled.binding(Purpose::Session)));
        let welcome = dialled.ask("fleet", &hello).await?;
        let (link, incoming, frames) = exchange(dialled.connection, Duration::from_secs(600));
        tokio::spawn(frames.run());
        Ok(Open { welcome, link, incoming, node: self.enrolled.node.clone() })
    }
}

impl Open {
    pub(super) async fn ask<M: Message>(&self, message: &M) -> Result<M::Answer, CallError> {
        self.link.call(&M::KIND.to.replace("{node}", self.node.as_str()), message, SOON).await
    }

    pub(super) async fn beat(&self) -> Result<(), CallError> {
        let disk = Disk::Measured { free: 1, size: 2 };
        let facts = Facts { observed_at: Millis(5), running_version: "0.1.0".to_owned(), disk };
        self.ask(&Heartbeat { facts }).await.map(drop)
    }

    pub(super) async fn fetch(&self, sha256: Digest) -> Result<Vec<u8>, CallError> {
        let wanted = vec![Wanted { sha256, offset: 0 }];
        Ok(self.ask(&Fetch { wanted }).await?.pieces.remove(0).bytes)
    }

    /// The next request of the control plane on this link.
    pub(super) async fn request<M: Message>(&mut self) -> (u64, M) {
        loop {
            match tokio::time::timeout(SOON, self.incoming.recv()).await.unwrap().unwrap() {
                Incoming::Request(request) if request.kind == M::KIND.name => {
                    return (request.id, codec::decode(&request.body).unwrap());
                }
                Incoming::Request(_) | Incoming::Event(_) => {}
            }
        }
    }

    /// Why the control plane ended it.
    pub(super) async fn ended(&mut self) -> Option<String> {
        let next = async {
            while let Some(incoming) = self.incoming.recv().await {
                if let Incoming::Event(event) = incoming {
                    let ended: tenure_protocol::session::Ended = codec::decode(&event.body).unwrap();
                    return Some(ended.reason.code);
                }
            }
            None
        };
        tokio::time::timeout(SOON, next).await.unwrap()
    }
}

pub(super) fn other_generation(hello: Hello) -> Hello {
    Hello { generation: Generation(9), ..hello }
}
