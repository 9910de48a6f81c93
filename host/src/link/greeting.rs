//! Asking before a session is open: one request, one answer, nothing in between. Enrolment and session both begin so.

use tenure_protocol::envelope::{Answer, Frame, Request};
use tenure_protocol::kind::Message;
use tenure_protocol::refusal::{Explain, Refusal, chain};
use tenure_protocol::wire::codec::{self, DecodeError};
use tenure_protocol::wire::connection::PATIENCE;
use tenure_protocol::wire::{Connection, WireError};
use tokio::io::{AsyncRead, AsyncWrite};

/// Why a greeting has no answer.
#[derive(Debug, thiserror::Error)]
pub enum GreetingError {
    /// The other side refused, and says why. Only this may cost a host anything.
    #[error(transparent)]
    Refused(Refusal),
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

impl Explain for GreetingError {
    fn code(&self) -> &'static str {
        match self {
            Self::Refused(_) => "refused",
            Self::Wire(_) => "no_answer",
            Self::Nonsense | Self::Unreadable(_) => "unreadable_answer",
        }
    }

    fn meaning(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.means.clone(),
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
            Self::Refused(refusal) => refusal.remedy.clone(),
            Self::Wire(_) => {
                "wait: the host tries again by itself; if it stays, look at the control plane's log"
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
            Self::Refused(refusal) => refusal.clone(),
            Self::Wire(_) | Self::Nonsense | Self::Unreadable(_) => Refusal {
                code: self.code().to_owned(),
                happened: chain(self),
                means: self.meaning(),
                remedy: self.remedy(),
            },
        }
    }
}

/// Asks `to` as request number `id` and waits for the answer.
pub async fn ask<M: Message, S: AsyncRead + AsyncWrite>(
    connection: &mut Connection<S>,
    id: u64,
    message: &M,
) -> Result<M::Answer, GreetingError> {
    let request = Request {
        to: M::KIND.to.to_owned(),
        id,
        kind: M::KIND.name.to_owned(),
        body: codec::encode(message),
    };
    connection.send(&Frame::Request(request)).await?;
    match connection.receive(PATIENCE).await? {
        Frame::Answer(Answer { re, result }) if re == id => {
            let body = result.map_err(GreetingError::Refused)?;
            codec::decode(&body).map_err(GreetingError::Unreadable)
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
        "compare the versions of both sides",
    )
}
