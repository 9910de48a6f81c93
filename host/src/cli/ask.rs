//! Asking the daemon of this machine through its socket.

use std::io::ErrorKind;
use std::time::Duration;

use tenure_protocol::kind::Message;
use tenure_protocol::refusal::{Refusal, chain};
use tenure_protocol::wire::exchange::exchange;
use tenure_protocol::wire::{CallError, Connection, Outgoing, frame};
use tokio::net::UnixStream;
use tokio::task::AbortHandle;

use crate::api::reachable;
use crate::ground::Ground;

/// A daemon that answers.
pub(super) struct Host {
    outgoing: Outgoing,
    exchange: AbortHandle,
}

impl Drop for Host {
    fn drop(&mut self) {
        self.exchange.abort();
    }
}

/// The longest that a command waits for a pass.
const SILENCE: Duration = Duration::from_secs(2 * 60 * 60);

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
                let (outgoing, _, exchange) = exchange(Connection::new(stream, frame::MOST), SILENCE);
                let exchange = tokio::spawn(exchange.run()).abort_handle();
                Ok(Some(Self { outgoing, exchange }))
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                Ok(None)
            }
            Err(error) => Err(Refusal::new(
                "not_permitted",
                format!("the host's socket {} cannot be opened: {error}", socket.display()),
                "whether a host runs here is not known",
                "run the command as root",
            )),
        }
    }

    /// Asks, and waits at most `within`.
    pub(super) async fn ask<M: Message>(&self, message: &M, within: Duration) -> Result<M::Answer, Refusal> {
        self.outgoing.call(M::KIND.to, message, within).await.map_err(|error| match error {
            CallError::Refused(refusal) => refusal,
            CallError::Gone => Refusal::new(
                "host_gone",
                "the host closed the connection before it answered",
                "it does not serve this user, or it is being started anew; what was asked may still be done",
                "run the command as root; else look at the journal of tenure-host and ask again",
            ),
            CallError::TimedOut(_) | CallError::Unreadable(_) => Refusal::new(
                "host_no_answer",
                format!("the host did not answer: {}", chain(&error)),
                "what was asked may still be done",
                "look at `tenure-host status` and the journal of tenure-host",
            ),
        })
    }
}
