//! One dial: every address, resolved afresh, both families, TLS with what is trusted. A wrong certificate is an answer
//! of its own and never a network error (O-60); an address that was good before is used when names do not resolve,
//! and that is said. It writes nothing and decides nothing about when to dial again.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_protocol::refusal::Explain;
use tenure_protocol::text::shown;
use tenure_protocol::wire::connection::PATIENCE;
use tenure_protocol::wire::tls::{SERVER_NAME, is_wrong_certificate};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::buffering::{self, BUFFERING};

/// Turns `host:port` into socket addresses. The system's resolver, or a test's.
pub type Resolve = Arc<dyn Fn(String) -> Resolving + Send + Sync>;
/// An answer of a resolver on its way.
pub type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// The system's own resolver, asked anew each time.
pub fn system_resolver() -> Resolve {
    Arc::new(|address| Box::pin(async move { Ok(tokio::net::lookup_host(address).await?.collect()) }))
}

/// Where an address led when it last worked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastGood {
    /// The address as it is written in the token.
    pub address: String,
    /// What it led to.
    pub socket: SocketAddr,
}

/// An open TLS connection to somebody who is who we expected.
#[derive(Debug)]
pub struct Dialled {
    /// The connection.
    pub stream: TlsStream<TcpStream>,
    /// Where it leads.
    pub reached: LastGood,
    /// Its name did not resolve, and what was remembered was used.
    pub remembered: bool,
}

/// No address led to the control plane.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// Somebody answered with a certificate that is not the control plane's.
    #[error("{address} answers with a certificate that is not the control plane's: {why}")]
    WrongCertificate {
        /// Who answers.
        address: String,
        /// What is wrong with it.
        why: String,
    },
    /// Not one of the names leads anywhere, and nothing is remembered of them.
    #[error("the control plane's name does not resolve: {}", tries.join("; "))]
    NamesFail {
        /// Each address, and what the resolver said.
        tries: Vec<String>,
    },
    /// Somewhere a connection opens, and then nothing arrives on it (O-55).
    #[error("{}: {}", super::buffering::HAPPENED, tries.join("; "))]
    NothingArrives {
        /// Each address that was tried, and what came of it.
        tries: Vec<String>,
    },
    /// Nobody answered, or not as a control plane does.
    #[error("the control plane cannot be reached: {}", tries.join("; "))]
    Unreachable {
        /// Each address that was tried, and what came of it.
        tries: Vec<String>,
    },
}

/// The code of [`DialError::NamesFail`].
pub const NAMES_FAIL: &str = "names_fail";

/// A connection that is not up by then goes to the next address: shorter than the backoff's longest wait.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const RESOLVE_WITHIN: Duration = Duration::from_secs(5);
/// A name that resolves to more than this many addresses is not tried to its end.
const MOST_SOCKETS: usize = 16;

/// Trying all that was found is given up after this.
const DIAL_WITHIN: Duration = Duration::from_secs(60);

/// Dials until one address leads to the control plane, for at most [`DIAL_WITHIN`] once the names are resolved.
pub async fn dial(
    addresses: &[String],
    last_good: Option<&LastGood>,
    config: &Arc<ClientConfig>,
    resolve: &Resolve,
) -> Result<Dialled, DialError> {
    let mut tries = Vec::new();
    let (mut wrong, mut connected, mut mute) = (None, false, false);
    let over = Instant::now() + DIAL_WITHIN;
    let places = look_up_all(addresses, last_good, resolve, &mut tries).await;
    for (LastGood { address, socket }, remembered) in places {
        connected = true;
        let Ok(connection) = timeout_at(over, connect(socket, config)).await else {
            tries.push(format!("the dial was given up after {} s", DIAL_WITHIN.as_secs()));
            break;
        };
        match connection {
            Ok(stream) => {
                let reached = LastGood { address, socket };
                return Ok(Dialled { stream, reached, remembered });
            }
            Err(Missed::Failed(error)) if is_wrong_certificate(&error) => {
                let address = named(&address, socket);
                wrong.get_or_insert(DialError::WrongCertificate { address, why: said(&error) });
            }
            Err(Missed::Failed(error)) => {
                tries.push(format!("{}: {}", named(&address, socket), said(&error)));
            }
            Err(Missed::Mute) => {
                mute = true;
                let waited = PATIENCE.as_secs();
                tries.push(format!("{}: opened, and not a byte within {waited} s", named(&address, socket)));
            }
        }
    }
    Err(wrong.unwrap_or(match (connected, mute) {
        (_, true) => DialError::NothingArrives { tries },
        (true, false) => DialError::Unreachable { tries },
        (false, false) => DialError::NamesFail { tries },
    }))
}

/// Where the addresses lead, in the order in which it is tried: one of each name and family in turn, so that a name with
/// many dead addresses does not keep the next one waiting. With each, whether it was remembered.
async fn look_up_all(
    addresses: &[String],
    last_good: Option<&LastGood>,
    resolve: &Resolve,
    tries: &mut Vec<String>,
) -> Vec<(LastGood, bool)> {
    let mut lists = Vec::new();
    for address in addresses {
        let (sockets, remembered) = match look_up(address, resolve).await {
            Ok(sockets) => (sockets, false),
            Err(error) => {
                tries.push(format!("{address} (its name does not resolve: {error})"));
                match last_good.filter(|good| good.address == *address) {
                    Some(good) => (vec![good.socket], true),
                    None => continue,
                }
            }
        };
        let place = |socket| (LastGood { address: address.clone(), socket }, remembered);
        let first_is_v6 = sockets.first().is_some_and(SocketAddr::is_ipv6);
        let (first, second): (Vec<_>, Vec<_>) =
            sockets.into_iter().partition(|socket| socket.is_ipv6() == first_is_v6);
        lists.extend([first, second].map(|family| family.into_iter().map(place).collect()));
    }
    in_turn(lists)
}

fn in_turn<T>(lists: Vec<Vec<T>>) -> Vec<T> {
    let mut lists: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
    let mut all = Vec::new();
    loop {
        let before = all.len();
        all.extend(lists.iter_mut().filter_map(Iterator::next));
        if all.len() == before {
            return all;
        }
    }
}

async fn look_up(address: &str, resolve: &Resolve) -> io::Result<Vec<SocketAddr>> {
    let mut sockets = within(RESOLVE_WITHIN, resolve(address.to_owned())).await?;
    sockets.truncate(MOST_SOCKETS);
    if sockets.is_empty() { Err(io::Error::other("it has no address")) } else { Ok(sockets) }
}

/// Why a connection did not come about.
enum Missed {
    Failed(io::Error),
    /// It opened, and TLS heard nothing on it.
    Mute,
}

impl From<io::Error> for Missed {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

async fn connect(socket: SocketAddr, config: &Arc<ClientConfig>) -> Result<TlsStream<TcpStream>, Missed> {
    let stream = within(CONNECT_WITHIN, TcpStream::connect(socket)).await?;
    // Frames are small and each is flushed; waiting for more would only delay them.
    stream.set_nodelay(true)?;
    let name = ServerName::try_from(SERVER_NAME).map_err(io::Error::other)?;
    let shaking = TlsConnector::from(Arc::clone(config)).connect(name, stream);
    let stream = timeout(PATIENCE, shaking).await.map_err(|_| Missed::Mute)??;
    // A server that chose no protocol is let through by TLS, and is no control plane's link.
    if config.alpn_protocols.iter().any(|ours| stream.get_ref().1.alpn_protocol() == Some(ours)) {
        Ok(stream)
    } else {
        Err(io::Error::other("it does not speak the protocol of a control plane's link").into())
    }
}

async fn within<T>(limit: Duration, job: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(limit, job).await.unwrap_or_else(|_| {
        Err(io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {} s", limit.as_secs())))
    })
}

/// An address and what it led to; once, where both are the same.
pub(super) fn named(address: &str, socket: SocketAddr) -> String {
    let socket = socket.to_string();
    if address == socket { socket } else { format!("{address} ({socket})") }
}

fn said(error: &io::Error) -> String {
    shown(&error.to_string(), 200)
}

impl Explain for DialError {
    fn code(&self) -> &'static str {
        match self {
            Self::WrongCertificate { .. } => "wrong_certificate",
            Self::NamesFail { .. } => NAMES_FAIL,
            Self::NothingArrives { .. } => BUFFERING,
            Self::Unreachable { .. } => "unreachable",
        }
    }

    fn meaning(&self) -> String {
        match self {
            Self::WrongCertificate { .. } => {
                "a proxy, another control plane or an attacker is at this address; nothing was told to it, nothing is lost"
            }
            Self::NothingArrives { .. } => buffering::MEANS,
            Self::NamesFail { .. } | Self::Unreachable { .. } => {
                "this machine goes on holding what it was last told; nothing is lost by it"
            }
        }
        .to_owned()
    }

    fn remedy(&self) -> String {
        match self {
            Self::WrongCertificate { .. } => {
                "find out who answers there; if the control plane was raised anew, `tenure reinvite NODE` makes a token \
                 for it"
            }
            Self::NothingArrives { .. } => buffering::REMEDY,
            Self::NamesFail { .. } => "look at this machine's resolver (/etc/resolv.conf) and at the name",
            Self::Unreachable { .. } => {
                "look whether the control plane runs (`tenure nodes` there) and whether this machine reaches the port"
            }
        }
        .to_owned()
    }
}

#[cfg(test)]
mod tests;
