//! Asking the daemon of this machine through its socket.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tenure_protocol::kind::Message;
use tenure_protocol::refusal::{Refusal, chain};
use tenure_protocol::wire::exchange::exchange;
use tenure_protocol::wire::{CallError, Connection, Outgoing, WireError, frame};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::api::reachable;
use crate::ground::Ground;

/// A daemon that answers.
pub(super) struct Host {
    outgoing: Outgoing,
    /// How the connection ended, once it has.
    end: Mutex<Option<JoinHandle<WireError>>>,
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(exchange) = self.end() {
            exchange.abort();
        }
    }
}

/// A connection that ended says how within this.
const GOODBYE: Duration = Duration::from_secs(2);

/// The longest that a command waits for a pass.
const SILENCE: Duration = Duration::from_secs(2 * 60 * 60);

/// Whoever listens there is told a token: only root's word, and that of our own user, is taken for the host's (S-09).
fn believed(stream: &UnixStream, socket: &Path) -> Result<(), Refusal> {
    let peer = stream.peer_cred().map(|peer| peer.uid());
    if peer.as_ref().is_ok_and(|uid| *uid == 0 || *uid == nix::unistd::geteuid().as_raw()) {
        return Ok(());
    }
    let who = peer.map_or_else(|_| "somebody unknown".to_owned(), |uid| format!("user id {uid}"));
    Err(Refusal::new(
        "foreign_socket",
        format!("the host's socket {} is held by {who}", socket.display()),
        "that is neither root nor you; it was told nothing",
        "see whose program that is, and name the right `--root`",
    ))
}

impl Host {
    /// The daemon of this ground; none when nobody listens.
    pub(super) async fn find(ground: &Ground) -> Result<Option<Self>, Refusal> {
        let socket = ground.socket();
        let connect = async {
            let (way, _open) = reachable(&socket)?;
            UnixStream::connect(way).await
        };
        match connect.await {
            Ok(stream) => {
                believed(&stream, &socket)?;
                let (outgoing, _, exchange) = exchange(Connection::new(stream, frame::MOST), SILENCE);
                let end = Mutex::new(Some(tokio::spawn(exchange.run())));
                Ok(Some(Self { outgoing, end }))
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                Ok(None)
            }
            Err(error) => Err(Refusal::new(
                "socket_not_permitted",
                format!("the host's socket {} cannot be opened: {error}", socket.display()),
                "whether a host runs here is not known",
                "run the command as root",
            )),
        }
    }

    /// Asks, and waits at most `within`.
    pub(super) async fn ask<M: Message>(&self, message: &M, within: Duration) -> Result<M::Answer, Refusal> {
        match self.outgoing.call(M::KIND.to, message, within).await {
            Ok(answer) => Ok(answer),
            Err(CallError::Refused(refusal)) => Err(refusal),
            Err(CallError::Gone) => Err(self.gone().await),
            Err(error @ (CallError::TimedOut(_) | CallError::Unreadable(_))) => Err(Refusal::new(
                "host_no_answer",
                format!("the host did not answer: {}", chain(&error)),
                "what was asked may still be done",
                "look at `tenure-host status` and at `journalctl -u tenure-host`",
            )),
        }
    }

    fn end(&self) -> Option<JoinHandle<WireError>> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whoever spoke no frames is another program, which is told apart from a host that went.
    async fn gone(&self) -> Refusal {
        if let Some(end) = self.end()
            && let Ok(Ok(WireError::Frame(error))) = timeout(GOODBYE, end).await
        {
            return Refusal::new(
                "not_understood",
                format!("what answers in the place of the host does not speak as it does: {error}"),
                "another program holds its socket, or a host of another version; nobody knows whether anything was done",
                "look who holds the socket (`ss -xlp`), and restart tenure-host if it is not the host",
            );
        }
        Refusal::new(
            "host_gone",
            "the host closed the connection before it answered",
            "it does not serve this user, or it is being started anew; what was asked may still be done",
            "run the command as root; else look at `journalctl -u tenure-host` and ask again",
        )
    }
}

#[cfg(test)]
mod tests {
    use tenure_protocol::rescue::Status;

    use super::*;

    fn host() -> (Host, tokio::io::DuplexStream) {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (outgoing, _, exchange) = exchange(Connection::new(near, frame::MOST), SILENCE);
        let end = Mutex::new(Some(tokio::spawn(exchange.run())));
        (Host { outgoing, end }, far)
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_goes_and_one_that_does_not_answer_are_told_apart() {
        let (host, far) = host();
        let refusal = host.ask(&Status {}, Duration::from_secs(5)).await.unwrap_err();
        assert_eq!(refusal.code, "host_no_answer");
        drop(far);
        let refusal = host.ask(&Status {}, Duration::from_secs(5)).await.unwrap_err();
        assert_eq!(refusal.code, "host_gone");
    }
}
