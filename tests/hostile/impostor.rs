//! A host that meets a hostile control plane: one that holds the right certificate, since it was taken over, and ones
//! that do not. Neither costs the host anything: it holds its machine, and is the same node afterwards.

use std::future::Future;
use std::sync::Arc;

use tenure_controlplane::keys::Keys;
use tenure_protocol::envelope::{Answer, Frame};
use tenure_protocol::id::{Digest, Millis, SessionId};
use tenure_protocol::machine::Mode;
use tenure_protocol::session::{Hello, Welcome};
use tenure_protocol::token::SessionClaims;
use tenure_protocol::wire::frame::MOST;
use tenure_protocol::wire::{Connection, codec};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;

use crate::link::{self, SOON};
use crate::witness::Witness;

mod greetings;
mod joining;
mod sessions;

/// A host whose control plane has gone, and somebody else in its place.
struct Impostor {
    witness: Witness,
    keys: Arc<Keys>,
    listener: Arc<TcpListener>,
    /// An invitation that the real control plane made before it went.
    token: String,
    playing: Option<JoinHandle<()>>,
}

impl Impostor {
    async fn new() -> Self {
        let mut witness = Witness::new();
        let keys = Arc::new(link::keys(&witness.sandbox));
        let token = witness.sandbox.invite("edge-2", &[]);
        witness.sandbox.kill_control();
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        // With little room for what comes, whoever does not read is noticed soon.
        socket.set_recv_buffer_size(8192).unwrap();
        socket.bind(witness.sandbox.address().parse().unwrap()).unwrap();
        let listener = Arc::new(socket.listen(64).unwrap());
        Self { witness, keys, listener, token, playing: None }
    }

    /// The host starts anew and meets this, whenever it dials.
    fn plays<F: Future<Output = Option<()>> + Send + 'static>(
        &mut self,
        play: impl Fn(TcpStream) -> F + Send + 'static,
    ) {
        if let Some(before) = self.playing.take() {
            before.abort();
        }
        self.witness.sandbox.kill_host();
        let listener = Arc::clone(&self.listener);
        self.playing = Some(tokio::spawn(async move {
            let mut met = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                met.spawn(play(stream));
            }
        }));
        self.witness.sandbox.start_host();
    }

    /// Waits until the host says this of its link.
    fn wait_for_reason(&self, code: &str, what: &str) -> String {
        let said = tenure_tests::wait::until(&format!("{what}: the host says `{code}`"), SOON, || {
            // A host that is about to start holds its store and answers nobody yet.
            let status = self.witness.sandbox.host(&["status", "--json"]);
            let reason = (status.code == 0).then(|| status.json()["link"]["down"]["reason"].clone())?;
            (reason["code"] == code).then(|| reason["happened"].clone())
        });
        said.as_str().unwrap_or_default().to_owned()
    }

    /// The host repairs its machine, whoever is at the other end.
    fn still_holds(&self) {
        let path = self.witness.sandbox.machine("/a.txt");
        let before = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, "spoilt").unwrap();
        self.witness.sandbox.wait("what was spoilt is put right", |sandbox| {
            sandbox.read("/a.txt").as_deref() == Some(before.as_str())
        });
        self.witness.nothing_panicked();
    }

    /// The real control plane comes back, and everything is as it was.
    fn ends(mut self) {
        self.still_holds();
        if let Some(playing) = self.playing.take() {
            playing.abort();
        }
        self.witness.sandbox.kill_host();
        drop(self.listener);
        self.witness
            .sandbox
            .wait("the port is free", |sandbox| std::net::TcpListener::bind(sandbox.address()).is_ok());
        self.witness.sandbox.start_control();
        self.witness.sandbox.start_host();
        self.witness.works_again();
        assert_eq!(self.witness.sandbox.node()["fencing_token"], 1);
    }
}

type Served = Connection<TlsStream<TcpStream>>;

async fn served(config: Arc<ServerConfig>, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
    TlsAcceptor::from(config).accept(stream).await.ok()
}

/// The greeting of a host that believes us: the connection, and what to answer.
async fn greeted(keys: Arc<Keys>, stream: TcpStream) -> Option<(Served, u64, Hello)> {
    let mut connection = Connection::new(served(Arc::clone(&keys.server), stream).await?, MOST);
    let Frame::Request(request) = connection.receive(SOON).await.ok()? else { return None };
    let hello = codec::decode(&request.body).ok()?;
    Some((connection, request.id, hello))
}

fn welcome(keys: &Keys, hello: &Hello) -> Welcome {
    let claims = SessionClaims {
        v: 1,
        key_id: 1,
        control_plane_id: hello.control_plane_id,
        epoch: hello.epoch,
        node: hello.node.clone(),
        generation: hello.generation,
        fencing: hello.fencing,
        key: Digest::of(b"key"),
        expires: Millis(i64::MAX),
    };
    Welcome {
        session: SessionId::random(),
        epoch: hello.epoch,
        protocol: 1,
        fencing: hello.fencing,
        mode: Mode::Converged,
        // Numbers that nobody in their senses would choose.
        lease_ms: u64::MAX,
        heartbeat_ms: 0,
        silence_ms: u64::MAX,
        token: keys.signer.mint_session(&claims).unwrap(),
        token_expires: Millis(i64::MAX),
        token_expires_in_ms: u64::MAX,
        now: Millis(i64::MIN),
        roots: vec![keys.root.clone()],
        declared: None,
    }
}

/// A session with a host that was made welcome.
async fn session(keys: Arc<Keys>, stream: TcpStream) -> Option<(Served, Hello)> {
    let (mut connection, id, hello) = greeted(Arc::clone(&keys), stream).await?;
    let result = Ok(codec::encode(&welcome(&keys, &hello)));
    connection.send(&Frame::Answer(Answer { re: id, result })).await.ok()?;
    Some((connection, hello))
}
