//! Many nodes at once, against a real control plane: each dials over real TLS with the host's own dialling and waiting,
//! proves a key of its own, beats, and comes back when it is cut off. They hold no machine and have no store.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tenure_host::link::dial::{Dialled, dial, system_resolver};
use tenure_host::link::greeting::{self, GreetingError};
use tenure_host::link::redial::Redial;
use tenure_host::link::state::{Farewell, held};
use tenure_protocol::enrolment::{self, Enrolled, Join};
use tenure_protocol::id::{BootId, Millis, NodeId, SessionCounter, StoreId};
use tenure_protocol::kind::Message as _;
use tenure_protocol::machine::Mode;
use tenure_protocol::operator::{Invite, Rejoin};
use tenure_protocol::profile::{Disk, Facts, Inventory, Profile};
use tenure_protocol::proof::{Claim, NodeKey, Purpose};
use tenure_protocol::refusal::{Explain as _, Refusal};
use tenure_protocol::session::{Ended, Heartbeat, Hello, Welcome};
use tenure_protocol::token::Presented;
use tenure_protocol::version::SPOKEN;
use tenure_protocol::wire::exchange::exchange;
use tenure_protocol::wire::frame::MOST;
use tenure_protocol::wire::tls::{self, ALPN_LINK, Trust};
use tenure_protocol::wire::{Connection, Incoming, Outgoing, codec};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::wait;

/// Nodes that live on threads of their own until this is dropped.
pub struct Herd {
    size: usize,
    book: Arc<Book>,
    _runtime: Runtime,
}

/// What happened to all of them.
#[derive(Debug, Default)]
struct Book {
    connected: AtomicUsize,
    busy: AtomicUsize,
    failed: AtomicUsize,
    dials: Mutex<Vec<Instant>>,
    welcomes: Mutex<Vec<Instant>>,
}

/// One node.
struct Member {
    address: String,
    key: NodeKey,
    enrolled: Enrolled,
    store_id: StoreId,
    sessions: u64,
}

/// Machines that join at the same time: joining is not what is looked at.
const JOINING: usize = 8;

impl Herd {
    /// Invites and enrols so many nodes of the control plane that answers operators at `socket` and nodes at `address`,
    /// and lets them live; resolves when all are connected.
    #[must_use]
    pub fn raise(size: usize, socket: &Path, address: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let book = Arc::new(Book::default());
        let members = runtime.block_on(join_all(size, socket, address));
        for member in members {
            runtime.spawn(live(member, Arc::clone(&book)));
        }
        let herd = Self { size, book, _runtime: runtime };
        herd.wait_until_all_are_connected(Duration::from_secs(120));
        herd
    }

    /// How many have a session now.
    #[must_use]
    pub fn connected(&self) -> usize {
        self.book.connected.load(Ordering::Relaxed)
    }

    /// How often one was asked to come back later, and how often a dial came to nothing for another reason.
    #[must_use]
    pub fn turned_away(&self) -> (usize, usize) {
        (self.book.busy.load(Ordering::Relaxed), self.book.failed.load(Ordering::Relaxed))
    }

    /// Waits until every one has a session.
    #[track_caller]
    pub fn wait_until_all_are_connected(&self, within: Duration) {
        wait::until_true("all nodes are connected", within, || self.connected() == self.size);
    }

    /// Waits until none has.
    #[track_caller]
    pub fn wait_until_none_is_connected(&self, within: Duration) {
        wait::until_true("no node is connected", within, || self.connected() == 0);
    }

    /// How long after `began` each dial was that began later.
    #[must_use]
    pub fn dials_after(&self, began: Instant) -> Vec<Duration> {
        after(&self.book.dials, began)
    }

    /// How long after `began` each session opened that opened later.
    #[must_use]
    pub fn welcomes_after(&self, began: Instant) -> Vec<Duration> {
        after(&self.book.welcomes, began)
    }
}

fn after(moments: &Mutex<Vec<Instant>>, began: Instant) -> Vec<Duration> {
    let moments = moments.lock().unwrap_or_else(PoisonError::into_inner);
    moments.iter().filter_map(|moment| moment.checked_duration_since(began)).collect()
}

/// The most of these that lie within one stretch of that length.
#[must_use]
pub fn densest(moments: &[Duration], stretch: Duration) -> usize {
    let mut counts = std::collections::HashMap::new();
    for moment in moments {
        *counts.entry(moment.as_nanos() / stretch.as_nanos().max(1)).or_insert(0) += 1;
    }
    counts.into_values().max().unwrap_or(0)
}

async fn join_all(size: usize, socket: &Path, address: &str) -> Vec<Member> {
    let stream = UnixStream::connect(socket).await.expect("the control plane's socket");
    let (operator, _, frames) = exchange(Connection::new(stream, MOST), Duration::from_secs(600));
    tokio::spawn(frames.run());
    let (mut joining, mut members) = (JoinSet::new(), Vec::new());
    for number in 0..size {
        if joining.len() >= JOINING {
            members.extend(joining.join_next().await.map(|member| member.expect("a node joins")));
        }
        joining.spawn(join(operator.clone(), format!("node-{number:05}"), address.to_owned()));
    }
    members.extend(joining.join_all().await);
    members
}

async fn join(operator: Outgoing, name: String, address: String) -> Member {
    let invite = Invite {
        node: Some(NodeId::new(&name).expect("a name")),
        rental: None,
        generation: None,
        mode: Mode::Converged,
        valid_ms: None,
        rejoin: Rejoin::Key,
        clock_is_right: false,
    };
    let invited = operator.call("fleet", &invite, Duration::from_secs(60)).await.expect("an invitation");
    let token = Presented::parse(invited.token.reveal()).expect("a token");
    let key = NodeKey::generate().expect("a key");
    loop {
        // A control plane that is asked by many may say that it is busy.
        if let Some(enrolled) = redeem(&token, &key, &address).await {
            return Member { address, key, enrolled, store_id: StoreId::random(), sessions: 0 };
        }
    }
}

async fn redeem(token: &Presented, key: &NodeKey, address: &str) -> Option<Enrolled> {
    let invitation = &token.invitation;
    let config = tls::client(Trust::ByDigest(invitation.ca), Millis(0), ALPN_LINK).expect("trust");
    let dialled = dial(&[address.to_owned()], None, &config, &system_resolver()).await.ok()?;
    let binding = tls::binding(dialled.stream.get_ref().1, Purpose::Enrol).expect("a binding");
    let claim = Claim {
        purpose: Purpose::Enrol,
        control_plane_id: invitation.control_plane_id,
        node: &invitation.node,
        generation: invitation.generation,
        binding: &binding,
    };
    let (proof, software) = (key.prove(&claim), "0.1.0".to_owned());
    let hello =
        enrolment::Hello { token: token.text(), key: key.public(), proof, software, protocol: SPOKEN };
    let mut connection = Connection::new(dialled.stream, MOST);
    greeting::ask(&mut connection, 1, &hello).await.ok()?;
    let join = Join { profile: Profile::default(), inventory: Inventory::default() };
    greeting::ask(&mut connection, 2, &join).await.ok()
}

/// What a host's link does, for ever.
async fn live(mut member: Member, book: Arc<Book>) {
    let mut redial = Redial::new();
    loop {
        let (farewell, lasted) = member.once(&book).await;
        if lasted.is_some_and(|(lasted, beat)| held(lasted, beat)) {
            redial.reset();
        }
        tokio::time::sleep(redial.wait(farewell.pause())).await;
    }
}

impl Member {
    /// One attempt, and how long its session lasted if there was one.
    async fn once(&mut self, book: &Book) -> (Farewell, Option<(Duration, Duration)>) {
        note(&book.dials);
        match self.open().await {
            Ok((welcome, connection)) => {
                book.connected.fetch_add(1, Ordering::Relaxed);
                note(&book.welcomes);
                let (opened, beat) = (Instant::now(), Duration::from_millis(welcome.heartbeat_ms));
                let farewell = hold(&welcome, connection, &self.enrolled.node).await;
                book.connected.fetch_sub(1, Ordering::Relaxed);
                (farewell, Some((opened.elapsed(), beat)))
            }
            Err(farewell) => {
                let is_busy = farewell.reason().is("busy");
                let count = if is_busy { &book.busy } else { &book.failed };
                count.fetch_add(1, Ordering::Relaxed);
                (farewell, None)
            }
        }
    }

    async fn open(&mut self) -> Result<(Welcome, Connection<impl AsyncRead + AsyncWrite + use<>>), Farewell> {
        let roots = self.enrolled.roots.iter().map(|root| root.certificate.clone()).collect();
        let config = tls::client(Trust::Roots(roots), Millis(0), ALPN_LINK).expect("trust");
        let addresses = std::slice::from_ref(&self.address);
        let Dialled { stream, .. } = dial(addresses, None, &config, &system_resolver())
            .await
            .map_err(|error| Farewell::Unreached(error.refusal()))?;
        self.sessions += 1;
        let binding = tls::binding(stream.get_ref().1, Purpose::Session).expect("a binding");
        let claim = Claim {
            purpose: Purpose::Session,
            control_plane_id: self.enrolled.control_plane_id,
            node: &self.enrolled.node,
            generation: self.enrolled.generation,
            binding: &binding,
        };
        let hello = Hello {
            control_plane_id: self.enrolled.control_plane_id,
            epoch: self.enrolled.epoch,
            node: self.enrolled.node.clone(),
            generation: self.enrolled.generation,
            fencing: self.enrolled.fencing,
            store_id: self.store_id,
            session_counter: SessionCounter(self.sessions),
            boot_id: BootId::from_bytes([1; 16]),
            software: "0.1.0".to_owned(),
            protocol: SPOKEN,
            capabilities: Vec::new(),
            proof: self.key.prove(&claim),
            session_token: None,
            held: None,
            reported: None,
        };
        let mut connection = Connection::new(stream, MOST);
        let welcome = greeting::ask(&mut connection, 1, &hello).await.map_err(GreetingError::farewell)?;
        Ok((welcome, connection))
    }
}

async fn hold<S: AsyncRead + AsyncWrite>(
    welcome: &Welcome,
    connection: Connection<S>,
    node: &NodeId,
) -> Farewell {
    let (outgoing, mut incoming, frames) = exchange(connection, Duration::from_millis(welcome.silence_ms));
    let beats = async {
        let to = format!("lease/{node}");
        loop {
            let facts = Facts {
                observed_at: Millis(1),
                running_version: "0.1.0".to_owned(),
                disk: Disk::Unmeasurable,
            };
            // A session that ended says so by itself.
            let _ = outgoing.call(&to, &Heartbeat { facts }, Duration::from_secs(30)).await;
            tokio::time::sleep(Duration::from_millis(welcome.heartbeat_ms)).await;
        }
    };
    let goodbye = async {
        while let Some(came) = incoming.recv().await {
            if let Incoming::Event(event) = came
                && event.kind == Ended::KIND.name
                && let Ok(Ended { reason, retry_after_ms }) = codec::decode(&event.body)
            {
                return Farewell::Refused { reason, retry_after: Duration::from_millis(retry_after_ms) };
            }
        }
        std::future::pending().await
    };
    tokio::select! {
        farewell = goodbye => farewell,
        end = frames.run() => Farewell::Lost(Refusal::new("closed", end.to_string(), "", "")),
        () = beats => std::future::pending().await,
    }
}

fn note(moments: &Mutex<Vec<Instant>>) {
    moments.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
}
