//! A control plane of a test: real TLS on loopback, real frames, and as little mind as possible. What it was told is in
//! its [`Book`]; how it behaves is in its [`Ways`].

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tenure_protocol::content::{Fetch, MOST_IN_AN_ANSWER, PIECE, Piece, Pieces, Push};
use tenure_protocol::enrolment::{self, Briefing, BriefingLine, Enrolled, Join, Root, Verified};
use tenure_protocol::envelope::{Answer, Event, Frame, Request};
use tenure_protocol::event::{Acknowledged, NodeEvent, Spooled};
use tenure_protocol::foresight::{Foresee, ForeseenPage};
use tenure_protocol::id::{
    ControlPlaneId, Digest, Epoch, EpochId, FencingToken, Generation, Millis, NodeId, NodeUuid, Rental,
    Revision, RevisionNumber, SessionId,
};
use tenure_protocol::kind::Message;
use tenure_protocol::machine::Mode;
use tenure_protocol::proof::{Binding, Claim, PublicKey, Purpose};
use tenure_protocol::refusal::Refusal;
use tenure_protocol::report::{Part, Received};
use tenure_protocol::session::{self, Beaten, Ended, Heartbeat, Renew, Renewed, Welcome};
use tenure_protocol::token::{Invitation, Presented, SessionClaims, Signer};
use tenure_protocol::wire::connection::PATIENCE;
use tenure_protocol::wire::exchange::{CallError, exchange};
use tenure_protocol::wire::tls::{self, ALPN_LINK, SERVER_NAME, binding};
use tenure_protocol::wire::{Connection, Incoming, Outgoing, codec, frame};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

/// Everything it was told.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) greetings: u32,
    pub(crate) tokens: Vec<PublicKey>,
    pub(crate) joins: Vec<Join>,
    pub(crate) hellos: Vec<session::Hello>,
    pub(crate) beats: Vec<Heartbeat>,
    pub(crate) parts: Vec<Part>,
    pub(crate) events: Vec<NodeEvent>,
    pub(crate) renewals: u32,
    pub(crate) fetches: u32,
    pub(crate) ended: u32,
    /// The open session, to push through.
    pub(crate) session: Option<Outgoing>,
}

/// How it behaves.
#[derive(Debug, Clone)]
pub(crate) struct Ways {
    pub(crate) refuse_hello: Option<Refusal>,
    /// Hangs up behind that refusal, whatever is still to be told.
    pub(crate) hang_up: bool,
    /// Says this instead of answering a greeting.
    pub(crate) not_now: Option<Ended>,
    pub(crate) refuse_join: Option<Refusal>,
    /// Hangs up instead of answering a redemption, after having written it down.
    pub(crate) forget_to_answer: bool,
    /// Takes everything and answers nothing once so many beats of a session were answered.
    pub(crate) deaf_after: Option<u32>,
    pub(crate) resend: bool,
    pub(crate) declared: Option<Push>,
    pub(crate) contents: HashMap<Digest, Vec<u8>>,
    pub(crate) epoch: Epoch,
    pub(crate) silence_ms: u64,
    pub(crate) token_lives_ms: u64,
    pub(crate) now: Millis,
}

#[derive(Clone)]
pub(crate) struct Fake {
    pub(crate) at: SocketAddr,
    pub(crate) id: ControlPlaneId,
    pub(crate) ca: Vec<u8>,
    pub(crate) book: Arc<watch::Sender<Book>>,
    pub(crate) ways: Arc<Mutex<Ways>>,
    /// The key that was bound, by redemption.
    bound: Arc<Mutex<Option<PublicKey>>>,
    tls: Arc<ServerConfig>,
}

pub(crate) const EPOCH: Epoch = Epoch { number: 1, id: EpochId::from_bytes([1; 16]) };
const MASTER: [u8; 32] = [42; 32];

impl Fake {
    /// One that listens, until the runtime ends.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let fake = Self::with_authority(listener.local_addr().unwrap());
        tokio::spawn(fake.clone().listen(listener));
        fake
    }

    /// Listens at another address too.
    pub(crate) async fn also(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(self.clone().listen(listener));
        at
    }

    fn with_authority(at: SocketAddr) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let ca: CertificateDer<'static> = params.self_signed(&key).unwrap().der().clone();
        let issuer = Issuer::new(params, &key);
        let leaf_key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec![SERVER_NAME.to_owned()]).unwrap();
        let leaf = leaf.signed_by(&leaf_key, &issuer).unwrap();
        let chain = vec![leaf.der().clone(), ca.clone()];
        let tls = tls::server(chain, PrivatePkcs8KeyDer::from(leaf_key.serialize_der()).into(), ALPN_LINK);
        Self {
            at,
            id: ControlPlaneId::random(),
            ca: ca.to_vec(),
            book: Arc::new(watch::Sender::new(Book::default())),
            ways: Arc::new(Mutex::new(Ways {
                refuse_hello: None,
                hang_up: false,
                not_now: None,
                refuse_join: None,
                forget_to_answer: false,
                deaf_after: None,
                resend: false,
                declared: None,
                contents: HashMap::new(),
                epoch: EPOCH,
                silence_ms: 30_000,
                token_lives_ms: 30 * 60_000,
                now: Millis(1_800_000_000_000),
            })),
            bound: Arc::default(),
            tls: tls.unwrap(),
        }
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Ways)) {
        change(&mut self.ways.lock().unwrap());
    }

    fn ways(&self) -> Ways {
        self.ways.lock().unwrap().clone()
    }

    fn note(&self, note: impl FnOnce(&mut Book)) {
        self.book.send_modify(note);
    }

    /// Waits until the book says so, and answers what `read` makes of it.
    pub(crate) async fn when<T>(&self, read: impl Fn(&Book) -> Option<T>) -> T {
        let mut book = self.book.subscribe();
        let waited = tokio::time::timeout(Duration::from_secs(20), async {
            loop {
                if let Some(found) = read(&book.borrow_and_update()) {
                    return found;
                }
                book.changed().await.unwrap();
            }
        });
        waited.await.expect("the control plane was not told in time")
    }

    pub(crate) async fn until(&self, holds: impl Fn(&Book) -> bool) {
        self.when(|book| holds(book).then_some(())).await;
    }

    /// A token for `node`; another `counter` makes another token.
    pub(crate) fn token(&self, node: &str, counter: u64) -> Presented {
        self.token_at(node, counter, vec![self.at.to_string()])
    }

    pub(crate) fn token_at(&self, node: &str, counter: u64, addresses: Vec<String>) -> Presented {
        let invitation = Invitation {
            v: 1,
            addresses,
            ca: Digest::of(&self.ca),
            control_plane_id: self.id,
            epoch: EPOCH,
            node: NodeId::new(node).unwrap(),
            rental: Rental::new("own").unwrap(),
            generation: Generation(1),
            mode: Mode::Converged,
            expires: Millis(i64::MAX),
            counter,
            key_id: 1,
        };
        let minted = Signer::new(&MASTER).mint(&invitation).unwrap();
        Presented::parse(minted.text.reveal()).unwrap()
    }

    /// Declares these resources for `node` and answers the push; the next session is welcomed with it.
    pub(crate) fn declare(&self, bytes: Vec<u8>, number: u64, resources: u64) -> Push {
        let push = Push {
            revision: Revision { epoch: EPOCH, number: RevisionNumber(number) },
            sha256: Digest::of(&bytes),
            bytes: u64::try_from(bytes.len()).unwrap(),
            resources,
        };
        self.change(|ways| {
            ways.contents.insert(push.sha256, bytes);
            ways.declared = Some(push);
        });
        push
    }

    async fn listen(self, listener: TcpListener) {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let fake = self.clone();
            connections.spawn(async move {
                fake.clone().serve(stream).await;
                fake.note(|book| book.ended += 1);
            });
        }
    }

    async fn serve(self, stream: TcpStream) -> Option<()> {
        let stream = TlsAcceptor::from(Arc::clone(&self.tls)).accept(stream).await.ok()?;
        let bindings = Purpose::ALL.map(|purpose| binding(stream.get_ref().1, purpose).unwrap());
        let mut connection = Connection::new(stream, frame::MOST_GREETING);
        let Frame::Request(request) = connection.receive(PATIENCE).await.ok()? else { return None };
        self.note(|book| book.greetings += 1);
        connection.set_most(frame::MOST);
        if request.kind == enrolment::Hello::KIND.name {
            self.enrol(connection, request, &bindings[0]).await
        } else {
            self.session(connection, request, &bindings[1]).await
        }
    }

    async fn enrol<S: tokio::io::AsyncRead + tokio::io::AsyncWrite>(
        self,
        mut connection: Connection<S>,
        request: Request,
        binding: &Binding,
    ) -> Option<()> {
        let hello: enrolment::Hello = codec::decode(&request.body).unwrap();
        let token = Presented::parse(hello.token.reveal()).unwrap();
        Signer::new(&MASTER).judge(&token).unwrap();
        let invitation = &token.invitation;
        let claim = Claim {
            purpose: Purpose::Enrol,
            control_plane_id: self.id,
            node: &invitation.node,
            generation: invitation.generation,
            binding,
        };
        assert!(hello.key.proves(&claim, &hello.proof));
        self.note(|book| book.tokens.push(hello.key));
        answer(&mut connection, request.id, Ok(codec::encode(&Verified { protocol: 1 }))).await?;
        let Frame::Request(request) = connection.receive(PATIENCE).await.ok()? else { return None };
        let join: Join = codec::decode(&request.body).unwrap();
        let ways = self.ways();
        if let Some(refusal) = ways.refuse_join {
            self.note(|book| book.joins.push(join));
            return answer(&mut connection, request.id, Err(refusal)).await;
        }
        *self.bound.lock().unwrap() = Some(hello.key);
        self.note(|book| book.joins.push(join));
        if ways.forget_to_answer {
            return None;
        }
        let lines = vec![BriefingLine { subject: "protocol".into(), failed: false, text: "speaks 1".into() }];
        let enrolled = Enrolled {
            control_plane_id: self.id,
            epoch: EPOCH,
            node: invitation.node.clone(),
            node_uuid: NodeUuid::from_bytes([5; 16]),
            rental: invitation.rental.clone(),
            generation: invitation.generation,
            fencing: FencingToken(1),
            mode: invitation.mode,
            enrolled_at: Millis(1),
            roots: self.roots(),
            briefing: Briefing::new(lines),
        };
        answer(&mut connection, request.id, Ok(codec::encode(&enrolled))).await
    }

    fn roots(&self) -> Vec<Root> {
        vec![Root { number: 1, certificate: self.ca.clone() }]
    }

    async fn session<S: tokio::io::AsyncRead + tokio::io::AsyncWrite>(
        self,
        mut connection: Connection<S>,
        request: Request,
        binding: &Binding,
    ) -> Option<()> {
        let hello: session::Hello = codec::decode(&request.body).unwrap();
        let claim = Claim {
            purpose: Purpose::Session,
            control_plane_id: self.id,
            node: &hello.node,
            generation: hello.generation,
            binding,
        };
        let bound = (*self.bound.lock().unwrap()).expect("nobody was enrolled");
        assert!(bound.proves(&claim, &hello.proof), "the session is opened by the key that was bound");
        let ways = self.ways();
        if let Some(ended) = ways.not_now {
            self.note(|book| book.hellos.push(hello));
            let body = codec::encode(&ended);
            let kind = Ended::KIND.name.to_owned();
            return connection
                .send(&Frame::Event(Event { from: "session".into(), seq: 1, kind, body }))
                .await
                .ok();
        }
        if let Some(refusal) = ways.refuse_hello {
            self.note(|book| book.hellos.push(hello));
            answer(&mut connection, request.id, Err(refusal)).await?;
            if ways.hang_up {
                return None;
            }
            while let Ok(Frame::Request(request)) = connection.receive(PATIENCE).await {
                assert_eq!(request.kind, Spooled::KIND.name, "what happened is all there is to tell");
                let id = request.id;
                answer(&mut connection, id, Ok(self.handle(request))).await?;
            }
            return None;
        }
        let welcome = self.welcome(&ways, &hello);
        answer(&mut connection, request.id, Ok(codec::encode(&welcome))).await?;
        let (outgoing, mut incoming, exchange) = exchange(connection, Duration::from_secs(60));
        self.note(|book| {
            book.hellos.push(hello);
            book.session = Some(outgoing.clone());
        });
        let mut beats = 0;
        let answering = async {
            while let Some(came) = incoming.recv().await {
                let Incoming::Request(request) = came else { continue };
                let hears = self.ways().deaf_after.is_none_or(|most| beats < most);
                beats += u32::from(request.kind == Heartbeat::KIND.name);
                if hears {
                    let (id, result) = (request.id, self.handle(request));
                    let _ = outgoing.answer(id, Ok(result)).await;
                }
            }
        };
        tokio::select! {
            _ = exchange.run() => {}
            () = answering => {}
        }
        Some(())
    }

    fn welcome(&self, ways: &Ways, hello: &session::Hello) -> Welcome {
        let claims = SessionClaims {
            v: 1,
            key_id: 1,
            control_plane_id: self.id,
            epoch: EPOCH,
            node: hello.node.clone(),
            generation: hello.generation,
            fencing: hello.fencing,
            key: Digest::of(b"key"),
            expires: Millis(i64::MAX),
        };
        Welcome {
            session: SessionId::random(),
            epoch: ways.epoch,
            protocol: 1,
            fencing: hello.fencing,
            mode: Mode::Converged,
            lease_ms: 90_000,
            heartbeat_ms: 20_000,
            silence_ms: ways.silence_ms,
            token: Signer::new(&MASTER).mint_session(&claims).unwrap(),
            token_expires: Millis(i64::MAX),
            token_expires_in_ms: ways.token_lives_ms,
            now: ways.now,
            roots: self.roots(),
            declared: ways.declared,
        }
    }

    fn handle(&self, request: Request) -> Vec<u8> {
        let Request { kind, body, .. } = request;
        let ways = self.ways();
        if kind == Heartbeat::KIND.name {
            self.note(|book| book.beats.push(codec::decode(&body).unwrap()));
            codec::encode(&Beaten { now: ways.now })
        } else if kind == Part::KIND.name {
            let part: Part = codec::decode(&body).unwrap();
            let resend = ways.resend && !part.full;
            self.note(|book| book.parts.push(part));
            codec::encode(&Received { resend })
        } else if kind == Spooled::KIND.name {
            let spooled: Spooled = codec::decode(&body).unwrap();
            let events = spooled.events.iter().map(|event| event.id).collect();
            self.note(|book| book.events.extend(spooled.events));
            codec::encode(&Acknowledged { events })
        } else if kind == Fetch::KIND.name {
            self.note(|book| book.fetches += 1);
            codec::encode(&pieces(&ways.contents, &codec::decode(&body).unwrap()))
        } else if kind == Renew::KIND.name {
            self.note(|book| book.renewals += 1);
            let welcome = ways.token_lives_ms;
            let token = Signer::new(&MASTER).mint_session(&renewed_claims(self.id)).unwrap();
            codec::encode(&Renewed { token, expires: Millis(i64::MAX), expires_in_ms: welcome })
        } else {
            panic!("a host sent `{kind}`")
        }
    }

    /// Pushes what is declared to the open session.
    pub(crate) async fn push(&self, push: &Push) -> tenure_protocol::content::Pushed {
        let session = self.when(|book| book.session.clone()).await;
        session.call("reconcile", push, Duration::from_secs(10)).await.unwrap()
    }

    /// Asks on the open session what a declaration that is not declared would do.
    pub(crate) async fn foresee(&self, asked: &Foresee) -> Result<ForeseenPage, CallError> {
        let session = self.when(|book| book.session.clone()).await;
        session.call("reconcile", asked, Duration::from_secs(60)).await
    }

    /// Ends the open session in words.
    pub(crate) async fn end(&self, ended: &Ended) {
        let session = self.when(|book| book.session.clone()).await;
        session.tell("link", ended).unwrap();
    }
}

fn renewed_claims(id: ControlPlaneId) -> SessionClaims {
    SessionClaims {
        v: 1,
        key_id: 1,
        control_plane_id: id,
        epoch: EPOCH,
        node: NodeId::new("renewed").unwrap(),
        generation: Generation(1),
        fencing: FencingToken(1),
        key: Digest::of(b"key"),
        expires: Millis(i64::MAX),
    }
}

/// As many of the wanted pieces as fit one answer.
fn pieces(contents: &HashMap<Digest, Vec<u8>>, fetch: &Fetch) -> Pieces {
    let mut room = MOST_IN_AN_ANSWER;
    let mut pieces = Vec::new();
    for wanted in &fetch.wanted {
        let Some(content) = contents.get(&wanted.sha256) else { continue };
        let offset = usize::try_from(wanted.offset).unwrap();
        let end = content.len().min(offset + usize::try_from(PIECE).unwrap());
        if end - offset > room {
            break;
        }
        room -= end - offset;
        pieces.push(Piece {
            sha256: wanted.sha256,
            size: u64::try_from(content.len()).unwrap(),
            offset: wanted.offset,
            bytes: content[offset..end].to_vec(),
        });
    }
    Pieces { pieces }
}

async fn answer<S: tokio::io::AsyncRead + tokio::io::AsyncWrite>(
    connection: &mut Connection<S>,
    re: u64,
    result: Result<Vec<u8>, Refusal>,
) -> Option<()> {
    connection.send(&Frame::Answer(Answer { re, result })).await.ok()
}
