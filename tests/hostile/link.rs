//! One end of a link in the hands of a test: TLS as a host speaks it, and frames one by one.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use tenure_controlplane::ground::Ground;
use tenure_controlplane::keys::{self, Keys};
use tenure_protocol::enrolment::{self, Enrolled, Join};
use tenure_protocol::envelope::{Answer, Frame};
use tenure_protocol::id::{BootId, Millis, SessionCounter, StoreId};
use tenure_protocol::kind::Message;
use tenure_protocol::profile::{Inventory, Profile};
use tenure_protocol::proof::{Binding, Claim, NodeKey, Purpose};
use tenure_protocol::refusal::Refusal;
use tenure_protocol::resource::ResourceKind;
use tenure_protocol::secret::Secret;
use tenure_protocol::session::{Hello, Welcome};
use tenure_protocol::token::Presented;
use tenure_protocol::version::SPOKEN;
use tenure_protocol::wire::frame::MOST;
use tenure_protocol::wire::tls::{self, ALPN_LINK, SERVER_NAME, Trust, binding};
use tenure_protocol::wire::{Connection, codec};
use tenure_tests::sandbox::Sandbox;
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::bytes::request;

/// Longer than any deadline of the wire.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// The keys of a sandbox's control plane.
pub(crate) fn keys(sandbox: &Sandbox) -> Keys {
    keys::load(&Ground::new(sandbox.at("control"))).unwrap()
}

/// Connects to the link's port from 127.0.0.`source`.
pub(crate) async fn connect(sandbox: &Sandbox, source: u8) -> TcpStream {
    connect_by(TcpSocket::new_v4().unwrap(), sandbox, source).await
}

/// The same, with so little room for what comes that whoever does not read is noticed soon.
async fn connect_deaf(sandbox: &Sandbox) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    connect_by(socket, sandbox, 1).await
}

async fn connect_by(socket: TcpSocket, sandbox: &Sandbox, source: u8) -> TcpStream {
    socket.bind((Ipv4Addr::new(127, 0, 0, source), 0).into()).unwrap();
    socket.connect(sandbox.address().parse().unwrap()).await.unwrap()
}

/// Connects, and speaks TLS as a host would.
pub(crate) async fn shaken(sandbox: &Sandbox, source: u8) -> TlsStream<TcpStream> {
    shaken_over(connect(sandbox, source).await, sandbox).await
}

/// The same as a client of this configuration.
pub(crate) async fn shaken_by(
    sandbox: &Sandbox,
    config: Arc<ClientConfig>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(SERVER_NAME).unwrap();
    TlsConnector::from(config).connect(name, connect(sandbox, 1).await).await
}

async fn shaken_over(stream: TcpStream, sandbox: &Sandbox) -> TlsStream<TcpStream> {
    let trust = Trust::Roots(vec![keys(sandbox).root.certificate]);
    let config = tls::client(trust, Millis(0), ALPN_LINK).unwrap();
    let name = ServerName::try_from(SERVER_NAME).unwrap();
    TlsConnector::from(config).connect(name, stream).await.unwrap()
}

/// A link on which frames are spoken.
pub(crate) struct Link {
    pub(crate) connection: Connection<TlsStream<TcpStream>>,
    bindings: [Binding; 2],
    next: u64,
}

impl Link {
    pub(crate) async fn open(sandbox: &Sandbox) -> Self {
        Self::over(shaken(sandbox, 1).await)
    }

    fn over(stream: TlsStream<TcpStream>) -> Self {
        let bindings =
            [Purpose::Enrol, Purpose::Session].map(|purpose| binding(stream.get_ref().1, purpose).unwrap());
        Self { connection: Connection::new(stream, MOST), bindings, next: 1 }
    }

    /// Asks and waits for the answer; a connection that ends without one is a refusal of the code `closed`.
    pub(crate) async fn ask_raw(&mut self, to: &str, kind: &str, body: Vec<u8>) -> Result<Vec<u8>, Refusal> {
        let id = self.next;
        self.next += 1;
        let closed = |_| Refusal::new("closed", "closed", "", "");
        self.connection.send(&request(id, to, kind, body)).await.map_err(closed)?;
        loop {
            if let Frame::Answer(Answer { re, result }) =
                self.connection.receive(SOON).await.map_err(closed)?
                && re == id
            {
                return result;
            }
        }
    }

    pub(crate) async fn ask<M: Message>(&mut self, to: &str, message: &M) -> Result<M::Answer, Refusal> {
        let answer = self.ask_raw(to, M::KIND.name, codec::encode(message)).await?;
        Ok(codec::decode(&answer).unwrap())
    }

    /// The first frame of an enrolment: `text` is what is presented, `good` the token that the key signs for.
    pub(crate) async fn present(
        &mut self,
        text: &str,
        good: &Presented,
        key: &NodeKey,
    ) -> Result<(), Refusal> {
        let hello = enrolment::Hello {
            token: Secret::new(text.to_owned()),
            key: key.public(),
            proof: key.prove(&Claim {
                purpose: Purpose::Enrol,
                control_plane_id: good.invitation.control_plane_id,
                node: &good.invitation.node,
                generation: good.invitation.generation,
                binding: &self.bindings[0],
            }),
            software: "0.1.0".to_owned(),
            protocol: SPOKEN,
        };
        self.ask("fleet", &hello).await.map(drop)
    }
}

/// What a machine says of itself when it joins.
pub(crate) fn joining() -> Join {
    let kinds = ResourceKind::ALL.iter().map(|kind| kind.as_str().to_owned()).collect();
    Join { profile: Profile::default(), inventory: Inventory { kinds, ..Inventory::default() } }
}

/// A node whose machine is ours to misuse.
pub(crate) struct Node {
    key: NodeKey,
    pub(crate) enrolled: Enrolled,
    sessions: u64,
}

impl Node {
    pub(crate) async fn enrolled(sandbox: &Sandbox, name: &str) -> Self {
        let token = sandbox.invite(name, &[]);
        let (good, key) = (Presented::parse(&token).unwrap(), NodeKey::generate().unwrap());
        let mut link = Link::open(sandbox).await;
        link.present(&token, &good, &key).await.unwrap();
        let enrolled = link.ask("fleet", &joining()).await.unwrap();
        Self { key, enrolled, sessions: 0 }
    }

    /// An open session of it.
    pub(crate) async fn session(&mut self, sandbox: &Sandbox) -> (Link, Welcome) {
        self.session_over(Link::open(sandbox).await).await
    }

    /// One over a connection with little room for answers.
    pub(crate) async fn deaf_session(&mut self, sandbox: &Sandbox) -> (Link, Welcome) {
        let stream = shaken_over(connect_deaf(sandbox).await, sandbox).await;
        self.session_over(Link::over(stream)).await
    }

    async fn session_over(&mut self, mut link: Link) -> (Link, Welcome) {
        self.sessions += 1;
        let Enrolled { control_plane_id, epoch, node, generation, fencing, .. } = self.enrolled.clone();
        let proof = self.key.prove(&Claim {
            purpose: Purpose::Session,
            control_plane_id,
            node: &node,
            generation,
            binding: &link.bindings[1],
        });
        let hello = Hello {
            control_plane_id,
            epoch,
            node,
            generation,
            fencing,
            store_id: StoreId::from_bytes([7; 16]),
            session_counter: SessionCounter(self.sessions),
            boot_id: BootId::from_bytes([7; 16]),
            software: "0.1.0".to_owned(),
            protocol: SPOKEN,
            capabilities: Vec::new(),
            proof,
            session_token: None,
            held: None,
            reported: None,
        };
        let welcome = link.ask("fleet", &hello).await.unwrap();
        (link, welcome)
    }
}
