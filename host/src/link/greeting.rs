//! Asking before a session is open: one request, one answer, nothing in between. Enrolment and session both begin so.
//! Instead of the answer a control plane may say that it is too busy now, and when to come back.

use std::time::Duration;

use tenure_protocol::envelope::{Answer, Frame, Request};
use tenure_protocol::kind::Message;
use tenure_protocol::refusal::{Explain, Refusal, chain};
use tenure_protocol::session::Ended;
use tenure_protocol::wire::codec::{self, DecodeError};
use tenure_protocol::wire::connection::PATIENCE;
use tenure_protocol::wire::{Connection, WireError};
use tokio::io::{AsyncRead, AsyncWrite};

use super::buffering::{self, BUFFERING, buffering};
use super::state::Farewell;

/// Why a greeting has no answer.
#[derive(Debug, thiserror::Error)]
pub enum GreetingError {
    /// The other side refused, and says why. Only this may cost a host anything.
    #[error(transparent)]
    Refused(Refusal),
    /// The other side asks to come back later.
    #[error("{reason}")]
    NotNow {
        /// Why.
        reason: Refusal,
        /// Not before that.
        retry_after: Duration,
    },
    /// The connection failed, or fell silent.
    #[error("the control plane did not answer")]
    Wire(#[from] WireError),
    /// What came is not an answer to what was asked.
    #[error("what answered does not speak as a control plane does")]
    Nonsense,
    /// The answer has another form than it must have.
    #[error("the answer of the control plane cannot be read")]
    Unreadable(#[source] DecodeError),
}

impl GreetingError {
    /// How an attempt at a session ends by it.
    pub fn farewell(self) -> Farewell {
        match self {
            // Only these are the control plane's own words.
            Self::Refused(reason) => Farewell::Refused { reason, retry_after: Duration::ZERO },
            Self::NotNow { reason, retry_after } => Farewell::Refused { reason, retry_after },
            Self::Wire(_) | Self::Nonsense | Self::Unreadable(_) => Farewell::Unreached(self.refusal()),
        }
    }
}

impl Explain for GreetingError {
    fn code(&self) -> &'static str {
        match self {
            Self::Refused(_) => "refused",
            Self::NotNow { .. } => "not_now",
            Self::Wire(WireError::Silent(_)) => BUFFERING,
            Self::Wire(_) => "no_answer",
            Self::Nonsense | Self::Unreadable(_) => "unreadable_answer",
        }
    }

    fn meaning(&self) -> String {
        match self {
            Self::Refused(refusal) | Self::NotNow { reason: refusal, .. } => refusal.means.clone(),
            Self::Wire(WireError::Silent(_)) => buffering::MEANS.to_owned(),
            Self::Wire(_) => {
                "the connection came about and then nothing more; nothing is lost by it".to_owned()
            }
            Self::Nonsense | Self::Unreadable(_) => {
                "its version may be one this host does not understand; nothing is lost by it".to_owned()
            }
        }
    }

    fn remedy(&self) -> String {
        match self {
            Self::Refused(refusal) | Self::NotNow { reason: refusal, .. } => refusal.remedy.clone(),
            Self::Wire(WireError::Silent(_)) => buffering::REMEDY.to_owned(),
            Self::Wire(_) => {
                "wait: the host tries again by itself; if it stays, look at the control plane's log (`journalctl -u tenure-control` there)"
                    .to_owned()
            }
            Self::Nonsense | Self::Unreadable(_) => {
                "compare the versions (`tenure-host status`, `tenure nodes`) and upgrade the older side"
                    .to_owned()
            }
        }
    }

    fn refusal(&self) -> Refusal {
        match self {
            Self::Refused(refusal) | Self::NotNow { reason: refusal, .. } => refusal.clone(),
            Self::Wire(WireError::Silent(_)) => buffering(&chain(self)),
            Self::Wire(_) | Self::Nonsense | Self::Unreadable(_) => Refusal {
                code: self.code().to_owned(),
                happened: chain(self),
                means: self.meaning(),
                remedy: self.remedy(),
            },
        }
    }
}

/// Asks whom the kind is for as request number `id` and waits for the answer.
pub async fn ask<M: Message, S: AsyncRead + AsyncWrite>(
    connection: &mut Connection<S>,
    id: u64,
    message: &M,
) -> Result<M::Answer, GreetingError> {
    ask_at(connection, M::KIND.to, id, message).await
}

/// The same, at an address that has a node's name in it.
pub async fn ask_at<M: Message, S: AsyncRead + AsyncWrite>(
    connection: &mut Connection<S>,
    to: &str,
    id: u64,
    message: &M,
) -> Result<M::Answer, GreetingError> {
    let request =
        Request { to: to.to_owned(), id, kind: M::KIND.name.to_owned(), body: codec::encode(message) };
    connection.send(&Frame::Request(request)).await?;
    match connection.receive(PATIENCE).await? {
        Frame::Answer(Answer { re, result }) if re == id => {
            let body = result.map_err(GreetingError::Refused)?;
            codec::decode(&body).map_err(GreetingError::Unreadable)
        }
        Frame::Event(event) if event.kind == Ended::KIND.name => {
            let Ended { reason, retry_after_ms } =
                codec::decode(&event.body).map_err(GreetingError::Unreadable)?;
            let retry_after = Duration::from_millis(retry_after_ms);
            Err(GreetingError::NotNow { reason: reason.from_outside(), retry_after })
        }
        Frame::Answer(_) | Frame::Request(_) | Frame::Event(_) => Err(GreetingError::Nonsense),
    }
}

/// What came as a message has not the form of its kind.
pub(crate) fn unreadable_message(error: &DecodeError) -> Refusal {
    Refusal::new(
        "unreadable_message",
        chain(error),
        "the message has another form than its kind must have; nothing was done",
        "compare the versions of both sides (`tenure-host status`, `tenure nodes`)",
    )
}

#[cfg(test)]
mod tests;
